"""From a document to a plan: every default merged, every parameter bound, every file named."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, cast

from ..errors import ConvectError, Missing, Refused
from .check_files import home_of, input_files
from .check_graph import edges_of
from .discovery import kind_of
from .expressions import as_text, bind_parameters
from .files import FileCache, join
from .graph import order
from .merge import settings_of
from .plan import (
    Amount,
    Gpu,
    Json,
    Kubernetes,
    Plan,
    Resources,
    Retries,
    Secret,
    SourceFile,
    Step,
    Toleration,
    Volume,
)
from .problems import Problem
from .quantities import canonical, duration
from .validate import validate, validate_settings

if TYPE_CHECKING:
    from .types import Document

_MALFORMED = frozenset(("wrong-type", "missing-property", "unknown-property", "bad-version"))


def resolve(
    document: Document,
    *,
    root: Path,
    path: str | None = None,
    parameters: Mapping[str, Json] | None = None,
    settings: Mapping[str, Json] | None = None,
    files: FileCache | None = None,
) -> Plan:
    """The plan of one run.

    `path` is where the pipeline lies, relative to `root`; paths in the document start
    from its folder, paths in the plan from the root. `parameters` are the values that
    this run chooses, `settings` come between the pipeline's defaults and its nodes.
    The first error that `validate` finds is raised.
    """
    given = dict(parameters or {})
    files = files or FileCache(root)
    raise_first_error(validate(document, path=path, parameters=given, files=files))
    raise_first_error(validate_settings(settings or {}, document, path=path))
    nodes = cast(dict[str, dict[str, Any]], document["nodes"])
    edges = edges_of(nodes)
    if not edges:
        raise Refused("The pipeline has no nodes, so there is nothing to run.", code="no-nodes")
    values = bound_parameters(document, given)
    folder = posixpath.dirname(path or "")
    layers = (cast(Mapping[str, Json], document.get("defaults")), settings)
    steps = tuple(
        _step(
            name, nodes[name], edges[name], settings_of(nodes[name], *layers), values, folder, files
        )
        for name in order(edges)
    )
    definitions = document.get("components", {})
    used = sorted({step.component for step in steps if step.component is not None})
    stem = PurePosixPath(path).stem if path else "pipeline"
    return Plan(
        name=document.get("name") or stem,
        steps=steps,
        path=path,
        parameters=values,
        components={digest: definitions[digest] for digest in used},
    )


def plan_for_file(
    path: str,
    root: Path,
    parameters: Mapping[str, Json] | None = None,
    settings: Mapping[str, Json] | None = None,
    files: FileCache | None = None,
) -> Plan:
    """The plan of a single notebook or script, `path` relative to `root`."""
    files = files or FileCache(root)
    relative = join("", path)
    if relative is None:
        raise Refused(f"“{path}” lies outside the root folder.", code="outside-root")
    kind = kind_of(posixpath.basename(relative))
    if files.kind(relative) != "file":
        raise Missing(f"There is no file “{path}”.", code="missing-file")
    stem = PurePosixPath(relative).stem
    node = {"kind": kind, "path": relative, "parameters": dict(parameters or {})}
    document = cast("Document", {"convect": 1, "name": stem, "nodes": {_id(stem): node}})
    plan = resolve(document, root=root, settings=settings, files=files)
    return Plan(plan.name, plan.steps, relative, dict(parameters or {}))


def raise_first_error(problems: list[Problem]) -> None:
    """Turn the first error into an exception that says how many more there are."""
    errors = [problem for problem in problems if problem.severity == "error"]
    if not errors:
        return
    first, more = errors[0], len(errors) - 1
    place = (
        f"Node “{first.node}”: " if first.node and f"“{first.node}”" not in first.message else ""
    )
    counted = (
        f" There {'is 1 more error' if more == 1 else f'are {more} more errors'}." if more else ""
    )
    kind = ConvectError if first.code in _MALFORMED else Refused
    raise kind(place + first.message + counted, code=first.code, hint=first.hint)


def bound_parameters(document: Document, given: Mapping[str, Json]) -> dict[str, Json]:
    """The pipeline's parameters with the values of this run, else their defaults."""
    return {
        name: _typed(given.get(name, declared.get("default")), declared.get("type"))
        for name, declared in sorted(document.get("parameters", {}).items())
    }


def _typed(value: Json, kind: str | None) -> Json:
    """JSON written by a browser does not tell 1 from 1.0; the declared type does."""
    if isinstance(value, bool):
        return value
    if kind == "number" and isinstance(value, int):
        return float(value)
    if kind == "integer" and isinstance(value, float):
        return int(value)
    return value


