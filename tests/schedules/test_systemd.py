"""The clocks of schedules kept by a real systemd of a user, with no server anywhere."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from jupyterlab_convect import keep_process
from jupyterlab_convect.runs.model import Request
from jupyterlab_convect.schedules.times import Clock
from jupyterlab_convect.settings import load_settings
from jupyterlab_convect.workspace import Workspace

MANAGER = Path("/usr/lib/systemd/systemd")
BOOTED = "mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system && exec {} --user"
"""A user's systemd wants to see that the machine was booted by systemd: in a namespace, it does."""


@pytest.fixture
def systemd(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """`systemctl --user` of a manager that ends with the test."""
    if not (MANAGER.exists() and shutil.which("systemctl") and shutil.which("unshare")):
        pytest.skip("There is no systemd here.")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as short:
        for variable, name in (("XDG_RUNTIME_DIR", "run"), ("XDG_CONFIG_HOME", "config")):
            Path(short, name).mkdir(mode=0o700)
            monkeypatch.setenv(variable, str(Path(short, name)))
        monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
        command = ["unshare", "--mount", "sh", "-c", BOOTED.format(MANAGER)]
        manager = subprocess.Popen(
            command,
            env={**os.environ, "HOME": short},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

        def systemctl(*words: str) -> str:
            done = subprocess.run(
                ["systemctl", "--user", *words], capture_output=True, text=True, check=False
            )
            return done.stdout if done.returncode == 0 else ""

        try:
            until(lambda: systemctl("show-environment") or manager.poll() is not None, "systemd")
            if manager.poll() is not None:
                pytest.skip("A user's systemd cannot run here.")
            yield systemctl
        finally:
            systemctl("exit")
            try:
                manager.wait(30)
            except subprocess.TimeoutExpired:
                manager.kill()
                manager.wait()


async def _add(request: Request) -> str:
    workspace = Workspace(load_settings())
    try:
        return await workspace.scheduling.add(request, Clock(every=2.0))
    finally:
        await workspace.close()


@pytest.mark.slow
def test_a_unit_of_the_user_keeps_the_clock(
    systemd: Callable[..., str], tmp_path: Path, write_notebook: Callable[..., Path]
) -> None:
    write_notebook(tmp_path / "a.ipynb", "print(1)")
    schedule_id = asyncio.run(_add(Request("a.ipynb", str(tmp_path))))
    workspace = Workspace(load_settings())
    scheduling = workspace.scheduling

    def process() -> int:
        found = systemd("show", "--property=MainPID", "--value", keep_process.UNIT).strip()
        return int(found or 0)

    def ran() -> list[Any]:
        lines = scheduling.lines(schedule_id, 1000)
        return [each for each in lines if each["state"] == "succeeded"]

    unit = keep_process.install()
    assert unit.is_relative_to(os.environ["XDG_CONFIG_HOME"])
    until(ran, "a run of the schedule succeeded")
    first = process()
    owner = keep_process.process_of(scheduling.schedules)
    assert owner is not None
    assert owner.process == first
    assert scheduling.who_keeps() is not None
    os.kill(first, signal.SIGKILL)
    until(lambda: process() not in (0, first), "systemd starts it again")
    known = len(ran())
    until(lambda: len(ran()) > known, "it goes on")
    dues = [each["due"] for each in scheduling.lines(schedule_id, 1000)]
    assert len(dues) == len(set(dues)), "no due time has two lines"
    assert keep_process.uninstall()
    assert not unit.exists()
    until(lambda: keep_process.process_of(scheduling.schedules) is None, "it ends")
    workspace.store.close()
