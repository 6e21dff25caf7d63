"""Checks of a pipeline against the files around it."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..errors import ConvectError
from .check_components import component_outputs, output_type
from .check_values import expression_type, kinds_fit
from .discovery import Discovery, kind_of
from .document import shorten
from .files import FileCache, join, path_fault
from .flow import used_outputs
from .problems import Problem, did_you_mean

AROUND = frozenset(
    (
        "missing-file",
        "unreadable-file",
        "bad-notebook",
        "too-large",
        "too-many-files",
        "missing-parameter-of-notebook",
        "missing-component",
        "outside-root",
    )
)
"""Codes of errors that blame what lies around the document, not the document."""


def check_paths(nodes: Mapping[str, Mapping[str, Any]], folder: str) -> Iterator[Problem]:
    """Paths as such, without looking at the disk."""
    for name, node in nodes.items():
        path = node.get("path")
        if path is not None:
            if fault := path_fault(path):
                yield _bad(path, fault, name, "path")
            elif join(folder, path) is None:
                yield _outside(path, name, "path")
            yield from _check_suffix(path, name, node["kind"])
        home = home_of(node, folder)
        for index, pattern in enumerate(node.get("dependencies", ())):
            if fault := path_fault(pattern):
                yield _bad(pattern, fault, name, "dependencies", index)
            elif join(home, pattern) is None:
                yield _outside(pattern, name, "dependencies", index)
        for key, file in input_files(node):
            if fault := path_fault(file):
                yield _bad(file, fault, name, "inputs", key)
            elif join(folder, file) is None:
                yield _outside(file, name, "inputs", key)


def check_files(document: Mapping[str, Any], folder: str, files: FileCache) -> Iterator[Problem]:
    """Are the files there, and do they take and give what the document says?"""
    nodes = document.get("nodes", {})
    is_made = _promise(nodes)
    types = {
        (node, name): output_type(end)
        for node, ends in component_outputs(document).items()
        for name, end in ends.items()
    }
    known: dict[str, Discovery] = {}
    for name, node in nodes.items():
        path = join(folder, node["path"]) if "path" in node else None
        if path is not None and node["kind"] != "pipeline":
            try:
                known[name] = files.discovery(path)
            except ConvectError as error:
                if error.code == "missing-file":
                    yield _missing(path, files, name, "path")
                elif error.code != "unknown-file-type":
                    yield Problem("error", error.code, error.sentence, name, ("path",), error.hint)
            else:
                if known[name].kind == "notebook":
                    yield from _check_parameters(name, node, known[name], document, types)
        home = home_of(node, folder)
        for index, pattern in enumerate(node.get("dependencies", ())):
            if not is_made(pattern):
                yield from _check_dependency(name, index, pattern, home, files)
        for key, file in input_files(node):
            target = join(folder, file)
            if target is not None and files.kind(target) is None and not is_made(file):
                yield _missing(target, files, name, "inputs", key)
    for name, node in nodes.items():
        yield from _check_outputs(name, node, known)


def home_of(node: Mapping[str, Any], folder: str) -> str:
    """The folder that a node's dependencies start from."""
    path = join(folder, node["path"]) if "path" in node else None
    return folder if path is None else posixpath.dirname(path)


