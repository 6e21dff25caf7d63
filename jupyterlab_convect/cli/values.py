"""Values typed on the command line, read as what the notebook or pipeline expects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import ConvectError
from ..pipeline.discovery import discover
from ..workspace import read_pipeline
from .arguments import read_value

Types = Mapping[str, str | None]

_WORDS = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a JSON list",
    "object": "a JSON object",
}


_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_RANGE = re.compile(
    rf"({_NUMBER})\s*(?:\.\.|:)\s*({_NUMBER})(?:(?:\s+step\s+|\s*:\s*|\s+(?=log))({_NUMBER}|log))?"
)
"""`1:9:2` or, as the run dialog writes it, `1..9 step 2`; with `log` an interval of magnitudes."""


def known_types(root: Path, path: str) -> Types:
    """The types of the parameters that a file declares, as far as they are known."""
    if path.endswith(".pipeline"):
        return declared_types(read_pipeline(root / path))
    return {found.name: found.type for found in discover(root / path).parameters or ()}


def declared_types(document: Mapping[str, Any]) -> Types:
    """The same for a document that nobody has checked yet."""
    declared = document.get("parameters")
    kinds = {
        name: item.get("type")
        for name, item in (declared.items() if isinstance(declared, dict) else ())
        if isinstance(item, dict)
    }
    return {name: kind if isinstance(kind, str) else None for name, kind in kinds.items()}


def typed_parameters(pairs: Iterable[str], types: Types) -> dict[str, Any]:
    """`-p lr=0.1`: of the declared type; without one JSON, or else a text."""
    return {name: typed(name, text, types.get(name)) for name, text in map(split, pairs)}


def space_of(pairs: Iterable[str], types: Types) -> dict[str, Any]:
    """`--sweep lr=0.1,0.2`, `lr=[0.1,0.2]`, `n=1:9:2` or `n=1..9 step 2`, `lr=0.1:1` (min, max)."""
    return {name: _values(name, text, types.get(name)) for name, text in map(split, pairs)}


def typed(name: str, text: str, kind: str | None) -> Any:
    if kind == "string":
        return text
    if kind == "boolean" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind == "number" and text.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        return float(text)
    if kind == "number" and re.fullmatch(_NUMBER, text):
        return float(text)
    value = read_value(text)
    if kind is None or value is None or _fits(value, kind):
        return float(value) if kind == "number" and isinstance(value, int) else value
    raise ConvectError(f"“{name}” is {_WORDS.get(kind, kind)}, not “{text}”.", code="wrong-type")


def _values(name: str, text: str, kind: str | None) -> Any:
    if text.startswith("["):
        try:
            return json.loads(text)
        except ValueError:
            raise ConvectError(f"“{text}” is not a JSON list.", code="bad-parameter") from None
    if kind != "string" and (found := _RANGE.fullmatch(text.strip())):
        return _range(name, kind, *found.groups())
    return [typed(name, part, kind) for part in text.split(",")]


def _range(name: str, kind: str | None, low: str, high: str, step: str | None) -> Any:
    """A grid where there is a step, or the values are whole numbers; else an interval."""
    first, last = typed(name, low, kind), typed(name, high, kind)
    if step is not None and step != "log":
        return {"from": first, "to": last, "step": typed(name, step, kind)}
    log = {"log": True} if step else {}
    return {"min": first, "max": last, **log, **({"type": "integer"} if kind == "integer" else {})}


def split(pair: str) -> tuple[str, str]:
    name, equals, text = pair.partition("=")
    if not (name and equals):
        raise ConvectError(f"“{pair}” is not NAME=VALUE.", code="bad-parameter")
    return name, text


def _is_number(text: str) -> bool:
    value = read_value(text)
    return isinstance(value, int | float) and not isinstance(value, bool)


def _fits(value: Any, kind: str) -> bool:
    match value:
        case bool():
            return kind == "boolean"
        case int():
            return kind in ("integer", "number")
        case float():
            return kind == "number"
        case list():
            return kind == "array"
        case dict():
            return kind == "object"
    return kind not in _WORDS
