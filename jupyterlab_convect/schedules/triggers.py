"""What makes a schedule due beside its clock: a file, a run that ended, a call.

What happened has a key that is the same for whoever notices it, so that it counts once.
"""

from __future__ import annotations

import fnmatch
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal

from ..errors import ConvectError
from ..pipeline.patterns import find
from ..pipeline.plan import Json
from ..runs.model import ENDED

Cause = Literal["file", "run", "call"]

MOST_FILES = 10_000
"""Files that a pattern may match."""
LONGEST_PATTERN = 500
LONGEST_SETTLE = 86400.0
LATE = 3600.0
"""Seconds after its end until which a run of another machine may be noticed."""


@dataclass(frozen=True, slots=True)
class FileTrigger:
    pattern: str
    """Relative to the root of the request, as in `data/*.csv`; `**` matches folders."""
    settle: float = 5.0
    """Seconds for which a file has not changed before it counts."""
    changed: bool = True
    """A file that has changed counts again; otherwise each counts once."""


@dataclass(frozen=True, slots=True)
class RunTrigger:
    """A run of `path`, of a name like `name`, or both; never one of the schedule itself."""

    path: str | None = None
    name: str | None = None
    states: tuple[str, ...] = ("succeeded",)


@dataclass(frozen=True, slots=True)
class CallTrigger:
    generation: int = 1
    """Which of its tokens is valid: they are numbered."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """Each that is given makes the schedule due."""

    file: FileTrigger | None = None
    run: RunTrigger | None = None
    call: CallTrigger | None = None


@dataclass(frozen=True, slots=True)
class Happening:
    """Why something is due when no clock says so."""

    cause: Cause
    values: Mapping[str, Json] = field(default_factory=dict)
    """What parameters may refer to: `file`; `run` and `state`; or parts of the `body` of a call."""


@dataclass(frozen=True, slots=True)
class Noticed:
    key: str
    happening: Happening
    version: str | None = None
    """Which version of its file it is."""


@dataclass(frozen=True, slots=True)
class EndedRun:
    id: str
    state: str
    name: str
    path: str | None


def check_trigger(trigger: Trigger, root: str) -> None:
    """ConvectError for the first thing that is wrong with it."""
    if trigger.file is not None:
        _check_file(trigger.file)
        scan(Path(root), trigger.file.pattern)
    if trigger.run is not None:
        if not (trigger.run.path or trigger.run.name):
            raise ConvectError(
                "Specify which runs count, by their file or by their name.", code="bad-trigger"
            )
        odd = [state for state in trigger.run.states if state not in ENDED]
        if odd or not trigger.run.states:
            raise ConvectError(
                f"{odd[0] if odd else 'nothing'!r} is not a state in which a run ends.",
                code="bad-trigger",
                hint=f"A run ends as {', '.join(sorted(ENDED))}.",
            )
        if trigger.run.path and not Path(root, trigger.run.path).is_file():
            raise ConvectError(
                f"There is no file “{trigger.run.path[:80]}” whose runs could be waited for.",
                code="bad-trigger",
                hint="Write its path from the root folder, or a name of runs such as train*.",
            )


def _check_file(wanted: FileTrigger) -> None:
    path = PurePosixPath(wanted.pattern)
    plain = wanted.pattern.strip() and len(wanted.pattern) <= LONGEST_PATTERN
    if not plain or path.is_absolute() or ".." in path.parts or "\0" in wanted.pattern:
        raise ConvectError(
            f"“{wanted.pattern[:80]}” is not a pattern of files inside the project.",
            code="bad-trigger",
            hint="Write a path such as data/*.csv, without “..”.",
        )
    if not 0 <= wanted.settle <= LONGEST_SETTLE:
        raise ConvectError("A file is waited for between 0 seconds and a day.", code="bad-trigger")


def scan(root: Path, pattern: str) -> dict[str, str]:
    """The files that match, each with what tells its versions apart."""
    found: dict[str, str] = {}
    for name in find(root, pattern):  # Not the hidden ones, in which copies are begun.
        try:
            status = (root / name).stat()
        except OSError:
            continue  # Just removed, or a link that leads nowhere.
        if not stat.S_ISREG(status.st_mode):
            continue
        found[name] = f"{status.st_mtime_ns}-{status.st_size}"
        if len(found) > MOST_FILES:
            raise ConvectError(
                f"More than {MOST_FILES} files match “{pattern}”.",
                code="bad-trigger",
                hint="Choose a narrower pattern.",
            )
    return found


class FileWatch:
    """Notices files that have settled. It counts by a clock that never jumps."""

    def __init__(self) -> None:
        self._unsettled: dict[str, tuple[str, float]] = {}

    def look(
        self, root: Path, wanted: FileTrigger, seen: Mapping[str, str], ticks: float
    ) -> Iterator[Noticed]:
        found = scan(root, wanted.pattern)
        fresh = {
            path: version
            for path, version in found.items()
            if (seen.get(path) != version if wanted.changed else path not in seen)
        }
        self._unsettled = {
            path: known
            if (known := self._unsettled.get(path)) and known[0] == version
            # It may still be written to.
            else (version, ticks)
            for path, version in fresh.items()
        }
        for path, (version, since) in sorted(self._unsettled.items()):
            if ticks - since >= wanted.settle:
                happening = Happening("file", {"file": path})
                yield Noticed(f"file {path} {version}", happening, version)


def does_count(wanted: RunTrigger, run: EndedRun) -> bool:
    return (
        run.state in wanted.states
        and wanted.path in (None, run.path)
        and (not wanted.name or fnmatch.fnmatchcase(run.name, wanted.name))
    )


class RunWatch:
    """Notices runs that ended, also while nobody looked."""

    def __init__(self, since: float) -> None:
        self._since = since

    def look(
        self, wanted: RunTrigger, ended: Callable[[float], list[EndedRun]], now: float
    ) -> Iterator[Noticed]:
        """`ended` gives those that ended after a time; what was noticed before comes again."""
        for run in ended(self._since):
            if does_count(wanted, run):
                happening = Happening("run", {"run": run.id, "state": run.state})
                yield Noticed(f"run {run.id}", happening)
        self._since = max(self._since, now - LATE)
