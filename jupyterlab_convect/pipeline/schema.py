"""The format's one source of truth, `schema.json`, as the rest of the package reads it."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

Schema = dict[str, Any]

VERSION = 1
SOURCE = Path(__file__).with_name("schema.json")
KINDS = ("notebook", "script", "command", "component", "group")


@functools.cache
def schema() -> Schema:
    """The schema with every mixin merged in: objects have plain `properties`, in writing order."""
    source = json.loads(SOURCE.read_bytes())
    definitions = source["$defs"]
    flat = {
        name: _flatten(definition, definitions)
        for name, definition in definitions.items()
        if not definition.get("x-mixin")
    }
    return {**source, "$defs": flat}


def definition(name: str) -> Schema:
    found: Schema = schema()["$defs"][name]
    return found


def follow(node: Schema) -> Schema:
    """What a `$ref` points to, with the words that stand beside it."""
    reference = node.get("$ref")
    if reference is None:
        return node
    return {**definition(reference.rpartition("/")[2]), **node}


def _flatten(definition: Schema, definitions: Schema) -> Schema:
    parts = definition.get("allOf")
    if parts is None:
        return definition
    properties: Schema = {}
    required: list[str] = []
    for part in parts:
        part = definitions[part["$ref"].rpartition("/")[2]] if "$ref" in part else part
        for name, item in part["properties"].items():
            properties[name] = {**properties.get(name, {}), **item}
        required += part.get("required", [])
    words = {key: definition[key] for key in ("title", "description") if key in definition}
    return {
        **words,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
