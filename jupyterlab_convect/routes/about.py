"""What this server is, where it runs things, what is free there; and the API in its own words."""

from __future__ import annotations

import shutil
import sys
import time
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from jupyter_server.auth.decorator import authorized
from tornado.web import authenticated

from .. import __version__
from ..errors import ConvectError
from ..pipeline.metrics import suggest
from ..pipeline.plan import Json, to_json
from ..workspace import Workspace
from .base import Handler, StoreHandler
from .pipelines import plan_of
from .requests import openapi_document, request_of

RESOURCE = "jupyterlab-convect:about"
RUNTIMES = "jupyterlab-convect:runtimes"

PACKAGES = (
    "dask-gateway",
    "ipykernel",
    "jupyter-collaboration",
    "jupyter-server",
    "jupyterlab",
    "kfp",
    "kubernetes",
    "papermill",
)


class AboutHandler(Handler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self) -> None:
        runtimes = await self.aside(describe_runtimes, self.workspace)
        self.answer(
            {
                "version": __version__,
                "runtimes": [
                    {key: runtime[key] for key in ("name", "display_name", "features", "problem")}
                    for runtime in runtimes
                ],
                "default_runtime": self.workspace.settings.default_runtime,
                "command": await self.aside(_command),
                "health": [asdict(trouble) for trouble in self.workspace.health.troubles()],
                "installed": {name: _installed(name) for name in PACKAGES},
            }
        )


class OpenApiHandler(Handler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self) -> None:
        self.answer(await self.aside(openapi_document))


def _command() -> str:
    """Where the command line is: it might not be on the path of a terminal."""
    beside = Path(sys.executable).with_name("convect")
    return str(beside) if beside.exists() else shutil.which("convect") or "convect"


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


class RuntimesHandler(Handler):
    @authenticated
    @authorized("read", resource=RUNTIMES)
    async def get(self) -> None:
        self.answer({"runtimes": await self.aside(describe_runtimes, self.workspace)})


class CheckHandler(Handler):
    @authenticated
    @authorized("write", resource=RUNTIMES)
    async def post(self, name: str) -> None:
        body = self.body("RequestBody") | {"runtime": name}
        request = await self.aside(request_of, body, self.root)
        checked = await self.drive(self.workspace.check(request))
        self.answer(
            {
                "problems": [to_json(problem) for problem in checked.problems],
                "metrics": {
                    "names": list(checked.reported.names),
                    "complete": checked.reported.complete,
                    "best": suggest(checked.reported),
                },
            }
        )


class ConnectionHandler(Handler):
    @authenticated
    @authorized("write", resource=RUNTIMES)
    async def post(self, name: str) -> None:
        runtime = await self.aside(self.workspace.runtimes.__getitem__, name)
        steps = await self.drive(runtime.test_connection())
        self.answer({"ok": all(step.ok for step in steps), "steps": [asdict(s) for s in steps]})


class PublishHandler(Handler):
    @authenticated
    @authorized("write", resource=RUNTIMES)
    async def post(self, name: str) -> None:
        body = self.body("PublishBody")
        runtime = await self.aside(self.workspace.runtimes.__getitem__, name)
        plan = await self.aside(plan_of, self.root, body)
        version = body.get("version") or time.strftime("%Y-%m-%d %H:%M:%S")
        self.answer(await self.drive(runtime.publish(plan, self.root, body["name"], version)))


class OthersRunsHandler(StoreHandler):
    @authenticated
    @authorized("read", resource=RUNTIMES)
    async def get(self, name: str) -> None:
        runtime = await self.aside(self.workspace.runtimes.__getitem__, name)
        limit = self.whole("limit", 50, most=200)
        found = await self.drive(runtime.others_runs(limit, self.text("after") or ""))
        found["runs"] = await self.aside(self.not_ours, found["runs"])
        self.answer(found)

    def not_ours(self, runs: list[dict[str, Json]]) -> list[dict[str, Json]]:
        """Those of our own are among the runs already."""
        known = {path.name for path in self.workspace.store.folder.iterdir()}
        return [run for run in runs if run["convect_run"] not in known]


class OthersRunHandler(Handler):
    @authenticated
    @authorized("read", resource=RUNTIMES)
    async def get(self, name: str, run_id: str) -> None:
        runtime = await self.aside(self.workspace.runtimes.__getitem__, name)
        self.answer(await self.drive(runtime.others_run(run_id)))


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


routes = [
    ("about", AboutHandler),
    ("openapi", OpenApiHandler),
    ("runtimes", RuntimesHandler),
    ("runtimes/([^/]+)/check", CheckHandler),
    ("runtimes/([^/]+)/connection", ConnectionHandler),
    ("runtimes/([^/]+)/pipelines", PublishHandler),
    ("runtimes/([^/]+)/runs", OthersRunsHandler),
    ("runtimes/([^/]+)/runs/([^/]+)", OthersRunHandler),
]
