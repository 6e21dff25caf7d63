"""What an expression would have come to in a run that there has been."""

from __future__ import annotations

import contextlib

from ..errors import ConvectError, Refused
from ..pipeline.expressions import (
    Reference,
    Unavailable,
    evaluate,
    given_parameter,
    parse_one,
    select,
    short_names,
)
from ..pipeline.plan import Json
from .model import Run, RunState
from .values import Values


def evaluate_in(run: Run, state: RunState, text: str) -> dict[str, Json]:
    """The value of the expression `text`, and the values of what it refers to by short name."""
    expression = parse_one(text)
    if expression is None:
        raise ConvectError(
            "It must be one expression, but it is a string.", code="not-an-expression"
        )

    values = Values(run, state, None, ())

    def look_up(reference: Reference) -> Json:
        if reference.kind == "parameters":
            return given_parameter(reference, run.plan.parameters)
        if reference.kind == "each":
            raise Refused("The items of the loop around it are not known beforehand.")
        if reference.kind == "nodes" and reference.node not in state.graph.units:
            raise Refused(f"The run had no node “{reference.node}”.", code="unknown-node")
        return values.look_up(reference)

    known = {}
    for reference, name in short_names(expression).items():
        with contextlib.suppress(ConvectError, Unavailable):
            known[name] = select(reference, look_up(reference))
    try:
        return {"value": evaluate(expression, look_up), "values": known}
    except Unavailable:
        raise Refused("It has no value, because a node that it needs did not succeed.") from None
