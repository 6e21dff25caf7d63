"""Expressions: values that are known later, and what is decided by them.

`${{ … }}` holds a small subset of CEL, the language of conditions in Kubernetes: references,
literals, `== != < <= > >= && || !`, `in`, parentheses, and `first(a, b, …)` for the value of
whichever branch ran. Nothing else is ever evaluated. A text that is one expression becomes
the value itself, with its type; among other words the value is written out, as JSON unless
it is a text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import ConvectError, Refused
from .expression_syntax import (
    Constant,
    Expression,
    First,
    Not,
    Operation,
    Reference,
    almost,
    parse,
    parse_one,
    references,
    references_in,
    spell,
    texts,
    weighed_references,
    write,
)
from .plan import Json

__all__ = [
    "Constant",
    "Expression",
    "First",
    "Not",
    "Operation",
    "Reference",
    "almost",
    "parse",
    "parse_one",
    "references",
    "references_in",
    "texts",
    "weighed_references",
    "write",
]


class Unavailable(Exception):
    """What a reference names was skipped, so that there is no value and will be none."""


def bind(value: Json, outputs: Mapping[str, Mapping[str, Json]], run: Mapping[str, str]) -> Json:
    """`value` with outputs of nodes (by node id and name) and facts of the run in place."""

    def look_up(reference: Reference) -> Json:
        if reference.kind == "run":
            return run[reference.name]
        return output(reference, outputs.get(reference.node or "", {}))

    return bind_with(value, look_up)


def bind_with(value: Json, look_up: Callable[[Reference], Json]) -> Json:
    """`value` with the value of every expression in it; Unavailable when one has none."""
    return _render(value, lambda expression: evaluate(expression, look_up))


def output(reference: Reference, given: Mapping[str, Json]) -> Json:
    """The output that a reference names, among those that its node gave."""
    if reference.name not in given:
        raise Refused(
            f"Node “{reference.node}” produced no output “{reference.name}”.",
            code="missing-output",
            hint="Assign it in the cell tagged “outputs”, or call jupyterlab_convect.output().",
        )
    return given[reference.name]


def given_parameter(reference: Reference, parameters: Mapping[str, Json]) -> Json:
    if reference.name not in parameters:
        raise Refused(
            f"The pipeline has no value for its parameter “{reference.name}”.",
            code="missing-parameter",
        )
    return parameters[reference.name]


def substitute(value: Json, look_up: Callable[[Reference], Json]) -> Json:
    """`value` with every reference in it, however deep, replaced by what `look_up` gives.

    That is a value, or a text which is an expression again.
    """

    def give(expression: Expression) -> Json:
        if isinstance(expression, Reference):
            return look_up(expression)
        changed = _replace(expression, lambda reference: _as_expression(look_up(reference)))
        if any(True for _ in references_in(changed)):
            return f"${{{{ {write(changed)} }}}}"
        return evaluate(changed, _nothing)

    return _render(value, give)


def _render(value: Json, give: Callable[[Expression], Json]) -> Json:
    """`value` with every expression in it, however deep, replaced by what `give` makes of it."""
    if isinstance(value, str):
        if "${{" not in value:
            return value
        parts = parse(value)
        if len(parts) == 1 and not isinstance(parts[0], str):
            return give(parts[0])
        return "".join(part if isinstance(part, str) else as_text(give(part)) for part in parts)
    if isinstance(value, Mapping):
        return {key: _render(item, give) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_render(item, give) for item in value]
    return value


def _replace(expression: Expression, change: Callable[[Reference], Expression]) -> Expression:
    match expression:
        case Reference():
            return change(expression)
        case Not(operand):
            return Not(_replace(operand, change))
        case Operation(operator, left, right):
            return Operation(operator, _replace(left, change), _replace(right, change))
        case First(options):
            return First(tuple(_replace(option, change) for option in options))
        case _:
            return expression


def _as_expression(value: Json) -> Expression:
    if not isinstance(value, str) or "${{" not in value:
        return Constant(value)
    parts = parse(value)
    if len(parts) == 1 and not isinstance(parts[0], str):
        return parts[0]
    raise Refused(
        f"“{value[:60]}” is text around an expression, which a condition cannot use.",
        code="bad-expression",
        hint="Pass the expression alone.",
    )


def _nothing(reference: Reference) -> Json:
    raise AssertionError(reference)


def as_text(value: Json) -> str:
    """A value as environment variables and arguments carry it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def evaluate(expression: Expression, look_up: Callable[[Reference], Json]) -> Json:
    """The value of an expression. Refused when its types do not fit."""
    match expression:
        case Constant(value):
            return value
        case Reference():
            return select(expression, look_up(expression))
        case Not(operand):
            return not _truth(evaluate(operand, look_up), "!")
        case First(options):
            for option in options:
                try:
                    return evaluate(option, look_up)
                except Unavailable:
                    continue
            raise Unavailable
        case Operation("&&" | "||" as operator, left, right):
            decided = _truth(evaluate(left, look_up), operator)
            if decided == (operator == "||"):
                return decided
            return _truth(evaluate(right, look_up), operator)
        case Operation(operator, left, right):
            return _compare(operator, evaluate(left, look_up), evaluate(right, look_up))


