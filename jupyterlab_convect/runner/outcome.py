"""How a step ended, and the sentences that say why."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from .limits import Limits, count_all_kills, count_kills

SUCCEEDED, FAILED, USAGE, UNWRITABLE, TAKEN, CANCELLED = 0, 1, 2, 74, 75, 143
"""Exit codes of the runner. UNWRITABLE: the outcome could not be written down.
TAKEN: another runner has this attempt; nothing was touched."""


@dataclass(frozen=True, slots=True)
class Outcome:
    state: Literal["succeeded", "failed", "cancelled"]
    reason: str | None = None
    error: dict[str, Any] | None = None

    @property
    def exit_code(self) -> int:
        return {"succeeded": SUCCEEDED, "failed": FAILED, "cancelled": CANCELLED}[self.state]


class StepFailed(Exception):
    """Ends the step with a reason for people and, where there is one, the error behind it."""

    def __init__(self, reason: str, error: dict[str, Any] | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.error = error


class MemoryWatch:
    """Tells whether the system killed a process for want of memory since this was made."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._before = count_all_kills()

    def explain_kill(self) -> str | None:
        """Why, as the rest of a sentence."""
        if count_kills(*map(Path, self._limits.groups)):
            return f"because the step went beyond its memory limit of {size(self._limits.memory)}"
        return "by the system because memory ran out" if count_all_kills() > self._before else None


def explain_end(returncode: int, memory: MemoryWatch | None = None) -> str:
    """A process' end as the rest of a sentence: "was killed by …", "exited with code 3"."""
    if returncode >= 0:
        return f"exited with code {returncode}"
    name = _signal_name(-returncode)
    if returncode == -signal.SIGKILL:
        if why := memory and memory.explain_kill():
            return f"was killed {why} ({name})"
        return f"was killed ({name}), probably because memory ran out"
    if -returncode in (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT):
        return f"crashed ({name})"
    return f"was ended by {name}"


def duration(seconds: float) -> str:
    """`2 h`, `1 min 30 s`, `0.5 s`."""
    if seconds < 60:
        return f"{seconds:g} s"
    whole = round(seconds)
    parts = ((whole // 3600, "h"), (whole // 60 % 60, "min"), (whole % 60, "s"))
    return " ".join(f"{count} {unit}" for count, unit in parts if count)


def size(count: float) -> str:
    """`10 MB`, `1.5 GB`."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:.4g} {unit}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
