"""An endpoint in Python, as `client.make_callable` and `client.endpoints` give it."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..errors import ConvectError, words_of
from ..pipeline.plan import Json
from ..pipeline.quantities import duration
from ..runner.notebook_worker import KEY_HEADER
from ..runs.model import Request
from ..services.calls import (
    openapi_of,
    refuse_too_many,
    refuse_uncallable,
    request_of_call,
    what_it_takes,
)
from ..services.endpoints import Endpoint, EndpointStore, endpoint_of, shown
from ..services.store import ServiceStore
from ..services.workers import served_function, stop_worker, worker_of
from .run_handles import RunHandle

if TYPE_CHECKING:
    from .session import ClientSession

PATIENCE = 600.0
"""Seconds that a function has to be loaded, and to answer."""


class EndpointHandle:
    """Something that can be called; each look reads the present state."""

    def __init__(self, session: ClientSession, endpoint_id: str, token: str | None = None) -> None:
        self._session = session
        self.id = endpoint_id
        self.token = token
        """The first token, where the endpoint has just been made."""

    @property
    def name(self) -> str:
        return self._read().name

    def view(self) -> dict[str, Json]:
        """All that is known, as the REST API gives it."""
        return shown(self._read())

    def call(self, **values: Json) -> RunHandle:
        """Call it with parameters: a run, checked and counted like a call over HTTP."""
        endpoint = self._read()
        if endpoint.paused:
            raise ConvectError("This endpoint is paused.", code="too-many-calls")
        refuse_too_many(self._session.workspace.store, endpoint)
        return self._session.submit(request_of_call(endpoint, what_it_takes(endpoint), values))

    def predict(self, value: Any = None, *, content_type: str = "application/json") -> Any:
        """What the function in the cell tagged `serve` makes of a value, or of the bytes of a CSV
        or an image; it is loaded first if need be."""
        workspace, endpoint = self._session.workspace, self._read()
        services = ServiceStore(workspace.store)
        record = worker_of(services, endpoint, workspace.place_of_worker(endpoint.request))
        waiting = services.until(record.service.id, up=True, timeout=PATIENCE)
        record = self._session.do(waiting)
        address = urlsplit(services.address(record))
        services.use(record.service.id)
        body = value if isinstance(value, bytes) else json.dumps(value, allow_nan=False).encode()
        headers = {KEY_HEADER: record.service.key, "Content-Type": content_type}
        connection = http.client.HTTPConnection(address.netloc, timeout=PATIENCE)
        try:
            connection.request("POST", "/predict", body, headers)
            answer = connection.getresponse()
            data = answer.read()
        except OSError as error:
            raise ConvectError(f"The worker does not answer: {words_of(error)}.") from None
        finally:
            connection.close()
        if "json" not in answer.headers.get_content_type():
            return data
        found = json.loads(data)
        if answer.status >= 400:
            raise ConvectError(found["message"], code=found["code"], hint=found["hint"])
        return found

    def description(self) -> dict[str, Json]:
        """How it is called over HTTP, as OpenAPI says it."""
        endpoint = self._read()
        found = what_it_takes(endpoint)
        return openapi_of(endpoint, found, f"call/{self.id}", served_function(endpoint))

    def edit(
        self,
        *,
        name: str | None = None,
        concurrency: int | None = None,
        queue: int | None = None,
        rate: int | None = None,
        idle: str | float | None = None,
        paused: bool | None = None,
    ) -> EndpointHandle:
        """Change what is given."""
        seconds = None if idle is None else duration(idle)
        given: dict[str, Any] = {"name": name, "concurrency": concurrency, "queue": queue}
        given |= {"rate": rate, "idle": seconds, "paused": paused}
        changes = {key: value for key, value in given.items() if value is not None}
        self._store.change(self.id, **changes)
        return self

    def add_token(self, name: str) -> str:
        """A new token, which is told this once."""
        return self._store.add_token(self.id, name)

    def remove_token(self, name: str) -> None:
        """Whoever has it cannot call any more."""
        self._store.remove_token(self.id, name)

    def remove(self) -> None:
        """Nobody can call it any more. Its runs stay."""
        self._store.delete(self.id)
        stop_worker(ServiceStore(self._session.workspace.store), self.id)

    @property
    def _store(self) -> EndpointStore:
        return EndpointStore(self._session.workspace.store)

    def _read(self) -> Endpoint:
        return self._store.read(self.id)

    def __repr__(self) -> str:
        return f"<endpoint {self.id}>"


def create_endpoint(session: ClientSession, request: Request, **own: Any) -> EndpointHandle:
    endpoint = endpoint_of(request, **own)
    what_it_takes(endpoint)
    refuse_uncallable(session.do(session.workspace.check(request)).problems)
    store = EndpointStore(session.workspace.store)
    store.create(endpoint)
    return EndpointHandle(session, endpoint.id, store.add_token(endpoint.id, "first"))
