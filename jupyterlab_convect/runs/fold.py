"""The state that follows from what happened to a run.

`Fold` takes events one at a time, so that following a run costs no more than what is new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ..text import quoted, some_of
from .events import (
    AttemptChange,
    AttemptEnd,
    AttemptHandle,
    AttemptStart,
    AttemptStop,
    Event,
    GroupEnd,
    GroupStart,
    RunChange,
    RunEnd,
    RunFiles,
    RunStart,
    RunWait,
    StepEnd,
    StepProgress,
    StepWait,
    StopAsk,
)
from .graph import Graph, Item, Key
from .model import AttemptState, GroupState, Progress, Run, RunState, State, StepState


class Fold:
    """The state so far; `apply` takes the next event in constant time."""

    def __init__(self, run: Run) -> None:
        self._graph = graph = Graph(run.plan)
        self.state = RunState(
            reason="Waiting to be picked up.",
            name=run.name,
            labels=dict(run.request.labels),
            graph=graph,
        )
        self._missing: dict[str, dict[str, None]] = {}
        """What each unit waits for, by the id in the plan."""
        for unit in graph.children[None]:
            self._add(graph.parts(unit, ()))

    def _add(self, keys: Iterable[Key]) -> None:
        """Add units that can run from now on."""
        graph, steps = self._graph, []
        for unit, item in keys:
            name = graph.name(unit, item)
            is_iteration = graph.is_iteration(unit, item)
            if graph.is_group(unit) and not (is_iteration and unit in graph.steps):
                self.state.groups[name] = GroupState(name, unit, item)
            else:
                self.state.steps[name] = StepState(name, node=unit, item=item)
                steps.append(name)
            if not is_iteration and (after := graph.units[unit].after):
                self._missing[name] = dict.fromkeys(after)
        for name in steps:
            self._explain_wait(name)

    def apply(self, event: Event) -> None:
        self.state.seq += 1
        _APPLY[type(event)](self, event)

    def _explain_wait(self, step_id: str) -> None:
        step = self.state.steps[step_id]
        missing = self._missing.get(step_id)
        if not missing and self._graph.has_rules:
            above = (self._missing.get(name) for name in self._above(step.node, step.item))
            missing = next(filter(None, above), None)
        step.reason = (
            f"Waiting for {some_of(quoted(missing))} to finish."
            if missing
            else "Waiting for its turn."
        )

    def _above(self, unit: str, item: Item) -> Iterator[str]:
        return (self._graph.name(*key) for key in self._graph.ancestors(unit, item))

    def _move(self, unit: StepState | GroupState, state: State) -> None:
        """Change a state, and count it in the loop that it is an item of."""
        before, unit.state = unit.state, state
        if unit.item and before != state and self._graph.is_iteration(unit.node, unit.item):
            counts = self.state.groups[self._graph.name(unit.node, unit.item[:-1])].counts
            counts[before] -= 1
            if not counts[before]:
                del counts[before]
            counts[state] = counts.get(state, 0) + 1

    def _wake_above(self, unit: StepState | GroupState, now: float) -> None:
        """What is around something that starts runs as well."""
        if self._graph.has_rules:
            for name in self._above(unit.node, unit.item):
                group = self.state.groups[name]
                if group.state != "waiting":
                    return
                group.started = group.started or now
                self._move(group, "running")

    def _run_wait(self, event: RunWait) -> None:
        self.state.reason = event.reason

    def _run_start(self, event: RunStart) -> None:
        self.state.state, self.state.reason = "running", None
        self.state.started = self.state.started or event.time
        if event.execute is not None:
            self.state.execute, self.state.reuse = frozenset(event.execute), dict(event.reuse)

    def _run_end(self, event: RunEnd) -> None:
        self.state.state, self.state.reason = event.state, event.reason
        self.state.ended = event.time

    def _run_files(self, event: RunFiles) -> None:
        self.state.files = {"put": list(event.put), "kept": dict(event.kept)}

    def _run_change(self, event: RunChange) -> None:
        if event.name is not None:
            self.state.name = event.name
        if event.labels is not None:
            self.state.labels = dict(event.labels)
        if event.note is not None:
            self.state.note = event.note

    def _stop_ask(self, event: StopAsk) -> None:
        if event.step is None:
            self.state.stopping = True
            self.state.stop_asked = self.state.stop_asked or event.time
        elif unit := self.state.steps.get(event.step) or self.state.groups.get(event.step):
            unit.stopping = True

    def _step_wait(self, event: StepWait) -> None:
        if step := self.state.steps.get(event.step):
            self._move(step, event.state)
            step.reason = event.reason

    def _attempt_start(self, event: AttemptStart) -> None:
        step = self.state.steps.get(event.step)
        if step is not None and event.attempt == len(step.attempts) + 1:
            self._wake_above(step, event.time)
            self._move(step, "starting")
            step.reason, step.cache = None, event.cache
            step.started = step.started or event.time
            step.progress = Progress(expected=event.expected)
            step.attempts.append(
                AttemptState(event.attempt, "starting", started=event.time, parts=dict(event.parts))
            )

    def _attempt_handle(self, event: AttemptHandle) -> None:
        if attempt := self._attempt(event.step, event.attempt):
            attempt.handle = event.handle

    def _attempt_change(self, event: AttemptChange) -> None:
        if attempt := self._attempt(event.step, event.attempt):
            attempt.state, attempt.reason = event.state, event.reason
            attempt.detail = event.detail
            if event.state == "running":
                attempt.running = attempt.running or event.time
            step = self.state.steps[event.step]
            self._move(step, event.state)
            step.reason = event.reason

    def _attempt_stop(self, event: AttemptStop) -> None:
        if attempt := self._attempt(event.step, event.attempt):
            attempt.stopping = event.why

    def _step_progress(self, event: StepProgress) -> None:
        if step := self.state.steps.get(event.step):
            step.progress = Progress(event.cell, event.cells, event.elapsed, event.expected)

    def _attempt_end(self, event: AttemptEnd) -> None:
        if attempt := self._attempt(event.step, event.attempt):
            attempt.state, attempt.reason = event.state, event.reason
            attempt.detail = event.detail
            attempt.started = event.started or attempt.started
            attempt.ended = event.ended or event.time

    def _step_end(self, event: StepEnd) -> None:
        if step := self.state.steps.get(event.step):
            self._move(step, event.state)
            step.reason, step.ended = event.reason, event.time
            step.outputs, step.metrics = dict(event.outputs), dict(event.metrics)
            step.parameters = dict(event.parameters)
            step.cache, step.source = event.cache or step.cache, event.source
            step.notices, step.made = list(event.notices), event.made
            step.by_rule = event.by_rule
            self._let_go(step)

    def _group_start(self, event: GroupStart) -> None:
        group = self.state.groups.get(event.group)
        if group is None or group.values is not None:
            return
        self._wake_above(group, event.time)
        group.started, group.reason = event.time, None
        self._move(group, "running")
        if event.items is None:
            return
        group.values = list(event.items)
        if group.values:
            group.counts = {"waiting": len(group.values)}
        for number in range(len(group.values)):
            self._add(self._graph.iteration(group.node, (*group.item, number)))

    def _group_end(self, event: GroupEnd) -> None:
        if group := self.state.groups.get(event.group):
            self._move(group, event.state)
            group.reason, group.ended, group.by_rule = event.reason, event.time, event.by_rule
            self._let_go(group)

    def _let_go(self, unit: StepState | GroupState) -> None:
        """What waited for it waits for one less."""
        graph = self._graph
        if graph.is_iteration(unit.node, unit.item):
            return
        for follower in graph.followers.get(unit.node, ()):
            name = graph.name(follower, unit.item)
            if missing := self._missing.get(name):
                missing.pop(unit.node, None)
            parts = graph.parts(follower, unit.item) if graph.has_rules else ((follower, ()),)
            for part in parts:
                step = self.state.steps.get(graph.name(*part))
                if step is not None and step.state == "waiting":
                    self._explain_wait(step.id)

    def _attempt(self, step_id: str, number: int) -> AttemptState | None:
        step = self.state.steps.get(step_id)
        if step is None or not 0 < number <= len(step.attempts):
            return None
        return step.attempts[number - 1]


_APPLY: Mapping[type[Event], Callable[[Fold, Any], None]] = {
    RunWait: Fold._run_wait,
    RunStart: Fold._run_start,
    RunEnd: Fold._run_end,
    RunFiles: Fold._run_files,
    RunChange: Fold._run_change,
    StopAsk: Fold._stop_ask,
    StepWait: Fold._step_wait,
    AttemptStart: Fold._attempt_start,
    AttemptHandle: Fold._attempt_handle,
    AttemptChange: Fold._attempt_change,
    AttemptStop: Fold._attempt_stop,
    StepProgress: Fold._step_progress,
    AttemptEnd: Fold._attempt_end,
    StepEnd: Fold._step_end,
    GroupStart: Fold._group_start,
    GroupEnd: Fold._group_end,
}
