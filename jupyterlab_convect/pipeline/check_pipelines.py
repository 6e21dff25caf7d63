"""Checks of nodes that are other pipelines: they are good, and take and give what is said."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..errors import ConvectError
from .check_values import fits, kinds_fit
from .document import shorten
from .expression_types import Types, type_of_expression
from .expressions import parse_one, texts
from .files import FileCache, join
from .flow import Flow, used_outputs
from .plan import Json
from .problems import Problem, did_you_mean

SUFFIX = ".pipeline"
DEEPEST = 10
"""Pipelines inside of each other."""
MOST_ERRORS = 3
"""Errors of an inner pipeline that are told."""

Inner = dict[str, Mapping[str, Any]]
"""The pipelines that nodes are, by node, as far as they can be read."""


def inner_pipelines(
    nodes: Mapping[str, Mapping[str, Any]], folder: str, files: FileCache | None
) -> Inner:
    found: Inner = {}
    for name, node in nodes.items():
        path = _path_of(node, folder)
        if path is not None and files is not None:
            with contextlib.suppress(ConvectError):
                found[name] = files.pipeline(path)
    return found


def _path_of(node: Mapping[str, Any], folder: str) -> str | None:
    is_pipeline = node.get("kind") == "pipeline" and "path" in node
    return join(folder, node["path"]) if is_pipeline else None


def check_pipelines(
    document: Mapping[str, Any],
    folder: str,
    files: FileCache,
    trail: tuple[str, ...],
    types: Types,
    errors_of: Callable[[Json, str, tuple[str, ...]], list[Problem]],
) -> Iterator[Problem]:
    """`trail` are the pipelines around this one, and itself; `errors_of` validates another."""
    nodes = document.get("nodes", {})
    flow = Flow(nodes)
    inner = inner_pipelines(nodes, folder, files)
    for name, node in nodes.items():
        path = _path_of(node, folder)
        if path is None or not path.endswith(SUFFIX):
            continue
        if path in trail or len(trail) >= DEEPEST:
            yield _inside_itself(name, path, trail)
        elif name not in inner:
            yield _unreadable(name, path, files)
        else:
            yield from _told(name, path, errors_of(inner[name], path, (*trail, path)))
            yield from _check_ids(name, path, inner[name], flow)
            declared = inner[name].get("parameters", {})
            yield from _check_parameters(name, node, path, declared, types.seen_from(flow, name))
    for name, node in nodes.items() if inner else ():
        for where, reference in used_outputs(node):
            if reference.node in inner:
                yield from _check_output(name, where, reference.node, reference.name, inner)


def output_types(inner: Inner) -> dict[tuple[str, str], str | None]:
    """What is known of the types that pipelines give: outputs that are conditions or literals."""
    found: dict[tuple[str, str], str | None] = {}
    for node, document in inner.items():
        for name, text in dict(document.get("outputs") or {}).items():
            try:
                expression = parse_one(text)
            except ConvectError:
                continue
            if expression is not None:
                types = Types(dict(document.get("parameters") or {}))
                found[node, name] = type_of_expression(expression, types)
    return found


def _check_ids(name: str, path: str, document: Mapping[str, Any], flow: Flow) -> Iterator[Problem]:
    """In a loop numbers count the items, so that no node can be called by one."""
    if any("for_each" in flow.nodes[each] for each in (name, *flow.around(name))):
        for inner in document.get("nodes", {}):
            if inner.isdecimal():
                sentence = (
                    f"“{path[:80]}” has a node “{inner}” and runs in a loop, where numbers count "
                    "the items."
                )
                yield Problem("error", "bad-id", sentence, name, ("path",), "Rename the node.")


def _inside_itself(name: str, path: str, trail: tuple[str, ...]) -> Problem:
    way = " → ".join((*trail[trail.index(path) :], path) if path in trail else (*trail, path))
    sentence = (
        f"“{path}” contains itself: {way}."
        if path in trail
        else f"The pipelines are nested more than {DEEPEST} deep: {way}."
    )
    return Problem(
        "error", "contains-itself", sentence, name, ("path",), "Choose another pipeline."
    )


def _unreadable(name: str, path: str, files: FileCache) -> Problem:
    try:
        files.pipeline(path)
    except ConvectError as error:
        if error.code == "missing-file":
            folder, _, file = path.rpartition("/")
            pipelines = [item for item in files.names(folder) if item.endswith(SUFFIX)]
            hint = did_you_mean(file, pipelines)
            sentence = f"There is no file “{path[:80]}”."
            return Problem("error", error.code, sentence, name, ("path",), hint)
        sentence = f"“{path[:80]}” cannot be used: {error.sentence}"
        return Problem("error", error.code, sentence, name, ("path",), error.hint)
    raise AssertionError(path)


def _told(name: str, path: str, problems: list[Problem]) -> Iterator[Problem]:
    errors = [problem for problem in problems if problem.severity == "error"]
    for problem in errors[:MOST_ERRORS]:
        sentence = f"In “{path[:80]}”: {problem.message}"
        if problem.node:
            sentence = f"In “{path[:80]}”, node “{problem.node}”: {problem.message}"
        yield Problem("error", "bad-pipeline", sentence, name, ("path",), problem.hint)


def _check_parameters(
    name: str,
    node: Mapping[str, Any],
    path: str,
    declared: Mapping[str, Any],
    types: Types,
) -> Iterator[Problem]:
    given = node.get("parameters", {})
    for key, value in given.items():
        where = ("parameters", key)
        if key not in declared:
            sentence = f"“{path[:80]}” has no parameter “{key[:60]}”."
            hint = did_you_mean(key, declared) or (
                f"There are {', '.join(declared)}." if declared else "It has none."
            )
            yield Problem("error", "unknown-parameter", sentence, name, where, hint)
            continue
        kind = declared[key].get("type")
        if not any("${{" in text for _, text in texts(value)):
            if not fits(value, kind):
                yield _misfit(name, key, path, kind, shorten(value))
            continue
        try:
            expression = parse_one(value)
        except ConvectError:
            continue
        if expression is None:
            sentence = (
                f"The parameter “{key}” of a pipeline must be a value or a single expression."
            )
            hint = "Give it the expression alone, without words or a list around it."
            yield Problem("error", "mixed-parameter", sentence, name, where, hint)
        elif not kinds_fit(type_of_expression(expression, types), kind):
            yield _misfit(name, key, path, kind, str(value)[:60])
    for key, parameter in declared.items():
        if parameter.get("required") and "default" not in parameter and key not in given:
            sentence = f"“{path[:80]}” needs a value for its parameter “{key}”."
            yield Problem("error", "missing-parameter", sentence, name, ("parameters",))


def _misfit(name: str, key: str, path: str, kind: str | None, value: str) -> Problem:
    sentence = f"“{path[:80]}” expects “{key}” to be of type {kind}, but {value} is not."
    return Problem("error", "wrong-parameter-type", sentence, name, ("parameters", key))


def _check_output(
    name: str, where: tuple[str | int, ...], node: str, output: str, inner: Inner
) -> Iterator[Problem]:
    known = dict(inner[node].get("outputs") or {})
    if output not in known:
        sentence = f"The pipeline “{node}” has no output “{output[:60]}”."
        hint = did_you_mean(output, known) or (
            f"There are {', '.join(known)}." if known else "Name it in the outputs of the pipeline."
        )
        yield Problem("error", "unknown-output", sentence, name, where, hint)
