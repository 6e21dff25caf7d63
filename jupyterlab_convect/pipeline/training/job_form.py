"""A training job as a form: what people change most, and the text with one value changed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import yaml

from ...errors import ConvectError
from ..plan import Json
from .job_kinds import KINDS
from .yaml_nodes import NotYaml, documents, entries, fields, tag_of, text_of, value_of

Path = tuple[str | int, ...]
GPU = "nvidia.com/gpu"
_INDENT = 2


@dataclass(frozen=True, slots=True)
class FormField:
    name: str
    kind: Literal["text", "whole", "amount", "list", "choice"]
    value: Json
    paths: tuple[Path, ...]
    """Where it stands; at several places when it is the same for several roles."""
    roles: tuple[str, ...] = ()
    """Which roles it is about; none when it is about all of the job."""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TrainingJob:
    kind: str
    name: str
    version: str
    content: dict[str, Json]
    fields: tuple[FormField, ...]


def read_jobs(text: str) -> list[TrainingJob]:
    """The training jobs of a file; none when it cannot be read, which `check` explains."""
    try:
        found = documents(text)
    except NotYaml:
        return []
    return [
        _job(number, node)
        for number, node in enumerate(found)
        if text_of(fields(node).get("kind")) in KINDS
    ]


def _job(number: int, node: yaml.Node) -> TrainingJob:
    content = value_of(node)
    kind = str(content["kind"])
    name = at(content, "metadata", "name") or at(content, "metadata", "generateName")
    return TrainingJob(
        kind,
        name if isinstance(name, str) else "",
        str(content.get("apiVersion") or ""),
        content,
        tuple(
            replace(each, paths=tuple((number, *path) for path in each.paths))
            for each in _fields(kind, content)
        ),
    )


def at(value: Json, *path: str | int) -> Any:
    """What stands there, or None."""
    for key in path:
        if isinstance(value, dict) and isinstance(key, str):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            return None
    return value


def _fields(kind: str, content: dict[str, Json]) -> Iterator[FormField]:
    def one(name: str, how: Any, *path: str | int, choices: Iterable[str] = ()) -> FormField:
        return FormField(name, how, at(content, *path), (path,), (), tuple(choices))

    yield one("name", "text", "metadata", "name")
    if kind == "TrainJob":
        trainer = ("spec", "trainer")
        yield one("runtime", "text", "spec", "runtimeRef", "name")
        yield one("nodes", "whole", *trainer, "numNodes")
        yield one("processes", "whole", *trainer, "numProcPerNode")
        yield from _of_container(content, trainer, "resourcesPerNode", ())
        yield one("deadline", "whole", "spec", "activeDeadlineSeconds")
        return
    if kind == "PyTorchJob":
        yield one("processes", "text", "spec", "nprocPerNode")
    if kind == "MPIJob":
        yield one("processes", "whole", "spec", "slotsPerWorker")
    yield from _merged(
        each for role in _roles_of(kind, content) for each in _of_role(kind, content, role)
    )
    policies = ("None", "Running", "All")
    yield one("clean_up", "choice", "spec", "runPolicy", "cleanPodPolicy", choices=policies)
    yield one("restarts", "whole", "spec", "runPolicy", "backoffLimit")
    yield one("deadline", "whole", "spec", "runPolicy", "activeDeadlineSeconds")


def _roles_of(kind: str, content: dict[str, Json]) -> list[str]:
    about = KINDS[kind]
    found = at(content, "spec", about.replicas or "")
    return [role for role in about.roles if isinstance(found, dict) and role in found]


def _of_role(kind: str, content: dict[str, Json], role: str) -> Iterator[FormField]:
    about = KINDS[kind]
    base: Path = ("spec", about.replicas or "", role)
    path: Path = (*base, "replicas")
    if role not in about.single:
        yield FormField("replicas", "whole", at(content, *path), (path,), (role,))
    index = main_container(at(content, *base, "template", "spec", "containers"), about.container)
    container = (*base, "template", "spec", "containers", index)
    yield from _of_container(content, container, "resources", (role,))
    path = (*base, "restartPolicy")
    choices = ("OnFailure", "Never") if kind == "MPIJob" else ("OnFailure", "Never", "ExitCode")
    yield FormField("restart", "choice", at(content, *path), (path,), (role,), choices)


def main_container(containers: Json, name: str | None) -> int:
    """Which of the containers does the work."""
    names = [at(each, "name") for each in containers] if isinstance(containers, list) else []
    return names.index(name) if name in names else 0


def _of_container(
    content: dict[str, Json], base: Path, resources: str, roles: tuple[str, ...]
) -> Iterator[FormField]:
    for name, how in (("image", "text"), ("command", "list"), ("args", "list")):
        path: Path = (*base, name)
        yield FormField(name, how, at(content, *path), (path,), roles)  # type: ignore[arg-type]
    found = at(content, *base, resources)
    for name in ("gpu", "cpu", "memory"):
        path = (*base, resources, *resource_path(found, name))
        value = at(content, *path)
        yield FormField(name, "amount", None if value is None else str(value), (path,), roles)


def resource_path(resources: Json, name: str) -> tuple[str, str]:
    """Where an amount stands in them, or would."""
    for place in ("limits", "requests"):
        amounts = at(resources, place)
        for key in amounts if isinstance(amounts, dict) else ():
            if key == name or (name == "gpu" and str(key).endswith("/gpu")):
                return place, key
    return "limits", GPU if name == "gpu" else name


def _merged(found: Iterable[FormField]) -> list[FormField]:
    """Fields that have the same value for several roles are one."""
    merged: dict[tuple[str, str], FormField] = {}
    for each in found:
        own = each.roles if each.name == "replicas" else ()
        key = (each.name, json.dumps([each.value, own], sort_keys=True, default=str))
        same = merged.get(key)
        merged[key] = (
            each
            if same is None
            else replace(same, paths=same.paths + each.paths, roles=same.roles + each.roles)
        )
    return list(merged.values())


def change(text: str, paths: Iterable[Path], value: Json) -> str:
    """The text with another value at each of the paths; None or an empty list takes it out.

    Nothing else changes: comments, order and quotes stay. A path begins with the number of the
    document. A ConvectError if that cannot be done.
    """
    for path in paths:
        text = _change(text, path, value if value not in ("", []) else None)
    return text


def _change(text: str, path: Path, value: Json) -> str:
    name = str(path[-1])
    refusal = ConvectError(
        f"“{name[:60]}” cannot be changed by the form.",
        code="bad-change",
        hint="Change it in the text.",
    )
    try:
        before = [value_of(each) for each in documents(text)]
        wanted = json.loads(json.dumps(before))
        _put(wanted, path, value)
        changed = _edit(text, documents(text), path, value)
        after = [value_of(each) for each in documents(changed)]
    except (NotYaml, LookupError, TypeError, RecursionError):
        raise refusal from None
    if _filled(wanted) != _filled(after):
        raise refusal
    return changed


def _put(content: Any, path: Path, value: Json) -> None:
    for key in path[:-1]:
        if isinstance(content, dict) and content.get(str(key)) is None:
            if value is None:
                return
            content[str(key)] = {}
        content = content[key]
    if value is None:
        content.pop(path[-1], None)
    else:
        content[path[-1]] = value


def _filled(value: Any) -> Any:
    """Without what is empty, which Kubernetes takes for missing."""
    if isinstance(value, dict):
        parts = {key: _filled(each) for key, each in value.items()}
        return {key: each for key, each in parts.items() if each not in (None, {})}
    return [_filled(each) for each in value] if isinstance(value, list) else value


def _edit(text: str, found: list[yaml.Node], path: Path, value: Json) -> str:
    node: yaml.Node = found[int(path[0])]
    for depth, key in enumerate(path[1:], 1):
        if isinstance(node, yaml.SequenceNode):
            node = node.value[int(key)]
            continue
        known = {str(own.value): (own, inner) for own, inner in entries(node).items()}
        if str(key) not in known:
            return text if value is None else _insert(text, node, path[depth:], value)
        own, inner = known[str(key)]
        if depth == len(path) - 1 or tag_of(inner) == "null":
            if value is None:
                return _remove(text, node, own)
            return _replace(text, own, inner, path[depth + 1 :], value)
        node = inner
    raise LookupError(path)


def _end(text: str, node: yaml.Node) -> int:
    """Behind its last letter; a block ends where the next one begins."""
    return len(text[: node.end_mark.index].rstrip())


def _insert(text: str, node: yaml.Node, keys: Path, value: Json) -> str:
    """A new property behind the first one."""
    if not isinstance(node, yaml.MappingNode):
        raise TypeError("not a mapping")
    if node.flow_style:
        start = node.start_mark.index + 1
        entry = json.dumps(_nested(keys, value), ensure_ascii=False)[1:-1]
        return f"{text[:start]}{entry}{', ' if node.value else ''}{text[start:]}"
    column = node.start_mark.column
    line_end = text.find("\n", _end(text, node.value[0][1]))
    at = len(text) if line_end < 0 else line_end
    return f"{text[:at]}\n{' ' * column}{_block(keys, value, column)}{text[at:]}"


def _remove(text: str, node: yaml.Node, key: yaml.Node) -> str:
    pairs = node.value
    index = next(number for number, (own, _) in enumerate(pairs) if own is key)
    start, end = key.start_mark.index, _end(text, pairs[index][1])
    line = text.rfind("\n", 0, start) + 1
    if not node.flow_style and not text[line:start].strip(" "):
        line_end = text.find("\n", end)
        return text[:line] + (text[line_end + 1 :] if line_end >= 0 else "")
    if index + 1 < len(pairs):
        return text[:start] + text[pairs[index + 1][0].start_mark.index :]
    if node.flow_style:
        before = _end(text, pairs[index - 1][1]) if index else start
        return text[:before] + text[end:]
    raise TypeError("nothing would be left")


def _replace(text: str, key: yaml.Node, node: yaml.Node, keys: Path, value: Json) -> str:
    start, end = key.start_mark.index, max(key.end_mark.index + 1, _end(text, node))
    if isinstance(node, yaml.ScalarNode) and not keys and tag_of(node) != "null":
        return f"{text[: node.start_mark.index]}{_scalar(value)}{text[end:]}"
    entry = _block((str(key.value), *keys), value, key.start_mark.column)
    return f"{text[:start]}{entry}{text[end:]}"


def _nested(keys: Path, value: Json) -> Json:
    for key in reversed(keys):
        value = {str(key): value}
    return value


def _block(keys: Path, value: Json, column: int) -> str:
    lines = []
    for depth, key in enumerate(keys):
        lines.append(f"{' ' * (column + depth * _INDENT) if depth else ''}{_scalar(str(key))}:")
    return "\n".join(lines) + f" {_scalar(value)}"


def _scalar(value: Json) -> str:
    """In one line; as plain text where that means the same."""
    if isinstance(value, str):
        plain = yaml.safe_dump(value, allow_unicode=True, width=float("inf")).split("\n")
        return plain[0] if plain[1:] in (["...", ""], [""]) else json.dumps(value)
    return json.dumps(value, ensure_ascii=False)
