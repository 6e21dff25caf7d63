"""The format's one source of truth, `schema.json`, as the rest of the package reads it."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any, cast

Schema = dict[str, Any]

VERSION = 1
SOURCE = Path(__file__).with_name("schema.json")


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


@functools.cache
def inlined() -> Schema:
    """The schema with every reference replaced by what it points to."""
    return cast(Schema, _inline(schema(), schema()["$defs"]))


def _inline(node: Any, definitions: Schema) -> Any:
    if isinstance(node, list):
        return [_inline(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        words = {key: value for key, value in node.items() if key != "$ref"}
        node = {**definitions[target(node)], **words}
    return {key: _inline(item, definitions) for key, item in node.items() if key != "$defs"}


def target(reference: Schema) -> str:
    """The name of the definition that a `$ref` points to."""
    return cast(str, reference["$ref"].rpartition("/")[2])


def _flatten(definition: Schema, definitions: Schema) -> Schema:
    parts = definition.get("allOf")
    if parts is None:
        return definition
    properties: Schema = {}
    required: list[str] = []
    for part in parts:
        part = definitions[target(part)] if "$ref" in part else part
        for name, item in part["properties"].items():
            properties[name] = {**properties.get(name, {}), **item}
        required += part.get("required", [])
    words = {key: item for key, item in definition.items() if key in ("title", "description")}
    return {
        **words,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
