"""What the steps of a run left behind: logs, events, notebooks, files."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from jupyter_server.auth.decorator import authorized
from tornado.web import authenticated

from ..runs import attempt_files, replicas
from ..runs.attempt_files import AttemptFiles
from ..runs.store import Record
from .base import PolledHandler
from .requests import kept

RESOURCE = "jupyterlab-convect:runs"
MOST = 1 << 22


class StepHandler(PolledHandler):
    async def results(self, run_id: str, step: str, attempt: str) -> AttemptFiles:
        return (await self.record_and_results(run_id, step, attempt))[1]

    async def record_and_results(
        self, run_id: str, step: str, attempt: str
    ) -> tuple[Record, AttemptFiles]:
        store = self.workspace.store
        record = await self.aside(store.read, run_id)
        return record, await self.aside(attempt_files.files_of, store, record, step, int(attempt))


class LogHandler(StepHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, run_id: str, step: str, attempt: str) -> None:
        found = await self.results(run_id, step, attempt)
        log, title = found.folder / attempt_files.LOG, f"{run_id}-{step}-{attempt}"
        if self.get_query_argument("replica", None) is not None:
            rank = self.whole("replica", 0)
            log, title = await self.aside(replicas.log_of, found, rank), f"{title}-{rank}"
        if self.flag("download"):
            path = log.relative_to(found.folder).as_posix()
            await self.stream_file(kept(found.folder, path), f"{title}.log")
            return
        offset, limit = self.whole("offset", 0), self.whole("limit", attempt_files.LIMIT, most=MOST)
        if last := self.whole("last", 0, most=MOST):
            offset = await self.aside(attempt_files.log_end, log, last)
        chunk = await self.aside(attempt_files.read_log, found, offset, max(limit, 4), log)
        self.answer(asdict(chunk))


class ReplicasHandler(StepHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, run_id: str, step: str, attempt: str) -> None:
        found = await self.results(run_id, step, attempt)
        listed = await self.aside(replicas.list_replicas, found)
        self.answer({"replicas": listed, "complete": found.ended})


class EventsHandler(StepHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, run_id: str, step: str, attempt: str) -> None:
        found = await self.results(run_id, step, attempt)
        offset, limit = self.whole("offset", 0), self.whole("limit", attempt_files.LIMIT, most=MOST)
        chunk = await self.aside(attempt_files.read_events, found, offset, max(limit, 1))
        if self.get_query_argument("replica", None) is not None:
            rank = self.whole("replica", 0)
            await self.aside(replicas.need_replica, found, rank)
            chunk.events[:] = [event for event in chunk.events if replicas.is_of(event, rank)]
        self.answer(asdict(chunk))


class NotebookHandler(StepHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, run_id: str, step: str, attempt: str) -> None:
        record, found = await self.record_and_results(run_id, step, attempt)
        if self.flag("source"):
            data = await self.aside(
                attempt_files.source_notebook, found, Path(record.run.request.root)
            )
        else:
            data = await self.aside(attempt_files.executed_notebook, found)
        if self.flag("download"):
            await self.stream(f"{run_id}-{step}.ipynb", iter((data,)))
        else:
            self.finish(data)


class SourceHandler(StepHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, run_id: str, step: str, attempt: str) -> None:
        found = await self.results(run_id, step, attempt)
        self.answer({"text": await self.aside(attempt_files.source_text, found)})


class ManifestHandler(StepHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, run_id: str, step: str, attempt: str) -> None:
        found = await self.results(run_id, step, attempt)
        self.answer(
            {
                "manifest": await self.aside(attempt_files.manifest, found),
                "cluster": await self.aside(attempt_files.cluster_record, found),
            }
        )


class FilesHandler(StepHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, run_id: str, step: str, attempt: str) -> None:
        found = await self.results(run_id, step, attempt)
        self.answer({"files": await self.aside(attempt_files.list_files, found)})


class FileHandler(StepHandler):
    subfolder = "files"

    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, run_id: str, step: str, attempt: str, path: str) -> None:
        found = await self.results(run_id, step, attempt)
        file = await self.aside(kept, found.folder / self.subfolder, path)
        await self.stream_file(file, file.name)


class MadeFileHandler(FileHandler):
    subfolder = "made"


ATTEMPT = r"runs/([^/]+)/steps/([^/]+)/([0-9]{1,9})"

routes = [
    (f"{ATTEMPT}/log", LogHandler),
    (f"{ATTEMPT}/replicas", ReplicasHandler),
    (f"{ATTEMPT}/events", EventsHandler),
    (f"{ATTEMPT}/notebook", NotebookHandler),
    (f"{ATTEMPT}/source", SourceHandler),
    (f"{ATTEMPT}/manifest", ManifestHandler),
    (f"{ATTEMPT}/files", FilesHandler),
    (f"{ATTEMPT}/files/(.+)", FileHandler),
    (f"{ATTEMPT}/made/(.+)", MadeFileHandler),
]
