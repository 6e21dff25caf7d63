"""A stand-in for an API server that does what a test needs of it, over real connections."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from waiting import PATIENCE

from jupyterlab_convect.runtimes.kubernetes import KubernetesRuntime
from jupyterlab_convect.runtimes.kubernetes.api import Api, connect

Answer = tuple[int, Any]


class Server(ThreadingHTTPServer):
    """`answers` say what a request gets: by its method and the last part of its path."""

    daemon_threads = True

    def __init__(self) -> None:
        self.answers: dict[str, Callable[[Any], Answer]] = {}
        self.watch: Callable[[str], Iterator[bytes]] = lambda kind: iter(())
        """The lines of a watch, which ends with them."""
        self.requests: list[str] = []
        self.changed = threading.Condition()
        super().__init__(("127.0.0.1", 0), _Handler)

    def count(self, request: str) -> int:
        return self.requests.count(request)

    def wait_for(self, check: Callable[[], Any]) -> None:
        with self.changed:
            assert self.changed.wait_for(check, PATIENCE), self.requests


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        self._answer(None)

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self._answer(json.loads(self.rfile.read(length) or b"null"))

    do_DELETE = do_POST

    def _answer(self, body: Any) -> None:
        address = urlsplit(self.path)
        watching = "watch" in parse_qs(address.query)
        name = "WATCH" if watching else self.command
        request = f"{name} {address.path.rpartition('/')[2]}"
        with self.server.changed:
            self.server.requests.append(request)
            self.server.changed.notify_all()
        if watching:
            self._stream(self.server.watch(request.split()[1]))
            return
        answer = self.server.answers.get(request, lambda _: (200, EMPTY))(body)
        if isinstance(answer[1], Iterator):
            self._stream(answer[1])
            return
        data = answer[1] if isinstance(answer[1], bytes) else json.dumps(answer[1]).encode()
        self.send_response(answer[0])
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, pieces: Iterator[bytes]) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in chain(pieces, [b""]):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()

    def log_message(self, *_: object) -> None:
        pass


EMPTY = {"items": [], "metadata": {"resourceVersion": "7"}}


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def kubeconfig(server: Server, tmp_path: Path) -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
        ],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    return path


@pytest.fixture
def api(kubeconfig: Path) -> Api:
    return Api(connect(config_file=str(kubeconfig)))


@pytest.fixture
async def runtime(kubeconfig: Path) -> Any:
    runtime = KubernetesRuntime(config_file=str(kubeconfig), image="ds:1")
    yield runtime
    await runtime.close()
