"""Calls of endpoints: who has a token of the endpoint calls it, and sees its own calls alone.

Nothing here knows who is logged in to Jupyter, and no cookie helps: `convect serve` answers with
the same handlers, without a Jupyter server.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import secrets
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol, TypeVar

from jupyter_server.auth.decorator import allow_unauthenticated
from tornado.web import RequestHandler

from ..errors import ConvectError, Missing
from ..json_text import loads
from ..pipeline.plan import Json
from ..pools import LoopThread, run_in
from ..runs.attempt_files import executed_notebook
from ..runs.model import ENDED, GOOD, Run
from ..runs.store import Record
from ..services.calls import (
    LONGEST_WAIT,
    TooMany,
    answer,
    is_call_of,
    notebook_of,
    openapi_of,
    refuse_too_many,
    request_of_call,
    results_of,
    what_it_takes,
)
from ..services.endpoints import CallRate, Endpoint, EndpointStore, admits
from ..services.workers import served_function
from ..translation import in_chinese
from ..workspace import Workspace
from .base import encode, read_chunks
from .requests import kept

T = TypeVar("T")

LARGEST_CALL = 1 << 20
PAGE = Path(__file__).with_name("call.html")
SENTENCES = ("message", "hint", "reason")


class CallHost(Protocol):
    """What calls need of the process that answers them."""

    workspace: Workspace
    engine_thread: LoopThread
    call_rate: CallRate


class CallHandler(RequestHandler):
    @property
    def host(self) -> CallHost:
        host: CallHost = self.settings["jupyterlab_convect"]
        return host

    async def prepare(self) -> None:
        if not self.host.workspace.is_open:
            await self.drive(self.host.workspace.open())

    def check_xsrf_cookie(self) -> None:
        """Only the token counts, which no foreign page can send."""

    def set_default_headers(self) -> None:
        self.set_header("Content-Type", "application/json")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Cache-Control", "no-store")

    async def aside(self, work: Callable[..., T], /, *arguments: Any) -> T:
        return await run_in("reading", work, *arguments)

    async def drive(self, work: Coroutine[Any, Any, T]) -> T:
        return await self.host.engine_thread.run(work)

    async def endpoint(self, endpoint_id: str) -> Endpoint:
        """The endpoint, if the caller may call it. Nobody else learns whether it exists."""
        kind, _, token = self.request.headers.get("Authorization", "").partition(" ")
        try:
            found = await self.aside(EndpointStore(self.host.workspace.store).read, endpoint_id)
        except ConvectError:
            found = None
        if found is None or kind.lower() not in ("bearer", "token"):
            raise CallNotAllowed
        if not admits(found, token.strip()):
            raise CallNotAllowed
        return found

    def admit(self, endpoint: Endpoint) -> None:
        """Refuse a call while the endpoint is paused, or called too often."""
        if endpoint.paused:
            raise TooMany("This endpoint is paused.", seconds=60)
        if wait := self.host.call_rate.wait(endpoint):
            raise TooMany(f"This endpoint takes {endpoint.rate} calls per minute.", seconds=wait)

    async def call(self, endpoint: Endpoint, run_id: str) -> Record:
        """A call of this endpoint; other runs are not there for its callers."""
        missing = Missing(f"This endpoint has no call {run_id[:80]!r}.")
        try:
            record = await self.aside(self.host.workspace.store.read, run_id)
        except ConvectError:
            raise missing from None
        if not is_call_of(endpoint, record):
            raise missing
        return record

    def patience(self) -> float:
        """How many seconds the caller wants to wait for the end."""
        given = self.get_query_argument("wait", "0")
        try:
            seconds = float(given)
        except ValueError:
            seconds = math.nan
        if not seconds >= 0:
            raise ConvectError(f"`wait` must be a number of seconds, not {given[:80]!r}.")
        return min(seconds, LONGEST_WAIT)

    async def wait_for(self, record: Record, seconds: float) -> Record:
        """How it stands when it has ended, or after so many seconds. On the engine's loop."""
        if record.state.state in ENDED or not seconds:
            return record
        workspace = self.host.workspace
        with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
            return Record(record.run, await workspace.engine.wait(record.run.id, seconds))
        return workspace.store.read(record.run.id)

    async def tell(self, record: Record, status: int) -> None:
        self.set_status(status)
        store = self.host.workspace.store
        self.finish(encode(self.in_words(await self.aside(answer, store, record))))

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        error = kwargs.get("exc_info", (None, None))[1]
        facts: dict[str, Json] = {"code": "internal", "message": self._reason, "hint": None}
        if isinstance(error, ConvectError):
            facts = error.to_json()
            self.set_status(error.status)
        if isinstance(error, TooMany):
            self.set_header("Retry-After", str(math.ceil(error.seconds)))
        if isinstance(error, CallNotAllowed):
            self.set_header("WWW-Authenticate", "Bearer")
        self.finish(encode(self.in_words(facts)))

    def in_words(self, facts: dict[str, Json]) -> dict[str, Json]:
        """What is told, with its sentences in the language that the caller reads."""
        if not self.request.headers.get("Accept-Language", "").lower().startswith("zh"):
            return facts
        return {
            name: in_chinese(value) if name in SENTENCES and isinstance(value, str) else value
            for name, value in facts.items()
        }

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        if not isinstance(value, ConvectError):
            super().log_exception(typ, value, tb)


