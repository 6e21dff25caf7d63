"""Tells listeners that runs changed, and notices what other processes changed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection

from ..errors import ConvectError
from .model import State
from .store import Store

Listener = Callable[[str, int, State], None]

EVERY = 0.05
"""Seconds between two rounds of telling."""
FLUSH_AFTER = 0.2
"""Seconds until other processes find a change in the index."""
RECENT = 60.0
"""Seconds by which the clock of another machine may be behind when it makes a run."""


class ChangeFeed:
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


class OtherProcesses:
    """Notices by the index, which all processes of a machine share, that somebody wrote: a
    terminal, another server, another machine."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, tuple[int, bool]] | None = None

    @property
    def recent(self) -> Collection[str]:
        """The runs that had not ended or were new at the last look."""
        return self._known or {}

    def look(self) -> list[str]:
        """The runs that were made, went on, ended or were deleted since the last look.

        Also those of this process: whoever told of them already knows.
        """
        before = self._known
        self._known = found = self._store.recent_runs(time.time() - RECENT)
        if before is None:
            return []
        changed = [run_id for run_id, facts in found.items() if before.get(run_id) != facts]
        over = [run_id for run_id, (_, live) in before.items() if live and run_id not in found]
        return changed + over
