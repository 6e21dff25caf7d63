"""Schedules: requests with a clock or a trigger."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from jupyter_server.auth.decorator import authorized
from tornado.web import authenticated

from ..pipeline.plan import Json
from ..runs.model import Request
from ..runs.versions import describe
from . import PREFIX
from .base import PolledHandler
from .requests import request_of, resendable

RESOURCE = "jupyterlab-convect:schedules"


class ScheduleHandler(PolledHandler):
    async def answer_schedule(self, schedule_id: str, status: int = 200) -> None:
        view = await self.aside(self.workspace.scheduling.view, schedule_id)
        self.answer({**view, "request": resendable(view["request"], self.root)}, status)

    async def fields(self, body: dict[str, Json]) -> dict[str, Any]:
        """The fields of a checked body as `Scheduling` takes them."""
        from ..schedules.scheduling import clock_of, trigger_of

        given: dict[str, Any] = {
            key: item for key, item in body.items() if item is not None or key == "sweep"
        }
        if "request" in given:
            given["request"] = await self.aside(self._request, given["request"])
        if "clock" in given:
            given["clock"] = clock_of(given["clock"])
        if "trigger" in given:
            given["trigger"] = trigger_of(given["trigger"])
        return given

    def _request(self, body: dict[str, Json]) -> Request:
        return request_of(body, self.root, self.workspace.settings.default_runtime)

    def answer_started(self, found: str, *, is_sweep: bool) -> None:
        self.answer({"run": None if is_sweep else found, "sweep": found if is_sweep else None}, 201)


class SchedulesHandler(ScheduleHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self) -> None:
        if not await self.aside(lambda: self.workspace.has_schedules):
            self.answer({"schedules": [], "keeper": None})
            return
        scheduling = self.workspace.scheduling
        found = await self.aside(scheduling.all)
        self.answer({"schedules": found, "keeper": await self.aside(scheduling.who_keeps)})

    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self) -> None:
        given = await self.fields({"clock": {}, **self.body("ScheduleBody")})
        request, clock = given.pop("request"), given.pop("clock")
        adding = self.workspace.scheduling.add(
            request, clock, user=self.user, make=self.make, **given
        )
        schedule_id = await self.drive(adding)
        self.app.tell_schedule(schedule_id)
        await self.answer_schedule(schedule_id, 201)


class NextHandler(ScheduleHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def post(self) -> None:
        from ..schedules.schedule_views import upcoming
        from ..schedules.scheduling import clock_of

        clock = clock_of(self.body("ClockBody"))
        self.answer(await self.aside(upcoming, clock, time.time()))


class ImportSchedulesHandler(ScheduleHandler):
    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self) -> None:
        from jupyter_core.paths import jupyter_data_dir

        self.body("ImportSchedulesBody")
        work = self.workspace.scheduling.import_definitions(
            Path(jupyter_data_dir(), "scheduler.sqlite"),
            self.root,
            self.workspace.settings.default_runtime,
            self.user,
            self.make,
        )
        self.answer({"definitions": await self.drive(work)}, 201)


class OneScheduleHandler(ScheduleHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, schedule_id: str) -> None:
        await self.answer_schedule(schedule_id)

    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def patch(self, schedule_id: str) -> None:
        given = await self.fields(self.body("ScheduleEditBody"))
        await self.drive(self.workspace.scheduling.edit(schedule_id, given, self.make))
        self.app.tell_schedule(schedule_id)
        await self.answer_schedule(schedule_id)

    @authenticated
    @authorized("write", resource=RESOURCE)
    async def delete(self, schedule_id: str) -> None:
        await self.drive(self.workspace.scheduling.remove(schedule_id))
        self.app.tell_schedule(schedule_id)
        self.set_status(204)
        self.finish()


class LedgerHandler(ScheduleHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, schedule_id: str) -> None:
        limit, before = self.whole("limit", 50, most=5000), self.number("before")
        lines = await self.aside(self.workspace.scheduling.lines, schedule_id, limit, before)
        self.answer({"lines": lines})


class ScheduleChangesHandler(ScheduleHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, schedule_id: str) -> None:
        found = await self.aside(self.workspace.scheduling.changes, schedule_id)
        self.answer({"changes": describe(found)})


class CalendarHandler(ScheduleHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, schedule_id: str) -> None:
        days = await self.aside(self.workspace.scheduling.days, schedule_id)
        self.answer({"days": days})


class RunScheduleHandler(ScheduleHandler):
    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self, schedule_id: str) -> None:
        due, scheduling = self.body("ScheduleRunBody").get("due"), self.workspace.scheduling
        found = await self.drive(scheduling.run_now(schedule_id, due, self.make))
        self.app.tell_schedule(schedule_id)
        view = await self.aside(scheduling.view, schedule_id)
        self.answer_started(found, is_sweep=view["is_sweep"])


class ScheduleHookHandler(ScheduleHandler):
    """How to call it. Who may change the schedule may see its token."""

    @authenticated
    @authorized("write", resource=RESOURCE)
    async def get(self, schedule_id: str) -> None:
        await self._answer_hook(schedule_id)

    @authenticated
    @authorized("write", resource=RESOURCE)
    async def post(self, schedule_id: str) -> None:
        self.body("RenewTokenBody")
        await self.aside(self.workspace.scheduling.renew_token, schedule_id)
        await self._answer_hook(schedule_id, 201)

    async def _answer_hook(self, schedule_id: str, status: int = 200) -> None:
        hook = await self.aside(self.workspace.scheduling.hook, schedule_id)
        address = f"{self.base_url.rstrip('/')}{PREFIX}{hook['address']}"
        self.answer({**hook, "address": address}, status)


class BackfillHandler(ScheduleHandler):
    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self, schedule_id: str) -> None:
        body: dict[str, Any] = self.body("BackfillBody")
        filling = self.workspace.scheduling.backfill(schedule_id, make=self.make, **body)
        sweep_id = await self.drive(filling)
        self.app.tell_schedule(schedule_id)
        self.app.tell_sweep(sweep_id)
        self.answer_started(sweep_id, is_sweep=True)


routes = [
    ("schedules", SchedulesHandler),
    ("schedules/next", NextHandler),
    ("schedules/import", ImportSchedulesHandler),
    ("schedules/([^/]+)", OneScheduleHandler),
    ("schedules/([^/]+)/ledger", LedgerHandler),
    ("schedules/([^/]+)/changes", ScheduleChangesHandler),
    ("schedules/([^/]+)/calendar", CalendarHandler),
    ("schedules/([^/]+)/run", RunScheduleHandler),
    ("schedules/([^/]+)/backfill", BackfillHandler),
    ("schedules/([^/]+)/hook", ScheduleHookHandler),
]
