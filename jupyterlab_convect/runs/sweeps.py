"""Sweeps: one request, run at many points of a space of parameters.

Only the holder of a sweep's lease gives runs to points and lets them begin.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace

from ..errors import Conflict, ConvectError, Missing
from ..pipeline.plan import Json, to_json
from .best import NONE, best_of, parse_select
from .engine import Engine
from .index import Query
from .json_files import Changes
from .model import ENDED, GOOD, Request, Run, Selection, State, SweepSources, new_id
from .store import Store
from .sweep_space import MOST, Mode, Point, points_of
from .sweep_store import Sweep, SweepProgress, SweepStore
from .versions import changed_sources

__all__ = ["Mode", "Point", "Sweeps", "points_of"]

BATCH = 20
"""Runs that are made in one go before they are started."""
TENDING = "Giving runs to the points of sweeps"


class Sweeps:
    """`make` resolves a request to a run; it is called in a thread."""

    def __init__(self, store: Store, engine: Engine, make: Callable[[Request], Run]) -> None:
        self.store = store
        self.engine = engine
        self.make = make
        self.folders = SweepStore(store)
        self._ended: dict[str, tuple[Json, dict[str, Json]]] = {}
        """Summaries of sweeps that are over, with what they were made from."""
        self._tending: dict[str, asyncio.Lock] = {}
        self._settled: dict[str, Changes] = {}
        """What was asked so far of sweeps in which nothing is left to do until more is asked."""

    async def create(
        self,
        request: Request,
        space: Mapping[str, Json],
        *,
        mode: Mode = "grid",
        samples: int | None = None,
        seed: int = 0,
        concurrency: int | None = None,
        select: str | None = None,
        sources: SweepSources | None = None,
        make: Callable[[Request], Run] | None = None,
    ) -> str:
        """Start a sweep and return its id, which is that of the request if it has one.

        The runs of all points are made first, by `make` if it is given: where one cannot be
        made, there is no sweep. `sources` are those from which points are made later.
        """
        points = points_of(space, mode, samples, seed)
        if select is not None:
            parse_select(select)
        if concurrency is not None and concurrency < 1:
            raise ConvectError("`concurrency` must be at least 1.")
        sweep_id = request.sweep or new_id()
        request = replace(request, sweep=sweep_id)
        made = await self._make(make, [_at(request, point) for point in points])
        sweep = Sweep(
            id=sweep_id,
            name=request.name or made[0].name,
            created=time.time(),
            request=request,
            space=dict(space),
            mode=mode,
            concurrency=concurrency,
            select=select,
            sources=sources,
        )
        self.folders.write(sweep, points)
        await self._try_to_tend(sweep_id, dict(enumerate(made)))
        return sweep_id

    def view(self, sweep_id: str) -> dict[str, Json]:
        """`SweepView`: the summary, `request`, `points`, `runs` (the last run of each point) and
        `changed`, the sources that are not what they were when it was submitted."""
        sweep, progress = self.folders.read(sweep_id)
        runs = self._runs(sweep, progress)
        points = [
            {"parameters": point, "run": progress.runs.get(number)}
            for number, point in enumerate(progress.points)
        ]
        shown = [runs[run_id] for run_id in progress.runs.values() if run_id in runs]
        request = to_json(sweep.request)
        facts = _summary(sweep, progress, runs)
        changed = [] if sweep.sources is None else self._changed(sweep.request, sweep.sources)
        return {**facts, "request": request, "points": points, "runs": shown, "changed": changed}

    def _changed(self, request: Request, sources: SweepSources) -> list[str]:
        with contextlib.suppress(ConvectError):
            return changed_sources(self.store.snapshots, request, sources)
        return []

    def sources(self, sweep_id: str) -> SweepSources | None:
        """What its runs are made from, if that is known."""
        return self.folders.read(sweep_id)[0].sources

    def live_snapshots(self) -> Iterator[str]:
        """The snapshots of sweeps that still have runs to make."""
        for sweep_id in self.folders.ids():
            with contextlib.suppress(ConvectError):
                sweep, progress = self.folders.read(sweep_id)
                if sweep.sources and sweep.sources.snapshot and progress.todo():
                    yield sweep.sources.snapshot

    def all(self) -> list[dict[str, Json]]:
        """`SweepSummary` of each, the newest first."""
        found = []
        for sweep_id in self.folders.ids():
            with contextlib.suppress(ConvectError):
                found.append(self._summary(sweep_id))
        return found

    def mark(self, sweep_id: str, select: str | None) -> None:
        """Choose anew which run is the best: `max:accuracy`, or None for no mark."""
        if select is not None:
            parse_select(select)
        self.folders.read(sweep_id, own=True)
        self.folders.ask(sweep_id, {"type": "select", "select": select or NONE})

    def rename(self, sweep_id: str, name: str) -> None:
        """Call the sweep something else. Its runs keep their names."""
        if not name.strip():
            raise ConvectError("The name of a sweep must not be empty.")
        self.folders.read(sweep_id, own=True)
        self.folders.ask(sweep_id, {"type": "name", "name": name.strip()})

    async def stop(self, sweep_id: str) -> None:
        """Stop all runs that have not ended; points without a run get none."""
        self.folders.read(sweep_id, own=True)
        self.folders.ask(sweep_id, {"type": "stop"})
        await self._stop_runs(sweep_id)

    async def rerun(self, sweep_id: str) -> list[str]:
        """Run the points again whose last run ended without success; the new runs' ids."""
        sweep, progress = self.folders.read(sweep_id, own=True)
        bad = [
            run_id
            for run_id, run in self._runs(sweep, progress).items()
            if run["state"] in ENDED - GOOD
        ]
        if not bad and len(progress.runs) == len(progress.points):
            return []
        self.folders.ask(sweep_id, {"type": "rerun", "runs": bad})
        return await self._try_to_tend(sweep_id)

    async def add_points(
        self,
        sweep_id: str,
        space: Mapping[str, Json],
        *,
        mode: Mode = "grid",
        samples: int | None = None,
        seed: int | None = None,
    ) -> list[str]:
        """Add points, also to a finished sweep; the new runs' ids.

        Points that are there already are not added again.
        """
        sweep, progress = self.folders.read(sweep_id, own=True)
        before = len(progress.points)
        progress.add(points_of(space, mode, samples, before if seed is None else seed))
        points = progress.points[before:]
        if len(progress.points) > MOST:
            raise ConvectError(f"A sweep has at most {MOST} points.")
        if not points:
            return []
        await self._make(None, [_at(sweep.request, point) for point in points])
        self.folders.ask(sweep_id, {"type": "points", "points": points})
        return await self._try_to_tend(sweep_id)

    async def resume(self) -> None:
        """Continue every sweep that nobody tends. Call after `Engine.resume`."""
        trouble: Exception | None = None
        for sweep_id in self._unsettled():
            try:
                asked = self.folders.changes(sweep_id)
                asked.read()
                if await self._is_settled(sweep_id):
                    self._settled[sweep_id] = asked
            except Exception as error:
                trouble = error
        with self.engine.health.guard(TENDING):
            if trouble is not None:
                raise trouble

    async def wait(self, sweep_id: str, timeout: float | None = None) -> dict[str, Json]:
        """The view when all runs have ended. Meanwhile, what others ask of the sweep is done."""
        deadline = time.monotonic() + (math.inf if timeout is None else timeout)
        while True:
            await self._try_to_tend(sweep_id)
            progress = self.folders.read(sweep_id)[1]
            try:
                for run_id in progress.runs.values():
                    left = min(deadline - time.monotonic(), self.engine.beat)
                    with contextlib.suppress(Missing):
                        await self.engine.wait(run_id, left)
            except TimeoutError:
                if time.monotonic() >= deadline:
                    raise
                continue
            view = self.view(sweep_id)
            if view["state"] in ENDED:
                return view
            if time.monotonic() >= deadline:
                raise TimeoutError(f"The sweep {sweep_id} is still {view['state']}.")
            await asyncio.sleep(self.engine.beat / 4)

    async def tend(self, sweep_id: str, made: Mapping[int, Run] | None = None) -> list[str]:
        """Give a run to every point that needs one; the new runs' ids.

        Nothing is done while another process holds the sweep's lease: it does it. `made` are
        runs that were made for some points already.
        """
        async with self._tending.setdefault(sweep_id, asyncio.Lock()):
            progress = self.folders.read(sweep_id)[1]
            if not (progress.todo() or progress.unsure()):
                return []
            with self.engine.limits.held(f"sweeps/{sweep_id}") as mine:
                if not mine:
                    return []
                new = await self._fill(sweep_id, made or {})
        if self.folders.read(sweep_id)[1].stopped:
            await self._stop_runs(sweep_id)
        return new

    async def _try_to_tend(self, sweep_id: str, made: Mapping[int, Run] | None = None) -> list[str]:
        """`tend`, which a disk without room puts off until whoever waits or resumes tries again."""
        try:
            new = await self.tend(sweep_id, made)
        except (OSError, ConvectError) as error:
            if isinstance(error, ConvectError) and error.code != "unwritable":
                raise
            self.engine.health.failed(TENDING, error)
            return []
        self.engine.health.recovered(TENDING)
        return new

    async def _fill(self, sweep_id: str, made: Mapping[int, Run]) -> list[str]:
        """A host that is killed meanwhile is followed by another."""
        new: list[str] = []
        self._make_sure(sweep_id)
        while True:
            sweep, progress = self.folders.read(sweep_id)
            batch = progress.todo()[:BATCH]
            runs = {number: made[number] for number in batch if number in made}
            missing = [number for number in batch if number not in made]
            asked = [self._request(sweep, progress, number) for number in missing]
            runs |= dict(zip(missing, await self._make(None, asked), strict=True))
            # Somebody may have stopped the sweep while runs were made.
            if not batch or self.folders.read(sweep_id)[1].stopped:
                return new
            self.folders.note(
                sweep_id,
                *({"type": "run", "point": number, "run": runs[number].id} for number in batch),
            )
            for number in batch:
                await self.engine.submit(runs[number])
                new.append(runs[number].id)
            ids = [runs[number].id for number in batch]
            self.folders.note(sweep_id, {"type": "submitted", "runs": ids})

    def _make_sure(self, sweep_id: str) -> None:
        """Note which of the runs that a killed host had decided on it came to make."""
        unsure = self.folders.read(sweep_id)[1].unsure()
        there = [run_id for run_id in unsure if self.store.run_folder(run_id).is_dir()]
        if there:
            self.folders.note(sweep_id, {"type": "submitted", "runs": there})
        if lost := sorted(set(unsure) - set(there)):
            self.folders.note(sweep_id, {"type": "unmade", "runs": lost})

    def _request(self, sweep: Sweep, progress: SweepProgress, number: int) -> Request:
        request, last = _at(sweep.request, progress.points[number]), progress.runs.get(number)
        if last is None:
            return request
        return replace(request, of=last, select=Selection("failed"), use_cache=True)

    async def _make(self, make: Callable[[Request], Run] | None, asked: list[Request]) -> list[Run]:
        chosen = make or self.make
        return await asyncio.to_thread(lambda: [chosen(request) for request in asked])

    async def _stop_runs(self, sweep_id: str) -> None:
        sweep, progress = self.folders.read(sweep_id)
        for run_id, run in self._runs(sweep, progress).items():
            if run["state"] not in ENDED:
                await self.engine.stop(run_id)

    def _summary(self, sweep_id: str) -> dict[str, Json]:
        sweep, progress = self.folders.read(sweep_id)
        counts = self.store.find(Query(sweep=sweep_id, limit=0)).counts
        basis = [counts, asdict(progress)]
        if sweep_id in self._ended and self._ended[sweep_id][0] == basis:
            return self._ended[sweep_id][1]
        facts = _summary(sweep, progress, self._runs(sweep, progress))
        if facts["state"] in ENDED:
            self._ended[sweep_id] = (basis, facts)
        return facts

    def _runs(self, sweep: Sweep, progress: SweepProgress) -> dict[str, dict[str, Json]]:
        """The summaries of the runs that stand for the points, by id."""
        page = self.store.find(Query(sweep=sweep.id, sort="created", limit=10 * MOST))
        current = set(progress.runs.values())
        return {run["id"]: run for run in page.runs if run["id"] in current}

    def _unsettled(self) -> list[str]:
        """Those that may need something: of the others one file each is looked for."""
        ids = self.folders.ids()
        self._settled = {each: self._settled[each] for each in ids if each in self._settled}
        return [each for each in ids if each not in self._settled or self._settled[each].has_more()]

    async def _is_settled(self, sweep_id: str) -> bool:
        """Whether it needs nothing from this user; otherwise it is given what it needs."""
        try:
            _, progress = self.folders.read(sweep_id, own=True)
        except Conflict as error:
            if error.code != "not-own":
                raise
            return True
        if progress.todo() or progress.unsure():
            await self.tend(sweep_id)
            return False
        return True


