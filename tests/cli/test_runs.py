from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ipykernel
import pytest
from waiting import PATIENCE, until

from jupyterlab_convect.cli import main
from jupyterlab_convect.cli.runs import size, when
from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.runner import environment

Write = Callable[..., Path]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, write_notebook: Write) -> Path:
    """A folder with a notebook and `runs`, three of it, the last of which failed."""
    folder = tmp_path_factory.mktemp("three")
    (folder / ".convect").mkdir()  # The project begins here: files of other tests are not in it.
    write_notebook(
        folder / "step.ipynb",
        ("parameters", "n = 0"),
        "print('number', n)",
        "assert n < 3",
        ("outputs", "square = n * n"),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONVECT_RUNS_DIR", str(folder / "runs"))
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        patch.chdir(folder)
        for number in (1, 2, 3):
            label = f"n={number}"
            main(["run", "step.ipynb", "-p", f"n={number}", "--label", label])
    return folder


@pytest.fixture
def three(made: Path, work: Path) -> list[str]:
    """The ids of the three, in a copy that the test may spoil."""
    runs = Path(os.environ["CONVECT_RUNS_DIR"])
    shutil.copytree(made / "runs", runs, symlinks=True)
    return sorted(path.name for path in runs.glob("2*"))


def recorded(runs: Path, run_id: str) -> None:
    """Wait for the record of the environment, which comes after the end."""
    until((runs / run_id / "steps" / "step" / "1" / "environment.json").exists, "it was recorded")


def test_the_environment_is_listed_and_compared(
    three: list[str], made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = Path(os.environ["CONVECT_RUNS_DIR"])
    for run_id in three:
        recorded(made / "runs", run_id)
    shutil.rmtree(runs)
    shutil.copytree(made / "runs", runs, symlinks=True)
    version = sys.version.split()[0]
    assert main(["runs", "show", three[0]]) == 0
    assert f"Python {version} with " in capsys.readouterr().out
    assert main(["runs", "environment", three[0]]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"ipykernel=={ipykernel.__version__}" in lines
    assert main(["runs", "environment", three[0], three[1]]) == 0
    assert capsys.readouterr().out == "step: the same environment\n"
    folder = runs / "environments"
    file = runs / three[2] / "steps" / "step" / "1" / "environment.json"
    found = json.loads(file.read_text())
    changed = environment.read(folder, found["digest"])
    assert changed is not None
    changed["packages"]["ipykernel"] = "0.1"
    file.write_text(json.dumps({**found, "digest": environment.keep(folder, changed)}))
    assert main(["runs", "environment", three[0], three[2]]) == 0
    shown = capsys.readouterr().out.split()
    assert shown == ["step", "ipykernel", ipykernel.__version__, "0.1"]
    assert main(["runs", "environment", three[0], three[2], "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "step": [{"name": "ipykernel", "before": ipykernel.__version__, "after": "0.1"}]
    }


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["runs", "list", "--json", *arguments]) == 0
    return [run["id"] for run in json.loads(capsys.readouterr().out)["runs"]]


def test_runs_are_listed_and_filtered(three: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    first, second, third = three
    assert listed(capsys) == [third, second, first]
    assert listed(capsys, "--sort", "created", "--limit", "1", "--offset", "1") == [second]
    assert listed(capsys, "--state", "failed") == [third]
    assert listed(capsys, "--label", "n=2") == [second]
    assert listed(capsys, "--since", "1h", "--path", "step.ipynb") == [third, second, first]
    assert listed(capsys, "--until", "1h") == []
    assert main(["runs", "list"]) == 0
    shown = capsys.readouterr().out
    assert all(run_id in shown for run_id in three)
    assert "square=4" in shown


def test_a_run_is_shown_by_any_of_its_names(
    three: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for name in (three[2], three[2][-6:], "latest"):
        assert main(["runs", "show", name]) == 0
        shown = capsys.readouterr().out
        assert three[2] in shown
        assert "AssertionError" in shown
    assert main(["runs", "show", "2"]) == 2
    assert "3 runs" in capsys.readouterr().err


def test_a_run_is_named_labelled_noted_and_deleted(
    three: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, third = three
    change = ("--name", "best so far", "--note", "kept for May", "--label", "team=churn")
    assert main(["runs", "edit", first, *change, "--label", "n=", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["name"], shown["note"]) == ("best so far", "kept for May")
    assert shown["labels"] == {"team": "churn"}
    assert main(["runs", "edit", first]) == 2
    assert "Say what to change" in capsys.readouterr().err
    assert main(["runs", "delete", second, third[-6:]]) == 0
    assert "2 runs deleted." in capsys.readouterr().err
    assert listed(capsys) == [first]
    assert main(["runs", "delete", second]) == 2


def test_logs_are_printed(three: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "logs", three[0]]) == 0
    assert capsys.readouterr().out == "number 1\n"
    assert main(["runs", "logs", three[0], "step", "-f"]) == 0
    assert capsys.readouterr().out == "number 1\n"


def test_a_run_is_run_again(three: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "rerun", three[1], "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["id"] not in three
    assert again["parameters"] == {"n": 2}
    assert main(["runs", "rerun", three[2], "--failed"]) == 1


def test_a_run_is_stopped_whoever_drives_it(
    work: Path, write_notebook: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write_notebook(work / "long.ipynb", "import time; time.sleep(600)")
    assert main(["run", "long.ipynb", "--detach"]) == 0
    run_id = capsys.readouterr().out.strip()
    assert main(["runs", "stop", run_id]) == 0
    assert "cancelled" in capsys.readouterr().out


def test_everything_is_downloaded(
    three: list[str], work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runs", "download", three[0]]) == 0
    with zipfile.ZipFile(work / f"{three[0]}.zip") as archive:
        assert f"{three[0]}/steps/step/1/executed.ipynb" in archive.namelist()
    assert main(["runs", "download", three[0]]) == 2
    assert main(["runs", "download", three[0], "--force", "-o", "all.zip"]) == 0
    assert main(["runs", "download", three[0], "-o", "none/all.zip"]) == 2
    assert main(["runs", "download", three[0], "-o", "all.zip/all.zip"]) == 2
    assert [path.name for path in work.glob(".*")] == []


def test_old_runs_are_pruned(three: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "prune", "--keep-runs", "1", "--dry-run"]) == 0
    assert capsys.readouterr().out.split() == three[:2]
    assert len(listed(capsys)) == 3
    assert main(["runs", "prune"]) == 0
    assert len(listed(capsys)) == 3, "without limits nothing goes"
    assert main(["runs", "prune", "--keep-runs", "1"]) == 0
    capsys.readouterr()
    assert listed(capsys) == [three[2]]


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "none"],
        ["show", "latest"],
        ["logs", "none"],
        ["stop", "none"],
        ["rerun", "none"],
        ["download", "none"],
        ["list", "--state", "odd"],
        ["list", "--label", "odd"],
        ["list", "--since", "yesterday"],
        ["list", "--sort", "colour"],
        ["list", "--limit", "-1"],
        ["prune", "--keep-size", "much"],
        ["prune", "--keep-days", "-1"],
    ],
    ids=" ".join,
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    work: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runs", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("convect: ")
    assert "Traceback" not in error


def test_times_and_sizes_are_read() -> None:
    before = time.time()
    assert before - 7200 <= when("2h") <= time.time() - 7200
    assert when("2026-11-16") < when("2026-11-17T08:00")
    assert (size("500M"), size("1.5 GiB"), size("7")) == (500 << 20, 3 << 29, 7)
    with pytest.raises(ConvectError):
        when("2 fortnights")


@pytest.fixture
def go_on(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made by the test when a step may go on; outside of what the step has a view of."""
    return tmp_path_factory.mktemp("signal") / "go-on"


def test_a_person_sees_a_live_table(work: Path, write_notebook: Write, go_on: Path) -> None:
    waits = (
        f"import pathlib, time\nwhile not pathlib.Path({str(go_on)!r}).exists(): time.sleep(0.02)"
    )
    write_notebook(work / "slow.ipynb", "1", waits, "3")
    code = "import sys; from jupyterlab_convect.cli import main; sys.exit(main())"
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code, "run", "slow.ipynb"],
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 4096)
        except OSError:
            break
        if b"of 3" in shown:
            go_on.touch()
    os.close(ours)
    assert process.wait(PATIENCE) == 0, shown.decode()
    assert "of 3" in shown.decode()
    assert "succeeded" in shown.decode()


def test_a_run_whose_driver_was_killed_is_taken_up_by_who_looks(
    work: Path, write_notebook: Write, go_on: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    waits = (
        f"import pathlib, time\nwhile not pathlib.Path({str(go_on)!r}).exists(): time.sleep(0.02)"
    )
    write_notebook(work / "a.ipynb", waits, "print('done')")
    code = "import sys; from jupyterlab_convect.cli import main; sys.exit(main())"
    process = subprocess.Popen([sys.executable, "-c", code, "run", "a.ipynb"])
    found = Path(os.environ["CONVECT_RUNS_DIR"]).glob
    until(lambda: list(found("2*/steps/a/*/runner.json")), "the step was started")
    process.kill()
    process.wait()

    def look() -> tuple[dict[str, Any], str]:
        assert main(["runs", "list", "--json"]) == 0
        shown = capsys.readouterr()
        (run,) = json.loads(shown.out)["runs"]
        return run, shown.err

    run, said = look()
    assert (run["state"], "another one has taken over" in said) == ("running", True)
    until(lambda: "another one has taken over" not in look()[1], "another process drives it")
    go_on.touch()
    until(lambda: look()[0]["state"] == "succeeded", "it succeeded")


def test_the_files_of_a_run_are_listed_and_put(
    work: Path, convect: Callable[..., tuple[int, str, str]]
) -> None:
    nodes = {
        "make": {"kind": "script", "path": "make.py", "outputs": ["given"]},
        "change": {"kind": "script", "path": "change.py", "after": ["make"]},
        "fail": {"kind": "script", "path": "fail.py", "after": ["change"]},
    }
    (work / ".convect").mkdir()
    (work / "p.pipeline").write_text(json.dumps({"convect": 1, "nodes": nodes}))
    (work / "given").write_text("as it was")
    (work / "make.py").write_text("open('model', 'w').write('1')")
    (work / "change.py").write_text("open('model', 'a').write('2')")
    (work / "fail.py").write_text("open('half', 'w').write('3')\nraise SystemExit(1)")
    convect("run", "p.pipeline")
    code, listed, _ = convect("runs", "files", "latest")
    assert code == 0
    assert [line.split(maxsplit=4) for line in listed.splitlines()[1:]] == [
        ["created", "model", "1", "make", "replaced by change"],
        ["output", "given", "9", "make", "kept with the run"],
        ["changed", "model", "2", "change", "put into the project"],
        ["created", "half", "1", "fail", "kept: the step did not succeed"],
    ]
    (work / "model").write_text("by hand")
    _, listed, _ = convect("runs", "files", "latest", "--put")
    assert "somebody made it after the run was submitted" in listed
    _, listed, _ = convect("runs", "files", "latest", "--replace")
    assert ("put into the project" in listed, (work / "model").read_text()) == (True, "12")
