"""The owner's side of a warm process: starts it, gives orders, notices when it is gone."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import fork_start
from .fork_children import receive, send

PATIENCE = 60.0
"""Seconds it may take to get ready, and to answer an order."""
GIVE_UP = 3
"""Times it may fail to start before it is given up."""
RENEW_AFTER = 0.3
"""Seconds after an order, with none following, until a used hash seed is replaced."""


class ForkClient:
    """A warm process. It is started on demand, and again after it has ended.

    All that is forked from one interpreter has its hash seed. So the one that forks kernels
    is replaced by a new one, which has a seed of its own, as soon as it was used and nobody
    asks for more; until that is ready, the old one takes the orders.

    """

    def __init__(
        self,
        log: logging.Logger,
        launch: Mapping[str, Any] | None,
        *,
        spares: int,
        idle: float,
    ) -> None:
        """`launch` is that of the kernels it forks; None for the one that forks runners."""
        self._log = log
        self._options = fork_start.options_for(launch, spares, idle)
        self._server: _ServerProcess | None = None
        self._successor: _ServerProcess | None = None
        self._renewal: asyncio.TimerHandle | None = None
        self._failures = 0

    def warm_up(self) -> None:
        """Start it, if it does not run, without waiting for it."""
        if self._server is None:
            self._server = self._start()

    async def order(self, order: Mapping[str, Any], descriptors: Sequence[int] = ()) -> int | None:
        """The process that has taken the order; None when it has to be started the ordinary way.

        A warm process that is just being started is waited for: that takes no longer than a
        cold start. One that does not answer is ended, and started again for the next order.
        """
        self.warm_up()
        if self._server is None or not await self._server.is_ready() or self._server is None:
            return None
        self._plan_renewal()
        return await self._server.order(order, descriptors)

    async def close(self) -> None:
        """End it; what it has started continues."""
        if self._renewal is not None:
            self._renewal.cancel()
        for server in (self._successor, self._server):
            if server is not None:
                server.close()
                server.process.kill()
                await asyncio.to_thread(server.process.wait)

    def _start(self, **options: Any) -> _ServerProcess | None:
        if self._failures >= GIVE_UP:
            return None
        try:
            started = fork_start.start({**self._options, **options})
            return _ServerProcess(self._log, started, self._on_end)
        except OSError as error:
            self._log.warning("No warm process: %s", error)
            self._failures = GIVE_UP
            return None

    def _on_end(self, server: _ServerProcess) -> None:
        if server.failure is not None:
            self._log.info("No warm process: %s", server.failure)
            self._failures = GIVE_UP
        elif server.ready.done() and server.ready.result():
            self._failures = 0
        else:
            self._failures += 1
        if server is self._server:
            self._server = None
        elif server is self._successor:
            self._successor = None

    def _plan_renewal(self) -> None:
        if self._options["runner"] or os.environ.get("PYTHONHASHSEED", "random") != "random":
            return
        if self._renewal is not None:
            self._renewal.cancel()
        self._renewal = asyncio.get_running_loop().call_later(RENEW_AFTER, self._renew)

    def _renew(self) -> None:
        if self._server is not None and self._successor is None:
            self._successor = self._start(eager=True)
            if self._successor is not None:
                self._successor.ready.add_done_callback(self._replace)

    def _replace(self, ready: asyncio.Future[bool]) -> None:
        if ready.result() and self._successor is not None:
            if self._server is not None:
                self._server.retire()
            self._server, self._successor = self._successor, None


class _ServerProcess:
    """A process that runs the script, from its start to its end."""

    def __init__(
        self,
        log: logging.Logger,
        started: fork_start.Started,
        on_end: Callable[[_ServerProcess], None],
    ) -> None:
        self.process, self._control = started
        self._log = log
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[bool] = self._loop.create_future()
        self.failure: str | None = None
        self._answers: dict[int, asyncio.Future[int | None]] = {}
        self._count = 0
        self._retired = False
        self._open = True
        self._loop.add_reader(self._control, self._on_message)

    async def is_ready(self) -> bool:
        ready, _ = await asyncio.wait({self.ready}, timeout=PATIENCE)
        return bool(ready) and self.ready.result()

    async def order(self, order: Mapping[str, Any], descriptors: Sequence[int]) -> int | None:
        self._count += 1
        answer: asyncio.Future[int | None] = self._loop.create_future()
        self._answers[self._count] = answer
        try:
            send(self._control, {**order, "id": self._count}, descriptors)
            return await asyncio.wait_for(answer, PATIENCE)
        except asyncio.TimeoutError:  # which may be an OSError, too
            self._log.warning("A warm process does not answer. It is ended.")
            self.process.kill()
            return None
        except (OSError, EOFError):
            return None

    def retire(self) -> None:
        """Have it end when it has answered; what it has started continues."""
        self._retired = True
        if not self._answers:
            self.close()

    def close(self) -> None:
        if not self._open:
            return
        self._open = False
        self._loop.remove_reader(self._control)
        self._control.close()
        if not self.ready.done():
            self.ready.set_result(False)
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(EOFError())
        self._answers.clear()
        self._loop.call_later(1, self.process.poll)
        self._on_end(self)

    def _on_message(self) -> None:
        message, _ = receive(self._control)
        if message is None:
            self.close()
        elif "failed" in message:
            self.failure = message["failed"]
        elif "ready" in message:
            self.ready.set_result(True)
        else:
            answer = self._answers.pop(message["id"], None)
            if answer is not None and not answer.done():
                answer.set_result(message["pid"])
            if self._retired and not self._answers:
                self.close()
