"""Endpoints: make a notebook callable, change that, hand out tokens and take them back."""

from __future__ import annotations

from typing import Any

from jupyter_server.auth.decorator import authorized
from tornado.web import authenticated

from ..errors import ConvectError
from ..pipeline.plan import Json
from ..services.calls import refuse_uncallable, what_it_takes
from ..services.endpoints import Endpoint, EndpointStore, endpoint_of, shown
from ..services.store import ServiceStore
from ..services.workers import stop_worker
from .base import StoreHandler
from .requests import existing, request_of, resendable

RESOURCE = "jupyterlab-convect:endpoints"
OF_ENDPOINT = ("name", "id", "concurrency", "queue", "rate", "idle")


class EndpointHandler(StoreHandler):
    @property
    def endpoints(self) -> EndpointStore:
        return EndpointStore(self.workspace.store)

    def view(self, endpoint: Endpoint, **more: Json) -> dict[str, Json]:
        view = shown(endpoint)
        return {**view, "request": resendable(view["request"], self.root), **more}


class EndpointsHandler(EndpointHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self) -> None:
        found = await self.aside(self.endpoints.all)
        self.answer({"endpoints": [self.view(each) for each in found]})

    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self) -> None:
        wanted = await self.aside(self._wanted, self.body("EndpointBody"))
        refuse_uncallable((await self.drive(self.workspace.check(wanted.request))).problems)
        await self.aside(self.endpoints.create, wanted)
        token = await self.aside(self.endpoints.add_token, wanted.id, "first")
        made = await self.aside(self.endpoints.read, wanted.id)
        self.answer(self.view(made, token=token), 201)

    def _wanted(self, body: dict[str, Any]) -> Endpoint:
        own = {name: body.pop(name, None) for name in OF_ENDPOINT}
        if not body.get("path"):
            raise ConvectError("Specify which file is to be called: `path`.")
        existing(self.root, body["path"])
        request = request_of(body, self.root, self.workspace.settings.default_runtime)
        endpoint = endpoint_of(request, endpoint_id=own.pop("id"), **own)
        what_it_takes(endpoint)
        return endpoint


class OneEndpointHandler(EndpointHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, endpoint_id: str) -> None:
        self.answer(self.view(await self.aside(self.endpoints.read, endpoint_id)))

    @authenticated
    @authorized("write", resource=RESOURCE)
    async def patch(self, endpoint_id: str) -> None:
        change: dict[str, Any] = self.body("EndpointEditBody")
        changed = await self.aside(self.endpoints.change, endpoint_id, **change)
        self.answer(self.view(changed))

    @authenticated
    @authorized("write", resource=RESOURCE)
    async def delete(self, endpoint_id: str) -> None:
        await self.aside(self.endpoints.delete, endpoint_id)
        await self.aside(stop_worker, ServiceStore(self.workspace.store), endpoint_id)
        self.set_status(204)
        self.finish()


class TokensHandler(EndpointHandler):
    @authenticated
    @authorized("write", resource=RESOURCE)
    async def post(self, endpoint_id: str) -> None:
        name = self.body("TokenBody")["name"]
        token = await self.aside(self.endpoints.add_token, endpoint_id, name)
        endpoint = await self.aside(self.endpoints.read, endpoint_id)
        self.answer(self.view(endpoint, token=token), 201)


class OneTokenHandler(EndpointHandler):
    @authenticated
    @authorized("write", resource=RESOURCE)
    async def delete(self, endpoint_id: str, name: str) -> None:
        self.answer(self.view(await self.aside(self.endpoints.remove_token, endpoint_id, name)))


routes = [
    ("endpoints", EndpointsHandler),
    (r"endpoints/([^/]+)", OneEndpointHandler),
    (r"endpoints/([^/]+)/tokens", TokensHandler),
    (r"endpoints/([^/]+)/tokens/([^/]+)", OneTokenHandler),
]
