"""Ten thousand schedules on one host: taking them over, waiting, and the hour when all are due."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from jupyterlab_convect.background import Health
from jupyterlab_convect.runs.index import Index
from jupyterlab_convect.runs.model import Request, new_id
from jupyterlab_convect.runs.store import Store
from jupyterlab_convect.schedules.keeper import Keeper
from jupyterlab_convect.schedules.schedule import Schedule
from jupyterlab_convect.schedules.schedule_store import Schedules
from jupyterlab_convect.schedules.times import Clock
from jupyterlab_convect.schedules.triggers import EndedRun, Happening

from .measure import Result

COUNT = 10_000
HOUR = 3600.0
BEGIN = 1_780_000_000.0 // HOUR * HOUR
LOOKS = 200


class _Notes:
    """Counts what is started: the runs themselves are measured elsewhere."""

    def __init__(self) -> None:
        self.started: set[str] = set()

    async def start(
        self, schedule: Schedule, due: float, run_id: str, happening: Happening | None
    ) -> None:
        self.started.add(run_id)

    async def stop(self, schedule: Schedule, run_id: str) -> None: ...

    def is_over(self, schedule: Schedule, run_id: str) -> bool:
        return True

    def ended_runs(self, schedule: Schedule, since: float) -> list[EndedRun]:
        return []


def rows() -> Iterator[Result]:
    with tempfile.TemporaryDirectory(prefix="convect-bench-") as scratch:
        folder = Path(scratch, "runs")
        folder.mkdir()
        store = Store(folder, Index(Path(scratch, "index.sqlite")))
        for _ in range(COUNT):
            clock = Clock(cron="0 * * * *", zone="Europe/Berlin")
            Schedules(store).add(Schedule(new_id(), "s", BEGIN, Request("a.ipynb"), clock))
        yield from asyncio.run(_measure(Schedules(store)))
        store.close()


async def _measure(schedules: Schedules) -> list[Result]:
    now, notes = [BEGIN + 1.0], _Notes()
    keeper = Keeper(schedules, notes, "process", Health(), now=lambda: now[0], ticks=lambda: now[0])
    begin = time.perf_counter()
    await keeper.look()
    taken = time.perf_counter() - begin
    begin = time.process_time()
    for _ in range(LOOKS):
        now[0] += 0.1
        await keeper.look()
    idle = (time.process_time() - begin) / LOOKS
    now[0] = BEGIN + HOUR
    begin = time.perf_counter()
    await keeper.look()
    due = time.perf_counter() - begin
    await keeper.close()
    if len(notes.started) != COUNT:
        raise RuntimeError(f"{len(notes.started)} runs were started, not {COUNT}")
    return [
        Result("10,000 schedules taken over", taken, "s"),
        Result("10,000 schedules, CPU of a look when nothing is due", idle * 1000, "ms"),
        Result("10,000 schedules due at once, each decided and written", due * 1000 / COUNT, "ms"),
    ]
