"""Sweeps: one request, run at many points of a space of parameters.

A sweep is a folder `sweeps/<id>` in the runs folder: `sweep.json` says what was
asked, `changes/` what anybody asked since (more points, runs again, a stop), and
`events.ndjson` which runs the points got. Only the holder of the sweep's lease gives
runs to points and lets them begin.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from ..errors import Conflict, ConvectError, Missing
from ..json_text import dumps, loads
from ..pipeline.plan import Json, from_json, to_json
from ..run_files import make_folder
from ..runner.layers import Key
from .best import NONE, best_of, parse_select
from .engine import Engine
from .files import Changes, Journal, plain, read_owned_json, write_json
from .index import Query
from .model import ENDED, GOOD, Request, Run, Selection, Sources, State, new_id
from .points import MOST, Mode, Point, points_of
from .store import ID, Store
from .versions import changed_sources

__all__ = ["Mode", "Point", "Sweeps", "points_of"]

BATCH = 20
"""Runs that are made in one go before they are started."""
KEPT_OPEN = 64
"""Sweeps whose events are kept in memory."""
TENDING = "Giving runs to the points of sweeps"


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
    sources: Sources | None = None
    """None for one of an earlier version, whose points each took the files of their day."""


@dataclass(slots=True)
class Progress:
    """The fold of a sweep's events."""

    points: list[Point] = field(default_factory=list)
    runs: dict[int, str] = field(default_factory=dict)
    """The last run of each point."""
    submitted: set[str] = field(default_factory=set)
    """Runs that are there for sure; of the others it was only decided to make them."""
    again: set[str] = field(default_factory=set)
    """Runs whose points are to be run again."""
    stopped: bool = False
    select: str | None = None
    """What was chosen since the sweep was made, if anything."""

    def todo(self) -> list[int]:
        """The points that need a run."""
        if self.stopped:
            return []
        return [
            number
            for number in range(len(self.points))
            if (last := self.runs.get(number)) is None or last in self.again
        ]

    def unsure(self) -> list[str]:
        """Runs that were decided on, and of which nobody has written that they are there."""
        runs = self.runs.values()
        return [] if self.stopped else [run for run in runs if run not in self.submitted]

    def add(self, points: list[Point]) -> None:
        """Add those that are not there yet."""
        known = set(map(_text, self.points))
        self.points += [point for point in points if _text(point) not in known]


@dataclass(slots=True)
class _Opened:
    """What was read of the folder of a sweep so far."""

    sweep: Sweep
    key: Key
    """That of `sweep.json`."""
    owner: int
    journal: Journal
    changes: Changes
    happened: list[dict[str, Json]] = field(default_factory=list)
    asked: list[dict[str, Json]] = field(default_factory=list)

    def catch_up(self) -> bool:
        """Read what is new; False when the folder is not the one it was."""
        lines = self.journal.read()
        if lines is None:
            return False
        self.happened += _events(lines)
        self.asked += _events(self.changes.read())
        return True


