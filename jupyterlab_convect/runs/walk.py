"""Walks the graph of one run: what begins now, what is skipped, which groups have ended.

It decides and writes nothing: the driver does what `next` says, tells it what ended, and asks
again. All of its memory follows from the state.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..errors import ConvectError
from ..pipeline.expressions import Unavailable
from .events import Event, GroupEnd, GroupStart, StepEnd
from .graph import Key
from .model import ENDED, GroupState, Run, RunState, StepState
from .order import (
    NOTHING_RAN,
    End,
    Order,
    UnitState,
    doomed,
    end_of_group,
    is_failure,
    is_under_way,
    items_of,
    skips,
    why_skipped,
)
from .reuse import EarlierRuns
from .selection import Choice, top_of
from .values import unit_state


@dataclass(frozen=True, slots=True)
class Begin:
    """A step can begin: nothing that it waits for is missing."""

    step: str


@dataclass(frozen=True, slots=True)
class Commit:
    """Something is decided, and has to be written down before it counts."""

    events: Sequence[Event]


@dataclass(frozen=True, slots=True)
class Finish:
    """Steps and groups end this way."""

    ends: Sequence[End]


Decision = Begin | Commit | Finish


class Walk:
    def __init__(self, run: Run, state: RunState, choice: Choice, earlier: EarlierRuns) -> None:
        self._run = run
        self._choice = choice
        self._earlier = earlier
        self._graph = state.graph
        self._order = Order(state.graph, choice.leave)
        self._open: set[str] = set()
        """Groups and items of loops that have been let begin."""
        self._due: deque[Key] = deque()
        """Steps and groups that wait for nothing any more."""
        self._begun: deque[Key] = deque()
        """Groups that have begun, and whose members have not been looked at."""
        self._over: deque[Key] = deque()
        """Groups in which all has ended."""
        self._failed: deque[UnitState] = deque()
        """What failed, and may have others skipped."""

    @property
    def is_over(self) -> bool:
        return self._order.is_over("")

    def begin(self, state: RunState) -> list[StepState]:
        """Start where an earlier driver left the run; the steps that it had tried already."""
        units: list[UnitState] = [*state.groups.values(), *state.steps.values()]
        self._order.add(((unit.node, unit.item) for unit in units), state)
        self._failed += [
            unit for unit in units if is_failure(unit) and unit.node not in self._choice.leave
        ]
        tried: list[StepState] = []
        for key in self._graph.members(None, ()):
            if key[0] not in self._choice.leave:
                tried += self._pick_up(key, state)
        return tried

    def again(self, step: StepState) -> None:
        """A step is to be tried once more."""
        self._due.append((step.node, step.item))

    def ended(self, unit: UnitState, state: RunState) -> None:
        """Something has ended, and it is written down."""
        key = (unit.node, unit.item)
        self._due += [each for each in self._order.end(*key) if self._may_begin(each)]
        parent = self._graph.parent(*key)
        if parent is not None:
            around = unit_state(state, *parent)
            if unit.id in self._open and self._graph.is_iteration(*key):
                assert isinstance(around, GroupState)
                self._open_items(around, 1, state)
            if self._order.is_over(self._graph.name(*parent)):
                self._over.append(parent)
        self._open.discard(unit.id)
        if is_failure(unit):
            self._failed.append(unit)

    def next(self, state: RunState) -> Decision | None:
        """The next thing to do; None when everything waits for something that goes on."""
        while self._failed or self._begun or self._over or self._due:
            if self._failed:
                ends = doomed(state, self._failed.popleft(), time.time())
                if ends:
                    return Finish(ends)
            elif self._begun:
                key = self._begun.popleft()
                self._count_items(key, state)
                self._open_group(key, state)
            elif self._over:
                group = unit_state(state, *self._over.popleft())
                if isinstance(group, GroupState) and group.state not in ENDED:
                    return Finish([end_of_group(state, group, time.time())])
            elif (decision := self._decide(self._due.popleft(), state)) is not None:
                return decision
        return None

    def fail(self, key: Key, reason: str, state: RunState) -> Finish:
        """How a unit ends that cannot begin."""
        unit, now = unit_state(state, *key), time.time()
        assert unit is not None
        if isinstance(unit, StepState):
            return Finish([StepEnd(now, unit.id, "failed", reason)])
        inside = skips(state, key, f"Skipped because “{unit.id}” failed.", now, by_rule=False)
        parts = [end for end in inside if isinstance(end, StepEnd) or end.group != unit.id]
        return Finish([*parts, GroupEnd(now, unit.id, "failed", reason)])

    def _pick_up(self, key: Key, state: RunState) -> Iterator[StepState]:
        """Note what can begin or go on; steps that were tried before go back to the driver."""
        unit = unit_state(state, *key)
        if unit is None or unit.state in ENDED:
            return
        if isinstance(unit, StepState):
            if unit.id in self._choice.reuse:
                return  # It is being taken over.
            if unit.attempts:
                yield unit
            elif self._graph.is_iteration(*key) or self._order.is_free(unit.id):
                self._due.append(key)
        elif unit.started is not None or self._graph.is_iteration(*key):
            yield from self._open_group(key, state)
        elif self._order.is_free(unit.id):
            self._due.append(key)

    def _may_begin(self, key: Key) -> bool:
        """Whether it is for the walk to begin it: not what is left out or being taken over."""
        unit, item = key
        parent = self._graph.parent(unit, item)
        if parent is not None:
            return self._graph.name(*parent) in self._open
        return unit in self._choice.execute or self._graph.is_group(unit)

    def _decide(self, key: Key, state: RunState) -> Decision | None:
        """All that a unit waits for has ended: begin it, or skip it by a rule."""
        unit = unit_state(state, *key)
        if unit is None or unit.state in ENDED or is_under_way(unit):
            return None
        if isinstance(unit, StepState):
            is_decided = not self._graph.has_rules or unit.attempts
            if is_decided or self._graph.is_iteration(*key):
                return Begin(unit.id)
        try:
            reason = self._why_skipped(key, unit, state)
            if reason is None:
                return Begin(unit.id) if isinstance(unit, StepState) else self._start(unit, state)
        except Unavailable:
            reason = NOTHING_RAN
        except ConvectError as error:
            return self.fail(key, error.sentence, state)
        return Finish([*skips(state, key, reason, time.time(), by_rule=True)])

    def _why_skipped(self, key: Key, unit: UnitState, state: RunState) -> str | None:
        before = self._taken_over_from(key)
        if before is not None:  # What was decided then is not decided again.
            earlier = before.get(unit.id)
            return earlier.reason if earlier is not None and earlier.by_rule else None
        return why_skipped(self._run, state, key, self._choice.leave)

    def _taken_over_from(self, key: Key) -> Mapping[str, UnitState] | None:
        """The units of the run that the group at the top of this one is taken over from."""
        source = self._choice.reuse.get(top_of(self._graph, key[0]))
        return None if source is None else self._earlier.units(source.partition("/")[0])

    def _start(self, group: GroupState, state: RunState) -> Commit:
        """Let a group begin; a loop with its items."""
        key, items = (group.node, group.item), None
        if self._graph.is_loop(group.node):
            before = self._taken_over_from(key) or {}
            earlier = before.get(group.id)
            known = earlier.values if isinstance(earlier, GroupState) else None
            items = known if known is not None else items_of(self._run, state, key)
        self._begun.append(key)
        return Commit([GroupStart(time.time(), group.id, items)])

    def _count_items(self, key: Key, state: RunState) -> None:
        """Count what a loop has added to the run."""
        group = unit_state(state, *key)
        assert isinstance(group, GroupState)
        for number in range(len(group.values or ())):
            self._order.add(self._graph.iteration(group.node, (*group.item, number)), state)

    def _open_group(self, key: Key, state: RunState) -> list[StepState]:
        """Look at what is in a group that has begun."""
        group = unit_state(state, *key)
        assert isinstance(group, GroupState)
        self._open.add(group.id)
        tried: list[StepState] = []
        if not self._graph.is_loop(group.node) or self._graph.is_iteration(*key):
            for child in self._graph.members(*key):
                tried += self._pick_up(child, state)
        else:
            tried += self._open_loop(group, state)
        if self._order.is_over(group.id):
            self._over.append(key)
        return tried

    def _open_loop(self, group: GroupState, state: RunState) -> list[StepState]:
        """Go on with the items that have begun, and let as many others begin as are allowed."""
        tried: list[StepState] = []
        waiting: list[int] = []
        begun = 0
        for number in range(len(group.values or ())):
            key = (group.node, (*group.item, number))
            unit = unit_state(state, *key)
            if unit is None or unit.state in ENDED:
                continue
            if unit.started is None and unit.state == "waiting":
                waiting.append(number)
            else:
                begun += 1
                self._open.add(unit.id)
                tried += self._pick_up(key, state)
        self._order.hold_items(group.id, waiting)
        for_each = self._graph.units[group.node].for_each
        limit = None if for_each is None else for_each.parallel
        room = len(waiting) if limit is None else max(limit - begun, 0)
        return tried + self._open_items(group, room, state)

    def _open_items(self, group: GroupState, count: int, state: RunState) -> list[StepState]:
        """Let the next items of a loop begin, other than those that were stopped before."""
        tried: list[StepState] = []
        while count and (number := self._order.next_item(group.id)) is not None:
            key = (group.node, (*group.item, number))
            unit = unit_state(state, *key)
            if unit is not None and unit.state not in ENDED:
                self._open.add(unit.id)
                tried += self._pick_up(key, state)
                count -= 1
        return tried
