"""Everything that this process has started, found and ended.

On Linux a process that has called `adopt` becomes the parent of every descendant whose own
parent has ended, also of those in sessions of their own. So when none is left of its
children, none is left of its descendants.

It needs the standard library alone: whatever Python a kernel has, its keeper uses it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Collection
from pathlib import Path

POLITELY = 0.5
"""Seconds between SIGTERM and SIGKILL."""
AT_MOST = 5.0
"""Seconds until a process that does not even end by SIGKILL is given up."""
_SET_CHILD_SUBREAPER = 36

_adopts = False


def adopt() -> bool:
    """Become the parent of descendants that lose theirs; False where that is not possible.

    Only for a process that starts nothing but what `end` may end.
    """
    global _adopts
    try:
        import ctypes

        _adopts = ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    except (ImportError, OSError, AttributeError):
        _adopts = False
    return _adopts


def adopts() -> bool:
    """Whether this process has called `adopt`, and can."""
    return _adopts


def children() -> list[int]:
    """The processes whose parent is this one, also those that have ended and were not reaped."""
    found: list[int] = []
    try:
        for thread in Path("/proc/self/task").iterdir():
            found += map(int, (thread / "children").read_text().split())
    except OSError:
        return [pid for pid, parent in _parents().items() if parent == os.getpid()]
    return found


def reap(known: Collection[int] = ()) -> None:
    """Take note of adopted processes that have ended; somebody else does so for the `known`."""
    for pid in children():
        if pid not in known:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def end(known: Collection[int] = (), politely: float = POLITELY) -> bool:
    """End all descendants, politely at first; False when one could not be ended.

    No other process can be hit: the id of a child is not used again before it is reaped.
    """
    if not _adopts:
        return False
    began, pause, asked = time.monotonic(), 0.001, set[int]()
    while True:
        reap(known)
        left = [pid for pid in children() if pid not in known or not _has_ended(pid)]
        if not left:
            return True
        elapsed = time.monotonic() - began
        if elapsed > politely + AT_MOST:
            return False
        for pid in left:
            if elapsed >= politely:
                _kill(pid, signal.SIGKILL)
            elif pid not in asked:
                asked.add(pid)
                _kill(pid, signal.SIGTERM)
                _kill(pid, signal.SIGCONT)
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)


def end_marked(mark: str) -> bool:
    """End all processes of this user that were started with `mark` in their environment.

    It finds what a killed parent has left; False when one could not be ended.
    """
    deadline = time.monotonic() + AT_MOST
    while left := [pid for pid in _own_processes() if _end_if_marked(pid, os.fsencode(mark))]:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005 * len(left))
    return True


def signal_if(pid: int, number: int, is_it: Callable[[], bool]) -> bool:
    """Signal a process if it is the one that is meant, which is asked once it is held fast."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    except (OSError, AttributeError):  # an old Linux, or none
        process = None
    try:
        if not is_it():
            return False
        if process is None:
            os.kill(pid, number)
        else:
            signal.pidfd_send_signal(process, number)
    except OSError:
        return False
    finally:
        if process is not None:
            os.close(process)
    return True


def _end_if_marked(pid: int, mark: bytes) -> bool:
    return _is_marked(pid, mark) and signal_if(pid, signal.SIGKILL, lambda: _is_marked(pid, mark))


def _is_marked(pid: int, mark: bytes) -> bool:
    try:
        return mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _own_processes() -> list[int]:
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if place.stat().st_uid == os.geteuid() and int(place.name) != os.getpid():
                found.append(int(place.name))
    return found


def _kill(pid: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, number)


def _has_ended(pid: int) -> bool:
    """Whether it only waits to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def _parents() -> dict[int, int]:
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
    return found
