"""Dask clusters: made, scaled, tested and stopped; and the way to their dashboards."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import unquote

from jupyter_server.auth.decorator import authorized
from tornado.web import HTTPError, RequestHandler, authenticated

from ..errors import ConvectError
from ..pipeline.plan import Json
from ..pools import run_in
from ..services.dask_clusters import DaskClusters
from ..services.store import ServiceStore
from .base import PolledHandler, StoreHandler
from .proxy import ProxyHandler
from .services import RESOURCE

T = TypeVar("T")
_UP = re.compile(r"(^|/)\.\.(/|$)")


def _shown(cluster: dict[str, Json]) -> dict[str, Json]:
    """Without its name, which lets whoever knows it see its dashboard on the gateway."""
    return {key: value for key, value in cluster.items() if key != "name"}


class DaskHandler(StoreHandler):
    @property
    def clusters(self) -> DaskClusters:
        return DaskClusters(ServiceStore(self.workspace.store))

    async def asked(self, work: Callable[..., T], /, *arguments: Any, **keywords: Any) -> T:
        """Ask the gateway, which may take long to answer, without holding up anything else."""
        return await run_in("dask", work, *arguments, **keywords)


class DaskOverviewHandler(DaskHandler, PolledHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self) -> None:
        await self.workspace.provisions.remove_left()
        found = await self.asked(self.clusters.overview)
        self.answer({**found, "clusters": [_shown(each) for each in found["clusters"]]})


class DaskOptionsHandler(DaskHandler):
    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self) -> None:
        self.answer({"options": await self.asked(self.clusters.options)})


class DaskClustersHandler(DaskHandler):
    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self) -> None:
        body = self.body("DaskClusterBody")
        options, workers = body.get("options") or {}, body.get("workers") or 0
        made = await self.asked(self.clusters.new, options, workers, wait=False)
        self.answer(_shown(made), 201)

    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def delete(self) -> None:
        self.answer({"stopped": await self.asked(self.clusters.stop_all)})


class DaskClusterHandler(DaskHandler, PolledHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, cluster_id: str) -> None:
        self.answer(_shown(await self.asked(self.clusters.read, cluster_id)))

    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def delete(self, cluster_id: str) -> None:
        await self.asked(self.clusters.stop, cluster_id)
        self.set_status(204)
        self.finish()


class ScaleDaskClusterHandler(DaskHandler):
    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self, cluster_id: str) -> None:
        body = self.body("DaskScaleBody")
        clusters = self.clusters
        if "workers" in body:
            told = await self.asked(clusters.scale, cluster_id, body["workers"])
        else:
            bounds = body.get("minimum", 0), body.get("maximum", body.get("minimum", 0))
            told = await self.asked(clusters.adapt, cluster_id, *bounds)
        self.answer({"message": told})


class TestDaskClusterHandler(DaskHandler):
    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self, cluster_id: str) -> None:
        kernel = self.body("DaskTestBody").get("kernel") or None
        self.answer(await self.asked(self.clusters.test, cluster_id, kernel))


class DaskPlotsHandler(DaskHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, cluster_id: str) -> None:
        self.answer({"plots": await self.asked(self.clusters.plots, cluster_id)})


class DaskDashboardHandler(ProxyHandler):
    """The dashboard of a cluster of this user; others cannot be named."""

    place = "dask/clusters"
    post: Any = RequestHandler.post
    put: Any = RequestHandler.put
    patch: Any = RequestHandler.patch
    delete: Any = RequestHandler.delete

    async def _address(self, cluster_id: str) -> str:
        if _UP.search(unquote(self._parts(cluster_id)[1])):
            raise HTTPError(404)
        app = self.settings["jupyterlab_convect"]
        try:
            if not app.workspace.is_open:
                await app.engine_thread.run(app.workspace.open())
            clusters = DaskClusters(ServiceStore(app.workspace.store))
            return await run_in("dask", clusters.dashboard, cluster_id)
        except ConvectError as error:
            raise HTTPError(503 if error.status == 422 else error.status, error.sentence) from None

    def _use(self, service_id: str) -> None:
        """A gateway with clusters is not idle anyway."""


routes = [
    ("dask", DaskOverviewHandler),
    ("dask/options", DaskOptionsHandler),
    ("dask/clusters", DaskClustersHandler),
    (r"dask/clusters/([^/]+)", DaskClusterHandler),
    (r"dask/clusters/([^/]+)/scale", ScaleDaskClusterHandler),
    (r"dask/clusters/([^/]+)/test", TestDaskClusterHandler),
    (r"dask/clusters/([^/]+)/plots", DaskPlotsHandler),
    (r"dask/clusters/([^/]+)/proxy/(.*)", DaskDashboardHandler),
]
