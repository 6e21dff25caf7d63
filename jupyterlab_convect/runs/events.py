"""What can happen to a run, and the state that follows from it.

Events are facts: one JSON object a line. `Fold` turns them into a `RunState`,
one at a time, so that following a run costs no more than what is new.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from ..json_text import dumps, loads
from ..pipeline.plan import Json
from .model import GOOD, AttemptState, Progress, Run, RunState, State, StepState, some_of


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
    metrics: Mapping[str, float] = field(default_factory=dict)
    parameters: Mapping[str, Json] = field(default_factory=dict)
    cache: str | None = None
    source: str | None = None
    notices: Sequence[str] = ()
    made: int = 0
    type: ClassVar[str] = "step.end"


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
        kind = KINDS[value.pop("type")]
        known = _FIELDS[kind]
        facts = {name: item for name, item in value.items() if name in known}
        return kind(value["time"], **facts)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _default(item: dataclasses.Field[Any]) -> Any:
    return {} if item.default_factory is not dataclasses.MISSING else item.default


_FIELDS = {
    kind: {item.name: _default(item) for item in dataclasses.fields(kind) if item.name != "time"}
    for kind in KINDS.values()
}
"""The fields of each kind with their default."""


def fold(run: Run, events: Iterable[Event]) -> RunState:
    """The state of a run after all these events."""
    folding = Fold(run)
    for event in events:
        folding.apply(event)
    return folding.state


class Fold:
    """The state so far; `apply` takes the next event in constant time."""

    def __init__(self, run: Run) -> None:
        self.state = RunState(
            reason="Waits to be taken up.",
            name=run.name,
            labels=dict(run.request.labels),
            steps={step.id: StepState(step.id) for step in run.plan.steps},
        )
        self._missing = {step.id: dict.fromkeys(step.after) for step in run.plan.steps}
        self._after: dict[str, list[str]] = {}
        for step in run.plan.steps:
            for upstream in step.after:
                self._after.setdefault(upstream, []).append(step.id)
            self._explain_wait(step.id)

    def apply(self, event: Event) -> None:
        self.state.seq += 1
        _APPLY[type(event)](self, event)

    def _explain_wait(self, step_id: str) -> None:
        missing = self._missing[step_id]
        self.state.steps[step_id].reason = (
            f"Waits for {some_of(missing)}." if missing else "Waits for its turn."
        )

    def _run_wait(self, event: RunWait) -> None:
        self.state.reason = event.reason

    def _run_start(self, event: RunStart) -> None:
        self.state.state, self.state.reason = "running", None
        self.state.started = self.state.started or event.time
        if event.execute is not None:
            self.state.execute, self.state.reuse = frozenset(event.execute), dict(event.reuse)

    def _run_end(self, event: RunEnd) -> None:
        self.state.state, self.state.reason = event.state, event.reason
        self.state.ended = event.time

    def _run_files(self, event: RunFiles) -> None:
        self.state.files = {"put": list(event.put), "kept": dict(event.kept)}

    def _run_change(self, event: RunChange) -> None:
        if event.name is not None:
            self.state.name = event.name
        if event.labels is not None:
            self.state.labels = dict(event.labels)
        if event.note is not None:
            self.state.note = event.note

    def _stop_ask(self, event: StopAsk) -> None:
        if event.step is None:
            self.state.stopping = True
        elif step := self.state.steps.get(event.step):
            step.stopping = True

    def _step_wait(self, event: StepWait) -> None:
        if step := self.state.steps.get(event.step):
            step.state, step.reason = event.state, event.reason

    def _attempt_start(self, event: AttemptStart) -> None:
        step = self.state.steps.get(event.step)
        if step is not None and event.attempt == len(step.attempts) + 1:
            step.state, step.reason, step.cache = "starting", None, event.cache
            step.started = step.started or event.time
            step.progress = Progress(expected=event.expected)
            step.attempts.append(
                AttemptState(event.attempt, "starting", started=event.time, parts=dict(event.parts))
            )

    def _attempt_handle(self, event: AttemptHandle) -> None:
        if attempt := self._attempt(event.step, event.attempt):
            attempt.handle = event.handle

    def _attempt_change(self, event: AttemptChange) -> None:
        if attempt := self._attempt(event.step, event.attempt):
            attempt.state, attempt.reason = event.state, event.reason
            attempt.detail = event.detail
            if event.state == "running":
                attempt.running = attempt.running or event.time
            step = self.state.steps[event.step]
            step.state, step.reason = event.state, event.reason

    def _attempt_stop(self, event: AttemptStop) -> None:
        if attempt := self._attempt(event.step, event.attempt):
            attempt.stopping = event.why

    def _step_progress(self, event: StepProgress) -> None:
        if step := self.state.steps.get(event.step):
            step.progress = Progress(event.cell, event.cells, event.elapsed, event.expected)

    def _attempt_end(self, event: AttemptEnd) -> None:
        if attempt := self._attempt(event.step, event.attempt):
            attempt.state, attempt.reason = event.state, event.reason
            attempt.detail = event.detail
            attempt.started = event.started or attempt.started
            attempt.ended = event.ended or event.time

    def _step_end(self, event: StepEnd) -> None:
        if step := self.state.steps.get(event.step):
            step.state, step.reason, step.ended = event.state, event.reason, event.time
            step.outputs, step.metrics = dict(event.outputs), dict(event.metrics)
            step.parameters = dict(event.parameters)
            step.cache, step.source = event.cache or step.cache, event.source
            step.notices, step.made = list(event.notices), event.made
            if event.state in GOOD:
                self._let_go(event.step)

    def _let_go(self, step_id: str) -> None:
        for follower in self._after.get(step_id, ()):
            self._missing[follower].pop(step_id, None)
            if self.state.steps[follower].state == "waiting":
                self._explain_wait(follower)

    def _attempt(self, step_id: str, number: int) -> AttemptState | None:
        step = self.state.steps.get(step_id)
        if step is None or not 0 < number <= len(step.attempts):
            return None
        return step.attempts[number - 1]


_APPLY: Mapping[type[Event], Callable[[Fold, Any], None]] = {
    RunWait: Fold._run_wait,
    RunStart: Fold._run_start,
    RunEnd: Fold._run_end,
    RunFiles: Fold._run_files,
    RunChange: Fold._run_change,
    StopAsk: Fold._stop_ask,
    StepWait: Fold._step_wait,
    AttemptStart: Fold._attempt_start,
    AttemptHandle: Fold._attempt_handle,
    AttemptChange: Fold._attempt_change,
    AttemptStop: Fold._attempt_stop,
    StepProgress: Fold._step_progress,
    AttemptEnd: Fold._attempt_end,
    StepEnd: Fold._step_end,
}
