"""Graph components of the first format: tasks that refer to other components.

References are followed by the caller: `references` says which there are,
`read_graph` puts the graph together from what they led to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ..pipeline.component_types import value_kind
from ..pipeline.graph import cycles, way
from ..pipeline.plan import Json
from .model import Component, Graph, Task, Unreadable
from .text import At
from .v1 import read_interface

MAX_TASKS = 2_000


@dataclass(frozen=True, slots=True)
class Reference:
    """Where a task's component is, and the sha256 its text must have (None: whatever is there)."""

    url: str
    digest: str | None = None


def tasks_of(graph: At) -> list[tuple[str, At]]:
    tasks = list(graph.need("tasks", "The graph").items("“tasks”"))
    if len(tasks) > MAX_TASKS:
        raise graph.fail(f"The graph has more than {MAX_TASKS} tasks.")
    return tasks


def inline_spec(task: At) -> At | None:
    """The component that a task brings along instead of referring to it."""
    reference = task.get("componentRef")
    return (
        (reference.get("spec") if reference else None)
        or task.get("componentSpec")
        or task.get("spec")
    )


def reference_of(task: At) -> Reference:
    reference = task.need("componentRef", "A task").mapping("“componentRef”")
    url = reference.get("url")
    if url is None:
        raise reference.fail(
            "The reference has no “url”, so there is nowhere to read the component from."
        )
    digest = reference.get("digest")
    return Reference(
        url.text("The url"),
        digest.text("The digest").lower().removeprefix("sha256:") if digest else None,
    )


def read_graph(document: At, graph: At, name: str, found: Mapping[str, Component]) -> Component:
    """The component with its graph; `found` has the component of each task."""
    component = replace(read_interface(document, name), format="graph")
    components = {item.digest: item for item in found.values()}
    reader = _Arguments({item.name for item in component.inputs}, found)
    tasks = {key: reader.task(key, item) for key, item in tasks_of(graph)}
    refuse_cycles(graph, tasks)
    values = graph.get("outputValues")
    outputs = {}
    for key, item in values.items("“outputValues”") if values else ():
        if component.output(key) is None:
            raise item.fail(f"“outputValues” names “{key}”, which is not an output.")
        outputs[key] = reader.argument(item)
    for output in component.outputs:
        if output.name not in outputs:
            raise graph.fail(f"Nothing gives the output “{output.name}” its value.")
    passed = _passed_as_file(tasks, components)
    return replace(
        component,
        inputs=tuple(
            replace(item, passed="file" if item.name in passed else "value")
            for item in component.inputs
        ),
        outputs=tuple(
            replace(item, passed="value" if value_kind(item.type) else "file")
            for item in component.outputs
        ),
        graph=Graph(tasks=tasks, outputs=outputs, components=components),
    )


class _Arguments:
    def __init__(self, inputs: set[str], found: Mapping[str, Component]) -> None:
        self.inputs = inputs
        self.found = found

    def task(self, key: str, task: At) -> Task:
        component = self.found[key]
        arguments = {}
        given = task.get("arguments")
        for name, item in given.items("“arguments”") if given else ():
            if component.input(name) is None:
                raise item.fail(f"“{component.name}” has no input “{name}”.")
            arguments[name] = self.argument(item)
        for needed in component.inputs:
            if needed.required and needed.name not in arguments:
                raise task.fail(f"The task “{key}” gives no value to “{needed.name}”.")
        enabled = task.get("isEnabled")
        unsupported = f"The task “{key}” has a condition." if enabled else None
        after = tuple(sorted(upstream(arguments.values())))
        return Task(component.digest, arguments, after, unsupported)

    def argument(self, item: At) -> Json:
        if not isinstance(item.value, dict):
            return {"constant": item.value}
        if set(item.value) == {"graphInput"}:
            return {"graphInput": self.graph_input(item.under("graphInput"))}
        if set(item.value) == {"taskOutput"}:
            return {"taskOutput": self.task_output(item.under("taskOutput"))}
        if set(item.value) == {"constantValue"}:
            return {"constant": item.value["constantValue"]}
        raise item.fail("An argument must be a constant, “graphInput” or “taskOutput”.")

    def graph_input(self, item: At) -> str:
        named = item.need("inputName", "“graphInput”") if isinstance(item.value, dict) else item
        name = named.text("The name of the input")
        if name not in self.inputs:
            raise named.fail(f"The graph has no input “{name}”.")
        return name

    def task_output(self, item: At) -> Json:
        task = item.need("taskId", "“taskOutput”")
        output = item.need("outputName", "“taskOutput”")
        key, name = task.text("The task"), output.text("The output")
        if key not in self.found:
            raise task.fail(f"There is no task “{key}”.")
        if self.found[key].output(name) is None:
            raise output.fail(f"The task “{key}” has no output “{name}”.")
        return {"task": key, "output": name}


def upstream(arguments: Iterable[Json]) -> set[str]:
    """The tasks whose outputs arguments take."""
    found: set[str] = set()
    for argument in arguments:
        if "taskOutput" in argument:
            found.add(argument["taskOutput"]["task"])
        found |= upstream(argument.get("concat", ()))
    return found


def refuse_cycles(graph: At, tasks: Mapping[str, Task]) -> None:
    for cycle in cycles({key: task.after for key, task in tasks.items()}):
        raise graph.fail(f"The tasks wait for each other: {way(cycle)}.")


def _passed_as_file(tasks: Mapping[str, Task], components: Mapping[str, Component]) -> set[str]:
    """The graph's inputs that some task takes as a file."""
    found = set()
    for task in tasks.values():
        for name, argument in task.arguments.items():
            end = components[task.component].input(name)
            if "graphInput" in argument and end is not None and end.passed == "file":
                found.add(argument["graphInput"])
    return found


def check_digest(data_digest: str, reference: Reference, file: str) -> None:
    if reference.digest is not None and data_digest.removeprefix("sha256:") != reference.digest:
        raise Unreadable(
            file,
            0,
            f"What is at {reference.url} is not what the graph was made with: "
            f"its digest is {data_digest[:19]}… and not sha256:{reference.digest[:12]}….",
        )
