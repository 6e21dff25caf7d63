"""The types of expressions, as far as they are known before a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .expressions import (
    Constant,
    Expression,
    First,
    Not,
    Operation,
    Reference,
    type_of,
    write,
)
from .flow import Flow

_ORDERED = ("<", "<=", ">", ">=")
_NUMBERS = ("integer", "number")


@dataclass(frozen=True, slots=True)
class Types:
    """What is known of the values that expressions refer to; None is anything."""

    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Those of the pipeline, as they are declared."""
    outputs: Mapping[tuple[str, str], str | None] = field(default_factory=dict)
    """By node and name."""
    flow: Flow | None = None
    node: str | None = None
    """Whose expressions are looked at."""

    def seen_from(self, flow: Flow, node: str | None) -> Types:
        return replace(self, flow=flow, node=node)

    def of(self, reference: Reference) -> str | None:
        if reference.kind == "run" or reference.of == "state":
            return "string"
        if reference.kind == "nodes":
            if self._is_collected(reference.node or ""):
                return "array"
            return self.outputs.get((reference.node or "", reference.name))
        if reference.kind == "each":
            return self._of_item(reference)
        return self.of_parameter(reference.name)

    def of_parameter(self, name: str) -> str | None:
        declared = self.parameters.get(name, {})
        kind: str | None = declared.get("type")
        return kind if kind or "default" not in declared else type_of(declared["default"])

    def _is_collected(self, other: str) -> bool:
        """Whether it is in a loop that whoever looks at it is not in."""
        if self.flow is None or other not in self.flow.nodes:
            return False
        around = set() if self.node is None else {*self.flow.around(self.node)}
        loops = (each for each in (other, *self.flow.around(other)) if each not in around)
        return any("for_each" in self.flow.nodes[each] for each in loops)

    def _of_item(self, reference: Reference) -> str | None:
        if self.flow is None or self.node is None or reference.fields:
            return None
        for each in (self.node, *self.flow.around(self.node)):
            loop = self.flow.nodes[each].get("for_each", {})
            if loop.get("name") == reference.name and isinstance(loop.get("in"), list):
                kinds = {type_of(item) for item in loop["in"]}
                # A text may be an expression, which is of any type.
                plain = not any("${{" in item for item in loop["in"] if isinstance(item, str))
                return kinds.pop() if len(kinds) == 1 and plain else None
        return None


def type_of_expression(expression: Expression, types: Types) -> str | None:
    """The type that an expression will have, None when it cannot be known yet."""
    match expression:
        case Reference():
            return types.of(expression)
        case Constant(value):
            return type_of(value)
        case First(options):
            kinds = {type_of_expression(option, types) for option in options}
            return kinds.pop() if len(kinds) == 1 else None
        case _:
            return "boolean"


def faults(expression: Expression, types: Types) -> Iterator[str]:
    """What is compared or combined and cannot be, as sentences."""
    match expression:
        case Not(operand):
            yield from faults(operand, types)
            yield from _not_boolean("!", operand, types)
        case First(options):
            for option in options:
                yield from faults(option, types)
        case Operation(operator, left, right):
            yield from faults(left, types)
            yield from faults(right, types)
            if operator in ("&&", "||"):
                yield from _not_boolean(operator, left, types)
                yield from _not_boolean(operator, right, types)
            else:
                yield from _not_comparable(operator, left, right, types)


def _not_boolean(operator: str, operand: Expression, types: Types) -> Iterator[str]:
    kind = type_of_expression(operand, types)
    if kind not in (None, "boolean"):
        what = write(operand)[:60]
        yield f"“{operator}” needs true or false, but {what} is of type {kind}."


def _not_comparable(
    operator: str, left: Expression, right: Expression, types: Types
) -> Iterator[str]:
    one, other = type_of_expression(left, types), type_of_expression(right, types)
    if operator == "in":
        if other not in (None, "array"):
            yield f"“in” needs a list, but {write(right)[:60]} is of type {other}."
        return
    if operator in _ORDERED:
        for side, kind in ((left, one), (right, other)):
            if kind not in (None, "string", *_NUMBERS):
                what = write(side)[:60]
                yield f"“{operator}” compares numbers or strings, but {what} is of type {kind}."
                return
    if None in (one, other) or "null" in (one, other):
        return
    if one != other and not (one in _NUMBERS and other in _NUMBERS):
        yield (
            f"{write(left)[:60]} is of type {one} and {write(right)[:60]} of type {other}, "
            "so they cannot be compared."
        )