def select(reference: Reference, value: Json) -> Json:
    """The part of a value that a reference means."""
    for name in reference.fields:
        if not isinstance(value, Mapping) or name not in value:
            raise Refused(f"The item “{reference.name}” has no “{name}”.", code="missing-field")
        value = value[name]
    return value


def _truth(value: Json, operator: str) -> bool:
    if not isinstance(value, bool):
        raise _unfit(f"“{operator}” needs true or false, but {brief_value(value)} is neither.")
    return value


def _compare(operator: str, left: Json, right: Json) -> bool:
    if operator == "in":
        if not isinstance(right, list | tuple):
            raise _unfit(f"“in” needs a list, but {brief_value(right)} is not one.")
        return any(_equal(left, item) for item in right)
    if operator in ("==", "!="):
        return _equal(left, right) == (operator == "==")
    if not (_is_number(left) and _is_number(right)) and not (
        isinstance(left, str) and isinstance(right, str)
    ):
        raise _unfit(f"{brief_value(left)} and {brief_value(right)} cannot be compared.")
    return bool(
        {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[operator]
    )


def _equal(left: Json, right: Json) -> bool:
    """Values of different types differ; 1 and 1.0 are the same number, true is none."""
    if _is_number(left) or _is_number(right):
        return _is_number(left) and _is_number(right) and left == right
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_equal, left, right))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_equal(left[key], right[key]) for key in left)
    return type(left) is type(right) and bool(left == right)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _unfit(sentence: str) -> Refused:
    return Refused(sentence, code="wrong-type-in-expression")


def explain_false(expression: Expression, look_up: Callable[[Reference], Json]) -> str:
    """“Skipped: auc >= 0.8 was false, auc was 0.71.”: a condition, and what decided it."""
    short = short_names(expression)
    condition = spell(expression, 0, lambda reference: short[reference])
    values = [(short[reference], _shown(reference, look_up)) for reference in short]
    if not values:
        return "Skipped: its condition is false."
    if len(values) == 1:
        name, value = values[0]
        if isinstance(expression, Reference):
            return f"Skipped: {name} was {value}."
        return f"Skipped: {condition} was false, {name} was {value}."
    listed = ", ".join(f"{name} = {value}" for name, value in values)
    return f"Skipped: {condition} was false, with {listed}."


def _shown(reference: Reference, look_up: Callable[[Reference], Json]) -> str:
    try:
        return brief_value(select(reference, look_up(reference)))
    except (Unavailable, ConvectError):
        return "–"


def short_names(expression: Expression) -> dict[Reference, str]:
    """What each reference is called in a sentence: by its name alone where that tells which."""
    known = list(dict.fromkeys(references_in(expression)))
    names = {reference.name for reference in known}
    return {reference: _short(reference, is_unique=len(names) == len(known)) for reference in known}


def _short(reference: Reference, *, is_unique: bool) -> str:
    if reference.of == "state":
        return f"{reference.node}.state"
    # The name of an item of an inner pipeline begins with the node that the pipeline is.
    last = ".".join((reference.name.rpartition(":")[2], *reference.fields))
    return last if is_unique or reference.node is None else f"{reference.node}.{last}"


def brief_value(value: Json, limit: int = 40) -> str:
    """A value as JSON, cut where it would flood a sentence."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def type_of(value: Any) -> str:
    """The JSON type of a value, in the words of a parameter's `type`."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case _:
            return "object"
