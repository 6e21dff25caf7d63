"""What the steps of a run left behind: logs, events, notebooks, files."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from jupyter_server.auth.decorator import authorized
from tornado.web import authenticated

from .. import results
from ..results import Results
from ..runs.store import Record
from .base import Polled
from .paths import kept

RESOURCE = "jupyterlab-convect:runs"
MOST = 1 << 22


class StepHandler(Polled):
    async def results(self, run_id: str, step: str, attempt: str) -> Results:
        return (await self.record_and_results(run_id, step, attempt))[1]

    async def record_and_results(
        self, run_id: str, step: str, attempt: str
    ) -> tuple[Record, Results]:
        store = self.workspace.store
        record = await self.aside(store.read, run_id)
        return record, await self.aside(results.results_of, store, record, step, int(attempt))


class Log(StepHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, run_id: str, step: str, attempt: str) -> None:
        found = await self.results(run_id, step, attempt)
        if self.flag("download"):
            log = kept(found.folder, "log.txt")
            await self.stream_file(log, f"{run_id}-{step}-{attempt}.log")
            return
        offset, limit = self.whole("offset", 0), self.whole("limit", results.LIMIT, most=MOST)
        if last := self.whole("last", 0, most=MOST):
            offset = await self.aside(results.log_end, found, last)
        chunk = await self.drive(self.workspace.log(found, offset, max(limit, 4)))
        self.answer(asdict(chunk))


class Events(StepHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, run_id: str, step: str, attempt: str) -> None:
        found = await self.results(run_id, step, attempt)
        offset, limit = self.whole("offset", 0), self.whole("limit", results.LIMIT, most=MOST)
        chunk = await self.aside(results.read_events, found, offset, max(limit, 1))
        self.answer(asdict(chunk))


class Notebook(StepHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, run_id: str, step: str, attempt: str) -> None:
        record, found = await self.record_and_results(run_id, step, attempt)
        if self.flag("source"):
            data = await self.aside(results.source_notebook, found, Path(record.run.request.root))
        else:
            data = await self.aside(results.executed_notebook, found)
        if self.flag("download"):
            await self.stream(f"{run_id}-{step}.ipynb", iter((data,)))
        else:
            self.finish(data)


class Source(StepHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, run_id: str, step: str, attempt: str) -> None:
        found = await self.results(run_id, step, attempt)
        self.answer({"text": await self.aside(results.source_text, found)})


class Manifest(StepHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, run_id: str, step: str, attempt: str) -> None:
        found = await self.results(run_id, step, attempt)
        self.answer(
            {
                "manifest": await self.aside(results.manifest, found),
                "cluster": await self.aside(results.cluster_record, found),
            }
        )


class Files(StepHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, run_id: str, step: str, attempt: str) -> None:
        found = await self.results(run_id, step, attempt)
        self.answer({"files": await self.aside(results.list_files, found)})


class File(StepHandler):
    place = "files"

    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, run_id: str, step: str, attempt: str, path: str) -> None:
        found = await self.results(run_id, step, attempt)
        file = await self.aside(kept, found.folder / self.place, path)
        await self.stream_file(file, file.name)


class MadeFile(File):
    place = "made"


ATTEMPT = r"runs/([^/]+)/steps/([^/]+)/([0-9]{1,9})"

routes = [
    (f"{ATTEMPT}/log", Log),
    (f"{ATTEMPT}/events", Events),
    (f"{ATTEMPT}/notebook", Notebook),
    (f"{ATTEMPT}/source", Source),
    (f"{ATTEMPT}/manifest", Manifest),
    (f"{ATTEMPT}/files", Files),
    (f"{ATTEMPT}/files/(.+)", File),
    (f"{ATTEMPT}/made/(.+)", MadeFile),
]
