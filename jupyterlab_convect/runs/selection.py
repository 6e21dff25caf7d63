"""Which steps of a plan a run executes, which results it takes over, and what it leaves out.

A group with a rule is one thing here: it is executed, taken over or left out as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from ..errors import Missing, Refused
from ..pipeline.expressions import Reference, Unavailable, substitute
from ..pipeline.plan import Group, Json, Plan, Step
from .graph import Graph
from .model import GOOD, GroupState, Run, RunState, Selection, StepState
from .values import values_for


@dataclass(frozen=True, slots=True)
class Choice:
    """Ids of the steps and groups at the top of the plan."""

    execute: frozenset[str]
    reuse: Mapping[str, str]
    """Where the result of each step lies, `<run id>/<attempt>`; of a group `<run id>/`."""
    leave: frozenset[str]


def choose(
    plan: Plan,
    select: Selection,
    of: tuple[str, RunState] | None,
    last: Callable[[str], str | None],
) -> Choice:
    """Split the plan.

    `of` is the run to take results over from, by id; `last` gives the place of a step's
    last good result when there is no such run. Refused when a result that is needed is
    not there.
    """
    if select.mode == "all":
        return choose_all(plan)
    graph = Graph(plan)
    everything = graph.children[None]
    execute = _wanted(plan, graph, select, of)
    reuse: dict[str, str] = {}
    for unit in upstream_of(graph, execute) - execute:
        place = last(unit) if of is None else place_in(of[0], of[1], unit)
        if place is not None:
            reuse[unit] = place
    for unit in everything:
        for needed in graph.units[unit].after if unit in execute else ():
            does_without = needed in graph.units[unit].weak and _is_skipped_by_rule(of, needed)
            if not (needed in execute or needed in reuse or does_without):
                raise Refused(
                    f"The step “{unit}” needs the result of “{needed}”, and there is none.",
                    code="no-earlier-result",
                    hint=f"Run everything up to “{unit}” instead.",
                )
    return Choice(execute, reuse, frozenset(everything) - execute - reuse.keys())


def choose_from(plan: Plan, select: Selection, runs: Iterable[tuple[str, RunState]]) -> Choice:
    """Split the plan, and take everything over from the first run that has all that is needed.

    Branches and items differ from run to run: results of several would not fit together.
    """
    refusal: Refused | None = None
    for run in runs:
        try:
            return choose(plan, select, run, _nowhere)
        except Refused as error:
            refusal = refusal or error
    if refusal is not None:
        raise refusal
    return choose(plan, select, None, _nowhere)


def _nowhere(unit: str) -> None:
    return None


def choose_all(plan: Plan) -> Choice:
    """All of a plan."""
    top = [step.id for step in plan.steps if step.group is None]
    top += [group.id for group in plan.groups if group.group is None]
    return Choice(frozenset(top), {}, frozenset())


def place_in(run_id: str, state: RunState, unit: str) -> str | None:
    """Where the good result of a step lies, `<run id>/<attempt>`; it may be in an older run."""
    step = state.steps.get(unit)
    if step is not None:
        if step.state not in GOOD:
            return None
        return step.source or f"{run_id}/{len(step.attempts)}"
    group = state.groups.get(unit)
    return f"{run_id}/" if group is not None and group.state in GOOD else None


def _is_skipped_by_rule(of: tuple[str, RunState] | None, unit: str) -> bool:
    known = None if of is None else of[1].steps.get(unit) or of[1].groups.get(unit)
    return known is not None and known.by_rule


def _wanted(
    plan: Plan, graph: Graph, select: Selection, of: tuple[str, RunState] | None
) -> frozenset[str]:
    if select.mode == "failed":
        return _not_good(graph, of)
    chosen = {top_of(graph, step) for step in _named(plan, graph, select.node)}
    if not chosen:
        raise Missing(f"The pipeline has no node “{select.node}”.")
    if select.mode == "only":
        return frozenset(chosen)
    if select.mode == "upto":
        return frozenset((*chosen, *upstream_of(graph, chosen)))
    return frozenset((*chosen, *_downstream(graph, chosen)))


def _not_good(graph: Graph, of: tuple[str, RunState] | None) -> frozenset[str]:
    if of is None:
        raise Refused("There is no earlier run whose failed steps could run again.")
    earlier: dict[str, StepState | GroupState] = {**of[1].groups, **of[1].steps}
    known = {unit: earlier.get(unit) for unit in graph.children[None]}
    good = {name for name, unit in known.items() if unit is not None and unit.state in GOOD}
    # What a rule skipped is decided again, and is no reason to run anything.
    skipped = {name for name, unit in known.items() if unit is not None and unit.by_rule}
    bad = known.keys() - good - skipped
    if not bad:
        raise Refused("No step of the earlier run failed: there is nothing to run again.")
    # What ran in spite of a failure runs after it again.
    return frozenset((known.keys() - good) | _downstream(graph, bad))


def _named(plan: Plan, graph: Graph, node: str | None) -> list[str]:
    if node is None:
        return []
    return [node] if node in graph.units else plan.steps_of(node) or graph.named(node)


def top_of(graph: Graph, unit: str) -> str:
    """The step or group at the top of the plan that something is in."""
    while (group := graph.units[unit].group) is not None:
        unit = group
    return unit


def upstream_of(graph: Graph, units: Iterable[str]) -> set[str]:
    """All that these depend on, however far up; not themselves, unless in between."""
    found: set[str] = set()
    left = list(units)
    while left:
        for upstream in graph.units[left.pop()].after:
            if upstream not in found:
                found.add(upstream)
                left.append(upstream)
    return found


def _downstream(graph: Graph, units: Iterable[str]) -> set[str]:
    found: set[str] = set()
    left = list(units)
    while left:
        for follower in graph.followers.get(left.pop(), ()):
            if follower not in found:
                found.add(follower)
                left.append(follower)
    return found


def rest_of(run: Run, state: RunState, execute: frozenset[str]) -> Plan:
    """The plan of what is in `execute`, with the values of all else in place. Refused."""
    plan, graph = run.plan, state.graph
    kept = {unit.id for unit in plan.parts if top_of(graph, unit.id) in execute}

    def bound(unit: Step | Group, value: Json) -> Json:
        values = values_for(run, state, unit.id, ())

        def look_up(reference: Reference) -> Json:
            if reference.kind != "nodes" or reference.node in kept:
                return str(reference)
            try:
                found = values.look_up(reference)
            except Unavailable:
                found = None
            if isinstance(found, str) and "${{" in found:
                raise Refused(f"The value of “{reference.name}” looks like an expression.")
            return found

        return substitute(value, look_up)

    def rule(unit: Step | Group) -> dict[str, Json]:
        loop = unit.for_each
        return {
            "after": tuple(name for name in unit.after if name in kept),
            "weak": tuple(name for name in unit.weak if name in kept),
            "when": bound(unit, unit.when),
            "for_each": None if loop is None else replace(loop, items=bound(unit, loop.items)),
        }

    def step(unit: Step) -> Step:
        return replace(
            unit,
            **rule(unit),
            parameters=bound(unit, dict(unit.parameters)),
            env=bound(unit, dict(unit.env)),
            command=tuple(bound(unit, list(unit.command))),
        )

    return replace(
        plan,
        steps=tuple(step(unit) for unit in plan.steps if unit.id in kept),
        groups=tuple(replace(unit, **rule(unit)) for unit in plan.groups if unit.id in kept),
    )
