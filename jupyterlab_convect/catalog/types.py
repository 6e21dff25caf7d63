"""Kubeflow's types: which are passed as values, and how a value becomes text and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

from ..pipeline.plan import Json
from .model import Format

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

_NAMES: dict[Kind, str] = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "list": "a list",
    "object": "a mapping",
}


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


def to_text(value: Json, style: Format) -> str:
    """A value as a component gets it: text as it is, else as Python (v1) or JSON (IR) spells it."""
    if isinstance(value, str):
        return value
    if style == "ir":
        if isinstance(value, float) and value.is_integer():
            return str(int(value))
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    if isinstance(value, bool | int | float):
        return str(value)
    return json.dumps(value, sort_keys=True)


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
    return value if _is(value, wanted) else text


def fitting(value: Json, kind: Json, style: Format) -> Json:
    """The value as its type has it; a ValueError says what the type takes instead.

    Text is taken for a value that has been spelled out already: v1 components get it
    as it is, whatever their type, and compiled ones get what it spells.
    """
    wanted = value_kind(kind)
    if wanted in (None, "json"):
        return value
    if isinstance(value, str):
        return from_text(value, kind) if style == "ir" else value
    if wanted == "text":
        return to_text(value, "v1")
    if wanted == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if not _is(value, wanted):
        raise ValueError(f"{_NAMES[wanted]}, not {json.dumps(value)[:40]}")
    return value


def _is(value: Json, wanted: Kind | None) -> bool:
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
