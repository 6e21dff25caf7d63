"""A keeper with real folders and leases, clocks that tests set, and no engine."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from jupyterlab_convect.background import Health
from jupyterlab_convect.errors import Conflict, ConvectError
from jupyterlab_convect.runs.index import Index
from jupyterlab_convect.runs.model import Request, new_id
from jupyterlab_convect.runs.store import Store
from jupyterlab_convect.schedules.keeper import Keeper
from jupyterlab_convect.schedules.schedule import Schedule
from jupyterlab_convect.schedules.schedule_store import Schedules
from jupyterlab_convect.schedules.times import Clock
from jupyterlab_convect.schedules.triggers import EndedRun

BEGIN = 1_780_000_000.0 // 3600 * 3600
HOUR = 3600.0


class Time:
    """Two clocks: what the wall shows, and how long the machine has been awake."""

    def __init__(self) -> None:
        self.wall = BEGIN
        self.awake = 0.0

    def pass_by(self, seconds: float) -> None:
        self.wall += seconds
        self.awake += seconds


class Started:
    """Notes what is started, in place of an engine."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, float]] = []
        self.over: set[str] = set()
        self.ids: set[str] = set()
        self.error: ConvectError | None = None

    async def start(
        self, schedule: Schedule, due: float, run_id: str, happening: Any = None
    ) -> None:
        if self.error is not None:
            raise self.error
        if run_id in self.ids:
            raise Conflict("It is there.")
        self.ids.add(run_id)
        self.runs.append((schedule.id, due))

    async def stop(self, schedule: Schedule, run_id: str) -> None:
        self.over.add(run_id)

    def is_over(self, schedule: Schedule, run_id: str) -> bool:
        return run_id in self.over

    def ended_runs(self, schedule: Schedule, since: float) -> list[EndedRun]:
        return []


class Bench:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.store = Store(folder, Index(folder.parent / "index.sqlite"))
        self.schedules = Schedules(self.store)
        self.time = Time()
        self.started = Started()

    def add(self, cron: str = "0 * * * *", **how: Any) -> str:
        clock = Clock(cron=cron, jitter=how.pop("jitter", 0.0))
        schedule = Schedule(new_id(), "s", self.time.wall, Request("a.ipynb"), clock, **how)
        self.schedules.add(schedule)
        return schedule.id

    def keeper(self, schedules: Schedules | None = None, **how: Any) -> Keeper:
        return Keeper(
            schedules or self.schedules,
            self.started,
            "process",
            Health(logging.getLogger("test")),
            now=lambda: self.time.wall,
            ticks=lambda: self.time.awake,
            **how,
        )

    def outcomes(self, schedule_id: str) -> list[tuple[float, str]]:
        ledger = Schedules(self.store).read(schedule_id)
        lines = [line for line, _ in ledger.latest(self.time.wall)]
        return [((line.due - BEGIN) / HOUR, line.outcome) for line in reversed(lines)]
