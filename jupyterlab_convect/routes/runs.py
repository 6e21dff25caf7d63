"""Runs: start, find, look, change, stop, run again."""

from __future__ import annotations

from typing import Any, cast, get_args

from jupyter_server.auth.decorator import authorized
from tornado.web import authenticated

from ..archive import archive
from ..errors import ConvectError, Missing
from ..runs import environments, made, versions
from ..runs.index import Query
from ..runs.model import Selection, State
from .base import Polled, RunsHandler
from .requests import request_of

RESOURCE = "jupyterlab-convect:runs"
STATES = get_args(State)


class Runs(Polled):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self) -> None:
        page = await self.aside(self.workspace.store.find, self._query())
        self.answer(
            {
                "runs": page.runs,
                "total": page.total,
                "counts": page.counts,
                "exact": page.exact,
            }
        )

    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self) -> None:
        body, default = self.body("RequestBody"), self.workspace.settings.default_runtime
        await self.submit(await self.aside(request_of, body, self.root, default))

    def _query(self) -> Query:
        states = cast("tuple[State, ...]", tuple(self.get_query_arguments("state")))
        for state in states:
            if state not in STATES:
                raise ConvectError(
                    f"There is no state {state!r}.", hint=f"There is {', '.join(STATES)}."
                )
        return Query(
            states=states,
            name=self.text("name"),
            runtime=self.text("runtime"),
            labels=dict(map(_label, self.get_query_arguments("label"))),
            text=self.text("text"),
            path=self.text("path"),
            sweep=self.text("sweep"),
            since=self.number("since"),
            until=self.number("until"),
            sort=self.text("sort") or "-created",
            limit=self.whole("limit", 50, most=1000),
            offset=self.whole("offset", 0),
            ids=tuple(self.get_query_arguments("id")),
        )


class Run(Polled):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, run_id: str) -> None:
        await self.answer_run(run_id)

    @authenticated
    @authorized("write", resource=RESOURCE)
    async def patch(self, run_id: str) -> None:
        change: dict[str, Any] = self.body("EditBody")
        state = await self.aside(self.workspace.store.change, run_id, **change)
        run, _ = await self.aside(self.workspace.store.read, run_id)
        self.app.tell(run, state.seq, state.state)
        await self.answer_run(run_id)

    @authenticated
    @authorized("write", resource=RESOURCE)
    async def delete(self, run_id: str) -> None:
        run, state = await self.aside(self.workspace.store.read, run_id)
        await self.aside(self.workspace.store.delete, run_id)
        self.app.tell(run, state.seq + 1, "deleted")
        self.set_status(204)
        self.finish()


class Stop(RunsHandler):
    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self, run_id: str) -> None:
        step = self.body("StopBody").get("step")
        run, _ = await self.aside(self.workspace.store.read, run_id)
        if step is not None and not run.plan.steps_of(step):
            raise Missing(f"Run {run_id} has no step {step!r}.", code="no-such-step")
        await self.drive(self.workspace.engine.stop(run_id, step))
        await self.answer_run(run_id)


class Rerun(RunsHandler):
    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self, run_id: str) -> None:
        body = self.body("RerunBody")
        selection = Selection(body.get("mode", "all"), body.get("node"))
        version = body.get("version", "today")
        request = await self.aside(
            self.workspace.again, run_id, selection, body.get("use_cache"), version
        )
        await self.submit(request)


class Changes(RunsHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, run_id: str) -> None:
        store = self.workspace.store
        run, _ = await self.aside(store.read, run_id)
        found = await self.aside(versions.changes, store.snapshots, run)
        self.answer({"changes": versions.describe(found)})


class MadeFiles(RunsHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, run_id: str) -> None:
        self.answer(await self.aside(made.describe, self.workspace.store, run_id))

    @authenticated
    @authorized("write", resource=RESOURCE)
    async def post(self, run_id: str) -> None:
        """Put them into the project."""
        store = self.workspace.store
        replace = self.body("PutBody").get("replace", False)
        await self.aside(made.put_when_asked, store, run_id, replace=replace)
        run, state = await self.aside(store.read, run_id)
        self.app.tell(run, state.seq, state.state)
        self.answer(await self.aside(made.describe, store, run_id))


class Environment(RunsHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, run_id: str) -> None:
        store = self.workspace.store
        record = await self.aside(store.read, run_id)
        self.answer(await self.aside(environments.describe, store, record))


class Archive(RunsHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, run_id: str) -> None:
        run, _ = await self.aside(self.workspace.store.read, run_id)
        folder = self.workspace.store.run_folder(run.id)
        await self.stream(f"{run.id}.zip", archive(folder), "application/zip")


def _label(text: str) -> tuple[str, str]:
    key, mark, value = text.partition("=")
    if not (key and mark):
        raise ConvectError(f"A label is given as `key=value`, not {text!r}.")
    return key, value


routes = [
    ("runs", Runs),
    ("runs/([^/]+)", Run),
    ("runs/([^/]+)/stop", Stop),
    ("runs/([^/]+)/rerun", Rerun),
    ("runs/([^/]+)/changes", Changes),
    ("runs/([^/]+)/made", MadeFiles),
    ("runs/([^/]+)/environment", Environment),
    ("runs/([^/]+)/archive", Archive),
]
