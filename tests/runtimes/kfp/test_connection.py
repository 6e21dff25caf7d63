"""Test connection, by REST and on the command line, through a real nginx that asks to sign in."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import nginx
import pytest
from traitlets.config import Config

from jupyterlab_convect.cli import main

ALL_WELL = [("address", True), ("sign-in", True), ("namespace", True)]


class Pipelines(BaseHTTPRequestHandler):
    """As much of a Kubeflow Pipelines with several users as a test of the connection asks."""

    def log_message(self, *_: object) -> None:
        """The test's output is for what matters."""

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        is_ours = parse_qs(place.query).get("namespace") == ["ada"]
        status, told = 200, {"multi_user": True} if place.path.endswith("/healthz") else {}
        if place.path.endswith("/runs") and not is_ours:
            status, told = 403, {"message": "forbidden"}
        data = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def upstream() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pipelines)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(params=["dex", "oauth2-proxy"])
def guarded(
    request: pytest.FixtureRequest, upstream: str, tmp_path: Path, nginx_program: str
) -> Iterator[str]:
    folder = tmp_path / "nginx"
    folder.mkdir()
    with nginx.before(upstream, request.param, nginx_program, folder) as address:
        yield address


@pytest.fixture
def jp_server_config(jp_server_config: Config, guarded: str) -> Config:
    kind = {"kind": "kfp", "endpoint": guarded, "namespace": "ada"}
    jp_server_config.Convect.named_runtimes = {
        "by-password": {**kind, "user": nginx.USER},
        "by-token": kind,
        "elsewhere": {**kind, "namespace": "bob", "user": nginx.USER},
    }
    return jp_server_config


async def test_the_button_names_the_step_that_fails(
    api: Any, monkeypatch: pytest.MonkeyPatch, guarded: str
) -> None:
    async def test(name: str, secret: str) -> tuple[list[tuple[str, bool]], str]:
        monkeypatch.setenv("CONVECT_KFP_SECRET", secret)
        status, told = await api("POST", f"runtimes/{name}/connection")
        assert status == 200
        assert told["ok"] == all(step["ok"] for step in told["steps"])
        steps = [(step["step"], step["ok"]) for step in told["steps"]]
        return steps, told["steps"][-1]["message"]

    assert (await test("by-password", nginx.PASSWORD))[0] == ALL_WELL
    steps, message = await test("by-password", "wrong")
    assert steps == [("address", True), ("sign-in", False)]
    assert message == "The name or the password is wrong."
    assert (await test("by-token", nginx.TOKEN))[0] == ALL_WELL
    assert (await test("by-token", f"{nginx.COOKIE}={nginx.SESSION}"))[0] == ALL_WELL
    steps, message = await test("by-token", f"{nginx.COOKIE}=expired")
    assert steps == [("address", True), ("sign-in", False)]
    assert message.endswith("asks to sign in.")
    steps, message = await test("elsewhere", nginx.PASSWORD)
    assert steps == [("address", True), ("sign-in", True), ("namespace", False)]
    assert message == "You are not allowed to use Kubeflow Pipelines in namespace bob."
    monkeypatch.delenv("CONVECT_KFP_SECRET")
    _, told = await api("POST", "runtimes/by-token/connection")
    assert told["steps"][-1]["step"] == "sign-in"
    assert "keyring" in told["steps"][-1]["hint"]


async def test_a_runtime_without_a_server_has_no_connection(api: Any) -> None:
    status, told = await api("POST", "runtimes/local/connection")
    assert (status, told["code"]) == (422, "no-connection")
    assert (await api("POST", "runtimes/moon/connection"))[0] == 404


def test_the_command_goes_the_same_way(
    guarded: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CONVECT_KFP_SECRET", nginx.PASSWORD)
    words = ["kfp", "check", guarded, "--namespace", "ada", "--user", nginx.USER, "--json"]
    assert main(words) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert [(step["step"], step["ok"]) for step in steps] == ALL_WELL
    assert steps[0]["message"].endswith("/pipeline.")
