"""Inputs are placed, outputs are kept; the working folder has walls."""

import hashlib
import os
import stat

import pytest

from jupyterlab_convect.runner.declared_files import collect, place
from jupyterlab_convect.runner.outcome import StepFailed
from jupyterlab_convect.runner.step import PlacedInput


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


def paths(patterns, folder, into, left_out):
    found = collect(patterns, folder, into, strict=False, say=left_out.append)
    return [fact["path"] for fact in found]


@pytest.mark.parametrize("pattern", ["out", "out/", "out/*", "out/**", "**"])
def test_what_is_no_file_is_left_out_and_said(tmp_path, pattern):
    out = tmp_path / "work" / "out"
    out.mkdir(parents=True)
    (out / "x.csv").write_text("1")
    (out / "latest").symlink_to("gone")
    (out / "round").symlink_to("round")
    (out / "secret").symlink_to(tmp_path / "secret")
    (tmp_path / "secret").write_text("secret")
    (out / "elsewhere").symlink_to(tmp_path, target_is_directory=True)
    (out / "up").symlink_to("..", target_is_directory=True)
    os.mkfifo(out / "pipe")
    os.mknod(out / "socket", stat.S_IFSOCK | 0o600)
    said = []
    assert paths([pattern], tmp_path / "work", tmp_path / "files", said) == ["out/x.csv"]
    assert said == [
        "[out/elsewhere is not kept as an output: it is a link to a folder.]\n",
        "[out/latest is not kept as an output: it is a link that leads nowhere.]\n",
        "[out/pipe is not kept as an output: it is not a regular file.]\n",
        "[out/round is not kept as an output: it is a link that leads nowhere.]\n",
        "[out/secret is not kept as an output: it leads out of the working folder.]\n",
        "[out/socket is not kept as an output: it is not a regular file.]\n",
        "[out/up is not kept as an output: it is a link to a folder.]\n",
    ]


def test_links_inside_the_folder_count_as_what_they_lead_to(tmp_path):
    work = tmp_path / "work"
    (work / "run3").mkdir(parents=True)
    (work / "run3" / "model.bin").write_text("3")
    (work / "latest").symlink_to("run3", target_is_directory=True)
    (work / "best.bin").symlink_to("latest/model.bin")
    (work / "real").symlink_to(work / "run3" / "model.bin")
    said = []
    patterns = ["best.bin", "latest", "real"]
    found = paths(patterns, work, tmp_path / "files", said)
    assert found == ["best.bin", "latest/model.bin", "real"]
    for name in found:
        kept = tmp_path / "files" / name
        assert kept.read_text() == "3"
        assert not kept.is_symlink()
    assert paths(["latest/*.bin"], work, tmp_path / "more", said) == ["latest/model.bin"]
    assert said == []


def test_a_named_link_that_leads_out_is_left_out(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").write_text("secret")
    (work / "data").symlink_to("../data", target_is_directory=True)
    said = []
    for number, pattern in enumerate(("data", "data/x", "data/*", "*/x")):
        assert paths([pattern], work, tmp_path / f"files{number}", said) == []
    assert all("leads out of the working folder" in each for each in said)
    assert len(said) == 4


def test_a_loop_gives_one_copy(tmp_path):
    out = tmp_path / "work" / "out"
    out.mkdir(parents=True)
    (out / "x").write_text("1")
    for name in ("loop", "loop2"):
        (out / name).symlink_to("..", target_is_directory=True)
    assert paths(["**/x"], tmp_path / "work", tmp_path / "files", []) == ["out/x"]


def test_modes_are_kept(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    modes = {"key": 0o600, "go": 0o755, "seen": 0o644, "once": 0o444}
    for name, mode in modes.items():
        (work / name).write_text(name)
        (work / name).chmod(mode)
    paths(list(modes), work, tmp_path / "files", [])
    kept = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob("files/*")}
    assert kept == modes
    assert stat.S_IMODE((tmp_path / "files").stat().st_mode) == 0o700


def test_a_step_that_leaves_a_fifo_ends_and_says_so(bench):
    ended = bench.script(
        "import os\nos.mkdir('out')\nos.mkfifo('out/p')\nos.symlink('gone', 'out/latest')\n"
        "open('out/x', 'w').write('1')",
        outputs=["out"],
    )
    assert ended.code == 0
    assert [fact["path"] for fact in ended.outputs["files"]] == ["out/x"]
    assert "[out/p is not kept as an output: it is not a regular file.]" in ended.log


@pytest.mark.parametrize("pattern", ["../x", "data/../../x", "/etc/passwd"])
def test_outputs_stay_inside(folder, tmp_path, pattern):
    with pytest.raises(StepFailed, match="is outside the working folder"):
        collect([pattern], folder, tmp_path / "files", strict=False)


def test_inputs(folder, tmp_path):
    work = tmp_path / "new"
    place([PlacedInput(folder / "a.csv", "in/é.csv"), PlacedInput(folder / "data", "data")], work)
    assert (work / "in" / "é.csv").read_text() == "a.csv"
    assert (work / "data" / "deep" / "x.txt").exists()
    place([PlacedInput(work / "in" / "é.csv", "in/é.csv")], work)
    assert (work / "in" / "é.csv").read_text() == "a.csv"


def test_inputs_stay_inside(folder, tmp_path):
    with pytest.raises(StepFailed, match="is outside the working folder"):
        place([PlacedInput(folder / "a.csv", "../a.csv")], tmp_path / "new")


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
