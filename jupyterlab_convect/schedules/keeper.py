"""Keeps the clocks: looks at what is due, decides, and has runs made.

A server and a process of its own may both offer to; one lease lets one of them do it for all
schedules of a user, on whichever machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from ..background import Health
from ..errors import Conflict, ConvectError
from ..pipeline.plan import Json
from ..runs.json_files import read_json, write_json
from ..runs.lease import RENEW, Lease, host_name, owner_of
from ..runtimes.base import MadeRun
from .decide import Decision, Situation, decide
from .ledger import Ledger, Line
from .schedule import Schedule
from .schedule_store import Schedules
from .times import due_after, due_before, due_between, just_before, put_off
from .triggers import LATE, EndedRun, FileWatch, Happening, Noticed, RunWatch

Kind = Literal["server", "process", "cluster"]
"""Who keeps the clocks: a Jupyter server while it is up, a process of its own, or a process that
a cluster has started for one schedule."""

JUMP = 30.0
"""Seconds between two clocks that only a jump or a sleeping machine explains."""
LOOK_AGAIN = 60.0
"""Seconds after which all folders are looked at, also when nobody said that one changed."""
TIDY = 3600.0
"""Seconds between two removals of claims that nobody needs any more."""
MOST_LIVE = 100
"""Runs of a schedule that are looked up when somebody begins to keep it, the newest."""
BETWEEN = 1.0
"""Seconds between two looks for room for a run that waits, or at what makes a schedule due."""
ELSEWHERE, SELDOM = 10.0, 300.0
"""Seconds between two looks for runs that a runtime has made by its own clock: while one is due,
and otherwise."""
MOST_SKIPPED = 1000
"""Due times that a runtime left out which have a line of their own."""
LEFT_OUT = "The runtime that keeps the clock left it out."
SHARE = 20.0
"""Looking at files takes at most one part in so many of the time."""
STATE = "keeper.json"


class Starter(Protocol):
    """What the keeper has done by whoever has an engine."""

    async def start(
        self, schedule: Schedule, due: float, run_id: str, happening: Happening | None
    ) -> None:
        """Make the run, or the sweep, of a due time under that id; Conflict when it is there."""

    async def stop(self, schedule: Schedule, run_id: str) -> None: ...

    def is_over(self, schedule: Schedule, run_id: str) -> bool: ...

    async def made_elsewhere(self, ledger: Ledger) -> list[MadeRun]:
        """The runs that a runtime has made by its own clock and that are not home yet, by when
        they were due."""

    async def take_home(self, schedule: Schedule, made: MadeRun, run_id: str) -> None:
        """Make a run of ours of one of them; Conflict when it is there."""

    async def let_go(self, ledger: Ledger) -> list[str]:
        """Delete what makes no runs any more; the ids of what is gone."""

    def ended_runs(self, schedule: Schedule, since: float) -> list[EndedRun]:
        """Runs of the same project that ended later than that, and that nobody's sweep made."""


@dataclass(slots=True)
class _Kept:
    """A schedule that is kept."""

    ledger: Ledger
    live: list[str] = field(default_factory=list)
    """Its runs that had not ended at the last look, the oldest first."""
    next: float = 0.0
    """When to look at it again; larger ones of the heap are void."""
    file_watch: FileWatch = field(default_factory=FileWatch)
    run_watch: RunWatch | None = None
    slow: float = 0.0
    """Seconds that the last look at its files took."""


