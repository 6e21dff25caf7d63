"""A plan as a pipeline of Kubeflow: its IR and its platform spec, as data.

Each group with a rule becomes a DAG of its own, and so does a loop around a single step.

Kubeflow has types where we have JSON. A step of ours gives every value as JSON text, so that
each keeps its type, and besides as the type that a component or a loop needs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ... import __version__
from ...catalog.model import Component, component_from_json
from ...errors import ConvectError, Refused
from ...pipeline.claims import run_claims
from ...pipeline.expressions import (
    Constant,
    Expression,
    First,
    Reference,
    parse,
    parse_one,
    references,
    texts,
)
from ...pipeline.plan import ForEach, Group, Json, Plan, Step, Volume, to_json
from ...pipeline.problems import Path, Problem
from ...pipeline.resolve import raise_first_error
from . import components, executor
from .argo_nodes import CLAIM, EACH, FILES, RESULTS, Place
from .conditions import Inexpressible, condition, guards, is_branch
from .dags import (
    FACTS,
    ITEM,
    LISTS,
    STRING,
    Channel,
    ClaimTask,
    ComponentTask,
    Dag,
    FilesTask,
    Key,
    Kind,
    ResultsTask,
    RunnerTask,
    Task,
    all_tasks,
    is_in,
    slug,
    unique,
    unique_names,
)
from .executor import TaskDefaults
from .payload import (
    BUNDLE,
    RunPayload,
    Sources,
    bundle_command,
    folder_of,
    inline_bundle,
    results_command,
    step_command,
)
from .scopes import BRANCH, units, with_scopes
from .task import NO_ITEM

SCHEMA_VERSION = "2.1.0"
LARGEST_TASK = 120_000
"""Bytes of a task's container, which the driver gets as one argument of a program."""
REST_OF_TASK = 2_000
"""Bytes of it that are not its files."""
LARGEST = 1_000_000
"""Bytes of the state of a run, which the cluster keeps as one object."""
BUNDLE_TYPE: dict[str, Json] = {
    "artifactType": {"schemaTitle": "system.Artifact", "schemaVersion": "0.0.1"}
}
COPIES, PER_TASK = 4, 4_000
"""How often what a task is told is in that state while it runs, and bytes of it besides."""


@dataclass(frozen=True)
class Compiled:
    pipeline_spec: dict[str, Json]
    platform_spec: dict[str, Json]
    places: Mapping[str, Place]
    """Where the task of each step is."""

    @property
    def spec(self) -> Json:
        """Both in one, as the server takes them."""
        if not self.platform_spec:
            return self.pipeline_spec
        return {"pipeline_spec": self.pipeline_spec, "platform_spec": self.platform_spec}


def compile_plan(plan: Plan, sources: Sources, defaults: TaskDefaults) -> Compiled:
    """Refused with the first thing that Kubeflow cannot do."""
    compiled, problems = examine(plan, sources, defaults)
    raise_first_error(problems)
    assert compiled is not None
    return compiled


def examine(
    plan: Plan, sources: Sources, defaults: TaskDefaults, home: RunPayload | None = None
) -> tuple[Compiled | None, list[Problem]]:
    """The pipeline, unless something keeps it from being one; and all that there is to say.

    With `home` it is for one run, whose results come back.
    """
    compiler = _Compiler(plan, sources, defaults, home)
    compiler.run()
    problems = sorted(compiler.problems, key=lambda problem: problem.severity != "error")
    if any(problem.severity == "error" for problem in problems):
        return None, problems
    compiled = compiler.compiled()
    size = compiler.size()
    if size > LARGEST:
        sentence = (
            f"The pipeline is too large for Kubeflow Pipelines: {size / 1e6:.1f} MB of at most "
            f"{LARGEST / 1e6:g} MB."
        )
        hint = "Split it into several pipelines, or give its loops fewer items."
        return None, [Problem("error", "too-large", sentence, hint=hint), *problems]
    return compiled, problems


