"""What all tests share: folders of their own, small notebooks, and a real server to talk to."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import tempfile
import threading
import time
import venv
from collections.abc import AsyncIterator, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import hypothesis
import ipykernel
import pytest
import waiting
from jupyter_server.serverapp import ServerApp
from openapi_core import OpenAPI
from openapi_core.exceptions import OpenAPIError
from openapi_core.testing import MockRequest, MockResponse
from pytest_jupyter import jupyter_core, jupyter_server, pytest_tornasync
from tornado.httpclient import HTTPResponse
from traitlets.config import Config

from jupyterlab_convect.routes import requests

PREFIX = "jupyterlab-convect/api/v1/"

# The same examples every time, unless somebody looks for new ones: what fails, fails for everybody.
hypothesis.settings.register_profile("same", derandomize=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# The fixtures of pytest-jupyter without its hooks and those that come uncalled: they would
# take every other test of ours to an event loop of their own.
UNCALLED = ("jp_asyncio_loop", "jp_server_cleanup")
for module in (jupyter_core, pytest_tornasync, jupyter_server):
    for fixture, item in vars(module).items():
        if fixture.startswith(("jp_", "http_server", "echo_kernel")) and fixture not in UNCALLED:
            globals()[fixture] = item


def pytest_runtest_setup() -> None:
    """Begin no test that there is no time for, where the time is limited."""
    if time.time() > float(os.environ.get("CONVECT_TEST_UNTIL", "inf")):
        pytest.skip("There is no time left for it.")


@pytest.fixture(autouse=True, scope="session")
def _not_the_users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes the runs of whoever runs the tests, or waits for their end."""
    # A runner that has told its outcome may still be tidying up.
    with tempfile.TemporaryDirectory(prefix="cv-", ignore_cleanup_errors=True) as short:  # noqa: SIM117
        with _folders(short, tmp_path_factory):
            yield


