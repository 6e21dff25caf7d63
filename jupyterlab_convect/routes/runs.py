"""Runs: start, find, look, change, stop, run again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast, get_args

from jupyter_server.auth.decorator import authorized
from tornado.web import authenticated

from ..errors import ConvectError, Missing
from ..pipeline.plan import Json
from ..runs import environments, made, versions
from ..runs.archive import archive
from ..runs.index import Query
from ..runs.model import Selection, State, ids_of
from ..runs.values import evaluate_in
from ..runs.views import items_view
from .base import PolledHandler, StoreHandler
from .requests import request_of, shown

RESOURCE = "jupyterlab-convect:runs"
STATES = get_args(State)


class RunsHandler(PolledHandler):
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
        return Query(
            states=_states(self.get_query_arguments("state")),
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


class PruneHandler(StoreHandler):
    @authenticated
    @authorized("write", resource=RESOURCE)
    async def post(self) -> None:
        store, limits = self.workspace.store, self.body("PruneBody")
        live = await self.aside(self.workspace.sweeps.live_snapshots)
        gone = await self.aside(store.prune, live=live, **limits)
        self.answer({"runs": gone})


class LoopHandler(PolledHandler):
    def page_of_items(self, run_id: str, loop_id: str) -> Callable[[], Json]:
        """Reads the items of a loop that the request asks for."""
        states = _states(self.get_query_arguments("state"))
        limit, offset = self.whole("limit", 100, most=1000), self.whole("offset", 0)
        worst_first = self.flag("worst_first")

        def page() -> Json:
            run, state = self.workspace.store.read(run_id)
            return items_view(run, state, loop_id, states, offset, limit, worst_first=worst_first)

        return page


class OneRunHandler(LoopHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, run_id: str) -> None:
        loop_id = self.text("loop")
        if loop_id is None:
            await self.answer_run(run_id)
            return
        items = self.page_of_items(run_id, loop_id)
        store = self.workspace.store

        def view() -> Json:
            run = shown(store, store.read(run_id), self.root)
            return {**run, "loop": items()} if loop_id in run["groups"] else run

        self.answer(await self.aside(view))

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


class StopRunHandler(StoreHandler):
    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self, run_id: str) -> None:
        step = self.body("StopBody").get("step")
        _, state = await self.aside(self.workspace.store.read, run_id)
        if step is not None and not ids_of(state, step):
            raise Missing(f"Run {run_id} has no step “{step}”.", code="no-such-step")
        await self.drive(self.workspace.engine.stop(run_id, step))
        await self.answer_run(run_id)


class RerunHandler(StoreHandler):
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


class ChangesHandler(StoreHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, run_id: str) -> None:
        store = self.workspace.store
        run, _ = await self.aside(store.read, run_id)
        found = await self.aside(versions.changes, store.snapshots, run)
        self.answer({"changes": versions.describe(found)})


class EvaluateHandler(StoreHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, run_id: str) -> None:
        text = self.text("expression") or ""
        run, state = await self.aside(self.workspace.store.read, run_id)
        loop, runs_anyway = self.text("loop"), self.flag("runs_anyway")
        self.answer(await self.aside(evaluate_in, run, state, text, loop, runs_anyway=runs_anyway))


def _states(named: list[str]) -> tuple[State, ...]:
    for state in named:
        if state not in STATES:
            raise ConvectError(
                f"There is no state {state!r}.", hint=f"Available states: {', '.join(STATES)}."
            )
    return cast("tuple[State, ...]", tuple(named))


class ItemsHandler(LoopHandler):
    """The items of a loop, a page at a time."""

    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, run_id: str, loop_id: str) -> None:
        self.answer(await self.aside(self.page_of_items(run_id, loop_id)))


class MadeFilesHandler(StoreHandler):
    """The files that a run left, a page at a time."""

    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, run_id: str) -> None:
        limit, offset = self.whole("limit", 1000, most=1000), self.whole("offset", 0)
        step, to_put = self.text("step"), self.flag("to_put")

        def page() -> Json:
            found = made.describe(self.workspace.store, run_id)
            files = [*filter(made.is_to_put, found["files"])] if to_put else found["files"]
            files.sort(key=lambda file: file["step"] != step)
            return {**found, "files": files[offset : offset + limit]}

        self.answer(await self.aside(page))

    @authenticated
    @authorized("write", resource=RESOURCE)
    async def post(self, run_id: str) -> None:
        """Put them into the project; those that stay with the run are the first of the answer."""
        store = self.workspace.store
        replace = self.body("PutBody").get("replace", False)
        await self.aside(made.put_when_asked, store, run_id, replace=replace)
        run, state = await self.aside(store.read, run_id)
        self.app.tell(run, state.seq, state.state)
        found = await self.aside(made.describe, store, run_id)
        files = sorted(found["files"], key=lambda file: file["path"] not in found["kept"])
        self.answer({**found, "files": files[:1000]})


class EnvironmentHandler(StoreHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, run_id: str) -> None:
        store = self.workspace.store
        record = await self.aside(store.read, run_id)
        self.answer(await self.aside(environments.describe, store, record))


class ArchiveHandler(StoreHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, run_id: str) -> None:
        run, state = await self.aside(self.workspace.store.read, run_id)
        folder = self.workspace.store.run_folder(run.id)
        await self.stream(f"{state.name} {run.id}.zip", archive(folder), "application/zip")


def _label(text: str) -> tuple[str, str]:
    key, mark, value = text.partition("=")
    if not (key and mark):
        raise ConvectError(f"A label is given as `key=value`, not {text!r}.")
    return key, value


routes = [
    ("runs", RunsHandler),
    ("runs/prune", PruneHandler),
    ("runs/([^/]+)", OneRunHandler),
    ("runs/([^/]+)/stop", StopRunHandler),
    ("runs/([^/]+)/rerun", RerunHandler),
    ("runs/([^/]+)/changes", ChangesHandler),
    ("runs/([^/]+)/evaluate", EvaluateHandler),
    ("runs/([^/]+)/items/([^/]+)", ItemsHandler),
    ("runs/([^/]+)/made", MadeFilesHandler),
    ("runs/([^/]+)/environment", EnvironmentHandler),
    ("runs/([^/]+)/archive", ArchiveHandler),
]
