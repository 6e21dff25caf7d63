"""What a notebook or script may tell about its own run, from inside it.

Each call appends one JSON line to the file named by `CONVECT_VALUES`; any language
can do the same. Outside a run the calls check their arguments and do nothing else,
so the same notebook works when a person executes it by hand.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from .json_text import dumps, number

LARGEST_VALUE = 256 * 1024
"""Bytes of JSON; anything bigger is a file, to be declared as an output."""


def output(name: str, value: Any) -> None:
    """Give a value to the steps downstream: `${{ nodes.<this>.outputs.<name> }}`."""
    _report("output", name, as_json(value), None)


def metric(name: str, value: float, step: int | None = None) -> None:
    """Report a number of this run, such as a loss; `step` is its place in a series."""
    _report("metric", name, number(value), as_json(step))


def as_json(value: Any) -> Any:
    """The value as plain JSON: arrays become lists, scalars of numpy and friends numbers."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [as_json(item) for item in value]
    for method in ("tolist", "to_list", "item", "isoformat"):
        if callable(convert := getattr(value, method, None)):
            return as_json(convert())
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"a value of type {type(value).__name__} cannot be written as JSON")


def _report(kind: str, name: str, value: Any, step: int | None) -> None:
    if not isinstance(name, str) or not name:
        raise TypeError(f"the name of an {kind} is a string that is not empty, not {name!r}")
    entry = {"kind": kind, "name": name, "value": value, "step": step, "time": time.time()}
    line = (dumps(entry, ascii_only=True) + "\n").encode()
    if len(line) > LARGEST_VALUE:
        raise ValueError(
            f"the value of {name!r} takes {len(line)} bytes, more than {LARGEST_VALUE}; "
            "write it to a file and declare that as an output"
        )
    path = os.environ.get("CONVECT_VALUES")
    if path and _counts():
        # One write of a whole line, so that parallel processes never mix theirs.
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)


def _counts() -> bool:
    """Of several processes that work together, one reports for all."""
    return os.environ.get("CONVECT_OUTPUTS_FROM") in (None, os.environ.get("RANK"))
