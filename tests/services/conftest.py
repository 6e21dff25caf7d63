"""Dask gateways: one's own, and one of others."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from dask_gateway_bed import running_gateway

from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.runs.index import Index
from jupyterlab_convect.runs.store import Store
from jupyterlab_convect.services import dask_gateways
from jupyterlab_convect.services.dask_clusters import DaskClusters
from jupyterlab_convect.services.dask_gateway_api import configured_gateway
from jupyterlab_convect.services.on_demand import OnDemandServices
from jupyterlab_convect.services.store import ServiceStore


@pytest.fixture(scope="module")
def dask_services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceStore]:
    folder = tmp_path_factory.mktemp("dask")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONVECT_RUNS_DIR", str(folder / "runs"))
        patch.setenv("CONVECT_INDEX_DIR", str(folder / "index"))
        patch.setenv("DASK_CONFIG", str(folder / "config"))
        for name in [name for name in os.environ if name.startswith("DASK_GATEWAY")]:
            patch.delenv(name)
        (folder / "runs").mkdir(0o700)
        store = ServiceStore(Store(folder / "runs", Index(folder / "index" / "i.sqlite")))
        yield store
        for record in store.all():
            with contextlib.suppress(ConvectError):
                store.stop(record.service.id)
        for record in store.all():
            ended = store.until(record.service.id, up=False, timeout=300)
            assert not asyncio.run(ended).is_up


@pytest.fixture
def clusters(dask_services: ServiceStore) -> Iterator[DaskClusters]:
    found = DaskClusters(dask_services)
    yield found
    if dask_gateways.is_installed() and configured_gateway() is None:
        found.stop_all()


@pytest.fixture
def found_by_all(dask_services: ServiceStore) -> Iterator[dict[str, str]]:
    offered = OnDemandServices(dask_services)
    yield offered.begin()
    offered.end()


@pytest.fixture
def gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A gateway of others, with a password, named in Dask's configuration."""
    monkeypatch.setenv("SESAME", "open sesame")
    with running_gateway(tmp_path, monkeypatch, {"kwargs": {"password": "{SESAME}"}}) as address:
        yield address


HUB_TOKEN = "token-of-ana"


class HubHandler(BaseHTTPRequestHandler):
    """As much of a hub as the gateway's own authenticator asks: whose token it is."""

    def do_GET(self) -> None:
        is_known = self.headers.get("Authorization") == f"token {HUB_TOKEN}"
        self.send_response(200 if is_known and self.path == "/hub/api/user" else 403)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps({"kind": "user", "name": "ana", "groups": []}).encode())

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def hub_gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A gateway that asks a hub who somebody is."""
    hub = ThreadingHTTPServer(("127.0.0.1", 0), HubHandler)
    threading.Thread(target=hub.serve_forever, daemon=True).start()
    more = f"""
c.DaskGateway.authenticator_class = "dask_gateway_server.auth.JupyterHubAuthenticator"
c.JupyterHubAuthenticator.jupyterhub_api_token = "token-of-the-gateway"
c.JupyterHubAuthenticator.jupyterhub_api_url = "http://127.0.0.1:{hub.server_port}/hub/api"
"""
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", HUB_TOKEN)
    with running_gateway(tmp_path, monkeypatch, {"type": "jupyterhub"}, more) as address:
        yield address
    hub.shutdown()
