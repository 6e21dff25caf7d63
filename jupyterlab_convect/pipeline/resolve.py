"""From a document to a plan: every default merged, every parameter bound, every file named."""

from __future__ import annotations

import math
import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, cast

from ..errors import ConvectError, Missing, Refused
from .check_files import home_of, input_files
from .claims import volume_of, with_claims
from .cycles import order
from .discovery import kind_of
from .document import describe_type
from .expressions import (
    Reference,
    as_text,
    explain_false,
    given_parameter,
    parse_one,
    references_in,
    substitute,
    write,
)
from .files import FileCache, join
from .flow import Flow
from .merge import settings_of
from .plan import (
    DISABLED,
    Amount,
    DaskNeeds,
    Distributed,
    ForEach,
    Gpu,
    Group,
    Json,
    Kubernetes,
    Plan,
    Resources,
    Retries,
    Secret,
    SourceFile,
    Step,
    Toleration,
)
from .problems import Problem
from .quantities import canonical, duration, quantity
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
    files = files or FileCache(root)
    raise_first_error(validate(document, path=path, parameters=parameters or {}, files=files))
    raise_first_error(validate_settings(settings or {}, document, path=path))
    return build_plan(document, path, parameters or {}, settings or {}, files)


def build_plan(
    document: Document,
    path: str | None,
    parameters: Mapping[str, Json],
    settings: Mapping[str, Json],
    files: FileCache,
) -> Plan:
    """The plan of a document, parameters and settings in which `validate` finds no error."""
    if all(node["kind"] == "group" for node in document["nodes"].values()):
        raise Refused("The pipeline has no nodes, so there is nothing to run.", code="no-nodes")
    values = bound_parameters(document, parameters)
    part = _Part(document, path, values, settings, files)
    part.add(None)
    used = sorted({step.component for step in part.steps if step.component is not None})
    stem = PurePosixPath(path).stem if path else "pipeline"
    return Plan(
        name=document.get("name") or stem,
        steps=with_claims(part.steps),
        path=path,
        parameters=values,
        components={digest: part.components[digest] for digest in used},
        groups=tuple(part.groups),
    )


