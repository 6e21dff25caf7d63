"""What can happen to a run. Events are facts: one JSON object per line."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from ..json_text import dumps, loads
from ..pipeline.plan import Json, from_json
from .model import State


@dataclass(frozen=True, slots=True)
class Event:
    time: float

    type: ClassVar[str]


@dataclass(frozen=True, slots=True)
class RunWait(Event):
    """The run has not begun, because of `reason`."""

    reason: str
    type: ClassVar[str] = "run.wait"


@dataclass(frozen=True, slots=True)
class RunStart(Event):
    """The run begins; of a partial run also which steps it executes and takes over."""

    execute: Sequence[str] | None = None
    reuse: Mapping[str, str] = field(default_factory=dict)
    type: ClassVar[str] = "run.start"


@dataclass(frozen=True, slots=True)
class RunEnd(Event):
    state: State
    reason: str | None = None
    type: ClassVar[str] = "run.end"


@dataclass(frozen=True, slots=True)
class RunFiles(Event):
    """Files that the run made were put into the project, or stayed with the run, and why."""

    put: Sequence[str] = ()
    kept: Mapping[str, str] = field(default_factory=dict)
    type: ClassVar[str] = "run.files"


@dataclass(frozen=True, slots=True)
class RunChange(Event):
    """Somebody renamed, labelled or annotated the run; None leaves as it was."""

    name: str | None = None
    labels: Mapping[str, str] | None = None
    note: str | None = None
    type: ClassVar[str] = "run.change"


@dataclass(frozen=True, slots=True)
class StopAsk(Event):
    """Somebody wants the run (or one step of it) stopped."""

    step: str | None = None
    type: ClassVar[str] = "run.stop"


@dataclass(frozen=True, slots=True)
class StepWait(Event):
    step: str
    state: Literal["waiting", "queued"]
    reason: str
    type: ClassVar[str] = "step.wait"


@dataclass(frozen=True, slots=True)
class AttemptStart(Event):
    """The decision to start an attempt; written before anything is started."""

    step: str
    attempt: int
    parts: Mapping[str, str] = field(default_factory=dict)
    cache: str | None = None
    expected: float | None = None
    type: ClassVar[str] = "attempt.start"


@dataclass(frozen=True, slots=True)
class AttemptHandle(Event):
    step: str
    attempt: int
    handle: Json
    type: ClassVar[str] = "attempt.handle"


@dataclass(frozen=True, slots=True)
class AttemptChange(Event):
    step: str
    attempt: int
    state: State
    reason: str | None = None
    detail: str | None = None
    type: ClassVar[str] = "attempt.state"


@dataclass(frozen=True, slots=True)
class AttemptStop(Event):
    """The decision to stop an attempt; written before it is stopped."""

    step: str
    attempt: int
    why: Literal["asked", "timeout"]
    type: ClassVar[str] = "attempt.stop"


@dataclass(frozen=True, slots=True)
class StepProgress(Event):
    step: str
    cell: int = 0
    cells: int = 0
    elapsed: float = 0.0
    expected: float | None = None
    type: ClassVar[str] = "step.progress"


@dataclass(frozen=True, slots=True)
class AttemptEnd(Event):
    step: str
    attempt: int
    state: State
    reason: str | None = None
    detail: str | None = None
    started: float | None = None
    ended: float | None = None
    type: ClassVar[str] = "attempt.end"


@dataclass(frozen=True, slots=True)
class StepEnd(Event):
    step: str
    state: State
    reason: str | None = None
    outputs: Mapping[str, Json] = field(default_factory=dict)
    metrics: Mapping[str, int | float] = field(default_factory=dict)
    """Integers may have any number of digits."""
    parameters: Mapping[str, Json] = field(default_factory=dict)
    cache: str | None = None
    source: str | None = None
    notices: Sequence[str] = ()
    made: int = 0
    by_rule: bool = False
    type: ClassVar[str] = "step.end"


@dataclass(frozen=True, slots=True)
class GroupStart(Event):
    """A group begins; a loop with its items, whose steps there are from now on."""

    group: str
    items: Sequence[Json] | None = None
    type: ClassVar[str] = "group.start"


@dataclass(frozen=True, slots=True)
class GroupEnd(Event):
    """A group, a loop or an item of one has ended, or was skipped with all that is in it."""

    group: str
    state: State
    reason: str | None = None
    by_rule: bool = False
    type: ClassVar[str] = "group.end"


KINDS: Mapping[str, type[Event]] = {
    kind.type: kind
    for kind in (
        RunWait,
        RunStart,
        RunEnd,
        RunFiles,
        RunChange,
        StopAsk,
        StepWait,
        AttemptStart,
        AttemptHandle,
        AttemptChange,
        AttemptStop,
        StepProgress,
        AttemptEnd,
        StepEnd,
        GroupStart,
        GroupEnd,
    )
}


def encode(event: Event) -> bytes:
    """One line of `events.ndjson`."""
    value = {"time": event.time, "type": event.type}
    for name, default in _FIELDS[type(event)].items():
        if (item := getattr(event, name)) != default:
            value[name] = item
    text = dumps(value)
    # Lone surrogates are legal in JSON and in Python, but not in UTF-8.
    return text.encode("utf-8", "backslashreplace") + b"\n"


def decode(line: bytes) -> Event | None:
    """The event of a line; None when it is damaged or of a kind that we do not know."""
    try:
        value = loads(line)
        return from_json(KINDS[value["type"]], value)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _default(item: dataclasses.Field[Any]) -> Any:
    return {} if item.default_factory is not dataclasses.MISSING else item.default


_FIELDS = {
    kind: {item.name: _default(item) for item in dataclasses.fields(kind) if item.name != "time"}
    for kind in KINDS.values()
}
"""The fields of each kind with their default."""
