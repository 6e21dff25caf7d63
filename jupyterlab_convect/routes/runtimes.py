"""Where runs run."""

from __future__ import annotations

from jupyter_server.auth.decorator import authorized
from tornado.web import authenticated

from ..errors import ConvectError
from ..pipeline.plan import Json, to_json
from ..workspace import Workspace
from .base import Handler
from .requests import request_of

RESOURCE = "jupyterlab-convect:runtimes"


class Runtimes(Handler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self) -> None:
        self.answer({"runtimes": await self.aside(describe_runtimes, self.workspace)})


class Check(Handler):
    @authenticated
    @authorized("write", resource=RESOURCE)
    async def post(self, name: str) -> None:
        body = self.body("RequestBody") | {"runtime": name}
        request = await self.aside(request_of, body, self.root)
        problems = await self.drive(self.workspace.check(request))
        metrics = await self.aside(self.workspace.metrics, request)
        self.answer({"problems": [to_json(problem) for problem in problems], "metrics": metrics})


def describe_runtimes(workspace: Workspace) -> list[dict[str, Json]]:
    return [_describe(workspace, name) for name in sorted(workspace.runtimes)]


def _describe(workspace: Workspace, name: str) -> dict[str, Json]:
    try:
        runtime = workspace.runtimes[name]
    except ConvectError as error:
        return {
            "name": name,
            "display_name": name,
            "features": [],
            "options_schema": {},
            "problem": error.sentence,
        }
    return {
        "name": name,
        "display_name": runtime.display_name,
        "features": sorted(feature.value for feature in runtime.features),
        "options_schema": runtime.options_schema(),
        "problem": None,
    }


routes = [("runtimes", Runtimes), ("runtimes/([^/]+)/check", Check)]
