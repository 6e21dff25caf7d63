"""The ledger of a schedule: one line per due time, folded from what happened and was asked."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from ..pipeline.plan import Json, from_json, to_json
from .decide import GRACE
from .schedule import Schedule
from .times import Clock, count_between, due_before
from .triggers import Happening

Outcome = Literal["ran", "queued", "skipped", "missed", "paused", "refused", "waiting"]
"""`refused` could not be started; `waiting` is due, and nobody has looked at the clock since."""

Event = Mapping[str, Json]
_NONE: frozenset[float] = frozenset()


@dataclass(slots=True)
class Line:
    due: float
    outcome: Outcome
    decided: float
    """When."""
    run: str | None = None
    """The run, or the sweep, that the due time made."""
    sure: bool = False
    """It is there; before, it was only decided to make it."""
    reason: str | None = None
    happening: Happening | None = None
    """Why it is due, if not by the clock."""


@dataclass(slots=True)
class Range:
    """Due times of one fate: those later than `after`, up to `until`."""

    outcome: Outcome
    after: float
    until: float
    clock: Clock
    gone: tuple[float, float] | None = None
    """From when to when nobody looked at the clock."""


@dataclass(frozen=True, slots=True)
class HandedOver:
    """A schedule as it was when a runtime was told to make its runs."""

    schedule: Schedule
    handle: Json
    """What the runtime has to know to find them."""


@dataclass(slots=True)
class Ledger:
    """The fold of a schedule's events.

    One thread takes in what is new while others read: they look at copies of what may grow.
    """

    schedule: Schedule
    cursor: float
    """What was due up to here has been decided."""
    lines: dict[float, Line] = field(default_factory=dict)
    ranges: list[Range] = field(default_factory=list)
    paused: float | None = None
    """Since when."""
    went_back: bool = False
    """The clock was put back at some time."""
    asked: dict[str, float | None] = field(default_factory=dict)
    """Runs that people made, and of which due time, if of one."""

    pending: dict[float, Line] = field(default_factory=dict)
    """The lines of which something is still to come: a run that waits, or that is being made."""

    happened: dict[float, Happening] = field(default_factory=dict)
    """What made it due and nobody has decided on yet."""
    keys: dict[str, float] = field(default_factory=dict)
    """All that ever made it due, and when that was."""
    files: dict[str, str] = field(default_factory=dict)
    """The versions of files that have counted, or were there before."""
    kept: dict[str, HandedOver] = field(default_factory=dict)
    """What a runtime makes runs by, the latest last."""

    def happening(self, due: float) -> Happening | None:
        """Why something is due then, if not by the clock."""
        line = self.lines.get(due)
        return self.happened.get(due) if line is None else line.happening

    def queued(self) -> tuple[float, ...]:
        return tuple(
            sorted(due for due, line in list(self.pending.items()) if line.outcome == "queued")
        )

    def unsure(self) -> list[Line]:
        """Those whose runs were decided on, and of which nobody has written that they are there."""
        return [line for line in list(self.pending.values()) if line.outcome == "ran"]

    def decided_ahead(self) -> frozenset[float]:
        """Due times after the cursor that have a line: only where the clock was put back."""
        return (
            frozenset(due for due in list(self.lines) if due > self.cursor)
            if self.went_back
            else _NONE
        )

    def latest(
        self, now: float, before: float | None = None
    ) -> Iterator[tuple[Line, Range | None]]:
        """The lines, of due times before that if it is given, the last first; with those that
        are due and that nobody has decided yet."""
        last = math.inf if before is None else math.nextafter(before, -math.inf)
        singles = sorted(self._singles(), key=lambda line: -line.due)
        every: list[Iterator[tuple[Line, Range | None]]] = [
            ((line, None) for line in singles if line.due <= last)
        ]
        every += [self._lines_of(each, last) for each in (*self.ranges, *self._undecided(now))]
        return heapq.merge(*every, key=lambda pair: -pair[0].due)

    def counts(
        self, now: float, after: float = -math.inf, until: float = math.inf
    ) -> dict[str, int]:
        """How many lines there are of each outcome, of due times later than `after`, up to
        `until`."""
        found: dict[str, int] = {}
        lines = [line for line in self._singles() if after < line.due <= until]
        for line in lines:
            found[line.outcome] = found.get(line.outcome, 0) + 1
        for each in (*self.ranges, *self._undecided(now)):
            begin, end = max(each.after, after), min(each.until, until)
            if end > begin:
                inside = sum(
                    1 for line in lines if begin < line.due <= end and line.happening is None
                )
                count = count_between(each.clock, begin, end) - inside
                if count > 0:
                    found[each.outcome] = found.get(each.outcome, 0) + count
        return found

    def _singles(self) -> list[Line]:
        waiting = list(self.happened.items())
        return [
            *list(self.lines.values()),
            *(Line(due, "waiting", due, happening=happening) for due, happening in waiting),
        ]

    def _undecided(self, now: float) -> list[Range]:
        until = now if self.paused is not None else now - GRACE - self.schedule.clock.jitter
        outcome: Outcome = "waiting" if self.paused is None else "paused"
        return [Range(outcome, self.cursor, until, self.schedule.clock)]

    def _lines_of(self, found: Range, last: float) -> Iterator[tuple[Line, Range | None]]:
        for due in due_before(found.clock, found.after, min(found.until, last)):
            if due not in self.lines:
                yield Line(due, found.outcome, found.until), found

    def close(self, outcome: Outcome, until: float, gone: tuple[float, float] | None) -> None:
        """Give all that was due up to then and has no line yet the same fate."""
        if until > self.cursor:
            self.ranges.append(Range(outcome, self.cursor, until, self.schedule.clock, gone))
            self.cursor = until

    def go_back(self, to: float) -> None:
        """Forget what only a clock that was wrong has let pass."""
        self.ranges = [each for each in self.ranges if each.after < to]
        for each in self.ranges:
            each.until = min(each.until, to)
        self.cursor, self.went_back = to, True


def apply(ledger: Ledger, happened: Iterable[Event], asked: Iterable[Event]) -> None:
    """Take in what the keeper wrote and what people asked for since the last time.

    Each of the two is in order, also where a clock was put back meanwhile.
    """
    for event in heapq.merge(happened, asked, key=_time_of):
        try:
            _apply(ledger, event)
        except (KeyError, TypeError, ValueError, AttributeError):
            continue  # Of a later version, or damaged: the others still count.


def _time_of(event: Event) -> float:
    time = event.get("time") if isinstance(event, dict) else None
    return float(time) if isinstance(time, int | float) else 0.0


def _apply(ledger: Ledger, event: Event) -> None:
    now = float(event["time"])
    match event["type"]:
        case "edit":
            edited = from_json(Schedule, event["schedule"])
            if edited.clock != ledger.schedule.clock:
                ledger.close("missed" if ledger.paused is None else "paused", now, None)
            ledger.schedule = edited
            ledger.files.update(event.get("files") or {})
        case "pause":
            if ledger.paused is None:
                ledger.close("missed", now, None)
                ledger.paused = now
                for due, happening in list(ledger.happened.items()):
                    _decided(ledger, Line(due, "paused", now, happening=happening))
        case "resume":
            if ledger.paused is not None:
                ledger.close("paused", now, None)
                ledger.paused = None
        case "kept":
            as_it_was = from_json(Schedule, event["schedule"])
            ledger.kept[event["id"]] = HandedOver(as_it_was, event["handle"])
        case "let_go":
            ledger.kept.pop(event["id"], None)
        case "seen":
            ledger.files.update(event["files"])
        case "happened":
            _happened(ledger, event)
        case "asked":
            ledger.asked[event["run"]] = event.get("due")
        case "missed":
            gone = event.get("gone")
            ledger.close("missed", event["due"], None if gone is None else (gone[0], gone[1]))
        case "back":
            ledger.go_back(event["due"])
        case "run":
            _decided(ledger, Line(event["due"], "ran", now, run=event["run"]))
        case "submitted":
            ledger.lines[event["due"]].sure = True
            ledger.pending.pop(event["due"], None)
        case "queue":
            _decided(ledger, Line(event["due"], "queued", now))
        case "skip":
            _decided(ledger, Line(event["due"], "skipped", now, reason=event.get("reason")))
        case "refused":
            _decided(ledger, Line(event["due"], "refused", now, reason=event.get("reason")))


def _happened(ledger: Ledger, event: Event) -> None:
    """Two hosts may have noticed the same: they agreed on when that was."""
    happening = from_json(Happening, event["happening"])
    if event["key"] in ledger.keys:
        return
    due = ledger.keys[event["key"]] = float(event["due"])
    if event.get("version") is not None:
        ledger.files[happening.values["file"]] = event["version"]
    if ledger.paused is None:
        ledger.happened[due] = happening
    else:
        _decided(ledger, Line(due, "paused", due, happening=happening))


def _decided(ledger: Ledger, line: Line) -> None:
    """A run that is there is not undone by what another host wrote late."""
    known = ledger.lines.get(line.due)
    if known is not None and known.sure:
        return
    line.happening = line.happening or ledger.happening(line.due)
    ledger.lines[line.due] = line
    if line.happening is None:
        ledger.cursor = max(ledger.cursor, line.due)
    else:
        ledger.happened.pop(line.due, None)
    if line.outcome in ("ran", "queued"):
        ledger.pending[line.due] = line
    else:
        ledger.pending.pop(line.due, None)


def newest(ledger: Ledger, now: float, limit: int, before: float | None = None) -> list[Json]:
    """A page of lines for people, the last first."""
    asked: dict[float, list[str]] = {}
    for run, due in list(ledger.asked.items()):
        if due is not None:
            asked.setdefault(due, []).append(run)
    return [
        {
            "due": line.due,
            "outcome": line.outcome,
            "run": line.run if line.sure else None,
            "reason": line.reason,
            "happening": None if line.happening is None else to_json(line.happening),
            "gone": None if found is None or found.gone is None else list(found.gone),
            "asked": asked.get(line.due, []),
        }
        for line, found in islice(ledger.latest(now, before), limit)
    ]
