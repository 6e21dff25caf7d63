"""Store, runtimes, engine and sweeps, put together.

The server, the command line and the Python API each have one, and nothing else
knows how the parts fit.
"""

from __future__ import annotations

import asyncio
import functools
import getpass
import hashlib
import importlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traitlets import TraitError

from .background import Health
from .errors import ConvectError, Missing, Refused
from .git import git_of, keep_difference
from .pipeline.discovery import kind_of
from .pipeline.document import parse, read_file
from .pipeline.files import FileCache, PinnedFiles
from .pipeline.metrics import Reported, reported_by, suggest
from .pipeline.plan import Json, Plan
from .pipeline.problems import Problem
from .pipeline.resolve import plan_for_file, raise_first_error, resolve
from .pipeline.types import Document
from .pipeline.validate import validate
from .pools import Threads
from .results import LIMIT, Results, read_log
from .run_files import PRIVATE, SHARED, make_runs_folder
from .runs.best import settle
from .runs.engine import Engine
from .runs.foresight import foresee
from .runs.index import Index
from .runs.model import Git, Request, Run, RunState, Selection, Sources, new_id
from .runs.project import is_kept, take_snapshot, told_of_sharing
from .runs.snapshots import gone
from .runs.store import Store
from .runs.sweeps import Sweeps, points_of
from .runs.versions import Version
from .runtimes.base import LogChunk, Runtime, StepRuntime
from .settings import Settings

if TYPE_CHECKING:
    from .catalog.store import CatalogStore

GROUP = "jupyterlab_convect.runtimes"
EMBEDDED = {"local": "jupyterlab_convect.runtimes.local:LocalRuntime"}
"""Known without a look at all that is installed, which takes its time."""

ALL_OF_IT = Selection()

LARGEST_PARAMETERS = 1 << 20
"""Bytes of the parameters of a run, and of those of each step."""
SAME_TIME = 2.0
"""Seconds within which a working copy is taken not to change."""
KEPT_SOURCES = 8
"""Sweeps whose sources are kept in memory."""


class Runtimes(Mapping[str, Runtime]):
    """The runtimes that are installed and offered, each made when it is first asked for."""

    def __init__(self, settings: Settings, log: logging.Logger, health: Health) -> None:
        self._settings = settings
        self._log = log
        self._health = health
        self._made: dict[str, Runtime] = {}
        self._making = threading.Lock()

    def __getitem__(self, name: str) -> Runtime:
        with self._making:
            if name not in self._made:
                self._made[name] = self._make(name)
            return self._made[name]

    def __iter__(self) -> Iterator[str]:
        offered = self._settings.runtimes
        return (name for name in self._installed if not offered or name in offered)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def made(self) -> list[Runtime]:
        """Those that somebody has asked for so far."""
        return list(self._made.values())

    @functools.cached_property
    def _installed(self) -> dict[str, str]:
        from importlib.metadata import entry_points

        kinds = EMBEDDED | {found.name: found.value for found in entry_points(group=GROUP)}
        named = self._settings.named_runtimes.items()
        return kinds | {name: kinds[own["kind"]] for name, own in named if own.get("kind") in kinds}

    def _make(self, name: str) -> Runtime:
        offered = self._settings.runtimes
        place = EMBEDDED.get(name) or self._installed.get(name)
        if place is None or (offered and name not in offered):
            raise NoSuchRuntime(
                f"There is no runtime {name!r}.",
                code="no-such-runtime",
                hint=f"There is {', '.join(sorted(self))}.",
            )
        module, _, attribute = place.partition(":")
        try:
            kind: type[Runtime] = getattr(importlib.import_module(module), attribute)
            own = {**self._settings.named_runtimes.get(name, {})}
            own.pop("kind", None)
            runtime = kind(parent=self._settings, log=self._log, health=self._health, **own)
            runtime.name = name
            return runtime
        except (ImportError, AttributeError, TraitError) as error:
            raise Refused(
                f"The runtime {name!r} cannot be loaded: {error}.", code="runtime-unavailable"
            ) from error


