"""Drives one run: decides, writes the decision down, then acts on it.

All of a driver's memory follows from the run folder. A host that was killed, or that
could not write, is followed by a driver that reads the folder and goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import time
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import ConvectError
from ..pipeline.plan import Json, Step
from ..run_files import make_folder
from ..runner.turns import end_turn, turn_mark
from ..runtimes.base import Attempt, StepRuntime, StepStatus
from .attempts import Outcome, Verdict, describe, judge, keep_source
from .endings import conclusion, skipped_because
from .events import AttemptEnd, AttemptStart, Event, RunEnd, RunFiles, RunStart, StepEnd, StepWait
from .files import plain, remove_drafts, write_json
from .lease import Lease
from .made import remove_unfinished, see_to_files
from .model import ENDED, GOOD, AttemptState, Run, State, StepState
from .project import describe_view, in_view, turns_folder, working_folder
from .put_back import PutBack
from .restoring import restore
from .results import Results
from .selection import Choice
from .snapshots import Snapshot
from .supervisor import Active, Host, Supervisor


@dataclass(slots=True, eq=False)
class Ready:
    """A step that can start as soon as there is room for it."""

    driver: Driver
    attempt: Attempt
    parts: dict[str, str]
    cache: str | None
    expected: float | None


class Driver:
    """The host calls the public methods inside `guarded`."""

    def __init__(
        self,
        host: Host,
        run: Run,
        runtime: StepRuntime,
        lease: Lease,
        choice: Choice,
        hopeless: str | None = None,
    ) -> None:
        """`hopeless` says why nobody can go on with the run: what runs is stopped, and it ends."""
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
        self._hopeless = hopeless
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
        self._putting = False
        """What the run made is being put into the project."""
        self._supervisor = Supervisor(host, self)

    def begin(self) -> None:
        """Start the run, or go on with it from whatever state it is in."""
        plan, steps = self.run.plan, self.state.steps
        if self.state.started is None:
            now = time.time()
            leave = [step.id for step in plan.steps if step.id in self._choice.leave]
            not_asked = [StepEnd(now, step_id, "skipped", "Not asked for.") for step_id in leave]
            chosen = (sorted(self._choice.execute), self._choice.reuse) if self._is_partial else ()
            self.commit(RunStart(now, *chosen), *not_asked)
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
            if (self._hopeless or self.state.stopping or step.stopping) and step.state not in ENDED
        ]
        end: tuple[State, str] = ("cancelled", "Stopped.")
        if self._hopeless:
            end = ("skipped", self._hopeless)
        now = time.time()
        idle = [step.id for step in asked if step.id not in self.actives]
        if idle:
            self._end_steps(*(StepEnd(now, step_id, *end) for step_id in idle))
        for step in asked:
            if active := self.actives.get(step.id):
                self._supervisor.stop(active, "asked")
        self._settle()

    def launch(self, ready: Ready) -> None:
        """Start an attempt that has been let in."""
        attempt = ready.attempt
        del self._queued[attempt.step.id]
        try:
            self._write_step(ready)
            self.commit(
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
        self.actives[attempt.step.id] = active = Active(self, attempt)
        self._supervisor.start(active)

    def is_waiting(self, ready: Ready) -> bool:
        """Whether the step still wants to start."""
        return not self.gone and self._queued.get(ready.attempt.step.id) is ready

    def wait_for_room(self, ready: Ready, reason: str) -> None:
        step = self.state.steps[ready.attempt.step.id]
        if step.state != "queued" or step.reason != reason:
            self.commit(StepWait(time.time(), step.id, "queued", reason))

    def hear(self, active: Active, status: StepStatus) -> None:
        """Take in what the runtime says of an attempt."""
        if active.over:
            return
        if status.state not in ENDED:
            self._supervisor.note(active, status)
            return
        attempt = active.attempt
        verdict = judge(status, attempt.folder, active.known.stopping, attempt.step.timeout)
        self.finish(active, verdict)

    def check_time(self, active: Active, now: float) -> None:
        self._supervisor.check_time(active, now)

    def finish(self, active: Active, verdict: Verdict) -> None:
        """An attempt has ended, this way."""
        if not active.over:
            self._finish_attempt(active, verdict)
            self._settle()

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

    @property
    def _is_partial(self) -> bool:
        return len(self._choice.execute) < len(self.run.plan.steps)

    def commit(self, *events: Event) -> None:
        if not self.lease.is_sure():
            raise OSError(errno.ESTALE, "Somebody else drives the run now")
        self.state = self._host.store.append(self.run.id, *events)
        self._host.changed(self.run.id)

    def _settle(self) -> None:
        """See to the steps that wait for nothing any more, and end the run after the last one."""
        while self._due:
            self._make_ready(self._due.popleft())
        if self._left == 0 and not self.gone and not self._putting:
            if self.state.files is None and any(step.made for step in self.state.steps.values()):
                self._putting = True
                self._host.spawn(self._see_to_files())
                return
            now = time.time()
            self.commit(
                RunEnd(now, "failed", self._hopeless)
                if self._hopeless
                else conclusion(self.run, self.state, now)
            )
            if self._snapshot is not None:
                turns = turns_folder(self._host.store.snapshots)
                end_turn(turn_mark(turns, Path(self._snapshot.root)), self.run.id)
            self.gone = True
            self._host.finished(self)

    async def _see_to_files(self) -> None:
        """Put what the run made into the project, unless it is one of many, and then end it."""
        alone = self.run.request.sweep is None
        try:
            result = await asyncio.to_thread(
                see_to_files, self._host.store, self.run.id, alone=alone
            )
        except Exception as error:  # Whatever it is, the run ends, and says so.
            self._host.complain(f"The files of run {self.run.id}", error)
            result = PutBack(kept={".": _words(error)})
        with self._host.guarded(self):
            if not self.gone:
                self.commit(RunFiles(time.time(), result.put, result.kept))
                self._putting = False
                self._settle()

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
            self._find_again(step.id, last)

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
            made=outcome.made,
            outputs=outcome.values,
            metrics=outcome.metrics,
            parameters=outcome.parameters,
            cache=cache,
            source=place,
        )
        take_over = asyncio.to_thread(self._keep_result, place, self._steps[step_id], outcome)
        self._host.spawn(self._restore(take_over, end, otherwise))

    def _keep_result(self, place: str, step: Step, outcome: Outcome) -> None:
        folder = self._results.keep(place, step.id)
        self._results.remember(step.id, folder, outcome)
        if self._snapshot is None and step.working_folder != "isolated":
            root = Path(self.run.request.root)
            restore(folder, outcome.files, working_folder(self.run.plan, step, root, folder))

    async def _restore(
        self,
        take_over: Coroutine[Any, Any, None],
        end: StepEnd,
        otherwise: Callable[[str], None] | None,
    ) -> None:
        why = None
        try:
            await take_over
        except Exception as error:  # Whatever it is, the step is executed, or fails and says so.
            why = f"The files of the earlier result cannot be copied: {_words(error)}."
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
        make_folder(attempt.folder)
        snapshots = self._host.store.snapshots
        content = describe(
            self.run,
            attempt.step,
            attempt.number,
            attempt.folder,
            upstream,
            ready.expected,
            snapshots,
        )
        is_component = attempt.step.kind == "component"
        if self._snapshot is not None and (is_component or in_view(attempt.step)):
            made = self._results.made(attempt.step)
            layers = [(folder, files) for _, folder, files in made]
            view = describe_view(snapshots, self._snapshot, layers, attempt.folder)
            content["notices"] = self._results.overlaps(made)
            # A component has a folder of its own, and takes single files from the project.
            (content["component"] if is_component else content)["view"] = view
        keep_source(snapshots, attempt.step, attempt.folder)
        write_json(attempt.folder / "step.json", content)

    @functools.cached_property
    def _snapshot(self) -> Snapshot | None:
        digest = self.run.snapshot
        return None if digest is None else self._host.store.snapshots.read(digest)

    def _attempt(self, step: Step, number: int, handle: Json = None) -> Attempt:
        folder = self._host.store.attempt_folder(self.run.id, step.id, number)
        return Attempt(self.run.id, step, number, folder, handle)

    def _find_again(self, step_id: str, last: AttemptState) -> None:
        step = self._steps[step_id]
        with contextlib.suppress(ConvectError):
            step = self._results.bind(step, self.state)
        attempt = self._attempt(step, last.attempt, last.handle)
        self.actives[step_id] = active = Active(self, attempt)
        self._supervisor.find_again(active)

    def _finish_attempt(self, active: Active, verdict: Verdict) -> None:
        step_id, number = active.attempt.step.id, active.attempt.number
        outcome, now = verdict.outcome, time.time()
        if outcome is not None:
            self._results.remember(step_id, active.attempt.folder, outcome)
        else:
            remove_drafts(active.attempt.folder)
            remove_unfinished(active.attempt.folder)
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
            self.commit(*events, StepWait(now, step_id, "waiting", reason))
            self._host.later(delay, self, partial(self._try_again, step_id))
            return
        reason = verdict.reason or ""
        if verdict.state == "failed" and tried > 1:
            reason = f"All {tried} attempts failed. The last: {reason}"
        outcome = verdict.outcome
        values, metrics = (outcome.values, outcome.metrics) if outcome else ({}, {})
        made, notices = (outcome.made, outcome.notices) if outcome else (0, ())
        end = StepEnd(
            now,
            step_id,
            verdict.state,
            reason or None,
            values,
            metrics,
            outcome.parameters if outcome else {},
            notices=notices,
            made=made,
        )
        self._end_steps(end, before=events)

    def _try_again(self, step_id: str) -> None:
        self._due.append(step_id)
        self._settle()

    def _end_steps(self, *ends: StepEnd, before: tuple[Event, ...] = ()) -> None:
        """Write down how steps ended, and note what follows from it for `_settle`."""
        self.commit(*before, *ends)
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
            step = steps[step_id]
            if step_id not in ends and step.state not in ENDED and not is_under_way(step):
                ends[step_id] = StepEnd(now, step_id, "skipped", reason)
                left += self._followers.get(step_id, ())
        if ends:
            self.commit(*ends.values())
            self._left -= len(ends)


def is_under_way(step: StepState) -> bool:
    """Whether an attempt at it has been started that has not ended."""
    return bool(step.attempts) and step.attempts[-1].state not in ENDED


def _words(error: Exception) -> str:
    if isinstance(error, ConvectError):
        return error.sentence.rstrip(".")
    return plain(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
