"""Definitions as documents embed them: JSON from anywhere, so all of it is checked.

`to_json` of a component is its definition.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Mapping
from typing import Any

from ..errors import ConvectError
from ..pipeline.plan import Json, from_json
from .model import MAX_COMPONENTS, NAMED_PLACEHOLDERS, Component, Graph
from .render import CONTEXT

_SCALARS: dict[type, Any] = {str: str, bool: bool, int: int, float: (int, float)}


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


def _check_graph(graph: Graph, inputs: set[str]) -> int:
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


def _check_given(argument: Json, graph: Graph, inputs: set[str]) -> None:
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
