"""Expressions: references to values that are known later. Nothing is ever evaluated.

`${{ parameters.x }}`, `${{ nodes.n.outputs.k }}`, `${{ run.id }}`, `${{ run.name }}`.
A text that is one expression becomes the value itself, with its type; among other
words the value is written out, as JSON unless it is a text.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import ConvectError, Refused
from .plan import Json
from .problems import Path

RUN_FIELDS = ("id", "name")

_EXPRESSION = re.compile(r"\$\{\{([^{}]*)\}\}")
_ALMOST = re.compile(
    r"(?<!\$)\{\{\s*((?:parameters|nodes|run)\.[^{}]*)\}\}"
    r"|\$\{\s*((?:parameters|nodes|run)\.[^{}]*)\}"
)


@dataclass(frozen=True, slots=True)
class Reference:
    """What one expression points to: a parameter, an output of `node`, or a fact of the run."""

    kind: Literal["parameters", "nodes", "run"]
    name: str
    node: str | None = None

    def __str__(self) -> str:
        place = f"nodes.{self.node}.outputs" if self.node is not None else self.kind
        return f"${{{{ {place}.{self.name} }}}}"


def bind(value: Json, outputs: Mapping[str, Mapping[str, Json]], run: Mapping[str, str]) -> Json:
    """`value` with outputs of nodes (by node id and name) and facts of the run in place."""

    def look_up(reference: Reference) -> Json:
        if reference.kind == "run":
            return run[reference.name]
        given = outputs.get(reference.node or "", {})
        if reference.name not in given:
            raise Refused(
                f"Node “{reference.node}” gave no output “{reference.name}”.",
                code="missing-output",
                hint="Assign it in the cell tagged “outputs”, or call jupyterlab_convect.output().",
            )
        return given[reference.name]

    return substitute(value, look_up)


def bind_parameters(value: Json, parameters: Mapping[str, Json]) -> Json:
    """`value` with the pipeline's parameters in place; every other expression stays."""

    def look_up(reference: Reference) -> Json:
        if reference.kind != "parameters":
            return str(reference)
        if reference.name not in parameters:
            raise Refused(
                f"The pipeline has no value for its parameter “{reference.name}”.",
                code="missing-parameter",
            )
        return parameters[reference.name]

    return substitute(value, look_up)


def substitute(value: Json, look_up: Callable[[Reference], Json]) -> Json:
    """`value` with every expression in it, however deep, replaced by what `look_up` gives."""
    if isinstance(value, str):
        parts = parse(value)
        if len(parts) == 1 and isinstance(parts[0], Reference):
            return look_up(parts[0])
        return "".join(
            as_text(look_up(part)) if isinstance(part, Reference) else part for part in parts
        )
    if isinstance(value, Mapping):
        return {key: substitute(item, look_up) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [substitute(item, look_up) for item in value]
    return value


def as_text(value: Json) -> str:
    """A value as environment variables and arguments carry it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def references(value: Json) -> Iterator[Reference]:
    """Every reference in a value, however deep."""
    for _, text in texts(value):
        yield from (part for part in parse(text) if isinstance(part, Reference))


def texts(value: Json, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every text in a value, however deep, and where it is."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from texts(item, (*path, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from texts(item, (*path, index))


@functools.lru_cache(4096)
def parse(text: str) -> tuple[str | Reference, ...]:
    """The plain and the referring parts of a text; a ConvectError when one cannot be read."""
    if "${{" not in text:
        return (text,)
    parts: list[str | Reference] = []
    end = 0
    for match in _EXPRESSION.finditer(text):
        parts += [text[end : match.start()], _reference(match[1])]
        end = match.end()
    parts.append(text[end:])
    if any(isinstance(part, str) and "${{" in part for part in parts):
        raise _unreadable(f"The expression in “{text[:60]}” has no end.", "It ends with “}}”.")
    return tuple(part for part in parts if part != "")


def _reference(source: str) -> Reference:
    words = source.strip().split(".")
    match words:
        case ["parameters", *name] if _is_name(name):
            return Reference("parameters", ".".join(name))
        case ["nodes", *rest] if "outputs" in rest[1:]:
            # The parts of an unfolded graph have ids with dots.
            split = rest.index("outputs", 1)
            node, name = ".".join(rest[:split]), rest[split + 1 :]
            if node.strip() and _is_name(name):
                return Reference("nodes", ".".join(name), node)
        case ["run", field] if field in RUN_FIELDS:
            return Reference("run", field)
    raise _unreadable(
        f"“${{{{ {source.strip()[:60]} }}}}” is not an expression.", _expression_hint(words)
    )


def _expression_hint(words: list[str]) -> str:
    match words:
        case ["nodes" | "node", node, *name] if name and "outputs" not in name:
            return f"Did you mean nodes.{node}.outputs.{'.'.join(name)}?"
        case ["parameter" | "params" | "param", *name] if _is_name(name):
            return f"Did you mean parameters.{'.'.join(name)}?"
    return "There are parameters.NAME, nodes.ID.outputs.NAME, run.id and run.name."


def almost(text: str) -> tuple[str, str] | None:
    """What looks like an expression in a text and is none, and how it is written rightly."""
    found = _ALMOST.search(text)
    return None if found is None else (found[0], f"${{{{ {(found[1] or found[2]).strip()} }}}}")


def _is_name(words: list[str]) -> bool:
    return bool(words) and all(word and not any(c in "${}" for c in word) for word in words)


def _unreadable(sentence: str, hint: str) -> ConvectError:
    return ConvectError(sentence, code="bad-expression", hint=hint)


def type_of(value: Any) -> str:
    """The JSON type of a value, in the words of a parameter's `type`."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case _:
            return "object"
