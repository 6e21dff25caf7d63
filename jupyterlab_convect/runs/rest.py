"""What is left of a plan when the results of some of its units are there already."""

from __future__ import annotations

from dataclasses import replace

from ..errors import Refused
from ..pipeline.expressions import Reference, Unavailable, substitute
from ..pipeline.plan import Group, Json, Plan, Step
from .model import Run, RunState
from .selection import top_of
from .values import values_for


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
