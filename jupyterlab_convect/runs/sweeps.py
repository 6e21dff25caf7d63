"""Sweeps: one request, run at many points of a space of parameters.

A sweep is a folder `sweeps/<id>` in the runs folder: `sweep.json` says what was
asked, `events.ndjson` which points there are and which runs they got. How many of
its runs go on at a time is up to the engine.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace

from ..errors import Conflict, ConvectError, Missing
from ..json_text import dumps, loads
from ..pipeline.plan import Json, from_json, to_json
from ..run_files import make_folder
from .best import NONE, best_of, parse_select
from .engine import Engine
from .files import Journal, plain, read_owned_json, write_json
from .index import Query
from .model import ENDED, GOOD, Request, Run, Selection, State, new_id
from .points import MOST, Mode, Point, points_of
from .store import ID, Store

__all__ = ["Mode", "Point", "Sweeps", "points_of"]

BATCH = 20
"""Runs that are made in one go before they are started."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """The content of `sweep.json`."""

    id: str
    name: str
    created: float
    request: Request
    space: Json
    mode: Mode = "grid"
    concurrency: int | None = None
    select: str | None = None


@dataclass(slots=True)
class Progress:
    """The fold of a sweep's events."""

    points: list[Point] = field(default_factory=list)
    runs: dict[int, str] = field(default_factory=dict)
    """The last run of each point."""
    made: int = 0
    """Points that have had a run for sure."""
    stopped: bool = False
    select: str | None = None
    """What was chosen since the sweep was made, if anything."""