@pytest.fixture(autouse=True)
def _not_of_another_test(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nor those of another test: what one leaves running takes no other's turn."""
    with _folders(tempfile.mkdtemp(prefix=""), tmp_path_factory):
        yield


@contextlib.contextmanager
def _folders(short: str, factory: pytest.TempPathFactory) -> Iterator[None]:
    """Sockets lie in the temporary folder, so its name must be short."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", short)
        patch.setattr(tempfile, "tempdir", short)
        folder = factory.mktemp("convect")
        patch.setenv("CONVECT_RUNS_DIR", str(folder / "runs"))
        patch.setenv("CONVECT_INDEX_DIR", str(folder / "index"))
        patch.setenv("JUPYTER_CONFIG_DIR", str(folder / "config"))
        yield


@pytest.fixture(scope="session")
def write_notebook() -> Callable[..., Path]:
    """Write a notebook of code cells; a cell is its source, or `(tag, source)`."""

    def write(path: Path, *cells: str | tuple[str, str], kernel: str = "python3") -> Path:
        content = {
            "cells": [_cell(index, cell) for index, cell in enumerate(cells)],
            "metadata": {
                "kernelspec": {"name": kernel, "display_name": kernel, "language": "python"},
                "language_info": {"name": "python"},
            },
            "nbformat": 4,
            "nbformat_minor": 5,
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=1), encoding="utf-8")
        return path

    return write


def _cell(index: int, cell: str | tuple[str, str]) -> dict[str, Any]:
    tag, source = cell if isinstance(cell, tuple) else (None, cell)
    return {
        "cell_type": "code",
        "id": f"cell-{index}",
        "metadata": {"tags": [tag]} if tag else {},
        "source": source,
        "outputs": [],
        "execution_count": None,
    }


@pytest.fixture
async def jp_asyncio_loop() -> asyncio.AbstractEventLoop:
    """The loop that the test itself runs on."""
    return asyncio.get_running_loop()


@pytest.fixture
def jp_server_config(tmp_path: Path) -> Config:
    return Config(
        {
            "ServerApp": {
                "jpserver_extensions": {
                    "jupyterlab_convect": True,
                    "jupyter_server_terminals": False,
                },
                "allow_unauthenticated_access": False,
            },
            "Convect": {
                "runs_dir": str(tmp_path / "runs"),
                "index_dir": str(tmp_path / "index"),
            },
        }
    )


@pytest.fixture
async def server(jp_serverapp: ServerApp, http_server: Any) -> AsyncIterator[ServerApp]:
    """A server with its extensions started, as `jupyter server` does it."""
    await jp_serverapp.extension_manager.start_all_extensions()
    yield jp_serverapp
    await jp_serverapp._cleanup()
    ServerApp.clear_instance()


@pytest.fixture(scope="session")
def until() -> Callable[..., Any]:
    return waiting.until


@pytest.fixture(scope="session")
def eventually() -> Callable[..., Any]:
    return waiting.eventually


class OtherPython:
    """A Python of its own that borrows ipykernel, with an installer as simple as can be.

    Its kernel is called `other`.
    """

    def __init__(self, folder: Path, jupyter: Path) -> None:
        venv.create(folder, with_pip=False)
        (self.packages,) = folder.glob("lib/python*/site-packages")
        (self.packages / "borrowed.pth").write_text(str(Path(ipykernel.__file__).parent.parent))
        self.path = str(folder / "bin" / "python")
        spec = jupyter / "kernels" / "other" / "kernel.json"
        spec.parent.mkdir(parents=True)
        argv = [self.path, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        spec.write_text(json.dumps({"argv": argv, "display_name": "o", "language": "python"}))

    def install(self, name: str, version: str, origin: Any = None) -> None:
        for earlier in self.packages.glob(f"{name}-*.dist-info"):
            shutil.rmtree(earlier)
        (self.packages / f"{name}.py").write_text(f"__version__ = {version!r}")
        folder = self.packages / f"{name}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nName: not this one\n"
        )
        if origin is not None:
            (folder / "direct_url.json").write_text(json.dumps(origin))

    def settle(self) -> None:
        """Let it be as if nothing had happened to it for a while."""
        for path in (Path(self.path), self.packages, *self.packages.iterdir()):
            os.utime(path, (1e9, 1e9))


@pytest.fixture
def other_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OtherPython:
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    return OtherPython(tmp_path / "other python", tmp_path / "jupyter")


class Api:
    """Asks the server and reads the answer, whatever its status.

    Every answer is held against the OpenAPI document.
    """

    def __init__(self, fetch: Callable[..., Any], description: OpenAPI) -> None:
        self._fetch = fetch
        self._description = description

    async def __call__(
        self, verb: str, path: str, /, body: Any = None, *, raw: bytes | None = None, **params: Any
    ) -> tuple[int, Any]:
        response = await self.response(verb, path, body, raw=raw, params=params)
        self._check(verb, path, response)
        return response.code, json.loads(response.body) if response.body else None

    async def ended(self, run_id: str, seconds: float = waiting.PATIENCE) -> Any:
        """The run when it has ended."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            status, run = await self("GET", f"runs/{run_id}")
            assert status == 200
            if run["ended"] is not None:
                return run
            await asyncio.sleep(0.02)
        raise AssertionError(f"run {run_id} is still {run['state']}: {run['reason']}")

    def _check(self, verb: str, path: str, response: HTTPResponse) -> None:
        request = MockRequest("http://localhost", verb.lower(), "/" + PREFIX + path)
        kind = response.headers.get("Content-Type", "").partition(";")[0]
        answer = MockResponse(response.body or b"", status_code=response.code, content_type=kind)
        try:
            self._description.validate_response(request, answer)
        except OpenAPIError as error:
            causes = getattr(error.__cause__, "schema_errors", (error.__cause__,))
            raise AssertionError(
                f"{verb} {path} answers {response.code} {kind}, which is not as described: "
                + "; ".join(str(cause) for cause in causes)
            ) from error

    async def response(
        self,
        verb: str,
        path: str,
        body: Any = None,
        *,
        raw: bytes | None = None,
        params: Any = (),
        headers: dict[str, str] | None = None,
    ) -> HTTPResponse:
        data = raw if raw is not None else None if body is None else json.dumps(body)
        return await self._fetch(
            PREFIX + path,
            method=verb,
            body=data,
            params=params,
            headers=headers,
            allow_nonstandard_methods=True,
            raise_error=False,
        )


@pytest.fixture(scope="session")
def description() -> OpenAPI:
    return OpenAPI.from_dict(requests.openapi_document())


@pytest.fixture
def api(server: ServerApp, jp_fetch: Callable[..., Any], description: OpenAPI) -> Api:
    return Api(jp_fetch, description)


class Site:
    """A web server on this machine that answers what it is told to."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.slow: set[str] = set()
        self.asked: list[tuple[str, dict[str, str]]] = []
        site = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.asked.append((self.path, dict(self.headers)))
                status, headers, body = site.pages.get(self.path, (404, {}, b"nothing here"))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if "Content-Length" not in headers:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(OSError):
                    while self.path in site.slow and not site.closing.wait(0.05):
                        self.wfile.write(b"#")
                        self.wfile.flush()
                    self.wfile.write(body)

            def log_request(self, *args: Any) -> None:
                pass

        self.closing = threading.Event()

        class Server(ThreadingHTTPServer):
            request_queue_size = 50

        self.server = Server(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.thread.start()

    def put(self, path: str, body: bytes | str, status: int = 200, **headers: str) -> str:
        data = body.encode() if isinstance(body, str) else body
        named = {name.replace("_", "-").title(): value for name, value in headers.items()}
        self.pages[path] = (status, {"Content-Type": "text/plain", **named}, data)
        return self.url + path

    def close(self) -> None:
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()
