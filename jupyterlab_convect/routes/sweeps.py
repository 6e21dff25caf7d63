"""Sweeps: one request, run at many points."""

from __future__ import annotations

from typing import Any

from jupyter_server.auth.decorator import authorized
from tornado.web import authenticated

from .base import PolledHandler
from .requests import request_of, resendable

RESOURCE = "jupyterlab-convect:sweeps"


class SweepHandler(PolledHandler):
    async def answer_sweep(self, sweep_id: str, status: int = 200) -> None:
        view = await self.aside(self.workspace.sweeps.view, sweep_id)
        self.answer({**view, "request": resendable(view["request"], self.root)}, status)


class SweepsHandler(SweepHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self) -> None:
        sweeps = await self.aside(self.workspace.sweeps.all)
        offset, limit = self.whole("offset", 0), self.whole("limit", 50, most=1000)
        self.answer({"sweeps": sweeps[offset : offset + limit], "total": len(sweeps)})

    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self) -> None:
        body: dict[str, Any] = self.body("SweepBody")
        default = self.workspace.settings.default_runtime
        request = await self.aside(request_of, body.pop("request"), self.root, default)
        space = body.pop("space")
        sweep_id = await self.drive(self.workspace.create_sweep(request, space, self.make, **body))
        self.app.tell_sweep(sweep_id)
        await self.answer_sweep(sweep_id, 201)


class OneSweepHandler(SweepHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, sweep_id: str) -> None:
        await self.answer_sweep(sweep_id)

    @authenticated
    @authorized("write", resource=RESOURCE)
    async def patch(self, sweep_id: str) -> None:
        change = self.body("SweepEditBody")
        sweeps = self.workspace.sweeps
        if "name" in change:
            await self.aside(sweeps.rename, sweep_id, change["name"])
        if "select" in change:
            await self.aside(sweeps.mark, sweep_id, change["select"])
        self.app.tell_sweep(sweep_id)
        await self.answer_sweep(sweep_id)


class StopSweepHandler(SweepHandler):
    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self, sweep_id: str) -> None:
        await self.drive(self.workspace.sweeps.stop(sweep_id))
        await self.answer_sweep(sweep_id)


class RerunSweepHandler(SweepHandler):
    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self, sweep_id: str) -> None:
        await self.drive(self.workspace.sweeps.rerun(sweep_id))
        await self.answer_sweep(sweep_id)


class PointsHandler(SweepHandler):
    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self, sweep_id: str) -> None:
        body: dict[str, Any] = self.body("PointsBody")
        await self.drive(self.workspace.sweeps.add_points(sweep_id, body.pop("space"), **body))
        await self.answer_sweep(sweep_id)


routes = [
    ("sweeps", SweepsHandler),
    ("sweeps/([^/]+)", OneSweepHandler),
    ("sweeps/([^/]+)/stop", StopSweepHandler),
    ("sweeps/([^/]+)/rerun", RerunSweepHandler),
    ("sweeps/([^/]+)/points", PointsHandler),
]
