"""The runner is one file that needs Python and papermill, and nothing of ours."""

import json
import subprocess
import sys
import zipfile
from io import BytesIO

import pytest

from jupyterlab_convect.runner.bundle import bundle, main

from .conftest import Ended


def test_the_same_bytes_each_time(tmp_path):
    first = bundle()
    main(["-o", str(tmp_path / "r.pyz")])
    assert (tmp_path / "r.pyz").read_bytes() == first


def test_only_the_runner_is_in_it():
    names = zipfile.ZipFile(BytesIO(bundle())).namelist()
    assert "__main__.py" in names
    assert "jupyterlab_convect/runner/run.py" in names
    assert not [name for name in names if "runtimes" in name or "pipeline/" in name]
    assert len(bundle()) < 100_000


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory):
    """An environment with papermill and ipykernel, without this project."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, capture_output=True)
    python = folder / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "papermill", "ipykernel"]
    done = subprocess.run(install, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("papermill cannot be installed here: no network")
    return python


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
