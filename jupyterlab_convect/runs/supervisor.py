"""Sees to the attempts of one run while they start, run and stop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ..errors import ConvectError
from ..pipeline.plan import Json
from ..runtimes.base import Attempt, StepRuntime, StepStatus
from .attempts import Verdict
from .events import AttemptChange, AttemptHandle, AttemptStop, StepProgress
from .files import plain
from .model import ENDED, AttemptState, Progress
from .store import Store

if TYPE_CHECKING:
    from .driver import Driver, Ready

GRACE = 30.0
"""Seconds that the runner has to end a step by itself after its timeout."""
AGAIN = 5.0
"""Seconds until a runtime that could not be asked or did not obey is asked again."""
PROGRESS_EVERY = 0.5


@dataclass(slots=True, eq=False)
class Active:
    """An attempt that is being started or that runs."""

    driver: Driver
    attempt: Attempt
    task: asyncio.Task[None] | None = None
    settled: bool = False
    """It has been started (or found again), so that it makes sense to poll."""
    over: bool = False
    progress_told: float = 0.0

    @property
    def known(self) -> AttemptState:
        """What has been written down of it."""
        return self.driver.state.steps[self.attempt.step.id].attempts[self.attempt.number - 1]


class Host(Protocol):
    """What the driver of a run needs of the engine."""

    store: Store

    def enqueue(self, ready: Ready) -> None: ...
    def watch(self, active: Active) -> None: ...
    def unwatch(self, active: Active) -> None: ...
    def poll_soon(self, runtime: StepRuntime) -> None: ...
    def guarded(self, driver: Driver) -> AbstractContextManager[None]: ...
    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]: ...
    def later(self, delay: float, driver: Driver, work: Callable[[], None]) -> None: ...
    def changed(self, run_id: str) -> None: ...
    def finished(self, driver: Driver) -> None: ...
    def complain(self, message: str, error: BaseException) -> None: ...


class Supervisor:
    def __init__(self, host: Host, driver: Driver) -> None:
        self._host = host
        self._driver = driver
        self._runtime = driver.runtime

    def start(self, active: Active) -> None:
        """Have it started; the decision is on disk."""
        self._host.watch(active)
        active.task = self._host.spawn(self._start(active))

    def find_again(self, active: Active) -> None:
        """Take up an attempt that an earlier driver started, or was about to start."""
        self._runtime.admit(active.attempt)  # It has its room, whatever the answer is.
        self._host.watch(active)
        active.task = self._host.spawn(self._look_up(active))
        if active.known.stopping:
            self._host.spawn(self._stop(active))

    def stop(self, active: Active, why: Literal["asked", "timeout"]) -> None:
        if active.known.stopping is None:
            step_id, number = active.attempt.step.id, active.attempt.number
            self._driver.commit(AttemptStop(time.time(), step_id, number, why))
            self._host.spawn(self._stop(active))

    def check_time(self, active: Active, now: float) -> None:
        """Stop what has not ended by itself although its time is over."""
        limit, since = active.attempt.step.timeout, active.known.running
        if limit and since and now > since + limit + GRACE:
            self.stop(active, "timeout")

    def note(self, active: Active, status: StepStatus) -> None:
        """Write down what is new about an attempt that goes on."""
        reason = status.reason
        if reason is None and status.state in ("queued", "waiting"):
            reason = "Waits for the runtime."
        if (status.state, reason) != (active.known.state, active.known.reason):
            step_id, number = active.attempt.step.id, active.attempt.number
            self._driver.commit(
                AttemptChange(time.time(), step_id, number, status.state, reason, status.detail)
            )
        if status.progress is not None:
            self._note_progress(active, status.progress)

    async def _start(self, active: Active) -> None:
        attempt = active.attempt
        try:
            async for handle in self._runtime.start(attempt):
                with self._host.guarded(self._driver):
                    self._note_handle(active, handle)
                if active.over:
                    return
        except ConvectError as error:
            self._could_not_start(active, error.sentence)
        except Exception as error:  # A runtime's mistake must not take the run down with it.
            self._host.complain(f"{attempt.key} could not be started", error)
            await self._stop_quietly(active)
            named = f"{type(error).__name__}: {error}".rstrip(": ")
            words = plain(error) if isinstance(error, OSError) else named
            self._could_not_start(active, f"It could not be started: {words}.")
        else:
            self._settle(active)

    def _note_handle(self, active: Active, handle: Json) -> None:
        if active.over:
            return
        active.attempt = replace(active.attempt, handle=handle)
        step_id, number = active.attempt.step.id, active.attempt.number
        self._driver.commit(AttemptHandle(time.time(), step_id, number, handle))

    def _could_not_start(self, active: Active, reason: str) -> None:
        with self._host.guarded(self._driver):
            self._driver.finish(active, Verdict("failed", reason))

    async def _look_up(self, active: Active) -> None:
        """Only an attempt of which the runtime is sure that it was not started is started."""
        if active.attempt.handle is None:
            found = await self._ask(active)
            while found is None:
                await asyncio.sleep(AGAIN)
                found = await self._ask(active)
            seen = found.state in ("starting", "running", *ENDED - {"lost"})
            if not seen and active.known.stopping is None:
                await self._start(active)
                return
        self._settle(active)

    async def _ask(self, active: Active) -> StepStatus | None:
        try:
            return (await self._runtime.poll([active.attempt]))[0]
        except Exception as error:
            self._host.complain("The runtime could not be asked", error)
            return None

    async def _stop(self, active: Active) -> None:
        if active.task is not None:
            await asyncio.wait({active.task}, timeout=GRACE)
        while not (active.over or await self._stop_quietly(active)):
            await asyncio.sleep(AGAIN)
        self._settle(active)

    async def _stop_quietly(self, active: Active) -> bool:
        try:
            await self._runtime.stop(active.attempt)
        except Exception as error:
            self._host.complain(f"{active.attempt.key} could not be stopped", error)
            return False
        return True

    def _settle(self, active: Active) -> None:
        active.settled = True
        self._host.poll_soon(self._runtime)

    def _note_progress(self, active: Active, progress: Progress) -> None:
        step_id, now = active.attempt.step.id, time.monotonic()
        known = self._driver.state.steps[step_id].progress or Progress()
        if progress.cell == known.cell and progress.cells == known.cells:
            return
        if progress.cell < progress.cells and now < active.progress_told + PROGRESS_EVERY:
            return
        active.progress_told = now
        expected = progress.expected or known.expected
        self._driver.commit(
            StepProgress(
                time.time(), step_id, progress.cell, progress.cells, progress.elapsed, expected
            )
        )
