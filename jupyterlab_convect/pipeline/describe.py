"""What a run of a pipeline needs, before anything runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..errors import ConvectError
from .check_files import AROUND, home_of, input_files
from .document import shorten
from .files import FileCache, join
from .flow import has_rule
from .merge import settings_of
from .plan import DISABLED, Group, Json, Step
from .quantities import canonical, quantity
from .resolve import raise_first_error
from .validate import validate

if TYPE_CHECKING:
    from .types import Document

RULES = ("members", "disabled", "when", "for_each", "run_if")
_AMOUNTS = ("cpu", "memory", "shared_memory", "ephemeral_storage")


def describe(
    document: Document,
    *,
    root: Path | None = None,
    path: str | None = None,
    files: FileCache | None = None,
) -> dict[str, Json]:
    """Files, images, secrets, volumes, resources and parameters of a pipeline, as JSON.

    Missing files are listed as missing; any other error of the document is raised.
    """
    files = files or (FileCache(root) if root is not None else None)
    _refuse_errors(document, path)
    parts = [*_parts(document, (path or "",), files)]
    nodes = {part.id: part.node for part in parts}
    settings = {part.id: part.settings for part in parts if part.runs}
    return {
        "name": document.get("name"),
        "description": document.get("description"),
        "kinds": dict(sorted(Counter(node["kind"] for node in document["nodes"].values()).items())),
        "parameters": document.get("parameters", {}),
        "files": _files(parts, files),
        "images": _used(settings, lambda item: [item.get("image")]),
        "components": _used(nodes, lambda item: [item.get("component")]),
        "kernels": _used(settings, lambda item: [item.get("kernel")]),
        "secrets": _secrets(settings),
        "volumes": _volumes(settings),
        "resources": _resources(settings),
        "outputs": _used(settings, lambda item: item.get("outputs", [])),
        "rules": {
            name: {key: node[key] for key in RULES if key in node}
            for name, node in sorted(nodes.items())
            if has_rule(node)
        },
        "gives": document.get("outputs", {}),
    }


@dataclass(frozen=True, slots=True)
class _DescribedNode:
    """A node of the pipeline, or of one inside it, whose nodes are named by path."""

    id: str
    node: Mapping[str, Any]
    settings: Mapping[str, Json]
    folder: str
    """The folder of its pipeline."""

    @property
    def runs(self) -> bool:
        return self.node["kind"] not in ("group", "pipeline")


def _refuse_errors(document: Document, path: str | None) -> None:
    raise_first_error([p for p in validate(document, path=path) if p.code not in AROUND])


def _parts(
    document: Document, trail: tuple[str, ...], files: FileCache | None, prefix: str = ""
) -> Iterator[_DescribedNode]:
    """`trail` are the pipelines around this one, and itself."""
    folder = trail[-1].rpartition("/")[0]
    defaults = cast(Mapping[str, Json], document.get("defaults", {}))
    for name, node in cast(dict[str, dict[str, Any]], document["nodes"]).items():
        yield _DescribedNode(prefix + name, node, settings_of(node, defaults), folder)
        if node["kind"] == "pipeline" and files is not None:
            path = cast(str, join(folder, node["path"]))
            inner = _inner(path, trail, files)
            if inner is not None:
                yield from _parts(inner, (*trail, path), files, f"{prefix}{name}.")


def _inner(path: str, trail: tuple[str, ...], files: FileCache) -> Document | None:
    """Another pipeline; None when it cannot be read."""
    if path in trail:
        raise ConvectError(
            f"“{path}” contains itself: {' → '.join((*trail[trail.index(path) :], path))}.",
            code="contains-itself",
        )
    try:
        document = files.pipeline(path)
    except ConvectError:
        return None
    try:
        _refuse_errors(document, path)
    except ConvectError as error:
        raise type(error)(
            f"In “{path}”: {error.sentence}", code=error.code, hint=error.hint
        ) from None
    return document


def rule_of(unit: Step | Group) -> str:
    """When and how often a part of a plan runs, in words; empty when it just runs."""
    rule = {"when": unit.when, "run_if": unit.run_if}
    if unit.for_each is not None:
        name = unit.for_each.name.rpartition(":")[2]
        limit = unit.for_each.parallel
        rule["for_each"] = {"name": name, "in": unit.for_each.items, "parallel": limit}
    is_pipeline = isinstance(unit, Group) and unit.path is not None
    runs = f"runs {unit.path}" if is_pipeline else ""
    return "; ".join(filter(None, (rule_in_words(rule), unit.why_not or "", runs)))


def rule_in_words(rule: Mapping[str, Any]) -> str:
    """The same for the properties of a node."""
    if rule.get("disabled") or rule.get("when") == DISABLED:
        return "disabled"
    parts = []
    if rule.get("when") is not None:
        parts.append(f"when {_plain(rule['when'])}")
    if (loop := rule.get("for_each")) is not None:
        limit = loop.get("parallel")
        at_a_time = f", {limit} at a time" if limit else ""
        parts.append(f"for each {loop['name']} in {_plain(loop['in'])}{at_a_time}")
    if rule.get("run_if", "succeeded") != "succeeded":
        parts.append({"always": "always", "failed": "after a failure"}[rule["run_if"]])
    return "; ".join(parts)


def _plain(value: Json) -> str:
    """An expression without its brackets, or a value."""
    if isinstance(value, str):
        return value.removeprefix("${{").removesuffix("}}").strip()
    return shorten(value)


def _used(items: Mapping[str, Any], names: Any) -> dict[str, list[str]]:
    """Each name with the nodes that use it."""
    found: dict[str, list[str]] = {}
    for node, item in sorted(items.items()):
        for name in names(item):
            if name is not None:
                found.setdefault(name, []).append(node)
    return dict(sorted(found.items()))


def _files(parts: Sequence[_DescribedNode], files: FileCache | None) -> list[Json]:
    found: dict[tuple[str, str], list[str]] = {}
    for part in sorted(parts, key=lambda part: part.id):
        for role, path in _files_of(part.node, part.settings, part.folder, files):
            found.setdefault((path, role), []).append(part.id)
    return [
        {
            "path": path,
            "role": role,
            "nodes": users,
            "exists": None if files is None else bool(files.expand(path)),
        }
        for (path, role), users in sorted(found.items())
    ]


def _files_of(
    node: Mapping[str, Any], settings: Mapping[str, Any], folder: str, files: FileCache | None
) -> Iterator[tuple[str, str]]:
    if node["kind"] == "group":
        return
    if "path" in node:
        role = "pipeline" if node["kind"] == "pipeline" else "source"
        yield role, cast(str, join(folder, node["path"]))
    for _, file in input_files(node):
        yield "input", cast(str, join(folder, file))
    for pattern in settings.get("dependencies", ()):
        target = join(home_of(node, folder), pattern)
        if target is None:
            continue
        try:
            matches = files.expand(target) if files is not None else []
        except ConvectError:
            matches = []
        for match in matches or [target]:
            yield "dependency", match


def _secrets(settings: Mapping[str, Any]) -> list[Json]:
    used: dict[tuple[str, str], list[str]] = {}
    for node, item in sorted(settings.items()):
        for secret in item.get("secrets", ()):
            used.setdefault((secret["name"], secret["key"]), []).append(node)
    return [
        {"name": name, "key": key, "nodes": nodes} for (name, key), nodes in sorted(used.items())
    ]


def _volumes(settings: Mapping[str, Any]) -> list[Json]:
    used: dict[str, dict[str, list[str]]] = {}
    for node, item in sorted(settings.items()):
        for volume in item.get("volumes", ()):
            used.setdefault(volume["claim"], {}).setdefault(volume["path"], []).append(node)
    return [
        {"claim": claim, "path": path, "nodes": nodes}
        for claim, paths in sorted(used.items())
        for path, nodes in sorted(paths.items())
    ]


def _resources(settings: Mapping[str, Any]) -> dict[str, Json]:
    """What each node asks for, the largest of each (it has to fit one machine), and the sum."""
    asked: dict[str, dict[str, Decimal]] = {
        name: _requests(item.get("resources", {})) for name, item in sorted(settings.items())
    }
    kinds = sorted({kind for amounts in asked.values() for kind in amounts})
    columns = {
        kind: [amounts[kind] for amounts in asked.values() if kind in amounts] for kind in kinds
    }
    return {
        "nodes": {name: _texts(amounts) for name, amounts in asked.items() if amounts},
        "largest": _texts({kind: max(column) for kind, column in columns.items()}),
        "total": _texts({kind: sum(column, Decimal()) for kind, column in columns.items()}),
        "gpu_types": _used(settings, _gpu_types),
    }


def _gpu_types(settings: Mapping[str, Any]) -> list[str | None]:
    gpu = settings.get("resources", {}).get("gpu")
    return [gpu.get("type")] if isinstance(gpu, Mapping) else []


def _requests(resources: Mapping[str, Any]) -> dict[str, Decimal]:
    """What is asked for, as numbers: the request, or the limit when only that is set."""
    found: dict[str, Decimal] = {}
    for kind in _AMOUNTS:
        amount = resources.get(kind)
        if isinstance(amount, Mapping):
            amount = amount.get("request", amount.get("limit"))
        if amount is not None:
            found[kind] = quantity(amount)
    gpu = resources.get("gpu")
    count = gpu.get("count", 1) if isinstance(gpu, Mapping) else gpu
    if count:
        found["gpu"] = Decimal(str(count))
    return found


def _texts(amounts: Mapping[str, Decimal]) -> dict[str, str]:
    """Bytes in binary units, everything else in decimal ones."""
    return {
        kind: f"{amount.normalize():f}"
        if kind == "gpu"
        else canonical(f"{amount / 1024:f}Ki" if kind != "cpu" else f"{amount:f}")
        for kind, amount in amounts.items()
    }
