"""The owner's side of a warm process: starts it, gives orders, notices when it is gone."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...runner import landlock, overlay
from ...runner.forked import own_launch
from ...runner.kernels import socket_folders
from .forge import receive, send
from .secret_values import without_secrets

SCRIPT = Path(__file__).with_name("forge.py")
PATIENCE = 60.0
"""Seconds it may take to get ready, and to answer an order."""
GIVE_UP = 3
"""Times it may fail to start before it is not tried any more."""


class WarmProcess:
    """A warm process. It is started on demand, and again after it has ended.

    Only Linux forks safely with the libraries involved, and finds processes again.
    """

    supported = sys.platform == "linux" and hasattr(os, "pidfd_open")

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
        self._launch = launch or own_launch()
        self._options = {
            "runner": launch is None,
            "launch": launch,
            "spares": spares,
            "idle": idle,
            "sockets": socket_folders(),
            "views": [str(overlay.__file__), str(landlock.__file__)],
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._ready: asyncio.Future[bool]
        self._answers: dict[int, asyncio.Future[int | None]] = {}
        self._count = 0
        self._failures = 0

    def warm_up(self) -> None:
        """Start it, if it does not run, without waiting for it."""
        if self._control is not None or self._failures >= GIVE_UP:
            return
        loop = asyncio.get_running_loop()
        self._control, theirs = socket.socketpair()
        command = [
            self._launch["interpreter"],
            *self._launch["flags"],
            str(SCRIPT),
            str(theirs.fileno()),
            json.dumps(self._options),
        ]
        self._ready = loop.create_future()
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**without_secrets(os.environ), **self._launch["env"]},
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        except OSError as error:
            self._log.warning("No warm process: %s", error)
            self._failures = GIVE_UP
            self._forget()
            return
        finally:
            theirs.close()
        loop.add_reader(self._control, self._on_message)

    async def order(self, order: Mapping[str, Any], descriptors: Sequence[int] = ()) -> int | None:
        """The process that has taken the order; None when it has to be started the ordinary way.

        A warm process that is just being started is waited for: that takes no longer than a
        cold start. One that does not answer is ended, and started again for the next order.
        """
        self.warm_up()
        if self._control is None:
            return None
        ready, _ = await asyncio.wait({self._ready}, timeout=PATIENCE)
        if not ready or not self._ready.result() or self._control is None:
            return None
        self._count += 1
        answer: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self._answers[self._count] = answer
        process = self._process
        try:
            send(self._control, {**order, "id": self._count}, descriptors)
            return await asyncio.wait_for(answer, PATIENCE)
        except asyncio.TimeoutError:  # which may be an OSError, too
            self._log.warning("A warm process does not answer. It is ended.")
            if process is not None:
                process.kill()
            return None
        except (OSError, EOFError):
            return None

    async def close(self) -> None:
        """End it; what it has started goes on."""
        process = self._process
        self._forget()
        if process is not None:
            process.kill()
            await asyncio.to_thread(process.wait)

    def _on_message(self) -> None:
        assert self._control is not None
        message, _ = receive(self._control)
        if message is None:
            self._failures = 0 if self._ready.done() else self._failures + 1
            self._forget()
        elif "failed" in message:
            self._log.info("No warm process: %s", message["failed"])
            self._failures = GIVE_UP
        elif "ready" in message:
            self._ready.set_result(True)
        elif (answer := self._answers.pop(message["id"], None)) and not answer.done():
            answer.set_result(message["pid"])

    def _forget(self) -> None:
        if self._control is None:
            return
        asyncio.get_running_loop().remove_reader(self._control)
        self._control.close()
        self._control = None
        if not self._ready.done():
            self._ready.set_result(False)
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(EOFError())
        self._answers.clear()
        if self._process is not None:
            asyncio.get_running_loop().call_later(1, self._process.poll)
            self._process = None
