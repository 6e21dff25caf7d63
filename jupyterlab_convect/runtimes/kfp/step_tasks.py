"""The tasks of notebooks, scripts and commands, which our runner executes, and the files that
they need."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...errors import ConvectError
from ...pipeline.plan import Json, Step, to_json
from .argo_nodes import FILES
from .dags import FACTS, FilesTask, Key, RunnerTask, Task, loops_alone
from .draft import LARGEST_TASK, Draft, add_executor, no_image
from .payload import BUNDLE, bundle_command, folder_of, inline_bundle, step_command
from .references import bound, reading, references_in, take, template
from .scopes import units

REST_OF_TASK = 2_000
"""Bytes of a task's container that are not its files."""
BUNDLE_TYPE: dict[str, Json] = {
    "artifactType": {"schemaTitle": "system.Artifact", "schemaVersion": "0.0.1"}
}


def add_files(draft: Draft, tasks: Sequence[tuple[Step, Task]]) -> None:
    ours = [step for step in draft.plan.steps if step.kind != "component"]
    try:
        room = LARGEST_TASK - REST_OF_TASK
        draft.bundle = bundle_command(ours, draft.sources, draft.home, room)
    except ConvectError as error:
        draft.refuse(None, (), error.sentence, error.hint)
        return
    first = _first(draft, tasks)
    if first is not None:
        if len(draft.plan.steps) > 1:
            first.outputs["artifacts"][BUNDLE] = BUNDLE_TYPE
        draft.files = first
        return
    task = FilesTask(draft.new_key("files"), "files", draft.root, FILES)
    task.outputs["artifacts"][BUNDLE] = BUNDLE_TYPE
    # The same files are left once, however often they are run.
    task.settings = {"cachingOptions": {"enableCache": True}}
    draft.root.tasks[task.node] = draft.files = task


def _first(draft: Draft, tasks: Sequence[tuple[Step, Task]]) -> RunnerTask | None:
    """The step of a run before all others, if it has room for the files: a task less."""
    if draft.home is None or draft.exits:
        return None
    top = [unit for unit in units(draft.plan) if unit.group is None]
    word = inline_bundle(draft.bundle)
    for step, task in tasks:
        if not isinstance(task, RunnerTask) or step.group or step.after or step.when:
            continue
        after = {step.id}
        for unit in top:
            after |= {unit.id} if after & set(unit.after) else set()
        form = json.dumps(draft.home.form)
        told = len(json.dumps(to_json(step)) + form) * 4 // 3 + 2 * REST_OF_TASK
        if len(after) == len(top) and word and len(word) + told < LARGEST_TASK:
            return task
    return None


def files_of(draft: Draft, task: Task) -> str:
    """The name of the input that has the files; empty for who has them itdraft."""
    if draft.files is None or task is draft.files:
        return ""
    return task.take(Key("artifacts", draft.files.node, BUNDLE))[0]


def helper_step(draft: Draft, node: str) -> Step:
    """A task of ours that is no step: in the image of steps that name none, or in one's own."""
    ours = [step for step in draft.plan.steps if step.kind != "component"]
    if draft.defaults.image or not ours:
        return Step(node, "command", draft.plan.name, image=draft.defaults.image)
    first = next((step for step in ours if step.image), ours[0])
    return Step(
        node,
        "command",
        draft.plan.name,
        image=first.image,
        pull_policy=first.pull_policy,
        kubernetes=replace(first.kubernetes, labels={}, annotations={}),
    )


def finish_files(draft: Draft, task: FilesTask) -> None:
    around = helper_step(draft, task.node)
    if not around.image:
        return  # That is said of the step.
    words = draft.bundle
    container = {"image": around.image, "command": words[:3], "args": words[3:]}
    add_executor(draft, task, around, container)


def give_inputs(draft: Draft, task: Task, step: Step) -> None:
    """What a step of ours is given."""
    assert isinstance(task, RunnerTask)
    is_told = draft.home.run if draft.home is not None else step.cache
    for fact in () if is_told else FACTS:
        task.tell(fact)  # What differs from run to run would keep it from being reused.
    for property_name, value in bound(step):
        for reference, form in references_in(value):
            try:
                take(draft, task, reference, form)
            except ConvectError as error:
                draft.refuse(step.id, property_name, error.sentence, error.hint)
    if task.parent is not None and task.parent.loop is not None and loops_alone(task.parent):
        task.take(Key("parameters", "", task.parent.loop.name))  # It may be none.
    for before in _before(draft, task):
        task.take(Key("artifacts", before, "files"))
    files_of(draft, task)


def _before(draft: Draft, task: Task) -> Iterator[str]:
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
    for step in draft.plan.steps:
        home = draft.dag_of(step).tasks.get(step.id)
        if isinstance(home, RunnerTask) and step.id in wanted:
            yield step.id
        elif step.outputs and isinstance(home, RunnerTask):
            group = step.group
            while group is not None and group not in wanted:
                group = draft.groups[group].group
            if group is not None:
                draft.refuse(
                    task.node,
                    (),
                    f"The files that “{step.name}” makes inside a group cannot leave it on "
                    "Kubeflow Pipelines.",
                    "Put the node that needs them into the group.",
                )


def finish_step(draft: Draft, task: RunnerTask, step: Step) -> None:
    """The container, when it is known what others ask of the step."""
    image = step.image or draft.defaults.image
    if not image:
        draft.problems.append(no_image(step))
        return
    inputs = {
        name: {
            "kind": reading(channel),
            "lists": channel.lists,
            "words": f"Node “{key.node}” produced no output “{key.name}”.",
        }
        for key, (name, channel) in task.taken.items()
    }
    told = {f"run-{fact}": {"kind": "plain", "lists": 0, "words": ""} for fact in FACTS}
    bind = {
        "inputs": {**told, **inputs},
        "files": [
            [name, folder_of(draft.plan.step(key.node))]
            for key, (name, _) in task.taken.items()
            if key.kind == "artifacts" and key.name == "files" and " " not in key.node
        ],
        "values": {
            "parameters": template(draft, task, dict(step.parameters)),
            "env": template(draft, task, dict(step.env)),
            "command": template(draft, task, list(step.command)),
        },
        "outputs": [
            {"name": name, "kind": form, "key": key} for (name, form), key in task.given_out.items()
        ],
        # Kubeflow's key for results has the command, and no secrets.
        **({"secrets": to_json(step.secrets)} if step.secrets else {}),
    }
    is_first = task is draft.files
    words = step_command(
        step,
        bind,
        files_of(draft, task),
        draft.home,
        bundle_word=(inline_bundle(draft.bundle) or "") if is_first else "",
        hands_on=is_first and BUNDLE in task.outputs["artifacts"],
    )
    env = [{"name": "CONVECT_SECRETS", "value": ",".join(item.env for item in step.secrets)}]
    add_executor(
        draft,
        task,
        step,
        {
            "image": image,
            "command": words[:3],
            "args": words[3:],
            **({"env": env} if step.secrets else {}),
        },
    )
