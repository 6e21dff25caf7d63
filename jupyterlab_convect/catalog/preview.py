"""A component as people look at it: ends with their types, image, command, parts."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..pipeline.component_types import type_name, value_kind
from ..pipeline.plan import Json
from .model import Component, Input, Output, Task


def preview(component: Component) -> dict[str, Json]:
    container, graph = component.container, component.graph
    return {
        "name": component.name,
        "digest": component.digest,
        "description": component.description,
        "format": component.format,
        "source": component.source,
        "inputs": [_input(item) for item in component.inputs],
        "outputs": [_output(item) for item in component.outputs],
        "image": container.image if container else None,
        "command": command_words([*container.command, *container.args]) if container else [],
        "env": {key: word(item) for key, item in container.env.items()} if container else {},
        "tasks": [
            _task(key, task, graph.components[task.component]) for key, task in graph.tasks.items()
        ]
        if graph
        else [],
        "unsupported": unsupported(component),
        "packages": _packages(component),
    }


def command_words(arguments: Sequence[Json]) -> list[str]:
    """Each argument as it is written; placeholders as `{inputValue: name}`."""
    return [word(argument) for argument in arguments]


def word(argument: Json) -> str:
    if isinstance(argument, str):
        return argument
    kind, body = next(iter(argument.items()))
    if kind == "concat":
        return "".join(word(item) for item in body)
    if kind == "if":
        condition = body["cond"]
        asked = condition if isinstance(condition, bool | str) else word(condition)
        branches = [" ".join(command_words(body.get(name, ()))) for name in ("then", "else")]
        otherwise = f" else {branches[1]}" if body.get("else") else ""
        return f"{{if {asked}: {branches[0]}{otherwise}}}"
    return f"{{{kind}: {body if isinstance(body, str) else json.dumps(body)}}}"


def unsupported(component: Component) -> list[str]:
    """What keeps it from running outside of Kubeflow, as sentences."""
    if component.importer is not None:
        return [f"“{component.name}” imports an artifact."]
    if component.graph is None:
        return []
    found = [task.unsupported for task in component.graph.tasks.values() if task.unsupported]
    for inner in component.graph.components.values():
        found += unsupported(inner)
    return list(dict.fromkeys(found))


def _input(item: Input) -> dict[str, Json]:
    return {**_output(item), "default": item.default, "required": item.required}


def _output(item: Input | Output) -> dict[str, Json]:
    return {
        "name": item.name,
        "type": type_name(item.type),
        "kind": value_kind(item.type),
        "description": item.description,
        "passed": item.passed,
    }


def _task(key: str, task: Task, component: Component) -> dict[str, Json]:
    return {
        "name": key,
        "component": component.name,
        "image": component.container.image if component.container else None,
        "after": list(task.after),
        "unsupported": task.unsupported,
    }


def _packages(component: Component) -> list[str]:
    """Python packages that one of our components says it needs."""
    packages = component.annotations.get("packages")
    return [item.strip() for item in packages.split(",")] if isinstance(packages, str) else []
