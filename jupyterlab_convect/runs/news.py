"""Who wants to know that runs change, and when to tell them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from ..errors import ConvectError
from .model import State
from .store import Store

Listener = Callable[[str, int, State], None]

EVERY = 0.05
"""Seconds between two rounds of telling."""
FLUSH_AFTER = 0.2
"""Seconds until other processes find a change in the index."""


class News:
    """Gathers changes, so that many of them at once cost as much as one."""

    def __init__(self, store: Store, log: logging.Logger) -> None:
        self._store = store
        self._log = log
        self._listeners: list[Listener] = []
        self._untold: dict[str, None] = {}
        self._told = 0.0
        self._flushing = False

    def listen(self, listener: Listener) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def add(self, run_id: str) -> None:
        loop = asyncio.get_running_loop()
        if not self._flushing:
            self._flushing = True
            loop.call_later(FLUSH_AFTER, self.flush)
        if not self._listeners:
            return
        if not self._untold:
            loop.call_later(max(self._told + EVERY - time.monotonic(), 0.0), self.tell)
        self._untold[run_id] = None

    def tell(self) -> None:
        self._told = time.monotonic()
        untold, self._untold = self._untold, {}
        for run_id in untold:
            try:
                state = self._store.read(run_id).state
            except ConvectError:
                continue
            for listener in list(self._listeners):
                try:
                    listener(run_id, state.seq, state.state)
                except Exception:
                    self._log.exception("A listener failed")

    def flush(self) -> None:
        self._flushing = False
        try:
            self._store.flush()
        except ConvectError as error:
            self._log.warning("%s", error)
