"""Dask gateways: one's own, and one of others."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator
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
