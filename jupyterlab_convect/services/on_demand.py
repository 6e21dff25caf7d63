"""Services that are started by whoever connects to them first.

For each kind that can be used so, a port of the loopback interface is listened on for as long as
this process lives. Who connects waits until the service is ready, and then talks to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from ..errors import ConvectError, words_of
from ..pools import LoopThread, pool
from .base import KINDS, OnDemand, kind_of
from .store import ServiceStore

PATIENCE = 300.0
USE_PAUSE = 30.0
"""Seconds between two notes that somebody is connected."""
BLOCK = 1 << 18
HTTP_VERBS = (b"GET ", b"POST", b"PUT ", b"DELE", b"HEAD", b"PATC", b"OPTI")


class OnDemandServices:
    """Waits for whoever wants a service; its own thread carries what they say."""

    def __init__(self, services: ServiceStore) -> None:
        self._services = services
        self._thread: LoopThread | None = None
        self._set: dict[str, str] = {}

    def begin(self, kinds: Iterable[str] = tuple(KINDS)) -> dict[str, str]:
        """Listen, and set the variables by which programs started from here on find the services;
        those are returned. It takes a moment."""
        for name in kinds:
            wanted = kind_of(name).on_demand(self._services.store)
            if wanted is not None:
                self._thread = self._thread or LoopThread("convect-on-demand")
                listening = _Listening(self._services, name, wanted)
                address = self._thread.wait(listening.begin())
                self._set.update(wanted.variables(address))
        os.environ.update(self._set)
        return dict(self._set)

    def end(self) -> None:
        """Stop listening, and take the variables back. The services stay."""
        for name, value in self._set.items():
            if os.environ.get(name) == value:
                del os.environ[name]
        self._set = {}
        if self._thread is not None:
            self._thread.close()
            self._thread = None


class _Listening:
    def __init__(self, services: ServiceStore, kind: str, wanted: OnDemand) -> None:
        self._services = services
        self._kind = kind
        self._wanted = wanted
        self._starting = asyncio.Lock()
        self._server: asyncio.Server | None = None

    async def begin(self) -> str:
        self._server = await asyncio.start_server(self._hear, "127.0.0.1", 0, limit=BLOCK)
        port = self._server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}"

    async def _hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            try:
                service_id, address = await self._ready()
                parts = urlsplit(address)
                to_reader, to_writer = await asyncio.open_connection(
                    parts.hostname, parts.port, limit=BLOCK
                )
            except (ConvectError, OSError) as error:
                await _refuse(reader, writer, error)
            else:
                await self._carry(service_id, (reader, writer), (to_reader, to_writer))
        writer.close()

    async def _ready(self) -> tuple[str, str]:
        """Which service it is, and where, once it is ready."""
        async with self._starting:
            options = self._wanted.options
            record = await asyncio.get_running_loop().run_in_executor(
                pool("starting"), self._services.start, self._kind, options, Path.home()
            )
            record = await self._services.until(record.service.id, up=True, timeout=PATIENCE)
        return record.service.id, self._services.address(record)

    async def _carry(
        self,
        service_id: str,
        here: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        there: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        using = asyncio.create_task(self._use(service_id))
        try:
            await asyncio.gather(_pump(here[0], there[1]), _pump(there[0], here[1]))
        finally:
            using.cancel()
            there[1].close()

    async def _use(self, service_id: str) -> None:
        while True:
            await asyncio.to_thread(self._services.use, service_id)
            await asyncio.sleep(USE_PAUSE)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(BLOCK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


async def _refuse(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, error: Exception
) -> None:
    """Say why there is no service, to who understands it."""
    with contextlib.suppress(asyncio.TimeoutError):
        if (await asyncio.wait_for(reader.read(BLOCK), 5))[:4] in HTTP_VERBS:
            sentence = error.sentence if isinstance(error, ConvectError) else words_of(error)
            body = json.dumps({"error": sentence}).encode()
            head = (
                "HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            )
            writer.write(head.encode() + body)
            await writer.drain()
