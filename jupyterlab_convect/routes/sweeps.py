"""Sweeps: one request, run at many points."""

from __future__ import annotations

from typing import Any

from jupyter_server.auth.decorator import authorized
from tornado.web import authenticated

from .base import Polled
from .requests import request_of, resendable

RESOURCE = "jupyterlab-convect:sweeps"


class SweepHandler(Polled):
    async def answer_sweep(self, sweep_id: str, status: int = 200) -> None:
        view = await self.aside(self.workspace.sweeps.view, sweep_id)
        self.answer({**view, "request": resendable(view["request"], self.root)}, status)


class Sweeps(SweepHandler):
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


class Sweep(SweepHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, sweep_id: str) -> None:
        await self.answer_sweep(sweep_id)

    @authenticated
    @authorized("write", resource=RESOURCE)
    async def patch(self, sweep_id: str) -> None:
        change = self.body("SweepEditBody")
        await self.aside(self.workspace.sweeps.mark, sweep_id, change["select"])
        self.app.tell_sweep(sweep_id)
        await self.answer_sweep(sweep_id)


class Stop(SweepHandler):
    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self, sweep_id: str) -> None:
        await self.drive(self.workspace.sweeps.stop(sweep_id))
        await self.answer_sweep(sweep_id)


class Rerun(SweepHandler):
    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self, sweep_id: str) -> None:
        await self.drive(self.workspace.sweeps.rerun(sweep_id))
        await self.answer_sweep(sweep_id)


class Points(SweepHandler):
    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self, sweep_id: str) -> None:
        body: dict[str, Any] = self.body("PointsBody")
        await self.drive(self.workspace.sweeps.add_points(sweep_id, body.pop("space"), **body))
        await self.answer_sweep(sweep_id)


routes = [
    ("sweeps", Sweeps),
    ("sweeps/([^/]+)", Sweep),
    ("sweeps/([^/]+)/stop", Stop),
    ("sweeps/([^/]+)/rerun", Rerun),
    ("sweeps/([^/]+)/points", Points),
]
