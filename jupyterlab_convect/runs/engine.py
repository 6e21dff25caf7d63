"""Walks the graph of every run: starts what is ready, watches it, and writes down what happens."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping
from typing import Any

from ..background import Health, explain, forever
from ..errors import Conflict, ConvectError, Missing, Refused, words_of
from ..pipeline.plan import Json
from ..pools import run_in
from ..runtimes.base import GRAPH, GraphRuntime, Runtime, StepRuntime
from .active_attempt import Poller
from .admission import AdmissionQueue, RunLimits, owner_of
from .change_feed import ChangeFeed, Listener
from .driver import Driver, Ready
from .events import RunWait
from .graph import Graph
from .index import Query
from .json_files import write_json
from .lease import RENEW, Lease, renew_all
from .model import ENDED, Run, RunState
from .provisions import Provisions
from .reuse import preview_reuse
from .run_file import pipeline_name
from .selection import Choice, choose, choose_all, choose_from
from .store import Store

HOLD_FIRST, HOLD_MOST = 1.0, 60.0
"""Seconds until a run that could not continue is picked up again; they double."""
MOST_EARLIER_RUNS = 50
"""Runs that are looked at for results which a partial run takes over."""
ADMITTING = "Starting steps that wait"


class Engine:
    """One driver for all runs of this process. All methods belong to one event loop."""

    def __init__(
        self,
        store: Store,
        runtimes: Mapping[str, Runtime],
        *,
        beat: float = 1.0,
        log: logging.Logger | None = None,
        health: Health | None = None,
        provisions: Provisions | None = None,
    ) -> None:
        self.store = store
        self.provisions = provisions or Provisions()
        self.runtimes = runtimes
        self.beat = beat
        self.log = log or logging.getLogger(__name__)
        self.health = health or Health(self.log)
        self._drivers: dict[str, Driver] = {}
        self._held: dict[str, Lease] = {}
        self._holds: dict[str, float] = {}
        self.limits = RunLimits(store.folder)
        self._pollers: dict[StepRuntime, Poller] = {}
        self._queue: AdmissionQueue[Ready] = AdmissionQueue()
        self._newly_queued: list[Ready] = []
        self._admitting = False
        self._feed = ChangeFeed(store, self.log)
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: set[asyncio.TimerHandle] = set()
        self._beating: asyncio.Task[None] | None = None
        self._renewed = time.monotonic()
        self._closed = False

    async def submit(self, run: Run, graph: Json = None) -> RunState:
        """Create the run and drive it. Refused when it cannot be run as asked.

        `graph` is where its graph was handed to, if that was done already.
        """
        self._runtime(run.runtime)
        choice = self._choose(run) if graph is None else choose_all(run.plan)
        self.store.create(run)
        try:
            if graph is not None:
                write_json(self.store.run_folder(run.id) / GRAPH, graph)
            self._adopt(run.id, choice, asked=True)
        except ConvectError:
            self.store.withdraw(run.id)
            raise
        return self.store.read(run.id).state

    async def resume(self, only: Collection[str] | None = None) -> list[str]:
        """Take over every run that has not ended and that nobody drives, or those of `only`;
        their ids."""
        live = await asyncio.to_thread(self.store.live_runs)
        return [
            run_id
            for run_id in live
            if (only is None or run_id in only)
            and not self.limits.is_waiting(run_id)
            and self._pick_up(run_id)
        ]

    async def stop(self, run_id: str, step: str | None = None) -> None:
        """Stop a run or one step, wherever it is driven; `wait` for its end."""
        if step is not None:
            runtime = self._runtime(self.store.read(run_id).run.runtime)
            if isinstance(runtime, GraphRuntime):
                raise Refused(f"{runtime.display_name} can only stop a whole run.")
        state = self.store.ask_stop(run_id, step)
        if driver := self._drivers.get(run_id):
            with self.guarded(driver):
                driver.heed()
        elif state.state not in ENDED:
            self._adopt(run_id)
        self.changed(run_id)

    async def wait(self, run_id: str, timeout: float | None = None) -> RunState:
        """The state when the run has ended, wherever it is driven. TimeoutError."""
        deadline = time.monotonic() + (math.inf if timeout is None else timeout)
        while (state := self.store.read(run_id).state).state not in ENDED:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"The run {run_id} is still {state.state}.")
            if driver := self._drivers.get(run_id):
                await asyncio.wait({driver.ended}, timeout=min(left, self.beat))
            else:
                await asyncio.sleep(min(left, self.beat / 4))
        return state

    def on_change(self, listener: Listener) -> Callable[[], None]:
        """Call `listener(run_id, seq, state)` after changes; returns what takes it off again.

        Changes that follow each other closely are told once.
        """
        return self._feed.listen(listener)

    async def close(self) -> None:
        """Let go of the runs; their steps go on, and whoever resumes next takes over."""
        self._closed = True
        for timer in self._timers:
            timer.cancel()
        actives = (driver.actives.values() for driver in self._drivers.values())
        tasks = [active.starting for each in actives for active in each]
        if starting := [task for task in tasks if task is not None]:
            await asyncio.wait(starting, timeout=5)
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks, timeout=1)
            await asyncio.sleep(0)
        for driver in self._drivers.values():
            driver.let_go()
        leases = [driver.lease for driver in self._drivers.values()]
        for lease in (*leases, *self._held.values()):
            with contextlib.suppress(OSError):
                lease.give_back()
        self._drivers.clear()
        self.limits.close()
        self._feed.tell()
        self.store.flush()

    def enqueue(self, ready: Ready) -> None:
        self._queue.put(_line(ready), ready.attempt.run, ready)
        self._newly_queued.append(ready)
        self.admit_soon()

    def admit_soon(self) -> None:
        if not (self._admitting or self._closed):
            self._admitting = True
            asyncio.get_running_loop().call_soon(self._admit)

    @contextlib.contextmanager
    def guarded(self, driver: Driver) -> Iterator[None]:
        """Whatever goes wrong while a run is driven, it is picked up again from its folder."""
        try:
            yield
        except Exception as error:
            self._hold(driver, error)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def later(self, delay: float, driver: Driver, work: Callable[[], None]) -> None:
        def act() -> None:
            self._timers.discard(timer)
            if not driver.gone:
                with self.guarded(driver):
                    work()

        timer = asyncio.get_running_loop().call_later(delay, act)
        self._timers.add(timer)

    def changed(self, run_id: str) -> None:
        self._feed.add(run_id)

    def finished(self, driver: Driver) -> None:
        del self._drivers[driver.run.id]
        self._holds.pop(driver.run.id, None)
        driver.ended.set_result(None)
        with contextlib.suppress(OSError):
            driver.lease.end()
        asyncio.get_running_loop().call_soon(self._feed.flush)
        self._leave_limit(driver.run)

    def complain(self, message: str, error: BaseException) -> None:
        self.log.warning("%s: %s", message, words_of(error), exc_info=_traced(error))

    def _runtime(self, name: str) -> StepRuntime:
        try:
            runtime = self.runtimes[name]
        except KeyError:
            raise Missing(f"There is no runtime {name!r}.", code="no-such-runtime") from None
        if not isinstance(runtime, StepRuntime):
            raise Refused(f"The runtime {name!r} does not run single steps.")
        if runtime not in self._pollers:
            poller = Poller(runtime, self.beat, self.health, self.admit_soon)
            self._pollers[runtime] = poller
            runtime.changed = poller.wake_from_anywhere
            self.spawn(forever("Watching over steps", poller.look, self.health))
        return runtime

    def _choose(self, run: Run) -> Choice:
        select, of = run.request.select, run.request.of
        if select.mode == "all":
            whole = choose_all(run.plan)
            if not isinstance(self._runtime(run.runtime), GraphRuntime):
                return whole
            # Whoever gets the graph as a whole has to know now what is not executed.
            reuse = preview_reuse(self.store, run)
            return Choice(whole.execute - reuse.keys(), reuse, whole.leave)
        self.store.flush()

        def last(step_id: str) -> str | None:
            result = self.store.index.last_result(pipeline_name(run), step_id)
            return f"{result.run}/{result.attempt}" if result else None

        if of is None and select.mode != "failed" and Graph(run.plan).has_rules:
            return choose_from(run.plan, select, self._earlier_runs(run))
        earlier = None if of is None else (of, self.store.read(of).state)
        return choose(run.plan, select, earlier, last)

    def _earlier_runs(self, run: Run) -> Iterator[tuple[str, RunState]]:
        """The user's own runs of the same pipeline, the newest first."""
        path = run.plan.path
        query = Query(path=path, name=None if path else run.plan.name, limit=MOST_EARLIER_RUNS)
        for found in self.store.find(query).runs:
            with contextlib.suppress(Missing, Conflict):
                earlier, state = self.store.read(str(found["id"]))
                if pipeline_name(earlier) == pipeline_name(run) and self.store.is_own(earlier.id):
                    yield earlier.id, state

    def _chosen(self, run: Run, state: RunState) -> Choice:
        """What was chosen when the run began, or else what to choose now."""
        if state.execute is None:
            is_all = state.started is not None and run.request.select.mode == "all"
            return choose_all(run.plan) if is_all else self._choose(run)
        top = state.graph.children[None]
        leave = frozenset(set(top) - state.execute - state.reuse.keys())
        return Choice(state.execute, state.reuse, leave)

    def _adopt(self, run_id: str, choice: Choice | None = None, *, asked: bool = False) -> bool:
        """Drive a run, unless it has ended, has to wait or is driven by somebody else."""
        if self._closed or run_id in self._drivers or run_id in self._held:
            return False
        try:
            run, state = self.store.read(run_id)
            if state.state in ENDED:
                self._leave_limit(run)
                return False
            if not (asked or self.store.is_own(run_id)):
                return False  # what others may have written is shown, and never executed
            self._runtime(run.runtime)
            if not self._may_begin(run, state, asked):
                return False
            lease = Lease.take(self.store.run_folder(run_id))
        except OSError as error:
            sentence = f"The run {run_id} cannot be driven: {words_of(error)}."
            if asked:
                raise ConvectError(sentence, code="unwritable") from None
            self.log.warning(sentence)
            return False
        except ConvectError as error:
            if asked:
                raise
            if isinstance(error, Missing):
                self.limits.forget(run_id)
            self.log.warning("The run %s cannot be picked up: %s", run_id, error)
            return False
        if lease is None:
            return False  # Until it has ended, it has its turn all the same.
        self._drive(run, lease, choice)
        return True

    def _pick_up(self, run_id: str) -> bool:
        """Drive a run if it can be; whatever is wrong with it stops no other."""
        with self.health.guard(f"Picking up run {run_id}"):
            return self._adopt(run_id)
        return False

    def _may_begin(self, run: Run, state: RunState, asked: bool) -> bool:
        """Whether it is the run's turn among those of its owner; if not, it is called up then."""
        owner = owner_of(run.request)
        if owner is None or state.stopping:
            return True
        if self.limits.is_elsewhere(owner):
            return asked and run.request.sweep is not None  # Who counts picks up the others.
        reason = self.limits.enter(owner, run.id)
        if reason is not None and state.reason != reason:
            self.store.append(run.id, RunWait(time.time(), reason))
            self.changed(run.id)
        return reason is None

    def _leave_limit(self, run: Run) -> None:
        if (owner := owner_of(run.request)) is not None:
            for run_id in self.limits.leave(owner, run.id):
                asyncio.get_running_loop().call_soon(self._pick_up, run_id)

    def _drive(self, run: Run, lease: Lease, choice: Choice | None) -> None:
        if self._beating is None:
            self._beating = self.spawn(forever("Watching over runs", self._beat, self.health))
        hopeless = None
        try:
            state = self.store.read(run.id).state
        except ConvectError as error:  # It is gone, or cannot be read any more.
            self.log.warning("%s", error.sentence)
            state = None
        if state is None or state.state in ENDED:
            with contextlib.suppress(OSError):
                lease.end()
            self._leave_limit(run)
            return
        try:
            chosen = choice or self._chosen(run, state)
        except ConvectError as error:
            chosen, hopeless = choose_all(run.plan), error.sentence
        poller = self._pollers[self._runtime(run.runtime)]
        driver = Driver(self, run, poller, lease, chosen, hopeless)
        self._drivers[run.id] = driver
        with self.guarded(driver):
            driver.begin()

    def _hold(self, driver: Driver, error: Exception) -> None:
        """Let go of a run that cannot continue now, and pick it up from its folder later."""
        run = driver.run
        if self._drivers.get(run.id) is not driver:
            self.complain(f"The run {run.id}", error)
            return
        driver.let_go()
        self._queue.remove(run.id)
        del self._drivers[run.id]
        self._held[run.id] = driver.lease
        self._resume_later(run, error)

    def _resume_later(self, run: Run, error: Exception) -> None:
        delay = self._holds.get(run.id, HOLD_FIRST)
        self._holds[run.id] = min(delay * 2, HOLD_MOST)
        words = words_of(error)
        self.log.warning("The run %s cannot continue: %s", run.id, words, exc_info=_traced(error))
        with contextlib.suppress(ConvectError):
            self.store.remark(run.id, f"It cannot continue: {words}. Trying again.")
        self.changed(run.id)

        def resume() -> None:
            self._timers.discard(timer)
            self._resume_held(run)

        timer = asyncio.get_running_loop().call_later(delay, resume)
        self._timers.add(timer)

    def _resume_held(self, run: Run) -> None:
        """Continue a run that was held, if it is still ours."""
        lease = self._held.pop(run.id)
        try:
            mine = lease.renew()
        except Exception as error:
            self._held[run.id] = lease
            self._resume_later(run, error)
            return
        if mine:
            self._drive(run, lease, None)
        else:
            self.log.warning("Another process has taken over run %s", run.id)

    def _admit(self) -> None:
        """Let in what fits, fair between runs, and say of the rest why it waits."""
        self._admitting = False
        refused: dict[tuple[StepRuntime, object], tuple[Ready, str]] = {}
        broken: list[tuple[Ready, str]] = []

        def admit(ready: Ready) -> bool | None:
            if not ready.driver.is_waiting(ready):
                return True
            try:
                reason = ready.driver.runtime.admit(ready.attempt)
            except Exception as error:
                self.health.failed(ADMITTING, error)
                words = f"It cannot start now: {explain(error)} Trying again."
                broken.append((ready, words))
                return None
            if reason is not None:
                refused[_line(ready)] = (ready, reason)
            return reason is None

        for ready in self._queue.let_in(admit):
            if ready.driver.is_waiting(ready):
                with self.guarded(ready.driver):
                    ready.driver.launch(ready)
        newly, self._newly_queued = self._newly_queued, []
        waiting = {id(ready): (ready, reason) for ready, reason in (*refused.values(), *broken)}
        if not broken:
            self.health.recovered(ADMITTING)
        for ready in newly:
            if _line(ready) in refused:
                waiting.setdefault(id(ready), (ready, "Waiting for its turn."))
        for ready, reason in waiting.values():
            if ready.driver.is_waiting(ready):
                with self.guarded(ready.driver):
                    ready.driver.wait_for_room(ready, reason)

    async def _beat(self) -> None:
        """Renew the leases, hear what other processes ask, and look for room."""
        await asyncio.sleep(self.beat)
        for driver in list(self._drivers.values()):
            with self.guarded(driver):
                driver.heed()
        for run_id in self.limits.inside():
            if run_id not in self._drivers:
                self._pick_up(run_id)
        if time.monotonic() - self._renewed > RENEW:
            with self.health.guard("Renewing leases"):
                await self._renew()
                self._renewed = time.monotonic()
        self.admit_soon()

    async def _renew(self) -> None:
        """Renew every lease, also of runs that are held; raises after all have been tried."""
        leases = {run_id: driver.lease for run_id, driver in self._drivers.items()}
        self.limits.close_empty()
        leases |= self._held | self.limits.leases()
        lost, trouble = await run_in("watching", renew_all, leases)
        for name in lost:
            if leases[name] is self.limits.leases().get(name):
                self.limits.lose(name)
            elif (driver := self._drivers.get(name)) and driver.lease is leases[name]:
                self.log.warning("Another process has taken over run %s", name)
                driver.let_go()
                self._queue.remove(name)
                del self._drivers[name]
        if trouble is not None:
            raise trouble

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.complain("A task of the engine failed", error)


def _line(ready: Ready) -> tuple[StepRuntime, object]:
    """All steps that ask the same of the same runtime stand in one line."""
    step = ready.attempt.step
    return (ready.driver.runtime, (step.resources, step.distributed))


def _traced(error: BaseException) -> BaseException | None:
    """A full disk and its like are nobody's mistake: a sentence says all there is to say."""
    return None if isinstance(error, OSError) else error
