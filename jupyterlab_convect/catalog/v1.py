"""Component specs of the first format: one container with placeholders in its command."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ..pipeline.component_types import value_kind
from ..pipeline.cycles import cycles, way
from ..pipeline.plan import Json
from ..pipeline.problems import did_you_mean
from .model import (
    Component,
    ComponentGraph,
    Container,
    GraphTask,
    Input,
    Output,
    UnreadableComponent,
    placeholders,
)
from .yaml_text import At

_PLACEHOLDERS = ("inputValue", "inputPath", "inputUri", "outputPath", "outputUri")
MAX_TASKS = 2_000


def read_container(document: At, container: At, name: str) -> Component:
    """A component whose `implementation` is a container; `name` serves when it has none."""
    component = read_interface(document, name)
    reader = _Commands(
        inputs={item.name for item in component.inputs},
        outputs={item.name for item in component.outputs},
    )
    image = container.need("image", "The container").text("The image")
    command = tuple(reader.arguments(container.get("command"), "The command"))
    args = tuple(reader.arguments(container.get("args"), "“args”"))
    env = {key: reader.argument(item) for key, item in _items(container.get("env"), "“env”")}
    used = set(placeholders([command, args, *env.values()]))
    return replace(
        component,
        inputs=tuple(_with_passing(item, used) for item in component.inputs),
        outputs=tuple(_with_paths(component.outputs, container)),
        container=Container(image=image, command=command, args=args, env=env),
    )


def read_interface(document: At, name: str) -> Component:
    """Name, description, inputs and outputs, which graph components have as well."""
    metadata = document.get("metadata")
    named = document.get("name")
    return Component(
        name=named.text("The name") if named else name,
        format="v1",
        description=_text(document.get("description"), "The description"),
        inputs=tuple(_inputs(document)),
        outputs=tuple(_outputs(document)),
        annotations=_plain(metadata, "annotations"),
        labels=_plain(metadata, "labels"),
    )


def _inputs(document: At) -> Iterator[Input]:
    for item, name in _ends(document, "inputs", "input"):
        optional = item.get("optional")
        default = item.get("default")
        yield Input(
            name=name,
            type=_type(item),
            description=_text(item.get("description"), "The description"),
            default=_default(default, _type(item)) if default else None,
            optional=_truth(optional) if optional else False,
        )


def _default(item: At, kind: Json) -> Json:
    """Text is kept as it was written: `1.10` is not `1.1`."""
    plain = not isinstance(item.value, dict | list)
    return item.scalar("The default") if plain and value_kind(kind) == "text" else item.value


def _outputs(document: At) -> Iterator[Output]:
    for item, name in _ends(document, "outputs", "output"):
        kind = _type(item)
        yield Output(
            name=name,
            type=kind,
            description=_text(item.get("description"), "The description"),
            passed="value" if value_kind(kind) else "file",
        )


def _ends(document: At, key: str, what: str) -> Iterator[tuple[At, str]]:
    listed = document.get(key)
    seen: set[str] = set()
    for item in listed.each(f"“{key}”") if listed else ():
        name = item.need("name", f"An {what}")
        text = name.text(f"The name of an {what}")
        if text in seen:
            raise name.fail(f"Two {what}s are called “{text}”.")
        seen.add(text)
        yield item, text


def _type(item: At) -> Json:
    kind = item.get("type")
    if kind is None:
        return None
    if not isinstance(kind.value, str | dict | list):
        raise kind.fail("A type must be a word, a mapping or a list.")
    return kind.value


def _truth(item: At) -> bool:
    if isinstance(item.value, bool):
        return item.value
    if isinstance(item.value, str) and item.value.lower() in ("true", "false"):
        return item.value.lower() == "true"
    raise item.fail("“optional” must be true or false.")


def _with_passing(item: Input, used: set[tuple[str, str]]) -> Input:
    as_file = ("inputPath", item.name) in used or ("inputUri", item.name) in used
    return replace(item, passed="file" if as_file else "value")


def _with_paths(outputs: tuple[Output, ...], container: At) -> Iterator[Output]:
    paths = dict(_items(container.get("fileOutputs"), "“fileOutputs”"))
    for output in outputs:
        path = paths.pop(output.name, None)
        yield replace(output, path=path.text("The path of an output")) if path else output
    for name, path in paths.items():
        raise path.fail(f"“fileOutputs” names “{name}”, which is not an output.")


class _Commands:
    """Reads the arguments of a command and makes sure that they name what is there."""

    def __init__(self, inputs: set[str], outputs: set[str]) -> None:
        self.inputs = inputs
        self.outputs = outputs

    def arguments(self, listed: At | None, what: str) -> Iterator[Json]:
        if listed is None:
            return
        if isinstance(listed.value, list):
            for item in listed.each(what):
                if item.value is not None:
                    yield self.argument(item)
        else:
            yield self.argument(listed)

    def argument(self, item: At) -> Json:
        if not isinstance(item.value, dict):
            return item.scalar("An argument")
        if len(item.value) != 1:
            raise item.fail("A placeholder must have exactly one key.")
        key = next(iter(item.value))
        body = item.under(key)
        if key in _PLACEHOLDERS:
            return {key: self.name(body, key)}
        if key == "concat":
            return {key: list(self.arguments(body, "“concat”"))}
        if key == "if":
            return {key: self.choice(body)}
        if key == "executorInput":
            return {key: True}
        known = (*_PLACEHOLDERS, "concat", "if", "executorInput")
        raise item.fail(f"“{key}” is not a placeholder.", did_you_mean(key, known))

    def choice(self, body: At) -> Json:
        otherwise = body.get("else")
        return {
            "cond": self.condition(body.need("cond", "“if”")),
            "then": list(self.arguments(body.need("then", "“if”"), "“then”")),
            **({"else": list(self.arguments(otherwise, "“else”"))} if otherwise else {}),
        }

    def condition(self, item: At) -> Json:
        if isinstance(item.value, bool):
            return item.value
        if isinstance(item.value, dict) and set(item.value) == {"isPresent"}:
            return {"isPresent": self.name(item.under("isPresent"), "isPresent")}
        return self.argument(item)

    def name(self, item: At, kind: str) -> str:
        name = item.text(f"The name in “{kind}”")
        known = self.outputs if kind.startswith("output") else self.inputs
        if name not in known:
            what = "output" if kind.startswith("output") else "input"
            words = f"“{kind}” names “{name}”, which is not an {what}."
            raise item.fail(words, did_you_mean(name, known))
        return name


def _items(mapping: At | None, what: str) -> Iterator[tuple[str, At]]:
    return mapping.items(what) if mapping else iter(())


def _text(item: At | None, what: str) -> str:
    return item.scalar(what) if item else ""


def _plain(metadata: At | None, key: str) -> Json:
    found = metadata.mapping("“metadata”").get(key) if metadata else None
    return found.mapping(f"“{key}”").value if found else {}


@dataclass(frozen=True, slots=True)
class ComponentReference:
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


def reference_of(task: At) -> ComponentReference:
    reference = task.need("componentRef", "A task").mapping("“componentRef”")
    url = reference.get("url")
    if url is None:
        raise reference.fail(
            "The reference has no “url”, so there is nowhere to read the component from."
        )
    digest = reference.get("digest")
    return ComponentReference(
        url.text("The url"),
        digest.text("The digest").lower().removeprefix("sha256:") if digest else None,
    )


def read_graph(document: At, graph: At, name: str, found: Mapping[str, Component]) -> Component:
    """The component with its graph; `found` has the component of each task."""
    component = replace(read_interface(document, name), format="graph")
    components = {item.digest: item for item in found.values()}
    reader = _GraphArguments({item.name for item in component.inputs}, found)
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
            raise graph.fail(f"Nothing sets the output “{output.name}” its value.")
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
        graph=ComponentGraph(tasks=tasks, outputs=outputs, components=components),
    )


class _GraphArguments:
    def __init__(self, inputs: set[str], found: Mapping[str, Component]) -> None:
        self.inputs = inputs
        self.found = found

    def task(self, key: str, task: At) -> GraphTask:
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
        return GraphTask(component.digest, arguments, after, unsupported)

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


def refuse_cycles(graph: At, tasks: Mapping[str, GraphTask]) -> None:
    for cycle in cycles({key: task.after for key, task in tasks.items()}):
        raise graph.fail(f"The tasks wait for each other: {way(cycle)}.")


def _passed_as_file(
    tasks: Mapping[str, GraphTask], components: Mapping[str, Component]
) -> set[str]:
    """The graph's inputs that some task takes as a file."""
    found = set()
    for task in tasks.values():
        for name, argument in task.arguments.items():
            end = components[task.component].input(name)
            if "graphInput" in argument and end is not None and end.passed == "file":
                found.add(argument["graphInput"])
    return found


def check_digest(data_digest: str, reference: ComponentReference, file: str) -> None:
    if reference.digest is not None and data_digest.removeprefix("sha256:") != reference.digest:
        raise UnreadableComponent(
            file,
            0,
            f"What is at {reference.url} is not what the graph was made with: "
            f"its digest is {data_digest[:19]}… and not sha256:{reference.digest[:12]}….",
        )
