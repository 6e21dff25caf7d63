"""A process, told apart from a later one that got the same id."""

from __future__ import annotations

import functools
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any


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
    if not _PROC:
        return _exists(pid)
    started = start_time(pid)
    return started is not None and started == identity.get("start_time")


def start_time(pid: int) -> int | None:
    """Clock ticks from boot to the start of the process; None when it does not run."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name, in parentheses, may hold anything: the fields begin after the last one.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


@functools.cache
def host() -> str:
    return socket.gethostname()


@functools.cache
def boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


_PROC = Path("/proc/self/stat").exists()


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
