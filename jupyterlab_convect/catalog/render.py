"""From a component and its arguments to the command that runs it, as Kubeflow has it.

Pure: what has to be written before and read afterwards is part of the answer.
Values become text by the rules of the component's format; an input without a
value takes its default, and without one either is left out (optional) or
refused; `isPresent` asks whether there is a value in the end.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..errors import ConvectError
from ..pipeline.component_types import NAMES, from_text, is_of, type_name, value_kind
from ..pipeline.plan import Json
from .model import Component, Container, Format, Input, Output

_ARGO = {
    "{{workflow.uid}}": "run.id",
    "{{workflow.name}}": "run.name",
    "{{pod.name}}": "step.uid",
    "{{tasks.name}}": "step.id",
}
_TRUE = ("y", "yes", "t", "true", "on", "1")
_FALSE = ("n", "no", "f", "false", "off", "0")


@dataclass(frozen=True, slots=True)
class Value:
    value: Json


@dataclass(frozen=True, slots=True)
class File:
    """A file or folder on this machine; `text` is its content where a command wants that."""

    path: str
    text: str | None = None


Argument = Value | File


@dataclass(frozen=True, slots=True)
class Paths:
    """Where the command finds inputs and leaves outputs. The defaults are Kubeflow's own."""

    inputs: str = "/tmp/inputs"  # noqa: S108
    outputs: str = "/tmp/outputs"  # noqa: S108
    in_place: bool = False
    """Whether the command sees a file where it lies, or only under `inputs`."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """Paths are as the command sees them."""

    image: str
    command: tuple[str, ...]
    """What replaces the image's entry point; empty to keep it."""
    args: tuple[str, ...]
    env: Mapping[str, str]
    writes: Mapping[str, str] = field(default_factory=dict)
    """Text to be written to each path before."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Where the file lies that must be seen at each path."""
    reads: Mapping[str, str] = field(default_factory=dict)
    """Where each output is found afterwards."""
    executor_output: str | None = None
    """Where a compiled component may report more about its outputs."""


def render(
    component: Component,
    arguments: Mapping[str, Argument],
    paths: Paths,
    context: Mapping[str, str],
) -> Rendered:
    """A ConvectError names the input that is missing, unknown or of the wrong type."""
    if component.container is None:
        raise ConvectError(f"“{component.name}” has no command of its own.")
    return _Renderer(component, _complete(component, arguments), paths, context).render(
        component.container
    )


def _complete(component: Component, arguments: Mapping[str, Argument]) -> dict[str, Argument]:
    """The arguments with defaults filled in; an input that stays without a value is not there."""
    for name in arguments:
        if component.input(name) is None:
            raise ConvectError(f"“{component.name}” has no input “{name}”.")
    complete: dict[str, Argument] = {}
    for item in component.inputs:
        given = arguments.get(item.name, Value(item.default))
        if isinstance(given, Value):
            if given.value is not None:
                complete[item.name] = Value(_fitting(item, given.value, component.format))
            elif item.required or (not item.optional and item.name in arguments):
                raise ConvectError(f"The input “{item.name}” of “{component.name}” has no value.")
        else:
            complete[item.name] = given
    return complete


def _fitting(item: Input, value: Json, style: Format) -> Json:
    try:
        return fitting(value, item.type, style)
    except ValueError as error:
        raise ConvectError(f"The input “{item.name}” takes {error}.") from None


class CommandWords(ABC):
    """The words of a command with placeholders; `given` are the inputs that have a value."""

    def __init__(self, component: Component, given: Collection[str]) -> None:
        self.component = component
        self.given = given

    def every(self, arguments: Sequence[Json]) -> Iterator[str]:
        for argument in arguments:
            yield from self.one(argument)

    def one(self, argument: Json) -> list[str]:
        """None, one or several words for one argument; none for an input that is not given."""
        if isinstance(argument, str):
            return [self.literal(argument)]
        kind, body = next(iter(argument.items()))
        if kind in ("inputValue", "inputPath", "inputUri"):
            return [self.input(body, kind)] if body in self.given else []
        if kind in ("outputPath", "outputUri"):
            return [self.output(body, kind)]
        if kind == "concat":
            return ["".join(self.every(body))]
        if kind == "if":
            branch = "then" if self.holds(body["cond"]) else "else"
            return list(self.every(body.get(branch, ())))
        return [self.other(kind, body)]

    def holds(self, condition: Json) -> bool:
        if isinstance(condition, bool):
            return condition
        if isinstance(condition, Mapping) and "isPresent" in condition:
            return condition["isPresent"] in self.given
        return self.is_true(condition)

    @abstractmethod
    def literal(self, text: str) -> str: ...
    @abstractmethod
    def input(self, name: str, kind: str) -> str: ...
    @abstractmethod
    def output(self, name: str, kind: str) -> str: ...
    @abstractmethod
    def other(self, kind: str, body: Json) -> str:
        """Any other placeholder."""

    @abstractmethod
    def is_true(self, condition: Json) -> bool:
        """Whether an argument stands for true."""


