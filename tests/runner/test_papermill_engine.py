"""`papermill --engine convect` does what papermill does, and saves whole and seldom."""

import subprocess
import sys

import nbformat
import papermill
import pytest
from papermill.exceptions import PapermillExecutionError

from jupyterlab_convect.runner import papermill_engine


@pytest.fixture
def saves(monkeypatch):
    """The moments a notebook was written."""
    written = []

    def write(path, content):
        written.append(nbformat.reads(content.decode(), 4))
        path.write_bytes(content)

    monkeypatch.setattr(papermill_engine, "write_whole", write)
    return written


def test_parameters_and_metadata_are_papermills(bench, saves):
    source = bench.notebook(("lr = 1", ["parameters"]), *["print(lr)"] * 20)
    target = bench.work / "out.ipynb"
    papermill.execute_notebook(
        source, target, {"lr": 0.5}, engine_name="convect", progress_bar=False
    )
    done = nbformat.read(target, 4)
    assert done.cells[1].metadata.tags == ["injected-parameters"]
    assert done.cells[-1].outputs[0].text == "0.5\n"
    assert {cell.metadata.papermill.status for cell in done.cells} == {"completed"}
    assert len(saves) < 10


def test_an_error_is_papermills_error(bench, saves):
    source = bench.notebook("1 / 0", "print('after')")
    with pytest.raises(PapermillExecutionError, match="ZeroDivisionError"):
        papermill.execute_notebook(
            source, bench.work / "out.ipynb", engine_name="convect", progress_bar=False
        )
    statuses = [cell.metadata.papermill.status for cell in saves[-1].cells]
    assert statuses == ["failed", "pending"]


def test_a_kernel_that_does_not_start_completes_nothing(bench, saves):
    source = bench.notebook("1", "2")
    with pytest.raises(Exception, match="klingon"):
        papermill.execute_notebook(
            source, bench.work / "out.ipynb", engine_name="convect", kernel_name="klingon",
            language="python", progress_bar=False,
        )  # fmt: skip
    assert {cell.metadata.papermill.status for cell in saves[-1].cells} == {"pending"}


def test_from_the_command_line_in_another_folder(bench):
    bench.notebook("import os; print(os.getcwd())", name="in.ipynb")
    (bench.work / "sub").mkdir()
    command = [sys.executable, "-m", "papermill", "--engine", "convect", "--cwd", "sub",
               "--no-progress-bar", "in.ipynb", "out.ipynb"]  # fmt: skip
    subprocess.run(command, cwd=bench.work, check=True, capture_output=True)
    done = nbformat.read(bench.work / "out.ipynb", 4)
    assert done.cells[0].outputs[0].text == f"{bench.work / 'sub'}\n"
    assert not list((bench.work / "sub").iterdir())
