"""Pipelines and the files they are made of: nothing here starts or writes anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from jupyter_server.auth.decorator import authorized
from tornado.web import authenticated

from ..errors import ConvectError, Missing
from ..pipeline.describe import describe
from ..pipeline.discovery import discover
from ..pipeline.document import read_file
from ..pipeline.files import FileCache
from ..pipeline.foreign import import_file
from ..pipeline.plan import Json, Plan, to_json
from ..pipeline.problems import Problem
from ..pipeline.validate import validate
from ..planning import plan, read_pipeline
from ..runs.model import Request
from .base import Handler
from .requests import existing, inside

RESOURCE = "jupyterlab-convect:pipelines"


class DiscoverHandler(Handler):
    def update_api_activity(self) -> None:
        """An open editor asks all the time, which is no sign that somebody is at work."""

    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self) -> None:
        path = self.text("path")
        if path is None:
            raise ConvectError("Specify which file: `path`.")
        file = await self.aside(existing, self.root, path)
        self.answer((await self.aside(discover, file)).to_json())

    @authenticated
    @authorized("read", resource=RESOURCE)
    async def post(self) -> None:
        known = cast("dict[str, str | None]", self.body("DiscoverBody")["files"])
        self.answer({"files": await self.aside(changed_files, self.root, known)})


def changed_files(root: Path, known: dict[str, str | None]) -> dict[str, Json]:
    """What these files are, of those whose stamp is not the known one."""
    found: dict[str, Json] = {}
    for path, stamp in known.items():
        try:
            file = existing(root, path)
            status = file.stat()
            now = f"{status.st_mtime_ns}-{status.st_size}"
            if now != stamp:
                found[path] = {"stamp": now, "found": discover(file).to_json()}
        except (ConvectError, OSError) as error:
            if not isinstance(error, ConvectError):
                error = Missing(f"{path!r} cannot be read.")
            now = f"{error.code} {error.sentence}"
            if now != stamp:
                found[path] = {"stamp": now, "error": cast(Json, error.to_json())}
    return found


class PipelineHandler(Handler):
    def pipeline(self) -> tuple[Any, str | None, dict[str, Any] | None]:
        """The document of the body, where it lies, and the parameters. Call it `aside`."""
        body = self.body("PipelineBody")
        path, document = body.get("path"), body.get("document")
        if path is not None:
            path = inside(self.root, path)
        if document is None:
            if path is None:
                raise ConvectError("Specify which pipeline: `path` or `document`.")
            document = read_pipeline(existing(self.root, path))
        return document, path, body.get("parameters")


class ValidateHandler(PipelineHandler):
    @authenticated
    @authorized("write", resource=RESOURCE)
    async def post(self) -> None:
        document, path, parameters = await self.aside(self.pipeline)
        problems = await self.aside(
            validate, document, root=self.root, path=path, parameters=parameters
        )
        self.answer({"problems": [to_json(problem) for problem in problems]})


class DescribeHandler(PipelineHandler):
    @authenticated
    @authorized("write", resource=RESOURCE)
    async def post(self) -> None:
        document, path, _ = await self.aside(self.pipeline)
        self.answer(await self.aside(describe, document, root=self.root, path=path))


class ImportHandler(Handler):
    @authenticated
    @authorized("write", resource=RESOURCE)
    async def post(self) -> None:
        path = self.body("ImportBody")["path"]
        file = await self.aside(existing, self.root, path)
        data = await self.aside(read_file, file)
        document, report = await self.aside(import_file, data, file.name, path=path)
        self.answer({"document": document, "report": [to_json(problem) for problem in report]})


class ExportHandler(Handler):
    @authenticated
    @authorized("write", resource=RESOURCE)
    async def post(self) -> None:
        body = self.body("ExportBody")
        text, problems = await self.aside(self.exported, body)
        self.answer({"text": text, "problems": [to_json(problem) for problem in problems]})

    def exported(self, body: dict[str, Any]) -> tuple[str, list[Problem]]:
        # Seldom used, and not small.
        from ..runtimes.kfp.executor import TaskDefaults
        from ..runtimes.kfp.export import export_plan

        defaults = TaskDefaults(body.get("image") or "")
        return export_plan(plan_of(self.root, body), self.root, defaults)


def plan_of(root: Path, body: dict[str, Any]) -> Plan:
    """The plan of what a body names, as it is now."""
    path = body.get("path")
    request = Request(
        path=None if path is None else inside(root, path),
        root=str(root),
        document=body.get("document"),
        parameters=body.get("parameters") or {},
    )
    return plan(request, FileCache(root))


routes = [
    ("discover", DiscoverHandler),
    ("pipelines/validate", ValidateHandler),
    ("pipelines/describe", DescribeHandler),
    ("pipelines/import", ImportHandler),
    ("pipelines/export", ExportHandler),
]
