"""What a pipeline comes to, said in the simplest way: one unit after the other, no engine.

A model of `docs/control-flow.md` for nodes whose command is `value` (gives its parameters as
outputs) or `fail`; it knows just the expressions that `random_document` writes.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from jupyterlab_convect.pipeline.plan import DISABLED, Group, Plan, Step
from jupyterlab_convect.pipeline.validate import validate

Item = tuple[int, ...]


class NoValue(Exception):
    """Nothing that an expression uses has run."""


class Unfit(Exception):
    """An expression cannot be evaluated."""


@dataclass
class End:
    state: str
    by_rule: bool = False
    outputs: dict[str, Any] = field(default_factory=dict)
    items: list[Any] | None = None

    @property
    def is_failure(self) -> bool:
        return self.state != "succeeded" and not self.by_rule


class Model:
    """`ends` has what each unit comes to, by id and item."""

    def __init__(self, plan: Plan) -> None:
        self.units: dict[str, Step | Group] = {unit.id: unit for unit in plan.groups}
        self.units |= {unit.id: unit for unit in plan.steps}
        self.inside: dict[str | None, list[str]] = {}
        for unit in self.units.values():
            self.inside.setdefault(unit.group, []).append(unit.id)
        self.ends: dict[tuple[str, Item], End] = {}
        self._run_members(None, ())

    @property
    def state(self) -> str:
        failed = any(end.state == "failed" for end in self.ends.values())
        return "failed" if failed else "succeeded"

    def _run_members(self, group: str | None, item: Item) -> None:
        left = list(self.inside.get(group, ()))
        while left:
            ready = [unit for unit in left if not {*self.units[unit].after} & {*left}]
            for unit in ready:
                self._run(unit, item)
                left.remove(unit)

    def _run(self, name: str, item: Item) -> None:
        unit = self.units[name]
        before = {other: self.ends[other, item] for other in unit.after}
        has_failure = any(end.is_failure for end in before.values())
        if unit.run_if == "succeeded" and has_failure:
            return self._skip(name, item, by_rule=False)
        if unit.run_if == "succeeded" and any(
            end.by_rule and other not in unit.weak for other, end in before.items()
        ):
            return self._skip(name, item, by_rule=True)
        if unit.run_if == "failed" and not has_failure:
            return self._skip(name, item, by_rule=True)
        try:
            decided = unit.when != DISABLED and (
                unit.when is None or self._value(unit.when, name, item, self._loops(name))
            )
            if not decided:
                return self._skip(name, item, by_rule=True)
            if unit.for_each is None:
                return self._execute(name, item)
            items = self._value(unit.for_each.items, name, item, self._loops(name))
            if not isinstance(items, list):
                raise Unfit
        except NoValue:
            return self._skip(name, item, by_rule=True)
        except Unfit:
            self._skip(name, item, by_rule=False)
            self.ends[name, item] = End("failed")
            return None
        self.ends[name, item] = End("succeeded", items=items)
        for number in range(len(items)):
            self._execute(name, (*item, number))
            if self.ends[name, (*item, number)].state == "failed":
                self.ends[name, item].state = "failed"
        return None

    def _skip(self, name: str, item: Item, *, by_rule: bool) -> None:
        self.ends[name, item] = End("skipped", by_rule)
        if self.units[name].for_each is None:
            for member in self.inside.get(name, ()):
                self._skip(member, item, by_rule=by_rule)

    def _execute(self, name: str, item: Item) -> None:
        unit = self.units[name]
        if isinstance(unit, Group):
            self._run_members(name, item)
            ends = [self.ends[member, item].state for member in self.inside.get(name, ())]
            self.ends[name, item] = End("failed" if "failed" in ends else "succeeded")
            return
        loops = [*self._loops(name), *([name] if unit.for_each else [])]
        try:
            values = {
                key: self._value(value, name, item, loops) for key, value in unit.parameters.items()
            }
        except NoValue:
            self.ends[name, item] = End("skipped", by_rule=True)
        except Unfit:
            self.ends[name, item] = End("failed")
        else:
            succeeds = unit.command[0] == "value"
            self.ends[name, item] = End("succeeded", outputs=values) if succeeds else End("failed")

    def _loops(self, name: str) -> list[str]:
        """The loops around a unit, the outermost first."""
        group = self.units[name].group
        if group is None:
            return []
        return [*self._loops(group), *([group] if self.units[group].for_each else [])]

    def _is_lenient(self, name: str | None) -> bool:
        if not name:
            return False
        return self.units[name].run_if != "succeeded" or self._is_lenient(self.units[name].group)

    def _value(
        self, value: Any, name: str, item: Item, loops: list[str], *, is_strict: bool = False
    ) -> Any:
        """What an expression comes to; the outputs of a pipeline are strict wherever it is."""
        if not isinstance(value, str):
            return list(value) if isinstance(value, tuple) else value
        name = "" if is_strict else name
        text = value.removeprefix("${{").removesuffix("}}").strip()
        if compared := re.fullmatch(r"(.+) (>|==) (\d)", text):
            left, right = self._term(compared[1], name, item, loops), int(compared[3])
            if compared[2] == "==":
                return type(left) is int and left == right
            if type(left) is not int:
                raise Unfit
            return left > right
        return self._term(text, name, item, loops)

    def _term(self, text: str, name: str, item: Item, loops: list[str]) -> Any:
        if option := re.fullmatch(r"first\((.+), (\d)\)", text):
            try:
                return self._term(option[1], name, item, loops)
            except NoValue:
                return int(option[2])
        # The name of an item of an inner pipeline begins with the node that the pipeline is.
        text = re.sub(r'^each\["(.+)"\]$', r"each.\1", text)
        kind, _, rest = text.partition(".")
        if kind == "each":
            depth = [self.units[loop].for_each.name for loop in loops].index(rest)
            return (self.ends[loops[depth], item[:depth]].items or [])[item[depth]]
        if kind == "nodes":
            target, _, output = rest.partition(".outputs.")
            around = [*self._loops(target), *([target] if self.units[target].for_each else [])]
            shared = 0
            while shared < min(len(loops), len(around)) and loops[shared] == around[shared]:
                shared += 1
            is_lenient = self._is_lenient(name)
            return self._output(target, output, item[:shared], around, is_lenient, is_outer=True)
        return json.loads(text)

    def _output(
        self,
        target: str,
        output: str,
        item: Item,
        loops: list[str],
        is_lenient: bool,
        *,
        is_outer: bool,
    ) -> Any:
        """An output; of what is in loops that the reader is not in, the list of all items."""
        if len(item) == len(loops):
            end, unit = self.ends.get((target, item)), self.units[target]
            if end is not None and end.state == "succeeded" and isinstance(unit, Group):
                try:
                    return self._value(unit.outputs[output], target, item, loops, is_strict=True)
                except (NoValue, Unfit):
                    if is_lenient or not is_outer:
                        return None
                    raise
            if end is not None and end.state == "succeeded" and output in end.outputs:
                return end.outputs[output]
            if is_lenient or not is_outer:
                return None
            raise NoValue if end is None or end.state != "succeeded" else Unfit
        end = self.ends.get((loops[len(item)], item))
        if is_outer and not is_lenient and (end is None or end.state != "succeeded"):
            raise NoValue
        if end is None or end.items is None:
            return None
        return [
            self._output(target, output, (*item, number), loops, is_lenient, is_outer=False)
            for number in range(len(end.items))
        ]


def random_document(seed: int, folder: Path | None = None) -> dict[str, Any]:
    """Nodes in groups in groups, to which rules are added as long as the whole is valid.

    With a folder there are nodes that are another such pipeline, which is written there.
    """
    chance = Random(seed)
    names = [f"n{number}" for number in range(chance.randint(3, 8))]
    groups = [f"g{number}" for number in range(chance.randint(0, 4))]
    inner = [f"p{number}" for number in range(0 if folder is None else 2)]
    if folder is not None:
        document = random_document(seed + 100_000)
        (folder / "inner.pipeline").write_text(json.dumps(document), "utf-8")
    givers = [*names, *inner]
    homes = {name: chance.choice([None, *groups[:number]]) for number, name in enumerate(groups)}
    homes |= {name: chance.choice([None, *groups]) for name in givers}
    nodes: dict[str, Any] = {
        group: {"kind": "group", "members": [name for name in homes if homes[name] == group]}
        for group in groups
    }
    for name in names:
        values = {"v": chance.randint(0, 4), "l": [chance.randint(0, 4)] * chance.randint(0, 2)}
        word = "fail" if chance.random() < 0.15 else "value"
        nodes[name] = {"kind": "command", "command": [word, "No."], "parameters": values}
    for name in inner:
        nodes[name] = {"kind": "pipeline", "path": "inner.pipeline"}

    def number(name: str) -> str:
        other = f"nodes.{chance.choice(givers)}.outputs.v"
        each = f"each.item_{chance.choice([name, *groups])}"
        return chance.choice(
            (other, f"first({other}, {chance.randint(0, 4)})", each, "parameters.n")
        )

    def changed(name: str) -> dict[str, Any]:
        node = dict(nodes[name])
        match chance.choice(("for_each", "when", "run_if", "after", "value", "disabled")):
            case "for_each":
                items: Any = [chance.randint(0, 4) for _ in range(chance.randint(0, 3))]
                if chance.random() < 0.4:
                    output = chance.choice(("l", "l", "v"))
                    items = f"${{{{ nodes.{chance.choice(givers)}.outputs.{output} }}}}"
                node["for_each"] = {"name": f"item_{name}", "in": items, "parallel": 2}
            case "when":
                sign, other = chance.choice((">", "==")), chance.randint(0, 3)
                node["when"] = f"${{{{ {number(name)} {sign} {other} }}}}"
            case "run_if":
                node["run_if"] = chance.choice(("always", "failed"))
            case "after":
                others = {*node.get("after", ()), chance.choice([*givers, *groups])}
                node["after"] = sorted(others)
            case "value" if name in names:
                node["parameters"] = node["parameters"] | {"v": f"${{{{ {number(name)} }}}}"}
            case "value" if name in inner:
                node["parameters"] = {"n": f"${{{{ {number(name)} }}}}"}
            case "disabled" if chance.random() < 0.2:
                node["disabled"] = True
        return node

    document = {"convect": 1, "parameters": {"n": {"default": chance.randint(0, 4)}}}

    def is_valid(**more: Any) -> bool:
        problems = validate(document | more, root=folder, path="outer.pipeline")
        return all(problem.severity != "error" for problem in problems)

    for _ in range(30):
        name = chance.choice([*givers, *groups])
        candidate = nodes | {name: changed(name)}
        if is_valid(nodes=candidate):
            nodes = candidate
    given = {}
    for output in ("v", "l"):
        source = f"nodes.{chance.choice(names)}.outputs.{output}"
        strong = {**given, output: f"${{{{ {source} }}}}"}
        weak = {**given, output: f"${{{{ first({source}, 1) }}}}"}
        given = strong if is_valid(nodes=nodes, outputs=strong) else weak
    return document | {"nodes": nodes, "outputs": given}