@dataclass(slots=True)
class _Part:
    """A pipeline on its way into a plan: the whole, or one that is a node of another."""

    document: Document
    path: str | None
    values: Mapping[str, Json]
    """Of its parameters; those of an inner pipeline may be expressions of the outer one."""
    settings: Mapping[str, Json] | None
    files: FileCache
    prefix: str = ""
    """What stands before the ids of an inner pipeline: the node, and a dot."""
    outer: str | None = None
    """The group that an inner pipeline is."""
    steps: list[Step] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    components: dict[str, Json] = field(default_factory=dict)
    flow: Flow = field(init=False)

    def __post_init__(self) -> None:
        self.flow = Flow(cast(Mapping[str, Mapping[str, Any]], self.document["nodes"]))
        self.components.update(self.document.get("components", {}))

    def add(self, scope: str | None) -> None:
        """Add what is in a scope, in an order in which it could run."""
        edges = self.flow.edges
        for name in order({name: edges[name] for name in self.flow.children.get(scope, ())}):
            node = cast(dict[str, Any], self.flow.nodes[name])
            if node["kind"] == "group":
                self.groups.append(Group(self.prefix + name, **self.rule(name, node)))
                self.add(name)
            elif node["kind"] == "pipeline":
                self.add_pipeline(name, node)
            else:
                self.steps.append(self.step(name, node))

    def rule(self, name: str, node: dict[str, Any]) -> dict[str, Any]:
        """What steps and groups have in common: when they run, and how often."""
        edges, scope = self.flow.edges[name], self.flow.scope(name)
        when = self.condition(name, node)
        return {
            "name": node.get("name") or name,
            "after": tuple(self.prefix + other for other in edges),
            "weak": tuple(self.prefix + other for other, is_weak in edges.items() if is_weak),
            "group": self.outer if scope is None else self.prefix + scope,
            "when": when,
            "why_not": self.why_not(node["when"]) if when is False else None,
            "run_if": node.get("run_if", "succeeded"),
            "for_each": self.for_each(name, node),
        }

    def condition(self, name: str, node: dict[str, Any]) -> Json:
        if node.get("disabled"):
            return DISABLED
        if "when" not in node:
            return None
        when = self.bound(node["when"].strip())
        if not isinstance(when, bool) and parse_one(when) is None:
            raise Refused(
                f"“when” of “{name}” must be true or false, but it is {describe_type(when)}.",
                code="not-a-condition",
            )
        return when

    def why_not(self, when: Json) -> str | None:
        """What is said of a condition that the parameters alone make false."""
        expression = parse_one(when)
        if expression is None or any(
            known.kind != "parameters" for known in references_in(expression)
        ):
            return None
        return explain_false(expression, lambda known: given_parameter(known, self.values))

    def for_each(self, name: str, node: dict[str, Any]) -> ForEach | None:
        loop = node.get("for_each")
        if loop is None:
            return None
        items = self.bound(loop["in"].strip() if isinstance(loop["in"], str) else loop["in"])
        if not isinstance(items, list) and parse_one(items) is None:
            raise Refused(
                f"“{name}” runs for each item of a list, but what it is given is "
                f"{describe_type(items)}.",
                code="not-a-list",
            )
        return ForEach(self.variable(loop["name"]), items, loop.get("parallel"))

    def variable(self, name: str) -> str:
        """The name of an item; that of an inner pipeline must not hide one of the outer."""
        return f"{self.prefix[:-1]}:{name}" if self.prefix else name

    def bound(self, value: Json) -> Json:
        """`value` with parameters in place, and nodes and items by the names of the plan."""

        def look_up(reference: Reference) -> Json:
            if reference.kind == "parameters":
                return given_parameter(reference, self.values)
            if reference.kind == "nodes" and self.prefix:
                return str(replace(reference, node=f"{self.prefix}{reference.node}"))
            if reference.kind == "each" and self.prefix:
                named = replace(reference, name=self.variable(reference.name))
                return f"${{{{ {write(named)} }}}}"
            return str(reference)

        return substitute(value, look_up)

    def add_pipeline(self, name: str, node: dict[str, Any]) -> None:
        path = cast(str, join(posixpath.dirname(self.path or ""), node["path"]))
        document = self.files.pipeline(path)
        given = {key: self.bound(value) for key, value in node.get("parameters", {}).items()}
        own = f"{self.prefix}{name}"
        values = bound_parameters(document, given)
        part = _Part(document, path, values, self.settings, self.files, f"{own}.", own)
        outputs = {key: part.bound(text) for key, text in document.get("outputs", {}).items()}
        rule = self.rule(name, node)
        digest = self.files.digest(path)
        self.groups.append(Group(own, **rule, outputs=outputs, path=path, digest=digest))
        part.add(None)
        self.steps += part.steps
        self.groups += part.groups
        self.components |= part.components

    def step(self, name: str, node: dict[str, Any]) -> Step:
        defaults = cast("Mapping[str, Json] | None", self.document.get("defaults"))
        folder = posixpath.dirname(self.path or "")
        alone = len(self.document["nodes"]) == 1
        settings = settings_of(node, defaults, self.settings, alone=alone)
        step = _step(node, settings, self.bound, folder, self.files)
        if self.prefix and step.path is None and step.working_folder == "source":
            step = replace(step, working_folder=_working_folder(".", folder))
        return replace(step, id=self.prefix + name, **self.rule(name, node))


def plan_for_file(
    path: str,
    root: Path,
    parameters: Mapping[str, Json] | None = None,
    settings: Mapping[str, Json] | None = None,
    files: FileCache | None = None,
) -> Plan:
    """The plan of a single notebook or script, `path` relative to `root`."""
    files = files or FileCache(root)
    document = document_of_file(path, parameters or {}, files)
    return plan_of_file(document, resolve(document, root=root, settings=settings, files=files))


