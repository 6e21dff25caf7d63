"""How a value becomes what a component gets, as Kubeflow has it."""

from __future__ import annotations

import json

from ..pipeline.component_types import NAMES, from_text, is_of, value_kind
from ..pipeline.plan import Json
from .model import Format


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
    if not is_of(value, wanted):
        raise ValueError(f"{NAMES[wanted]}, not {json.dumps(value)[:40]}")
    return value
