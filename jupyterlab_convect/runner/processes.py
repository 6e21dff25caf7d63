"""Processes: all that this one has started, found and ended; and any, told from one of the same id.

On Linux a process that has called `adopt` becomes the parent of every descendant whose own
parent has ended, also of those in sessions of their own. So when none is left of its
children, none is left of its descendants.

It needs the standard library alone: whatever Python a kernel has, its keeper uses it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

POLITELY = 0.5
"""Seconds between SIGTERM and SIGKILL."""
AT_MOST = 5.0
"""Seconds until a process that does not even end by SIGKILL is given up."""
_SET_CHILD_SUBREAPER = 36

_adopts = False
_PROC = Path("/proc/self/stat").exists()


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
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if entry.stat().st_uid == os.geteuid() and int(entry.name) != os.getpid():
                found.append(int(entry.name))
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
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    return found


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


def _say(*command: str) -> str:
    """What a program of the system prints, the same whoever asks."""
    env = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    try:
        return subprocess.run(
            command, capture_output=True, text=True, env=env, timeout=10, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
