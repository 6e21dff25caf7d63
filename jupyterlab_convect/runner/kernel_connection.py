"""The connection to a kernel, without a thread or a task of its own."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import zmq
from jupyter_client.blocking.client import BlockingKernelClient

Message = dict[str, Any]

BATCH = 100
_ahead: list[Any] = []
"""A client that was made before there was a use for it, because that takes a while."""


class KernelConnection:
    """Hands each message of the kernel to a callback, and each reply to who waits for it.

    ZeroMQ announces messages on a descriptor only when its state changes, and using a
    socket counts as having looked. So all sockets are emptied whenever one of them was
    used; asyncio's own ZeroMQ sockets miss messages here.
    """

    def __init__(
        self, connection: Mapping[str, Any], on_broadcast: Callable[[Message], None]
    ) -> None:
        self.client: Any = _ahead.pop() if _ahead else _new_client()
        self.client.load_connection_info(dict(connection))
        self.client.start_channels(stdin=False, hb=False)
        self.client.allow_stdin = False
        self.error: asyncio.Future[None]
        self._on_broadcast = on_broadcast
        self._replies: dict[str, asyncio.Future[Message]] = {}
        self._loop = asyncio.get_running_loop()
        self.error = self._loop.create_future()
        channels = (
            self.client.iopub_channel,
            self.client.shell_channel,
            self.client.control_channel,
        )
        self._sockets = [channel.socket for channel in channels]
        for socket in self._sockets:
            self._loop.add_reader(socket.getsockopt(zmq.FD), self.drain)

    def expect(self, message_id: str) -> asyncio.Future[Message]:
        """The reply to a message that was just sent."""
        reply: asyncio.Future[Message] = self._loop.create_future()
        self._replies[message_id] = reply
        self._loop.call_soon(self.drain)
        return reply

    def drain(self) -> None:
        """Take what has arrived; a flood in portions, so that it starves nothing else."""
        if self.client is None or self.error.done():
            return
        try:
            if sum(self._drain(socket) for socket in self._sockets):
                self._loop.call_soon(self.drain)
        except Exception as error:
            self.error.set_exception(error)

    def close(self) -> None:
        if self.client is not None:
            for socket in self._sockets:
                self._loop.remove_reader(socket.getsockopt(zmq.FD))
            self.client.stop_channels()
            self.client = None

    def _drain(self, socket: Any) -> bool:
        session = self.client.session
        for _ in range(BATCH):
            # To look costs less than the exception when there is nothing.
            if not socket.getsockopt(zmq.EVENTS) & zmq.POLLIN:
                return False
            parts = socket.recv_multipart(zmq.NOBLOCK)
            message = read_message(session, session.feed_identities(parts)[1])
            if socket is self._sockets[0]:
                self._on_broadcast(message)
            else:
                reply = self._replies.pop(message["parent_header"].get("msg_id"), None)
                if reply is not None and not reply.done():
                    reply.set_result(message)
        return True


def read_message(session: Any, parts: Sequence[bytes]) -> Message:
    """What the session would read, except that dates stay text: making them takes longer than
    everything else, and nobody here looks at them. ValueError when it is not the kernel's."""
    signature, *packed = parts
    header = session.unpack(packed[0])
    if not str(header.get("version")).startswith("5."):
        return dict(session.deserialize(parts))  # translated from an older protocol
    if not hmac.compare_digest(session.sign(packed[:4]), signature):
        raise ValueError("A message that claims to come from the kernel has an invalid signature.")
    parent, metadata, content = map(session.unpack, packed[1:4])
    return {
        "header": header,
        "msg_id": header["msg_id"],
        "msg_type": header["msg_type"],
        "parent_header": parent,
        "metadata": metadata,
        "content": content,
        "buffers": [memoryview(part) for part in packed[4:]],
    }


def _new_client() -> Any:
    # With a context of its own, it would wait for the end of that when it is closed.
    client: Any = BlockingKernelClient(context=zmq.Context.instance())
    client.session.msg("x")  # which makes the session
    return client


def rehearse() -> None:
    """Use everything once, ahead of time, with nobody at the other end.

    In a forked process the first use is slow: the system copies the memory it touches.
    """

    async def call() -> None:
        connection = KernelConnection(
            {"transport": "ipc", "ip": "/nowhere", "key": "-"}, lambda _: None
        )
        session = connection.client.session
        read_message(session, session.feed_identities(session.serialize(session.msg("x")))[1])
        connection.close()

    asyncio.run(call())
    _ahead.append(_new_client())