class Sweeps:
    """`make` resolves a request to a run; it is called in a thread."""

    def __init__(self, store: Store, engine: Engine, make: Callable[[Request], Run]) -> None:
        self.store = store
        self.engine = engine
        self.make = make
        self._folder = store.folder / "sweeps"
        self._ended: dict[str, tuple[Json, dict[str, Json]]] = {}
        """Summaries of sweeps that are over, with what they were made from."""
        self._tending: dict[str, asyncio.Lock] = {}
        self._opened: dict[str, _Opened] = {}
        self._lock = threading.Lock()
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
        sources: Sources | None = None,
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
            raise ConvectError("At least one run of a sweep has to go on at a time.")
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
        self._write(sweep, points)
        await self._try_to_tend(sweep_id, dict(enumerate(made)))
        return sweep_id

    def view(self, sweep_id: str) -> dict[str, Json]:
        """`SweepView`: the summary, `request`, `points`, `runs` (the last run of each point) and
        `changed`, the sources that are not what they were when it was submitted."""
        sweep, progress = self._read(sweep_id)
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

    def _changed(self, request: Request, sources: Sources) -> list[str]:
        with contextlib.suppress(ConvectError):
            return changed_sources(self.store.snapshots, request, sources)
        return []

    def sources(self, sweep_id: str) -> Sources | None:
        """What its runs are made from, if that is known."""
        return self._read(sweep_id)[0].sources

    def live_snapshots(self) -> Iterator[str]:
        """The snapshots of sweeps that still have runs to make."""
        for sweep_id in self._ids():
            with contextlib.suppress(ConvectError):
                sweep, progress = self._read(sweep_id)
                if sweep.sources and sweep.sources.snapshot and progress.todo():
                    yield sweep.sources.snapshot

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
        self._ask(sweep_id, {"type": "select", "select": select or NONE})

    async def stop(self, sweep_id: str) -> None:
        """Stop all runs that have not ended; points without a run get none."""
        self._read(sweep_id, own=True)
        self._ask(sweep_id, {"type": "stop"})
        await self._stop_runs(sweep_id)

    async def rerun(self, sweep_id: str) -> list[str]:
        """Run the points again whose last run ended without success; the new runs' ids."""
        sweep, progress = self._read(sweep_id, own=True)
        bad = [
            run_id
            for run_id, run in self._runs(sweep, progress).items()
            if run["state"] in ENDED - GOOD
        ]
        if not bad and len(progress.runs) == len(progress.points):
            return []
        self._ask(sweep_id, {"type": "rerun", "runs": bad})
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
        sweep, progress = self._read(sweep_id, own=True)
        before = len(progress.points)
        progress.add(points_of(space, mode, samples, before if seed is None else seed))
        points = progress.points[before:]
        if len(progress.points) > MOST:
            raise ConvectError(f"A sweep has at most {MOST} points.")
        if not points:
            return []
        await self._make(None, [_at(sweep.request, point) for point in points])
        self._ask(sweep_id, {"type": "points", "points": points})
        return await self._try_to_tend(sweep_id)

    async def resume(self) -> None:
        """Go on with every sweep that nobody tends. Call after `Engine.resume`."""
        trouble: Exception | None = None
        for sweep_id in self._unsettled():
            try:
                asked = Changes(self._folder / sweep_id / "changes")
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
            progress = self._read(sweep_id)[1]
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
            progress = self._read(sweep_id)[1]
            if not (progress.todo() or progress.unsure()):
                return []
            with self.engine.gates.held(sweep_id) as mine:
                if not mine:
                    return []
                new = await self._fill(sweep_id, made or {})
        if self._read(sweep_id)[1].stopped:
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
            sweep, progress = self._read(sweep_id)
            batch = progress.todo()[:BATCH]
            runs = {number: made[number] for number in batch if number in made}
            missing = [number for number in batch if number not in made]
            asked = [self._request(sweep, progress, number) for number in missing]
            runs |= dict(zip(missing, await self._make(None, asked), strict=True))
            # Somebody may have stopped the sweep while runs were made.
            if not batch or self._read(sweep_id)[1].stopped:
                return new
            self._note(
                sweep_id,
                *({"type": "run", "point": number, "run": runs[number].id} for number in batch),
            )
            for number in batch:
                await self.engine.submit(runs[number])
                new.append(runs[number].id)
            ids = [runs[number].id for number in batch]
            self._note(sweep_id, {"type": "submitted", "runs": ids})

    def _make_sure(self, sweep_id: str) -> None:
        """Note which of the runs that a killed host had decided on it came to make."""
        unsure = self._read(sweep_id)[1].unsure()
        there = [run_id for run_id in unsure if self.store.run_folder(run_id).is_dir()]
        if there:
            self._note(sweep_id, {"type": "submitted", "runs": there})
        if lost := sorted(set(unsure) - set(there)):
            self._note(sweep_id, {"type": "unmade", "runs": lost})

    def _request(self, sweep: Sweep, progress: Progress, number: int) -> Request:
        request, last = _at(sweep.request, progress.points[number]), progress.runs.get(number)
        if last is None:
            return request
        return replace(request, of=last, select=Selection("failed"), use_cache=True)

    async def _make(self, make: Callable[[Request], Run] | None, asked: list[Request]) -> list[Run]:
        chosen = make or self.make
        return await asyncio.to_thread(lambda: [chosen(request) for request in asked])

    async def _stop_runs(self, sweep_id: str) -> None:
        sweep, progress = self._read(sweep_id)
        for run_id, run in self._runs(sweep, progress).items():
            if run["state"] not in ENDED:
                await self.engine.stop(run_id)

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

    def _unsettled(self) -> list[str]:
        """Those that may need something: of the others one file each is looked for."""
        ids = self._ids()
        self._settled = {each: self._settled[each] for each in ids if each in self._settled}
        return [each for each in ids if each not in self._settled or self._settled[each].has_more()]

    async def _is_settled(self, sweep_id: str) -> bool:
        """Whether it needs nothing from this user; otherwise it is given what it needs."""
        try:
            _, progress = self._read(sweep_id, own=True)
        except Conflict as error:
            if error.code != "not-own":
                raise
            return True
        if progress.todo() or progress.unsure():
            await self.tend(sweep_id)
            return False
        return True

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
        with self._lock:
            found = self._open(sweep_id, folder)
            progress = _fold([*found.happened, *found.asked])
        owners = {found.owner, *found.journal.owners, *found.changes.owners}
        if own and not self.store.is_own_folder(folder, owners):
            raise Conflict(
                f"The sweep {sweep_id} belongs to another user, and only they can change it.",
                code="not-own",
            )
        return found.sweep, progress

    def _open(self, sweep_id: str, folder: Path) -> _Opened:
        """What is in its folder now."""
        path = folder / "sweep.json"
        known = self._opened.get(sweep_id)
        with contextlib.suppress(OSError):
            if known is not None and known.key == Key.of(path.lstat()) and known.catch_up():
                return known
        journal, changes = Journal(folder / "events.ndjson"), Changes(folder / "changes")
        try:
            key = Key.of(path.lstat())
            value, owner = read_owned_json(path)
            opened = _Opened(from_json(Sweep, value), key, owner, journal, changes)
        except (OSError, TypeError, ValueError, AttributeError) as error:
            raise ConvectError(f"The sweep {sweep_id} is damaged: {error}.") from None
        opened.catch_up()
        while len(self._opened) >= KEPT_OPEN:
            del self._opened[next(iter(self._opened))]
        self._opened[sweep_id] = opened
        return opened

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
        """Write what happened. Only for the holder of the lease."""
        with _said(sweep_id):
            journal = Journal(self._folder / sweep_id / "events.ndjson")
            journal.append(b"".join(map(_line, events)))

    def _ask(self, sweep_id: str, event: dict[str, Json]) -> None:
        """Write what somebody wants, for whoever tends the sweep."""
        with _said(sweep_id):
            Changes(self._folder / sweep_id / "changes").add(_line(event))