class _Compiler:
    def __init__(
        self, plan: Plan, sources: Sources, defaults: TaskDefaults, home: RunPayload | None
    ) -> None:
        self.plan = with_scopes(plan)
        self.sources = sources
        self.defaults = defaults
        self.home = home
        self.problems: list[Problem] = []
        self.root = Dag("root", plan.name, None, "")
        self.dags: dict[str | None, Dag] = {None: self.root}
        self.executors: dict[str, Json] = {}
        self.platforms: dict[str, Json] = {}
        self.groups = {group.id: group for group in self.plan.groups}
        self.files: FilesTask | RunnerTask | None = None
        """The task that leaves the files: one for that alone, or the first step."""
        self.bundle: list[str] = []
        """What it executes for that."""
        self.plan_units: dict[str, Step | Group] = {unit.id: unit for unit in units(self.plan)}
        self.exits = self._exits()
        self.claims = run_claims(plan.steps)

    def refuse(self, node: str | None, path: Path, sentence: str, hint: str | None = None) -> None:
        owner = node.partition(" ")[0] if node else None
        self.problems.append(Problem("error", "not-on-kfp", sentence, owner, path, hint))

    def run(self) -> None:
        if self.claims:
            self._add_claims()
        if self.exits:
            _, main, last = self._with_end(self.dags[None], "whole", "exit-handler-1", "finally")
            self.dags[None], self.dags[""] = main, last
        for group in self.plan.groups:
            self._add_group(group)
        tasks = [(step, self._add_step(step)) for step in self.plan.steps]
        results = [
            (step, self._add_results(step, task))
            for step, task in tasks
            if self.home is not None and isinstance(task, ComponentTask) and task.what.outputs
        ]
        if any(isinstance(task, RunnerTask | ResultsTask) for task in all_tasks(self.root)):
            self._add_files(tasks)
        for group in self.plan.groups:
            self._rules(self.dags[group.id], group)
        for step, task in tasks:
            self._rules(task, step)
            self.problems += executor.refusals(step, self.defaults)
            if self.home is not None:
                self._results_come_home(step)
            try:
                if isinstance(task, ComponentTask):
                    self._component(task, step)
                else:
                    self._runner(task, step)
            except ConvectError as error:
                self.refuse(step.id, (), error.sentence, error.hint)
        for step, task in tasks:
            if isinstance(task, RunnerTask) and not self._is_refused(step.id):
                self._finish(task, step)
        for step, task in results:
            if not self._is_refused(step.id):
                self._finish_results(task, step)
        if isinstance(self.files, FilesTask):
            self._finish_files(self.files)

    def compiled(self) -> Compiled:
        found: dict[str, Json] = {}
        places: dict[str, Place] = {}
        for task in all_tasks(self.root):
            found[task.component_name] = task.component()
            if not isinstance(task, Dag):
                found[task.component_name]["executorLabel"] = _executor(task)
            if not isinstance(task, Dag):
                places[task.node] = self._place(task)
        spec = {
            "pipelineInfo": {"name": slug(self.plan.name)},
            "schemaVersion": SCHEMA_VERSION,
            "sdkVersion": f"jupyterlab-convect-{__version__}",
            "components": dict(sorted(found.items())),
            "deploymentSpec": {"executors": dict(sorted(self.executors.items()))},
            "root": self.root.component(),
        }
        settings = {"executors": dict(sorted(self.platforms.items()))}
        platform = {"platforms": {"kubernetes": {"deploymentSpec": settings}}}
        return Compiled(spec, platform if self.platforms else {}, places)

    def size(self) -> int:
        """Bytes that a run will need, as far as it is known how often its tasks run."""
        total = 0
        for task in all_tasks(self.root):
            times, inside = 1, task.parent
            while inside is not None:
                items = inside.loop.items if inside.loop is not None else None
                times *= len(items) if isinstance(items, list) else 1
                inside = inside.parent
            told = json.dumps(self.executors.get(_executor(task), ""))
            total += len(told) + (COPIES * len(told) + PER_TASK) * times
        return total

    def _place(self, task: Task) -> Place:
        above: Place = ()
        if task.parent is not None and task.parent is not self.root:
            above = self._place(task.parent)
        if "" in self.dags and task is self.dags[""]:
            above = (*above, self.dags[None].key, "onExit")
        return (*above, task.key, *([EACH] if isinstance(task, Dag) and task.loop else []))

    def _results_come_home(self, step: Step) -> None:
        """What is different for a run whose results come back."""
        if step.cache and (step.group is not None or step.when is not None):
            sentence = (
                f"“{step.name}” is executed again: on Kubeflow Pipelines, no result is reused in a "
                "group, in a loop or under a condition."
            )
            self.problems.append(Problem("info", "not-reused", sentence, step.id, ("cache",)))

    def _is_refused(self, step: str) -> bool:
        owner = step.partition(" ")[0]
        return any(item.node == owner and item.severity == "error" for item in self.problems)

    def _exits(self) -> set[str]:
        """What runs at the end, whatever became of the rest; and what comes after that."""
        found: set[str] = set()
        for unit in units(self.plan):
            before = set(unit.after)
            if unit.run_if == "failed":
                self.refuse(
                    unit.id,
                    ("run_if",),
                    "Kubeflow Pipelines cannot run a node only after a failure.",
                    "Use “always”, and look at what is there.",
                )
            if unit.run_if == "always" and before:
                if unit.group is not None:
                    self.refuse(
                        unit.id,
                        ("run_if",),
                        "On Kubeflow Pipelines only a node that is in no group can run always.",
                    )
                    continue
                if before & found:
                    self.refuse(
                        unit.id,
                        ("run_if",),
                        "On Kubeflow Pipelines a node that runs always cannot come after another "
                        "one that does.",
                    )
                found.add(unit.id)
            elif before & found:
                found.add(unit.id)
                if before - found:
                    self.refuse(
                        unit.id,
                        ("after",),
                        "On Kubeflow Pipelines a node that comes after one that runs always must "
                        "not wait for others.",
                    )
        return found

    def _with_end(self, parent: Dag, whole: str, main: str, last: str) -> tuple[Dag, Dag, Dag]:
        """A DAG with one inside, and another one that starts when that has ended, however.

        What runs at the end must not wait for another task of its own DAG, and still needs the
        files: those are left before the DAG around both.
        """
        around = self._dag(parent, whole, self.plan.name)
        inside = self._dag(around, main, self.plan.name)
        end = self._dag(around, last, last)
        end.after = (inside.key,)
        end.settings["triggerPolicy"] = {"strategy": "ALL_UPSTREAM_TASKS_COMPLETED"}
        return around, inside, end

    def _add_claims(self) -> None:
        """Volume claims are made before everything else, and deleted after it."""
        around, self.dags[None], end = self._with_end(
            self.root, "volumes", "with volumes", "delete volumes"
        )
        for name, volume in self.claims.items():
            node = CLAIM + name
            make = ClaimTask(self._key(f"make-{name}"), f"make {name}", self.root, node)
            for key, (kind, value) in executor.new_claim(volume).items():
                make.inputs["parameters"][key] = {"parameterType": kind}
                make.given["parameters"][key] = {"runtimeValue": {"constant": value}}
            make.outputs["parameters"]["name"] = STRING
            self.root.tasks[node] = make
            self.executors[_executor(make)] = {"container": {"image": "argostub/createpvc"}}
            around.after = (*around.after, make.key)
            ended = f"{node} deleted"
            delete = ClaimTask(self._key(f"delete-{name}"), f"delete {name}", end, ended)
            delete.inputs["parameters"]["pvc_name"] = STRING
            delete.given["parameters"]["pvc_name"] = end.find(_name_of(name)).source
            end.tasks[ended] = delete
            self.executors[_executor(delete)] = {"container": {"image": "argostub/deletepvc"}}

    def _dag(self, parent: Dag, node: str, name: str) -> Dag:
        dag = Dag(self._key(node), name, parent, node)
        parent.tasks[node] = dag
        return dag

    def _key(self, node: str) -> str:
        """Kubeflow looks tasks up by their key alone, in whatever DAG they are."""
        return unique(slug(node), {task.key for task in all_tasks(self.root)})

    def _home(self, unit: Step | Group) -> Dag:
        if unit.group is None and unit.id in self.exits:
            return self.dags[""]
        return self.dags[unit.group]

    def _add_group(self, group: Group) -> None:
        dag = self._dag(self._home(group), group.id, group.name)
        dag.loop = group.for_each
        self.dags[group.id] = dag

    def _add_step(self, step: Step) -> Task:
        home = self._home(step)
        key = self._key(step.id)
        task: Task
        if step.kind == "component":
            what = component_from_json(self.plan.components[step.component or ""])
            ends = components.Ends(
                unique_names(item.name for item in what.inputs),
                unique_names(item.name for item in what.outputs),
            )
            task = ComponentTask(key, step.name, home, step.id, what=what, ends=ends)
            for output in what.outputs:
                kind, definition = components.definition(output)
                task.outputs["parameters" if kind == "parameters" else "artifacts"][
                    ends.outputs[output.name]
                ] = definition
            task.names |= set(ends.inputs.values())
        else:
            task = RunnerTask(key, step.name, home, step.id)
            kinds = {"files": "system.Artifact", "metrics": "system.Metrics"}
            if step.kind == "notebook":
                kinds |= {"notebook": "system.Artifact", "html": "system.HTML"}
            for name, title in kinds.items():
                task.outputs["artifacts"][name] = {
                    "artifactType": {"schemaTitle": title, "schemaVersion": "0.0.1"}
                }
        task.settings = executor.task_settings(step)
        if self.home:  # What is taken from the cache has no log that would bring it back.
            task.settings["cachingOptions"] = {}
        home.tasks[step.id] = task
        return task

    def _add_files(self, tasks: Sequence[tuple[Step, Task]]) -> None:
        ours = [step for step in self.plan.steps if step.kind != "component"]
        try:
            room = LARGEST_TASK - REST_OF_TASK
            self.bundle = bundle_command(ours, self.sources, self.home, room)
        except ConvectError as error:
            self.refuse(None, (), error.sentence, error.hint)
            return
        first = self._first(tasks)
        if first is not None:
            if len(self.plan.steps) > 1:
                first.outputs["artifacts"][BUNDLE] = BUNDLE_TYPE
            self.files = first
            return
        task = FilesTask(self._key("files"), "files", self.root, FILES)
        task.outputs["artifacts"][BUNDLE] = BUNDLE_TYPE
        # The same files are left once, however often they are run.
        task.settings = {"cachingOptions": {"enableCache": True}}
        self.root.tasks[task.node] = self.files = task

    def _first(self, tasks: Sequence[tuple[Step, Task]]) -> RunnerTask | None:
        """The step of a run before all others, if it has room for the files: a task less."""
        if self.home is None or self.exits:
            return None
        top = [unit for unit in units(self.plan) if unit.group is None]
        word = inline_bundle(self.bundle)
        for step, task in tasks:
            if not isinstance(task, RunnerTask) or step.group or step.after or step.when:
                continue
            after = {step.id}
            for unit in top:
                after |= {unit.id} if after & set(unit.after) else set()
            form = json.dumps(self.home.form)
            told = len(json.dumps(to_json(step)) + form) * 4 // 3 + 2 * REST_OF_TASK
            if len(after) == len(top) and word and len(word) + told < LARGEST_TASK:
                return task
        return None

    def _files_of(self, task: Task) -> str:
        """The name of the input that has the files; empty for who has them itself."""
        if self.files is None or task is self.files:
            return ""
        return task.take(Key("artifacts", self.files.node, BUNDLE))[0]

    def _add_results(self, step: Step, task: ComponentTask) -> ResultsTask:
        assert task.parent is not None
        node = f"{step.id} {RESULTS}"
        found = ResultsTask(self._key(node), f"{step.name}: {RESULTS}", task.parent, node)
        task.parent.tasks[node] = found
        return found

    def _finish_results(self, task: ResultsTask, step: Step) -> None:
        """It takes all that the component gives, and tells it."""
        owner = self._home(step).tasks[step.id]
        assert isinstance(owner, ComponentTask)
        outputs = []
        for output in owner.what.outputs:
            kind, _ = components.definition(output)
            where: Kind = "parameters" if kind == "parameters" else "artifacts"
            name, channel = task.take(Key(where, step.id, output.name))
            spec = {"kind": _reading(channel), "lists": 0, "words": ""}
            outputs.append({"name": output.name, "input": name, "spec": spec})
        helper = self._helper(task.node)
        if not helper.image:
            self.problems.append(_no_image(step))
            return
        assert self.home is not None
        words = results_command(outputs, self._files_of(task), self.home)
        container = {"image": helper.image, "command": words[:3], "args": words[3:]}
        self._add_executor(task, helper, container)

    def _helper(self, node: str) -> Step:
        """A task of ours that is no step: in the image of steps that name none, or in one's own."""
        ours = [step for step in self.plan.steps if step.kind != "component"]
        if self.defaults.image or not ours:
            return Step(node, "command", self.plan.name, image=self.defaults.image)
        first = next((step for step in ours if step.image), ours[0])
        return Step(
            node,
            "command",
            self.plan.name,
            image=first.image,
            pull_policy=first.pull_policy,
            kubernetes=replace(first.kubernetes, labels={}, annotations={}),
        )

    def _finish_files(self, task: FilesTask) -> None:
        helper = self._helper(task.node)
        if not helper.image:
            return  # That is said of the step.
        words = self.bundle
        container = {"image": helper.image, "command": words[:3], "args": words[3:]}
        self._add_executor(task, helper, container)

    def _rules(self, task: Task, unit: Step | Group) -> None:
        """What it waits for, whether it runs, and how often."""
        assert task.parent is not None
        siblings = task.parent.tasks
        task.after = tuple(siblings[name].key for name in unit.after if name in siblings)
        self._branches(unit)
        self._condition(task, unit)
        if unit.for_each is not None:
            self._loop(task, unit, unit.for_each)

    def _branches(self, unit: Step | Group) -> None:
        """What `first(…)` chooses from has to be something that Kubeflow can do without."""
        hint = "Put what comes after a branch into the branch."
        for name in filter(self._may_be_skipped, unit.weak):
            branch, step = self.plan_units[name], self.plan_units.get(name.partition(" ")[0])
            if not name.endswith(BRANCH) or not isinstance(step, Step) or step.kind == "component":
                words = (
                    f"On Kubeflow Pipelines first(…) cannot do without “{branch.name}”: it chooses "
                    "between notebooks, scripts and commands with a condition."
                )
                self.refuse(unit.id, (), words, hint)
            elif any(map(self._may_be_skipped, set(branch.after) - set(branch.weak))):
                words = (
                    f"On Kubeflow Pipelines first(…) cannot do without “{branch.name}”, because "
                    "what that waits for may be skipped too."
                )
                self.refuse(unit.id, (), words, hint)
        for name in set(unit.after) - set(unit.weak):
            if name.endswith(BRANCH):
                words = (
                    f"On Kubeflow Pipelines no node can need “{self.plan_units[name].name}”, which "
                    "first(…) does without elsewhere."
                )
                self.refuse(unit.id, (), words, hint)

    def _may_be_skipped(self, name: str) -> bool:
        """Whether a rule may skip it, or something that it cannot do without."""
        unit = self.plan_units[name]
        is_asked = unit.when is not None or name.endswith(BRANCH)
        return is_asked or any(map(self._may_be_skipped, set(unit.after) - set(unit.weak)))

    def _condition(self, task: Task, unit: Step | Group) -> None:
        """When it runs: as it says itself, and when each `first(…)` of it finds a value."""
        asked = unit.when
        expression = Constant(asked) if isinstance(asked, bool) else parse_one(asked)
        given = list(_computed(unit)) if isinstance(unit, Step) else []
        if expression is None and not given:
            return

        def take(reference: Reference, form: str) -> tuple[str, Channel]:
            taken, channel = self._take(task, reference, form)
            if channel.lists:
                raise Inexpressible("a list that a loop has collected")
            return f"inputs.parameter_values[{json.dumps(taken)}]", channel

        def name(reference: Reference) -> str:
            value, channel = take(reference, "json")
            return f"parseJson({value})" if channel.form == "json" else value

        def option(reference: Reference) -> str:
            return take(reference, "branch")[0]

        try:
            wanted = [] if expression is None else [expression]
            words = [word for each in (*wanted, *given) for word in guards(each, option)]
            words += [condition(each, name, option) for each in wanted]
            if words:
                task.settings["triggerPolicy"] = {"condition": " && ".join(words)}
        except Inexpressible as error:
            self.refuse(
                unit.id, ("when",), f"A condition of Kubeflow Pipelines cannot have {error}."
            )
        except ConvectError as error:
            self.refuse(unit.id, ("when",), error.sentence, error.hint)

    def _loop(self, task: Task, unit: Step | Group, loop: ForEach) -> None:
        task.inputs["parameters"][ITEM] = STRING
        task.names.add(ITEM)
        if loop.parallel is not None:
            task.settings["iteratorPolicy"] = {"parallelismLimit": loop.parallel}
        items: dict[str, Json]
        is_one = _loops_alone(task)
        if isinstance(loop.items, list):
            words = [json.dumps(item) for item in loop.items] or [NO_ITEM] * is_one
            items = {"raw": json.dumps(words)}
        else:
            expression = parse_one(loop.items)
            try:
                if not isinstance(expression, Reference):
                    raise Refused("On Kubeflow Pipelines a loop goes over one output.")
                name, _ = self._take(task, expression, "some" if is_one else "items")
                items = {"inputParameter": name}
            except ConvectError as error:
                self.refuse(unit.id, ("for_each", "in"), error.sentence, error.hint)
                return
        task.settings["parameterIterator"] = {"itemInput": ITEM, "items": items}

    def _take(self, task: Task, reference: Reference, form: str = "json") -> tuple[str, Channel]:
        """The value of a reference as an input of a task."""
        if reference.kind == "run":
            return task.tell(reference.name), Channel({}, STRING, "STRING")
        if reference.kind == "each":
            if form in LISTS:
                raise Refused("On Kubeflow Pipelines an item that is a list cannot be looped over.")
            return task.take(Key("parameters", "", reference.name))
        if reference.of == "state":
            raise Refused("Kubeflow Pipelines does not tell a node the state of another.")
        node, name = self._origin(reference)
        if self._crosses_exit(task, node):
            raise Refused(
                "On Kubeflow Pipelines a node that runs always cannot use outputs of others."
            )
        holder = self.root.holding(node)
        while isinstance(holder, Dag):
            holder = holder.holding(node)
        if isinstance(holder, ComponentTask) and form == "json":
            output = holder.what.output(name)
            if output is not None and output.passed == "file":
                return task.take(Key("artifacts", node, name))
        return task.take(Key("parameters", node, name, form))

    def _origin(self, reference: Reference) -> tuple[str, str]:
        """The step whose output it is: that of an inner pipeline is one of its nodes'."""
        node, name = reference.node or "", reference.name
        while node in self.groups:
            if name not in self.groups[node].outputs:
                raise Refused(f"“{node}” has no output “{name}”.")
            inner = parse_one(self.groups[node].outputs[name])
            if not isinstance(inner, Reference) or inner.kind != "nodes" or inner.of == "state":
                raise Refused(
                    f"The output “{name}” of “{node}” is computed, which Kubeflow Pipelines cannot "
                    "do."
                )
            node, name = inner.node or "", inner.name
        return node, name

    def _crosses_exit(self, task: Task, node: str) -> bool:
        last = self.dags.get("")
        if last is None:
            return False
        return is_in(task, last) != (last.holding(node) is not None)

    def _runner(self, task: Task, step: Step) -> None:
        """What a step of ours is given."""
        assert isinstance(task, RunnerTask)
        is_told = self.home.run if self.home is not None else step.cache
        for fact in () if is_told else FACTS:
            task.tell(fact)  # What differs from run to run would keep it from being reused.
        for property_name, value in _bound(step):
            for reference, form in _references(value):
                try:
                    self._take(task, reference, form)
                except ConvectError as error:
                    self.refuse(step.id, property_name, error.sentence, error.hint)
        if task.parent is not None and task.parent.loop is not None and _loops_alone(task.parent):
            task.take(Key("parameters", "", task.parent.loop.name))  # It may be none.
        for before in self._before(task):
            task.take(Key("artifacts", before, "files"))
        self._files_of(task)

    def _before(self, task: Task) -> Iterator[str]:
        """The steps of ours that a step comes after, whose files it sees."""
        wanted: set[str] = set()
        inside: Task | None = task
        while inside is not None and inside.parent is not None:
            left = list(inside.after)
            siblings = {each.key: each for each in inside.parent.tasks.values()}
            seen: set[str] = set()
            while left:
                key = left.pop()
                if key not in seen and key in siblings:
                    seen.add(key)
                    left += siblings[key].after
                    wanted.add(siblings[key].node)
            inside = inside.parent
        for step in self.plan.steps:
            home = self._home(step).tasks.get(step.id)
            if isinstance(home, RunnerTask) and step.id in wanted:
                yield step.id
            elif step.outputs and isinstance(home, RunnerTask):
                group = step.group
                while group is not None and group not in wanted:
                    group = self.groups[group].group
                if group is not None:
                    self.refuse(
                        task.node,
                        (),
                        f"The files that “{step.name}” makes inside a group cannot leave it on "
                        "Kubeflow Pipelines.",
                        "Put the node that needs them into the group.",
                    )

    def _finish(self, task: RunnerTask, step: Step) -> None:
        """The container, when it is known what others ask of the step."""
        image = step.image or self.defaults.image
        if not image:
            self.problems.append(_no_image(step))
            return
        inputs = {
            name: {
                "kind": _reading(channel),
                "lists": channel.lists,
                "words": f"Node “{key.node}” produced no output “{key.name}”.",
            }
            for key, (name, channel) in task.taken.items()
        }
        told = {f"run-{fact}": {"kind": "plain", "lists": 0, "words": ""} for fact in FACTS}
        bind = {
            "inputs": {**told, **inputs},
            "files": [
                [name, folder_of(self.plan.step(key.node))]
                for key, (name, _) in task.taken.items()
                if key.kind == "artifacts" and key.name == "files" and " " not in key.node
            ],
            "values": {
                "parameters": self._template(task, dict(step.parameters)),
                "env": self._template(task, dict(step.env)),
                "command": self._template(task, list(step.command)),
            },
            "outputs": [
                {"name": name, "kind": form, "key": key}
                for (name, form), key in task.given_out.items()
            ],
        }
        is_first = task is self.files
        words = step_command(
            step,
            bind,
            self._files_of(task),
            self.home,
            bundle_word=(inline_bundle(self.bundle) or "") if is_first else "",
            hands_on=is_first and BUNDLE in task.outputs["artifacts"],
        )
        env = [{"name": "CONVECT_SECRETS", "value": ",".join(item.env for item in step.secrets)}]
        self._add_executor(
            task,
            step,
            {
                "image": image,
                "command": words[:3],
                "args": words[3:],
                **({"env": env} if step.secrets else {}),
            },
        )

    def _add_executor(self, task: Task, step: Step, container: dict[str, Json]) -> None:
        amounts = executor.resources(step)
        container |= {"resources": amounts} if amounts else {}
        size = len(json.dumps(container))
        if size > LARGEST_TASK:
            self.refuse(
                None if isinstance(task, FilesTask) else step.id,
                (),
                f"The files of {step.name} are too large to be a part of the pipeline: "
                f"{size / 1000:.0f} kB of at most {LARGEST_TASK / 1000:g} kB.",
                "Configure an object store in c.ObjectStore, or put them on a volume and name that "
                "in `volumes`.",
            )
        self.executors[_executor(task)] = {"container": container}
        assert task.parent is not None
        claims = {
            volume.claim: task.parent.find(_name_of(volume.claim)).source
            for volume in step.volumes
            if volume.size is not None
        }
        if self.home is not None and self.home.keep and not isinstance(task, ComponentTask):
            step = replace(step, volumes=(*step.volumes, *self._shared(step)))
        settings = executor.platform(step, self.defaults, claims)
        if settings:
            self.platforms[_executor(task)] = settings

    def _shared(self, step: Step) -> Iterator[Volume]:
        for volume in self.defaults.volumes:
            known = [each for each in step.volumes if each.claim == volume.claim]
            if not known:
                yield volume
            elif known[0].path != volume.path:
                self.refuse(
                    step.id,
                    ("volumes",),
                    f"Kubeflow Pipelines mounts a volume once per node, and “{volume.claim}” is "
                    "there already.",
                )

    def _template(self, task: Task, value: Json) -> Json:
        """A value with inputs of the task in place of expressions."""
        if isinstance(value, str):
            parts = [
                ["value", part] if isinstance(part, str) else self._input(task, part)
                for part in parse(value)
            ]
            if len(parts) == 1:
                return parts[0]
            return ["text", parts] if parts else ["value", value]
        if isinstance(value, Mapping):
            return ["object", {key: self._template(task, item) for key, item in value.items()}]
        if isinstance(value, list | tuple):
            return ["list", [self._template(task, item) for item in value]]
        return ["value", value]

    def _input(self, task: Task, expression: Expression, form: str = "json") -> Json:
        if isinstance(expression, Constant):
            return ["value", expression.value]
        if isinstance(expression, First):
            return ["first", [self._input(task, *each) for each in _options(expression)]]
        assert isinstance(expression, Reference)
        if expression.kind == "run" and self.home is not None and self.home.run:
            return ["value", self.home.run[expression.name]]
        name, _ = self._take(task, expression, form)
        return ["input", name, list(expression.fields)]

    def _component(self, task: ComponentTask, step: Step) -> None:
        what, container = task.what, task.what.container
        if container is None:
            raise Refused(f"“{what.name}” has no command of its own.")
        for output in what.outputs:
            if output.path:
                raise Refused(
                    f"“{what.name}” writes its output “{output.name}” to a fixed path, where "
                    "Kubeflow Pipelines does not look."
                )
        given: set[str] = set()
        for item in what.inputs:
            kind, definition = components.definition(item)
            name = task.ends.inputs[item.name]
            value = step.parameters.get(item.name, item.default)
            if value is None:
                continue
            given.add(item.name)
            path = ("inputs", item.name)
            try:
                self._argument(task, what, item.name, value)
            except ConvectError as error:
                self.refuse(step.id, path, error.sentence, error.hint)
            where: Kind = "parameters" if kind == "parameters" else "artifacts"
            task.inputs[where][name] = definition

        def ask(fact: str) -> str:
            return task.tell(fact.removeprefix("run."))

        def words(arguments: Sequence[Json]) -> list[str]:
            return components.words(what, arguments, given, task.ends, ask)

        env = {name: "".join(words([item])) for name, item in container.env.items()}
        for name, text in step.env.items():
            if any(True for _ in references(text)):
                self.refuse(
                    step.id,
                    ("env", name),
                    "On Kubeflow Pipelines variables of a component cannot hold expressions.",
                )
            env[name] = text
        self._add_executor(
            task,
            step,
            {
                "image": step.image or container.image,
                "command": words(container.command),
                "args": words(container.args),
                **(
                    {"env": [{"name": name, "value": text} for name, text in sorted(env.items())]}
                    if env
                    else {}
                ),
            },
        )

    def _argument(self, task: ComponentTask, what: Component, name: str, value: Json) -> None:
        item, key = what.input(name), task.ends.inputs[name]
        assert item is not None
        kind = components.definition(item)[0]
        expression = parse_one(value)
        if isinstance(expression, Reference):
            if kind == "artifacts":
                node, output = self._origin(expression)
                taken, _ = task.take(Key("artifacts", node, output))
                task.given["artifacts"][key] = task.given["artifacts"].pop(taken)
                task.inputs["artifacts"].pop(taken)
                return
            taken, channel = self._take(task, expression, components.parameter_type(item))
            if channel.lists or expression.fields or channel.definition == {}:
                raise Refused("Kubeflow Pipelines cannot give a component what a loop collects.")
            task.given["parameters"][key] = task.given["parameters"].pop(taken)
            task.inputs["parameters"].pop(taken)
            return
        if expression is not None or any(True for _ in references(value)):
            raise Refused(
                "On Kubeflow Pipelines an input of a component is one output, or a value."
            )
        if kind == "artifacts":
            raise Refused(
                f"On Kubeflow Pipelines the input “{name}” takes a file that another node makes."
            )
        told = components.constant(what, item, value)
        task.given["parameters"][key] = {"runtimeValue": {"constant": told}}


