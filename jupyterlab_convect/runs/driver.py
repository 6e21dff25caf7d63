"""Drives one run: decides, writes the decision down, then acts on it.

All of a driver's memory follows from the run folder. A host that was killed, or that
could not write, is followed by a driver that reads the folder and continues.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from ..errors import ConvectError, words_of
from ..pipeline.claims import run_claims
from ..pipeline.expressions import Unavailable
from ..pipeline.plan import Json, Plan, Step
from ..runner.shared_folder import end_turn, turn_mark
from ..runtimes.base import Attempt, GraphRuntime, StepStatus
from .active_attempt import ActiveAttempt, Poller
from .admission import owner_of
from .attempts import Outcome, Verdict, judge
from .events import (
    AttemptEnd,
    AttemptStart,
    Event,
    GroupEnd,
    RunEnd,
    RunFiles,
    RunStart,
    StepEnd,
    StepWait,
)
from .json_files import remove_drafts
from .lease import Lease
from .made import remove_unfinished, see_to_files
from .model import ENDED, AttemptState, Run, State, StepState
from .order import NOTHING_RAN, End, UnitState, conclusion, skips, survives_stop
from .project import turns_folder, working_folder
from .provisions import Provisions
from .put_back import PutBack
from .reuse import EarlierRuns, RunResults, restore
from .selection import Choice, rest_of, top_of, upstream_of
from .snapshots import Snapshot
from .step_file import write_step
from .store import Store
from .walk import Begin, Commit, Finish, Walk

CLEAN_UP = 300.0
"""Seconds that steps which always run have after a stop."""


@dataclass(slots=True, eq=False)
class Ready:
    """A step that can start as soon as there is room for it."""

    driver: Driver
    attempt: Attempt
    parts: dict[str, str]
    cache: str | None
    expected: float | None


class Host(Protocol):
    """What the driver of a run needs of the engine."""

    store: Store
    provisions: Provisions

    def enqueue(self, ready: Ready) -> None: ...
    def guarded(self, driver: Driver) -> AbstractContextManager[None]: ...
    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]: ...
    def later(self, delay: float, driver: Driver, work: Callable[[], None]) -> None: ...
    def changed(self, run_id: str) -> None: ...
    def finished(self, driver: Driver) -> None: ...
    def complain(self, message: str, error: BaseException) -> None: ...


class Driver:
    """The host calls the public methods inside `guarded`."""

    def __init__(
        self,
        host: Host,
        run: Run,
        poller: Poller,
        lease: Lease,
        choice: Choice,
        hopeless: str | None = None,
    ) -> None:
        """`hopeless` says why nobody can continue the run: what runs is stopped, and it ends."""
        self.host = host
        self.run = run
        self.poller = poller
        self.runtime = poller.runtime
        self.lease = lease
        self.state = host.store.read(run.id).state
        self.gone = False
        """The run has ended, or somebody else drives it."""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.actives: dict[str, ActiveAttempt] = {}
        self._choice = choice
        self._hopeless = hopeless
        self._results = RunResults(host.store, run, choice.leave)
        self._graph = self.state.graph
        self._earlier = EarlierRuns(host.store)
        self._walk = Walk(run, self.state, choice, self._earlier)
        self._queued: dict[str, Ready] = {}
        self._taking_over: set[str] = set()
        """Units whose earlier results were asked for and have not been taken over yet."""
        self._is_taken_over = False
        """One of them has been, since the last look."""
        self._held: list[str] = []
        """Steps that could begin, but for files of those, which may lie far above them."""
        self._putting = False
        """What the run made is being put into the project."""
        self._removing: str | None = None
        """What became of removing what the runtime made for the run; empty when it worked."""

    def begin(self) -> None:
        """Start the run, or continue it from whatever state it is in."""
        graph = self._graph
        if self.state.started is None:
            now = time.time()
            why, leave = "Not part of this partial run.", self._choice.leave
            left_out = [(unit, ()) for unit in graph.children[None] if unit in leave]
            not_asked = [
                end for key in left_out for end in skips(self.state, key, why, now, by_rule=False)
            ]
            chosen = (sorted(self._choice.execute), self._choice.reuse) if self._is_partial else ()
            self.commit(RunStart(now, *chosen), *not_asked)
        tried = self._walk.begin(self.state)
        self._taking_over = {unit for unit in self._choice.reuse if not self._has_ended(unit)}
        for unit_id, source in self._choice.reuse.items():
            if not graph.is_group(unit_id) and unit_id in self._taking_over:
                why = (
                    f"Reused from run {source[:25]}: nothing has changed since."
                    if self.run.request.select.mode == "all"
                    else f"Reused from run {source[:25]}, as requested."
                )
                self._take_over(unit_id, source, why)
        for step in tried:
            self._pick_up(step)
        self.heed()

    def heed(self) -> None:
        """Do what has been asked since the last time: stop the run or some of its steps."""
        self.state = self.host.store.read(self.run.id).state
        state, now = self.state, time.time()
        asked = [step for step in state.steps.values() if self._is_to_stop(step, now)]
        end: tuple[State, str] = ("cancelled", "Stopped.")
        if self._hopeless:
            end = ("skipped", self._hopeless)
        ends: list[End] = [
            StepEnd(now, step.id, *end) for step in asked if step.id not in self.actives
        ]
        for group in state.groups.values():  # One that has not begun may have no steps at all.
            if group.started is None and self._is_to_stop(group, now):
                ends.append(GroupEnd(now, group.id, *end))
        if ends:
            self._end(*ends)
        for step in asked:
            if active := self.actives.get(step.id):
                active.stop("asked")
        self._settle()

    def _is_to_stop(self, unit: UnitState, now: float) -> bool:
        if unit.state in ENDED:
            return False
        if self._hopeless or unit.stopping:
            return True
        asked = self.state.stop_asked
        if asked is None:
            return False
        return now > asked + CLEAN_UP or not survives_stop(self.state, unit)

    def launch(self, ready: Ready) -> None:
        """Start an attempt that has been let in."""
        attempt = ready.attempt
        del self._queued[attempt.step.id]
        try:
            snapshots, expected = self.host.store.snapshots, ready.expected
            results, snapshot = self._results, self._snapshot
            write_step(
                attempt,
                self.run,
                self.state,
                results,
                snapshots,
                snapshot,
                expected,
                for_all=self._is_whole,
            )
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
            self._end(StepEnd(time.time(), attempt.step.id, "failed", error.sentence))
            self._settle()
            return
        except BaseException:
            self.runtime.release(attempt)
            raise
        self.actives[attempt.step.id] = active = ActiveAttempt(self, attempt)
        active.start()

    def is_waiting(self, ready: Ready) -> bool:
        """Whether the step still wants to start."""
        return not self.gone and self._queued.get(ready.attempt.step.id) is ready

    def wait_for_room(self, ready: Ready, reason: str) -> None:
        step = self.state.steps[ready.attempt.step.id]
        if step.state != "queued" or step.reason != reason:
            self.commit(StepWait(time.time(), step.id, "queued", reason))

    def finish(self, active: ActiveAttempt, verdict: Verdict) -> None:
        """An attempt has ended, this way."""
        self._finish_attempt(active, verdict)
        self._settle()

    def let_go(self) -> None:
        """Forget the run; its steps go on."""
        self.gone = True
        for active in self.actives.values():
            active.let_go()

    def guarded(self) -> AbstractContextManager[None]:
        """Whatever goes wrong inside, the run is picked up again from its folder."""
        return self.host.guarded(self)

    @property
    def _is_partial(self) -> bool:
        return len(self._choice.execute) < len(self._graph.children[None])

    def commit(self, *events: Event) -> None:
        if not self.lease.is_sure():
            raise OSError(errno.ESTALE, "Another process drives the run now")
        self.state = self.host.store.append(self.run.id, *events)
        self.host.changed(self.run.id)

    def _settle(self) -> None:
        """See to what waits for nothing any more, and end the run after the last step."""
        self._let_go_on()
        while (decision := self._walk.next(self.state)) is not None:
            match decision:
                case Begin(step_id) if self._has_to_wait(step_id):
                    self._held.append(step_id)
                case Begin(step_id):
                    self._make_ready(step_id)
                case Commit(events):
                    self.commit(*events)
                case Finish(ends):
                    self._end(*ends)
        if self._walk.is_over and not self.gone and not self._putting:
            if self.state.files is None and any(step.made for step in self.state.steps.values()):
                self._putting = True
                self.host.spawn(self._see_to_files())
                return
            if self._removing is None and run_claims(self.run.plan.steps):
                self._removing = ""
                self._putting = True
                self.host.spawn(self._remove_claims())
                return
            now = time.time()
            end = (
                RunEnd(now, "failed", self._hopeless)
                if self._hopeless
                else conclusion(self.state, now)
            )
            if self._removing:
                end = replace(end, reason=" ".join(filter(None, (end.reason, self._removing))))
            self.commit(end)
            if self._snapshot is not None:
                turns = turns_folder(self.host.store.snapshots)
                end_turn(turn_mark(turns, Path(self._snapshot.root)), self.run.id)
            self.gone = True
            self.host.finished(self)

    def _let_go_on(self) -> None:
        """See to the steps that waited for what has been taken over meanwhile."""
        if not self._is_taken_over:
            return
        self._is_taken_over = False
        held, self._held = self._held, []
        for step_id in held:
            if self._has_ended(step_id):
                continue
            if self._has_to_wait(step_id):
                self._held.append(step_id)
            else:
                self._make_ready(step_id)

    def _has_to_wait(self, step_id: str) -> bool:
        """Whether a step would miss files that are still being taken over."""
        if not self._taking_over:
            return False
        top = top_of(self._graph, self.state.steps[step_id].node)
        if top in self._choice.reuse:
            return False
        return not self._taking_over.isdisjoint(upstream_of(self._graph, [top]))

    def _has_ended(self, name: str) -> bool:
        return (self.state.steps.get(name) or self.state.groups[name]).state in ENDED

    async def _see_to_files(self) -> None:
        """Put what the run made into the project, unless it is one of many, and then end it."""
        alone = owner_of(self.run.request) is None
        try:
            result = await asyncio.to_thread(
                see_to_files, self.host.store, self.run.id, alone=alone
            )
        except Exception as error:  # Whatever it is, the run ends, and says so.
            self.host.complain(f"The files of run {self.run.id}", error)
            result = PutBack(kept={".": words_of(error)})
        with self.guarded():
            if not self.gone:
                self.commit(RunFiles(time.time(), result.put, result.kept))
                self._putting = False
                self._settle()

    async def _remove_claims(self) -> None:
        """Have the runtime remove what it made for the run as a whole, and then end the run."""
        try:
            await self.runtime.end_run(self.run.id, self.run.plan)
        except Exception as error:  # Whatever it is, the run ends, and says so.
            self.host.complain(f"The volume claims of run {self.run.id}", error)
            self._removing = f"Its volume claims could not be deleted: {words_of(error)}."
        with self.guarded():
            if not self.gone:
                self._putting = False
                self._settle()

    def _pick_up(self, step: StepState) -> None:
        """Go on with a step that has been tried, wherever the last driver left it."""
        last = step.attempts[-1]
        if last.state in ENDED:
            attempt = self._attempt(self._graph.step(step.node, step.item), last.attempt)
            status = StepStatus(attempt.key, last.state, last.reason, last.detail)
            verdict = judge(status, attempt.folder, last.stopping, attempt.step.timeout)
            self._after_attempt(step.id, verdict, last.ended or time.time())
        else:
            self._find_again(step, last)

    def _make_ready(self, step_id: str, *, may_take_over: bool = True) -> None:
        """All that the step waits for is there: bind it, reuse a result, or queue it."""
        known = self.state.steps[step_id]
        if may_take_over and not known.attempts:
            source = self._result_of_earlier_run(known)
            if source is not None:
                as_asked = f"Reused from run {source[:25]}, as requested."
                self._take_over(step_id, source, as_asked, partial(self._execute_instead, step_id))
                return
        try:
            step = self._results.bind(step_id, self.state)
            parts = self._results.parts(step, self.state)
        except Unavailable:
            self._end(StepEnd(time.time(), step_id, "skipped", NOTHING_RAN, by_rule=True))
            return
        except ConvectError as error:
            self._end(StepEnd(time.time(), step_id, "failed", error.sentence))
            return
        if known.attempts or self._is_whole:
            self._enqueue(step, parts, known.cache)
            return
        source, cache = self._results.earlier(step, parts, known.item)
        if source is None:
            self._enqueue(step, parts, cache)
        else:
            self._take_over(step_id, source, cache, partial(self._enqueue, step, parts))

    def _execute_instead(self, step_id: str, why: str) -> None:
        """What was to be taken over is gone: the step of a group is executed again."""
        self._make_ready(step_id, may_take_over=False)

    def _result_of_earlier_run(self, step: StepState) -> str | None:
        """Where the result of a step in a group lies that a partial run takes over."""
        if self._graph.steps[step.node].group is None and not step.item:
            return None
        source = self._choice.reuse.get(top_of(self._graph, step.node))
        if source is not None:
            return self._earlier.source(source.partition("/")[0], step, self.state)
        of, state = self.run.request.of, self.state
        if self.run.request.select.mode != "failed" or of is None or self._is_whole:
            return None
        before = self._results.waits_for(step.id, state)
        is_same = all(self._earlier.is_same(of, key, state) for key in before)
        return self._earlier.source(of, step, state) if is_same else None

    def _enqueue(self, step: Step, parts: dict[str, str], cache: str | None) -> None:
        number = len(self.state.steps[step.id].attempts) + 1
        expected = self._results.expected(self.state.steps[step.id])
        ready = Ready(self, self._attempt(step, number), parts, cache, expected)
        self._queued[step.id] = ready
        self.host.enqueue(ready)

    def _take_over(
        self,
        step_id: str,
        source: str,
        cache: str,
        otherwise: Callable[[str], None] | None = None,
    ) -> None:
        """Make an earlier result the step's own.

        When that does not work out, do what `otherwise` says, or fail the step.
        """
        found = self._results.at(source, step_id)
        if found is None:
            why = f"The result in run {source.partition('/')[0]} is no longer complete."
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
            source=source,
        )
        known = self.state.steps[step_id]
        step = self._graph.step(known.node, known.item)
        keep = partial(self._keep_result, source, step, outcome)
        self.host.spawn(self._restore(keep, end, otherwise))

    def _keep_result(self, source: str, step: Step, outcome: Outcome) -> None:
        folder = self._results.keep(source, step.id)
        self._results.remember(step.id, folder, outcome)
        if self._snapshot is None and step.working_folder != "isolated":
            root = Path(self.run.request.root)
            restore(folder, outcome.files, working_folder(self.run.plan, step, root, folder))

    async def _restore(
        self,
        keep: Callable[[], None],
        end: StepEnd,
        otherwise: Callable[[str], None] | None,
    ) -> None:
        why = None
        try:
            await asyncio.to_thread(keep)
        except Exception as error:  # Whatever it is, the step is executed, or fails and says so.
            why = f"The files of the earlier result cannot be copied: {words_of(error)}."
        with self.guarded():
            if self.gone or self.state.steps[end.step].state in ENDED:
                return
            if why is None:
                self._end(replace(end, time=time.time()))
            else:
                self._give_up_reuse(end.step, why, otherwise)
            self._settle()

    def _give_up_reuse(
        self, step_id: str, why: str, otherwise: Callable[[str], None] | None
    ) -> None:
        if otherwise is None:
            self._end(StepEnd(time.time(), step_id, "failed", why))
        else:
            otherwise(f"Not reused: {why}")

    @functools.cached_property
    def _snapshot(self) -> Snapshot | None:
        digest = self.run.snapshot
        return None if digest is None else self.host.store.snapshots.read(digest)

    @property
    def _is_whole(self) -> bool:
        """Whether the runtime is handed the graph as a whole, and reuses nothing by itself."""
        return isinstance(self.runtime, GraphRuntime)

    @functools.cached_property
    def _plan(self) -> Plan:
        """The plan as the runtime gets it."""
        if self._is_whole and self._is_partial:
            return rest_of(self.run, self.state, self._choice.execute)
        return self.run.plan

    def _attempt(self, step: Step, number: int, handle: Json = None) -> Attempt:
        folder = self.host.store.attempt_folder(self.run.id, step.id, number)
        return Attempt(
            self.run.id,
            step,
            number,
            folder,
            handle,
            root=Path(self.run.request.root),
            plan=self._plan,
            runs=self.host.store.folder,
            options=self.run.request.options,
        )

    def _find_again(self, known: StepState, last: AttemptState) -> None:
        step = self._graph.step(known.node, known.item)
        with contextlib.suppress(ConvectError, Unavailable):
            step = self._results.bind(known.id, self.state)
        attempt = self._attempt(step, last.attempt, last.handle)
        self.actives[known.id] = active = ActiveAttempt(self, attempt)
        active.find_again()

    def _finish_attempt(self, active: ActiveAttempt, verdict: Verdict) -> None:
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
        del self.actives[step_id]
        active.let_go()

    def _after_attempt(self, step_id: str, verdict: Verdict, ended: float, *events: Event) -> None:
        """Try again, or end the step the way its last attempt ended."""
        step = self.state.steps[step_id]
        retries = self._graph.steps[step.node].retries
        tried, now = len(step.attempts), time.time()
        stopping = self._is_to_stop(step, now)
        if verdict.state == "failed" and tried <= retries.count and not stopping:
            delay = max(ended + retries.delay * retries.factor ** (tried - 1) - now, 0.0)
            reason = (
                f"Attempt {tried} of {retries.count + 1} failed: {verdict.reason} "
                f"The next one starts in {delay:.3g} s."
            )
            self.commit(*events, StepWait(now, step_id, "waiting", reason))
            self.host.later(delay, self, partial(self._try_again, step_id))
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
        self._end(end, before=events)

    def _try_again(self, step_id: str) -> None:
        self._walk.again(self.state.steps[step_id])
        self._settle()

    def _end(self, *ends: End, before: tuple[Event, ...] = ()) -> None:
        """Write down how steps and groups ended, and note what follows from it for `_settle`."""
        if not (ends or before):
            return
        self.commit(*before, *ends)
        for end in ends:
            name = end.step if isinstance(end, StepEnd) else end.group
            self._queued.pop(name, None)
            if name in self._taking_over:
                self._taking_over.remove(name)
                self._is_taken_over = True
            unit = self.state.steps.get(name) or self.state.groups[name]
            self._walk.ended(unit, self.state)