class Sweeps:
    """`make` resolves a request to a run; it is called in a thread."""

    def __init__(self, store: Store, engine: Engine, make: Callable[[Request], Run]) -> None:
        self.store = store
        self.engine = engine
        self.make = make
        self._folder = store.folder / "sweeps"
        self._ended: dict[str, tuple[Json, dict[str, Json]]] = {}
        """Summaries of sweeps that are over, with what they were made from."""
        self._filling: set[str] = set()

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
    ) -> str:
        """Start a sweep and return its id."""
        points = points_of(space, mode, samples, seed)
        if select is not None:
            parse_select(select)
        if concurrency is not None and concurrency < 1:
            raise ConvectError("At least one run of a sweep has to go on at a time.")
        sweep_id = new_id()
        request = replace(request, sweep=sweep_id)
        first = await asyncio.to_thread(self.make, _at(request, points[0]))
        sweep = Sweep(
            id=sweep_id,
            name=request.name or first.name,
            created=time.time(),
            request=request,
            space=dict(space),
            mode=mode,
            concurrency=concurrency,
            select=select,
        )
        self._write(sweep, points)
        await self._fill(sweep, first)
        return sweep_id

    def view(self, sweep_id: str) -> dict[str, Json]:
        """`SweepView`: the summary, `request`, `points` and `runs` (the last run of each point)."""
        sweep, progress = self._read(sweep_id)
        runs = self._runs(sweep, progress)
        points = [
            {"parameters": point, "run": progress.runs.get(number)}
            for number, point in enumerate(progress.points)
        ]
        shown = [runs[run_id] for run_id in progress.runs.values() if run_id in runs]
        request = to_json(sweep.request)
        facts = _summary(sweep, progress, runs)
        return {**facts, "request": request, "points": points, "runs": shown}

    def all(self) -> list[dict[str, Json]]:
        """`SweepSummary` of each, the newest first."""
        found = []
        for sweep_id in self._ids():
            with contextlib.suppress(ConvectError):
                found.append(self._summary(sweep_id))
        return found

    def mark(self, sweep_id: str, select: str | None) -> None:
        """Choose anew which run is the best: `max:accuracy`, or None for no mark."""
        if select is not None:
            parse_select(select)
        self._read(sweep_id, own=True)
        self._note(sweep_id, {"type": "select", "select": select or NONE})

    async def stop(self, sweep_id: str) -> None:
        """Stop all runs that have not ended; points without a run get none."""
        sweep, progress = self._read(sweep_id, own=True)
        self._note(sweep_id, {"type": "stop"})
        for run_id, run in self._runs(sweep, progress).items():
            if run["state"] not in ENDED:
                await self.engine.stop(run_id)

    async def rerun(self, sweep_id: str) -> list[str]:
        """Run the points again whose last run ended without success; the new runs' ids."""
        sweep, progress = self._read(sweep_id, own=True)
        runs = self._runs(sweep, progress)
        again: list[str] = []
        for number, point in enumerate(progress.points):
            last = progress.runs.get(number)
            if last is None:
                again.append(await self._start(sweep, number, _at(sweep.request, point)))
            elif last in runs and runs[last]["state"] in ENDED - GOOD:
                asked = replace(
                    _at(sweep.request, point), of=last, select=Selection("failed"), use_cache=True
                )
                again.append(await self._start(sweep, number, asked))
        self._note(sweep_id, {"type": "made", "count": len(progress.points)})
        return again

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
        sweep, progress = self._read(sweep_id, own=True)
        known = {json.dumps(point, sort_keys=True) for point in progress.points}
        chance = len(progress.points) if seed is None else seed
        points = [
            point
            for point in points_of(space, mode, samples, chance)
            if json.dumps(point, sort_keys=True) not in known
        ]
        if len(points) + len(progress.points) > MOST:
            raise ConvectError(f"A sweep has at most {MOST} points.")
        if not points:
            return []
        self._note(sweep_id, {"type": "points", "points": points})
        return await self._fill(sweep)

    async def resume(self) -> None:
        """Make the runs that a killed host did not come to. Call after `Engine.resume`."""
        for sweep_id in self._ids():
            try:
                sweep, progress = self._read(sweep_id, own=True)
                unmade = not progress.stopped and progress.made < len(progress.points)
                if unmade and sweep_id not in self._filling:
                    await self._fill(sweep)
            except ConvectError as error:
                if error.code != "not-own":
                    self.engine.log.warning("The sweep %s cannot go on: %s", sweep_id, error)

    async def wait(self, sweep_id: str, timeout: float | None = None) -> dict[str, Json]:
        """The view when all runs have ended."""
        _, progress = self._read(sweep_id)
        deadline = None if timeout is None else time.monotonic() + timeout
        for run_id in progress.runs.values():
            with contextlib.suppress(Missing):
                left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
                await self.engine.wait(run_id, left)
        return self.view(sweep_id)

    async def _fill(self, sweep: Sweep, first: Run | None = None) -> list[str]:
        """Give every point that has none its run. A host that is killed meanwhile is followed."""
        self._filling.add(sweep.id)
        try:
            return await self._fill_in(sweep, first)
        finally:
            self._filling.discard(sweep.id)

    async def _fill_in(self, sweep: Sweep, first: Run | None) -> list[str]:
        progress = self._read(sweep.id)[1]
        known = self._runs(sweep, progress)
        new: list[str] = []
        for begin in range(progress.made, len(progress.points), BATCH):
            end = min(begin + BATCH, len(progress.points))
            left = [n for n in range(begin, end) if progress.runs.get(n) not in known]
            asked = [_at(sweep.request, progress.points[n]) for n in left if n > 0 or first is None]
            made = await asyncio.to_thread(self._make_all, asked)
            if first is not None and begin == 0:
                made.insert(0, first)
            self._note(
                sweep.id,
                *(
                    {"type": "run", "point": number, "run": run.id}
                    for number, run in zip(left, made, strict=True)
                ),
            )
            for run in made:
                await self.engine.submit(run)
                new.append(run.id)
            self._note(sweep.id, {"type": "made", "count": end})
            if self._read(sweep.id)[1].stopped:
                break
        return new

    def _make_all(self, asked: list[Request]) -> list[Run]:
        return [self.make(request) for request in asked]

    async def _start(self, sweep: Sweep, number: int, asked: Request) -> str:
        run = await asyncio.to_thread(self.make, asked)
        self._note(sweep.id, {"type": "run", "point": number, "run": run.id})
        await self.engine.submit(run)
        return run.id

    def _summary(self, sweep_id: str) -> dict[str, Json]:
        sweep, progress = self._read(sweep_id)
        counts = self.store.find(Query(sweep=sweep_id, limit=0)).counts
        basis = [counts, asdict(progress)]
        if sweep_id in self._ended and self._ended[sweep_id][0] == basis:
            return self._ended[sweep_id][1]
        facts = _summary(sweep, progress, self._runs(sweep, progress))
        if facts["state"] in ENDED:
            self._ended[sweep_id] = (basis, facts)
        return facts

    def _runs(self, sweep: Sweep, progress: Progress) -> dict[str, dict[str, Json]]:
        """The summaries of the runs that stand for the points, by id."""
        page = self.store.find(Query(sweep=sweep.id, sort="created", limit=10 * MOST))
        current = set(progress.runs.values())
        return {run["id"]: run for run in page.runs if run["id"] in current}

    def _ids(self) -> list[str]:
        if not self._folder.is_dir():
            return []
        names = (path.name for path in self._folder.iterdir())
        return sorted((name for name in names if ID.fullmatch(name)), reverse=True)

    def _read(self, sweep_id: str, *, own: bool = False) -> tuple[Sweep, Progress]:
        """What was asked and what came of it; with `own`, Conflict when it is somebody else's."""
        folder = self._folder / sweep_id
        if not ID.fullmatch(sweep_id) or not folder.is_dir():
            raise Missing(f"There is no sweep {sweep_id!r}.")
        try:
            value, owner = read_owned_json(folder / "sweep.json")
            sweep = from_json(Sweep, value)
        except (TypeError, ValueError, AttributeError) as error:
            raise ConvectError(f"The sweep {sweep_id} is damaged: {error}.") from None
        journal = Journal(folder / "events.ndjson")
        lines = journal.read() or []
        if own and not self.store.is_own_folder(folder, {owner, *journal.owners}):
            raise Conflict(
                f"The sweep {sweep_id} belongs to another user, and only they can change it.",
                code="not-own",
            )
        return sweep, _fold(lines)

    def _write(self, sweep: Sweep, points: list[Point]) -> None:
        beside = self._folder / f".new-{sweep.id}"
        try:
            make_folder(self._folder, stat.S_IMODE(self.store.folder.stat().st_mode))
            make_folder(beside, self.store.folder_mode)
            write_json(beside / "sweep.json", to_json(sweep))
            Journal(beside / "events.ndjson").append(_line({"type": "points", "points": points}))
            beside.rename(self._folder / sweep.id)
        except OSError as error:
            raise ConvectError(
                f"The sweep cannot be written to {self._folder}: {plain(error)}.",
                code="unwritable",
            ) from None

    def _note(self, sweep_id: str, *events: dict[str, Json]) -> None:
        try:
            journal = Journal(self._folder / sweep_id / "events.ndjson")
            journal.append(b"".join(map(_line, events)))
        except OSError as error:
            raise ConvectError(
                f"The sweep {sweep_id} cannot be changed: {plain(error)}.", code="unwritable"
            ) from None


