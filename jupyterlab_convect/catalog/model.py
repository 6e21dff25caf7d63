"""What a component is: typed ends, and either a container or a graph of other components.

One model for every format. Its JSON (`to_json`) is what a pipeline document
embeds under `components[digest]`, so it holds all that a run needs.

An argument of a command is data, in Kubeflow's own words: text, or one of
`{"inputValue": name}`, `{"inputPath": name}`, `{"inputUri": name}`,
`{"outputPath": name}`, `{"outputUri": name}`, `{"concat": [...]}`,
`{"if": {"cond": ..., "then": [...], "else": [...]}}` with `{"isPresent": name}`,
and, from compiled pipelines, `{"executorInput": true}`, `{"executorOutput": true}`,
`{"metadata": {"input" or "output": name, "key": ...}}` and `{"context": name}`.

An argument of a task in a graph is `{"constant": value}`, `{"graphInput": name}`,
`{"taskOutput": {"task": ..., "output": ...}}`, `{"concat": [...]}`, or one that can be
shown and not run: `{"unsupported": sentence}`.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ..errors import ConvectError
from ..pipeline.component_types import type_name, value_kind
from ..pipeline.plan import Json, Resources, digest_of, from_json, to_json

Passing = Literal["value", "file"]
Format = Literal["v1", "graph", "ir"]

CONTEXT = ("run.id", "run.name", "step.id", "step.uid", "root", "time")
"""What a command may ask of the run; `render` takes a value for each."""
MAX_COMPONENTS = 2_000
"""How many components one may hold, all levels together."""
NAMED_PLACEHOLDERS = frozenset(
    ("inputValue", "inputPath", "inputUri", "outputPath", "outputUri", "isPresent")
)
_SCALARS: dict[type, Any] = {str: str, bool: bool, int: int, float: (int, float)}


@dataclass(frozen=True, slots=True)
class Input:
    name: str
    type: Json = None
    """As written: a word, a mapping, a list, or None."""
    description: str = ""
    default: Json = None
    optional: bool = False
    passed: Passing = "value"

    @property
    def required(self) -> bool:
        return not self.optional and self.default is None


@dataclass(frozen=True, slots=True)
class Output:
    name: str
    type: Json = None
    description: str = ""
    passed: Passing = "file"
    """`value` when its type is one that parameters have; it is written to a file all the same."""
    path: str | None = None
    """Where the image always writes it; None when the command is told where."""


@dataclass(frozen=True, slots=True)
class Container:
    image: str
    command: tuple[Json, ...] = ()
    args: tuple[Json, ...] = ()
    env: Mapping[str, Json] = field(default_factory=dict)
    resources: Resources = field(default_factory=Resources)


@dataclass(frozen=True, slots=True)
class GraphTask:
    component: str
    """A key of the graph's `components`."""
    arguments: Mapping[str, Json] = field(default_factory=dict)
    after: tuple[str, ...] = ()
    unsupported: str | None = None
    """What only Kubeflow can do with it (a condition, a loop), as a sentence."""
    replaces: str | None = None
    """The address that the graph names; the component was read elsewhere, its digest unchecked."""


@dataclass(frozen=True, slots=True)
class ComponentGraph:
    tasks: Mapping[str, GraphTask]
    outputs: Mapping[str, Json] = field(default_factory=dict)
    components: Mapping[str, Component] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Component:
    """One definition. Exactly one of `container`, `graph` and `importer` is there."""

    name: str
    format: Format
    digest: str = ""
    """The sha256 of its text; of all texts together where a graph leaves one unpinned."""
    description: str = ""
    inputs: tuple[Input, ...] = ()
    outputs: tuple[Output, ...] = ()
    container: Container | None = None
    graph: ComponentGraph | None = None
    importer: Json = None
    source: str = ""
    """The URL or file it was read from."""
    annotations: Mapping[str, Json] = field(default_factory=dict)
    labels: Mapping[str, Json] = field(default_factory=dict)
    platforms: Json = None
    """What a compiled component asks of Kubernetes, as it was written."""

    def input(self, name: str) -> Input | None:
        return next((item for item in self.inputs if item.name == name), None)

    def output(self, name: str) -> Output | None:
        return next((item for item in self.outputs if item.name == name), None)


class UnreadableComponent(ConvectError):
    """A component that cannot be read: which file, which line (0: the file as a whole), why."""

    def __init__(self, file: str, line: int, reason: str, *, hint: str | None = None) -> None:
        super().__init__(placed(file, line, reason), code="unreadable-component", hint=hint)
        self.file = file
        self.line = line
        self.reason = reason


def placed(file: str, line: int, reason: str) -> str:
    """A reason behind its place, unless it names that itself."""
    if reason.startswith(file):
        return reason
    return f"{file}, line {line}: {reason}" if line else f"{file}: {reason}"


def executable_digests(component: Component) -> set[str]:
    """What approvals are given for: all that decides which commands are executed, part by part."""
    return {digest_of([to_json(item.container)]) for item in containers(component)}


def containers(component: Component) -> Iterator[Component]:
    """The component itself, or every one inside its graph, that has a container."""
    if component.container:
        yield component
    if component.graph:
        for key in sorted(component.graph.components):
            yield from containers(component.graph.components[key])


