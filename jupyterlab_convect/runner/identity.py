"""A process, told apart from a later one that got the same id."""

from __future__ import annotations

import functools
import os
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .descendants import signal_if


def identify(pid: int) -> dict[str, Any]:
    """Enough to recognise the process later, also from another process or machine."""
    return {"pid": pid, "start_time": start_time(pid), "host": host(), "boot": boot()}


def is_here(identity: Mapping[str, Any]) -> bool:
    """Was it started on this machine, since its last boot? Only then can it be looked up."""
    return identity.get("host") == host() and identity.get("boot") == boot()


def is_alive(identity: Mapping[str, Any]) -> bool:
    """Does the process still run? A zombie does not."""
    pid = identity.get("pid")
    if not isinstance(pid, int) or pid <= 0 or not is_here(identity):
        return False
    started = start_time(pid)
    return started is not None and started == identity.get("start_time")


def send_signal(identity: Mapping[str, Any], number: int) -> bool:
    """Signal the process, and never another that got the same id; False when it does not run."""
    return is_alive(identity) and signal_if(identity["pid"], number, lambda: is_alive(identity))


def start_time(pid: int) -> int | str | None:
    """When the process began, in the system's own terms; None when it does not run."""
    if not _PROC:
        return parse_ps(_say("ps", "-o", "stat=,lstart=", "-p", str(pid)))
    try:
        return parse_stat(Path(f"/proc/{pid}/stat").read_text())
    except OSError:
        return None


def parse_stat(stat: str) -> int | None:
    """Clock ticks from boot to the start of a process, by its `stat`; None for a zombie."""
    # The name, in parentheses, may hold anything: the fields begin after the last one.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def parse_ps(text: str) -> str | None:
    """When a process began, by `ps -o stat=,lstart=`; None for a zombie, or when there is none."""
    state, _, started = text.strip().partition(" ")
    return None if not started or state.startswith("Z") else " ".join(started.split())


@functools.cache
def host() -> str:
    return socket.gethostname()


@functools.cache
def boot() -> str:
    """What tells this start of the machine from others."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return _say("sysctl", "-n", "kern.bootsessionuuid").strip()


_PROC = Path("/proc/self/stat").exists()


def _say(*command: str) -> str:
    """What a program of the system prints, the same whoever asks."""
    env = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    try:
        return subprocess.run(
            command, capture_output=True, text=True, env=env, timeout=10, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
