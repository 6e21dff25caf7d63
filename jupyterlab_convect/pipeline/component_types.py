"""Kubeflow's types: which are passed as values, and how text spells one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

from .plan import Json

Kind = Literal["text", "integer", "number", "boolean", "list", "object", "json"]

_KINDS: dict[str, Kind] = {
    "string": "text",
    "str": "text",
    "text": "text",
    "uri": "text",
    "url": "text",
    "gcspath": "text",
    "gcsuri": "text",
    "integer": "integer",
    "int": "integer",
    "number_integer": "integer",
    "float": "number",
    "double": "number",
    "number": "number",
    "number_double": "number",
    "bool": "boolean",
    "boolean": "boolean",
    "list": "list",
    "jsonarray": "list",
    "dict": "object",
    "dictionary": "object",
    "jsonobject": "object",
    "struct": "object",
    "task_final_status": "object",
    "json": "json",
}

_JSON_TYPES: dict[Kind, str | None] = {"text": "string", "list": "array", "json": None}
NAMES: dict[Kind, str] = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "list": "a list",
    "object": "a mapping",
}
"""Kinds in words, as a sentence needs them; anything is a text, and text is any JSON."""


def type_name(kind: Json) -> str:
    """A type in one word: `GcsPath` for `{GcsPath: {data_type: TSV}}`, empty when there is none."""
    if isinstance(kind, Mapping):
        return next(iter(kind), "")
    if isinstance(kind, list):
        return " or ".join(type_name(item) for item in kind)
    return "" if kind is None else str(kind)


def value_kind(kind: Json) -> Kind | None:
    """What kind of value a type stands for; None for data that only files can hold."""
    return _KINDS.get(type_name(kind).lower())


def json_type(kind: Json) -> str | None:
    """The same in the words of a parameter's `type`; None when any value will do."""
    found = value_kind(kind)
    return _JSON_TYPES.get(found, found) if found is not None else None


def from_text(text: str, kind: Json) -> Json:
    """What a component wrote as a value of its declared type, or the text when it is not one."""
    wanted = value_kind(kind)
    if wanted in (None, "text"):
        return text
    try:
        if wanted == "boolean":
            return {"true": True, "false": False}[text.strip().lower()]
        value = int(text) if wanted == "integer" else json.loads(text, parse_constant=_refuse)
    except (KeyError, ValueError, RecursionError):
        return text
    return value if is_of(value, wanted) else text


def is_of(value: Json, wanted: Kind | None) -> bool:
    if wanted == "boolean":
        return isinstance(value, bool)
    if wanted == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if wanted == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    if wanted == "list":
        return isinstance(value, list)
    return isinstance(value, dict) if wanted == "object" else True


def _refuse(word: str) -> Json:
    raise ValueError(word)
