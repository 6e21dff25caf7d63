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
    "json": "json",
    "uri": "text",
    "url": "text",
    "gcspath": "text",
    "gcsuri": "text",
    "task_final_status": "object",
}


def type_name(kind: Json) -> str:
    """A type in one word: `GcsPath` for `{GcsPath: {data_type: TSV}}`, empty when there is none."""
    if isinstance(kind, Mapping):
        return next(iter(kind), "")
    return "" if kind is None else str(kind)


def value_kind(kind: Json) -> Kind | None:
    """What kind of value a type stands for; None for data that only files can hold."""
    return _KINDS.get(type_name(kind).lower())


def to_text(value: Json, style: Format) -> str:
    """A value as a component gets it: text as it is, else as Python (v1) or JSON (IR) spells it."""
    if isinstance(value, str):
        return value
    if style == "ir":
        return json.dumps(_whole(value), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    if isinstance(value, bool | int | float):
        return str(value)
    return json.dumps(value, ensure_ascii=True, sort_keys=True)


def from_text(text: str, kind: Json) -> Json:
    """What a component wrote as a value of its declared type, or the text when it is not one."""
    wanted = value_kind(kind)
    if wanted in (None, "text"):
        return text
    try:
        if wanted == "boolean":
            return {"true": True, "false": False}[text.strip().lower()]
        if wanted == "integer":
            return int(text)
        value = json.loads(text, parse_constant=_refuse)
    except (KeyError, ValueError, RecursionError):
        return text
    fits = {"number": int | float, "list": list, "object": dict, "json": object}[wanted or "json"]
    return value if isinstance(value, fits) else text


def _whole(value: Json) -> Json:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _refuse(word: str) -> Json:
    raise ValueError(word)