def input_files(node: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Inputs of a component that are the content of a file."""
    for key, value in node.get("inputs", {}).items():
        if isinstance(value, dict) and value.keys() == {"file"} and isinstance(value["file"], str):
            yield key, value["file"]


def _check_suffix(path: str, name: str, kind: str) -> Iterator[Problem]:
    if kind == "pipeline":
        if not path.endswith(".pipeline"):
            sentence, hint = (
                f"“{path[:80]}” is not a pipeline.",
                "Its name must end in “.pipeline”.",
            )
            yield Problem("error", "unknown-file-type", sentence, name, ("path",), hint)
        return
    try:
        found = kind_of(posixpath.basename(path))
    except ConvectError as error:
        yield Problem("error", error.code, error.sentence, name, ("path",), error.hint)
        return
    if found != kind:
        yield Problem(
            "error",
            "unknown-file-type",
            f"“{path}” is a {found}, not a {kind}.",
            name,
            ("path",),
            f"Change the kind to “{found}”.",
        )


def _check_parameters(
    name: str,
    node: Mapping[str, Any],
    found: Discovery,
    document: Mapping[str, Any],
    types: Mapping[tuple[str, str], str | None],
) -> Iterator[Problem]:
    if found.parameters is None:
        return
    declared = {parameter.name: parameter for parameter in found.parameters}
    inherited = document.get("defaults", {}).get("parameters", {})
    given = {**inherited, **node.get("parameters", {})}
    for key, value in given.items():
        parameter = declared.get(key)
        if parameter is None:
            if key not in inherited:
                yield Problem(
                    "warning",
                    "unknown-parameter-of-notebook",
                    f"“{node['path']}” has no parameter “{key[:60]}”.",
                    name,
                    ("parameters", key),
                    did_you_mean(key, declared)
                    or "Assign it in the cell tagged “parameters”; it is set anyway.",
                )
            continue
        kind = expression_type(value, document.get("parameters", {}), types)
        if not kinds_fit(kind, parameter.type):
            yield Problem(
                "warning",
                "wrong-type-for-notebook",
                f"“{node['path']}” expects “{key}” to be of type {parameter.type}, "
                f"but {shorten(value)} is of type {kind}.",
                name,
                ("parameters", key),
                "Change the value, or the default in the notebook.",
            )
    for key, parameter in declared.items():
        if parameter.source is None and key not in given:
            yield Problem(
                "error",
                "missing-parameter-of-notebook",
                f"“{node['path']}” needs a value for its parameter “{key}”.",
                name,
                ("parameters",),
                "Set it, or give it a default in the notebook.",
            )


def _check_dependency(
    name: str, index: int, pattern: str, home: str, files: FileCache
) -> Iterator[Problem]:
    target = join(home, pattern)
    if target is None:
        return
    try:
        if files.expand(target):
            return
    except ConvectError as error:
        yield Problem(
            "error", error.code, error.sentence, name, ("dependencies", index), error.hint
        )
        return
    if any(letter in pattern for letter in "*?["):
        yield Problem(
            "warning",
            "no-match",
            f"No file matches “{pattern}”.",
            name,
            ("dependencies", index),
            f"It is searched for in “{home or '.'}”, the folder of the node's file.",
        )
    elif files.kind(target) is None:
        yield _missing(target, files, name, "dependencies", index)


def _promise(nodes: Mapping[str, Mapping[str, Any]]) -> Callable[[str], bool]:
    """Whether a node of the pipeline promises a file, so that it need not be there yet."""
    made = {glob for node in nodes.values() for glob in node.get("outputs", ())}
    matches = re.compile("|".join(map(fnmatch.translate, sorted(made))) or r"(?!)").match
    return lambda pattern: pattern in made or matches(pattern) is not None


def _check_outputs(
    name: str, node: Mapping[str, Any], known: Mapping[str, Discovery]
) -> Iterator[Problem]:
    for path, reference in used_outputs(node):
        found = known.get(reference.node or "")
        if found is None or found.outputs is None or reference.name in found.outputs:
            continue
        yield Problem(
            "warning",
            "unknown-output",
            f"Node “{reference.node}” does not seem to produce an output “{reference.name}”.",
            name,
            path,
            did_you_mean(reference.name, found.outputs)
            or "Assign it in a cell tagged “outputs”, or call jupyterlab_convect.output().",
        )


def _outside(path: str, node: str, *where: str | int) -> Problem:
    return Problem(
        "error",
        "outside-root",
        f"“{path[:80]}” is outside the root folder.",
        node,
        where,
        "Use a path inside it, without a leading “/”, or choose a larger root folder.",
    )


def _bad(path: str, fault: str, node: str, *where: str | int) -> Problem:
    return Problem("error", "bad-path", f"{shorten(path)} {fault}.", node, where)


def _missing(path: str, files: FileCache, node: str, *where: str | int) -> Problem:
    folder, name = posixpath.split(path)
    suffix = posixpath.splitext(name)[1]
    alike = [item for item in files.names(folder) if item.endswith(suffix)]
    hint = did_you_mean(name, alike, suffix=suffix)
    return Problem("error", "missing-file", f"There is no file “{path[:80]}”.", node, where, hint)
