"""Drives one run: decides, writes the decision down, then acts on it.

All of a driver's memory follows from the run folder. A host that was killed, or that
could not write, is followed by a driver that reads the folder and goes on.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Protocol

from ..errors import ConvectError
from ..pipeline.plan import Json, Step
from ..runtimes.base import Attempt, StepRuntime, StepStatus
from .attempts import Verdict, describe, judge, working_folder
from .endings import conclusion, skipped_because
from .events import (
    AttemptChange,
    AttemptEnd,
    AttemptHandle,
    AttemptStart,
    AttemptStop,
    Event,
    RunStart,
    StepEnd,
    StepProgress,
    StepWait,
)
from .files import plain, write_json
from .lease import Lease
from .model import ENDED, GOOD, AttemptState, Progress, Run, StepState
from .restoring import restore
from .results import Results
from .selection import Choice
from .store import Store

GRACE = 30.0
"""Seconds that the runner has to end a step by itself after its timeout."""
STOP_AGAIN = 5.0
PROGRESS_EVERY = 0.5


@dataclass(slots=True, eq=False)
class Ready:
    """A step that can start as soon as there is room for it."""

    driver: Driver
    attempt: Attempt
    parts: dict[str, str]
    cache: str | None
    expected: float | None


@dataclass(slots=True, eq=False)
class Active:
    """An attempt that is being started or that runs."""

    driver: Driver
    attempt: Attempt
    task: asyncio.Task[None] | None = None
    settled: bool = False
    """It has been started (or found again), so that it makes sense to poll."""
    over: bool = False
    running_since: float | None = None
    progress_told: float = 0.0


class Host(Protocol):
    """What a driver needs of the engine."""

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


class Driver:
    """The host calls the public methods inside `guarded`."""

    def __init__(
        self, host: Host, run: Run, runtime: StepRuntime, lease: Lease, choice: Choice
    ) -> None:
        self.run = run
        self.runtime = runtime
        self.lease = lease
        self.state = host.store.read(run.id).state
        self.gone = False
        """The run has ended, or somebody else drives it."""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.actives: dict[str, Active] = {}
        self._host = host
        self._choice = choice
        self._results = Results(host.store, run, choice.leave)
        self._steps = {step.id: step for step in run.plan.steps}
        self._followers: dict[str, list[str]] = {}
        for step in run.plan.steps:
            for upstream in step.after:
                self._followers.setdefault(upstream, []).append(step.id)
        self._missing: dict[str, int] = {}
        """How many results each step still waits for."""
        self._left = 0
        """How many steps have not ended."""
        self._due: deque[str] = deque()
        """Steps that wait for nothing any more."""
        self._queued: dict[str, Ready] = {}

    def begin(self) -> None:
        """Start the run, or go on with it from whatever state it is in."""
        plan, steps = self.run.plan, self.state.steps
        if self.state.started is None:
            now = time.time()
            leave = [step.id for step in plan.steps if step.id in self._choice.leave]
            not_asked = [StepEnd(now, step_id, "skipped", "Not asked for.") for step_id in leave]
            self._commit(RunStart(now), *not_asked)
        self._left = sum(step.state not in ENDED for step in steps.values())
        for step in plan.steps:
            self._missing[step.id] = sum(
                upstream not in self._choice.leave and steps[upstream].state not in GOOD
                for upstream in step.after
            )
        for step in plan.steps:
            if steps[step.id].state in ENDED - GOOD and step.id not in self._choice.leave:
                self._skip_followers(step.id)
        for step_id, place in self._choice.reuse.items():
            if steps[step_id].state not in ENDED:
                self._take_over(step_id, place, f"Taken over from run {place[:25]}, as asked.")
        for step in plan.steps:
            if step.id in self._choice.execute and steps[step.id].state not in ENDED:
                self._pick_up(steps[step.id])
        self.heed()

    def heed(self) -> None:
        """Do what has been asked since the last time: stop the run or some of its steps."""
        self.state = self._host.store.read(self.run.id).state
        asked = [
            step
            for step in self.state.steps.values()
            if (self.state.stopping or step.stopping) and step.state not in ENDED
        ]
        now = time.time()
        idle = [step.id for step in asked if step.id not in self.actives]
        if idle:
            self._end_steps(*(StepEnd(now, step_id, "cancelled", "Stopped.") for step_id in idle))
        for step in asked:
            if active := self.actives.get(step.id):
                self._stop_attempt(active, "asked")
        self._settle()

    def launch(self, ready: Ready) -> None:
        """Start an attempt that has been let in."""
        attempt = ready.attempt
        del self._queued[attempt.step.id]
        try:
            self._write_step(ready)
            self._commit(
                AttemptStart(
                    time.time(),
                    attempt.step.id,
                    attempt.number,
                    ready.parts,
                    ready.cache,
                    ready.expected,
                )
            )
        except ConvectError as error:
            self.runtime.release(attempt)
            self._end_steps(StepEnd(time.time(), attempt.step.id, "failed", error.sentence))
            self._settle()
            return
        except BaseException:
            self.runtime.release(attempt)
            raise
        active = Active(self, attempt)
        self._activate(active)
        active.task = self._host.spawn(self._start(active))

    def is_waiting(self, ready: Ready) -> bool:
        """Whether the step still wants to start."""
        return not self.gone and self._queued.get(ready.attempt.step.id) is ready

    def wait_for_room(self, ready: Ready, reason: str) -> None:
        step = self.state.steps[ready.attempt.step.id]
        if step.state != "queued" or step.reason != reason:
            self._commit(StepWait(time.time(), step.id, "queued", reason))

    def hear(self, active: Active, status: StepStatus) -> None:
        """Take in what the runtime says of an attempt."""
        if active.over:
            return
        known, attempt = self._attempt_state(active), active.attempt
        if status.state in ENDED:
            verdict = judge(status, attempt.folder, known.stopping, attempt.step.timeout)
            self._finish_attempt(active, verdict)
            self._settle()
            return
        if status.state == "running" and active.running_since is None:
            active.running_since = time.time()
        reason = status.reason
        if reason is None and status.state in ("queued", "waiting"):
            reason = "Waits for the runtime."
        if (status.state, reason) != (known.state, known.reason):
            step_id, number = attempt.step.id, attempt.number
            self._commit(
                AttemptChange(time.time(), step_id, number, status.state, reason, status.detail)
            )
        if status.progress is not None:
            self._note_progress(active, status.progress)

    def check_time(self, active: Active, now: float) -> None:
        """Stop what has not ended by itself although its time is over."""
        limit = active.attempt.step.timeout
        if limit and active.running_since and now > active.running_since + limit + GRACE:
            self._stop_attempt(active, "timeout")

    def starting(self) -> list[Active]:
        """The attempts that are just being started."""
        return [
            active
            for active in self.actives.values()
            if active.task is not None and not active.task.done()
        ]

    def let_go(self) -> None:
        """Forget the run; its steps go on."""
        self.gone = True
        for active in self.actives.values():
            active.over = True
            self._host.unwatch(active)
            self.runtime.release(active.attempt)

    def _commit(self, *events: Event) -> None:
        self.state = self._host.store.append(self.run.id, *events)
        self._host.changed(self.run.id)

    def _settle(self) -> None:
        """See to the steps that wait for nothing any more, and end the run after the last one."""
        while self._due:
            self._make_ready(self._due.popleft())
        if self._left == 0 and not self.gone:
            self._commit(conclusion(self.run, self.state, time.time()))
            self.gone = True
            self._host.finished(self)

    def _pick_up(self, step: StepState) -> None:
        """Go on with a step that has not ended, wherever the last driver left it."""
        last = step.attempts[-1] if step.attempts else None
        if last is None:
            if not self._missing[step.id]:
                self._due.append(step.id)
        elif last.state in ENDED:
            attempt = self._attempt(self._steps[step.id], last.attempt)
            status = StepStatus(attempt.key, last.state, last.reason, last.detail)
            verdict = judge(status, attempt.folder, last.stopping, attempt.step.timeout)
            self._after_attempt(step.id, verdict, last.ended or time.time())
        else:
            self._find_again(step, last)

    def _make_ready(self, step_id: str) -> None:
        """All that the step waits for is there: bind it, reuse a result, or queue it."""
        known = self.state.steps[step_id]
        if known.state in ENDED:
            return
        try:
            step = self._results.bind(self._steps[step_id], self.state)
            parts = self._results.parts(step, self.state)
        except ConvectError as error:
            self._end_steps(StepEnd(time.time(), step_id, "failed", error.sentence))
            return
        if known.attempts:
            self._enqueue(step, parts, known.cache)
            return
        place, cache = self._results.earlier(step, parts)
        if place is None:
            self._enqueue(step, parts, cache)
        else:
            self._take_over(step_id, place, cache, partial(self._enqueue, step, parts))

    def _enqueue(self, step: Step, parts: dict[str, str], cache: str | None) -> None:
        number = len(self.state.steps[step.id].attempts) + 1
        expected = self._results.expected(step.id)
        ready = Ready(self, self._attempt(step, number), parts, cache, expected)
        self._queued[step.id] = ready
        self._host.enqueue(ready)

    def _take_over(
        self,
        step_id: str,
        place: str,
        cache: str,
        otherwise: Callable[[str], None] | None = None,
    ) -> None:
        """Make an earlier result the step's own.

        When that does not work out, do what `otherwise` says, or fail the step.
        """
        found = self._results.at(place, step_id)
        if found is None:
            why = f"The result in run {place.partition('/')[0]} is not complete any more."
            self._give_up_reuse(step_id, why, otherwise)
            return
        folder, outcome = found
        self._results.remember(step_id, folder, outcome)
        end = StepEnd(
            time.time(),
            step_id,
            "cached",
            outputs=outcome.values,
            metrics=outcome.metrics,
            cache=cache,
            source=place,
        )
        step = self._steps[step_id]
        if not outcome.files or step.working_folder == "isolated":
            self._end_steps(end)
            return
        home = working_folder(self.run, step, folder)
        put_back = asyncio.to_thread(restore, folder, outcome.files, home)
        self._host.spawn(self._restore(put_back, end, otherwise))

    async def _restore(
        self,
        put_back: Coroutine[Any, Any, None],
        end: StepEnd,
        otherwise: Callable[[str], None] | None,
    ) -> None:
        why = None
        try:
            await put_back
        except OSError as error:
            why = f"The files of the earlier result cannot be put back: {plain(error)}."
        with self._host.guarded(self):
            if self.gone or self.state.steps[end.step].state in ENDED:
                return
            if why is None:
                self._end_steps(replace(end, time=time.time()))
            else:
                self._give_up_reuse(end.step, why, otherwise)
            self._settle()

    def _give_up_reuse(
        self, step_id: str, why: str, otherwise: Callable[[str], None] | None
    ) -> None:
        if otherwise is None:
            self._end_steps(StepEnd(time.time(), step_id, "failed", why))
        else:
            otherwise(f"Not reused: {why}")

    def _write_step(self, ready: Ready) -> None:
        attempt = ready.attempt
        upstream = self._results.upstream(attempt.step)
        attempt.folder.mkdir(parents=True, exist_ok=True)
        content = describe(
            self.run, attempt.step, attempt.number, attempt.folder, upstream, ready.expected
        )
        write_json(attempt.folder / "step.json", content)

    def _attempt(self, step: Step, number: int, handle: Json = None) -> Attempt:
        folder = self._host.store.attempt_folder(self.run.id, step.id, number)
        return Attempt(self.run.id, step, number, folder, handle)

    def _activate(self, active: Active) -> None:
        self.actives[active.attempt.step.id] = active
        self._host.watch(active)

    async def _start(self, active: Active) -> None:
        attempt = active.attempt
        try:
            async for handle in self.runtime.start(attempt):
                with self._host.guarded(self):
                    if not active.over:
                        self._note_handle(active, handle)
                if self.gone:
                    return
        except ConvectError as error:
            self._could_not_start(active, error.sentence)
        except Exception as error:  # A runtime's mistake must not take the run down with it.
            self._host.complain(f"{attempt.key} could not be started", error)
            await self._stop_quietly(active)
            words = f"{type(error).__name__}: {error}".rstrip(": ")
            self._could_not_start(active, f"It could not be started: {words}.")
        else:
            active.settled = True
            self._host.poll_soon(self.runtime)

    def _note_handle(self, active: Active, handle: Json) -> None:
        active.attempt = replace(active.attempt, handle=handle)
        step_id, number = active.attempt.step.id, active.attempt.number
        self._commit(AttemptHandle(time.time(), step_id, number, handle))

    def _could_not_start(self, active: Active, reason: str) -> None:
        with self._host.guarded(self):
            if not active.over:
                self._finish_attempt(active, Verdict("failed", reason))
                self._settle()

    def _find_again(self, step: StepState, last: AttemptState) -> None:
        """Take up an attempt that an earlier driver started, or was about to start."""
        try:
            bound = self._results.bind(self._steps[step.id], self.state)
        except ConvectError:
            bound = self._steps[step.id]
        active = Active(self, self._attempt(bound, last.attempt, last.handle))
        if last.state == "running":
            active.running_since = last.started
        self.runtime.admit(active.attempt)  # It has its room, whatever the answer is.
        self._activate(active)
        active.task = self._host.spawn(self._look_up(active))
        if last.stopping:
            self._host.spawn(self._stop(active))

    async def _look_up(self, active: Active) -> None:
        """Only an attempt that nobody has seen started is started (again)."""
        if active.attempt.handle is None:
            try:
                found = await self.runtime.poll([active.attempt])
            except Exception as error:
                self._host.complain("The runtime could not be asked", error)
                found = []
            seen = found and found[0].state in ("starting", "running", *ENDED - {"lost"})
            if not seen and self._attempt_state(active).stopping is None:
                await self._start(active)
                return
        active.settled = True
        self._host.poll_soon(self.runtime)

    def _stop_attempt(self, active: Active, why: Literal["asked", "timeout"]) -> None:
        if self._attempt_state(active).stopping is None:
            step_id, number = active.attempt.step.id, active.attempt.number
            self._commit(AttemptStop(time.time(), step_id, number, why))
            self._host.spawn(self._stop(active))

    async def _stop(self, active: Active) -> None:
        if active.task is not None:
            await asyncio.wait({active.task}, timeout=GRACE)
        while not (active.over or await self._stop_quietly(active)):
            await asyncio.sleep(STOP_AGAIN)
        active.settled = True
        self._host.poll_soon(self.runtime)

    async def _stop_quietly(self, active: Active) -> bool:
        try:
            await self.runtime.stop(active.attempt)
        except Exception as error:
            self._host.complain(f"{active.attempt.key} could not be stopped", error)
            return False
        return True

    def _finish_attempt(self, active: Active, verdict: Verdict) -> None:
        step_id, number = active.attempt.step.id, active.attempt.number
        outcome, now = verdict.outcome, time.time()
        if outcome is not None:
            self._results.remember(step_id, active.attempt.folder, outcome)
        end = AttemptEnd(
            now,
            step_id,
            number,
            verdict.state,
            verdict.reason,
            verdict.detail,
            outcome.started if outcome else None,
            outcome.ended if outcome else now,
        )
        self._after_attempt(step_id, verdict, now, end)
        active.over = True
        del self.actives[step_id]
        self._host.unwatch(active)
        self.runtime.release(active.attempt)

    def _after_attempt(self, step_id: str, verdict: Verdict, ended: float, *events: Event) -> None:
        """Try again, or end the step the way its last attempt ended."""
        step, retries = self.state.steps[step_id], self._steps[step_id].retries
        tried, now = len(step.attempts), time.time()
        stopping = step.stopping or self.state.stopping
        if verdict.state == "failed" and tried <= retries.count and not stopping:
            delay = max(ended + retries.delay * retries.factor ** (tried - 1) - now, 0.0)
            reason = (
                f"Attempt {tried} of {retries.count + 1} failed: {verdict.reason} "
                f"The next one starts in {delay:.3g} s."
            )
            self._commit(*events, StepWait(now, step_id, "waiting", reason))
            self._host.later(delay, self, partial(self._try_again, step_id))
            return
        reason = verdict.reason or ""
        if verdict.state == "failed" and tried > 1:
            reason = f"All {tried} attempts failed. The last: {reason}"
        outcome = verdict.outcome
        values, metrics = (outcome.values, outcome.metrics) if outcome else ({}, {})
        end = StepEnd(now, step_id, verdict.state, reason or None, values, metrics)
        self._end_steps(end, before=events)

    def _try_again(self, step_id: str) -> None:
        self._due.append(step_id)
        self._settle()

    def _end_steps(self, *ends: StepEnd, before: tuple[Event, ...] = ()) -> None:
        """Write down how steps ended, and note what follows from it for `_settle`."""
        self._commit(*before, *ends)
        self._left -= len(ends)
        for end in ends:
            self._queued.pop(end.step, None)
            if end.state not in GOOD:
                self._skip_followers(end.step)
                continue
            for follower in self._followers.get(end.step, ()):
                self._missing[follower] -= 1
                if not self._missing[follower] and follower in self._choice.execute:
                    self._due.append(follower)

    def _skip_followers(self, culprit: str) -> None:
        now, steps = time.time(), self.state.steps
        reason = skipped_because(steps[culprit])
        ends: dict[str, StepEnd] = {}
        left = list(self._followers.get(culprit, ()))
        while left:
            step_id = left.pop()
            if step_id not in ends and steps[step_id].state not in ENDED:
                ends[step_id] = StepEnd(now, step_id, "skipped", reason)
                left += self._followers.get(step_id, ())
        if ends:
            self._commit(*ends.values())
            self._left -= len(ends)

    def _note_progress(self, active: Active, progress: Progress) -> None:
        step_id, now = active.attempt.step.id, time.monotonic()
        known = self.state.steps[step_id].progress or Progress()
        if progress.cell == known.cell and progress.cells == known.cells:
            return
        if progress.cell < progress.cells and now < active.progress_told + PROGRESS_EVERY:
            return
        active.progress_told = now
        expected = progress.expected or known.expected
        self._commit(
            StepProgress(
                time.time(), step_id, progress.cell, progress.cells, progress.elapsed, expected
            )
        )

    def _attempt_state(self, active: Active) -> AttemptState:
        return self.state.steps[active.attempt.step.id].attempts[active.attempt.number - 1]
