"""From a schedule to its runs: what the server, the command line and the Python API ask of it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import math
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from ..errors import Conflict, ConvectError, Missing, Refused
from ..pipeline.discovery import discover
from ..pipeline.plan import Json, from_json, to_json
from ..runs.model import ENDED, GOOD, Request, Run, new_id
from ..runs.project import describe_view
from ..runs.sweep_space import MOST, points_of
from ..runtimes.base import GraphRuntime, KeptClock, MadeRun, RecurringRuns
from .cluster_times import cluster_times
from .hooks import delivery_of, hook_token, is_allowed
from .job_definitions import LABEL, find_file, read_definitions
from .keeper import Keeper, Kind, decided_to_run
from .ledger import HandedOver, Ledger
from .recurring_times import recurring_times
from .schedule import (
    BODY,
    LONGEST_NAME,
    Schedule,
    at_due,
    body_names,
    check_schedule,
    examples,
    require_recurring,
    space_over,
    values_of_body,
)
from .schedule_views import ScheduleViews
from .times import (
    Clock,
    due_after,
    due_between,
    has_times,
)
from .triggers import EndedRun, Happening, Noticed, Trigger, does_count, scan

if TYPE_CHECKING:
    from ..workspace import Workspace

MOST_CALLS = 1000
"""Calls that may wait to be decided on."""

NEVER = ("0 0 1 1 *", "UTC")
"""What a clock that is not due any more is kept as, paused."""

Which = Literal["missing", "failed", "all"]
Known = Mapping[str, HandedOver]
Make = Callable[[Request], Run]
Tell = Callable[[str], None]


class Scheduling(ScheduleViews):
    """Also what the keeper has runs started, stopped and looked up by."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._keeper: Keeper | None = None

    def keeper(self, kind: Kind, tell: Tell = lambda _: None, **how: Any) -> Keeper:
        """The one of this process, which offers to keep the clocks."""
        if self._keeper is None:
            health = self._workspace.health
            self._keeper = Keeper(self.schedules, self, kind, health, tell=tell, **how)
        return self._keeper

    async def close(self) -> None:
        if self._keeper is not None:
            await self._keeper.close()

    async def add(
        self,
        request: Request,
        clock: Clock,
        *,
        name: str | None = None,
        sweep: Mapping[str, Json] | None = None,
        pinned: bool = False,
        paused: bool = False,
        user: str | None = None,
        make: Make | None = None,
        trigger: Trigger | None = None,
        **how: Any,
    ) -> str:
        """Make a schedule and return its id; `how` are the other fields of `Schedule`.

        Files that are there already do not make it due.
        What its first due time would run has to be such that it can be submitted.
        """
        now = time.time()
        if clock.every is not None and not clock.anchor:
            clock = replace(
                clock, anchor=float(math.floor(now)) if clock.start is None else clock.start
            )
        title = name or request.name or PurePosixPath(request.path or "pipeline").stem
        trigger = None if trigger == Trigger() else trigger
        if trigger is not None and not has_times(clock):
            how.setdefault("overlap", "queue")
        schedule = Schedule(
            new_id(), title, now, request, clock, sweep=sweep, user=user, trigger=trigger, **how
        )
        schedule = await self._checked(schedule, make, pin=pinned or self._hands_over(schedule))
        kept = await self._keep_elsewhere(schedule, {}, paused=paused)
        files = await asyncio.to_thread(_files_of, schedule)
        events = [] if files is None else [{"time": now, "type": "seen", "files": files}]
        events += [{"time": now, **each} for each in kept]
        try:
            await asyncio.to_thread(self.schedules.add, schedule, *events)
        except ConvectError:
            with contextlib.suppress(ConvectError):
                known = {str(each["id"]): HandedOver(schedule, each["handle"]) for each in kept}
                await self._forget_elsewhere(schedule, known)
            raise
        if paused:
            await asyncio.to_thread(self.schedules.pause, schedule.id)
        return schedule.id

    async def edit(
        self, schedule_id: str, changes: Mapping[str, Any], make: Make | None = None
    ) -> None:
        """Change the fields of `Schedule` that are given, `pinned` and `paused`.

        `pinned` takes the files of now, also when it was pinned before.
        """
        ledger = await asyncio.to_thread(self.schedules.read, schedule_id, own=True)
        given = dict(changes)
        paused, pinned = given.pop("paused", None), given.pop("pinned", None)
        kept: list[dict[str, Json]] = []
        if given or pinned is not None:
            before = ledger.schedule
            if "trigger" in given:
                given["trigger"] = _same_token(given["trigger"], before.trigger)
            schedule = replace(before, **given)
            if schedule.clock.every is not None and not schedule.clock.anchor:
                schedule = replace(schedule, clock=_anchored(schedule.clock))
            if pinned is False:
                schedule = replace(schedule, sources=None)
            elif pinned or "request" in given:
                pinned = pinned or schedule.sources is not None
            if self._hands_over(schedule) and schedule.sources is None:
                pinned = True
            schedule = await self._checked(schedule, make, pin=bool(pinned))
            is_paused = ledger.paused is not None if paused is None else paused
            kept = await self._keep_elsewhere(schedule, ledger.kept, paused=is_paused)
            is_same = _pattern_of(schedule) == _pattern_of(before)
            files = None if is_same else await asyncio.to_thread(_files_of, schedule)
            await asyncio.to_thread(self.schedules.edit, schedule, files)
            if _keeper_of(schedule) != _keeper_of(before):
                await self._forget_elsewhere(before, ledger.kept)
        events: list[dict[str, Json]] = kept
        if paused is not None and paused != (ledger.paused is not None):
            if not given and pinned is None:
                events = await self._keep_elsewhere(ledger.schedule, ledger.kept, paused=paused)
            events = [*events, {"type": "pause" if paused else "resume"}]
        if events:  # All at once: what a paused schedule is kept by is deleted.
            await asyncio.to_thread(self.schedules.ask, schedule_id, *events)

    async def remove(self, schedule_id: str) -> None:
        """Delete it with its ledger; its runs stay."""
        ledger = await asyncio.to_thread(self.schedules.read, schedule_id, own=True)
        await asyncio.to_thread(self.schedules.remove, schedule_id)
        await self._forget_elsewhere(ledger.schedule, ledger.kept)

    async def keep_elsewhere(self, schedule_id: str) -> None:
        """Tell the cluster that keeps the clock of a schedule, if one does, how it goes on."""
        ledger = await asyncio.to_thread(self.schedules.read, schedule_id)
        await self._keep_elsewhere(ledger.schedule, ledger.kept, paused=ledger.paused is not None)

    def _hands_over(self, schedule: Schedule) -> bool:
        """Whether the runtime makes the runs itself, of what it is given now."""
        return schedule.kept_by == "runtime" and isinstance(
            self._workspace.runtimes[schedule.request.runtime], GraphRuntime
        )

    async def _hand_over(
        self, runtime: GraphRuntime, schedule: Schedule, known: Known, *, paused: bool
    ) -> list[dict[str, Json]]:
        """Have the runtime make the runs from now on; what to write down of that."""
        require_recurring(schedule)
        catch_up, now = schedule.missed == "all", time.time()
        times = recurring_times(schedule.clock, runtime.clock_zone, now, catch_up=catch_up)
        wanted = None
        if times is not None and not paused:
            request, _ = at_due(schedule, now)
            run = await asyncio.to_thread(self._make, schedule, request, None)
            store = self._workspace.store
            wanted = RecurringRuns(
                schedule.id,
                schedule.name,
                run.plan,
                Path(request.root),
                store.folder,
                await asyncio.to_thread(self._view_of, run),
                *times,
                concurrency=schedule.concurrency,
                catch_up=catch_up,
            )
        kept = await runtime.keep_runs(wanted, _handles(known))
        if kept is None:
            return []
        return [{"type": "kept", "id": kept[0], "handle": kept[1], "schedule": to_json(schedule)}]

    def _view_of(self, run: Run) -> Json:
        """What its steps see of the project."""
        if run.snapshot is None:
            return None
        snapshots = self._workspace.store.snapshots
        folder = self._workspace.store.run_folder(run.id)
        return describe_view(snapshots, snapshots.read(run.snapshot), [], folder)

    async def _keep_elsewhere(
        self, schedule: Schedule, known: Known, *, paused: bool
    ) -> list[dict[str, Json]]:
        """Tell the cluster that keeps the clock, if one does; what to write down of that."""
        if schedule.kept_by != "runtime":
            return []
        runtime = self._workspace.runtimes[schedule.request.runtime]
        if isinstance(runtime, GraphRuntime):
            return await self._hand_over(runtime, schedule, known, paused=paused)
        times = cluster_times(schedule.clock, time.time())
        runs = self._workspace.store.folder
        clock = KeptClock(
            schedule.id,
            schedule.name,
            *(times or NEVER),
            deadline=0.0 if schedule.missed == "none" else schedule.deadline,
            paths=(str(runs), schedule.request.root),
            runs=runs,
            config=await asyncio.to_thread(self.schedules.engine_folder),
            paused=paused or times is None,
        )
        await runtime.keep_clock(clock)
        return []

    async def _forget_elsewhere(self, schedule: Schedule, known: Known) -> None:
        if schedule.kept_by != "runtime":
            return
        runtime = self._workspace.runtimes[schedule.request.runtime]
        try:
            if isinstance(runtime, GraphRuntime):
                await runtime.keep_runs(None, _handles(known))
                await runtime.forget_runs(_handles(known))
            else:
                await runtime.forget_clock(schedule.id)
        except ConvectError as error:
            raise ConvectError(
                f"It is done here, but the cluster still keeps the clock: {error.sentence}",
                code="clock-left",
                hint="What the cluster starts by it ends without doing anything.",
            ) from None

    async def made_elsewhere(self, ledger: Ledger) -> list[MadeRun]:
        def is_home(due: float) -> bool:
            line = ledger.lines.get(due)
            return line is not None and (line.sure or line.outcome == "refused")

        found: list[MadeRun] = []
        for runtime, known in self._graph_runtimes(ledger.kept):
            found += await runtime.made_runs(known, is_home)
        return sorted(found, key=lambda made: made.due)

    def _graph_runtimes(self, known: Known) -> list[tuple[GraphRuntime, dict[str, Json]]]:
        """Who makes the runs, and what each has to know."""
        found: dict[str, dict[str, HandedOver]] = {}
        for key, each in list(known.items()):
            found.setdefault(each.schedule.request.runtime, {})[key] = each
        runtimes = ((self._workspace.runtimes[name], _handles(of)) for name, of in found.items())
        return [(each, of) for each, of in runtimes if isinstance(each, GraphRuntime)]

    async def take_home(self, schedule: Schedule, made: MadeRun, run_id: str) -> None:
        request, _ = at_due(schedule, made.due)
        if await asyncio.to_thread(self._workspace.store.run_folder(run_id).is_dir):
            raise Conflict(f"Run {run_id} already exists.")
        run = await asyncio.to_thread(self._make, schedule, request, None)
        run = replace(run, id=run_id, created=made.created)
        await self._workspace.engine.submit(run, made.graph)

    async def let_go(self, ledger: Ledger) -> list[str]:
        is_kept = ledger.paused is None and self._hands_over(ledger.schedule)
        old = dict(list(ledger.kept.items())[: -1 if is_kept else None])
        found: list[str] = []
        for runtime, known in self._graph_runtimes(old):
            found += await runtime.forget_runs(known)
        return found

    def is_busy(self, schedule_id: str) -> bool:
        """Whether runs of it wait, are being made or go on. Reads files."""
        ledger = self.schedules.read(schedule_id)
        return bool(ledger.unsure() or ledger.queued()) or not all(
            self.is_over(ledger.schedule, str(line.run)) for line in decided_to_run(ledger)
        )

    async def drive(self, schedule_id: str, started: Collection[str]) -> None:
        """Take over those runs, or sweeps, of a schedule that nobody drives."""
        schedule = (await asyncio.to_thread(self.schedules.read, schedule_id)).schedule
        runs = set(started)
        if schedule.sweep is not None:
            sweeps = self._workspace.sweeps
            for sweep_id in started:
                await sweeps.tend(sweep_id)
            runs = {
                str(point["run"])
                for sweep_id in started
                for point in sweeps.view(sweep_id)["points"]
            }
        await self._workspace.engine.resume(runs)

    async def run_now(
        self, schedule_id: str, due: float | None = None, make: Make | None = None
    ) -> str:
        """Run it without waiting for the clock, as at `due` if that is given; the id of the run,
        or of the sweep."""
        ledger = await asyncio.to_thread(self.schedules.read, schedule_id, own=True)
        run_id = new_id()
        happening = None if due is None else ledger.happening(due)
        moment = time.time() if due is None else due
        await self.start(ledger.schedule, moment, run_id, happening, make)
        event = {"type": "asked", "run": run_id, "due": due}
        await asyncio.to_thread(self.schedules.ask, schedule_id, event)
        return run_id

    def hook(self, schedule_id: str) -> dict[str, str]:
        """How to call it: the end of the `address`, and the `token`."""
        ledger = self.schedules.read(schedule_id, own=True)
        return {"address": f"hooks/{schedule_id}", "token": self._token(ledger.schedule)}

    def renew_token(self, schedule_id: str) -> None:
        """The token that was valid is not valid any more."""
        schedule = self.schedules.read(schedule_id, own=True).schedule
        self._token(schedule)
        assert schedule.trigger is not None
        assert schedule.trigger.call is not None
        call = replace(schedule.trigger.call, generation=schedule.trigger.call.generation + 1)
        self.schedules.edit(replace(schedule, trigger=replace(schedule.trigger, call=call)))

    def call(
        self, schedule_id: str, headers: Mapping[str, str], body: bytes, parsed: Json
    ) -> float:
        """Make it due by a call from outside; when that was. `Missing` for whoever may not."""
        ledger = self.require_allowed(schedule_id, headers, body)
        key = delivery_of(headers)
        if key in ledger.keys:
            return ledger.keys[key]
        if len(ledger.happened) >= MOST_CALLS:
            raise TooManyCalls
        values = values_of_body(ledger.schedule, parsed)
        noticed = Noticed(key, Happening("call", values))
        event = self.schedules.happened(schedule_id, noticed, time.time())
        self.schedules.ask(schedule_id, event, urgent=False)
        return float(event["due"])

    def require_allowed(self, schedule_id: str, headers: Mapping[str, str], body: bytes) -> Ledger:
        """What is called; nobody else learns whether it exists."""
        missing = Missing("There is no such schedule, or the token is not its own.")
        try:
            ledger = self.schedules.read(schedule_id, own=True)
            token = self._token(ledger.schedule)
        except ConvectError:
            raise missing from None
        if not is_allowed(token, headers, body):
            raise missing
        return ledger

    def _token(self, schedule: Schedule) -> str:
        if schedule.trigger is None or schedule.trigger.call is None:
            raise Refused(
                "This schedule cannot be called.", hint="Let calls trigger it: edit its trigger."
            )
        return hook_token(self.schedules.keeper_folder(), schedule.id, schedule.trigger.call)

    async def backfill(
        self,
        schedule_id: str,
        begin: float,
        end: float,
        *,
        which: Which = "missing",
        parameter: str | None = None,
        backwards: bool = False,
        concurrency: int | None = None,
        make: Make | None = None,
    ) -> str:
        """Run it for the due times from `begin` to `end` that have passed, as a sweep; its id.

        `which` are those that have no run, those and the ones whose runs failed, or all.
        `parameter` is given the date of each where no parameter has a value of `schedule`.
        """
        ledger = await asyncio.to_thread(self.schedules.read, schedule_id, own=True)
        schedule = ledger.schedule
        if schedule.sweep is not None:
            raise Refused("A schedule that makes sweeps cannot be run for earlier due times.")
        dues = await asyncio.to_thread(self._to_backfill, ledger, begin, end, which)
        space = space_over(schedule, dues[::-1] if backwards else dues, parameter)
        request, _ = at_due(schedule, dues[0])
        request = replace(request, name=request.name or f"{schedule.name}: backfill", sweep=None)
        how: dict[str, Any] = {"mode": "list", "concurrency": concurrency, "select": "none"}
        sweep_id = await self._workspace.create_sweep(
            request, space, make=make, sources=schedule.sources, **how
        )
        await asyncio.to_thread(self._note_backfill, schedule_id, sweep_id, dues, backwards)
        return sweep_id

    def _to_backfill(self, ledger: Ledger, begin: float, end: float, which: Which) -> list[float]:
        clock = replace(ledger.schedule.clock, start=None)
        passed = due_between(clock, begin, min(end, time.time()))
        limited = itertools.islice(passed, MOST + 1)
        dues = [due for due in limited if which == "all" or self._lacks(ledger, due, which)]
        if not dues:
            raise ConvectError("No due time that has passed is left to run between these times.")
        if len(dues) > MOST:
            raise ConvectError(f"There are more than {MOST} due times between these times.")
        return dues

    def _lacks(self, ledger: Ledger, due: float, which: Which) -> bool:
        line = ledger.lines.get(due)
        runs = [run for run, of in list(ledger.asked.items()) if of == due]
        runs += [line.run] if line is not None and line.run is not None else []
        states = {self.state_of(ledger.schedule, run) for run in runs} - {"deleted"}
        return not states or (which == "failed" and not states - (ENDED - GOOD))

    def _note_backfill(
        self, schedule_id: str, sweep_id: str, dues: list[float], backwards: bool
    ) -> None:
        points = self._workspace.sweeps.view(sweep_id)["points"]
        made = zip(dues[::-1] if backwards else dues, points, strict=False)
        events = [
            {"type": "asked", "run": point["run"], "due": due}
            for due, point in made
            if point["run"] is not None
        ]
        if events:
            self.schedules.ask(schedule_id, *events)

    async def import_definitions(
        self,
        database: Path,
        root: Path,
        runtime: str,
        user: str | None = None,
        make: Make | None = None,
    ) -> list[dict[str, Json]]:
        """Make schedules of the job definitions of jupyter-scheduler, whose files are looked for
        below `root`; of each what became of it. Those that were taken over before are left."""
        definitions = await asyncio.to_thread(read_definitions, database)
        known = {ledger.schedule.request.labels.get(LABEL) for ledger in self.schedules.all()}
        found: list[dict[str, Json]] = []
        for each in definitions:
            told: dict[str, Json] = {"name": each.name, "schedule": None, "reason": None}
            found.append(told)
            if each.id in known:
                told["reason"] = "It was imported before."
                continue
            try:
                path = await asyncio.to_thread(find_file, root, each.file)
                request = Request(
                    path,
                    str(root),
                    runtime=runtime,
                    parameters=await asyncio.to_thread(_typed, each.parameters, root / path),
                    labels={LABEL: each.id},
                )
                told["schedule"] = await self.add(
                    request,
                    Clock(cron=each.cron, zone=each.zone),
                    name=each.name[:LONGEST_NAME],
                    paused=not each.is_active,
                    user=user,
                    make=make,
                )
            except ConvectError as error:
                told["reason"] = error.sentence
        return found

    async def start(
        self,
        schedule: Schedule,
        due: float,
        run_id: str,
        happening: Happening | None = None,
        make: Make | None = None,
    ) -> None:
        """Make the run, or the sweep, of a due time."""
        request, sweep = at_due(schedule, due, happening)
        workspace = self._workspace
        folder = workspace.store.folder / ("" if sweep is None else "sweeps") / run_id
        if await asyncio.to_thread(folder.is_dir):
            raise Conflict(f"Run {run_id} already exists.")
        if sweep is not None:
            request = replace(request, sweep=run_id)
            await workspace.create_sweep(
                request, make=make, sources=schedule.sources, **_sweep_arguments(sweep)
            )
            return
        run = await asyncio.to_thread(self._make, schedule, request, make)
        await workspace.submit(replace(run, id=run_id))

    async def stop(self, schedule: Schedule, run_id: str) -> None:
        if schedule.sweep is None:
            await self._workspace.engine.stop(run_id)
        else:
            await self._workspace.sweeps.stop(run_id)

    def is_over(self, schedule: Schedule, run_id: str) -> bool:
        return self.state_of(schedule, run_id) in (*ENDED, "deleted")

    def ended_runs(self, schedule: Schedule, since: float) -> list[EndedRun]:
        store, wanted = self._workspace.store, (schedule.trigger or Trigger()).run
        return [
            run
            for run in (EndedRun(*each) for each in store.ended_runs(since))
            if wanted is not None
            and does_count(wanted, run)
            and store.read(run.id).run.request.root == schedule.request.root
        ]

    async def _checked(self, schedule: Schedule, make: Make | None, *, pin: bool) -> Schedule:
        """The same, pinned if asked, when its first due time could be submitted."""
        now = time.time()
        check_schedule(schedule, now)
        first = next(due_after(schedule.clock, now), now)
        request, sweep = at_due(schedule, first, next(iter(examples(schedule)), None))
        if body_names(schedule):
            request = await asyncio.to_thread(_without_body, schedule, request)
        if sweep is not None:
            arguments = _sweep_arguments(sweep)
            how = {key: arguments[key] for key in ("mode", "samples", "seed") if key in arguments}
            point = points_of(arguments["space"], **how)[0]
            request = replace(request, parameters={**request.parameters, **point})
        if pin:
            named = replace(request, sweep=schedule.id)
            sources, _ = await asyncio.to_thread(self._workspace.planner.take_sources, named)
            schedule = replace(schedule, sources=sources)
        run = await asyncio.to_thread(self._make, schedule, request, make)
        await self._workspace.refuse(run)
        return schedule

    def _make(self, schedule: Schedule, request: Request, make: Make | None) -> Run:
        if make is not None and schedule.sources is None:
            return make(request)
        return self._workspace.make(request, schedule.user, sources=schedule.sources)


