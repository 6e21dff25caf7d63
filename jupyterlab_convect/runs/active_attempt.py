"""One attempt from its start to its end: has the runtime do it, and writes down what it says.

A poller asks the runtime about all of its attempts: as soon as it calls, otherwise at every beat.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from ..background import Health
from ..errors import ConvectError, Refused, words_of
from ..pipeline.plan import Json
from ..runtimes.base import Attempt, GraphRuntime, StepRuntime, StepStatus
from .attempts import Verdict, judge
from .events import AttemptChange, AttemptHandle, AttemptStop, StepProgress
from .model import ENDED, AttemptState, Progress, State

if TYPE_CHECKING:
    from .driver import Driver


GRACE = 30.0
"""Seconds that the runner has to end a step by itself after its timeout."""
AGAIN = 5.0
"""Seconds until a runtime that could not be asked or did not obey is asked again."""
PROGRESS_EVERY = 0.5
REMOVALS = 4
"""How often it is tried to remove what was made for an attempt, before it ends all the same."""


class ActiveAttempt:
    """Nobody else starts, asks about or stops the attempt.

    What it learns it writes down by `Driver.commit`, and its end it tells `Driver.finish`.
    """

    def __init__(self, driver: Driver, attempt: Attempt) -> None:
        self.driver = driver
        self.attempt = attempt
        self.starting: asyncio.Task[None] | None = None
        self.is_settled = False
        """It has been started (or found again), so that it makes sense to ask about it."""
        self.is_over = False
        self._is_ending = False
        """What was made for it is being removed."""
        self._runtime = driver.runtime
        self._progress_told = 0.0

    @property
    def known(self) -> AttemptState:
        """What has been written down of it."""
        return self.driver.state.steps[self.attempt.step.id].attempts[self.attempt.number - 1]

    def start(self) -> None:
        """Have it started; the decision is on disk."""
        self.driver.poller.add(self)
        self.starting = self.driver.host.spawn(self._start())

    def find_again(self) -> None:
        """Find what an earlier driver started, or was about to start."""
        self._runtime.admit(self.attempt)  # It has its room, whatever the answer is.
        self.driver.poller.add(self)
        self.starting = self.driver.host.spawn(self._look_up())
        if self.known.stopping:
            self.driver.host.spawn(self._stop())

    def stop(self, why: Literal["asked", "timeout"]) -> None:
        if self.known.stopping is None:
            self.driver.commit(AttemptStop(time.time(), *self._name, why))
            self.driver.host.spawn(self._stop())

    def check_time(self, now: float) -> None:
        """Stop it if it has not ended by itself although its time is over."""
        if isinstance(self._runtime, GraphRuntime):
            return  # It would stop the whole run; its steps keep their time themselves.
        with self.driver.guarded():
            limit, since = self.attempt.step.timeout, self.known.running
            if limit and since and now > since + limit + GRACE:
                self.stop("timeout")

    def hear(self, status: StepStatus) -> None:
        """Take in what the runtime says."""
        if self.is_over or self._is_ending:
            return
        with self.driver.guarded():
            if status.state in ENDED:
                attempt, stopping = self.attempt, self.known.stopping
                verdict = judge(status, attempt.folder, stopping, attempt.step.timeout)
                self._finish(verdict)
            else:
                self._note(status)

    def let_go(self) -> None:
        """It has ended, or somebody else sees to it now."""
        self.is_over = True
        self.driver.poller.remove(self)
        self._runtime.release(self.attempt)

    @property
    def _name(self) -> tuple[str, int]:
        return self.attempt.step.id, self.attempt.number

    def _finish(self, verdict: Verdict) -> None:
        """End it, once what was made for it is removed: after the end nobody would do that."""
        if self.driver.host.provisions.wanted(self.attempt.step):
            self._is_ending = True
            self.driver.host.spawn(self._remove_and_finish(verdict))
        else:
            self.driver.finish(self, verdict)

    async def _remove_and_finish(self, verdict: Verdict) -> None:
        for tried in range(REMOVALS):
            try:
                await self.driver.host.provisions.remove(self.attempt)
                break
            except Exception as error:  # Whatever it is, the attempt has ended.
                what = f"What was made for {self.attempt.key} could not be removed"
                self.driver.host.complain(what, error)
                if tried < REMOVALS - 1:
                    await asyncio.sleep(AGAIN)
        if not self.is_over:
            with self.driver.guarded():
                self.driver.finish(self, verdict)

    async def _make_provisions(self) -> None:
        """Make what the step asks for beside what it runs on."""

        def tell(reason: str | None) -> None:
            if self.is_over or self.known.stopping is not None:
                raise Refused("Stopped.")
            with self.driver.guarded():
                self._note(StepStatus(self.attempt.key, "starting", reason))

        provisions = self.driver.host.provisions
        if provisions.wanted(self.attempt.step):
            variables = await provisions.make(self.attempt, tell)
            tell(None)
            self.attempt = replace(self.attempt, variables=variables)

    async def _start(self) -> None:
        try:
            await self._make_provisions()
            async for handle in self._runtime.start(self.attempt):
                with self.driver.guarded():
                    self._note_handle(handle)
                if self.is_over:
                    return
        except ConvectError as error:
            self._could_not_start(error.sentence)
        except Exception as error:  # A runtime's mistake must not take the run down with it.
            self.driver.host.complain(f"{self.attempt.key} could not be started", error)
            await self._stop_quietly()
            self._could_not_start(f"It could not be started: {words_of(error)}.")
        else:
            self._settle()

    def _note_handle(self, handle: Json) -> None:
        if not self.is_over:
            self.attempt = replace(self.attempt, handle=handle)
            self.driver.commit(AttemptHandle(time.time(), *self._name, handle))

    def _could_not_start(self, reason: str) -> None:
        if not self.is_over:
            with self.driver.guarded():
                is_stopped = self.known.stopping is not None
                state: State = "cancelled" if is_stopped else "failed"
                self._finish(Verdict(state, "Stopped." if is_stopped else reason))

    async def _look_up(self) -> None:
        """Only an attempt of which the runtime is sure that it was not started is started."""
        if self.attempt.handle is None:
            found = await self._ask()
            while found is None:
                await asyncio.sleep(AGAIN)
                found = await self._ask()
            seen = found.state in ("starting", "running", *ENDED - {"lost"})
            if not seen and self.known.stopping is None:
                await self._start()
                return
        self._settle()

    async def _ask(self) -> StepStatus | None:
        try:
            return (await self._runtime.poll([self.attempt]))[0]
        except Exception as error:
            self.driver.host.complain("The runtime could not be asked", error)
            return None

    async def _stop(self) -> None:
        if self.starting is not None:
            await asyncio.wait({self.starting}, timeout=GRACE)
        while not (self.is_over or await self._stop_quietly()):
            await asyncio.sleep(AGAIN)
        self._settle()

    async def _stop_quietly(self) -> bool:
        try:
            await self._runtime.stop(self.attempt)
        except Exception as error:
            self.driver.host.complain(f"{self.attempt.key} could not be stopped", error)
            return False
        return True

    def _settle(self) -> None:
        self.is_settled = True
        self.driver.poller.wake()

    def _note(self, status: StepStatus) -> None:
        """Write down what is new while it goes on."""
        reason = status.reason
        if reason is None and status.state in ("queued", "waiting"):
            reason = "Waiting for the runtime."
        if (status.state, reason) != (self.known.state, self.known.reason):
            self.driver.commit(
                AttemptChange(time.time(), *self._name, status.state, reason, status.detail)
            )
        if status.progress is not None:
            self._note_progress(status.progress)

    def _note_progress(self, progress: Progress) -> None:
        step_id, now = self.attempt.step.id, time.monotonic()
        known = self.driver.state.steps[step_id].progress or Progress()
        if progress.cell == known.cell and progress.cells == known.cells:
            return
        if progress.cell < progress.cells and now < self._progress_told + PROGRESS_EVERY:
            return
        self._progress_told = now
        expected = progress.expected or known.expected
        self.driver.commit(
            StepProgress(
                time.time(), step_id, progress.cell, progress.cells, progress.elapsed, expected
            )
        )


BREATH = 0.005
"""A poll that takes longer than this is followed by as long a pause."""


class Poller:
    def __init__(
        self, runtime: StepRuntime, beat: float, health: Health, on_room: Callable[[], None]
    ) -> None:
        """`on_room` is called whenever steps that wait may find room."""
        self.runtime = runtime
        self._beat = beat
        self._health = health
        self._on_room = on_room
        self._attempts: dict[tuple[str, str, int], ActiveAttempt] = {}
        self._call = asyncio.Event()
        self._checked = 0.0
        self._loop = asyncio.get_running_loop()

    def add(self, active: ActiveAttempt) -> None:
        self._attempts[active.attempt.key] = active

    def remove(self, active: ActiveAttempt) -> None:
        self._attempts.pop(active.attempt.key, None)
        self._on_room()

    def wake(self) -> None:
        self._call.set()

    def wake_from_anywhere(self) -> None:
        """What the runtime calls, from whatever thread."""
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is self._loop:
            self._call.set()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._call.set)

    async def look(self) -> None:
        """Wait for a call or a beat, and ask once."""
        beat = self._loop.call_later(self._beat, self._call.set)
        await self._call.wait()
        beat.cancel()
        self._call.clear()
        self._on_room()
        began = time.monotonic()
        self._check_times()
        with self._health.guard(f"Asking {self.runtime.name} about its steps"):
            await self._poll()
        took = time.monotonic() - began
        await asyncio.sleep(took if took > BREATH else 0)

    def _check_times(self) -> None:
        """Once a beat, however often somebody calls."""
        if time.monotonic() < self._checked + self._beat:
            return
        self._checked, now = time.monotonic(), time.time()
        for active in list(self._attempts.values()):
            active.check_time(now)

    async def _poll(self) -> None:
        asked = [active.attempt for active in self._attempts.values() if active.is_settled]
        if not asked:
            return
        for status in await self.runtime.poll(asked):
            if active := self._attempts.get(status.key):
                active.hear(status)