def _summary(
    sweep: Sweep, progress: SweepProgress, runs: Mapping[str, Mapping[str, Json]]
) -> dict[str, Json]:
    counts: dict[str, int] = {}
    for run in runs.values():
        counts[run["state"]] = counts.get(run["state"], 0) + 1
    ends = [run["ended"] for run in runs.values() if run["ended"] is not None]
    state = _state(progress, counts)
    select = progress.select or sweep.select
    select = None if select == NONE else select
    return {
        "id": sweep.id,
        "name": progress.name or sweep.name,
        "path": sweep.request.path,
        "runtime": sweep.request.runtime,
        "state": state,
        "created": sweep.created,
        "ended": max(ends, default=sweep.created) if state in ENDED else None,
        "mode": sweep.mode,
        "space": sweep.space,
        "concurrency": sweep.concurrency,
        "select": select,
        "total": len(progress.points),
        "done": sum(n for name, n in counts.items() if name in ENDED),
        "counts": counts,
        "best": best_of(select, runs),
    }


def _state(progress: SweepProgress, counts: Mapping[str, int]) -> State:
    if progress.todo() or progress.unsure() or any(name not in ENDED for name in counts):
        return "running"
    if counts.get("failed") or counts.get("lost"):
        return "failed"
    if progress.stopped or counts.get("cancelled"):
        return "cancelled"
    return "succeeded"


def _at(request: Request, point: Point) -> Request:
    return replace(request, parameters={**request.parameters, **point})
