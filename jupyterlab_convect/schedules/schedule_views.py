"""What people see of schedules: what is due, what became of it, and who keeps the clock."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from ..errors import ConvectError, Missing
from ..pipeline.plan import Json, to_json
from ..runs.model import ENDED, GOOD
from ..runs.versions import SourceChange, changes_since
from .keeper import who_keeps
from .ledger import Ledger, newest
from .schedule import Schedule
from .schedule_store import Schedules
from .times import (
    Clock,
    check,
    count_between,
    day_start,
    due_after,
    just_before,
    local_time,
    shifts,
)

if TYPE_CHECKING:
    from ..workspace import Workspace

SHOWN = 5
"""Due times that are shown ahead."""
MOST_SHIFTS = 8
DAYS_BEFORE, DAYS_AHEAD = 120, 30
"""Days that a calendar shows."""
MOST_STATES = 1000
"""Runs whose states are looked up for a calendar, the newest."""


class ScheduleViews:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.schedules = Schedules(workspace.store)

    def view(self, schedule_id: str) -> dict[str, Json]:
        """`ScheduleView`: all there is to know but the lines of the ledger."""
        ledger = self.schedules.read(schedule_id)
        schedule, now = ledger.schedule, time.time()
        return {
            **self._summary(ledger, now),
            "request": to_json(schedule.request),
            "sweep": None if schedule.sweep is None else dict(schedule.sweep),
            "overlap": schedule.overlap,
            "concurrency": schedule.concurrency,
            "missed": schedule.missed,
            "deadline": schedule.deadline,
            "user": schedule.user,
            "changed": [change.path for change in self._changes(schedule)],
            "counts": ledger.counts(now),
            **upcoming(schedule.clock, now, has_trigger=schedule.trigger is not None),
        }

    def changes(self, schedule_id: str) -> list[SourceChange]:
        """How the pinned files differ from those of today."""
        return self._changes(self.schedules.read(schedule_id).schedule)

    def all(self) -> list[dict[str, Json]]:
        """`ScheduleSummary` of each, the newest first."""
        now = time.time()
        return [self._summary(ledger, now) for ledger in self.schedules.all()]

    def lines(
        self, schedule_id: str, limit: int = 50, before: float | None = None
    ) -> list[dict[str, Json]]:
        """A page of the ledger, the last first, with the states of the runs."""
        ledger = self.schedules.read(schedule_id)
        lines: list[dict[str, Json]] = newest(ledger, time.time(), limit, before)
        return [self._with_states(ledger.schedule, line) for line in lines]

    def days(self, schedule_id: str) -> list[dict[str, Json]]:
        """The days of the last months and of the coming weeks on which something is due, with
        how many due times came to what: `failed` are runs that ended without success."""
        ledger, now = self.schedules.read(schedule_id), time.time()
        clock = ledger.schedule.clock
        failed = self._failed_dues(ledger)
        today = local_time(clock, now).date()
        found: list[dict[str, Json]] = []
        for number in range(-DAYS_BEFORE, DAYS_AHEAD + 1):
            day = today + timedelta(days=number)
            begin, end = (just_before(day_start(clock, day + timedelta(days=n))) for n in (0, 1))
            counts = ledger.counts(now, begin, end)
            if bad := sum(1 for due in failed if begin < due <= end):
                counts |= {"ran": counts["ran"] - bad, "failed": bad}
            if (ahead := count_between(clock, max(begin, now), end)) and number >= 0:
                counts["due"] = ahead
            if counts:
                found.append({"day": day.isoformat(), "counts": counts})
        return found

    def _failed_dues(self, ledger: Ledger) -> list[float]:
        every = list(ledger.lines.values())
        lines = (line for line in every if line.outcome == "ran" and line.run)
        newest_first = sorted(lines, key=lambda line: -line.due)[:MOST_STATES]
        bad = ENDED - GOOD
        return [
            line.due
            for line in newest_first
            if self.state_of(ledger.schedule, str(line.run)) in bad
        ]

    def who_keeps(self) -> dict[str, Json] | None:
        """Who keeps the clocks now; None when nobody does."""
        return who_keeps(self.schedules)

    def live_snapshots(self) -> Iterator[str]:
        """Those that pinned schedules are made from."""
        for ledger in self.schedules.all():
            handed_over = (each.schedule for each in list(ledger.kept.values()))
            for schedule in (ledger.schedule, *handed_over):
                sources = schedule.sources
                if sources is not None and sources.snapshot is not None:
                    yield sources.snapshot

    def _summary(self, ledger: Ledger, now: float) -> dict[str, Json]:
        schedule = ledger.schedule
        last = newest(ledger, now, 1)
        following = next(due_after(schedule.clock, max(now, ledger.cursor)), None)
        return {
            "id": schedule.id,
            "name": schedule.name,
            "path": schedule.request.path,
            "runtime": schedule.request.runtime,
            "is_sweep": schedule.sweep is not None,
            "created": schedule.created,
            "clock": to_json(schedule.clock),
            "trigger": None if schedule.trigger is None else to_json(schedule.trigger),
            "pinned": schedule.sources is not None,
            "kept_by": schedule.kept_by,
            "paused": ledger.paused,
            "due": None if ledger.paused is not None else following,
            "last": self._with_states(schedule, last[0]) if last else None,
        }

    def _changes(self, schedule: Schedule) -> list[SourceChange]:
        if schedule.sources is None:
            return []
        with contextlib.suppress(ConvectError):
            snapshots = self._workspace.store.snapshots
            return changes_since(snapshots, schedule.request, schedule.sources)
        return []

    def _with_states(self, schedule: Schedule, line: dict[str, Json]) -> dict[str, Json]:
        asked = [{"run": run, "state": self.state_of(schedule, run)} for run in line["asked"]]
        state, reason = None, None
        if line["run"] is not None:
            state, reason = self._ending(schedule, line["run"])
        return {**line, "state": state, "reason": line["reason"] or reason, "asked": asked}

    def state_of(self, schedule: Schedule, run_id: str) -> str:
        return self._ending(schedule, run_id)[0]

    def _ending(self, schedule: Schedule, run_id: str) -> tuple[str, str | None]:
        """The state of a run, or of a sweep, and the reason of it."""
        try:
            if schedule.sweep is not None:
                return str(self._workspace.sweeps.view(run_id)["state"]), None
            found = self._workspace.store.read(run_id).state
            return found.state, found.reason
        except Missing:
            return "deleted", None


def upcoming(clock: Clock, now: float, *, has_trigger: bool = False) -> dict[str, Json]:
    """The next due times, and what becomes of those on nights when clocks change."""
    check(clock, now, has_trigger=has_trigger)
    return {
        "next": list(itertools.islice(due_after(clock, now), SHOWN)),
        "shifts": [to_json(each) for each in shifts(clock, now)[:MOST_SHIFTS]],
    }
