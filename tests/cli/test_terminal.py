"""A terminal that goes away takes neither the run with it nor the way to end the command."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_convect.cli import main, output

pytestmark = pytest.mark.slow

PATIENCE = 120
CONVECT = "import sys; from jupyterlab_convect.cli import main; sys.exit(main())"


class Command:
    """`convect run` on a terminal, or with pipes, that can go away."""

    def __init__(self, kind: str, *arguments: str) -> None:
        self.kind = kind
        if kind == "pipes":
            self._ours, theirs = os.pipe()
        else:
            self._ours, theirs = pty.openpty()

        def control() -> None:
            if kind == "controlling terminal":
                fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            [sys.executable, "-c", CONVECT, "run", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
            start_new_session=True,
            preexec_fn=control,
        )
        os.close(theirs)

    def hang_up(self) -> None:
        os.close(self._ours)


@pytest.fixture
def go_on(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("signal") / "go-on"


@pytest.fixture
def start(
    work: Path, write_notebook: Callable[..., Path], go_on: Path, until: Callable[..., Any]
) -> Iterator[Callable[..., Command]]:
    """Start a run that waits for `go_on`, and come back when it does."""
    write_notebook(
        work / "a.ipynb",
        f"import pathlib, time\nwhile not pathlib.Path({str(go_on)!r}).exists(): time.sleep(0.02)",
    )
    started: list[Command] = []

    def begin(kind: str, *arguments: str) -> Command:
        command = Command(kind, "a.ipynb", *arguments)
        started.append(command)
        events = Path(os.environ["CONVECT_RUNS_DIR"]).glob
        until(
            lambda: any("cell.start" in path.read_text() for path in events("2*/steps/a/1/ev*")),
            "the cell began",
        )
        return command

    yield begin
    for command in started:
        command.process.kill()
        command.process.wait()


@pytest.fixture
def look(capsys: pytest.CaptureFixture[str]) -> Callable[[], Any]:
    """What somebody who looks at the run sees; what nobody drives is taken up by that."""

    def look() -> Any:
        capsys.readouterr()
        assert main(["runs", "list", "--json"]) == 0
        (run,) = json.loads(capsys.readouterr().out)["runs"]
        return run

    return look


@pytest.mark.parametrize("how", [(), ("--follow",)])
@pytest.mark.parametrize("kind", ["controlling terminal", "terminal", "pipes"])
def test_the_command_ends_on_sigterm_when_nobody_reads_any_more(
    start: Callable[..., Command],
    look: Callable[[], Any],
    go_on: Path,
    until: Callable[..., Any],
    kind: str,
    how: tuple[str, ...],
) -> None:
    """And so does the run, or else it goes on with another process."""
    command = start(kind, *how)
    command.hang_up()
    command.process.send_signal(signal.SIGTERM)
    command.process.wait(PATIENCE)
    go_on.touch()
    until(lambda: look()["state"] in ("cancelled", "succeeded"), "the run ended")


@pytest.mark.parametrize("kind", ["controlling terminal", "terminal"])
def test_a_run_whose_terminal_is_gone_goes_on(
    start: Callable[..., Command],
    look: Callable[[], Any],
    go_on: Path,
    until: Callable[..., Any],
    kind: str,
) -> None:
    """With a process that takes over, or with this one, which writes nothing any more."""
    command = start(kind)
    command.hang_up()
    if kind == "controlling terminal":
        assert command.process.wait(PATIENCE) == 130
    go_on.touch()
    assert command.process.wait(PATIENCE) in (0, 130)
    until(lambda: look()["state"] == "succeeded", "the run ended")


def test_a_row_of_a_table_is_one_line() -> None:
    rows = [("a", "line1\nline2", "1"), ("b", "", "2")]
    assert output.table(rows).splitlines() == ["a  line1 line2  1", "b               2"]
