"""The server extension: configuration and wiring, nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NoReturn

from jupyter_server.extension.application import ExtensionApp
from jupyter_server.serverapp import ServerApp

from .background import forever
from .errors import ConvectError
from .events import RUN, SCHEDULE, SCHEMAS, SWEEP, Coalesced
from .pools import LoopThread, run_in
from .routes import all_routes
from .runs.change_feed import OtherProcesses
from .runs.model import ENDED, Run, State
from .services.endpoints import CallRate
from .services.on_demand import OnDemandServices
from .services.store import ServiceStore
from .settings import Settings
from .workspace import Workspace

ACTIVITY_PAUSE = 30.0
RESUME_PAUSE = 10.0
OTHERS_PAUSE = 1.0
PRUNE_PAUSE = 3600.0
CATALOG_PAUSE = 60.0
SCHEDULES_PAUSE = 1.0
NOTIFY_PAUSE = 2.0
OFFER_PAUSE = 3600.0
STOP_PATIENCE = 10.0
"""Seconds that a stopping server waits until the runs are released."""


class Convect(ExtensionApp, Settings):
    """Runs notebooks, scripts and pipelines; hosts the engine while the server is up."""

    name = "jupyterlab_convect"
    extension_url = "/lab"
    load_other_extensions = True

    workspace: Workspace

    def initialize_settings(self) -> None:
        assert self.serverapp is not None
        self.workspace = Workspace(self, log=self.log)
        self._events = Coalesced(self._emit)
        self._here: set[str] = set()
        self._hears = False
        self._told: dict[str, tuple[int, str]] = {}
        """What was told last of the runs that changed lately."""
        self._lasting: list[asyncio.Task[NoReturn] | Future[NoReturn]] = []
        self.engine_thread = LoopThread("convect-engine")
        """Where the engine and the runtimes live: nothing of them runs on the server's loop."""
        self.call_rate = CallRate()
        self._on_demand: OnDemandServices | None = None
        assert self.serverapp.event_logger is not None
        for schema in SCHEMAS:
            self.serverapp.event_logger.register_event_schema(schema)

    def initialize_handlers(self) -> None:
        self.handlers.extend(all_routes())

    @property
    def root(self) -> Path:
        """The folder that every path of the REST API starts from."""
        assert self.serverapp is not None
        contents = self.serverapp.contents_manager
        return Path(getattr(contents, "root_dir", "") or self.serverapp.root_dir).expanduser()

    async def _start_jupyter_server_extension(self, serverapp: ServerApp) -> None:
        self._loop = asyncio.get_running_loop()
        self.url = self.url or serverapp.public_url
        self._lasting = [
            asyncio.create_task(self._forever("Reporting activity", self._report_activity)),
            self.engine_thread.begin(self._forever("Looking for abandoned runs", self._resume)),
            self.engine_thread.begin(
                self._forever("Looking for runs of other processes", self._look_at_others)
            ),
            self.engine_thread.begin(self._forever("Keeping schedules", self._keep_schedules)),
            self.engine_thread.begin(self._forever("Sending notifications", self._notify)),
            self.engine_thread.begin(self._forever("Deleting old runs", self._prune)),
            self.engine_thread.begin(self._forever("Refreshing catalogs", self._refresh_catalogs)),
            self.engine_thread.begin(self._forever("Offering services", self._offer_services)),
        ]

    async def stop_extension(self) -> None:
        if self.engine_thread.is_closed:
            return
        for work in self._lasting:
            work.cancel()
        if self._on_demand is not None:
            self._on_demand.end()
        try:
            await asyncio.wait_for(self.engine_thread.run(self.workspace.close()), STOP_PATIENCE)
        except asyncio.TimeoutError:
            # A disk or a cluster does not answer. The next process to look picks up the runs.
            self.log.warning("The runs could not be released within %g s.", STOP_PATIENCE)
        self.engine_thread.close()

    def _forever(
        self, name: str, work: Callable[[], Awaitable[object]]
    ) -> Coroutine[Any, Any, NoReturn]:
        return forever(name, work, self.workspace.health)

    def current_activity(self) -> dict[str, int] | None:
        """Keeps the server from shutting itself down under runs that run on this machine."""
        return {"runs": len(self._here)} if self._here else None

    def tell(self, run: Run, seq: int, state: State | str) -> None:
        """Let the open pages know that a run changed. Call it on the server's event loop."""
        self._told[run.id] = (seq, state)
        is_end = state in (*ENDED, "deleted")
        data = {"run": run.id, "seq": seq, "state": state}
        self._events.tell(RUN, run.id, data, is_end)
        if run.runtime == "local" and not is_end:
            self._here.add(run.id)
        else:
            self._here.discard(run.id)
        if run.request.sweep and state != "deleted":
            self.tell_sweep(run.request.sweep)

    def _hear(self, run_id: str, seq: int, state: State) -> None:
        """What the engine calls, in its own thread."""
        run = self.workspace.store.read(run_id).run
        self._loop.call_soon_threadsafe(self.tell, run, seq, state)

    def tell_sweep(self, sweep_id: str) -> None:
        self._events.tell(SWEEP, sweep_id, {"sweep": sweep_id})

    def tell_schedule(self, schedule_id: str) -> None:
        self._events.tell(SCHEDULE, schedule_id, {"schedule": schedule_id})

    def _emit(self, schema: str, data: dict[str, Any]) -> None:
        assert self.serverapp is not None
        assert self.serverapp.event_logger is not None
        self.serverapp.event_logger.emit(schema_id=schema, data=data)

    async def _resume(self) -> None:
        if not self._hears:
            self.workspace.engine.on_change(self._hear)
            self._hears = True
        await self.workspace.resume()
        await asyncio.sleep(RESUME_PAUSE)

    async def _look_at_others(self) -> None:
        """Tell of runs that a terminal or another server drives, which nobody tells this one."""
        if self._hears:
            changed = await run_in("watching", self._others.look)
            recent = self._others.recent
            self._told = {run_id: told for run_id, told in self._told.items() if run_id in recent}
            for run_id in changed:
                with contextlib.suppress(ConvectError):
                    run, state = await run_in("watching", self.workspace.store.read, run_id)
                    if self._told.get(run_id) != (state.seq, state.state):
                        self._loop.call_soon_threadsafe(self.tell, run, state.seq, state.state)
        await asyncio.sleep(OTHERS_PAUSE)

    async def _keep_schedules(self) -> None:
        """Offer to keep the clocks of this user's schedules, once there are any."""
        if self._hears and self.workspace.has_schedules:
            keeper = self.workspace.scheduling.keeper("server", self._hear_schedule)
            await keeper.look()
        await asyncio.sleep(SCHEDULES_PAUSE)

    async def _notify(self) -> None:
        """Tell people about runs and schedules, once somebody wants it."""
        if self._hears and self.workspace.has_notifications:
            await self.workspace.notifier.look()
        await asyncio.sleep(NOTIFY_PAUSE)

    def _hear_schedule(self, schedule_id: str) -> None:
        self._loop.call_soon_threadsafe(self.tell_schedule, schedule_id)

    @functools.cached_property
    def _others(self) -> OtherProcesses:
        return OtherProcesses(self.workspace.store)

    async def _report_activity(self) -> None:
        """A hub culls servers that look idle, and with them what runs there."""
        assert self.serverapp is not None
        times = self.serverapp.web_app.settings.setdefault("last_activity_times", {})
        if self._here:
            times[self.name] = datetime.now(timezone.utc)
        await asyncio.sleep(ACTIVITY_PAUSE)

    async def _offer_services(self) -> None:
        """Have kernels, terminals and steps find what is started when they first ask for it."""
        if self._on_demand is None:
            offered = OnDemandServices(ServiceStore(self.workspace.store))
            await run_in("starting", offered.begin)
            self._on_demand = offered
        await asyncio.sleep(OFFER_PAUSE)

    async def _prune(self) -> None:
        await asyncio.to_thread(self.workspace.prune)
        await asyncio.sleep(PRUNE_PAUSE)

    async def _refresh_catalogs(self) -> None:
        """Look for changes in the catalogs that want it; users take them by choice."""
        await asyncio.sleep(CATALOG_PAUSE)
        await run_in("refreshing", lambda: self.workspace.catalog.refresh_due())
