from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from waiting import until

Convect = Callable[..., tuple[int, str, str]]


@pytest.fixture
def signals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where test and step meet, outside of what the step has a view of."""
    return tmp_path_factory.mktemp("signals")


@pytest.fixture
def running(work: Path, convect: Convect, signals: Path) -> str:
    """The id of a run whose only step waits for the file `go`."""
    (work / "a.py").write_text(
        f"import pathlib, time\nsignals = pathlib.Path({str(signals)!r})\n"
        "(signals / 'up').touch()\n"
        "while not (signals / 'go').exists(): time.sleep(0.05)\n"
    )
    code, out, err = convect("run", "a.py", "--detach")
    assert code == 0, err
    until((signals / "up").exists, "the step runs")
    return out.split()[-1]


@pytest.mark.slow
def test_a_shell_on_this_machine(work: Path, running: str, convect: Convect, signals: Path) -> None:
    program = Path(sys.executable).with_name("convect")
    words = [str(program), "runs", "shell", "latest", "a"]
    env = {**os.environ, "SHELL": "/bin/sh"}

    def look() -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, env=env, input="pwd; exit 4", capture_output=True, text=True)

    # The step runs before anybody has noticed.
    until(lambda: "is not running" not in look().stderr, "it is known to run")
    here = look()
    assert (here.returncode, here.stdout.strip()) == (4, str(work.resolve())), here.stderr
    said = subprocess.run([*words, "-c", "no-such-program"], capture_output=True, text=True)
    assert said.returncode == 2
    assert "no-such-program cannot be started in " in said.stderr
    (signals / "go").touch()
    # The step is gone before anybody has noticed.
    until(
        lambda: (
            "No step of the run is running." in convect("runs", "shell", running, "-c", "true")[2]
        ),
        "it is known to have ended",
    )


@pytest.mark.slow
def test_a_shell_where_a_rank_runs(work: Path, convect: Convect, signals: Path) -> None:
    (work / "a.py").write_text(
        f"import os, pathlib, time\nsignals = pathlib.Path({str(signals)!r})\n"
        "(signals / os.environ['RANK']).touch()\n"
        "while not (signals / 'go').exists(): time.sleep(0.05)\n"
    )
    code, out, err = convect("run", "a.py", "--processes", "2", "--detach")
    assert code == 0, err
    until(lambda: all((signals / rank).exists() for rank in "01"), "both ranks run")
    words = [str(Path(sys.executable).with_name("convect")), "runs", "shell", out.split()[-1]]

    def look(rank: str) -> subprocess.CompletedProcess[str]:
        line = [*words, "--replica", rank, "-c", "sh", "-c", "echo $RANK of $WORLD_SIZE; pwd"]
        return subprocess.run(line, capture_output=True, text=True, check=False)

    until(lambda: "is running" not in look("0").stderr, "it is known to run")
    for rank in "01":
        assert look(rank).stdout == f"{rank} of 2\n{work.resolve()}\n", look(rank).stderr
    assert "Rank 2 is not running." in look("2").stderr
    (signals / "go").touch()