def _loops_alone(dag: Task) -> bool:
    """Whether all that it repeats is one step of ours, which knows when there is nothing to do."""
    inside = list(dag.tasks.values()) if isinstance(dag, Dag) else []
    return len(inside) == 1 and isinstance(inside[0], RunnerTask)


def _no_image(step: Step) -> Problem:
    hint = "Set `image`, for the step or in the pipeline's defaults."
    return Problem("error", "no-image", f"{step.name} has no image.", step.id, (), hint)


def _name_of(claim: str) -> Key:
    """What the task tells that makes a volume claim."""
    return Key("parameters", CLAIM + claim, "name", "STRING")


def _executor(task: Task) -> str:
    return task.component_name.replace("comp-", "exec-", 1)


def _bound(step: Step) -> Iterator[tuple[Path, Json]]:
    """The properties of a step in which expressions are bound when it starts."""
    yield from ((("parameters", name), value) for name, value in step.parameters.items())
    yield from ((("env", name), value) for name, value in step.env.items())
    yield from ((("command", index), value) for index, value in enumerate(step.command))


def _references(value: Json) -> Iterator[tuple[Reference, str]]:
    """The references in a value, and in which form each is needed. Refused when an expression
    computes something."""
    if isinstance(value, str):
        for part in parse(value):
            for option, form in _options(part) if isinstance(part, First) else [(part, "json")]:
                if isinstance(option, Reference):
                    yield option, form
                elif not isinstance(option, str | Constant):
                    raise Refused("On Kubeflow Pipelines only conditions can compute something.")
    elif isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _references(item)


def _options(first: First) -> Iterator[tuple[Expression, str]]:
    """Of what `first(…)` chooses from, each with the form that it is needed in."""
    return ((option, "branch" if is_branch(option) else "json") for option in first.options)


def _computed(step: Step) -> Iterator[Expression]:
    """The expressions in what a step is given, as far as they choose."""
    for _, value in _bound(step):
        for _, text in texts(value):
            yield from (part for part in parse(text) if isinstance(part, First))


def _reading(channel: Channel) -> str:
    words = {"NUMBER_INTEGER": "integer", "NUMBER_DOUBLE": "number"}
    if "artifactType" in channel.definition:
        return "file"
    form = channel.form
    return form if form in ("json", "branch", "file") else words.get(form, "plain")
