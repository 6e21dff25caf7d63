"""The values that expressions of a run refer to, as its steps have given them so far."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..errors import ConvectError, Refused
from ..pipeline.expressions import (
    Expression,
    Reference,
    Unavailable,
    bind_with,
    evaluate,
    given_parameter,
    output,
    parse_one,
    references_in,
    select,
    short_names,
)
from ..pipeline.plan import Group, Json
from .graph import Graph, Item
from .model import GOOD, GroupState, Run, RunState, State, StepState

LookUp = Callable[[Reference], Json]

_WORDS: Mapping[State, str] = {"cached": "succeeded", "lost": "failed"}
"""What `nodes.ID.state` says of states that only the engine tells apart."""


@dataclass(frozen=True, slots=True)
class Values:
    """What a unit of a run sees, for the items that it is for.

    `is_lenient` units run whatever came before them: an output that does not exist is null.
    `wants_files` is for components, which take the files of others as they are; everybody else
    wants just the path.
    """

    run: Run
    state: RunState
    unit: str | None
    """None for somebody outside of the run."""
    item: Item
    is_lenient: bool = False
    wants_files: bool = False

    def bind(self, value: Json) -> Json:
        """`value` with all expressions in it evaluated. Unavailable, Refused."""
        return bind_with(value, self.look_up)

    def look_up(self, reference: Reference) -> Json:
        if reference.kind == "run":
            return self.run.id if reference.name == "id" else self.run.name
        if reference.kind == "each":
            return self._item(reference.name)
        target = reference.node or ""
        graph = self.state.graph
        if target not in graph.units:
            raise Refused(f"There is no node “{target}”.", code="unknown-node")
        is_state = reference.of == "state"
        loops = graph.loops(target) if is_state else graph.inner_loops(target)
        shared = _shared(loops, self._loops)
        read = self._state_of if is_state else self._output_of(reference, shared < len(loops))
        return self._collect(target, loops, self.item[:shared], read, is_first=True)

    @property
    def _loops(self) -> tuple[str, ...]:
        if self.unit is None:
            return ()
        return self.state.graph.inner_loops(self.unit)[: len(self.item)]

    def _item(self, name: str) -> Json:
        graph = self.state.graph
        for depth, loop in enumerate(self._loops):
            for_each = graph.units[loop].for_each
            if for_each is not None and for_each.name == name:
                values = self.state.groups[graph.name(loop, self.item[:depth])].values
                return (values or [])[self.item[depth]]
        raise Refused(f"There is no loop over “{name}” here.", code="each-outside-loop")

    def _collect(
        self,
        target: str,
        loops: tuple[str, ...],
        item: Item,
        read: Callable[[str, Item], Json],
        *,
        is_first: bool = False,
    ) -> Json:
        """The value of a unit; of one in loops that we are not in, the list of all its items."""
        if len(item) == len(loops):
            return read(target, item)
        graph = self.state.graph
        loop = self.state.groups.get(graph.name(loops[len(item)], item))
        if loop is None or loop.values is None or loop.state not in GOOD:
            if is_first and not self.is_lenient:
                raise Unavailable
            if loop is None or loop.values is None:
                return None
        return [
            self._collect(target, loops, (*item, number), read)
            for number in range(len(loop.values))
        ]

    def _state_of(self, target: str, item: Item) -> Json:
        unit = unit_state(self.state, target, item)
        return None if unit is None else _WORDS.get(unit.state, unit.state)

    def _output_of(self, reference: Reference, is_one_of_many: bool) -> Callable[[str, Item], Json]:
        may_miss = is_one_of_many or self.is_lenient

        def read(target: str, item: Item) -> Json:
            unit = unit_state(self.state, target, item)
            if unit is None or unit.state not in GOOD:
                if may_miss:
                    return self._what_there_is(reference, unit)
                raise Unavailable
            try:
                if isinstance(unit, StepState):
                    return self._seen(output(reference, unit.outputs))
                return self._group_output(reference, target, item)
            except (ConvectError, Unavailable):
                if may_miss:
                    return None
                raise

        return read

    def _what_there_is(self, reference: Reference, unit: StepState | GroupState | None) -> Json:
        """What a step that failed had given by then, for those who run anyway."""
        if isinstance(unit, StepState) and self.is_lenient:
            return self._seen(unit.outputs.get(reference.name))
        return None

    def _group_output(self, reference: Reference, target: str, item: Item) -> Json:
        group = self.state.graph.units[target]
        assert isinstance(group, Group)
        inside = Values(self.run, self.state, target, item, wants_files=self.wants_files)
        return inside.bind(output(reference, group.outputs))

    def _seen(self, value: Json) -> Json:
        if not self.wants_files and isinstance(value, dict) and set(value) == {"file", "size"}:
            return value["file"]
        return value


def values_for(run: Run, state: RunState, unit: str, item: Item) -> Values:
    planned = state.graph.units[unit]
    around = (state.graph.units[each] for each, _ in state.graph.ancestors(unit, item))
    lenient = any(each.run_if != "succeeded" for each in (planned, *around))
    return Values(run, state, unit, item, lenient, getattr(planned, "kind", "") == "component")


def unit_state(state: RunState, unit: str, item: Item) -> StepState | GroupState | None:
    name = state.graph.name(unit, item)
    return state.steps.get(name) or state.groups.get(name)


def item_values(state: RunState, unit: str, item: Item) -> list[Json]:
    """The values of the items that something is for, the outermost first."""
    graph: Graph = state.graph
    found = []
    for depth, loop in enumerate(graph.inner_loops(unit)[: len(item)]):
        values = state.groups[graph.name(loop, item[:depth])].values or []
        found.append(values[item[depth]])
    return found


def _shared(loops: tuple[str, ...], others: tuple[str, ...]) -> int:
    count = 0
    for one, other in zip(loops, others, strict=False):
        if one != other:
            break
        count += 1
    return count


def evaluate_in(
    run: Run, state: RunState, text: str, loop: str | None = None, *, runs_anyway: bool = False
) -> dict[str, Json]:
    """The value of the expression `text`, and the values of what it refers to by short name.

    In a `loop`, what differs from item to item is counted: `items` says how many there were,
    for how many it was true, and how long the lists that it gave were in all. With
    `runs_anyway` an output that does not exist is null.
    """
    expression = parse_one(text)
    if expression is None:
        raise ConvectError(
            "It must be one expression, but it is a string.", code="not-an-expression"
        )

    def seen_from(unit: str | None, item: Item) -> LookUp:
        values = Values(run, state, unit, item, runs_anyway)

        def look_up(reference: Reference) -> Json:
            if reference.kind == "parameters":
                return given_parameter(reference, run.plan.parameters)
            if reference.kind == "each" and unit is None:
                raise Refused("The items of the loop around it are not known beforehand.")
            if reference.kind == "nodes" and reference.node not in state.graph.units:
                raise Refused(f"The run had no node “{reference.node}”.", code="unknown-node")
            return values.look_up(reference)

        return look_up

    items = [
        group.item
        for group in state.groups.values()
        if group.node == loop and state.graph.is_iteration(group.node, group.item)
    ]
    if loop is not None and items and _differs(expression, state.graph, loop):
        given = [_evaluated(expression, seen_from(loop, item)) for item in items]
        return {"value": None, "values": {}, "items": _counted(given)}
    look_up = seen_from(None, ())
    known = {}
    for reference, name in short_names(expression).items():
        with contextlib.suppress(ConvectError, Unavailable):
            known[name] = select(reference, look_up(reference))
    value = _evaluated(expression, look_up)
    if isinstance(value, ConvectError):
        raise value
    return {"value": value, "values": known}


def _differs(expression: Expression, graph: Graph, loop: str) -> bool:
    """Whether it may have another value for each item of a loop."""
    return any(
        reference.kind == "each"
        or (reference.node in graph.units and loop in graph.inner_loops(reference.node))
        for reference in references_in(expression)
    )


def _evaluated(expression: Expression, look_up: LookUp) -> Json | ConvectError:
    try:
        return evaluate(expression, look_up)
    except Unavailable:
        return Refused("It has no value, because a node that it needs did not succeed.")
    except ConvectError as error:
        return error


def _counted(given: list[Json | ConvectError]) -> dict[str, Json]:
    """ConvectError when it has a value for none of the items."""
    values = [value for value in given if not isinstance(value, ConvectError)]
    for error in given:
        if isinstance(error, ConvectError) and not values:
            raise error
    return {
        "total": len(given),
        "true": sum(value is True for value in values),
        "length": sum(len(value) for value in values if isinstance(value, list)),
    }
