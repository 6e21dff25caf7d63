"""Checks of parameters and expressions: declared, known, of the right type, in the right place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import ConvectError
from .check_shape import has_type
from .document import shorten
from .expression_types import Types, type_of_expression
from .expressions import Reference, almost, parse, references_in, texts, type_of
from .flow import EXPRESSIVE
from .plan import Json
from .problems import Path, Problem, did_you_mean

_PLAIN = ("image", "kernel", "path", "working_folder", "dependencies", "outputs", "timeout")


def fits(value: Json, kind: str | None) -> bool:
    """Whether a value can stand where a type is wanted; null and unknown types fit everywhere."""
    return value is None or kind in (None, "null") or has_type(value, kind)


def kinds_fit(given: str | None, wanted: str | None) -> bool:
    return (
        given == wanted
        or None in (given, wanted)
        or "null" in (given, wanted)
        or {given, wanted} == {"integer", "number"}
    )


def check_declarations(parameters: Mapping[str, Any]) -> Iterator[Problem]:
    """The pipeline's own parameters: do default, choices and type agree?"""
    for name, parameter in parameters.items():
        kind = parameter.get("type")
        values = {"default": parameter["default"]} if "default" in parameter else {}
        if "choices" in parameter:
            values.update({f"choices/{i}": item for i, item in enumerate(parameter["choices"])})
        for place, value in values.items():
            if not fits(value, kind):
                key, _, index = place.partition("/")
                yield Problem(
                    "error",
                    "wrong-parameter-type",
                    f"The parameter “{name}” is of type {kind}, but {shorten(value)} is not.",
                    None,
                    ("parameters", name, key, *([int(index)] if index else [])),
                    "Change the value, or the type.",
                )
        default = parameter.get("default")
        if default is not None and default not in parameter.get("choices", [default]):
            yield Problem(
                "error",
                "not-a-choice",
                f"The default of “{name}”, {shorten(default)}, is not one of its choices.",
                None,
                ("parameters", name, "default"),
            )


def check_given(declared: Mapping[str, Any], given: Mapping[str, Json]) -> Iterator[Problem]:
    """The values that a run chooses."""
    for name, value in given.items():
        path = ("parameters", name)
        if name not in declared:
            yield Problem(
                "error",
                "unknown-parameter",
                f"The pipeline has no parameter “{name[:60]}”.",
                None,
                path,
                did_you_mean(name, declared)
                or (f"There are {', '.join(declared)}." if declared else "It has none."),
            )
            continue
        kind = declared[name].get("type")
        if not fits(value, kind):
            yield Problem(
                "error",
                "wrong-parameter-type",
                f"The parameter “{name}” must be of type {kind}, but {shorten(value)} is not.",
                None,
                path,
            )
        choices = declared[name].get("choices")
        if choices is not None and value not in choices:
            yield Problem(
                "error",
                "not-a-choice",
                f"The parameter “{name}” cannot be {shorten(value)}.",
                None,
                path,
                f"Choose one of {', '.join(shorten(choice) for choice in choices)}.",
            )
        if "${{" in str(value):
            yield Problem(
                "error",
                "misplaced-expression",
                f"The value of “{name}” contains an expression, but a run needs a plain value.",
                None,
                path,
            )
    for name, parameter in declared.items():
        if parameter.get("required") and "default" not in parameter and name not in given:
            yield Problem(
                "error",
                "missing-parameter",
                f"The parameter “{name}” needs a value.",
                None,
                ("parameters", name),
                "Give it a value for this run, or a default.",
            )


def check_expressions(document: Mapping[str, Any], known: set[str]) -> Iterator[Problem]:
    """Every expression of defaults and nodes, and those where none is allowed."""
    parameters = document.get("parameters", {})
    nodes = document.get("nodes", {})
    for key in ("parameters", "env"):
        path = ("defaults", key)
        for where, reference in _scan(document.get("defaults", {}).get(key), None, path):
            if isinstance(reference, Problem):
                yield reference
            elif reference.kind == "each":
                yield Problem(
                    "error",
                    "each-outside-loop",
                    f"{reference} has no meaning in the defaults.",
                    None,
                    where,
                    "Write it in the nodes of the loop.",
                )
            elif reference.node is not None:
                yield Problem(
                    "error",
                    "misplaced-expression",
                    f"{reference} in the defaults would make every node wait for it.",
                    None,
                    where,
                    "Write it in the nodes that need it.",
                )
            else:
                yield from _check_reference(reference, parameters, nodes, known, None, where)
    for name, node in nodes.items():
        for key in (*EXPRESSIVE, "when", "for_each"):
            for where, reference in _scan(node.get(key), name, (key,)):
                if isinstance(reference, Problem):
                    yield reference
                else:
                    yield from _check_reference(reference, parameters, nodes, known, name, where)
        for key in _PLAIN:
            value = node.get(key)
            texts = value if isinstance(value, list) else [value]
            if any(isinstance(text, str) and "${{" in text for text in texts):
                yield Problem(
                    "error",
                    "misplaced-expression",
                    f"“{key}” cannot contain an expression.",
                    name,
                    (key,),
                    "Expressions belong in parameters, inputs, env, command, when and for_each.",
                )


def expression_type(
    value: Json,
    parameters: Mapping[str, Any],
    outputs: Mapping[tuple[str, str], str | None] | None = None,
) -> str | None:
    """The type that a value will have, None when it cannot be known yet.

    `outputs` has the types of outputs that are known, by node and name.
    """
    if not isinstance(value, str) or "${{" not in value:
        return type_of(value)
    try:
        parts = parse(value)
    except ConvectError:
        return None
    if len(parts) > 1:
        return "string"
    part = parts[0]
    if isinstance(part, str):
        return "string"
    return type_of_expression(part, Types(parameters, outputs or {}))


def _scan(value: Json, node: str | None, path: Path) -> Iterator[tuple[Path, Reference | Problem]]:
    """What the expressions in a value refer to, and what is wrong with those that do not."""
    for where, text in texts(value, path):
        if "{" not in text:
            continue
        try:
            for part in parse(text):
                if not isinstance(part, str):
                    yield from ((where, reference) for reference in references_in(part))
        except ConvectError as error:
            yield where, Problem("error", error.code, error.sentence, node, where, error.hint)
        found = almost(text)
        if found is not None:
            sentence = f"“{found[0][:60]}” looks like an expression, but it is plain text."
            hint = f"Write {found[1][:60]}."
            yield where, Problem("warning", "almost-expression", sentence, node, where, hint)


def _check_reference(
    reference: Reference,
    parameters: Mapping[str, Any],
    nodes: Mapping[str, Mapping[str, Any]],
    known: set[str],
    node: str | None,
    path: Path,
) -> Iterator[Problem]:
    if reference.kind == "parameters" and reference.name not in parameters:
        yield Problem(
            "error",
            "unknown-parameter",
            f"{reference} refers to a parameter that the pipeline does not have.",
            node,
            path,
            did_you_mean(reference.name, parameters) or "Add it to the pipeline's parameters.",
        )
    elif reference.node is not None and reference.node not in known:
        yield Problem(
            "error",
            "unknown-node",
            f"{reference} refers to a node that does not exist.",
            node,
            path,
            did_you_mean(reference.node, known),
        )
    elif (
        reference.node is not None
        and reference.of == "outputs"
        and nodes.get(reference.node, {}).get("kind") == "group"
    ):
        yield Problem(
            "error",
            "link-to-group",
            f"{reference} refers to a group, which has no outputs.",
            node,
            path,
            "Name the member that produces the output.",
        )
