"""What becomes of due times: a pure function of what is known and what the clock shows."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from .schedule import Schedule
from .times import due_before, due_between, put_off

GRACE = 60.0
"""Seconds by which a run may be late before its due time counts as missed."""
MOST_CAUGHT_UP = 1000
"""Missed due times that are made up for in one go; the earlier ones stay missed."""
MOST_QUEUED = 1000

OVERLAP = "An earlier run had not ended."
FULL = "Too many due times were waiting already."
SUPERSEDED = "A later one was due before it could start."


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known of a schedule at a look."""

    cursor: float
    """What was due up to here has been decided."""
    present: float
    """Since when the clock has been looked at without a break."""
    running: tuple[str, ...] = ()
    """The runs that go on, the oldest first."""
    queued: tuple[float, ...] = ()
    """Due times that wait for one of them to end."""
    decided: Collection[float] = ()
    """Due times after the cursor that were decided before the clock was put back."""
    happened: tuple[float, ...] = ()
    """When something made it due that nobody has decided on yet."""


@dataclass(frozen=True, slots=True)
class Decision:
    """`missed` and `back` are about a time: what was due after `after`, up to `due`. The others
    are about one due time, and `stop` about a run."""

    kind: Literal["run", "queue", "skip", "missed", "back", "stop"]
    due: float = 0.0
    after: float = 0.0
    reason: str | None = None
    run: str | None = None


def decide(schedule: Schedule, known: Situation, now: float) -> list[Decision]:
    """What to do with all that was due since the last look, in order of time."""
    if now < known.cursor - GRACE:
        # The clock was wrong: what was only missed by it may still come.
        return [Decision("back", now)]
    overlap = _Overlap(schedule, known)
    found = list(overlap.start_queued())
    cut = min(known.present, now - GRACE) - schedule.clock.jitter
    begin = known.cursor
    if cut > begin:
        found += _made_up(schedule, known, cut, now, overlap)
        begin = cut
    for due in due_between(schedule.clock, begin, now):
        if due in known.decided:
            continue
        if put_off(schedule.clock, schedule.id, due) > now:
            break
        found += overlap.begin(due)
    for due in known.happened:
        found += overlap.begin(due)
    return found


def _made_up(
    schedule: Schedule, known: Situation, cut: float, now: float, overlap: _Overlap
) -> Iterator[Decision]:
    """What was due while nobody was there."""
    clock, after = schedule.clock, known.cursor
    late = max(after, now - schedule.deadline)
    most = {"none": 0, "last": 1, "all": MOST_CAUGHT_UP}[schedule.missed]
    chosen = sorted(islice(due_before(clock, late, cut), most)) if most else []
    before = math.nextafter(chosen[0], -math.inf) if chosen else cut
    if any(True for _ in due_between(clock, after, before)):
        yield Decision("missed", before, after)
    for due in chosen:
        if due not in known.decided:
            yield from overlap.begin(due, is_late=True)


class _Overlap:
    """Gives out the room that a schedule has for runs."""

    def __init__(self, schedule: Schedule, known: Situation) -> None:
        self._rule = schedule.overlap
        self._room = schedule.concurrency - len(known.running)
        self._running = list(known.running)
        self._queued = list(known.queued)

    def start_queued(self) -> Iterator[Decision]:
        while self._queued and self._room > 0:
            self._room -= 1
            yield Decision("run", self._queued.pop(0))

    def begin(self, due: float, *, is_late: bool = False) -> Iterator[Decision]:
        """What is made up for waits for its turn: that it is late has a reason already."""
        if self._room > 0 and not self._queued:
            self._room -= 1
            yield Decision("run", due)
        elif self._rule == "skip" and not is_late:
            yield Decision("skip", due, reason=OVERLAP)
        elif self._rule == "stop" and not is_late:
            yield from (Decision("skip", each, reason=SUPERSEDED) for each in self._queued)
            self._queued = [due]
            if self._running:
                yield Decision("stop", run=self._running.pop(0))
            yield Decision("queue", due)
        elif len(self._queued) >= MOST_QUEUED:
            yield Decision("skip", due, reason=FULL)
        else:
            self._queued.append(due)
            yield Decision("queue", due)