def placeholders(argument: Json) -> Iterator[tuple[str, str]]:
    """Every `(kind, name)` that an argument of a command refers to."""
    if isinstance(argument, list | tuple):
        for item in argument:
            yield from placeholders(item)
    elif isinstance(argument, Mapping):
        for kind, body in argument.items():
            if kind in NAMED_PLACEHOLDERS:
                yield kind, body
            elif kind in ("concat", "if", "cond", "then", "else"):
                yield from placeholders(list(body.values()) if kind == "if" else body)
            elif kind == "metadata":
                side = "input" if "input" in body else "output"
                yield f"{side}Uri", body[side]


def component_from_json(value: Json) -> Component:
    """The component that a definition describes; a ConvectError when it is damaged."""
    try:
        _check_shape(Component, value)
        component = from_json(Component, value)
        if _check(component) > MAX_COMPONENTS:
            raise ValueError("too many components")
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError):
        raise ConvectError(
            "The definition of a component is damaged.",
            code="damaged-component",
            hint="Add the component to the pipeline again.",
        ) from None
    return component


def _check_shape(kind: Any, value: Json) -> None:
    """Does a JSON value have the types that a dataclass declares?"""
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        _expect(isinstance(value, dict))
        for name, hint in _hints(kind).items():
            if name in value:
                _check_shape(hint, value[name])
        return
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        if value is not None:
            _check_shape(next(item for item in arguments if item is not type(None)), value)
    elif origin is typing.Literal:
        _expect(value in arguments)
    elif origin is tuple:
        _expect(isinstance(value, list))
        for item in value:
            _check_shape(arguments[0], item)
    elif origin is Mapping:
        _expect(isinstance(value, dict))
        for item in value.values():
            _check_shape(arguments[1], item)
    elif kind in _SCALARS:
        _expect(isinstance(value, _SCALARS[kind]))


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _check(component: Component) -> int:
    """What the parts promise each other; how many components there are."""
    implementations = (component.container, component.graph, component.importer)
    _expect(sum(item is not None for item in implementations) == 1)
    inputs = {item.name for item in component.inputs}
    outputs = {item.name for item in component.outputs}
    _expect(len(inputs) == len(component.inputs) and len(outputs) == len(component.outputs))
    if component.container:
        container = component.container
        for argument in (*container.command, *container.args, *container.env.values()):
            _check_argument(argument, inputs, outputs)
    return 1 + (_check_graph(component.graph, inputs) if component.graph else 0)


def _check_graph(graph: ComponentGraph, inputs: set[str]) -> int:
    for task in graph.tasks.values():
        component = graph.components[task.component]
        _expect(all(name in graph.tasks for name in task.after))
        for name, argument in task.arguments.items():
            _expect(component.input(name) is not None)
            _check_given(argument, graph, inputs)
    for argument in graph.outputs.values():
        _check_given(argument, graph, inputs)
    return sum(_check(component) for component in graph.components.values())


def _check_argument(argument: Json, inputs: set[str], outputs: set[str]) -> None:
    if isinstance(argument, str):
        return
    ((kind, body),) = argument.items()
    if kind in NAMED_PLACEHOLDERS:
        _expect(body in (outputs if kind.startswith("output") else inputs))
    elif kind == "concat":
        for item in _list(body):
            _check_argument(item, inputs, outputs)
    elif kind == "if":
        _expect(set(body) <= {"cond", "then", "else"})
        if not isinstance(body["cond"], bool):
            _check_argument(body["cond"], inputs, outputs)
        for item in (*_list(body["then"]), *_list(body.get("else", []))):
            _check_argument(item, inputs, outputs)
    elif kind == "metadata":
        _expect(body.get("input") in inputs or body.get("output") in outputs)
    elif kind == "context":
        _expect(body in CONTEXT)
    else:
        _expect(kind in ("executorInput", "executorOutput"))


def _check_given(argument: Json, graph: ComponentGraph, inputs: set[str]) -> None:
    ((kind, body),) = argument.items()
    if kind == "graphInput":
        _expect(body in inputs)
    elif kind == "taskOutput":
        task = graph.tasks[body["task"]]
        _expect(graph.components[task.component].output(body["output"]) is not None)
    elif kind == "concat":
        for item in _list(body):
            _check_given(item, graph, inputs)
    elif kind != "constant":
        _expect(kind in ("context", "unsupported") and isinstance(body, str))


def _list(value: Json) -> list[Json]:
    _expect(isinstance(value, list))
    items: list[Json] = value
    return items


def _expect(condition: bool) -> None:
    if not condition:
        raise ValueError


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


def _task(key: str, task: GraphTask, component: Component) -> dict[str, Json]:
    return {
        "name": key,
        "component": component.name,
        "image": component.container.image if component.container else None,
        "after": list(task.after),
        "unsupported": task.unsupported,
        "source": component.source,
        "replaces": task.replaces,
    }


def _packages(component: Component) -> list[str]:
    """Python packages that one of our components says it needs."""
    packages = component.annotations.get("packages")
    return [item.strip() for item in packages.split(",")] if isinstance(packages, str) else []
