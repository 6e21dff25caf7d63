"""The one check of a pipeline, for the editor, the command line and the server."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import ConvectError
from .check_components import check_components, component_outputs, output_type
from .check_files import check_files, check_paths
from .check_flow import check_flow
from .check_graph import check_graph
from .check_pipelines import check_pipelines, inner_pipelines, output_types
from .check_settings import check_distributed, check_resources, check_settings
from .check_shape import check_run_settings, check_shape, without
from .check_values import check_declarations, check_expressions, check_given
from .claims import check_claims
from .document import check_version, describe_type
from .expression_types import Types
from .files import FileCache
from .merge import merge, settings_of
from .plan import Json
from .problems import Problem

DISTRIBUTABLE = ("script", "command", "notebook")
_RANK = {"error": 0, "warning": 1, "info": 2}


def validate(
    document: Any,
    *,
    root: Path | None = None,
    path: str | None = None,
    parameters: Mapping[str, Json] | None = None,
    files: FileCache | None = None,
    inside: tuple[str, ...] = (),
) -> list[Problem]:
    """Everything that is wrong with a pipeline, errors first. Never raises for bad input.

    `path` is where the pipeline lies, relative to `root`. Without a root no file is
    looked at; without `parameters` the values of a run are not. `inside` are the pipelines
    that have this one as a node.
    """
    if not isinstance(document, dict):
        sentence = f"A pipeline is an object, but this is {describe_type(document)}."
        return [Problem("error", "wrong-type", sentence)]
    try:
        check_version(document)
    except ConvectError as error:
        return [Problem("error", error.code, error.sentence, None, ("convect",), error.hint)]
    if files is None and root is not None:
        files = FileCache(root)
    misshapen = check_shape(document)
    nodes = document.get("nodes")
    known = set(nodes) if isinstance(nodes, dict) else set()
    clean = without(document, misshapen) if misshapen else document
    folder = posixpath.dirname(path or "")
    trail = inside or ((path,) if path is not None else ())
    problems = [*misshapen, *_meaning(clean, known, folder, parameters, files, trail)]
    return sorted(problems, key=lambda problem: _RANK[problem.severity])


def validate_settings(
    settings: Mapping[str, Json], document: Mapping[str, Any], *, path: str | None = None
) -> list[Problem]:
    """The same for the settings of a run of a good document, seen as its defaults."""
    misshapen = check_run_settings(settings)
    if misshapen:
        return misshapen
    view = {"parameters": document.get("parameters", {}), "defaults": settings}
    kinds = [node["kind"] for node in document["nodes"].values()]
    # Notebooks are prepared and looked at in many pipelines: none of them is meant by the way.
    meant = kinds == ["notebook"] or {"script", "command"} & set(kinds)
    is_in_vain = "distributed" in settings and not meant
    return [
        *([_cannot_distribute(None, ("distributed",))] if is_in_vain else ()),
        *check_distributed(merge(document.get("defaults", {}), settings), settings, None, ()),
        *check_settings(settings, None, (), posixpath.dirname(path or "")),
        *check_resources(document.get("defaults", {}), settings, None, ()),
        *check_expressions(view, set(document["nodes"])),
    ]


def _meaning(
    document: dict[str, Any],
    known: set[str],
    folder: str,
    given: Mapping[str, Json] | None,
    files: FileCache | None,
    trail: tuple[str, ...],
) -> Iterator[Problem]:
    """What is wrong in a document whose every value has the right shape, though some may lack."""
    nodes = {name: node for name, node in document.get("nodes", {}).items() if "kind" in node}
    document = {**document, "nodes": nodes}
    defaults = document.get("defaults", {})
    if not known:
        hint = "Drag a notebook onto the canvas."
        yield Problem("warning", "no-nodes", "The pipeline has no nodes.", None, ("nodes",), hint)
    yield from check_graph(document, known)
    yield from check_declarations(document.get("parameters", {}))
    if given is not None:
        yield from check_given(document.get("parameters", {}), given)
    yield from check_expressions(document, known)
    yield from check_settings(defaults, None, ("defaults",), folder)
    yield from check_resources({}, defaults, None, ("defaults",))
    for name, node in nodes.items():
        yield from check_settings(node, name, (), folder)
        yield from check_resources(defaults, node, name, ())
        if node["kind"] in DISTRIBUTABLE:
            yield from check_distributed(settings_of(node, defaults), node, name, ())
        yield from _check_use(name, node)
    yield from check_claims(document)
    types = Types(document.get("parameters", {}), _output_types(document, folder, files))
    yield from check_flow(document, types)
    yield from check_components(document)
    yield from check_paths(nodes, folder)
    if files is not None:
        yield from check_files(document, folder, files)

        def errors_of(inner: Json, path: str, trail: tuple[str, ...]) -> list[Problem]:
            return validate(inner, path=path, files=files, inside=trail)

        yield from check_pipelines(document, folder, files, trail, types, errors_of)


def _output_types(
    document: Mapping[str, Any], folder: str, files: FileCache | None
) -> dict[tuple[str, str], str | None]:
    """The types of outputs that are known without running anything, by node and name."""
    of_components: dict[tuple[str, str], str | None] = {
        (node, name): output_type(end)
        for node, ends in component_outputs(document).items()
        for name, end in ends.items()
    }
    return of_components | output_types(inner_pipelines(document["nodes"], folder, files))


def _check_use(name: str, node: Mapping[str, Any]) -> Iterator[Problem]:
    """Settings that mean nothing for this kind of node."""
    kind = node["kind"]
    if kind == "component" and "parameters" in node:
        yield Problem(
            "error",
            "unused-setting",
            "A component has “inputs”, not “parameters”.",
            name,
            ("parameters",),
            "Move the values to “inputs”.",
        )
    if kind != "notebook" and "kernel" in node:
        sentence = f"A kernel has no effect on a {kind}."
        yield Problem("warning", "unused-setting", sentence, name, ("kernel",), "Remove it.")
    if kind not in DISTRIBUTABLE and "distributed" in node:
        yield _cannot_distribute(name, ("distributed",))
    if kind not in DISTRIBUTABLE and "dask" in node:
        yield Problem(
            "error",
            "no-dask-cluster",
            "Only a notebook, a script or a command can have a Dask cluster.",
            name,
            ("dask",),
            "Remove it.",
        )


def _cannot_distribute(node: str | None, path: tuple[str, ...]) -> Problem:
    return Problem(
        "error",
        "not-distributable",
        "Only a notebook, a script or a command can be distributed.",
        node,
        path,
        "In a pipeline, say so for the node itself.",
    )
