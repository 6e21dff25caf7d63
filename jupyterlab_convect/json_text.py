"""JSON that keeps every number: what is written here is read here, and by any other reader.

JSON has no NaN and no infinities. They are written as `{"$numberDouble": "NaN"}`,
`"Infinity"` or `"-Infinity"`, as in MongoDB's Extended JSON, so that they are not
mistaken for texts. Everything else is plain JSON.

Many readers of JSON, browsers among them, have floats only. For them an integer that no float
holds exactly is written as `{"$numberInteger": "123…"}`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

MARK, INTEGER = "$numberDouble", "$numberInteger"
LONGEST_SHORT = 21
"""Digits of an integer that a narrow column shows."""
LARGEST_EXACT = 2**53 - 1
"""Up to here, floats hold every integer."""
_LONG = re.compile(r"[\[:,]-?\d{16,}[,\]}]|^-?\d{16,}$")
"""Where JSON without spaces may have a larger one."""
_DIGITS = re.compile(r"-?\d{1,4300}")
_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def dumps_for_floats(value: Any, *, ascii_only: bool = False) -> str:
    """The value as JSON text for readers that have no integers."""
    text = dumps(value, ascii_only=ascii_only)
    if _LONG.search(text) is None:
        return text
    return dumps(_with_digits(value), ascii_only=ascii_only)


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
    marked = "$number" in text if isinstance(text, str) else b"$number" in text
    return json.loads(text, object_hook=_unmarked if marked else None, parse_constant=constant)


def number(value: Any) -> float:
    """A number as a float, or as the integer that it is where no float can hold it; a text such
    as `nan` is one too.

    TypeError or ValueError when it is none.
    """
    if isinstance(value, bool):
        raise TypeError("a truth value is not a number")
    try:
        return float(value)
    except OverflowError:
        return int(value)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_finite(value: float) -> bool:
    """Whether a number is neither NaN nor infinite: no integer is."""
    return isinstance(value, int) or math.isfinite(value)


def shown(value: Any) -> str:
    """A value as people read it."""
    if isinstance(value, float) and not math.isfinite(value):
        return _word(value)
    return str(value)


def short(value: Any) -> str:
    """A value for a narrow column."""
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.6g}"
    text = shown(value)
    if isinstance(value, bool) or not isinstance(value, int) or len(text) <= LONGEST_SHORT:
        return text
    digits = str(abs(value))
    rest = digits[1:6].rstrip("0")
    sign, point = "-" if value < 0 else "", f".{rest}" if rest else ""
    return f"{sign}{digits[0]}{point}e+{len(digits) - 1}"


def _with_digits(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_digits(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_digits(item) for item in value]
    if isinstance(value, int) and abs(value) > LARGEST_EXACT:
        return {INTEGER: str(value)}
    return value


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
    if len(value) != 1:
        return value
    if isinstance(word := value.get(MARK), str):
        return _WORDS.get(word, value)
    if isinstance(word := value.get(INTEGER), str) and _DIGITS.fullmatch(word):
        return int(word)
    return value
