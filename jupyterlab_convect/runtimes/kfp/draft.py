"""A pipeline of Kubeflow while it is made of a plan: its tasks, their containers, and what is
wrong with it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from ...pipeline.claims import run_claims
from ...pipeline.plan import Group, Json, Plan, Step, Volume
from ...pipeline.problems import Path, Problem
from . import executor
from .argo_nodes import CLAIM
from .dags import ComponentTask, Dag, FilesTask, Key, RunnerTask, Task, all_tasks, slug, unique
from .executor import TaskDefaults
from .payload import RunPayload, Sources
from .scopes import units

LARGEST_TASK = 120_000
"""Bytes of a task's container, which the driver gets as one argument of a program."""


@dataclass
class Draft:
    plan: Plan
    """With a group around each step that loops: see `scopes`."""
    sources: Sources
    defaults: TaskDefaults
    home: RunPayload | None
    """For one run, whose results come back."""
    root: Dag
    dags: dict[str | None, Dag]
    """By group; that of nodes in none is None, and that of what runs at the end is empty."""
    exits: frozenset[str] = frozenset()
    """What runs at the end, whatever became of the rest."""
    problems: list[Problem] = field(default_factory=list)
    executors: dict[str, Json] = field(default_factory=dict)
    platforms: dict[str, Json] = field(default_factory=dict)
    files: FilesTask | RunnerTask | None = None
    """The task that leaves the files: one for that alone, or the first step."""
    bundle: list[str] = field(default_factory=list)
    """What it executes for that."""

    @cached_property
    def groups(self) -> Mapping[str, Group]:
        return {group.id: group for group in self.plan.groups}

    @cached_property
    def units(self) -> Mapping[str, Step | Group]:
        return {unit.id: unit for unit in units(self.plan)}

    @cached_property
    def claims(self) -> Mapping[str, Volume]:
        return run_claims(self.plan.steps)

    def refuse(self, node: str | None, path: Path, sentence: str, hint: str | None = None) -> None:
        owner = node.partition(" ")[0] if node else None
        self.problems.append(Problem("error", "not-on-kfp", sentence, owner, path, hint))

    def is_refused(self, step: str) -> bool:
        owner = step.partition(" ")[0]
        return any(item.node == owner and item.severity == "error" for item in self.problems)

    def add_dag(self, parent: Dag, node: str, name: str) -> Dag:
        dag = Dag(self.new_key(node), name, parent, node)
        parent.tasks[node] = dag
        return dag

    def new_key(self, node: str) -> str:
        """Kubeflow looks tasks up by their key alone, in whatever DAG they are."""
        return unique(slug(node), {task.key for task in all_tasks(self.root)})

    def dag_of(self, unit: Step | Group) -> Dag:
        """The DAG that a step or a group is in."""
        if unit.group is None and unit.id in self.exits:
            return self.dags[""]
        return self.dags[unit.group]


def add_executor(draft: Draft, task: Task, step: Step, container: dict[str, Json]) -> None:
    amounts = executor.resources(step)
    container |= {"resources": amounts} if amounts else {}
    size = len(json.dumps(container))
    if size > LARGEST_TASK:
        draft.refuse(
            None if isinstance(task, FilesTask) else step.id,
            (),
            f"The files of “{step.name}” are too large to be a part of the pipeline: "
            f"{size / 1000:.0f} kB of at most {LARGEST_TASK / 1000:g} kB.",
            "Configure an object store in c.ObjectStore, or put them on a volume and name that "
            "in `volumes`.",
        )
    draft.executors[executor_name(task)] = {"container": container}
    assert task.parent is not None
    claims = {
        volume.claim: task.parent.find(claim_name(volume.claim)).source
        for volume in step.volumes
        if volume.size is not None
    }
    node = ""
    if draft.home is not None and draft.home.keep and not isinstance(task, ComponentTask):
        step = replace(step, volumes=(*step.volumes, *_shared(draft, step)))
        node = draft.defaults.node
    settings = executor.platform(step, draft.defaults, claims, node)
    if settings:
        draft.platforms[executor_name(task)] = settings


def _shared(draft: Draft, step: Step) -> Iterator[Volume]:
    for volume in draft.defaults.volumes:
        known = [each for each in step.volumes if each.claim == volume.claim]
        if not known:
            yield volume
        elif known[0].path != volume.path:
            draft.refuse(
                step.id,
                ("volumes",),
                f"Kubeflow Pipelines mounts a volume once per node, and “{volume.claim}” is "
                "there already.",
            )


def no_image(step: Step) -> Problem:
    hint = "Set `image`, for the step or in the pipeline's defaults."
    return Problem("error", "no-image", f"“{step.name}” has no image.", step.id, (), hint)


def executor_name(task: Task) -> str:
    return task.component_name.replace("comp-", "exec-", 1)


def claim_name(claim: str) -> Key:
    """What the task tells that makes a volume claim."""
    return Key("parameters", CLAIM + claim, "name", "STRING")