class CallNotAllowed(ConvectError):
    status = 401

    def __init__(self) -> None:
        super().__init__(
            "There is no such endpoint, or the token is not one of its own.",
            code="not-allowed",
            hint="Send it as `Authorization: Bearer <token>`.",
        )


class CallsHandler(CallHandler):
    @allow_unauthenticated
    async def get(self, _: str) -> None:
        """The page on which people try it, which asks for the token."""
        nonce = secrets.token_urlsafe(16)
        allowed = f"script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'"
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header(
            "Content-Security-Policy",
            f"default-src 'none'; {allowed}; img-src blob:; form-action 'none'; "
            "frame-ancestors 'self'",
        )
        page = await self.aside(PAGE.read_text, "utf-8")
        self.finish(page.replace("NONCE", nonce))

    @allow_unauthenticated
    async def post(self, endpoint_id: str) -> None:
        endpoint = await self.endpoint(endpoint_id)
        self.admit(endpoint)
        seconds = self.patience()
        run = await self.aside(self._make, endpoint, self._body())
        self.set_header("Location", f"{self.request.path.rstrip('/')}/runs/{run.id}")
        record = await self.drive(self._submit(run, seconds))
        state = record.state.state
        await self.tell(record, 202 if state not in ENDED else 200 if state in GOOD else 500)

    def _make(self, endpoint: Endpoint, body: Json) -> Run:
        workspace = self.host.workspace
        refuse_too_many(workspace.store, endpoint)
        return workspace.make(request_of_call(endpoint, what_it_takes(endpoint), body))

    async def _submit(self, run: Run, seconds: float) -> Record:
        state = await self.host.workspace.submit(run)
        return await self.wait_for(Record(run, state), seconds)

    def _body(self) -> Json:
        if len(self.request.body) > LARGEST_CALL:
            raise ConvectError(
                f"The body of a call is larger than {LARGEST_CALL >> 20} MiB.", code="too-large"
            )
        try:
            return loads(self.request.body or b"{}")
        except (ValueError, RecursionError) as error:
            raise ConvectError(f"The request is not JSON: {error}.") from None


class DescriptionHandler(CallHandler):
    @allow_unauthenticated
    async def get(self, endpoint_id: str) -> None:
        endpoint = await self.endpoint(endpoint_id)
        found = await self.aside(what_it_takes, endpoint)
        address = self.request.path.removesuffix("/openapi.json")
        function = await self.aside(served_function, endpoint)
        self.finish(encode(openapi_of(endpoint, found, address, function)))


class OneCallHandler(CallHandler):
    @allow_unauthenticated
    async def get(self, endpoint_id: str, run_id: str) -> None:
        endpoint = await self.endpoint(endpoint_id)
        record = await self.call(endpoint, run_id)
        seconds = self.patience()
        await self.tell(await self.drive(self.wait_for(record, seconds)), 200)


class StopCallHandler(CallHandler):
    @allow_unauthenticated
    async def post(self, endpoint_id: str, run_id: str) -> None:
        endpoint = await self.endpoint(endpoint_id)
        await self.call(endpoint, run_id)
        await self.drive(self.host.workspace.engine.stop(run_id))
        await self.tell(await self.call(endpoint, run_id), 202)


class CallNotebookHandler(CallHandler):
    @allow_unauthenticated
    async def get(self, endpoint_id: str, run_id: str) -> None:
        record = await self.call(await self.endpoint(endpoint_id), run_id)
        found = await self.aside(notebook_of, self.host.workspace.store, record)
        if found is None:
            raise Missing("This call has no executed notebook.")
        self.set_header("Content-Disposition", f'attachment; filename="{run_id}.ipynb"')
        self.finish(await self.aside(executed_notebook, found))


class CallFileHandler(CallHandler):
    @allow_unauthenticated
    async def get(self, endpoint_id: str, run_id: str, step: str, path: str) -> None:
        record = await self.call(await self.endpoint(endpoint_id), run_id)
        file = await self.aside(self._file, record, step, path)
        size = (await self.aside(file.stat)).st_size
        self.set_header("Content-Type", "application/octet-stream")
        self.set_header("Content-Length", str(size))
        self.set_header("Content-Disposition", "attachment")
        chunks = read_chunks(file, size)
        while (chunk := await self.aside(next, chunks, None)) is not None:
            self.write(chunk)
            await self.flush()
        self.finish()

    def _file(self, record: Record, step: str, path: str) -> Path:
        for each in results_of(self.host.workspace.store, record):
            if (each.step, each.path) == (step, path):
                return kept(each.attempt.folder / "files", path)
        raise Missing(f"There is no file {path!r}.")


routes = [
    (r"call/([^/]+)", CallsHandler),
    (r"call/([^/]+)/openapi.json", DescriptionHandler),
    (r"call/([^/]+)/runs/([^/]+)", OneCallHandler),
    (r"call/([^/]+)/runs/([^/]+)/stop", StopCallHandler),
    (r"call/([^/]+)/runs/([^/]+)/notebook", CallNotebookHandler),
    (r"call/([^/]+)/runs/([^/]+)/files/([^/]+)/(.+)", CallFileHandler),
]
