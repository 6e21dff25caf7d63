"""`convect runs shell` in a terminal, into the pod of a running step."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import start_document
from waiting import PATIENCE, eventually

CONVECT = str(Path(sys.executable).with_name("convect"))


class Terminal:
    """A person at a terminal of 40 lines and 100 columns."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.screen = ""
        self._master, slave = pty.openpty()
        self.resize(40, 100)
        self._process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=env,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        os.set_blocking(self._master, False)

    def resize(self, lines: int, columns: int) -> None:
        size = struct.pack("HHHH", lines, columns, 0, 0)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def see(self, pattern: str, seconds: float = PATIENCE) -> str:
        """Wait until it is on the screen."""
        deadline = time.monotonic() + seconds
        while not (found := re.search(pattern, self.screen)):
            assert time.monotonic() < deadline, self.screen
            try:
                self.screen += os.read(self._master, 65536).decode(errors="replace")
            except BlockingIOError:
                time.sleep(0.05)
            except OSError:
                break
        assert found, self.screen
        self.screen = self.screen[found.end() :]
        return found[0]

    def end(self) -> int:
        return self._process.wait(PATIENCE)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)


@pytest.fixture
def environment(bed: Any, tmp_path: Path) -> Callable[[Any], dict[str, str]]:
    config = tmp_path / "jupyter_jupyterlab_convect_config.py"
    config.write_text(f"c.KubernetesRuntime.config_file = {str(bed.account('convect'))!r}\n")

    def make(lab: Any) -> dict[str, str]:
        return {
            **os.environ,
            "JUPYTER_CONFIG_DIR": str(tmp_path),
            "CONVECT_RUNS_DIR": str(lab.store.folder),
            "CONVECT_INDEX_DIR": str(tmp_path),
        }

    return make


async def running(lab: Any, run: Any) -> None:
    def runs() -> bool:
        step = lab.store.read(run.id).state.steps["a"]
        assert step.ended is None, step.reason
        return bool(step.state == "running")

    await eventually(runs, "the step runs")


@pytest.mark.parametrize("shared", [True, False])
async def test_a_shell_in_the_pod(make_lab: Any, environment: Any, shared: bool) -> None:
    lab = make_lab(shared=shared)
    lab.write("sub/a.py", "import time; time.sleep(120)")
    run = await lab.start("sub/a.py")
    await running(lab, run)
    terminal = Terminal([CONVECT, "runs", "shell", run.id, "a"], environment(lab))

    def look_around() -> int:
        terminal.type("echo $((6 * 7)) in $PWD as $(id -u)\r")
        assert "/sub as 1000" in terminal.see(r"\n42 in \S+ as \d+")
        terminal.type("stty size\r")
        terminal.see(r"\n40 100")
        terminal.resize(30, 90)
        terminal.type("sleep 1; stty size\r")
        terminal.see(r"\n30 90")
        terminal.type("sleep 100\r")
        time.sleep(0.5)
        terminal.type("\x03")
        terminal.type("echo 数 $?\r")
        terminal.see(r"\n数 130")
        terminal.type("exit 5\r")
        return terminal.end()

    try:
        assert await asyncio.to_thread(look_around) == 5
    finally:
        terminal.close()
    await lab.engine.stop(run.id)
    await lab.engine.wait(run.id, PATIENCE)


@pytest.mark.parametrize("shared", [True, False])
async def test_the_shell_sees_what_the_step_sees(
    make_lab: Any, environment: Any, shared: bool
) -> None:
    """Its own version of the folder, which nobody else sees."""
    lab = make_lab(shared=shared)
    lab.write("sub/a.py", "import time\nopen('mine', 'w').write('made')\ntime.sleep(120)")
    run = await lab.start("sub/a.py", own_view=True)
    await running(lab, run)
    words = [CONVECT, "runs", "shell", run.id, "a", "-c", "cat", "mine"]

    def look() -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, env=environment(lab), capture_output=True, text=True)

    async def sees() -> bool:
        step = lab.store.read(run.id).state.steps["a"]
        assert step.ended is None, step.reason
        seen = await asyncio.to_thread(look)
        return (seen.returncode, seen.stdout) == (0, "made")

    await eventually(sees, "the shell sees the file of the step")
    assert not (lab.root / "sub/mine").exists()
    await lab.engine.stop(run.id)
    await lab.engine.wait(run.id, PATIENCE)


async def test_the_shell_ends_with_the_pod(lab: Any, environment: Any) -> None:
    lab.write("a.py", "import time; time.sleep(120)")
    run = await lab.start("a.py")
    await running(lab, run)
    terminal = Terminal([CONVECT, "runs", "shell", run.id], environment(lab))
    try:
        await asyncio.to_thread(terminal.type, "echo $((6 * 7))\r")
        await asyncio.to_thread(terminal.see, r"\n42")
        await lab.engine.stop(run.id)
        await lab.engine.wait(run.id, PATIENCE)
        assert await asyncio.to_thread(terminal.end) != 0
    finally:
        terminal.close()


async def test_an_image_without_the_program(lab: Any, environment: Any, bed: Any) -> None:
    lab.write("a.py", "import time; time.sleep(120)")
    run = await start_document(
        lab, {"convect": 1, "name": "p", "nodes": {"a": {"kind": "script", "path": "a.py"}}}
    )
    await running(lab, run)
    done = await asyncio.to_thread(
        subprocess.run,
        [CONVECT, "runs", "shell", run.id, "-c", "no-such-program"],
        env=environment(lab),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "The image of the step has no no-such-program." in done.stderr
    await lab.engine.stop(run.id)
    await lab.engine.wait(run.id, PATIENCE)
