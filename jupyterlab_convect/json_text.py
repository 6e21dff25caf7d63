"""JSON that keeps every number: what is written here is read here, and by any other reader.

JSON has no NaN and no infinities. They are written as `{"$numberDouble": "NaN"}`,
`"Infinity"` or `"-Infinity"`, as in MongoDB's Extended JSON, so that they are not
mistaken for texts. Everything else is plain JSON.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

MARK = "$numberDouble"
_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def dumps(value: Any, *, ascii_only: bool = False, indent: int | None = None) -> str:
    """The value as JSON text."""
    how: dict[str, Any] = {
        "ensure_ascii": ascii_only,
        "indent": indent,
        "separators": (",", ":") if indent is None else None,
    }
    try:
        return json.dumps(value, allow_nan=False, **how)
    except ValueError:
        return json.dumps(_marked(value), allow_nan=False, **how)


def loads(text: str | bytes, *, constant: Callable[[str], Any] | None = None) -> Any:
    """The value of a JSON text.

    Python's own `NaN` and `Infinity` are understood as well, or what `constant` makes of them.
    """
    marked = MARK in text if isinstance(text, str) else MARK.encode() in text
    return json.loads(text, object_hook=_unmarked if marked else None, parse_constant=constant)


def number(value: Any) -> float:
    """A number as a float, which an integer may be too large for; a text such as `nan` is one too.

    TypeError or ValueError when it is none.
    """
    if isinstance(value, bool):
        raise TypeError("a truth value is not a number")
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def shown(value: Any) -> str:
    """A value as people read it."""
    if isinstance(value, float) and not math.isfinite(value):
        return _word(value)
    return str(value)


def _marked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _marked(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_marked(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {MARK: _word(value)}
    return value


def _word(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _unmarked(value: dict[str, Any]) -> Any:
    if len(value) == 1 and isinstance(word := value.get(MARK), str):
        return _WORDS.get(word, value)
    return value
