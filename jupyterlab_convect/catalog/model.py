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

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from ..errors import ConvectError
from ..pipeline.plan import Json, Resources, digest_of, to_json

Passing = Literal["value", "file"]
Format = Literal["v1", "graph", "ir"]

MAX_COMPONENTS = 2_000
"""How many components one may hold, all levels together."""


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
class Task:
    component: str
    """A key of the graph's `components`."""
    arguments: Mapping[str, Json] = field(default_factory=dict)
    after: tuple[str, ...] = ()
    unsupported: str | None = None
    """What only Kubeflow can do with it (a condition, a loop), as a sentence."""


@dataclass(frozen=True, slots=True)
class Graph:
    tasks: Mapping[str, Task]
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
    graph: Graph | None = None
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


class Unreadable(ConvectError):
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


NAMED_PLACEHOLDERS = frozenset(
    ("inputValue", "inputPath", "inputUri", "outputPath", "outputUri", "isPresent")
)