def document_of_file(path: str, parameters: Mapping[str, Json], files: FileCache) -> Document:
    """The pipeline of one node that a single notebook or script stands for."""
    relative = join("", path)
    if relative is None:
        raise Refused(f"“{path}” is outside the root folder.", code="outside-root")
    kind = kind_of(posixpath.basename(relative))
    if files.kind(relative) != "file":
        raise Missing(f"There is no file “{path}”.", code="missing-file")
    stem = PurePosixPath(relative).stem
    node = {"kind": kind, "path": relative, "parameters": dict(parameters)}
    return cast("Document", {"convect": 1, "name": stem, "nodes": {_id(stem): node}})


def plan_of_file(document: Document, plan: Plan) -> Plan:
    """The plan of such a pipeline, seen as the plan of its file: it has that file's parameters."""
    (node,) = cast(dict[str, dict[str, Any]], document["nodes"]).values()
    return replace(plan, path=node["path"], parameters=node["parameters"])


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
    node: dict[str, Any],
    settings: dict[str, Any],
    bound: Callable[[Json], Json],
    folder: str,
    files: FileCache,
) -> Step:
    """A node without its name, its rule and its place in the graph."""
    path = join(folder, node["path"]) if "path" in node else None
    kernel = settings.get("kernel")
    if node["kind"] == "notebook" and path is not None and kernel is None:
        kernel = files.discovery(path).kernel
    defaults, computed = _defaults(files, path) if node["kind"] == "notebook" else ({}, {})
    inputs = {key: {"file": join(folder, file)} for key, file in input_files(node)}
    parameters = settings.get("parameters", {})
    if node["kind"] == "component":
        parameters = {**node.get("inputs", {}), **inputs}
    resources = _resources(settings.get("resources", {}))
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
        id="",
        kind=node["kind"],
        name="",
        path=path,
        digest=None if path is None else files.digest(path),
        command=tuple(as_text(bound(item)) for item in node.get("command", ())),
        component=node.get("component"),
        parameters=bound(dict(sorted(parameters.items()))),
        defaults={key: item for key, item in defaults.items() if key not in parameters},
        computed={key: item for key, item in computed.items() if key not in parameters},
        env={key: as_text(bound(item)) for key, item in sorted(settings.get("env", {}).items())},
        secrets=tuple(Secret(**item) for item in settings.get("secrets", ())),
        image=settings.get("image"),
        pull_policy=settings.get("pull_policy"),
        kernel=kernel,
        resources=resources,
        volumes=tuple(map(volume_of, settings.get("volumes", ()))),
        dependencies=tuple(
            SourceFile(item, files.digest(item)) for item in sorted(needed - {path})
        ),
        outputs=tuple(settings.get("outputs", ())),
        metrics=dict(sorted(settings.get("metrics", {}).items())),
        retries=_retries(settings.get("retries", 0)),
        timeout=duration(settings["timeout"]) or None if "timeout" in settings else None,
        cache=settings.get("cache", False),
        working_folder=_working_folder(settings.get("working_folder", "source"), folder),
        distributed=_distributed(settings.get("distributed"), resources),
        dask=_dask(settings.get("dask")),
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


def _distributed(value: Mapping[str, Any] | None, resources: Resources) -> Distributed | None:
    """With the number of processes, unless that is left to the machine."""
    if value is None:
        return None
    # JSON written by a browser may have 2 as 2.0.
    whole: dict[str, Any] = {
        key: int(item) if isinstance(item, float) else item for key, item in value.items()
    }
    if "hang_after" in whole:
        whole["hang_after"] = duration(value["hang_after"]) or None
    cpu = resources.cpu and (resources.cpu.request or resources.cpu.limit)
    if whole.get("processes") == "gpu":
        whole["processes"] = max(1, math.ceil(resources.gpu.count)) if resources.gpu else 1
    elif whole.get("processes") == "cpu" and cpu:
        whole["processes"] = max(1, int(quantity(cpu)))
    return Distributed(**whole)


def _dask(value: Mapping[str, Any] | None) -> DaskNeeds | None:
    if value is None:
        return None
    whole = DaskNeeds()
    return DaskNeeds(
        int(value.get("workers", whole.workers)),
        dict(sorted(value.get("options", {}).items())),
        duration(value["wait"]) if "wait" in value else whole.wait,
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
        resources=dict(sorted(value.get("resources", {}).items())),
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
