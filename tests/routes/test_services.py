"""Services of a Jupyter server: started, listed, reached through it, and stopped."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

from jupyterlab_convect.services.store import ServiceStore

APP = Path(__file__).parent.parent / "services" / "echo_app.py"


@pytest.fixture
async def service(api: Any, jp_serverapp: Any) -> AsyncIterator[Any]:
    body = {"kind": "app", "options": {"command": [sys.executable, str(APP), "{port}"]}}
    status, made = await api("POST", "services", body)
    assert status == 201, made
    store = jp_serverapp.web_app.settings["jupyterlab_convect"].workspace.store
    await ServiceStore(store).until(made["id"], up=True, timeout=300)
    yield made
    await api("POST", f"services/{made['id']}/stop")
    await ServiceStore(store).until(made["id"], up=False, timeout=300)


@pytest.fixture
def through(jp_serverapp: Any, service: Any) -> Any:
    """A request to the service through the server, with its token or without."""
    origin = "/".join(jp_serverapp.connection_url.split("/")[:3])

    async def ask(path: str, method: str = "GET", *, token: bool = True, **more: Any) -> Any:
        headers = more.pop("headers", {})
        if token:
            headers["Authorization"] = f"token {jp_serverapp.identity_provider.token}"
        return await AsyncHTTPClient().fetch(
            origin + service["path"] + path,
            method=method,
            headers=headers,
            raise_error=False,
            follow_redirects=False,
            request_timeout=120,
            **more,
        )

    ask.origin = origin  # type: ignore[attr-defined]
    return ask


async def test_a_service_is_reached_through_the_server(
    api: Any, through: Any, service: Any, jp_serverapp: Any
) -> None:
    assert service["path"].startswith(jp_serverapp.base_url)
    cookies = "username-localhost=secret; own=1; _xsrf=secret"
    answer = await through("a%2Fb/c?x=%20&y=1", "POST", body="hi", headers={"Cookie": cookies})
    told = json.loads(answer.body)
    assert (answer.code, told["method"], told["body"]) == (200, "POST", "hi")
    assert told["uri"] == "/a%2Fb/c?x=%20&y=1"
    assert "secret" not in json.dumps(told["headers"])
    assert jp_serverapp.identity_provider.token not in json.dumps(told["headers"])
    token = jp_serverapp.identity_provider.token
    for written in ("token", "%74oken"):
        headers = {"Referer": f"{through.origin}{service['path']}?{written}={token}"}
        in_address = await through(f"a?x=1&{written}={token}", token=False, headers=headers)
        assert json.loads(in_address.body)["uri"] == "/a?x=1"
        assert token not in in_address.body.decode()
    assert told["headers"]["X-Forwarded-Prefix"] == service["path"].rstrip("/")
    assert f"Path={service['path']}" in answer.headers["Set-Cookie"]
    moved = await through("elsewhere")
    assert (moved.code, moved.headers["Location"]) == (302, f"{service['path']}here?x=1")
    assert len((await through("large")).body) == 64 * 65536
    assert (await through("a", "DELETE")).code == 200
    _, found = await api("GET", "services")
    assert [(each["id"], each["state"]) for each in found["services"]] == [(service["id"], "ready")]
    assert "listening" in (await api("GET", f"services/{service['id']}/log"))[1]["text"]


async def test_a_service_is_for_who_is_logged_in(through: Any, service: Any) -> None:
    assert (await through("a", token=False)).code == 403
    assert (await through("a", "POST", body="", token=False)).code == 403
    url = through.origin.replace("http", "ws", 1) + service["path"] + "talk"
    with pytest.raises(HTTPClientError):
        await websocket_connect(HTTPRequest(url, follow_redirects=False))


async def test_websockets_are_passed_on(through: Any, service: Any, jp_serverapp: Any) -> None:
    await through("a")
    url = through.origin.replace("http", "ws", 1) + service["path"] + "talk"
    headers = {"Authorization": f"token {jp_serverapp.identity_provider.token}"}
    talk = await websocket_connect(HTTPRequest(url, headers=headers), subprotocols=["a", "b"])
    assert talk.selected_subprotocol == "b"
    for message in ("hello 数", b"\x00\xff"):
        await talk.write_message(message, binary=isinstance(message, bytes))
        assert await talk.read_message() == message
    await talk.write_message("end")
    assert await talk.read_message() is None
    assert (talk.close_code, talk.close_reason) == (4001, "as asked")


async def test_what_is_not_there_is_told(api: Any, through: Any, service: Any) -> None:
    assert (await api("POST", "services", {"kind": "none"}))[0] == 400
    for unknown in ("none", "x" * 300):
        assert (await api("GET", f"services/{unknown}"))[0] == 404
    status, _ = await api("DELETE", f"services/{service['id']}")
    assert status == 409
    await through("a")
    await api("POST", f"services/{service['id']}/stop")
    while (await api("GET", f"services/{service['id']}"))[1]["state"] != "stopped":
        await asyncio.sleep(0.05)
    answer = await through("a")
    assert answer.code == 503
    assert b"is stopped." in answer.body
