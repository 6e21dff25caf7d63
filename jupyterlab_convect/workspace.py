"""Store, runtimes, engine and sweeps, put together.

The server, the command line and the Python API each have one, and nothing else
knows how the parts fit.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .background import Health
from .errors import ConvectError, Missing, Refused
from .pipeline.files import FileCache
from .pipeline.metrics import Reported, reported_by
from .pipeline.plan import Json, Plan
from .pipeline.problems import Problem
from .pipeline.profiles import Offering, check_images, read_offering, settings_of
from .pipeline.resolve import raise_first_error
from .planning import Planner, Tell, examine, plan_of
from .runs.best import settle
from .runs.engine import Engine
from .runs.index import Index
from .runs.model import Request, Run, RunState, Selection, SweepSources, new_id
from .runs.project import told_of_sharing
from .runs.provisions import Provisions
from .runs.reuse import preview_reuse
from .runs.store import Store
from .runs.sweeps import Sweeps, points_of
from .runs.versions import Version
from .runtimes.base import Feature, Runtime
from .runtimes.registry import Runtimes, check_options
from .safe_files import PRIVATE, SHARED, make_runs_folder
from .services.dask_steps import DaskForSteps
from .settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .catalog.store import CatalogStore
    from .image_registries import ImageRegistries
    from .notify.notifier import Notifier
    from .schedules.scheduling import Scheduling

ALL_OF_IT = Selection()


@dataclass(frozen=True, slots=True)
class CheckedRequest:
    """What would keep a request from running, then what is odd about it; and what it would be."""

    problems: list[Problem]
    plan: Plan | None = None
    """None when it has errors of its own."""
    reported: Reported = field(default_factory=lambda: Reported(complete=False))
    """The metrics that it is known to report."""


class Workspace:
    def __init__(self, settings: Settings, log: logging.Logger | None = None) -> None:
        self.settings = settings
        self.logger = log or logging.getLogger("jupyterlab_convect")
        self.health = Health(self.logger)
        self.runtimes = Runtimes(settings, self.logger, self.health)

    @functools.cached_property
    def store(self) -> Store:
        folder = Path(self.settings.runs_dir).expanduser().absolute()
        shared = self.settings.share_runs == "group"
        try:
            make_runs_folder(folder, shared=shared)
        except OSError as error:
            raise ConvectError(
                f"The runs folder {folder} cannot be created: {error.strerror}.",
                hint="Choose another with CONVECT_RUNS_DIR or c.Convect.runs_dir.",
            ) from None
        name = hashlib.sha256(bytes(folder.resolve())).hexdigest()[:16]
        index = Index(Path(self.settings.index_dir).expanduser() / f"{name}.sqlite", self.health)
        return Store(folder, index, SHARED if shared else PRIVATE)

    @functools.cached_property
    def engine(self) -> Engine:
        return Engine(
            self.store,
            self.runtimes,
            log=self.logger,
            health=self.health,
            provisions=self.provisions,
        )

    @functools.cached_property
    def provisions(self) -> Provisions:
        """What can be made for a step before it starts."""
        return Provisions([DaskForSteps(self.store)])

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

    @functools.cached_property
    def offering(self) -> Offering:
        """The profiles, images and registries that an administrator has configured."""
        settings = self.settings
        return read_offering(settings.profiles, settings.images, settings.registries)

    @functools.cached_property
    def image_registries(self) -> ImageRegistries:
        from .image_registries import ImageRegistries

        return ImageRegistries(self.settings.asked_registries)

    @functools.cached_property
    def planner(self) -> Planner:
        return Planner(self.store, lambda sweep_id: self.sweeps.sources(sweep_id))

    @functools.cached_property
    def scheduling(self) -> Scheduling:
        from .schedules.scheduling import Scheduling  # Who has no schedules needs not wait for it.

        return Scheduling(self)

    @functools.cached_property
    def notifier(self) -> Notifier:
        from .notify.notifier import Notifier  # Who has no notifications needs not wait for it.

        return Notifier(self)

    @property
    def has_notifications(self) -> bool:
        return "notifier" in vars(self) or (self.store.folder / "notifications").is_dir()

    @property
    def has_schedules(self) -> bool:
        return "scheduling" in vars(self) or (self.store.folder / "schedules").is_dir()

    def make(
        self,
        request: Request,
        user: str | None = None,
        tell: Tell = lambda _: None,
        sources: SweepSources | None = None,
    ) -> Run:
        """A run that can be submitted; `tell` hears what is odd about it. Call it in a thread.

        It is made from the files of now, or from `sources`.
        """
        run = self.planner.make(request, user, tell, sources)
        self._require_approval(run)
        return run

    async def submit(self, run: Run) -> RunState:
        """Start it. Refused when its runtime would not run it as asked."""
        await self.refuse(run)
        return await self.engine.submit(run)

    async def refuse(self, run: Run) -> None:
        """Raise what keeps its runtime from running it, if anything does."""
        runtime = self.runtimes[run.runtime]
        raise_first_error(check_options(runtime, run.request.options))
        raise_first_error(self._image_problems(runtime, run.plan))
        raise_first_error(await runtime.check(run.plan))
        raise_first_error(await asyncio.to_thread(self.provisions.check, run.plan, runtime))

    async def create_sweep(
        self,
        request: Request,
        space: Mapping[str, Json],
        make: Callable[[Request], Run] | None = None,
        tell: Tell = lambda _: None,
        sources: SweepSources | None = None,
        **how: Any,
    ) -> str:
        """Start a sweep, `how` as `Sweeps.create` takes it; its id, that of the request if it
        has one. It is made from the files of now, or from `sources`.

        The run of the first point, made by `make`, has to be one that could be submitted, and
        those of all points have to be such that they can be made.
        Without `select`, the best run is told by itself where that is plain. `tell` hears what is
        odd about the first.
        """
        chance = {key: how[key] for key in ("mode", "samples", "seed") if key in how}
        first = points_of(space, **chance)[0]
        request = replace(request, sweep=request.sweep or new_id())
        at_first = replace(request, parameters={**request.parameters, **first})
        if sources is None:
            sources, files = await asyncio.to_thread(self.planner.take_sources, at_first)
        else:
            sources, files = await asyncio.to_thread(self.planner.use_sources, at_first, sources)
        run = await asyncio.to_thread(make or functools.partial(self.make, tell=tell), at_first)
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
            raise Missing(f"Run {run_id} has no step “{selection.node}”.", code="no-such-step")
        if selection.mode in ("only", "from", "upto") and selection.node is None:
            raise ConvectError(f"`{selection.mode}` needs a `node` to start from.")
        return replace(
            run.request,
            select=selection,
            of=None if selection.mode == "all" else run_id,
            use_cache=run.request.use_cache if use_cache is None else use_cache,
            sweep=None,
            endpoint=None,
            version=run_id if version == "run" else None,
        )

    async def check(self, request: Request) -> CheckedRequest:
        """What would keep this from running on its runtime, then what is odd; starts nothing."""
        runtime = self.runtimes[request.runtime]
        files = FileCache(Path(request.root))
        examined = await asyncio.to_thread(examine, request, files)
        if examined.errors:
            return CheckedRequest(examined.problems)
        plan = None
        try:
            plan = await asyncio.to_thread(plan_of, examined, request, files)
            found = await asyncio.to_thread(self._unapproved, request, plan)
            found = found or check_options(runtime, request.options) or await runtime.check(plan)
            found = [*self._image_problems(runtime, plan), *found]
            if Feature.IMAGE in runtime.features:
                found += await asyncio.to_thread(self.image_registries.problems, plan)
            provided = await asyncio.to_thread(self.provisions.check, plan, runtime)
            found = [*found, *provided]
            odd = await asyncio.to_thread(self._remarks, request, plan)
            reported = await asyncio.to_thread(reported_by, plan, files)
        except Missing:
            raise
        except ConvectError as error:
            refused = Problem("error", error.code, error.sentence, hint=error.hint)
            return CheckedRequest([refused, *examined.problems], plan)
        return CheckedRequest([*found, *examined.problems, *odd], plan, reported)

    def profile_settings(
        self, name: str | None, runtime: str, settings: Mapping[str, Json]
    ) -> dict[str, Json]:
        """The settings of a run by this profile, where there is one; what is set goes first."""
        if name is None:
            return dict(settings)
        profile = self.offering.profile(name)
        place = self.runtimes[runtime].place()
        if not profile.is_for(place):
            raise Refused(
                f"The profile {name} is not offered in namespace {place}.",
                code="not-offered",
                hint=f"Namespaces: {', '.join(profile.namespaces)}.",
            )
        given = settings_of(profile)
        both = ("resources",) if "resources" in given and "resources" in settings else ()
        return {**given, **settings, **{key: {**given[key], **settings[key]} for key in both}}

    def _image_problems(self, runtime: Runtime, plan: Plan) -> list[Problem]:
        if Feature.IMAGE not in runtime.features:
            return []
        return list(check_images(plan, self.offering.registries))

    def place_of_worker(self, request: Request) -> Json:
        """Where the function of a notebook is kept loaded: None is this machine, else the runtime
        with its settings. Refused where none can be."""
        from .runtimes.engine_pods import chosen_traits

        runtime = self.runtimes[request.runtime]
        if Feature.WORKERS in runtime.features:
            kind = type(runtime)
            traits = chosen_traits(runtime, kind)
            return {"name": runtime.name, "kind": kind.name, "traits": traits}
        if runtime.features & {Feature.IMAGE}:
            raise Refused(
                f"{runtime.display_name} keeps no functions loaded.",
                code="no-workers",
                hint="Make it callable on this machine or on Kubernetes.",
            )
        return None

    def _remarks(self, request: Request, plan: Plan) -> list[Problem]:
        """What one may want to know before it runs."""
        from .runs.drift import drift  # Who only runs something needs not wait for it.

        would_be = Run(new_id(), plan.name, time.time(), request.runtime, plan, request)
        return [*self._reused(would_be), *drift(self.store, would_be), *told_of_sharing(plan)]

    def _reused(self, run: Run) -> list[Problem]:
        """Which results of earlier runs would be reused."""
        if not any(step.cache for step in run.plan.steps):
            return []
        return [
            Problem(
                "info",
                "reused",
                f"The result of “{run.plan.step(step).name}” is reused from run "
                f"{source.partition('/')[0]}: nothing has changed since.",
                node=step,
            )
            for step, source in preview_reuse(self.store, run).items()
        ]

    def _require_approval(self, run: Run) -> None:
        """Components run here without a container only when somebody has looked at them."""
        if run.runtime == "local" and run.plan.components:
            self.catalog.approvals.require(run.plan)

    def _unapproved(self, request: Request, plan: Plan) -> list[Problem]:
        if request.runtime != "local" or not plan.components:
            return []
        from .catalog.approvals import refuse_unapproved

        return [
            Problem("error", refused.code, refused.sentence, node=step, hint=refused.hint)
            for step, component in self.catalog.approvals.missing(plan)
            for refused in [refuse_unapproved(component)]
        ]

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
        with self.health.guard("Removing what was made for steps that have ended"):
            await self.provisions.remove_left()

    async def close(self) -> None:
        """Let go; running steps continue."""
        made = vars(self)
        if "scheduling" in made:
            await self.scheduling.close()
        if "notifier" in made:
            await asyncio.to_thread(self.notifier.close)
        if "engine" in made:
            await self.engine.close()
        for runtime in self.runtimes.made():
            await runtime.close()
        if "store" in made:
            self.store.close()
        if "planner" in made:
            await asyncio.to_thread(self.planner.close)

    def prune(self, *, dry_run: bool = False) -> list[str]:
        """Delete what the settings do not want kept."""
        limits = self.settings
        if not (limits.keep_days or limits.keep_runs or limits.keep_bytes):
            if not dry_run:
                self.store.clean(self._live_snapshots())
            return []
        return self.store.prune(
            keep_days=limits.keep_days,
            keep_runs=limits.keep_runs,
            keep_bytes=limits.keep_bytes,
            dry_run=dry_run,
            live=self._live_snapshots(),
        )

    def _live_snapshots(self) -> Iterator[str]:
        """Those from which more runs will be made."""
        yield from self.sweeps.live_snapshots()
        if self.has_schedules:
            yield from self.scheduling.live_snapshots()
