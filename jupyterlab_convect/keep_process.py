"""A process of its own that keeps the clocks of schedules, whether JupyterLab is up or not.

There is one per user, held by a lease. While a server keeps the clocks it stands by.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from .background import forever
from .errors import Conflict, ConvectError, words_of
from .runs.lease import RENEW, Lease, Owner, host_name, owner_of, process_birth
from .safe_files import append_to, make_folder
from .schedules.schedule_store import Schedules
from .settings import Settings, load_settings
from .workspace import Workspace

LOOK_PAUSE = 1.0
RESUME_PAUSE = 10.0
PATIENCE = 30.0
"""Seconds until a process that should begin or end is given up on."""
UNIT = "convect-schedules.service"


def process_of(schedules: Schedules) -> Owner | None:
    """The process that keeps the clocks or stands by, wherever it is."""
    if not schedules.folder.is_dir():
        return None
    return owner_of(schedules.process_folder())


async def keep(workspace: Workspace) -> None:
    """Keep the clocks until cancelled; Conflict when another process does already."""
    schedules = workspace.scheduling.schedules
    make_folder(schedules.folder)
    lease = Lease.take(schedules.process_folder())
    if lease is None:
        raise Conflict(already(process_of(schedules)), code="already-kept")
    keeper = workspace.scheduling.keeper("process")

    async def look() -> None:
        await keeper.look()
        await asyncio.sleep(LOOK_PAUSE)

    async def notify() -> None:
        if workspace.has_notifications:
            await workspace.notifier.look()
        await asyncio.sleep(LOOK_PAUSE)

    async def resume() -> None:
        await workspace.resume()
        await asyncio.sleep(RESUME_PAUSE)

    async def renew() -> None:
        await asyncio.sleep(RENEW)
        await asyncio.to_thread(lease.renew)

    work = (
        ("Keeping schedules", look),
        ("Sending notifications", notify),
        ("Looking for abandoned runs", resume),
        ("Renewing", renew),
    )
    tasks = [asyncio.ensure_future(forever(*each, workspace.health)) for each in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await workspace.close()
        lease.give_back()


def run_until_told(workspace: Workspace) -> None:
    """`keep` in this process, until it is interrupted or terminated."""

    async def run() -> None:
        task = asyncio.ensure_future(keep(workspace))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(run())


def start(settings: Settings) -> Owner:
    """Start a process that outlives this one; it runs when this returns."""
    schedules = Workspace(settings).scheduling.schedules
    known = process_of(schedules)
    if known is not None:
        raise Conflict(already(known), code="already-kept")
    folder = Path(settings.index_dir).expanduser()
    make_folder(folder)
    path = folder / "schedules.log"
    environment = {**os.environ, "CONVECT_RUNS_DIR": settings.runs_dir}
    environment["CONVECT_INDEX_DIR"] = settings.index_dir
    with os.fdopen(append_to(path), "ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=environment,
        )
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        if (owner := process_of(schedules)) is not None:
            return owner
        time.sleep(0.05)
    raise ConvectError(
        "The process that should keep the schedules did not start.",
        code="no-host",
        hint=f"{path} says why.",
    )


def stop(settings: Settings) -> bool:
    """End it; False when there is none. Conflict when it runs on another machine."""
    schedules = Workspace(settings).scheduling.schedules
    owner = process_of(schedules)
    if owner is None:
        return False
    if owner.host != host_name() or process_birth(owner.process) != owner.born:
        raise Conflict(f"{already(owner)[:-1]}, and can only be ended there.", code="elsewhere")
    os.kill(owner.process, signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE
    while process_birth(owner.process) == owner.born and time.monotonic() < deadline:
        time.sleep(0.05)
    return True


def already(owner: Owner | None) -> str:
    if owner is None:
        return "Another process keeps the schedules."
    return f"The schedules are kept by process {owner.process} on {owner.host}."


def install() -> Path:
    """Have systemd start it with the user's session, and keep it up; the file of the unit."""
    if shutil.which("systemctl") is None:
        raise ConvectError(
            "There is no systemd on this machine.",
            code="no-systemd",
            hint="Start the process with: convect schedule keep --detach",
        )
    path = unit_folder() / UNIT
    try:
        make_folder(path.parent)
        path.write_text(unit_text(), "utf-8")
    except OSError as error:
        raise ConvectError(f"{path} cannot be written: {words_of(error)}.") from None
    for command in (["daemon-reload"], ["enable", "--now", UNIT]):
        done = subprocess.run(
            ["systemctl", "--user", *command], capture_output=True, text=True, check=False
        )
        if done.returncode:
            path.unlink(missing_ok=True)
            words = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
            raise ConvectError(
                f"systemd does not take the unit: {words}.",
                code="no-systemd",
                hint="Start the process with: convect schedule keep --detach",
            )
    return path


def uninstall() -> bool:
    path = unit_folder() / UNIT
    if not path.exists():
        return False
    command = ["systemctl", "--user", "disable", "--now", UNIT]
    subprocess.run(command, capture_output=True, check=False)
    path.unlink(missing_ok=True)
    return True


def unit_folder() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config", "systemd", "user")


def unit_text() -> str:
    """The unit: it starts with the session, and again when it ends by itself."""
    named = ("CONVECT_RUNS_DIR", "CONVECT_INDEX_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR")
    # A percent sign has a meaning of its own there.
    lines = [
        f'Environment="{name}={os.environ[name]}"'.replace("%", "%%")
        for name in named
        if name in os.environ
    ]
    return "\n".join(
        [
            "[Unit]",
            "Description=Keeps the schedules of jupyterlab-convect",
            "",
            "[Service]",
            f'ExecStart="{sys.executable}" -m {__name__}',
            *lines,
            "Restart=on-failure",
            "KillMode=process",
            "",
            "[Install]",
            "WantedBy=default.target",
            "",
        ]
    )


if __name__ == "__main__":
    run_until_told(Workspace(load_settings()))
