"""Everything a step has started, found and ended."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from ...runner.kernels import socket_folders
from ...runner.limits import remove_empty_groups


def family(pid: int) -> set[int]:
    """The members of the session that `pid` leads, and the descendants of them all."""
    parents: dict[int, int] = {}
    found: set[int] = set()
    for place in Path("/proc").iterdir():
        if not place.name.isdigit():
            continue
        try:
            fields = (place / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(place.name)] = int(fields[1])
        if pid in (int(place.name), int(fields[3])):
            found.add(int(place.name))
    grown = True
    while grown:
        more = {child for child, parent in parents.items() if parent in found} - found
        found |= more
        grown = bool(more)
    return found - {os.getpid(), 1}


def kill_family(pid: int) -> None:
    """Kill them all, also what is started meanwhile."""
    for _ in range(10):
        members = [each for each in family(pid) if _kill(each)] if Path("/proc").is_dir() else []
        if not members:
            break
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


def remove_leftovers() -> None:
    """Remove the socket folders and control groups of runners that were killed."""
    remove_empty_groups()
    for place in (found for each in socket_folders() for found in Path(each).glob("convect-*-*")):
        owner = place.name.split("-")[1]
        if owner.isdigit() and not Path("/proc", owner).exists() and Path("/proc").is_dir():
            _remove(place)


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        return False
    state = Path(f"/proc/{pid}/stat")
    try:
        return state.read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _remove(place: Path) -> None:
    with contextlib.suppress(OSError):
        if place.stat().st_uid == os.getuid():
            for each in place.iterdir():
                each.unlink()
            place.rmdir()
