"""Notices that processes neither say nor do anything any more, and has them show where they are."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .usage import tree

IDLE_CPU, IDLE_GPU = 0.02, 1.0
"""Cores of each process, and percent of the GPUs, that count as nothing."""
SETTLING = 3.0
"""Seconds for which what they say is an answer to our question."""
SHOW_STACKS = getattr(signal, "SIGRTMAX", signal.SIGTERM) - 3
CUSTOMIZE = "sitecustomize.py"
SOURCE = f"""\
import faulthandler, os, sys
faulthandler.register({int(SHOW_STACKS)}, all_threads=True)
# Somebody else may have one as well.
sys.path[:] = [path for path in sys.path if path != os.path.dirname(__file__)]
ours = sys.modules.pop("sitecustomize")
try:
    import sitecustomize
except ModuleNotFoundError as error:
    if error.name != "sitecustomize":
        raise
    sys.modules["sitecustomize"] = ours
"""
"""What every Python process below finds first: it lets us ask for its stacks."""


class HangWatch:
    """Since when nothing was said and nothing was done."""

    def __init__(self, after: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.hangs = False
        self._after = after
        self._clock = clock
        self._active = self._sampled = clock()
        self._deaf_until = 0.0

    def heard(self) -> None:
        """One of them said something."""
        if self._clock() >= self._deaf_until:
            self._active = self._clock()

    def look(self, used: Mapping[str, float] | None, pids: Sequence[int]) -> bool:
        """Whether it has just begun to hang, or to go on: `hangs` has changed."""
        now = self._clock()
        if used is not None:
            is_used = used["cpu"] >= IDLE_CPU * len(pids) or used.get("gpu", 0.0) >= IDLE_GPU
            if is_used or want_processor(pids):
                self._active = now
            self._sampled = now
        # What was done since the last sample is not known yet.
        before, self.hangs = self.hangs, self._sampled - self._active >= self._after
        if self.hangs and not before:
            self._deaf_until = now + SETTLING
        return self.hangs != before


def want_processor(roots: Iterable[int]) -> bool:
    """Whether one of them, or of their descendants, would work if the machine had room for it."""
    for pid in tree(roots):
        with contextlib.suppress(OSError, IndexError):
            for thread in Path(f"/proc/{pid}/task").iterdir():
                if (thread / "stat").read_bytes().rpartition(b")")[2].split()[0] == b"R":
                    return True
    return False


def hang_of(replicas: Iterable[Mapping[str, Any]]) -> str | None:
    """Why all replicas that have not ended are said to hang; None if one of them is not."""
    going = [each for each in replicas if each.get("state") in ("starting", "running")]
    reasons = {each.get("reason") if each["state"] == "running" else None for each in going}
    return str(reasons.pop()) if len(reasons) == 1 and None not in reasons else None


def customize(folder: Path, env: Mapping[str, str]) -> dict[str, str]:
    """The environment of processes that can be asked for their stacks."""
    (folder / CUSTOMIZE).write_text(SOURCE)
    places = (str(folder), env.get("PYTHONPATH"))
    return {**env, "PYTHONPATH": os.pathsep.join(place for place in places if place)}


def show_stacks(roots: Iterable[int]) -> bool:
    """Have processes and their descendants write their Python stacks; False if none of them can."""
    asked = False
    for pid in tree(roots):
        with contextlib.suppress(OSError):
            if _listens(pid):
                os.kill(pid, SHOW_STACKS)
                asked = True
    return asked


def _listens(pid: int) -> bool:
    """Whether it has a handler: anything else would end by the signal."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "SigCgt":
            return bool(int(value, 16) >> (SHOW_STACKS - 1) & 1)
    return False