class TooManyCalls(ConvectError):
    status = 429

    def __init__(self) -> None:
        super().__init__("Too many calls of this schedule are waiting.", code="too-many")


def _anchored(clock: Clock) -> Clock:
    return replace(clock, anchor=float(math.floor(time.time())))


def _handles(known: Known) -> dict[str, Json]:
    return {key: each.handle for key, each in list(known.items())}


def clock_of(given: Mapping[str, Json]) -> Clock:
    """The clock in JSON that was checked."""
    return from_json(Clock, {key: value for key, value in given.items() if value is not None})


def _typed(parameters: Mapping[str, Json], file: Path) -> dict[str, Json]:
    """Texts as the values that the file declares: jupyter-scheduler keeps texts only."""
    types = {each.name: each.type for each in discover(file).parameters or ()}

    def value(name: str, given: Json) -> Json:
        if not isinstance(given, str) or types.get(name) in (None, "string"):
            return given
        with contextlib.suppress(ValueError):
            return json.loads(given)
        return given

    return {name: value(name, given) for name, given in parameters.items()}


def trigger_of(given: Mapping[str, Json]) -> Trigger:
    """The trigger in JSON that was checked."""
    return from_json(Trigger, dict(given))


def _same_token(wanted: Trigger | None, known: Trigger | None) -> Trigger | None:
    """What is wanted instead of what is known; its token stays, if it has one."""
    if wanted is None or wanted == Trigger():
        return None
    if wanted.call is not None and known is not None and known.call is not None:
        return replace(wanted, call=known.call)
    return wanted


