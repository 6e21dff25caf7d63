"""The graph of a plan: steps and groups in groups, and their names once they run.

A unit is a step or a group of the plan. One with `for_each` is a loop: when its list is known,
it has iterations, and all that is in it is there once per item. What runs is named by path:
`regions.3.score` is the step `score` in item 3 of the group `regions`, `score.3` is item 3 of
a step that loops by itself. `item` are the numbers in such a name, one for each loop around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..pipeline.plan import Group, Plan, Step

Item = tuple[int, ...]
Key = tuple[str, Item]
"""What runs: the id of its unit, and the items that it is for."""

MOST_ITEMS = 100_000
"""Items of one loop."""


class Graph:
    """What a plan says, by id. It never changes."""

    def __init__(self, plan: Plan) -> None:
        self.units: dict[str, Step | Group] = {group.id: group for group in plan.groups}
        self.units |= {step.id: step for step in plan.steps}
        self.steps = {step.id: step for step in plan.steps}
        self.order = {step.id: number for number, step in enumerate(plan.steps)}
        self.has_rules = bool(plan.groups) or any(map(_has_rule, plan.steps))
        self.followers: dict[str, list[str]] = {}
        self.children: dict[str | None, list[str]] = {None: []}
        for unit in self.units.values():
            self.children.setdefault(unit.group, []).append(unit.id)
            for upstream in unit.after:
                self.followers.setdefault(upstream, []).append(unit.id)
        self._loops: dict[str, tuple[str, ...]] = {}

    def loops(self, unit: str) -> tuple[str, ...]:
        """The loops around a unit, the outermost first; its own is not one of them."""
        if not self.has_rules:
            return ()
        found = self._loops.get(unit)
        if found is None:
            group = self.units[unit].group
            found = () if group is None else self.inner_loops(group)
            self._loops[unit] = found
        return found

    def inner_loops(self, unit: str) -> tuple[str, ...]:
        """The loops around what is in a unit: those around it, and its own."""
        loops = self.loops(unit)
        return (*loops, unit) if self.is_loop(unit) else loops

    def is_loop(self, unit: str) -> bool:
        return self.units[unit].for_each is not None

    def is_group(self, unit: str) -> bool:
        """Whether it consists of others: a group, or a step that loops."""
        return unit not in self.steps or self.is_loop(unit)

    def is_iteration(self, unit: str, item: Item) -> bool:
        """Whether it is one item of a loop, and not the loop itself."""
        return self.is_loop(unit) and len(item) > len(self.loops(unit))

    def name(self, unit: str, item: Item) -> str:
        if not item:
            return unit
        if self.is_iteration(unit, item):
            return f"{self.name(unit, item[:-1])}.{item[-1]}"
        inner = self.loops(unit)[-1]
        return f"{self.name(inner, item)}.{_within(inner, unit)}"

    def named(self, name: str) -> list[str]:
        """The unit that runs by this name, for whichever item; none when there is no such unit."""
        item = tuple(int(part) for part in name.split(".") if part.isdecimal())
        return [
            unit
            for unit in (self.units if item else ())
            if len(self.loops(unit)) <= len(item) <= len(self.inner_loops(unit))
            and self.name(unit, item) == name
        ]

    def parent(self, unit: str, item: Item) -> Key | None:
        """What it is in: a loop, an item of a loop, another group; None at the top."""
        if self.is_iteration(unit, item):
            return unit, item[:-1]
        group = self.units[unit].group
        return None if group is None else (group, item)

    def ancestors(self, unit: str, item: Item) -> Iterator[Key]:
        above = self.parent(unit, item)
        while above is not None:
            yield above
            above = self.parent(*above)

    def members(self, unit: str | None, item: Item) -> list[Key]:
        """What is directly in a group or an item of a loop (not: in the loop itself)."""
        return [(child, item) for child in self.children.get(unit, ())]

    def parts(self, unit: str, item: Item) -> Iterator[Key]:
        """It and all that is in it before any loop in it has begun."""
        yield unit, item
        if self.is_group(unit) and (not self.is_loop(unit) or self.is_iteration(unit, item)):
            for child, _ in self.members(unit, item):
                yield from self.parts(child, item)

    def iteration(self, unit: str, item: Item) -> Iterator[Key]:
        """What there is for one item of a loop."""
        if unit in self.steps:
            yield unit, item
        else:
            yield from self.parts(unit, item)

    def step(self, unit: str, item: Item) -> Step:
        """A step as it runs for an item."""
        step = self.steps[unit]
        return replace(step, id=self.name(unit, item), for_each=None) if item else step


def _within(loop: str, unit: str) -> str:
    """The id of a unit without the inner pipeline that both it and the loop around it are in."""
    shared = 0
    around, parts = loop.split("."), unit.split(".")
    while shared < min(len(around), len(parts) - 1) and around[shared] == parts[shared]:
        shared += 1
    return ".".join(parts[shared:])


def _has_rule(step: Step) -> bool:
    return step.when is not None or step.for_each is not None or step.run_if != "succeeded"
