"""Inputs are placed, outputs are kept; the working folder has walls."""

import hashlib

import pytest

from jupyterlab_convect.runner.files import collect, place
from jupyterlab_convect.runner.outcome import StepFailed
from jupyterlab_convect.runner.step import Input


@pytest.fixture
def folder(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    for name in ("a.csv", "data/b 1.csv", "data/deep/é 值.csv", "data/deep/x.txt", "[odd].csv"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(name)
    return work


@pytest.mark.parametrize(
    ("patterns", "paths"),
    [
        (["a.csv"], ["a.csv"]),
        (["data/*.csv"], ["data/b 1.csv"]),
        (["**/*.csv"], ["[odd].csv", "a.csv", "data/b 1.csv", "data/deep/é 值.csv"]),
        (["data"], ["data/b 1.csv", "data/deep/x.txt", "data/deep/é 值.csv"]),
        (["data/", "data/deep/x.txt"], ["data/b 1.csv", "data/deep/x.txt", "data/deep/é 值.csv"]),
        (["[odd].csv"], ["[odd].csv"]),
        ([], []),
    ],
)
def test_what_patterns_find(folder, tmp_path, patterns, paths):
    found = collect(patterns, folder, tmp_path / "files", strict=True)
    assert [fact["path"] for fact in found] == paths
    for fact in found:
        content = (tmp_path / "files" / fact["path"]).read_bytes()
        assert content.decode() == fact["path"]
        assert fact["size"] == len(content)
        assert fact["digest"] == "sha256:" + hashlib.sha256(content).hexdigest()


def test_an_output_that_was_not_produced(folder, tmp_path):
    with pytest.raises(StepFailed, match=r"^Declared output data/\*.parquet was not produced.$"):
        collect(["data/*.parquet"], folder, tmp_path / "files", strict=True)
    assert collect(["data/*.parquet"], folder, tmp_path / "files", strict=False) == []


@pytest.mark.parametrize("pattern", ["../x", "data/../../x", "/etc/passwd"])
def test_outputs_stay_inside(folder, tmp_path, pattern):
    with pytest.raises(StepFailed, match="is outside the working folder"):
        collect([pattern], folder, tmp_path / "files", strict=False)


def test_inputs(folder, tmp_path):
    work = tmp_path / "new"
    place([Input(folder / "a.csv", "in/é.csv"), Input(folder / "data", "data")], work)
    assert (work / "in" / "é.csv").read_text() == "a.csv"
    assert (work / "data" / "deep" / "x.txt").exists()
    place([Input(work / "in" / "é.csv", "in/é.csv")], work)
    assert (work / "in" / "é.csv").read_text() == "a.csv"


def test_inputs_stay_inside(folder, tmp_path):
    with pytest.raises(StepFailed, match="is outside the working folder"):
        place([Input(folder / "a.csv", "../a.csv")], tmp_path / "new")


def test_a_missing_input(bench):
    ended = bench.script("print('no')", inputs=[{"from": "/no/such", "to": "x.csv"}])
    assert ended.reason == "Input x.csv could not be placed: No such file or directory."
    assert ended.log == ""


def test_an_isolated_step(bench, tmp_path):
    (tmp_path / "given.csv").write_text("1,2")
    ended = bench.script(
        "import pathlib\npathlib.Path('out').mkdir()\n"
        "pathlib.Path('out/r.txt').write_text(open('in/given.csv').read() * 2)",
        folder=str(tmp_path / "isolated" / "work"),
        inputs=[{"from": str(tmp_path / "given.csv"), "to": "in/given.csv"}],
        outputs=["out/*.txt"],
    )
    assert ended.code == 0
    assert [fact["path"] for fact in ended.outputs["files"]] == ["out/r.txt"]
    assert (ended.folder / "files" / "out" / "r.txt").read_text() == "1,21,2"


def test_what_a_failed_step_left_is_kept_too(bench):
    ended = bench.script("open('a.txt', 'w').write('x')\n1/0", outputs=["a.txt", "b.txt"])
    assert ended.reason.endswith("ZeroDivisionError: division by zero")
    assert [fact["path"] for fact in ended.outputs["files"]] == ["a.txt"]


def test_a_step_without_its_output_has_failed(bench):
    ended = bench.script("", outputs=["b.txt"])
    assert ended.code == 1
    assert ended.reason == "Declared output b.txt was not produced."
