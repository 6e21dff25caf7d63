"""What every handler shares: the workspace, JSON in and out, and the one mapping of errors."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Coroutine, Iterator
from http.client import responses
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar
from urllib.parse import quote

from jupyter_server.base.handlers import APIHandler
from tornado.web import HTTPError

from ..errors import ConvectError
from ..json_text import dumps_for_floats, loads
from ..pipeline.plan import Json
from ..pools import run_in
from ..runs.model import Request, Run
from ..runs.store import Record
from ..safe_files import open_regular
from ..workspace import Workspace
from .requests import check_body, inside, shown

if TYPE_CHECKING:
    from ..app import Convect

T = TypeVar("T")

BYTES = "application/octet-stream"
CHUNK = 1 << 18
LARGEST_BODY = 32 << 20
"""Bytes of a request: the largest pipeline there may be, and what goes with it."""

CODES = {400: "malformed", 403: "forbidden", 404: "missing", 405: "no-such-verb", 413: "too-large"}

LOGGED_OUT = ("logged-out", "You are not logged in.", "Log in, or send the token of the server.")


class Handler(APIHandler):
    """Verbs of subclasses carry `@authenticated` and `@authorized` with their own resource."""

    @property
    def app(self) -> Convect:
        app: Convect = self.settings["jupyterlab_convect"]
        return app

    @property
    def workspace(self) -> Workspace:
        return self.app.workspace

    @property
    def root(self) -> Path:
        """The folder that every path of a request starts from."""
        return self.app.root

    @property
    def user(self) -> str | None:
        """Who asks; None when the server does not know its users by name."""
        user = self.current_user
        return None if user.name.startswith("Anonymous ") else user.username

    def body(self, kind: str) -> dict[str, Json]:
        """The request's JSON, checked against the schema `kind` of the OpenAPI document."""
        if len(self.request.body) > LARGEST_BODY:
            raise ConvectError(
                f"The request is larger than {LARGEST_BODY >> 20} MiB.", code="too-large"
            )
        try:
            value = loads(self.request.body or b"{}", constant=_refuse_constant)
            json.dumps(value, ensure_ascii=False).encode()  # Refuses lone surrogates.
        except (ValueError, RecursionError) as error:
            raise ConvectError(f"The request is not JSON: {error}.") from None
        check_body(value, kind)
        checked: dict[str, Json] = value
        return checked

    def text(self, name: str) -> str | None:
        """A query argument; empty is as good as missing."""
        return self.get_query_argument(name, None) or None

    def flag(self, name: str) -> bool:
        """Whether a query argument is there and does not say no."""
        return self.get_query_argument(name, "0").lower() not in ("0", "false", "no")

    def whole(self, name: str, default: int, *, most: int | None = None) -> int:
        """A query argument that is a number from 0 to `most`."""
        given = self.text(name)
        if given is None:
            return default
        if not (given.isascii() and given.isdigit() and len(given) < 19):
            raise ConvectError(f"`{name}` must be a whole number, not {given!r}.")
        return int(given) if most is None else min(int(given), most)

    def number(self, name: str) -> float | None:
        given = self.text(name)
        try:
            number = None if given is None else float(given)
        except ValueError:
            number = math.nan
        if number is not None and math.isnan(number):
            raise ConvectError(f"`{name}` must be a number, not {given!r}.")
        return number

    def make(self, request: Request) -> Run:
        """A run of what was asked, all of whose files lie inside its root. Call it `aside`."""
        run = self.workspace.make(request, self.user)
        for step in run.plan.steps:
            for path in (step.path, *(source.path for source in step.dependencies)):
                if path is not None:
                    inside(Path(request.root), path)
        for group in run.plan.groups:
            if group.path is not None:
                inside(Path(request.root), group.path)
        return run

    async def submit(self, request: Request) -> None:
        """Start a run and answer with it."""
        run = await self.aside(self.make, request)
        state = await self.drive(self.workspace.submit(run))
        await self._answer_record(Record(run, state), 201)

    async def answer_run(self, run_id: str) -> None:
        record = await self.aside(self.workspace.store.read, run_id)
        await self._answer_record(record)

    async def _answer_record(self, record: Record, status: int = 200) -> None:
        self.answer(await self.aside(shown, self.workspace.store, record, self.root), status)

    async def aside(self, work: Callable[..., T], /, *arguments: Any, **keywords: Any) -> T:
        """Do blocking work without holding up the server."""
        return await run_in("reading", work, *arguments, **keywords)

    async def drive(self, work: Coroutine[Any, Any, T]) -> T:
        """Have work done where the engine and the runtimes live."""
        return await self.app.engine_thread.run(work)

    def answer(self, value: Json, status: int = 200) -> None:
        self.set_status(status)
        self.finish(encode(value))

    async def stream(self, name: str, chunks: Iterator[bytes], kind: str = BYTES) -> None:
        """Send a file piece by piece, in a way that no browser shows or runs it."""
        self.set_header("Content-Type", kind)
        self.set_header("Content-Disposition", f"attachment; filename*=UTF-8''{quote(name)}")
        self.set_header("X-Content-Type-Options", "nosniff")
        while (chunk := await self.aside(next, chunks, None)) is not None:
            if chunk:
                self.write(chunk)
                await self.flush()
        self.finish(set_content_type=kind)

    async def stream_file(self, file: Path, name: str) -> None:
        size = (await self.aside(file.stat)).st_size
        self.set_header("Content-Length", str(size))
        await self.stream(name, read_chunks(file, size))

    @property
    def content_security_policy(self) -> str:
        return f"{super().content_security_policy}; sandbox"

    def send_error(self, status_code: int = 500, **kwargs: Any) -> None:
        error = _error(kwargs)
        super().send_error(
            error.status if isinstance(error, ConvectError) else status_code, **kwargs
        )

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        error = _error(kwargs)
        if isinstance(error, ConvectError):
            self.answer(error.to_json(), status_code)
            return
        message = responses.get(status_code, "Unknown error")
        if isinstance(error, HTTPError) and error.log_message:
            message = error.log_message
        hint = "See the server log for details." if status_code >= 500 else None
        code = CODES.get(status_code, "internal")
        if status_code == 403 and getattr(self, "_jupyter_current_user", True) is None:
            # Our pages tell it from what a person may not do, and wait for a login.
            code, message, hint = LOGGED_OUT
        self.answer({"code": code, "message": message, "hint": hint}, status_code)

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        if isinstance(value, ConvectError):
            self.log.debug("%s %s: %s", self.request.method, self.request.path, value.sentence)
        else:
            super().log_exception(typ, value, tb)


class StoreHandler(Handler):
    """Needs the runs folder, which might not exist, or be slow to answer."""

    async def prepare(self, *arguments: Any, **keywords: Any) -> None:
        await super().prepare(*arguments, **keywords)
        if not self.workspace.is_open:
            await self.drive(self.workspace.open())


class PolledHandler(StoreHandler):
    """An open page asks for it all the time, which is no sign that somebody is at work."""

    def update_api_activity(self) -> None:
        if self.request.method != "GET":
            super().update_api_activity()


def encode(value: Json) -> bytes:
    """JSON that every browser reads, whatever a notebook has put into it."""
    try:
        return dumps_for_floats(value).encode()
    except UnicodeEncodeError:  # A lone surrogate, which has to be escaped.
        return dumps_for_floats(value, ascii_only=True).encode()


def read_chunks(file: Path, size: int) -> Iterator[bytes]:
    """The first `size` bytes of a file that may be growing."""
    with open_regular(file) as source:
        while size > 0 and (data := source.read(min(CHUNK, size))):
            size -= len(data)
            yield data


def _error(kwargs: dict[str, Any]) -> BaseException | None:
    return kwargs["exc_info"][1] if "exc_info" in kwargs else None


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")
