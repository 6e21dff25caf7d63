"""Compiled pipelines (Kubeflow's second format): one component, or a graph of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..pipeline.plan import Amount, Gpu, Json, Resources
from .model import (
    MAX_COMPONENTS,
    Component,
    ComponentGraph,
    Container,
    GraphTask,
    Input,
    Output,
    placeholders,
)
from .v1 import refuse_cycles, upstream
from .yaml_text import MAX_DEPTH, At

PLACEHOLDER = re.compile(r"\{\{\$([^{}]*)\}\}")
_LONGEST = 500
_NAMED = re.compile(
    r"\.(inputs|outputs)\.(parameters|artifacts)\[(?:'|\")(.+?)(?:'|\")\](?:\.(\w+))?"
    r"(?:\[(?:'|\")?(.+?)(?:'|\")?\])?$"
)
_CONTEXT = {
    ".pipeline_job_name": "run.name",
    ".pipeline_job_resource_name": "run.name",
    ".pipeline_job_uuid": "run.id",
    ".pipeline_task_name": "step.id",
    ".pipeline_task_uuid": "step.uid",
    ".pipeline_root": "root",
    ".pipeline_job_create_time_utc": "time",
    ".pipeline_job_schedule_time_utc": "time",
    ".workspace_path": "root",
}
_OUTPUT_FILES = (".outputs.output_file", ".outputMetadataUri", ".outputs.output_metadata_uri")


def is_compiled(document: At) -> bool:
    return isinstance(document.value, dict) and (
        "pipelineInfo" in document.value or "pipelineSpec" in document.value
    )


def is_platforms(document: At) -> bool:
    return isinstance(document.value, dict) and set(document.value) == {"platforms"}


def read_compiled(document: At, name: str, platforms: At | None = None) -> Component:
    """The pipeline, with what `platforms` (a document of its own) asks for each component."""
    if "pipelineSpec" in document.value:
        document = document.need("pipelineSpec", "The job").mapping("“pipelineSpec”")
    return _Spec(document, _settings(platforms) if platforms else {}).component(name)


def _settings(platforms: At) -> Mapping[str, Json]:
    """What each executor asks of Kubernetes."""
    found: At | None = platforms
    for key in ("platforms", "kubernetes", "deploymentSpec", "executors"):
        found = found.get(key) if found else None
    return {key: item.value for key, item in found.items("“executors”")} if found else {}


class _Spec:
    def __init__(self, document: At, settings: Mapping[str, Json]) -> None:
        self.document = document
        self.settings = settings
        deployment = document.get("deploymentSpec")
        executors = deployment.get("executors") if deployment else None
        self.executors = dict(executors.items("“executors”")) if executors else {}
        components = document.get("components")
        self.components = dict(components.items("“components”")) if components else {}
        self.open: list[str] = []
        self.done: dict[str, tuple[Component, int]] = {}
        """Each component that has been read, and how many it holds when unfolded."""

    def component(self, name: str) -> Component:
        info = self.document.need("pipelineInfo", "The pipeline").mapping("“pipelineInfo”")
        named, described = info.get("name"), info.get("description")
        root = self.document.need("root", "The pipeline").mapping("“root”")
        whole = self.read(root, named.text("The name") if named else name)
        if described:
            whole = replace(whole, description=described.scalar("The description"))
        return _single(whole) or whole

    def read(self, spec: At, name: str) -> Component:
        component = Component(
            name=name,
            format="ir",
            inputs=tuple(_inputs(spec)),
            outputs=tuple(_outputs(spec)),
        )
        dag = spec.get("dag")
        if dag is not None:
            return replace(component, graph=self.graph(dag, component))
        label = spec.need("executorLabel", f"The component “{name}”")
        executor = self.executors.get(label.text("The executor"))
        if executor is None:
            raise label.fail(f"There is no executor “{label.value}”.")
        importer = executor.get("importer")
        if importer is not None:
            return replace(component, importer=importer.mapping("“importer”").value)
        container = executor.need("container", "The executor").mapping("“container”")
        return replace(
            component,
            container=read_executor(container, component),
            platforms=self.settings.get(label.value),
        )

    def graph(self, dag: At, owner: Component) -> ComponentGraph:
        listed = dict(dag.need("tasks", "“dag”").items("“tasks”"))
        used: dict[str, Component] = {}
        keys: dict[str, str] = {}
        for key, task in listed.items():
            named = task.need("componentRef", "A task").need("name", "“componentRef”")
            keys[key] = named.text("The name of the component")
            if keys[key] not in used:
                used[keys[key]] = self.named(named)
        inputs = {item.name for item in owner.inputs}
        reader = _TaskArguments(inputs, {key: used[keys[key]] for key in listed})
        tasks = {key: reader.task(key, item, keys[key]) for key, item in listed.items()}
        refuse_cycles(dag, tasks)
        outputs = dag.get("outputs")
        given = dict(reader.outputs(outputs)) if outputs else {}
        return ComponentGraph(tasks=tasks, outputs=given, components=used)

    def named(self, item: At) -> Component:
        name = item.value
        if name not in self.components:
            raise item.fail(f"There is no component “{name}”.")
        if name in self.open:
            raise item.fail(f"The component “{name}” contains itself.")
        if len(self.open) > MAX_DEPTH // 4:
            raise item.fail("Components are nested too deeply.")
        if name not in self.done:
            self.open.append(name)
            component = self.read(self.components[name], name.removeprefix("comp-"))
            self.open.pop()
            inner = component.graph.components if component.graph else {}
            size = 1 + sum(self.done[key][1] for key in inner)
            if size > MAX_COMPONENTS:
                raise item.fail(f"It expands to more than {MAX_COMPONENTS} components.")
            self.done[name] = (component, size)
        return self.done[name][0]


def _inputs(spec: At) -> Iterator[Input]:
    for kind, name, item in _definitions(spec, "inputDefinitions"):
        default = item.get("defaultValue")
        described = item.get("description")
        yield Input(
            name=name,
            type=_type(item, kind),
            description=described.scalar("The description") if described else "",
            default=default.value if default else None,
            optional=item.value.get("isOptional") is True,
            passed="file" if kind == "artifacts" else "value",
        )


def _outputs(spec: At) -> Iterator[Output]:
    for kind, name, item in _definitions(spec, "outputDefinitions"):
        described = item.get("description")
        yield Output(
            name=name,
            type=_type(item, kind),
            description=described.scalar("The description") if described else "",
            passed="file" if kind == "artifacts" else "value",
        )


def _definitions(spec: At, key: str) -> Iterator[tuple[str, str, At]]:
    definitions = spec.get(key)
    for kind in ("parameters", "artifacts"):
        named = definitions.mapping(f"“{key}”").get(kind) if definitions else None
        for name, item in named.items(f"“{kind}”") if named else ():
            yield kind, name, item.mapping("A definition")


def _type(item: At, kind: str) -> Json:
    if kind == "parameters":
        found = item.get("parameterType") or item.get("type")
        return found.text("The type") if found else None
    described = item.get("artifactType")
    title = None
    if described:
        described.mapping("“artifactType”")
        title = described.get("schemaTitle") or described.get("instanceSchema")
    name = title.text("The type") if title else "system.Artifact"
    return {"list": name} if item.value.get("isArtifactList") is True else name


class _TaskArguments:
    """Reads what tasks are given, inside one dag."""

    def __init__(self, inputs: set[str], components: Mapping[str, Component]) -> None:
        self.inputs = inputs
        self.components = components

    def task(self, key: str, task: At, component: str) -> GraphTask:
        given = task.get("inputs")
        raw: dict[str, At] = {}
        for kind in ("parameters", "artifacts"):
            named = given.mapping("“inputs”").get(kind) if given else None
            raw.update(named.items(f"“{kind}”") if named else ())
        ends = {item.name for item in self.components[key].inputs}
        arguments = {name: self.argument(item, raw) for name, item in raw.items() if name in ends}
        for needed in self.components[key].inputs:
            if (
                needed.required
                and needed.name not in arguments
                and not _iterated(task, needed.name)
            ):
                raise task.fail(f"The task “{key}” gives no value to “{needed.name}”.")
        after = {*_names(task, "dependentTasks"), *upstream(arguments.values())}
        for name in sorted(after):
            if name not in self.components:
                raise task.fail(f"There is no task “{name}”.")
        return GraphTask(component, arguments, tuple(sorted(after)), _unsupported(key, task))

    def outputs(self, outputs: At) -> Iterator[tuple[str, Json]]:
        for kind in ("parameters", "artifacts"):
            named = outputs.mapping("“outputs”").get(kind)
            for name, item in named.items(f"“{kind}”") if named else ():
                yield name, self.output(item)

    def output(self, item: At) -> Json:
        selector = item.get("valueFromParameter")
        if selector is None:
            selectors = item.get("artifactSelectors")
            several = list(selectors.each("“artifactSelectors”")) if selectors else []
            selector = several[0] if len(several) == 1 else None
        if selector is None:
            return {"unsupported": "It is one of several outputs, known only when it runs."}
        producer = selector.need("producerSubtask", "The output").text("The task")
        key = selector.get("outputParameterKey") or selector.get("outputArtifactKey")
        if key is None:
            raise selector.fail("The output has no key.")
        return self.task_output(selector, producer, key.text("The key"))

    def argument(self, item: At, raw: Mapping[str, At], depth: int = 0) -> Json:
        item.mapping("An argument")
        if item.get("parameterExpressionSelector"):
            return {"unsupported": "It takes a part of an output by an expression."}
        for key in ("componentInputParameter", "componentInputArtifact"):
            found = item.get(key)
            if found:
                name = found.text("The name of the input")
                if name not in self.inputs:
                    raise found.fail(f"There is no input “{name}”.")
                return {"graphInput": name}
        for key, output in (
            ("taskOutputParameter", "outputParameterKey"),
            ("taskOutputArtifact", "outputArtifactKey"),
        ):
            found = item.get(key)
            if found:
                producer = found.need("producerTask", "“taskOutput…”").text("The task")
                return self.task_output(found, producer, found.need(output, key).text("The key"))
        if item.get("taskFinalStatus"):
            return {"unsupported": "It takes the final state of another task."}
        value = item.get("runtimeValue")
        if value is None:
            raise item.fail("An argument has no value.")
        constant = value.mapping("“runtimeValue”").value.get("constant")
        return self.constant(constant, item, raw, depth)

    def constant(self, value: Json, item: At, raw: Mapping[str, At], depth: int) -> Json:
        """A constant may quote other inputs of its task; they are put in their places here."""
        if not isinstance(value, str) or not PLACEHOLDER.search(value) or depth > 4:
            return {"constant": value}
        parts = joined(value, item)
        found: list[Any] = []
        for part in parts["concat"] if isinstance(parts, dict) and "concat" in parts else [parts]:
            if isinstance(part, str):
                found.append({"constant": part})
            elif "inputValue" in part and part["inputValue"] in raw:
                found.append(self.argument(raw[part["inputValue"]], raw, depth + 1))
            elif "context" in part:
                found.append(part)
            else:
                raise item.fail("A constant quotes an input that the task does not have.")
        return found[0] if len(found) == 1 else {"concat": found}

    def task_output(self, item: At, task: str, output: str) -> Json:
        if task not in self.components:
            raise item.fail(f"There is no task “{task}”.")
        if self.components[task].output(output) is None:
            raise item.fail(f"The task “{task}” has no output “{output}”.")
        return {"taskOutput": {"task": task, "output": output}}


def _unsupported(key: str, task: At) -> str | None:
    trigger = task.get("triggerPolicy")
    if trigger and trigger.mapping("“triggerPolicy”").get("condition"):
        return f"The task “{key}” has a condition."
    if trigger and trigger.value.get("strategy") not in (None, "ALL_UPSTREAM_TASKS_SUCCEEDED"):
        return f"The task “{key}” runs when others have ended, whatever their outcome."
    if task.get("parameterIterator") or task.get("artifactIterator"):
        return f"The task “{key}” is a loop."
    return None


def _iterated(task: At, name: str) -> bool:
    iterator = task.get("parameterIterator") or task.get("artifactIterator")
    return iterator is not None and iterator.value.get("itemInput") == name


def _names(task: At, key: str) -> list[str]:
    listed = task.get(key)
    return [item.text("The name of a task") for item in listed.each(f"“{key}”")] if listed else []


def _single(whole: Component) -> Component | None:
    """A pipeline of one component with the same ends is that component."""
    graph = whole.graph
    if graph is None or len(graph.tasks) != 1:
        return None
    key, task = next(iter(graph.tasks.items()))
    inner = graph.components[task.component]
    straight = (
        inner.container is not None
        and task.unsupported is None
        and task.arguments == {item.name: {"graphInput": item.name} for item in whole.inputs}
        and {item.name for item in inner.inputs} == {item.name for item in whole.inputs}
        and graph.outputs
        == {item.name: {"taskOutput": {"task": key, "output": item.name}} for item in inner.outputs}
    )
    if not straight:
        return None
    return replace(
        whole,
        graph=None,
        container=inner.container,
        outputs=inner.outputs,
        platforms=inner.platforms,
    )


def read_executor(container: At, component: Component) -> Container:
    env = container.get("env")
    variables = {}
    for item in env.each("“env”") if env else ():
        value = item.get("value")
        key = item.need("name", "A variable").text("The name of a variable")
        variables[key] = _argument(value) if value else ""
    command = tuple(_arguments(container, "command"))
    args = tuple(_arguments(container, "args"))
    inputs = {item.name for item in component.inputs}
    outputs = {item.name for item in component.outputs}
    for kind, name in placeholders([command, args, *variables.values()]):
        if name not in (outputs if kind.startswith("output") else inputs):
            raise container.fail(f"The command names “{name}”, which is neither input nor output.")
    return Container(
        image=container.need("image", "The container").text("The image"),
        command=command,
        args=args,
        env=variables,
        resources=_resources(container.get("resources")),
    )


def _arguments(container: At, key: str) -> Iterator[Json]:
    listed = container.get(key)
    for item in listed.each(f"“{key}”") if listed else ():
        yield _argument(item)


def _argument(item: At) -> Json:
    text = item.scalar("An argument")
    if text.startswith(('{"Concat":', '{"IfPresent":')):
        try:
            return _structure(json.loads(text), item)
        except (ValueError, RecursionError):
            raise item.fail("A placeholder in the command is not JSON.") from None
    return joined(text, item)


def _structure(value: Json, item: At) -> Json:
    if isinstance(value, str):
        return joined(value, item)
    if isinstance(value, dict) and isinstance(value.get("Concat"), list):
        return {"concat": [_structure(part, item) for part in value["Concat"]]}
    if isinstance(value, dict) and isinstance(value.get("IfPresent"), dict):
        body = value["IfPresent"]
        if isinstance(body.get("InputName"), str):
            choice = {
                "cond": {"isPresent": body["InputName"]},
                "then": _branch(body.get("Then"), item),
            }
            if body.get("Else") is not None:
                choice["else"] = _branch(body["Else"], item)
            return {"if": choice}
    raise item.fail("A placeholder in the command cannot be understood.")


def _branch(value: Json, item: At) -> list[Json]:
    return [_structure(part, item) for part in (value if isinstance(value, list) else [value])]


def joined(text: str, item: At) -> Json:
    """Text with placeholders in it as one argument."""
    parts: list[Json] = []
    end = 0
    for match in PLACEHOLDER.finditer(text):
        if match.start() > end:
            parts.append(text[end : match.start()])
        parts.append(_placeholder(match.group(1), item))
        end = match.end()
    if end < len(text) or not parts:
        parts.append(text[end:])
    return parts[0] if len(parts) == 1 else {"concat": parts}


def _placeholder(body: str, item: At) -> Json:
    if body == "" or body.startswith(".json_escape"):
        return {"executorInput": True}
    if body in _OUTPUT_FILES:
        return {"executorOutput": True}
    if body in _CONTEXT:
        return {"context": _CONTEXT[body]}
    match = _NAMED.match(body) if len(body) <= _LONGEST else None
    if match:
        side, kind, name, part, key = match.groups()
        if kind == "parameters":
            return {"inputValue" if side == "inputs" else "outputPath": name}
        if part in ("path", "uri"):
            return {f"{side[:-1]}{part.capitalize()}": name}
        if part in ("metadata", "name", "value"):
            return {"metadata": {side[:-1]: name, "part": part, **({"key": key} if key else {})}}
        if part is None and key is None:
            return {"metadata": {side[:-1]: name, "part": "artifacts"}}
    raise item.fail(f"“{{{{${body}}}}}” is not a known placeholder.")


def _resources(item: At | None) -> Resources:
    if item is None:
        return Resources()
    item.mapping("“resources”")
    gpu = item.get("accelerator")
    return Resources(
        cpu=_amount(item, "cpu"),
        memory=_amount(item, "memory", unit="G"),
        gpu=_gpu(gpu) if gpu else None,
    )


def _amount(item: At, name: str, unit: str = "") -> Amount | None:
    """Quantities are text under a newer key, plain numbers (of gigabytes) under an older one."""

    def text(kind: str) -> str | None:
        written = item.get(f"resource{name.capitalize()}{kind}")
        number = item.get(f"{name}{kind}")
        if written:
            return written.scalar("A quantity")
        return number.scalar("A quantity") + unit if number else None

    request, limit = text("Request"), text("Limit")
    return Amount(request, limit) if request or limit else None


def _gpu(item: At) -> Gpu | None:
    item.mapping("“accelerator”")
    count = item.get("resourceCount") or item.get("count")
    kind = item.get("resourceType") or item.get("type")
    try:
        number = float(count.scalar("The count")) if count else 1.0
    except ValueError:
        return None
    return Gpu(number, resource=kind.text("The type") if kind else None)
