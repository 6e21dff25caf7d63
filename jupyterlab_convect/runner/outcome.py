"""How a step ended, and the sentences that say why."""

from __future__ import annotations

import errno
import signal
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..errors import ConvectError
from ..json_text import dumps
from ..safe_files import write_whole
from ..text import size_text
from .limits import Limits, count_all_kills, count_kills

SUCCEEDED, FAILED, USAGE, UNWRITABLE, TAKEN, CANCELLED = 0, 1, 2, 74, 75, 143
"""Exit codes of the runner. UNWRITABLE: the outcome could not be written down.
TAKEN: another runner has this attempt; nothing was touched."""
INTERRUPTED = "The pod was stopped from outside."
"""What a runner leaves that only knows of a signal; the runtime may know why it came."""


@dataclass(frozen=True, slots=True)
class Ending:
    state: Literal["succeeded", "failed", "cancelled"]
    reason: str | None = None
    error: dict[str, Any] | None = None

    @property
    def exit_code(self) -> int:
        return {"succeeded": SUCCEEDED, "failed": FAILED, "cancelled": CANCELLED}[self.state]


def write_outcome(folder: Path, ending: Ending, facts: Mapping[str, Any]) -> None:
    """Write `outputs.json`, whole and last: that it is there means that the attempt has ended."""
    content = {
        "state": ending.state,
        **({"reason": ending.reason} if ending.reason else {}),
        **({"error": ending.error} if ending.error else {}),
        "exit_code": ending.exit_code,
        **facts,
    }
    write_whole(folder / "outputs.json", dumps(content).encode(errors="replace"))


class StepFailed(Exception):
    """Ends the step with a reason for people and, where there is one, the error behind it."""

    def __init__(self, reason: str, error: dict[str, Any] | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.error = error


def ending_of(error: Exception) -> Ending:
    """What an exception makes of the attempt that it ended."""
    if isinstance(error, StepFailed):
        return Ending("failed", error.reason, error.error)
    if isinstance(error, ConvectError):
        return Ending("failed", error.sentence)
    if isinstance(error, OSError):
        return Ending("failed", explain_trouble(error))
    if isinstance(error, ModuleNotFoundError):
        return Ending(
            "failed",
            "Notebooks need papermill and ipykernel, which are not installed where the step runs: "
            f"the module {error.name} is missing.",
        )
    traceback.print_exception(error)
    return Ending("failed", f"The runner failed: {type(error).__name__}: {error}")


def explain_trouble(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "No space is left on the disk that holds the run."
    return f"The result could not be written: {error.strerror or error}."


class MemoryWatch:
    """Tells whether the system killed a process for want of memory since this was made."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._before = count_all_kills()

    def explain_kill(self) -> str | None:
        """Why, as the rest of a sentence."""
        if count_kills(*map(Path, self._limits.groups)):
            return f"because the step exceeded its memory limit of {size_text(self._limits.memory)}"
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


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
