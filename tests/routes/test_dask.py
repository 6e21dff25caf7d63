"""Dask clusters over REST, and the way to their dashboards through the server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.websocket import websocket_connect
from waiting import eventually

from jupyterlab_convect.services import dask_gateways
from jupyterlab_convect.services.dask_clusters import DaskClusters
from jupyterlab_convect.services.store import ServiceStore

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not dask_gateways.is_installed(), reason="Dask and dask-gateway-server are not installed"
    ),
]


@pytest.fixture
async def cluster(api: Any, jp_serverapp: Any) -> AsyncIterator[Any]:
    store = jp_serverapp.web_app.settings["jupyterlab_convect"].workspace.store
    services = ServiceStore(store)
    gateway = services.start("dask", {}, store.folder)
    await services.until(gateway.service.id, up=True, timeout=300)
    status, made = await api("POST", "dask/clusters", {"workers": 1})
    assert status == 201, made

    async def has_worker() -> bool:
        return bool((await api("GET", f"dask/clusters/{made['id']}"))[1]["workers"])

    await eventually(has_worker, "it has a worker")
    yield made
    await api("DELETE", "dask/clusters")
    for record in services.all():
        services.stop(record.service.id)
        await services.until(record.service.id, up=False, timeout=300)


async def test_a_cluster_is_used_through_the_server(
    api: Any, cluster: Any, jp_serverapp: Any
) -> None:
    await eventually(
        lambda: os.environ.get("DASK_GATEWAY__ADDRESS", "").startswith("http://127.0.0.1:"),
        "kernels find the gateway",
    )
    _, seen = await api("GET", "dask")
    assert seen["gateway"]["is_own"]
    assert seen["gateway"]["state"] == "ready"
    assert [each["id"] for each in seen["clusters"]] == [cluster["id"]]
    assert "tls" not in str(seen)
    _, options = await api("POST", "dask/options")
    assert {each["spec"]["type"] for each in options["options"]} == {"int", "float", "mapping"}
    _, told = await api("POST", f"dask/clusters/{cluster['id']}/test", {"kernel": None})
    assert (told["workers"], told["differences"]) == (1, [])
    for body, status in (
        ({"workers": -1}, 400),
        ({"workers": "many"}, 400),
        ({"minimum": 3, "maximum": 1}, 400),
        ({"workers": 1}, 200),
        ({"minimum": 1, "maximum": 1}, 200),
    ):
        assert (await api("POST", f"dask/clusters/{cluster['id']}/scale", body))[0] == status
    assert (await api("POST", "dask/clusters", {"options": {"worker_cores": 99999}}))[0] == 400
    _, plots = await api("GET", f"dask/clusters/{cluster['id']}/plots")
    path = next(each["path"] for each in plots["plots"] if each["title"] == "Task Stream")

    assert "name" not in cluster, "it is all that protects the dashboard"
    store = jp_serverapp.web_app.settings["jupyterlab_convect"].workspace.store
    found = await asyncio.to_thread(DaskClusters(ServiceStore(store)).find, cluster["id"])
    name = found[1]
    token = jp_serverapp.identity_provider.token
    place = f"jupyterlab-convect/api/v1/dask/clusters/{cluster['id']}/proxy/"

    async def through(rest: str, **headers: str) -> Any:
        return await AsyncHTTPClient().fetch(
            jp_serverapp.connection_url + place + rest,
            headers=headers,
            raise_error=False,
            follow_redirects=False,
            request_timeout=120,
        )

    login = {"Authorization": f"token {token}"}
    page = await through(path, **login)
    assert page.code == 200
    assert b"Bokeh" in page.body
    assert name.encode() not in page.body
    assert (await through(path)).code == 403, "not without a login"
    assert (await through("../../../api/v1/clusters/", **login)).code == 404
    assert (await through("%2e%2e/%2e%2e/api/v1/clusters/", **login)).code == 404
    moved = await through("", **login)
    assert name not in moved.headers.get("Location", "")
    script = await through("static/js/bokeh.min.js", **login)
    assert script.code == 200
    url = jp_serverapp.connection_url.replace("http", "ws", 1) + place + f"{path}/ws"
    with pytest.raises(Exception, match="403"):
        await websocket_connect(HTTPRequest(url, follow_redirects=False))
    for guessed in (name, "0" * 16):
        assert (await api("GET", f"dask/clusters/{guessed}"))[0] == 404
        answer = await AsyncHTTPClient().fetch(
            f"{jp_serverapp.connection_url}{place}{path}".replace(cluster["id"], guessed),
            headers=login,
            raise_error=False,
        )
        assert answer.code == 404
    assert (await api("DELETE", f"dask/clusters/{cluster['id']}"))[0] == 204
