"""Everything a step has started, found and ended."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...filesystems import socket_folders
from ...runner.limits import remove_empty_groups
from ...runner.processes import boot, end_marked, host, parse_stat, send_signal
from ...runner.step import VALUES, mark_of

PATIENCE = 10.0
"""Seconds until processes that do not even end by SIGKILL are given up."""


def end_attempt(folder: Path, *processes: Mapping[str, Any]) -> None:
    """End what the attempt in `folder` has started, and the processes that look after it.

    Those are halted first: they start nothing more, and what loses its parent comes to them.
    What they have left when they were killed before is found by its mark.
    """
    for process in processes:
        if send_signal(process, signal.SIGSTOP):
            _end_descendants(process)
            send_signal(process, signal.SIGKILL)
    end_marked(mark_of(folder.absolute() / VALUES))


def descendants_of(pid: int) -> list[dict[str, Any]]:
    """The identities of all processes that have it among their ancestors and still run."""
    parents: dict[int, int] = {}
    started: dict[int, int | None] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            stat = (entry / "stat").read_text()
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
            started[int(entry.name)] = parse_stat(stat)
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    here = {"host": host(), "boot": boot()}
    return [
        {"pid": each, "start_time": started[each], **here}
        for each in found - {pid, os.getpid()}
        if started.get(each) is not None
    ]


def _end_descendants(process: Mapping[str, Any]) -> None:
    pid = int(process["pid"])
    if not Path("/proc/self/stat").exists():
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)  # it leads a group, and is halted: the group is its own
        return
    deadline = time.monotonic() + PATIENCE
    while (left := descendants_of(pid)) and time.monotonic() < deadline:
        for each in left:
            send_signal(each, signal.SIGKILL)
        time.sleep(0.005)


def remove_leftovers() -> None:
    """Remove the socket folders and control groups of runners that were killed."""
    remove_empty_groups()
    for folder in (found for each in socket_folders() for found in Path(each).glob("convect-*-*")):
        owner = folder.name.split("-")[1]
        if owner.isdigit() and not Path("/proc", owner).exists() and Path("/proc").is_dir():
            _remove(folder)


def _remove(folder: Path) -> None:
    with contextlib.suppress(OSError):
        if folder.stat().st_uid == os.getuid():
            for each in folder.iterdir():
                each.unlink()
            folder.rmdir()
