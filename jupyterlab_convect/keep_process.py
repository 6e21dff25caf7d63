"""A process of its own that keeps the clocks of schedules, whether JupyterLab is up or not.

There is one per user, held by a lease. While a server keeps the clocks it stands by.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from .background import forever
from .errors import Conflict, ConvectError, Missing, words_of
from .runs.lease import EXPIRES, RENEW, Lease, Owner, host_name, owner_of, process_birth
from .safe_files import append_to, make_folder
from .schedules.schedule_store import Schedules
from .schedules.times import due_before, just_before
from .settings import Settings, load_settings
from .workspace import Workspace

LOOK_PAUSE = 1.0
RESUME_PAUSE = 10.0
MINUTE = 60.0
"""Seconds by which a cluster may be early: it counts in minutes, and by a clock of its own."""
OTHERS_PATIENCE = 3 * EXPIRES
"""Seconds after which it is sure that the process that keeps a clock already is alive."""
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


async def keep_one(workspace: Workspace, schedule_id: str) -> None:
    """Do what the clock of a schedule has started this process for: make the runs that are due,
    and drive them to their end. Another process that does is left to it."""
    scheduling = workspace.scheduling
    schedules = scheduling.schedules
    ledger = await asyncio.to_thread(schedules.read, schedule_id)
    clock = ledger.schedule.clock
    due = next(due_before(clock, ledger.cursor, time.time() + MINUTE), None)
    since = None if due is None else just_before(due)
    keeper = scheduling.keeper("cluster", only=schedule_id, since=since)
    begun = time.monotonic()
    try:
        while True:
            await keeper.look()
            await scheduling.drive(schedule_id, keeper.live_runs())
            ledger = await asyncio.to_thread(schedules.read, schedule_id)
            is_left = ledger.paused is not None or ledger.schedule.kept_by != "runtime"
            if is_left or due is None or ledger.cursor >= due:
                if not await asyncio.to_thread(scheduling.is_busy, schedule_id):
                    break
                if not keeper.is_keeping and time.monotonic() > begun + OTHERS_PATIENCE:
                    break
            await asyncio.sleep(LOOK_PAUSE)
        if workspace.has_notifications:
            await workspace.notifier.look()
        await scheduling.keep_elsewhere(schedule_id)
    finally:
        await workspace.close()


def run_until_told(workspace: Workspace, schedule_id: str | None = None) -> int:
    """`keep` or `keep_one` in this process, until it is interrupted or terminated; not 0 when
    another process has to go on with what `keep_one` has begun."""
    work = keep(workspace) if schedule_id is None else keep_one(workspace, schedule_id)

    async def run() -> int:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)
        try:
            await task
        except Missing:
            pass  # Somebody has removed the schedule.
        except asyncio.CancelledError:
            return 0 if schedule_id is None else 1
        return 0

    return asyncio.run(run())


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
    lines = [
        f'Environment="{name}={_in_unit(os.environ[name])}"' for name in named if name in os.environ
    ]
    return "\n".join(
        [
            "[Unit]",
            "Description=Keeps the schedules of jupyterlab-convect",
            "",
            "[Service]",
            f'ExecStart="{_in_unit(sys.executable)}" -m {__name__}',
            *lines,
            "Restart=on-failure",
            "KillMode=process",
            "",
            "[Install]",
            "WantedBy=default.target",
            "",
        ]
    )


def _in_unit(text: str) -> str:
    """A text between quotes of a unit, where some characters have meanings of their own."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")


if __name__ == "__main__":
    sys.exit(run_until_told(Workspace(load_settings()), *sys.argv[1:2]))
