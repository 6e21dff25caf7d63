"""What each runtime has and who holds it; profiles and images to choose from; giving back."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from jupyter_core.utils import ensure_async
from jupyter_server.auth.decorator import authorized
from tornado.web import authenticated

from ..errors import Missing
from ..overviews import LOCAL, OwnKernel, give_back, overview_of, telling
from ..pipeline.plan import Json
from ..pipeline.profiles import Offering, settings_of
from ..runtimes.capacity import as_json
from .base import Handler, PolledHandler, StoreHandler

RESOURCE = "jupyterlab-convect:runtimes"


class CapacityHandler(PolledHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, name: str) -> None:
        await self.aside(telling, self.workspace, name)
        kernels = await self.kernels() if name == LOCAL else {}
        found = await self.drive(overview_of(self.workspace, name, kernels))
        self.answer(await self.aside(as_json, found))

    async def kernels(self) -> dict[str, OwnKernel]:
        """The kernels of this server, by the notebook that each belongs to."""
        manager: Any = self.kernel_manager
        known: Any = self.session_manager
        sessions = await ensure_async(known.list_sessions())
        paths = {each["kernel"]["id"]: each.get("path") or each.get("name") for each in sessions}
        now = datetime.now(timezone.utc)
        return {
            each["id"]: OwnKernel(paths.get(each["id"]) or each["name"], idle_of(each, now))
            for each in manager.list_kernels()
        }


def idle_of(kernel: dict[str, Any], now: datetime) -> float | None:
    """Seconds since it did something; none while it does."""
    if kernel.get("execution_state") == "busy":
        return 0.0
    try:
        last = datetime.fromisoformat(str(kernel["last_activity"]).replace("Z", "+00:00"))
    except (KeyError, ValueError):
        return None
    return max((now - last).total_seconds(), 0.0)


class GiveBackHandler(StoreHandler):
    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self) -> None:
        body = self.body("GiveBackBody")
        kind, item = body["kind"], body["id"]
        if kind == "kernel":
            manager: Any = self.kernel_manager
            if item not in manager.list_kernel_ids():
                raise Missing("This server has no such kernel.", code="no-such-kernel")
            await ensure_async(manager.shutdown_kernel(item))
        else:
            await self.drive(give_back(self.workspace, kind, item))
        self.set_status(204)
        self.finish()


class ProfilesHandler(Handler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self) -> None:
        self.answer(await self.aside(self.found, self.text("runtime")))

    def found(self, runtime: str | None) -> dict[str, Json]:
        offering = self.workspace.offering
        place = self.workspace.runtimes[runtime].place() if runtime else None
        return shown_offering(offering, place)


def shown_offering(offering: Offering, namespace: str | None) -> dict[str, Json]:
    return {
        "profiles": [
            {
                "name": each.name,
                "notes": each.notes,
                "namespaces": list(each.namespaces),
                "settings": settings_of(each),
            }
            for each in offering.profiles
            if each.is_for(namespace)
        ],
        "images": [{"image": each.image, "notes": each.notes} for each in offering.images],
        "registries": list(offering.registries),
    }


routes = [
    ("runtimes/([^/]+)/top", CapacityHandler),
    ("profiles", ProfilesHandler),
    ("give-back", GiveBackHandler),
]
