"""Calls that a worker answers: the function of the cell tagged `serve`, which stays loaded."""

from __future__ import annotations

from jupyter_server.auth.decorator import allow_unauthenticated
from tornado.httpclient import AsyncHTTPClient, HTTPRequest

from ..errors import ConvectError, words_of
from ..json_text import loads
from ..runner.notebook_worker import KEY_HEADER, LARGEST
from ..services.calls import LONGEST_WAIT, TooMany
from ..services.endpoints import Endpoint
from ..services.store import ServiceStore
from ..services.workers import worker_of
from .base import encode
from .calls import CallHandler

LARGEST_BODY = LARGEST
PATIENCE = 600.0
"""Seconds that a function has to answer."""


class WorkerHandler(CallHandler):
    async def ask(self, endpoint_id: str, path: str) -> None:
        """Have the worker of the endpoint answer."""
        endpoint = await self.endpoint(endpoint_id)
        self.admit(endpoint)
        under_way = self.host.call_rate.under_way
        if under_way[endpoint.id] >= endpoint.concurrency + endpoint.queue:
            raise TooMany(
                f"{under_way[endpoint.id]} calls of this endpoint have not ended yet.", seconds=1.0
            )
        under_way[endpoint.id] += 1
        try:
            await self._pass_on(endpoint, path)
        finally:
            under_way[endpoint.id] -= 1

    async def _pass_on(self, endpoint: Endpoint, path: str) -> None:
        workspace = self.host.workspace
        services = ServiceStore(workspace.store)
        place = await self.aside(workspace.place_of_worker, endpoint.request)
        record = await self.aside(worker_of, services, endpoint, place)
        if record.status.state == "starting":
            record = await services.until(record.service.id, up=True, timeout=LONGEST_WAIT)
        if record.status.state == "starting":
            if reason := record.status.reason:
                raise TooMany(f"The worker of this endpoint is still starting. {reason}", seconds=5)
            raise TooMany("The worker of this endpoint is still starting.", seconds=5)
        if not record.is_up:
            raise WorkerFailed(record.status.reason or "The worker of this endpoint was stopped.")
        address = services.address(record)
        services.use(record.service.id)
        headers = {KEY_HEADER: record.service.key}
        if kind := self.request.headers.get("Content-Type"):
            headers["Content-Type"] = kind
        request = HTTPRequest(
            f"{address}/{path}",
            method=self.request.method or "GET",
            headers=headers,
            body=self.request.body if self.request.method == "POST" else None,
            request_timeout=PATIENCE,
        )
        try:
            answer = await AsyncHTTPClient().fetch(request, raise_error=False)
        except OSError as error:
            raise WorkerFailed(f"The worker does not answer: {words_of(error)}.") from None
        self.set_status(answer.code)
        self.set_header("Content-Type", answer.headers.get("Content-Type", "application/json"))
        self.finish(self._in_words(answer.body) if answer.code >= 400 else answer.body)

    def _in_words(self, body: bytes) -> bytes:
        """What the worker refuses, as the caller reads it."""
        try:
            said = loads(body)
        except ValueError:
            return body
        return encode(self.in_words(said)) if isinstance(said, dict) else body


class WorkerFailed(ConvectError):
    status = 500


class PredictHandler(WorkerHandler):
    @allow_unauthenticated
    async def post(self, endpoint_id: str) -> None:
        await self.ask(endpoint_id, "predict")


class InferenceHandler(WorkerHandler):
    @allow_unauthenticated
    async def get(self, endpoint_id: str, path: str) -> None:
        await self.ask(endpoint_id, f"v2/{path}")

    @allow_unauthenticated
    async def post(self, endpoint_id: str, path: str) -> None:
        await self.ask(endpoint_id, f"v2/{path}")


routes = [
    (r"call/([^/]+)/predict", PredictHandler),
    (r"call/([^/]+)/v2/(.+)", InferenceHandler),
]