@contextlib.contextmanager
def _said(sweep_id: str) -> Iterator[None]:
    try:
        yield
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
    if progress.todo() or progress.unsure() or any(name not in ENDED for name in counts):
        return "running"
    if counts.get("failed") or counts.get("lost"):
        return "failed"
    if progress.stopped or counts.get("cancelled"):
        return "cancelled"
    return "succeeded"


def _text(point: Point) -> str:
    return json.dumps(point, sort_keys=True)


def _at(request: Request, point: Point) -> Request:
    return replace(request, parameters={**request.parameters, **point})


def _line(event: dict[str, Json]) -> bytes:
    text = dumps({"time": time.time(), **event})
    return text.encode("utf-8", "backslashreplace") + b"\n"


def _events(lines: list[bytes]) -> list[dict[str, Json]]:
    """Those that can be read."""
    events = []
    for line in lines:
        with contextlib.suppress(ValueError):
            events.append(loads(line))
    return events


def _fold(events: list[dict[str, Json]]) -> Progress:
    progress = Progress()
    for event in events:
        try:
            kind = event["type"]
            if kind == "points":
                progress.add(event["points"])
                progress.stopped = False
            elif kind == "rerun":
                progress.again |= set(event["runs"])
                progress.stopped = False
            elif kind == "run":
                progress.runs[event["point"]] = event["run"]
            elif kind == "submitted":
                progress.submitted |= set(event["runs"])
            elif kind == "made":  # As earlier versions counted.
                progress.submitted |= set(progress.runs.values())
            elif kind == "unmade":
                lost = set(event["runs"])
                progress.runs = {n: run for n, run in progress.runs.items() if run not in lost}
            elif kind == "stop":
                progress.stopped = True
            elif kind == "select":
                progress.select = event["select"]
        except (KeyError, TypeError):
            continue
    return progress