class NoSuchRuntime(Missing, KeyError):
    """A key error as well, which is what a mapping promises."""


class Workspace:
    def __init__(self, settings: Settings, log: logging.Logger | None = None) -> None:
        self.settings = settings
        self.logger = log or logging.getLogger("jupyterlab_convect")
        self.health = Health(self.logger)
        self.runtimes = Runtimes(settings, self.logger, self.health)
        self._commits: dict[tuple[Path, tuple[Path, ...]], tuple[float, Git | None]] = {}
        self._of_sweeps: dict[str, tuple[Sources, FileCache]] = {}

    @functools.cached_property
    def store(self) -> Store:
        folder = Path(self.settings.runs_dir).expanduser().absolute()
        shared = self.settings.share_runs == "group"
        try:
            make_runs_folder(folder, shared=shared)
        except OSError as error:
            raise ConvectError(
                f"The runs folder {folder} cannot be made: {error.strerror}.",
                hint="Choose another with CONVECT_RUNS_DIR or c.Convect.runs_dir.",
            ) from None
        name = hashlib.sha256(bytes(folder.resolve())).hexdigest()[:16]
        index = Index(Path(self.settings.index_dir).expanduser() / f"{name}.sqlite", self.health)
        return Store(folder, index, SHARED if shared else PRIVATE)

    @functools.cached_property
    def engine(self) -> Engine:
        return Engine(self.store, self.runtimes, log=self.logger, health=self.health)

    @functools.cached_property
    def sweeps(self) -> Sweeps:
        return Sweeps(self.store, self.engine, self.make)

    @functools.cached_property
    def catalog(self) -> CatalogStore:
        from .catalog.approvals import store_folder
        from .catalog.fetch import Policy
        from .catalog.store import CatalogStore

        runs = Path(self.settings.runs_dir).expanduser()
        return CatalogStore(store_folder(runs), Policy(hosts=tuple(self.settings.catalog_hosts)))

    def plan(self, request: Request, files: FileCache | None = None) -> Plan:
        """The plan of what was asked. Reads files: call it in a thread."""
        root = Path(request.root)
        files = files or FileCache(root)
        document = pipeline_of(request)
        if document is not None:
            resolved = resolve(
                document,
                root=root,
                path=request.path,
                parameters=request.parameters,
                settings=request.settings,
                files=files,
            )
            if not resolved.components:
                return resolved
            from .catalog.expand import expand

            return expand(resolved)
        if request.path is None:
            raise ConvectError("Say what to run: a file or a pipeline.")
        plan = plan_for_file(request.path, root, request.parameters, request.settings, files)
        for problem in _problems(request, files):
            # A pipeline may compute what it passes on; here somebody has chosen it.
            if problem.code == "wrong-type-for-notebook":
                raise ConvectError(problem.message, code="wrong-type", hint=problem.hint)
        return plan

    def make(self, request: Request, user: str | None = None) -> Run:
        """A run that can be submitted. Reads files: call it in a thread.

        One of a sweep is made from the sources that the sweep was submitted with.
        """
        sources = self._sources_of(request)
        if sources is not None:
            plan, snapshot, git = self._plan_from(request, *sources)
        else:
            plan, snapshot = self._pinned(request)
            git = self._git(request, plan)
        _check_size(request, plan)
        self._require_approval(request, plan)
        return Run(
            id=new_id(),
            name=request.name or plan.name,
            created=time.time(),
            runtime=request.runtime,
            plan=plan,
            request=request,
            user=user or system_user(),
            git=git,
            snapshot=snapshot,
        )

    def _pinned(self, request: Request) -> tuple[Plan, str | None]:
        """The plan and the snapshot of the project that it is of, at one moment."""
        if request.version is not None:
            run, _ = self.store.read(request.version)
            self._require_kept(run.plan, run.snapshot)
            return run.plan, run.snapshot
        plan, snapshot, _ = self._pin(request)
        return plan, snapshot

    def _pin(self, request: Request) -> tuple[Plan, str | None, FileCache]:
        """Keep what a plan of today is made from; with what was looked up for it."""
        for _ in range(5):
            files = FileCache(Path(request.root))
            plan = self.plan(request, files)
            snapshot = take_snapshot(self.store.snapshots, plan, Path(request.root))
            if is_kept(self.store.snapshots, plan):
                break
        return plan, snapshot, files

    def _require_kept(self, plan: Plan, snapshot: str | None) -> None:
        snapshots = self.store.snapshots
        if not (is_kept(snapshots, plan) and (snapshot is None or snapshots.has(snapshot))):
            raise gone()

    def _take_sources(self, request: Request) -> tuple[Sources, FileCache]:
        """The files that a request is made from, as they are now, for all runs of a sweep."""
        document = pipeline_of(request)
        plan, snapshot, files = self._pin(replace(request, document=document))
        if document is not None and request.path is not None and request.document is None:
            files.digest(request.path)  # by which a change of it is noticed
        return Sources(document, files.facts(), snapshot, self._git(request, plan)), files

    def _sources_of(self, request: Request) -> tuple[Sources, FileCache] | None:
        """What a run is made from that belongs to a sweep, unless that has no sources."""
        if request.sweep is None:
            return None
        known = self._of_sweeps.get(request.sweep)
        if known is None and (sources := self.sweeps.sources(request.sweep)) is not None:
            files = PinnedFiles(Path(request.root), sources.files, self.store.snapshots.content)
            known = self._remember_sources(request.sweep, sources, files)
        return known

    def _remember_sources(
        self, sweep_id: str, sources: Sources, files: FileCache
    ) -> tuple[Sources, FileCache]:
        while len(self._of_sweeps) >= KEPT_SOURCES:
            self._of_sweeps.pop(next(iter(self._of_sweeps)), None)
        self._of_sweeps[sweep_id] = sources, files
        return sources, files

    def _plan_from(
        self, request: Request, sources: Sources, files: FileCache
    ) -> tuple[Plan, str | None, Git | None]:
        plan = self.plan(replace(request, document=sources.document), files)
        self._require_kept(plan, sources.snapshot)
        return plan, sources.snapshot, sources.git

    async def submit(self, run: Run) -> RunState:
        """Start it. Refused when its runtime would not run it as asked."""
        await self.refuse(run)
        return await self.engine.submit(run)

    async def refuse(self, run: Run) -> None:
        """Raise what keeps its runtime from running it, if anything does."""
        raise_first_error(await self.runtimes[run.runtime].check(run.plan))

    async def create_sweep(
        self,
        request: Request,
        space: Mapping[str, Json],
        make: Callable[[Request], Run] | None = None,
        **how: Any,
    ) -> str:
        """Start a sweep, `how` as `Sweeps.create` takes it; its id.

        The run of the first point, made by `make`, has to be one that could be submitted, and
        those of all points have to be such that they can be made.
        Without `select`, the best run is told by itself where that is plain.
        """
        chance = {key: how[key] for key in ("mode", "samples", "seed") if key in how}
        first = points_of(space, **chance)[0]
        request = replace(request, sweep=new_id())
        at_first = replace(request, parameters={**request.parameters, **first})
        sources, files = await asyncio.to_thread(self._take_sources, at_first)
        self._remember_sources(str(request.sweep), sources, files)
        run = await asyncio.to_thread(make or self.make, at_first)
        await self.refuse(run)
        reported = await asyncio.to_thread(reported_by, run.plan, files)
        how["select"] = settle(how.get("select"), reported)
        return await self.sweeps.create(request, space, make=make, sources=sources, **how)

    def again(
        self,
        run_id: str,
        selection: Selection = ALL_OF_IT,
        use_cache: bool | None = None,
        version: Version = "today",
    ) -> Request:
        """What to ask for to run it again, whole or in part, with its files or those of today."""
        run, _ = self.store.read(run_id)
        if selection.node is not None and not run.plan.steps_of(selection.node):
            raise Missing(f"Run {run_id} has no step {selection.node!r}.", code="no-such-step")
        if selection.mode in ("only", "from", "upto") and selection.node is None:
            raise ConvectError(f"`{selection.mode}` needs a `node` to start from.")
        return replace(
            run.request,
            select=selection,
            of=None if selection.mode == "all" else run_id,
            use_cache=run.request.use_cache if use_cache is None else use_cache,
            sweep=None,
            version=run_id if version == "run" else None,
        )

    async def check(self, request: Request) -> list[Problem]:
        """What would keep this from running on its runtime, then what is odd; starts nothing."""
        from .drift import drift  # Who only runs something needs not wait for it.

        runtime = self.runtimes[request.runtime]
        reused: list[Problem] = []
        try:
            plan = await asyncio.to_thread(self.plan, request)
            found = await asyncio.to_thread(self._unapproved, request, plan)
            found = found or await runtime.check(plan)
            reused = await asyncio.to_thread(self._reused, request, plan)
            would_be = Run(new_id(), plan.name, time.time(), request.runtime, plan, request)
            reused += await asyncio.to_thread(drift, self.store, would_be)
            reused += told_of_sharing(plan)
        except Missing:
            raise
        except ConvectError as error:
            found = [Problem("error", error.code, error.sentence, hint=error.hint)]
        odd = await asyncio.to_thread(self.oddities, request)
        errors = [problem for problem in odd if problem.severity == "error"]
        odd = [problem for problem in odd if problem not in errors]
        return [*(errors or found), *odd, *([] if errors else reused)]

    def metrics(self, request: Request) -> dict[str, Json]:
        """What it is known to report, and by what a sweep would tell the best. Reads files."""
        try:
            reported = reported_by(self.plan(request), FileCache(Path(request.root)))
        except ConvectError:
            reported = Reported(complete=False)
        return {
            "names": list(reported.names),
            "complete": reported.complete,
            "best": suggest(reported),
        }

    def _reused(self, request: Request, plan: Plan) -> list[Problem]:
        """What would be taken over from earlier runs."""
        if not any(step.cache for step in plan.steps):
            return []
        run = Run(new_id(), plan.name, time.time(), request.runtime, plan, request)
        return [
            Problem(
                "info",
                "reused",
                f"The result of “{plan.step(step).name}” is taken over from run "
                f"{place.partition('/')[0]}: nothing has changed since.",
                node=step,
            )
            for step, place in foresee(self.store, run).items()
        ]

    def oddities(self, request: Request) -> list[Problem]:
        """What is wrong or odd about what is asked, wherever it runs. Reads files."""
        return _problems(request, FileCache(Path(request.root)))

    def _require_approval(self, request: Request, plan: Plan) -> None:
        """Components run here without a container only when somebody has looked at them."""
        if request.runtime == "local" and plan.components:
            self.catalog.approvals.require(plan)

    def _unapproved(self, request: Request, plan: Plan) -> list[Problem]:
        if request.runtime != "local" or not plan.components:
            return []
        from .catalog.approvals import refuse_unapproved

        return [
            Problem("error", refused.code, refused.sentence, node=step, hint=refused.hint)
            for step, component in self.catalog.approvals.missing(plan)
            for refused in [refuse_unapproved(component)]
        ]

    async def log(self, results: Results, offset: int = 0, limit: int = LIMIT) -> LogChunk:
        """A piece of an attempt's log, from its folder or, while it is far away, its runtime."""
        run, _ = self.store.read(results.attempt.run)
        if not results.ended and not (results.folder / "log.txt").exists():
            runtime = self.runtimes[run.runtime]
            if isinstance(runtime, StepRuntime):
                return await runtime.logs(results.attempt, offset, limit)
        return await asyncio.to_thread(read_log, results, offset, limit)

    def _git(self, request: Request, plan: Plan) -> Git | None:
        """The commit, looked up once for runs that are made at the same time."""
        root = Path(request.root)
        paths = tuple(root / step.path for step in plan.steps if step.path)
        folder = (root / request.path if request.path else next(iter(paths), root / "x")).parent
        known = self._commits.get((folder, paths))
        if known is not None and known[0] > time.monotonic() - SAME_TIME:
            return known[1]
        git = git_of(folder, paths)
        if git is not None and git.difference is not None:
            self._behind.submit(keep_difference, self.store.folder, folder, git)
        self._commits = {(folder, paths): (time.monotonic(), git)}
        return git

    @functools.cached_property
    def _behind(self) -> Threads:
        """For what nobody waits for until the workspace is closed."""
        return Threads(1, "convect-behind")

    async def open(self) -> None:
        """Make what reads and writes the runs folder: in the thread of whoever drives the runs."""
        _ = self.sweeps

    @property
    def is_open(self) -> bool:
        return "sweeps" in vars(self)

    async def resume(self) -> None:
        """Go on with every run and sweep that nobody drives."""
        await self.engine.resume()
        await self.sweeps.resume()

    async def close(self) -> None:
        """Let go; steps that run go on."""
        made = vars(self)
        if "engine" in made:
            await self.engine.close()
        for runtime in self.runtimes.made():
            await runtime.close()
        if "store" in made:
            self.store.close()
        if "_behind" in made:
            await asyncio.to_thread(self._behind.shutdown)

    def prune(self, *, dry_run: bool = False) -> list[str]:
        """Delete what the settings do not want kept."""
        limits = self.settings
        if not (limits.keep_days or limits.keep_runs or limits.keep_bytes):
            if not dry_run:
                self.store.clean(self.sweeps.live_snapshots())
            return []
        return self.store.prune(
            keep_days=limits.keep_days,
            keep_runs=limits.keep_runs,
            keep_bytes=limits.keep_bytes,
            dry_run=dry_run,
            live=self.sweeps.live_snapshots(),
        )


