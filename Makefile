# Everything lives in .venv and node_modules of this clone; .make/ remembers what is done.
PYTHON ?= python3
PORT ?= 8888

export PATH := $(CURDIR)/.venv/bin:$(PATH)

SOURCES := $(shell find src style schema -type f 2>/dev/null) tsconfig.json package.json

.PHONY: lab test test-cluster test-kfp test-training check docs bench soak watch clean cluster-up cluster-down

lab: .make/extension
	@python scripts/lab.py --port $(PORT)

test: .make/extension .make/browser
	@python scripts/suites.py

# On the cluster of KUBECONFIG, or on one that is started here: see tests/cluster/conftest.py.
# OPTIONAL=1 lets it succeed where there can be none.
test-cluster: .make/python
	@python tests/testbed/run.py $(if $(OPTIONAL),--optional) $(TESTS)

# On a Kubeflow Pipelines that is built and started here; OPTIONAL=1 as above, WITHIN=<seconds>.
test-kfp: .make/python
	@python tests/testbed/run.py --kfp $(if $(OPTIONAL),--optional) $(if $(WITHIN),--within $(WITHIN)) $(TESTS)

# On training operators that are built and started here; OPTIONAL=1 as above.
test-training: .make/python
	@python tests/testbed/run.py --training $(if $(OPTIONAL),--optional) $(if $(WITHIN),--within $(WITHIN)) $(TESTS)

# KFP=1 has Kubeflow Pipelines on it.
cluster-up: .make/python
	@python tests/testbed/$(if $(KFP),pipelines,cluster).py up

cluster-down:
	@python tests/testbed/cluster.py down

check: .make/extension
	@python scripts/suites.py --fast

docs: .make/python
	@python scripts/docs.py

bench: .make/extension .make/browser
	@python -m benchmarks

soak: .make/extension .make/soak
	@python -m benchmarks.soak $(PHASES)

watch: .make/extension
	@jlpm watch

clean:
	rm -rf .make .venv node_modules ui-tests/node_modules lib dist jupyterlab_convect/labextension

.make/python: pyproject.toml
	@$(PYTHON) scripts/setup.py python

.make/node: .make/python yarn.lock package.json
	@python scripts/setup.py node

.make/frontend: .make/node $(SOURCES)
	@python scripts/setup.py frontend

.make/extension: .make/frontend pyproject.toml
	@python scripts/setup.py extension

.make/soak: .make/python
	@python scripts/setup.py soak

.make/browser: .make/python ui-tests/yarn.lock
	@python scripts/setup.py browser