def _keeper_of(schedule: Schedule) -> str | None:
    """The runtime that keeps the clock; None when that is done here."""
    return schedule.request.runtime if schedule.kept_by == "runtime" else None


def _pattern_of(schedule: Schedule) -> str | None:
    trigger = schedule.trigger
    return None if trigger is None or trigger.file is None else trigger.file.pattern


def _files_of(schedule: Schedule) -> dict[str, str] | None:
    """The files that are there before it is kept."""
    pattern = _pattern_of(schedule)
    return None if pattern is None else scan(Path(schedule.request.root), pattern)


def _without_body(schedule: Schedule, request: Request) -> Request:
    """The same with a value of the right type for what only a call gives."""
    given = schedule.request.parameters
    named = {name for name, value in given.items() if BODY in str(value)}
    found = discover(Path(request.root, request.path or "")).parameters or ()
    known = {each.name: (each.default, each.type) for each in found}
    usual = {
        name: default if default is not None else _OF_TYPE.get(kind or "", "")
        for name, (default, kind) in known.items()
        if name in named
    }
    return replace(request, parameters={**request.parameters, **usual})


_OF_TYPE: dict[str, Json] = {"number": 0, "integer": 0, "boolean": False, "array": [], "object": {}}


def _sweep_arguments(sweep: Mapping[str, Json]) -> dict[str, Any]:
    return {key: value for key, value in sweep.items() if value is not None}
