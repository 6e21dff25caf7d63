"""Checks of component nodes against the definitions that the document brings along."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .check_values import expression_type, kinds_fit
from .component_types import NAMES, from_text, is_of, json_type, value_kind
from .document import shorten
from .flow import used_outputs
from .plan import Json
from .problems import Problem, did_you_mean

End = Mapping[str, Json]
"""An input or output of a component."""


def check_components(document: Mapping[str, Any]) -> Iterator[Problem]:
    """Are the definitions there, the inputs theirs, and the outputs that others want too?"""
    nodes = document["nodes"]
    definitions = document.get("components", {})
    parameters = document.get("parameters", {})
    for name, node in nodes.items():
        if node["kind"] != "component" or "component" not in node:
            continue
        definition = definitions.get(node["component"])
        if definition is None:
            yield _missing(name, node)
            continue
        declared = _ends(definition.get("inputs"))
        yield from _check_inputs(name, node.get("inputs", {}), declared)
        yield from _check_types(name, node.get("inputs", {}), declared, parameters)
    outputs = component_outputs(document)
    for name, node in nodes.items() if outputs else ():
        for path, reference in used_outputs(node):
            known = outputs.get(reference.node or "")
            if known is not None and reference.name not in known:
                yield Problem(
                    "error",
                    "unknown-output",
                    f"Component “{reference.node}” has no output “{reference.name}”.",
                    name,
                    path,
                    did_you_mean(reference.name, known) or _list(known),
                )


def component_outputs(document: Mapping[str, Any]) -> dict[str, dict[str, End]]:
    """The outputs of each node whose component is in the document."""
    definitions = document.get("components", {})
    return {
        name: _ends(definitions[node["component"]].get("outputs"))
        for name, node in document["nodes"].items()
        if node["kind"] == "component" and node.get("component") in definitions
    }


def output_type(end: End) -> str | None:
    """The type that a node that is no component sees: of a file it sees the path."""
    kind = end.get("type")
    return "string" if value_kind(kind) is None else json_type(kind)


def _missing(name: str, node: Mapping[str, Any]) -> Problem:
    source = node.get("source")
    if not source:
        hint = "Add it again from the catalog."
    elif source.endswith(".py"):
        hint = (
            "It is an operator of Airflow, which cannot be imported. "
            "Use a script, a command or a component instead."
        )
    else:
        hint = f"Import it from {source[:200]} and add it to the pipeline again."
    return Problem(
        "error",
        "missing-component",
        f"The definition of the component “{node['component'][:80]}” is not in the pipeline.",
        name,
        ("component",),
        hint,
    )


def _check_inputs(
    name: str, given: Mapping[str, Json], declared: Mapping[str, End]
) -> Iterator[Problem]:
    for key in given:
        if key not in declared:
            yield Problem(
                "warning",
                "unknown-input",
                f"The component of “{name}” has no input “{key[:60]}”; its value is not used.",
                name,
                ("inputs", key),
                did_you_mean(key, declared) or _list(declared),
            )
    for key, end in declared.items():
        required = not end.get("optional") and end.get("default") is None
        if required and given.get(key) is None:
            yield Problem(
                "error",
                "missing-input",
                f"The component of “{name}” needs a value for its input “{key}”.",
                name,
                ("inputs",),
                "Give it a value, an expression, or a file.",
            )


def _check_types(
    name: str,
    given: Mapping[str, Json],
    declared: Mapping[str, End],
    parameters: Mapping[str, Any],
) -> Iterator[Problem]:
    for key, value in given.items():
        kind = declared.get(key, {}).get("type")
        wanted = value_kind(kind)
        fault = _type_fault(value, kind, parameters)
        if wanted in NAMES and fault is not None:
            yield Problem(
                # Text reaches the command as it is, and may mean something to it.
                "warning" if isinstance(value, str) else "error",
                "wrong-type-for-component",
                f"The input “{key}” of “{name}” takes {NAMES[wanted]}, but {fault}.",
                name,
                ("inputs", key),
            )


def _type_fault(value: Json, kind: Json, parameters: Mapping[str, Any]) -> str | None:
    """Why a value cannot be of a component's type, as the end of a sentence."""
    wanted = value_kind(kind)
    if isinstance(value, str) and "${{" in value:
        given = expression_type(value, parameters)
        fits = given == "string" or kinds_fit(given, json_type(kind))
        return None if fits else f"{value[:60]} is of type {given}"
    if isinstance(value, str):
        fits = not isinstance(from_text(value, kind), str)
    else:
        whole = isinstance(value, float) and value.is_integer()
        fits = value is None or is_of(value, wanted) or (wanted == "integer" and whole)
    is_file = isinstance(value, Mapping) and value.keys() == {"file"}
    return None if fits or is_file else f"{shorten(value)} is not"


def _ends(value: Json) -> dict[str, End]:
    """Inputs or outputs by name; what is malformed is the catalog's business."""
    items = value if isinstance(value, list) else []
    return {
        item["name"]: item
        for item in items
        if isinstance(item, dict) and isinstance(item.get("name"), str)
    }


def _list(known: Mapping[str, Any]) -> str | None:
    return f"There are {', '.join(known)}." if known else None