def _step(
    name: str,
    node: dict[str, Any],
    after: list[str],
    settings: dict[str, Any],
    values: Mapping[str, Json],
    folder: str,
    files: FileCache,
) -> Step:
    path = join(folder, node["path"]) if "path" in node else None
    kernel = settings.get("kernel")
    if node["kind"] == "notebook" and path is not None and kernel is None:
        kernel = files.discovery(path).kernel
    defaults, computed = _defaults(files, path) if node["kind"] == "notebook" else ({}, {})
    inputs = {key: {"file": join(folder, file)} for key, file in input_files(node)}
    parameters = settings.get("parameters", {})
    if node["kind"] == "component":
        parameters = {**node.get("inputs", {}), **inputs}
    needed = {
        match
        for p in settings.get("dependencies", ())
        for match in _matches(node, p, folder, files)
    }
    # What another node is still to make is handed on when it is there.
    needed |= {
        match
        for item in inputs.values()
        if item["file"] is not None and files.kind(item["file"])
        for match in files.expand(item["file"])
    }
    return Step(
        id=name,
        kind=node["kind"],
        name=node.get("name") or name,
        after=tuple(after),
        path=path,
        digest=None if path is None else files.digest(path),
        command=tuple(as_text(bind_parameters(item, values)) for item in node.get("command", ())),
        component=node.get("component"),
        parameters=bind_parameters(dict(sorted(parameters.items())), values),
        defaults={key: item for key, item in defaults.items() if key not in parameters},
        computed={key: item for key, item in computed.items() if key not in parameters},
        env={
            key: as_text(bind_parameters(item, values))
            for key, item in sorted(settings.get("env", {}).items())
        },
        secrets=tuple(Secret(**item) for item in settings.get("secrets", ())),
        image=settings.get("image"),
        pull_policy=settings.get("pull_policy"),
        kernel=kernel,
        resources=_resources(settings.get("resources", {})),
        volumes=tuple(Volume(**item) for item in settings.get("volumes", ())),
        dependencies=tuple(
            SourceFile(item, files.digest(item)) for item in sorted(needed - {path})
        ),
        outputs=tuple(settings.get("outputs", ())),
        metrics=dict(sorted(settings.get("metrics", {}).items())),
        retries=_retries(settings.get("retries", 0)),
        timeout=duration(settings["timeout"]) or None if "timeout" in settings else None,
        cache=settings.get("cache", False),
        working_folder=_working_folder(settings.get("working_folder", "source"), folder),
        kubernetes=_kubernetes(settings.get("kubernetes", {})),
    )


def _defaults(files: FileCache, path: str | None) -> tuple[dict[str, Json], dict[str, str]]:
    """The parameters that a notebook sets itself: to a literal, or to what some code gives."""
    try:
        declared = files.discovery(path).parameters if path is not None else ()
    except ConvectError:
        return {}, {}
    defaults: dict[str, Json] = {}
    computed: dict[str, str] = {}
    for parameter in declared or ():
        if parameter.default is not None or parameter.source == "None":
            defaults[parameter.name] = parameter.default
        elif parameter.source is not None:
            computed[parameter.name] = parameter.source
    return defaults, computed


def _matches(node: dict[str, Any], pattern: str, folder: str, files: FileCache) -> list[str]:
    target = join(home_of(node, folder), pattern)
    return [] if target is None else files.expand(target)


def _resources(value: Mapping[str, Any]) -> Resources:
    gpu = value.get("gpu")
    if gpu is not None:
        gpu = gpu if isinstance(gpu, Mapping) else {"count": gpu}
        gpu = Gpu(float(gpu.get("count", 1)), gpu.get("type"), gpu.get("resource"))
    shared = value.get("shared_memory")
    return Resources(
        cpu=_amount(value.get("cpu")),
        memory=_amount(value.get("memory")),
        ephemeral_storage=_amount(value.get("ephemeral_storage")),
        shared_memory=None if shared is None else canonical(shared),
        gpu=gpu if gpu is not None and gpu.count > 0 else None,
    )


def _amount(value: Any) -> Amount | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        return Amount(canonical(value))
    return Amount(
        *(canonical(value[key]) if key in value else None for key in ("request", "limit"))
    )


def _retries(value: Any) -> Retries:
    if not isinstance(value, Mapping):
        return Retries(int(value))
    whole = Retries()
    return Retries(
        int(value.get("count", whole.count)),
        float(value.get("delay", whole.delay)),
        float(value.get("factor", whole.factor)),
    )


def _kubernetes(value: Mapping[str, Any]) -> Kubernetes:
    return Kubernetes(
        node_selector=dict(sorted(value.get("node_selector", {}).items())),
        tolerations=tuple(Toleration(**item) for item in value.get("tolerations", ())),
        labels=dict(sorted(value.get("labels", {}).items())),
        annotations=dict(sorted(value.get("annotations", {}).items())),
        priority=value.get("priority"),
        service_account=value.get("service_account"),
        pull_secrets=tuple(value.get("pull_secrets", ())),
    )


def _working_folder(value: str, folder: str) -> str:
    if value in ("source", "isolated"):
        return value
    path = join(folder, value) or "."
    # A folder that is really called so must not be taken for the word.
    return f"./{path}" if path in ("source", "isolated") else path


def _id(stem: str) -> str:
    """An id for the only node of a plan, from the name of its file."""
    return re.sub(r"\W+", "-", stem).strip("-")[:63] or "node"
