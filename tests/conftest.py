"""What all tests share: folders of their own, small notebooks, and a real server to talk to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_server.serverapp import ServerApp
from pytest_jupyter import jupyter_core, jupyter_server, pytest_tornasync
from tornado.httpclient import HTTPClientError, HTTPResponse
from traitlets.config import Config

PREFIX = "jupyterlab-convect/api/v1/"

# The fixtures of pytest-jupyter without its hooks and those that come uncalled: they would
# take every other test of ours to an event loop of their own.
UNCALLED = ("jp_asyncio_loop", "jp_server_cleanup")
for module in (jupyter_core, pytest_tornasync, jupyter_server):
    for fixture, item in vars(module).items():
        if fixture.startswith(("jp_", "http_server", "echo_kernel")) and fixture not in UNCALLED:
            globals()[fixture] = item


@pytest.fixture(autouse=True, scope="session")
def _own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes the runs of whoever runs the tests."""
    folder = tmp_path_factory.mktemp("convect")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONVECT_RUNS_DIR", str(folder / "runs"))
        patch.setenv("CONVECT_INDEX_DIR", str(folder / "index"))
        patch.setenv("JUPYTER_CONFIG_DIR", str(folder / "config"))
        yield


@pytest.fixture
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
async def jp_asyncio_loop() -> AsyncIterator[asyncio.AbstractEventLoop]:
    """The loop that the test itself runs on."""
    yield asyncio.get_running_loop()


@pytest.fixture
def jp_server_config(tmp_path: Path) -> Config:
    return Config(
        {
            "ServerApp": {
                "jpserver_extensions": {"jupyterlab_convect": True},
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


class Api:
    """Asks the server and reads the answer, whatever its status."""

    def __init__(self, fetch: Callable[..., Any]) -> None:
        self._fetch = fetch

    async def __call__(
        self, verb: str, path: str, body: Any = None, *, raw: bytes | None = None, **params: Any
    ) -> tuple[int, Any]:
        response = await self.response(verb, path, body, raw=raw, params=params)
        return response.code, json.loads(response.body) if response.body else None

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
        try:
            return await self._fetch(
                PREFIX + path,
                method=verb,
                body=data,
                params=params,
                headers=headers,
                allow_nonstandard_methods=True,
            )
        except HTTPClientError as error:
            assert error.response is not None
            return error.response


@pytest.fixture
def api(server: ServerApp, jp_fetch: Callable[..., Any]) -> Api:
    return Api(jp_fetch)
