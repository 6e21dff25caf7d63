"""Checks of component nodes against the definitions that the document brings along."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .check_graph import EXPRESSIVE, readable_references
from .check_shape import did_you_mean
from .plan import Json
from .problems import Problem


def check_components(document: Mapping[str, Any]) -> Iterator[Problem]:
    """Are the definitions there, the inputs theirs, and the outputs that others want too?"""
    nodes = document["nodes"]
    definitions = document.get("components", {})
    outputs: dict[str, Mapping[str, Any]] = {}
    for name, node in nodes.items():
        if node["kind"] != "component" or "component" not in node:
            continue
        digest = node["component"]
        definition = definitions.get(digest)
        if definition is None:
            yield Problem(
                "error",
                "missing-component",
                f"The definition of the component “{digest[:80]}” is not in the pipeline.",
                name,
                ("component",),
                "Add it again from the catalog.",
            )
            continue
        yield from _check_inputs(name, node.get("inputs", {}), _ends(definition.get("inputs")))
        outputs[name] = _ends(definition.get("outputs"))
    for name, node in nodes.items() if outputs else ():
        for key in EXPRESSIVE:
            for reference in readable_references(node.get(key)):
                known = outputs.get(reference.node or "")
                if known is not None and reference.name not in known:
                    yield Problem(
                        "error",
                        "unknown-output",
                        f"Component “{reference.node}” has no output “{reference.name}”.",
                        name,
                        (key,),
                        did_you_mean(reference.name, known) or _list(known),
                    )


def _check_inputs(
    name: str, given: Mapping[str, Json], declared: Mapping[str, Mapping[str, Json]]
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
            )


def _ends(value: Json) -> dict[str, Mapping[str, Json]]:
    """Inputs or outputs by name; what is malformed is the catalog's business."""
    items = value if isinstance(value, list) else []
    return {
        item["name"]: item
        for item in items
        if isinstance(item, dict) and isinstance(item.get("name"), str)
    }


def _list(known: Mapping[str, Any]) -> str | None:
    return f"There are {', '.join(known)}." if known else None
