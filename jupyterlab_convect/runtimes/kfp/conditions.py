"""Conditions as Kubeflow evaluates them: CEL over the inputs of a task.

Numbers are written as doubles, because every number of its inputs is one.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from ...pipeline.expressions import Constant, Expression, First, Not, Operation, Reference
from ...pipeline.plan import Json


class Inexpressible(Exception):
    """Kubeflow has no such expression; the words say what it is."""


def condition(expression: Expression, name: Callable[[Reference], str]) -> str:
    """The text of a condition; `name` gives the CEL of a reference."""
    match expression:
        case Constant(value):
            return literal(value)
        case Reference():
            fields = "".join(f"[{literal(field)}]" for field in expression.fields)
            return name(expression) + fields
        case Not(operand):
            return f"!({condition(operand, name)})"
        case Operation(operator, left, right):
            return f"({condition(left, name)} {operator} {condition(right, name)})"
        case First():
            raise Inexpressible("first(…)")


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
