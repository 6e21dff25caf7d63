"""Services: what stays up, in a list; started, stopped and forgotten. `proxy.py` leads to them."""

from __future__ import annotations

from typing import Any

from jupyter_server.auth.decorator import authorized
from tornado.web import authenticated

from ..pipeline.plan import Json
from ..services.store import ServiceRecord, ServiceStore, shown
from .base import PolledHandler, StoreHandler

RESOURCE = "jupyterlab-convect:services"


class ServiceHandler(StoreHandler):
    @property
    def services(self) -> ServiceStore:
        return ServiceStore(self.workspace.store)

    def view(self, record: ServiceRecord) -> dict[str, Json]:
        path = self.request.path.partition("/services")[0]
        return {**shown(record), "path": f"{path}/services/{record.service.id}/proxy/"}


class ServicesHandler(ServiceHandler, PolledHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self) -> None:
        found = await self.aside(self.services.all)
        self.answer({"services": [self.view(each) for each in found]})

    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self) -> None:
        body: dict[str, Any] = self.body("ServiceBody")
        record = await self.aside(
            self.services.start,
            body["kind"],
            body.get("options") or {},
            self.root,
            name=body.get("name"),
            idle=body.get("idle"),
        )
        self.answer(self.view(record), 201)


class OneServiceHandler(ServiceHandler, PolledHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, service_id: str) -> None:
        self.answer(self.view(await self.aside(self.services.read, service_id)))

    @authenticated
    @authorized("write", resource=RESOURCE)
    async def delete(self, service_id: str) -> None:
        await self.aside(self.services.remove, service_id)
        self.set_status(204)
        self.finish()


class StopServiceHandler(ServiceHandler):
    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self, service_id: str) -> None:
        await self.aside(self.services.stop, service_id)
        self.answer(self.view(await self.aside(self.services.read, service_id)), 202)


class StartServiceHandler(ServiceHandler):
    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self, service_id: str) -> None:
        self.answer(self.view(await self.aside(self.services.start_again, service_id)), 202)


class ServiceLogHandler(ServiceHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, service_id: str) -> None:
        self.answer({"text": await self.aside(self.services.log, service_id)})


routes = [
    ("services", ServicesHandler),
    (r"services/([^/]+)", OneServiceHandler),
    (r"services/([^/]+)/stop", StopServiceHandler),
    (r"services/([^/]+)/start", StartServiceHandler),
    (r"services/([^/]+)/log", ServiceLogHandler),
]
