"""What of a run can begin, what is skipped and why, and how groups and runs end.

All of it follows from the plan and the state.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from ..errors import ConvectError
from ..pipeline.document import describe_type
from ..pipeline.expressions import Unavailable, explain_false, parse_one
from ..pipeline.plan import DISABLED, Json
from ..text import quoted, some_of
from .events import GroupEnd, RunEnd, StepEnd
from .graph import MOST_ITEMS, Graph, Item, Key
from .model import ENDED, GOOD, GroupState, Run, RunState, State, StepState, steps_of
from .values import unit_state, values_for

NOTHING_RAN = "Skipped: nothing that it uses has run."

UnitState = StepState | GroupState
End = StepEnd | GroupEnd

_ENDINGS: dict[State, str] = {
    "failed": "failed",
    "cancelled": "was stopped",
    "skipped": "was skipped",
    "lost": "was lost",
}


class Order:
    """How many units each unit still waits for, and how many of each group have not ended."""

    def __init__(self, graph: Graph, left_out: frozenset[str]) -> None:
        self._graph = graph
        self._left_out = left_out
        self._missing: dict[str, int] = {}
        self._left: dict[str, int] = {"": 0}
        self._items: dict[str, deque[int]] = {}
        """The items of each loop that have not begun."""

    def add(self, units: Iterable[Key], state: RunState) -> None:
        """Count units that there are from now on, however far they are."""
        graph = self._graph
        for unit, item in units:
            known = unit_state(state, unit, item)
            if known is None:
                continue
            if graph.is_group(unit):
                self._left.setdefault(known.id, 0)
            if known.state not in ENDED:
                self._left[self._parent(unit, item)] = 1 + self._left.get(
                    self._parent(unit, item), 0
                )
            if not graph.is_iteration(unit, item):
                self._missing[known.id] = sum(
                    other not in self._left_out and not _has_ended(state, other, item)
                    for other in graph.units[unit].after
                )

    def end(self, unit: str, item: Item) -> Iterator[Key]:
        """Something has ended; what waits for nothing any more because of that."""
        graph = self._graph
        self._left[self._parent(unit, item)] -= 1
        if graph.is_iteration(unit, item):
            return
        for follower in graph.followers.get(unit, ()):
            name = graph.name(follower, item)
            self._missing[name] -= 1
            if not self._missing[name]:
                yield follower, item

    def is_free(self, name: str) -> bool:
        """Whether a unit waits for nothing."""
        return not self._missing[name]

    def is_over(self, name: str) -> bool:
        """Whether all that is in a group has ended; the run as a whole is the group ``""``."""
        return not self._left[name]

    def hold_items(self, loop: str, numbers: Iterable[int]) -> None:
        self._items[loop] = deque(numbers)

    def next_item(self, loop: str) -> int | None:
        """The item of a loop whose turn it is."""
        waiting = self._items.get(loop)
        return waiting.popleft() if waiting else None

    def _parent(self, unit: str, item: Item) -> str:
        parent = self._graph.parent(unit, item)
        return "" if parent is None else self._graph.name(*parent)


def _has_ended(state: RunState, unit: str, item: Item) -> bool:
    known = unit_state(state, unit, item)
    return known is not None and known.state in ENDED


def is_failure(unit: UnitState) -> bool:
    """Whether something did not come to a good end, other than by a rule of the pipeline."""
    return unit.state in ENDED - GOOD and not unit.by_rule


def skips(state: RunState, key: Key, reason: str, now: float, by_rule: bool) -> Iterator[End]:
    """The events that skip a unit and all that is in it, as far as it has not ended.

    The unit comes last: if only the first of them were written, it is decided again.
    """
    for unit, item in reversed([*state.graph.parts(*key)]):
        known = unit_state(state, unit, item)
        if known is None or known.state in ENDED or is_under_way(known):
            continue
        if isinstance(known, StepState):
            yield StepEnd(now, known.id, "skipped", reason, by_rule=by_rule)
        else:
            yield GroupEnd(now, known.id, "skipped", reason, by_rule)


def doomed(state: RunState, culprit: UnitState, now: float) -> list[End]:
    """What is skipped because something failed: all that needs it, however far down."""
    graph, reason = state.graph, skipped_because(culprit)
    ends: list[End] = []
    if graph.is_iteration(culprit.node, culprit.item):
        return ends  # What comes after a loop waits for the loop.
    found: set[str] = set()
    left = [(culprit.node, culprit.item)]
    while left:
        unit, item = left.pop()
        for follower in graph.followers.get(unit, ()):
            known = unit_state(state, follower, item)
            if (
                graph.units[follower].run_if == "succeeded"
                and known is not None
                and known.id not in found
                and known.state not in ENDED
                and not is_under_way(known)
            ):
                found.add(known.id)
                ends += skips(state, (follower, item), reason, now, by_rule=False)
                left.append((follower, item))
    return ends


def skipped_because(culprit: UnitState) -> str:
    return f"Skipped because “{culprit.id}” {_ENDINGS.get(culprit.state, 'did not succeed')}."


def why_skipped(run: Run, state: RunState, key: Key, left_out: frozenset[str]) -> str | None:
    """Why a rule skips a unit whose time has come; None when it runs. ConvectError."""
    unit, item = key
    planned = state.graph.units[unit]
    before = [
        known
        for other in planned.after
        if other not in left_out and (known := unit_state(state, other, item))
    ]
    if planned.run_if == "succeeded":
        for known in before:
            if known.by_rule and known.node not in planned.weak:
                return skipped_because(known)
    if planned.run_if == "failed" and not any(map(is_failure, before)):
        return "Skipped: nothing that it waits for has failed."
    if planned.when is None:
        return None
    if planned.when == DISABLED:
        return "Disabled."
    values = values_for(run, state, unit, item)
    try:
        decided = values.bind(planned.when)
    except Unavailable:
        return NOTHING_RAN
    if not isinstance(decided, bool):
        raise ConvectError(f"“when” must be true or false, but it is {describe_type(decided)}.")
    if decided:
        return None
    expression = parse_one(planned.when)
    if expression is None:
        return planned.why_not or "Skipped: its condition is false."
    return explain_false(expression, values.look_up)


def items_of(run: Run, state: RunState, key: Key) -> list[Json]:
    """The list that a loop goes over. ConvectError, Unavailable."""
    for_each = state.graph.units[key[0]].for_each
    assert for_each is not None
    items = values_for(run, state, *key).bind(for_each.items)
    if not isinstance(items, list):
        raise ConvectError(f"It runs for each item of a list, but it got {describe_type(items)}.")
    if len(items) > MOST_ITEMS:
        raise ConvectError(f"The list has {len(items)} items, and a loop has at most {MOST_ITEMS}.")
    return items


def is_under_way(unit: UnitState) -> bool:
    """Whether an attempt at it has been started that has not ended."""
    if isinstance(unit, GroupState):
        return False
    return bool(unit.attempts) and unit.attempts[-1].state not in ENDED


def survives_stop(state: RunState, unit: UnitState) -> bool:
    """Whether it still runs after a stop: it, or a group around it that has begun, always runs."""
    graph = state.graph
    if not graph.has_rules:
        return False
    chain = [*graph.ancestors(unit.node, unit.item)][::-1]
    for key in chain:
        if not graph.is_iteration(*key) and graph.units[key[0]].run_if == "always":
            return True
        group = unit_state(state, *key)
        if group is None or group.started is None:
            return False
    return graph.units[unit.node].run_if == "always" and not graph.is_iteration(
        unit.node, unit.item
    )


def end_of_group(state: RunState, group: GroupState, now: float) -> GroupEnd:
    """How a group ends in which all has ended."""
    graph = state.graph
    if group.values is not None:
        return _end_of_loop(group, now)
    inside = [unit_state(state, *key) for key in graph.members(group.node, group.item)]
    units = [unit for unit in inside if unit is not None]
    bad = [unit for unit in units if unit.state in ("failed", "lost")]
    if bad:
        first = bad[0]
        return GroupEnd(now, group.id, "failed", f"{first.id} {_ENDINGS[first.state]}.")
    if any(unit.state == "cancelled" for unit in units):
        return GroupEnd(now, group.id, "cancelled", "Stopped.")
    return GroupEnd(now, group.id, "succeeded")


def _end_of_loop(group: GroupState, now: float) -> GroupEnd:
    bad = group.counts.get("failed", 0) + group.counts.get("lost", 0)
    total = len(group.values or ())
    if bad:
        return GroupEnd(now, group.id, "failed", f"{bad} of {total} items failed.")
    if group.counts.get("cancelled"):
        return GroupEnd(now, group.id, "cancelled", "Stopped.")
    return GroupEnd(now, group.id, "succeeded")


def conclusion(state: RunState, now: float) -> RunEnd:
    """The end of a run whose steps have all ended."""
    by_state: dict[State, list[UnitState]] = {}
    for step in steps_of(state):
        by_state.setdefault(step.state, []).append(step)
    bad = [*by_state.get("failed", []), *by_state.get("lost", [])]
    if not bad:  # A group can fail by itself: by a condition, or a list that is none.
        bad = [group for group in state.groups.values() if group.state == "failed"]
    if bad:
        first = bad[0]
        if len(bad) == 1:
            return RunEnd(now, "failed", f"“{first.id}” {_ENDINGS[first.state]}: {first.reason}")
        names = quoted(unit.id for unit in bad)
        return RunEnd(now, "failed", f"{some_of(names)} failed. {names[0]}: {first.reason}")
    cancelled = any(group.state == "cancelled" for group in state.groups.values())
    if state.stopping or cancelled or "cancelled" in by_state:
        return RunEnd(now, "cancelled", "Stopped.")
    return RunEnd(now, "succeeded")
