"""Which steps of a plan a run executes, which results it takes over, and what it leaves out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ..errors import Missing, Refused
from ..pipeline.plan import Plan
from .model import GOOD, RunState, Selection


@dataclass(frozen=True, slots=True)
class Choice:
    execute: frozenset[str]
    reuse: Mapping[str, str]
    """Where the result of each lies, `<run id>/<attempt>`."""
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
    everything = [step.id for step in plan.steps]
    if select.mode == "all":
        return choose_all(plan)
    execute = _wanted(plan, select, of)
    reuse: dict[str, str] = {}
    for step_id in _upstream(plan, execute) - execute:
        place = last(step_id) if of is None else place_in(of[0], of[1], step_id)
        if place is not None:
            reuse[step_id] = place
    for step in plan.steps:
        for needed in step.after:
            if step.id in execute and needed not in execute and needed not in reuse:
                raise Refused(
                    f"The step {step.id} needs the result of {needed}, and there is none.",
                    code="no-earlier-result",
                    hint=f"Run everything up to {step.id} instead.",
                )
    return Choice(execute, reuse, frozenset(everything) - execute - reuse.keys())


def choose_all(plan: Plan) -> Choice:
    return Choice(frozenset(step.id for step in plan.steps), {}, frozenset())


def place_in(run_id: str, state: RunState, step_id: str) -> str | None:
    """Where the good result of a step lies, `<run id>/<attempt>`; it may be in an older run."""
    step = state.steps.get(step_id)
    if step is None or step.state not in GOOD:
        return None
    return step.source or f"{run_id}/{len(step.attempts)}"


def _wanted(plan: Plan, select: Selection, of: tuple[str, RunState] | None) -> frozenset[str]:
    if select.mode == "failed":
        if of is None:
            raise Refused("There is no earlier run whose failed steps could run again.")
        good = {step_id for step_id, step in of[1].steps.items() if step.state in GOOD}
        wanted = frozenset(step.id for step in plan.steps if step.id not in good)
        if not wanted:
            raise Refused("No step of the earlier run failed: there is nothing to run again.")
        return wanted
    chosen = [] if select.node is None else plan.steps_of(select.node)
    if not chosen:
        raise Missing(f"The pipeline has no node {select.node!r}.")
    if select.mode == "only":
        return frozenset(chosen)
    if select.mode == "upto":
        return frozenset((*chosen, *_upstream(plan, chosen)))
    return frozenset((*chosen, *_downstream(plan, chosen)))


def _upstream(plan: Plan, step_ids: Iterable[str]) -> set[str]:
    """All that these steps depend on, however far up; not themselves, unless in between."""
    after = {step.id: step.after for step in plan.steps}
    found: set[str] = set()
    left = list(step_ids)
    while left:
        for upstream in after[left.pop()]:
            if upstream not in found:
                found.add(upstream)
                left.append(upstream)
    return found


def _downstream(plan: Plan, step_ids: Iterable[str]) -> set[str]:
    found: set[str] = set()
    start = set(step_ids)
    for step in plan.steps:  # In an order in which they could run.
        if any(upstream in start or upstream in found for upstream in step.after):
            found.add(step.id)
    return found
