"""Plans as Kubeflow can walk them: one rule per group, and loops around groups only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from ...pipeline.plan import Group, Plan, Step

Unit = TypeVar("Unit", Step, Group)
BRANCH = " branch"
"""Behind the id of a step: the group around one that others do without."""


def with_scopes(plan: Plan) -> Plan:
    """The plan with a group around each step that loops, and two where a group asks for both.

    A step that others do without, an option of `first(…)`, has one around its condition: what
    waits for the group goes on when the step is skipped.
    """
    groups: list[Group] = []
    steps: list[Step] = []
    optional = {name for unit in units(plan) for name in unit.weak}
    for group in plan.groups:
        if group.when is not None and group.for_each is not None:
            outer = f"{group.id} if"
            groups.append(replace(group, id=outer, for_each=None, outputs={}))
            inner = replace(group, group=outer, after=(), weak=(), when=None, run_if="succeeded")
            groups.append(inner)
        else:
            groups.append(group)
    for step in plan.steps:
        rule = {name: getattr(step, name) for name in ("after", "weak", "group", "when", "run_if")}
        if step.for_each is None and step.id in optional and step.when is not None:
            outer = f"{step.id}{BRANCH}"
            groups.append(Group(outer, step.name, **{**rule, "when": None}))
            steps.append(replace(step, after=(), weak=(), run_if="succeeded", group=outer))
            continue
        if step.for_each is None:
            steps.append(step)
            continue
        outer = f"{step.id} each"
        group = Group(outer, step.name, **rule, for_each=step.for_each)
        if group.when is not None:
            above = f"{step.id} if"
            groups.append(replace(group, id=above, for_each=None))
            group = replace(group, group=above, after=(), weak=(), when=None, run_if="succeeded")
        groups.append(group)
        free = replace(step, after=(), weak=(), when=None, run_if="succeeded", for_each=None)
        steps.append(replace(free, group=outer))
    moved = _moved(groups, plan)
    return replace(
        plan,
        steps=tuple(_rebound(step, moved) for step in steps),
        groups=tuple(_rebound(group, moved) for group in _outer_first(groups)),
    )


def _rebound(unit: Unit, moved: Callable[[tuple[str, ...]], tuple[str, ...]]) -> Unit:
    return replace(unit, after=moved(unit.after), weak=moved(unit.weak))


def _moved(groups: Sequence[Group], plan: Plan) -> Callable[[tuple[str, ...]], tuple[str, ...]]:
    """What waits for a step or a group waits for the outermost that was put around it."""
    known = {group.id for group in groups}

    def outermost(name: str) -> str:
        for suffix in (" if", " each", BRANCH):
            if name + suffix in known:
                return name + suffix
        return name

    return lambda names: tuple(map(outermost, names))


def _outer_first(groups: Sequence[Group]) -> list[Group]:
    """Groups that were put around steps come last, but belong before what is in them."""
    left, found, done = list(groups), list[Group](), {None: True}
    while left:
        ready = [group for group in left if group.group in done]
        found += ready
        done |= {group.id: True for group in ready}  # type: ignore[misc]
        left = [group for group in left if group.id not in done]
    return found


def units(plan: Plan) -> Iterator[Step | Group]:
    """Steps and groups that are in no group, each after what it waits for; then all others."""
    every: list[Step | Group] = [*plan.groups, *plan.steps]
    top = {unit.id: unit for unit in every if unit.group is None}
    done: set[str] = set()
    while len(done) < len(top):
        for name, unit in top.items():
            if name not in done and all(other in done or other not in top for other in unit.after):
                done.add(name)
                yield unit
    yield from (unit for unit in every if unit.group is not None)