class _Renderer(CommandWords):
    def __init__(
        self,
        component: Component,
        arguments: Mapping[str, Argument],
        paths: Paths,
        context: Mapping[str, str],
    ) -> None:
        super().__init__(component, arguments)
        self.arguments = arguments
        self.paths = paths
        self.context = context
        self.input_slugs = slugs([item.name for item in component.inputs])
        self.output_slugs = slugs([item.name for item in component.outputs])
        self.writes: dict[str, str] = {}
        self.files: dict[str, str] = {}
        self.reads = {item.name: item.path for item in component.outputs if item.path}
        self.executor_output: str | None = None

    def render(self, container: Container) -> Rendered:
        return Rendered(
            image=container.image,
            command=tuple(self.every(container.command)),
            args=tuple(self.every(container.args)),
            env={name: "".join(self.one(item)) for name, item in container.env.items()},
            writes=self.writes,
            files=self.files,
            reads=self.reads,
            executor_output=self.executor_output,
        )

    def other(self, kind: str, body: Json) -> str:
        if kind == "executorInput":
            return json.dumps(self.executor_input())
        if kind == "executorOutput":
            return self.report()
        if kind == "context":
            return self.context[body]
        if body.get("part") == "artifacts":
            return json.dumps(self.artifacts(body))
        name: str = body.get("input", body.get("output"))
        return name if body.get("part") == "name" else ""

    def artifacts(self, body: Json) -> Json:
        """All artifacts of an input or an output, as a list."""
        name = body.get("output") or body["input"]
        end: Input | Output | None
        if "output" in body:
            end, path = self.component.output(name), self.output(name)
        elif name in self.arguments:
            end, path = self.component.input(name), self.input(name)
        else:
            return []
        return _artifact(name, end.type if end else None, path)["artifacts"]

    def literal(self, text: str) -> str:
        if self.component.format == "ir" or "{{" not in text:
            return text
        for template, name in _ARGO.items():
            text = text.replace(template, self.context[name])
        return text

    def is_true(self, condition: Json) -> bool:
        word = "".join(self.one(condition)).lower()
        if word not in (*_TRUE, *_FALSE, ""):
            raise ConvectError(f"“{word[:40]}” is neither true nor false.")
        return word in _TRUE

    def value(self, name: str) -> str:
        given = self.arguments[name]
        if isinstance(given, Value):
            return to_text(given.value, self.component.format)
        if given.text is None:
            raise ConvectError(
                f"The input “{name}” takes a value, and {given.path} is not a small text file."
            )
        return given.text

    def input(self, name: str, kind: str = "inputPath") -> str:
        if kind == "inputValue":
            return self.value(name)
        given = self.arguments[name]
        if isinstance(given, File):
            if self.paths.in_place:
                return given.path
            path = f"{self.paths.inputs}/{self.input_slugs[name]}/data"
            self.files[path] = given.path
            return path
        text = to_text(given.value, self.component.format)
        if kind == "inputUri" and "://" in text:
            return text
        path = f"{self.paths.inputs}/{self.input_slugs[name]}/data"
        self.writes[path] = text
        return path

    def output(self, name: str, kind: str = "outputPath") -> str:
        path = f"{self.paths.outputs}/{self.output_slugs[name]}/data"
        self.reads.setdefault(name, path)
        return self.reads[name]

    def report(self) -> str:
        self.executor_output = f"{self.paths.outputs}/executor_output.json"
        return self.executor_output

    def executor_input(self) -> Json:
        values: dict[str, Json] = {}
        artifacts: dict[str, Json] = {}
        for item in self.component.inputs:
            given = self.arguments.get(item.name)
            if given is not None and item.passed == "value":
                values[item.name] = (
                    given.value
                    if isinstance(given, Value)
                    else fitting(self.value(item.name), item.type, "ir")
                )
            elif given is not None:
                artifacts[item.name] = _artifact(item.name, item.type, self.input(item.name))
        ends = self.component.outputs
        return {
            "inputs": {"parameterValues": values, "artifacts": artifacts},
            "outputs": {
                "parameters": {
                    item.name: {"outputFile": self.output(item.name)}
                    for item in ends
                    if item.passed == "value"
                },
                "artifacts": {
                    item.name: _artifact(item.name, item.type, self.output(item.name))
                    for item in ends
                    if item.passed == "file"
                },
                "outputFile": self.report(),
            },
        }


def slugs(names: Sequence[str]) -> dict[str, str]:
    """A folder name for each name: plain letters, none twice."""
    found: dict[str, str] = {}
    for name in names:
        slug = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:60].strip("_") or "_"
        number = 2
        while slug in found.values():
            slug = f"{slug}-{number}"
            number += 1
        found[name] = slug
    return found


def _artifact(name: str, kind: Json, path: str) -> Json:
    title = type_name(kind) or "system.Artifact"
    artifact = {"name": name, "type": {"schemaTitle": title}, "uri": path, "metadata": {}}
    return {"artifacts": [artifact]}


def to_text(value: Json, style: Format) -> str:
    """A value as a component gets it: text as it is, else as Python (v1) or JSON (IR) spells it."""
    if isinstance(value, str):
        return value
    if style == "ir":
        if isinstance(value, float) and value.is_integer():
            return str(int(value))
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    if isinstance(value, bool | int | float):
        return str(value)
    return json.dumps(value, sort_keys=True)


def fitting(value: Json, kind: Json, style: Format) -> Json:
    """The value as its type has it; a ValueError says what the type takes instead.

    Text is taken for a value that has been spelled out already: v1 components get it
    as it is, whatever their type, and compiled ones get what it spells.
    """
    wanted = value_kind(kind)
    if wanted in (None, "json"):
        return value
    if isinstance(value, str):
        return from_text(value, kind) if style == "ir" else value
    if wanted == "text":
        return to_text(value, "v1")
    if wanted == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if not is_of(value, wanted):
        raise ValueError(f"{NAMES[wanted]}, not {json.dumps(value)[:40]}")
    return value
