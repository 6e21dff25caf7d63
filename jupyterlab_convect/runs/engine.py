"""Walks the graph of every run: starts what is ready, watches it, and writes down what happens."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from ..runtimes.base import StepRuntime
from .model import Run, RunState, State
from .store import Store

Listener = Callable[[str, int, State], None]


class Engine:
    """One driver for all runs of this process. All methods belong to one event loop."""

    def __init__(
        self,
        store: Store,
        runtimes: Mapping[str, StepRuntime],
        *,
        beat: float = 1.0,
        log: logging.Logger | None = None,
    ) -> None:
        self.store = store
        self.runtimes = runtimes
        self.beat = beat
        self.log = log or logging.getLogger(__name__)

    async def submit(self, run: Run) -> RunState:
        """Create the run and drive it. Refused when it cannot be run as asked."""
        raise NotImplementedError

    async def resume(self, *, watch: bool = False) -> list[str]:
        """Take over every run that has not ended and that nobody drives; their ids.

        With `watch`, go on doing so: runs whose host died are found in seconds.
        """
        raise NotImplementedError

    async def stop(self, run_id: str, step: str | None = None) -> None:
        """Stop a run or one step, wherever it is driven; `wait` for its end."""
        raise NotImplementedError

    async def wait(self, run_id: str, timeout: float | None = None) -> RunState:
        """The state when the run has ended, wherever it is driven. TimeoutError."""
        raise NotImplementedError

    def on_change(self, listener: Listener) -> Callable[[], None]:
        """Call `listener(run_id, seq, state)` after changes; returns what takes it off again.

        Changes that follow each other closely are told once.
        """
        raise NotImplementedError

    async def close(self) -> None:
        """Let go of the runs; their steps go on, and whoever resumes next takes over."""
        raise NotImplementedError
