"""Conditions as Kubeflow evaluates them: CEL over the inputs of a task.

Numbers are written as doubles, because every number of its inputs is one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TypeGuard

from ...pipeline.expressions import Constant, Expression, First, Not, Operation, Reference
from ...pipeline.plan import Json


class Inexpressible(Exception):
    """Kubeflow has no such expression; the words say what it is."""


Name = Callable[[Reference], str]


def condition(expression: Expression, name: Name, option: Name) -> str:
    """The text of a condition; `name` gives the CEL of a reference, `option` that of the JSON text
    of one which `first(…)` can do without: it is empty when the step did not run."""
    match expression:
        case Constant(value):
            return literal(value)
        case Reference():
            fields = "".join(f"[{literal(field)}]" for field in expression.fields)
            return name(expression) + fields
        case Not(operand):
            return f"!({condition(operand, name, option)})"
        case Operation(operator, left, right):
            sides = (condition(side, name, option) for side in (left, right))
            return f"({f' {operator} '.join(sides)})"
        case First(options):
            return _first(options, name, option)


def guards(expression: Expression, option: Name) -> Iterator[str]:
    """What must be true so that each `first(…)` in it finds a value."""
    match expression:
        case Not(operand):
            yield from guards(operand, option)
        case Operation(_, left, right):
            yield from guards(left, option)
            yield from guards(right, option)
        case First(options):
            found = [f'{option(each)} != ""' for each in options if is_branch(each)]
            if len(found) == len(options):
                yield f"({' || '.join(found)})"


def is_branch(expression: Expression) -> TypeGuard[Reference]:
    """Whether an option of `first(…)` may have no value."""
    return isinstance(expression, Reference) and expression.kind == "nodes"


def _first(options: tuple[Expression, ...], name: Name, option: Name) -> str:
    found = ""
    for each in reversed(options):
        if isinstance(each, Not | Operation | First):
            raise Inexpressible("first(…) of something that is computed")
        if is_branch(each):
            value = f"parseJson({option(each)})"
            found = f'({option(each)} != "" ? {value} : {found})' if found else value
        else:
            found = condition(each, name, option)
    return found


def literal(value: Json) -> str:
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int | float):
        return repr(float(value))
    if isinstance(value, str):
        # The escapes of JSON are escapes of CEL as well; what is not ASCII stays as it is.
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(literal, value))}]"
    raise Inexpressible("an object")
