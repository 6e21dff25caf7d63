"""Tasks and DAGs of a pipeline of Kubeflow, and how values and files get from one to another.

A value crosses the border of a DAG as an input or an output of it: `Dag.find` asks outwards and
inwards until it meets who gives the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from ...catalog.model import Component
from ...errors import Refused
from ...pipeline.plan import ForEach, Json
from . import components

ITEM = "each"
"""The input of a loop that holds the item."""
STRING = {"parameterType": "STRING"}
LIST = {"parameterType": "LIST"}
LISTS = ("items", "some")
"""Forms of what a loop goes over."""
FACTS = {"id": "{{$.pipeline_job_uuid}}", "name": "{{$.pipeline_job_name}}"}

Kind = Literal["parameters", "artifacts"]


class Key(NamedTuple):
    """A value or a file, wherever it is needed."""

    kind: Kind
    node: str
    """Empty for an item of a loop."""
    name: str
    form: str = "json"
    """How it is written: `json`, `branch` (the same of a step that may not run), `items` (a list
    of JSON texts), `some` (the same, with one that means nothing if it is empty), or a type of
    Kubeflow."""


@dataclass(frozen=True)
class Channel:
    """A value as the tasks of one DAG can take it."""

    source: dict[str, Json]
    definition: dict[str, Json]
    form: str
    """How to read it: `json`, or a type of Kubeflow."""
    lists: int = 0
    """How many loops it comes out of."""


@dataclass
class Task:
    key: str
    name: str
    parent: Dag | None
    node: str
    """The step or group that it is of."""
    after: tuple[str, ...] = ()
    given: dict[Kind, dict[str, Json]] = field(
        default_factory=lambda: {"parameters": {}, "artifacts": {}}
    )
    inputs: dict[Kind, dict[str, Json]] = field(
        default_factory=lambda: {"parameters": {}, "artifacts": {}}
    )
    outputs: dict[Kind, dict[str, Json]] = field(
        default_factory=lambda: {"parameters": {}, "artifacts": {}}
    )
    settings: dict[str, Json] = field(default_factory=dict)
    taken: dict[Key, tuple[str, Channel]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def take(self, key: Key) -> tuple[str, Channel]:
        """Make it an input of this task; its name there, and what it is."""
        if key not in self.taken:
            assert self.parent is not None
            channel = self.parent.find(key)
            name = self.new_name("-".join(filter(None, (key.node, key.name, short(key.form)))))
            self.given[key.kind][name] = channel.source
            self.inputs[key.kind][name] = channel.definition
            self.taken[key] = name, channel
        return self.taken[key]

    def tell(self, fact: str) -> str:
        """Make a fact of the run an input of this task; its name there."""
        name = f"run-{fact}"
        self.given["parameters"][name] = {"runtimeValue": {"constant": FACTS[fact]}}
        self.inputs["parameters"][name] = STRING
        self.names.add(name)
        return name

    def new_name(self, text: str) -> str:
        name = unique(slug(text), self.names)
        self.names.add(name)
        return name

    def give(self, key: Key) -> tuple[str, Channel]:
        """The output that it is, made when somebody asks first; as the parent sees it."""
        raise NotImplementedError

    def component(self) -> dict[str, Json]:
        return {
            **_definitions("inputDefinitions", self.inputs),
            **_definitions("outputDefinitions", self.outputs),
        }

    def spec(self) -> dict[str, Json]:
        parameters, artifacts = self.given["parameters"], self.given["artifacts"]
        inputs = {
            **({"parameters": parameters} if parameters else {}),
            **({"artifacts": artifacts} if artifacts else {}),
        }
        after = sorted(self.after)
        return {
            "taskInfo": {"name": self.shown_name},
            "componentRef": {"name": self.component_name},
            **({"inputs": inputs} if inputs else {}),
            **({"dependentTasks": after} if after else {}),
            "cachingOptions": {},
            **self.settings,
        }

    @property
    def shown_name(self) -> str:
        return self.name

    @property
    def path(self) -> str:
        above = self.parent.path if self.parent is not None else ""
        return f"{above}/{self.key}" if above else self.key

    @property
    def component_name(self) -> str:
        return "comp-" + self.path.replace("/", "-")


@dataclass
class Dag(Task):
    loop: ForEach | None = None
    tasks: dict[str, Task] = field(default_factory=dict)
    """By the step or group that each is of."""
    given_out: dict[Key, tuple[str, Channel]] = field(default_factory=dict)
    dag_outputs: dict[Kind, dict[str, Json]] = field(
        default_factory=lambda: {"parameters": {}, "artifacts": {}}
    )

    @property
    def path(self) -> str:
        return "" if self.parent is None else super().path

    @property
    def shown_name(self) -> str:
        """Kubeflow looks for the outputs of a loop by this name, and not by its key."""
        return self.name if self.loop is None else self.key

    def find(self, key: Key) -> Channel:
        """What its tasks take it from."""
        if not key.node and self.loop is not None and self.loop.name == key.name:
            return Channel({"componentInputParameter": ITEM}, STRING, "json")
        child = self.holding(key.node) if key.node else None
        if child is None:
            if self.parent is None:
                raise Refused(f"Nothing produces “{key.name}”.", code="not-on-kfp")
            name, channel = self.take(key)
            place = "Parameter" if key.kind == "parameters" else "Artifact"
            return replace(channel, source={f"componentInput{place}": name})
        output, channel = child.give(key)
        if key.kind == "parameters":
            told = {"producerTask": child.key, "outputParameterKey": output}
            return replace(channel, source={"taskOutputParameter": told})
        told = {"producerTask": child.key, "outputArtifactKey": output}
        return replace(channel, source={"taskOutputArtifact": told})

    def holding(self, node: str) -> Task | None:
        """Its task that is the node, or has it inside."""
        for task in self.tasks.values():
            if task.node == node and not isinstance(task, Dag):
                return task
            if isinstance(task, Dag) and task.holding(node) is not None:
                return task
        return None

    def give(self, key: Key) -> tuple[str, Channel]:
        if key not in self.given_out:
            if self.loop is not None and key.kind == "artifacts":
                raise Refused(
                    f"A file that “{key.node}” makes in a loop cannot leave the loop on Kubeflow "
                    "Pipelines.",
                    code="not-on-kfp",
                    hint="Put the node that needs it into the loop.",
                )
            if self.loop is not None and key.form in LISTS:
                key = key._replace(form="json")
            child = self.holding(key.node)
            assert child is not None
            inner, channel = child.give(key)
            taken = {kind: set(self.outputs[kind]) for kind in self.outputs}
            name = unique(slug(f"{key.node}-{key.name}"), taken[key.kind])
            if self.loop is not None:
                if channel.lists:
                    raise Refused(
                        f"The output “{key.name}” of “{key.node}” comes out of two loops, one in "
                        "the other, which Kubeflow Pipelines cannot collect.",
                        code="not-on-kfp",
                    )
                channel = replace(channel, definition=LIST, lists=1)
            self.outputs[key.kind][name] = channel.definition
            if key.kind == "parameters":
                told = {"producerSubtask": child.key, "outputParameterKey": inner}
                self.dag_outputs["parameters"][name] = {"valueFromParameter": told}
            else:
                told = {"producerSubtask": child.key, "outputArtifactKey": inner}
                self.dag_outputs["artifacts"][name] = {"artifactSelectors": [told]}
            self.given_out[key] = name, channel
        return self.given_out[key]

    def component(self) -> dict[str, Json]:
        tasks = {task.key: task.spec() for task in self.tasks.values()}
        outputs = {kind: named for kind, named in self.dag_outputs.items() if named}
        dag = {"tasks": tasks, **({"outputs": outputs} if outputs else {})}
        return {"dag": dag, **super().component()}


@dataclass
class FilesTask(Task):
    """The first task: it leaves the runner and the files of all steps for them."""

    def give(self, key: Key) -> tuple[str, Channel]:
        return key.name, Channel({}, self.outputs["artifacts"][key.name], "file")


@dataclass
class ClaimTask(Task):
    """Makes a volume claim, or deletes one. Kubeflow does so itself, by the name of the image."""

    def give(self, key: Key) -> tuple[str, Channel]:
        return key.name, Channel({}, STRING, "STRING")


@dataclass
class ResultsTask(Task):
    """Tells what a component gives, which does not tell it itself."""


@dataclass
class RunnerTask(Task):
    """A step that our runner executes."""

    given_out: dict[tuple[str, str], str] = field(default_factory=dict)

    def give(self, key: Key) -> tuple[str, Channel]:
        if key.kind == "artifacts":
            definition = self.outputs["artifacts"][key.name]
            return key.name, Channel({}, definition, "file")
        known = self.given_out.get((key.name, key.form))
        if known is None:
            text = f"{key.name}-{short(key.form)}" if key.form != "json" else key.name
            known = unique(slug(text), set(self.outputs["parameters"]))
            self.given_out[key.name, key.form] = known
            types = {"json": "STRING", "branch": "STRING", **dict.fromkeys(LISTS, "LIST")}
            kind = types.get(key.form, key.form)
            self.outputs["parameters"][known] = {"parameterType": kind}
        definition = self.outputs["parameters"][known]
        return known, Channel({}, definition, "json" if key.form in LISTS else key.form)


@dataclass
class ComponentTask(Task):
    """A step that is a component of a catalog, which Kubeflow runs as it is."""

    what: Component = field(default_factory=lambda: Component("", "ir"))
    ends: components.Ends = field(default_factory=lambda: components.Ends({}, {}))

    def give(self, key: Key) -> tuple[str, Channel]:
        name = key.name
        output = self.what.output(name)
        if output is None:
            raise Refused(f"“{self.node}” has no output “{name}”.", code="not-on-kfp")
        kind, definition = components.definition(output)
        if kind != key.kind:
            raise Refused(
                f"The output “{name}” of “{self.node}” is a file, and what needs it takes a value."
                if kind == "artifacts"
                else f"The output “{name}” of “{self.node}” is a value, and what needs it takes a "
                "file.",
                code="not-on-kfp",
            )
        if key.form in LISTS:
            raise Refused(
                f"Kubeflow Pipelines does not know the type of the items that “{self.node}” gives.",
                code="not-on-kfp",
                hint="Loop over a list that a notebook or a script gives.",
            )
        form = definition.get("parameterType", "file")
        if key.form not in ("json", form, "STRING"):
            raise Refused(
                f"The output “{name}” of “{self.node}” is of type {form}, and what needs it takes "
                f"{key.form}.",
                code="not-on-kfp",
            )
        return self.ends.outputs[name], Channel({}, definition, form)


def all_tasks(dag: Dag) -> Iterator[Task]:
    for task in dag.tasks.values():
        yield task
        if isinstance(task, Dag):
            yield from all_tasks(task)


def is_in(task: Task, dag: Dag) -> bool:
    inside: Task | None = task
    while inside is not None and inside is not dag:
        inside = inside.parent
    return inside is not None


def loops_alone(dag: Task) -> bool:
    """Whether all that it repeats is one step of ours, which knows when there is nothing to do."""
    inside = list(dag.tasks.values()) if isinstance(dag, Dag) else []
    return len(inside) == 1 and isinstance(inside[0], RunnerTask)


def _definitions(name: str, ends: Mapping[Kind, Mapping[str, Json]]) -> dict[str, Json]:
    found = {kind: dict(sorted(named.items())) for kind, named in ends.items() if named}
    return {name: found} if found else {}


def unique_names(names: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in names:
        found[name] = unique(slug(name).replace("-", "_"), set(found.values()))
    return found


def slug(text: str) -> str:
    """A name that Kubeflow and Kubernetes take."""
    found = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].strip("-")
    return found if found and found[0].isalpha() else f"n-{found}".strip("-")


def unique(name: str, taken: Iterable[str]) -> str:
    known, found, number = set(taken), name, 2
    while found in known:
        found, number = f"{name}-{number}", number + 1
    return found


def short(form: str) -> str:
    return "" if form == "json" else form.lower().replace("_", "-")