def pipeline_of(request: Request) -> Document | None:
    """The pipeline that is asked for, if it is not a single file."""
    if request.document is None and request.path is not None:
        is_pipeline = request.path.endswith(".pipeline")
        return read_pipeline(Path(request.root, request.path)) if is_pipeline else None
    document: Document | None = request.document
    return document


def _problems(request: Request, files: FileCache) -> list[Problem]:
    """Everything that is wrong or odd about what is asked."""
    document = pipeline_of(request)
    if document is not None:
        return validate(document, path=request.path, parameters=request.parameters, files=files)
    path = request.path or ""
    node = {"kind": kind_of(path), "path": path, "parameters": dict(request.parameters)}
    return validate({"convect": 1, "nodes": {Path(path).stem: node}}, files=files)


def _check_size(request: Request, plan: Plan) -> None:
    """Parameters are values, which every list of runs shows; data belongs into files."""
    of_steps = ({**step.parameters, **step.env} for step in plan.steps)
    for given in (dict(request.parameters), dict(plan.parameters), *of_steps):
        if given and len(json.dumps(given)) > LARGEST_PARAMETERS:
            raise ConvectError(
                f"The parameters are larger than {LARGEST_PARAMETERS >> 20} MiB.",
                code="too-large",
                hint="Put data into a file, and give its path.",
            )


def read_pipeline(path: Path) -> Document:
    return parse(read_file(path))


def system_user() -> str | None:
    """Who the machine thinks we are; a hub knows better."""
    try:
        return os.environ.get("JUPYTERHUB_USER") or getpass.getuser()
    except (KeyError, OSError):  # A container whose user has no name.
        return None
