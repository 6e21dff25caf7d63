"""Whether a registry has an image, asked of a real one."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from jupyterlab_convect.image_registries import ImageRegistries
from jupyterlab_convect.pipeline.plan import Plan, Step

sys.path.insert(0, str(Path(__file__).parent / "testbed"))
import registry

NOBODY = "nobody:$2y$05$BXBXBXBXBXBXBXBXBXBXBOu5oHY0TNKjW0hGm0vFXVJ0m3n1VYw1S\n"


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if missing := registry.what_is_missing():
        pytest.skip(missing)
    with registry.serving(tmp_path_factory.mktemp("registry")) as name:
        yield name


def said(image: str, *rules: str) -> list[tuple[str, str]]:
    plan = Plan("p", (Step("a", "script", "a", image=image), Step("b", "script", "b", image=image)))
    return [(each.code, each.message) for each in ImageRegistries(rules).problems(plan)]


def test_an_image_that_is_there_and_one_that_is_not(real: str) -> None:
    digest = registry.push(real, "team/ds", "1")
    rule = f"http://{real}"
    assert said(f"{real}/team/ds:1", rule) == []
    assert said(f"{real}/team/ds@{digest}", rule) == []
    missing = f"{real}/team/ds:2"
    assert said(missing, rule) == [
        ("image-missing", f"The registry {real} has no image {missing}.")
    ], "once, although two steps have it"
    assert said(f"{real}/other/ds:1", rule)[0][0] == "image-missing"


def test_nobody_is_asked_who_is_not_named(real: str) -> None:
    assert said(f"{real}/team/none:1") == []
    assert said(f"{real}/team/none:1", "ghcr.io", f"http://{real}/other") == []


def test_a_pattern_does_not_open_internal_addresses(real: str) -> None:
    ((code, sentence),) = said(f"{real}/team/none:1", f"*{real.removeprefix('127')}")
    assert code == "registry-unreachable"
    assert "internal address" in sentence


def test_a_registry_that_asks_for_a_password_leaves_it_unknown(tmp_path: Path) -> None:
    if missing := registry.what_is_missing():
        pytest.skip(missing)
    passwords = tmp_path / "passwords"
    passwords.write_text(NOBODY)
    with registry.serving(tmp_path / "closed", passwords) as name:
        assert said(f"{name}/team/ds:1", f"http://{name}") == []


def test_a_registry_that_does_not_answer(real: str) -> None:
    image = "127.0.0.1:1/team/ds:1"
    ((code, sentence),) = said(image, "http://127.0.0.1:1")
    assert code == "registry-unreachable"
    assert sentence.startswith(f"Whether there is an image {image} is unknown: ")
    assert "cannot be reached" in sentence
    # It speaks HTTP only, and is asked with TLS.
    ((code, sentence),) = said(f"{real}/team/ds:1", real)
    assert code == "registry-unreachable"


class _WithToken(BaseHTTPRequestHandler):
    """As public registries do it: a question without a token is answered with where to get one."""

    def do_HEAD(self) -> None:
        port = self.server.server_address[1]
        if self.headers.get("Authorization") != "Bearer one-for-all":
            self.send_response(401)
            realm = f'Bearer realm="http://127.0.0.1:{port}/token",service="s",scope="repository"'
            self.send_header("WWW-Authenticate", realm)
        else:
            self.send_response(200 if self.path == "/v2/team/ds/manifests/1" else 404)
        self.end_headers()

    def do_GET(self) -> None:
        good = self.path == "/token?service=s&scope=repository"
        self.send_response(200 if good else 400)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"token": "one-for-all"}')

    def log_message(self, *_: object) -> None:
        pass


def test_a_token_for_everybody_is_fetched() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _WithToken) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        name = f"127.0.0.1:{server.server_address[1]}"
        try:
            assert said(f"{name}/team/ds:1", f"http://{name}") == []
            assert said(f"{name}/team/ds:2", f"http://{name}")[0][0] == "image-missing"
        finally:
            server.shutdown()
            thread.join()