def _summary(
    sweep: Sweep, progress: Progress, runs: Mapping[str, Mapping[str, Json]]
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
        "name": sweep.name,
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


def _state(progress: Progress, counts: Mapping[str, int]) -> State:
    unmade = progress.made < len(progress.points) and not progress.stopped
    if unmade or any(name not in ENDED for name in counts):
        return "running"
    if counts.get("failed") or counts.get("lost"):
        return "failed"
    if progress.stopped or counts.get("cancelled"):
        return "cancelled"
    return "succeeded"


def _at(request: Request, point: Point) -> Request:
    return replace(request, parameters={**request.parameters, **point})


def _line(event: dict[str, Json]) -> bytes:
    text = dumps({"time": time.time(), **event})
    return text.encode("utf-8", "backslashreplace") + b"\n"


def _fold(lines: list[bytes]) -> Progress:
    progress = Progress()
    for line in lines:
        try:
            event = loads(line)
            kind = event["type"]
            if kind == "points":
                progress.points += event["points"]
                progress.stopped = False
            elif kind == "run":
                progress.runs[event["point"]] = event["run"]
            elif kind == "made":
                progress.made = max(progress.made, event["count"])
            elif kind == "stop":
                progress.stopped = True
            elif kind == "select":
                progress.select = event["select"]
        except (ValueError, KeyError, TypeError):
            continue
    return progress
