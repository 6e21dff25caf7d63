"""The runner is one file that needs Python and papermill, and nothing of ours."""

import json
import subprocess
import venv
import zipfile
from importlib import metadata
from io import BytesIO

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from jupyterlab_convect.runner.one_file import bundle, main

from .conftest import Ended

pytestmark = pytest.mark.slow


def test_the_same_bytes_each_time(tmp_path):
    first = bundle()
    main(["-o", str(tmp_path / "r.pyz")])
    assert (tmp_path / "r.pyz").read_bytes() == first


def test_only_the_runner_is_in_it():
    names = zipfile.ZipFile(BytesIO(bundle())).namelist()
    assert "__main__.py" in names
    assert "jupyterlab_convect/runner/attempt.py" in names
    assert not [name for name in names if "runtimes" in name or "pipeline/" in name]
    assert len(bundle()) < 1 << 17  # an eighth of what may go to a pod


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory):
    """An environment with papermill and ipykernel, what those need, and nothing else."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False)
    (packages,) = folder.glob("lib/python*/site-packages")
    for name in _with_requirements("papermill", "ipykernel"):
        distribution = metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            target = packages / top
            if not target.exists():
                target.symlink_to(distribution.locate_file(top))
    return folder / "bin" / "python"


def _with_requirements(*names):
    found, waiting = set(), list(names)
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name not in found:
            found.add(name)
            needs = map(Requirement, metadata.requires(name) or ())
            waiting += [n.name for n in needs if not n.marker or n.marker.evaluate({"extra": ""})]
    return found


@pytest.mark.parametrize("kind", ["notebook", "script"])
def test_it_runs_where_only_papermill_is(bench, tmp_path, bare_python, kind):
    runner = tmp_path / "convect runner.pyz"
    runner.write_bytes(bundle())
    lines = (
        "import jupyterlab_convect",
        "jupyterlab_convect.output('where', jupyterlab_convect.__file__)",
        "print(lr)" if kind == "notebook" else "import os; print(os.environ['lr'])",
    )
    if kind == "notebook":
        source = bench.notebook("\n".join(lines), ("rows = 3", ["outputs"]))
    else:
        source = bench.work / "s.py"
        source.write_text("\n".join(lines))
    folder = bench.attempt(source, parameters={"lr": 0.5})
    done = subprocess.run(
        [bare_python, runner, folder], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}
    )
    ended = Ended(folder, done.returncode)
    assert done.returncode == 0, (done, ended.log)
    assert ended.log == "0.5\n"
    assert ended.outputs["values"]["where"].startswith(str(runner))
    if kind == "notebook":
        assert ended.outputs["values"]["rows"] == 3
        assert ended.notebook.metadata.papermill.parameters == {"lr": 0.5}
    assert json.loads((folder / "outputs.json").read_text())["state"] == "succeeded"
    recorded = json.loads((folder / "environment.json").read_text())
    packages = recorded["content"]["packages"]
    assert "papermill" in packages
    assert "jupyterlab-convect" not in packages
