"""Does a document have the shape that the schema describes? Told in words, with the nearest name.

A general JSON Schema validator could answer yes or no, but it cannot say “did you
mean”, and it is too slow for large pipelines in an editor.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from ..errors import ConvectError
from .document import describe_type, shorten
from .plan import Json
from .problems import Path, Problem, did_you_mean
from .quantities import duration, quantity
from .schema import Schema, inlined

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
}
_WORDS = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
}


def check_shape(document: Json) -> list[Problem]:
    """Everything that has the wrong type, is unknown, missing, or out of bounds."""
    return list(_check(document, inlined(), ()))


def check_run_settings(settings: Json) -> list[Problem]:
    """The same for settings alone, such as those of a run."""
    return list(_check(settings, inlined()["properties"]["defaults"], ()))


def without(document: dict[str, Any], problems: Iterable[Problem]) -> dict[str, Any]:
    """A copy of the document without the values that the problems are about."""
    bad: set[Path] = set()
    for problem in problems:
        path = absolute_path(problem)
        # A bad item takes its whole list with it, so that no index shifts.
        cut = next((i for i, step in enumerate(path) if isinstance(step, int)), len(path))
        bad.add(path[:cut])
    bad.discard(())
    return {
        key: _copy_without(item, bad, (key,)) for key, item in document.items() if (key,) not in bad
    }


def absolute_path(problem: Problem) -> Path:
    return problem.path if problem.node is None else ("nodes", problem.node, *problem.path)


def has_type(value: Json, kind: str) -> bool:
    """Whether a JSON value is of a type, as JSON Schema sees it: 2.0 is an integer, true is not."""
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(kind, object))


def _check(value: Json, shape: Schema, path: Path) -> Iterator[Problem]:
    if "oneOf" in shape:
        yield from _check_options(value, shape["oneOf"], path)
        return
    kind = shape.get("type")
    if kind is not None and not has_type(value, kind):
        yield _wrong_type(value, [kind], path)
    elif "const" in shape or "enum" in shape:
        allowed = [shape["const"]] if "const" in shape else shape["enum"]
        if value not in allowed:
            yield _not_allowed(value, allowed, path)
    elif kind == "object":
        yield from _check_object(value, shape, path)
    elif kind == "array":
        yield from _check_array(value, shape, path)
    elif kind is not None:
        yield from _check_bounds(value, shape, path)


def _check_options(value: Json, options: list[Schema], path: Path) -> Iterator[Problem]:
    fitting = [option for option in options if has_type(value, option["type"])]
    if not fitting:
        yield _wrong_type(value, [option["type"] for option in options], path)
        return
    if len(fitting) == 1:
        yield from _check(value, fitting[0], path)
        return
    by_kind = {option["properties"]["kind"]["const"]: option for option in fitting}
    kind = value.get("kind")
    if isinstance(kind, str) and kind in by_kind:
        yield from _check(value, by_kind[kind], path)
    elif "kind" in value:
        yield _not_allowed(kind, list(by_kind), (*path, "kind"))
    else:
        yield _problem(
            "missing-property",
            f"{_place(path)} needs a “kind”.",
            path,
            f"One of {', '.join(by_kind)}.",
        )


def _check_object(value: dict[str, Json], shape: Schema, path: Path) -> Iterator[Problem]:
    properties = shape.get("properties", {})
    others = shape.get("additionalProperties", True)
    for key, item in value.items():
        known = properties.get(key)
        if known is not None:
            yield from _check(item, known, (*path, key))
        elif others is False:
            hint = _where_it_belongs(key, properties)
            sentence = f"{_place(path)} has no property “{key[:60]}”."
            yield _problem("unknown-property", sentence, (*path, key), hint)
        elif isinstance(others, dict):
            yield from _check(item, others, (*path, key))
    for key in shape.get("required", ()):
        if key not in value:
            yield _problem("missing-property", f"{_place(path)} needs a “{key}”.", path)


def _check_array(value: list[Json], shape: Schema, path: Path) -> Iterator[Problem]:
    low, high = shape.get("minItems", 0), shape.get("maxItems")
    if len(value) < low or (high is not None and len(value) > high):
        count = f"at least {low}" if high is None else f"{low} to {high}"
        yield _problem("bad-value", f"{_place(path)} must have {count} items.", path)
    items = shape["items"]
    before = set()
    for index, item in enumerate(value):
        yield from _check(item, items, (*path, index))
        if shape.get("uniqueItems") and isinstance(item, str):
            if item in before:
                sentence = f"{_place(path)} names “{item[:60]}” twice."
                yield _problem("duplicate-item", sentence, (*path, index))
            before.add(item)


def _check_bounds(value: Json, shape: Schema, path: Path) -> Iterator[Problem]:
    if "minimum" in shape and value < shape["minimum"]:
        sentence = f"{_place(path)} must be at least {shape['minimum']}, but it is {value}."
        yield _problem("bad-value", sentence, path)
    if len(value) < shape["minLength"] if "minLength" in shape else False:
        yield _problem("bad-value", f"{_place(path)} is empty.", path)
    reader = {"quantity": quantity, "duration": duration}.get(shape.get("format", ""))
    if reader is not None:
        try:
            reader(value)
        except ConvectError as error:
            sentence = f"{_place(path)}: {error.sentence[:1].lower()}{error.sentence[1:]}"
            yield _problem(error.code, sentence, path, error.hint)


def _wrong_type(value: Json, kinds: list[str], path: Path) -> Problem:
    words = list(dict.fromkeys(_WORDS[kind] for kind in kinds))
    wanted = " or ".join(words)
    sentence = f"{_place(path)} must be {wanted}, but it is {describe_type(value)}."
    return _problem("wrong-type", sentence, path, _rewritten(value, kinds, path))


def _rewritten(value: Json, kinds: list[str], path: Path) -> str | None:
    """How to write what was probably meant."""
    if len(path) == 2 and path[0] == "parameters":
        return f'Write {{"default": {shorten(value)}}}.'
    if isinstance(value, str):
        if kinds == ["array"]:
            words = value.split() if path[-1] == "command" else [value]
            return f"Write a list: {shorten(words)}."
        with contextlib.suppress(ValueError, RecursionError):
            meant = json.loads(value)
            if any(has_type(meant, kind) for kind in kinds):
                return "Write it without quotes."
    elif kinds == ["string"] and isinstance(value, bool | int | float):
        return f'Write it in quotes: "{json.dumps(value)}".'
    return None


def _where_it_belongs(key: str, properties: Schema) -> str:
    for name, item in properties.items():
        if key in item.get("properties", {}):
            return f"It belongs in “{name}”."
    return did_you_mean(key, properties) or f"There are {', '.join(properties)}."


def _not_allowed(value: Json, allowed: list[Json], path: Path) -> Problem:
    hint = did_you_mean(value, allowed) if isinstance(value, str) else None
    return _problem(
        "bad-value",
        f"{_place(path)} must be {' or '.join(shorten(item) for item in allowed)}, "
        f"but it is {shorten(value)}.",
        path,
        hint,
    )


def _place(path: Path) -> str:
    """The end of a path, as the subject of a sentence."""
    if not path:
        return "The pipeline"
    if len(path) == 2 and path[0] == "nodes":
        return f"Node “{path[1]}”"
    if isinstance(path[-1], int) and len(path) > 1:
        return f"Item {path[-1] + 1} of “{path[-2]}”"
    return f"“{path[-1]}”"


def _problem(code: str, message: str, path: Path, hint: str | None = None) -> Problem:
    if len(path) >= 2 and path[0] == "nodes":
        return Problem("error", code, message, str(path[1]), path[2:], hint)
    return Problem("error", code, message, None, path, hint)


def _copy_without(value: Any, bad: set[Path], path: Path) -> Any:
    if not isinstance(value, dict):
        return value
    return {
        key: _copy_without(item, bad, inner)
        for key, item in value.items()
        if (inner := (*path, key)) not in bad
    }