class Keeper:
    """`look` about once a second, on the event loop of whoever drives the runs.

    `only` is the one schedule that a cluster has started this process for, and `since` when the
    cluster began to; without it, all schedules are kept whose clocks no cluster keeps.
    """

    def __init__(
        self,
        schedules: Schedules,
        starter: Starter,
        kind: Kind,
        health: Health,
        *,
        tell: Callable[[str], None] = lambda _: None,
        only: str | None = None,
        since: float | None = None,
        now: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self.schedules = schedules
        self._starter = starter
        self._kind = kind
        self._health = health
        self._tell = tell
        self._only = only
        self._present = since
        self._now, self._ticks = now, ticks
        self._lease: Lease | None = None
        self._renewed = 0.0
        self._since = 0.0
        self._seen: tuple[float, float] | None = None
        """What both clocks showed at the last look."""
        self._gone: tuple[float, float] | None = None
        """From when to when nobody looked, before the present look began."""
        self._kept: dict[str, _Kept] = {}
        self._heap: list[tuple[float, str]] = []
        self._changed: float | None = None
        self._read = 0.0
        self._tidied = ticks()
        self._elsewhere: dict[str, float] = {}
        """The schedules whose runs a runtime makes by its own clock, and when to look for them."""
        self._bringing: asyncio.Task[None] | None = None

    @property
    def is_keeping(self) -> bool:
        return self._lease is not None

    def live_runs(self) -> list[str]:
        """The runs of what is kept that had not ended at the last look."""
        return [run for kept in self._kept.values() for run in kept.live]

    async def look(self) -> None:
        """Do all that is due now; nothing while somebody else keeps the clocks."""
        changed = self.schedules.changed()
        if changed is None and self._lease is None:
            return
        if not await asyncio.to_thread(self._hold):
            return
        if changed != self._changed or self._ticks() - self._read > LOOK_AGAIN:
            self._changed = changed
            await asyncio.to_thread(self._look_for_changes)
        now = self._now()
        due = []
        while self._heap and self._heap[0][0] <= now:
            moment, schedule_id = heapq.heappop(self._heap)
            kept = self._kept.get(schedule_id)
            if kept is not None and kept.next == moment:
                due.append(schedule_id)
        for schedule_id in due:
            with self._health.guard(_keeping(schedule_id)):
                await self._tend(schedule_id)
            if (kept := self._kept.get(schedule_id)) is not None:
                self._plan_next(schedule_id, kept)
        if self._elsewhere and (self._bringing is None or self._bringing.done()):
            # A server that does not answer must not hold up the clocks that are kept here.
            self._bringing = asyncio.ensure_future(self._bring_all_home())

    async def close(self) -> None:
        """Let somebody else keep the clocks at once."""
        if self._bringing is not None:
            self._bringing.cancel()
            await asyncio.gather(self._bringing, return_exceptions=True)
        lease, self._lease = self._lease, None
        if lease is not None:
            with contextlib.suppress(OSError):
                await asyncio.to_thread(self._note)
                await asyncio.to_thread(lease.give_back)

    def _hold(self) -> bool:
        """Whether the lease is ours; renewed when that is time."""
        ticks, now = self._ticks(), self._now()
        if self._lease is None:
            lease = Lease.take(self._folder)
            if lease is None:
                return False
            self._lease, self._renewed = lease, ticks
            self._since = now if self._present is None else self._present
            last = read_state(self._folder).get("looked")
            self._gone = (float(last), now) if isinstance(last, int | float) else None
            self._kept.clear()
            self._heap.clear()
            self._changed, self._seen = None, None
            self._note()
        elif ticks - self._renewed > RENEW:
            if not self._lease.renew():
                self._lease = None
                return False
            self._renewed = ticks
            self._note()
        if self._seen is not None:
            wall, mono = self._seen
            if abs((now - wall) - (ticks - mono)) > JUMP:
                # The machine slept, or its clock was put right.
                self._since, self._gone = now, (wall, now)
                for schedule_id, kept in self._kept.items():
                    kept.next = now
                    heapq.heappush(self._heap, (now, schedule_id))
        self._seen = (now, ticks)
        return self._lease.is_sure()

    def _note(self) -> None:
        state = {
            "kind": self._kind,
            "host": host_name(),
            "process": os.getpid(),
            "since": self._since,
            "looked": self._now(),
        }
        write_json(self._folder / STATE, state)

    @property
    def _folder(self) -> Path:
        """Where the lease lies."""
        if self._only is None:
            return self.schedules.keeper_folder()
        return self.schedules.keeper_folder_of(self._only)

    def _look_for_changes(self) -> None:
        self._read = self._ticks()
        ids = set(self.schedules.ids())
        if self._only is not None:
            ids &= {self._only}
        if self._read - self._tidied > TIDY:
            self._tidied = self._read
            for schedule_id in ids & self._kept.keys():
                self.schedules.forget_claims(schedule_id)
        for gone in self._elsewhere.keys() - ids:
            del self._elsewhere[gone]
        for gone in self._kept.keys() - ids:
            del self._kept[gone]
            self._health.recovered(_keeping(gone))
        for schedule_id in ids:
            with self._health.guard(_keeping(schedule_id)):
                ledger = self.schedules.read(schedule_id)
                is_ours = (ledger.schedule.kept_by == "runtime") == (self._only is not None)
                if ledger.kept and self._only is None and self.schedules.is_own(schedule_id):
                    self._elsewhere.setdefault(schedule_id, 0.0)
                else:
                    self._elsewhere.pop(schedule_id, None)
                if not is_ours or not self.schedules.is_own(schedule_id):
                    # What others may have written is shown, and never executed.
                    self._kept.pop(schedule_id, None)
                    continue
                known = self._kept.get(schedule_id)
                if known is None or known.ledger is not ledger:
                    known = self._kept[schedule_id] = _Kept(ledger)
                    known.live = [
                        line.run for line in decided_to_run(ledger) if line.run is not None
                    ]
                self._plan_next(schedule_id, known, 0.0)

    def _plan_next(self, schedule_id: str, kept: _Kept, pause: float = BETWEEN) -> None:
        """When to look at it again: at its next due time, or after the pause while it has runs
        to make."""
        now = self._now()
        moment = self._next_by_clock(kept.ledger, now, pause)
        if kept.ledger.schedule.trigger is not None:
            look = now + (pause and max(pause, SHARE * kept.slow))
            moment = look if moment is None else min(moment, look)
        if moment is None:
            return
        if kept.next != moment or (moment, schedule_id) not in self._heap[:1]:
            kept.next = moment
            heapq.heappush(self._heap, (moment, schedule_id))

    def _next_by_clock(self, ledger: Ledger, now: float, pause: float) -> float | None:
        schedule = ledger.schedule
        if ledger.unsure() or ledger.queued() or ledger.happened:
            return now + pause
        if ledger.paused is not None:
            return None
        if now < ledger.cursor:
            return now
        decided = ledger.decided_ahead()
        following = (due for due in due_after(schedule.clock, ledger.cursor) if due not in decided)
        due = next(following, None)
        return None if due is None else put_off(schedule.clock, schedule.id, due)

    async def _tend(self, schedule_id: str) -> None:
        decisions = await asyncio.to_thread(self._decide, schedule_id)
        kept = self._kept[schedule_id]
        schedule = kept.ledger.schedule
        for each in decisions:
            if each.kind == "stop" and each.run is not None:
                with contextlib.suppress(ConvectError):
                    await self._starter.stop(schedule, each.run)
        for line in kept.ledger.unsure():
            await self._start(schedule, line, kept)
        if decisions:
            self._tell(schedule_id)

    def _decide(self, schedule_id: str) -> list[Decision]:
        """Decide on what is due, and write it down before anything is done about it."""
        kept = self._kept[schedule_id]
        ledger = self.schedules.read(schedule_id)
        if ledger is not kept.ledger:
            kept.ledger = ledger
        if ledger.schedule.trigger is not None:
            self._notice(schedule_id, kept)
        if ledger.paused is not None:
            return []
        schedule = ledger.schedule
        kept.live = [run for run in kept.live if not self._starter.is_over(schedule, run)]
        known = Situation(
            ledger.cursor,
            self._since,
            tuple(kept.live),
            ledger.queued(),
            ledger.decided_ahead(),
            tuple(sorted(ledger.happened)),
        )
        found = decide(schedule, known, self._now())
        events = [self._event(schedule_id, each) for each in found if each.kind != "stop"]
        if events:
            assert self._lease is not None
            if not self._lease.is_sure():
                return []
            self.schedules.write(schedule_id, *events)
            self.schedules.read(schedule_id)
        return found

    def _notice(self, schedule_id: str, kept: _Kept) -> None:
        """Write down what has made it due since the last look."""
        ledger, now = kept.ledger, self._now()
        clock = ledger.schedule.clock
        if (clock.start or now) > now or now > (clock.end or now):
            return
        events = [
            self.schedules.happened(schedule_id, each, now)
            for each in self._noticed(kept)
            if each.key not in ledger.keys
        ]
        assert self._lease is not None
        if events and self._lease.is_sure():
            self.schedules.write(schedule_id, *events)
            self.schedules.read(schedule_id)
            self._tell(schedule_id)

    def _noticed(self, kept: _Kept) -> Iterator[Noticed]:
        ledger, schedule = kept.ledger, kept.ledger.schedule
        assert schedule.trigger is not None
        if schedule.trigger.file is not None:
            begin = time.monotonic()
            root = Path(schedule.request.root)
            yield from kept.file_watch.look(
                root, schedule.trigger.file, ledger.files, self._ticks()
            )
            kept.slow = time.monotonic() - begin
        if schedule.trigger.run is not None:
            if kept.run_watch is None:
                last = max(
                    (due for key, due in ledger.keys.items() if key[:4] == "run "), default=0
                )
                kept.run_watch = RunWatch(max(schedule.created, last - LATE))
            own = {line.run for line in list(ledger.lines.values())} | ledger.asked.keys()
            found = kept.run_watch.look(
                schedule.trigger.run,
                lambda since: self._starter.ended_runs(schedule, since),
                self._now(),
            )
            yield from (each for each in found if each.happening.values["run"] not in own)

    def _event(self, schedule_id: str, decision: Decision) -> dict[str, Json]:
        event: dict[str, Json] = {
            "time": self._now(),
            "type": decision.kind,
            "due": decision.due,
        }
        if decision.kind == "run":
            event["run"] = self.schedules.claim(schedule_id, decision.due)
        if decision.reason is not None:
            event["reason"] = decision.reason
        if decision.kind == "missed" and self._gone is not None:
            event["gone"] = list(self._gone)
        return event

    async def _start(self, schedule: Schedule, line: Line, kept: _Kept) -> None:
        """Make the run of a line; one that cannot be made has a reason in its place."""
        assert line.run is not None
        outcome: dict[str, Json] = {"time": self._now(), "type": "submitted", "due": line.due}
        try:
            await self._starter.start(schedule, line.due, line.run, line.happening)
        except Conflict:
            pass  # An earlier look made it, and was killed before it could write so.
        except ConvectError as error:
            if error.code == "unwritable":
                raise
            outcome = {**outcome, "type": "refused", "reason": error.sentence}
        if outcome["type"] == "submitted":
            kept.live.append(line.run)
        await asyncio.to_thread(self.schedules.write, schedule.id, outcome)
        await asyncio.to_thread(self.schedules.read, schedule.id)

    async def _bring_all_home(self) -> None:
        for schedule_id, moment in list(self._elsewhere.items()):
            if self._ticks() < moment:
                continue
            self._elsewhere[schedule_id] = self._ticks() + ELSEWHERE
            with self._health.guard(_keeping(schedule_id)):
                ledger = await self._bring_home(schedule_id)
                if len(ledger.kept) <= 1:
                    self._elsewhere[schedule_id] = self._ticks() + self._until_due(ledger)

    def _until_due(self, ledger: Ledger) -> float:
        """Seconds until a look can find something."""
        clock, now = ledger.schedule.clock, self._now()
        if next(due_between(clock, ledger.cursor, now), None) is not None:
            return ELSEWHERE
        due = next(due_after(clock, now), math.inf)
        return min(due - now + ELSEWHERE, SELDOM)

    async def _bring_home(self, schedule_id: str) -> Ledger:
        """A run of ours, and a line, of each that a runtime has made by its own clock."""
        ledger = await asyncio.to_thread(self.schedules.read, schedule_id)
        for made in await self._starter.made_elsewhere(ledger):
            run_id = await asyncio.to_thread(self.schedules.claim, schedule_id, made.due)
            now = self._now()
            events: list[dict[str, Json]] = self._left_out(ledger, made.due)
            try:
                with contextlib.suppress(Conflict):
                    await self._starter.take_home(ledger.kept[made.clock].schedule, made, run_id)
                events.append({"time": now, "type": "run", "due": made.due, "run": run_id})
                events.append({"time": now, "type": "submitted", "due": made.due})
            except ConvectError as error:
                if error.code == "unwritable":
                    raise
                reason = {"due": made.due, "reason": error.sentence}
                events.append({"time": now, "type": "refused", **reason})
            if self._lease is None or not self._lease.is_sure():
                return ledger
            await asyncio.to_thread(self.schedules.write, schedule_id, *events)
            ledger = await asyncio.to_thread(self.schedules.read, schedule_id)
            self._tell(schedule_id)
        for gone in await self._starter.let_go(ledger):
            event = {"time": self._now(), "type": "let_go", "id": gone}
            await asyncio.to_thread(self.schedules.write, schedule_id, event)
        return await asyncio.to_thread(self.schedules.read, schedule_id)

    def _left_out(self, ledger: Ledger, due: float) -> list[dict[str, Json]]:
        """What was due before a run that a runtime made, and of which it made none."""
        before = just_before(due)
        dues = list(
            itertools.islice(
                due_before(ledger.schedule.clock, ledger.cursor, before), MOST_SKIPPED + 1
            )
        )[::-1]
        now = self._now()
        found: list[dict[str, Json]] = []
        if len(dues) > MOST_SKIPPED:
            found.append({"time": now, "type": "missed", "due": dues.pop(0)})
        skip: dict[str, Json] = {"time": now, "type": "skip", "reason": LEFT_OUT}
        return [*found, *({**skip, "due": each} for each in dues)]


def _keeping(schedule_id: str) -> str:
    """What does not work, as `about` says it."""
    return f"Keeping the schedule {schedule_id}"


def decided_to_run(ledger: Ledger) -> list[Line]:
    """The lines whose runs may go on, the oldest first."""
    every = list(ledger.lines.values())
    lines = (line for line in every if line.outcome == "ran" and line.sure)
    return sorted(lines, key=lambda line: line.due)[-MOST_LIVE:]


def read_state(folder: Path) -> dict[str, Json]:
    """What the keeper said of itself last."""
    with contextlib.suppress(ConvectError):
        return read_json(folder / STATE)
    return {}


def who_keeps(schedules: Schedules) -> dict[str, Json] | None:
    """Who keeps the clocks now; None when nobody does."""
    if schedules.changed() is None or owner_of(schedules.keeper_folder()) is None:
        return None
    state = read_state(schedules.keeper_folder())
    standby = owner_of(schedules.process_folder()) is not None
    return {**state, "standby": standby} if "kind" in state else None
