"""Notebooks, scripts and pipelines that can be called: which, by whom, and how often.

`<runs folder>/endpoints/<id>/endpoint.json` is all there is to an endpoint. Each call of it is a
run like any other, whose request names it.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import secrets
import shutil
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import Conflict, ConvectError, Missing
from ..json_text import dumps
from ..pipeline.plan import Json, to_json
from ..runs.lease import process_birth
from ..runs.model import Request
from ..runs.store import Store
from ..safe_files import write_new, write_whole
from .own_folders import LONGEST_ID, OwnFolders, require_id

FILE = "endpoint.json"
LONGEST_NAME = 200
LONGEST_IDLE = 30 * 86400
MOST_AT_ONCE, MOST_WAITING, MOST_CALLS = 1000, 100_000, 1_000_000
MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class EndpointToken:
    """Who has the token that this is the digest of may call; nobody can tell it again."""

    name: str
    digest: str
    created: float


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The content of `endpoint.json`."""

    id: str
    name: str
    created: float
    request: Request
    """What a call runs. Its parameters are those that callers cannot choose."""
    concurrency: int
    """Calls that run at the same time."""
    tokens: tuple[EndpointToken, ...] = ()
    queue: int = 100
    """Calls that may wait beside those."""
    rate: int = 0
    """Calls per minute; 0 is no limit."""
    idle: float = 1800.0
    """Seconds without a call after which its worker is stopped; 0 is never."""
    paused: bool = False
    process: str = ""
    """The process that it ends with, as `this_process` names it; empty when it stays."""


def endpoint_of(
    request: Request,
    *,
    endpoint_id: str | None = None,
    name: str | None = None,
    **limits: Any,
) -> Endpoint:
    """An endpoint of a file, checked; what is None is as usual."""
    path = request.path or ""
    chosen = {key: value for key, value in limits.items() if value is not None}
    endpoint = Endpoint(
        endpoint_id or id_for(path),
        name or PurePosixPath(path).name,
        time.time(),
        request,
        **{"concurrency": os.cpu_count() or 1, **chosen},
    )
    check_endpoint(endpoint)
    return endpoint


def check_endpoint(endpoint: Endpoint) -> None:
    """ConvectError for the first thing that is wrong with it."""
    require_id(endpoint.id, "bad-endpoint")
    if not endpoint.name.strip() or len(endpoint.name) > LONGEST_NAME:
        raise ConvectError(
            f"The name of an endpoint must have 1 to {LONGEST_NAME} characters.",
            code="bad-endpoint",
        )
    for name, least, most in (
        ("concurrency", 1, MOST_AT_ONCE),
        ("queue", 0, MOST_WAITING),
        ("rate", 0, MOST_CALLS),
        ("idle", 0, LONGEST_IDLE),
    ):
        if not least <= getattr(endpoint, name) <= most:
            raise ConvectError(
                f"`{name}` of an endpoint is a number from {least} to {most}.", code="bad-endpoint"
            )


def id_for(name: str) -> str:
    """An id that is like the name of a file; one by chance where no letter of it can be used."""
    stem = Path(name).name.partition(".")[0].lower()
    plain = re.sub(r"[^a-z0-9]+", "-", stem).strip("-")[:LONGEST_ID].strip("-")
    return plain or f"endpoint-{secrets.token_hex(3)}"


def shown(endpoint: Endpoint) -> dict[str, Json]:
    """`EndpointView`: all but the digests of its tokens."""
    view: dict[str, Json] = {
        name: getattr(endpoint, name)
        for name in ("id", "name", "created", "concurrency", "queue", "rate", "idle", "paused")
    }
    view["request"] = to_json(endpoint.request)
    view["tokens"] = [{"name": each.name, "created": each.created} for each in endpoint.tokens]
    return view


