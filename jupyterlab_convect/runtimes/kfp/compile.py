"""A plan as a pipeline of Kubeflow: its IR and its platform spec, as data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from ... import __version__
from ...errors import ConvectError
from ...pipeline.plan import Json, Plan, Step
from ...pipeline.problems import Problem
from ...pipeline.resolve import raise_first_error
from . import executor
from .argo_nodes import Place
from .component_tasks import add_results, finish_component, finish_results
from .dags import ComponentTask, Dag, FilesTask, ResultsTask, RunnerTask, all_tasks, slug
from .draft import Draft, executor_name
from .executor import TaskDefaults
from .layout import lay_out, place_of
from .payload import RunPayload, Sources
from .rules import add_rules
from .scopes import with_scopes
from .step_tasks import add_files, finish_files, finish_step, give_inputs

SCHEMA_VERSION = "2.1.0"
LARGEST = 1_000_000
"""Bytes of the state of a run, which the cluster keeps as one object."""
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
    root = Dag("root", plan.name, None, "")
    draft = Draft(with_scopes(plan), sources, defaults, home, root, {None: root})
    _fill(draft)
    problems = sorted(draft.problems, key=lambda problem: problem.severity != "error")
    if any(problem.severity == "error" for problem in problems):
        return None, problems
    size = _size(draft)
    if size > LARGEST:
        sentence = (
            f"The pipeline is too large for Kubeflow Pipelines: {size / 1e6:.1f} MB of at most "
            f"{LARGEST / 1e6:g} MB."
        )
        hint = "Split it into several pipelines, or give its loops fewer items."
        return None, [Problem("error", "too-large", sentence, hint=hint), *problems]
    return _compiled(draft), problems


def _fill(draft: Draft) -> None:
    """What it waits for, is given and executes: of each task, when all of them are there."""
    tasks = lay_out(draft)
    results = [
        (step, add_results(draft, step, task))
        for step, task in tasks
        if draft.home is not None and isinstance(task, ComponentTask) and task.what.outputs
    ]
    if any(isinstance(task, RunnerTask | ResultsTask) for task in all_tasks(draft.root)):
        add_files(draft, tasks)
    for group in draft.plan.groups:
        add_rules(draft, draft.dags[group.id], group)
    for step, task in tasks:
        add_rules(draft, task, step)
        draft.problems += executor.refusals(step, draft.defaults)
        if draft.home is not None:
            _say_what_is_executed_again(draft, step)
        try:
            if isinstance(task, ComponentTask):
                finish_component(draft, task, step)
            else:
                give_inputs(draft, task, step)
        except ConvectError as error:
            draft.refuse(step.id, (), error.sentence, error.hint)
    for step, task in tasks:
        if isinstance(task, RunnerTask) and not draft.is_refused(step.id):
            finish_step(draft, task, step)
    for step, task in results:
        if not draft.is_refused(step.id):
            finish_results(draft, task, step)
    if isinstance(draft.files, FilesTask):
        finish_files(draft, draft.files)


def _compiled(draft: Draft) -> Compiled:
    found: dict[str, Json] = {}
    places: dict[str, Place] = {}
    for task in all_tasks(draft.root):
        found[task.component_name] = task.component()
        if not isinstance(task, Dag):
            found[task.component_name]["executorLabel"] = executor_name(task)
            places[task.node] = place_of(draft, task)
    spec = {
        "pipelineInfo": {"name": slug(draft.plan.name)},
        "schemaVersion": SCHEMA_VERSION,
        "sdkVersion": f"jupyterlab-convect-{__version__}",
        "components": dict(sorted(found.items())),
        "deploymentSpec": {"executors": dict(sorted(draft.executors.items()))},
        "root": draft.root.component(),
    }
    settings = {"executors": dict(sorted(draft.platforms.items()))}
    platform = {"platforms": {"kubernetes": {"deploymentSpec": settings}}}
    return Compiled(spec, platform if draft.platforms else {}, places)


def _size(draft: Draft) -> int:
    """Bytes that a run will need, as far as it is known how often its tasks run."""
    total = 0
    for task in all_tasks(draft.root):
        times, inside = 1, task.parent
        while inside is not None:
            items = inside.loop.items if inside.loop is not None else None
            times *= len(items) if isinstance(items, list) else 1
            inside = inside.parent
        told = json.dumps(draft.executors.get(executor_name(task), ""))
        total += len(told) + (COPIES * len(told) + PER_TASK) * times
    return total


def _say_what_is_executed_again(draft: Draft, step: Step) -> None:
    """What is different for a run whose results come back."""
    if step.cache and (step.group is not None or step.when is not None):
        sentence = (
            f"“{step.name}” is executed again: on Kubeflow Pipelines, no result is reused in a "
            "group, in a loop or under a condition."
        )
        draft.problems.append(Problem("info", "not-reused", sentence, step.id, ("cache",)))