class EndpointStore:
    """The endpoints of a runs folder. Those of other users are not there."""

    def __init__(self, store: Store) -> None:
        self._folders = OwnFolders(store, "endpoints", FILE, _missing)

    def all(self) -> list[Endpoint]:
        found = []
        for endpoint_id in self._folders.ids():
            with contextlib.suppress(ConvectError):
                found.append(self.read(endpoint_id))
        return found

    def read(self, endpoint_id: str) -> Endpoint:
        """Missing when there is none, or none of this user."""
        found = self._folders.read(endpoint_id, Endpoint)
        if _has_ended(found.process):  # Whoever served it was killed.
            raise _missing(endpoint_id)
        return found

    def create(self, endpoint: Endpoint) -> Endpoint:
        check_endpoint(endpoint)
        self._remove_abandoned(endpoint.id)
        try:
            with self._folders.writing():
                write_new(self._folders.make(endpoint.id) / FILE, _text(endpoint))
        except FileExistsError:
            raise Conflict(
                f"There is already an endpoint {endpoint.id}.",
                hint="Choose another id for this one.",
            ) from None
        return endpoint

    def _remove_abandoned(self, endpoint_id: str) -> None:
        """Make room where a process was killed that served an endpoint of this id."""
        try:
            self.read(endpoint_id)
        except Missing:
            if self._folders.is_own(endpoint_id):
                shutil.rmtree(self._folders.folder(endpoint_id), ignore_errors=True)

    def change(self, endpoint_id: str, **changes: Any) -> Endpoint:
        changed = replace(self.read(endpoint_id), **changes)
        check_endpoint(changed)
        return self._write(changed)

    def delete(self, endpoint_id: str) -> None:
        """Nobody can call it any more. Its runs stay."""
        self.read(endpoint_id)
        folder = self._folders.folder(endpoint_id)
        with self._folders.writing():
            (folder / FILE).unlink()
        shutil.rmtree(folder, ignore_errors=True)

    def add_token(self, endpoint_id: str, name: str) -> str:
        """A new token, which is told this once."""
        endpoint = self.read(endpoint_id)
        if not name.strip() or len(name) > LONGEST_NAME:
            raise ConvectError(
                f"The name of a token must have 1 to {LONGEST_NAME} characters.",
                code="bad-endpoint",
            )
        if any(each.name == name for each in endpoint.tokens):
            raise Conflict(f"The endpoint {endpoint_id} already has a token {name!r}.")
        token = secrets.token_urlsafe(32)
        made = EndpointToken(name, _digest(token), time.time())
        self._write(replace(endpoint, tokens=(*endpoint.tokens, made)))
        return token

    def remove_token(self, endpoint_id: str, name: str) -> Endpoint:
        endpoint = self.read(endpoint_id)
        left = tuple(each for each in endpoint.tokens if each.name != name)
        if len(left) == len(endpoint.tokens):
            raise Missing(f"The endpoint {endpoint_id} has no token {name!r}.")
        return self._write(replace(endpoint, tokens=left))

    def _write(self, endpoint: Endpoint) -> Endpoint:
        with self._folders.writing():
            write_whole(self._folders.folder(endpoint.id) / FILE, _text(endpoint))
        return endpoint


def _missing(endpoint_id: str) -> Missing:
    return Missing(f"There is no endpoint {endpoint_id[:80]!r}.", code="no-such-endpoint")


def this_process() -> str:
    """This process, in words that mean no other one on this machine."""
    return f"{os.getpid()} {process_birth(os.getpid())}"


def _has_ended(process: str) -> bool:
    number, _, birth = process.partition(" ")
    is_known = number.isascii() and number.isdigit()
    return bool(process) and not (is_known and process_birth(int(number)) == birth)


def admits(endpoint: Endpoint, token: str) -> bool:
    """Whether who has this token may call it."""
    digest = _digest(token).encode()
    found = [
        hmac.compare_digest(each.digest.encode("utf-8", "replace"), digest)
        for each in endpoint.tokens
    ]
    return any(found)


@dataclass(slots=True)
class CallRate:
    """How many calls each endpoint has had in the last minute, and has now."""

    clock: Callable[[], float] = time.monotonic
    under_way: Counter[str] = field(default_factory=Counter)
    """The calls of workers that are not answered yet."""
    _calls: dict[str, deque[float]] = field(default_factory=dict)

    def wait(self, endpoint: Endpoint) -> float:
        """Count a call, or say how many seconds too early it comes."""
        if not endpoint.rate:
            return 0.0
        now, calls = self.clock(), self._calls.setdefault(endpoint.id, deque())
        while calls and calls[0] <= now - MINUTE:
            calls.popleft()
        if len(calls) >= endpoint.rate:
            return calls[0] + MINUTE - now
        calls.append(now)
        return 0.0


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _text(endpoint: Endpoint) -> bytes:
    return dumps(to_json(endpoint), indent=1).encode()
