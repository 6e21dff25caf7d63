"""The tasks and DAGs of a pipeline, before it is said what each of them is given.

Each group with a rule becomes a DAG of its own, and so does a loop around a single step.
"""

from __future__ import annotations

from ...catalog.model import component_from_json
from ...pipeline.plan import Group, Step
from . import components, executor
from .argo_nodes import CLAIM, EACH, Place
from .dags import STRING, ClaimTask, ComponentTask, Dag, RunnerTask, Task, unique_names
from .draft import Draft, claim_name, executor_name
from .scopes import units
from .task import VALUES


def lay_out(draft: Draft) -> list[tuple[Step, Task]]:
    """Give each step and group its place. The task of each step."""
    draft.exits = _exits_of(draft)
    if draft.claims:
        _add_claims(draft)
    if draft.exits:
        _, main, last = _with_end(draft, draft.dags[None], "whole", "exit-handler-1", "finally")
        draft.dags[None], draft.dags[""] = main, last
    for group in draft.plan.groups:
        _add_group(draft, group)
    return [(step, _add_step(draft, step)) for step in draft.plan.steps]


def _exits_of(draft: Draft) -> frozenset[str]:
    """What runs at the end, whatever became of the rest; and what comes after that."""
    found: set[str] = set()
    for unit in units(draft.plan):
        before = set(unit.after)
        if unit.run_if == "failed":
            draft.refuse(
                unit.id,
                ("run_if",),
                "Kubeflow Pipelines cannot run a node only after a failure.",
                "Use “always”, and look at what is there.",
            )
        if unit.run_if == "always" and before:
            if unit.group is not None:
                draft.refuse(
                    unit.id,
                    ("run_if",),
                    "On Kubeflow Pipelines only a node that is in no group can run always.",
                )
                continue
            if before & found:
                draft.refuse(
                    unit.id,
                    ("run_if",),
                    "On Kubeflow Pipelines a node that runs always cannot come after another "
                    "one that does.",
                )
            found.add(unit.id)
        elif before & found:
            found.add(unit.id)
            if before - found:
                draft.refuse(
                    unit.id,
                    ("after",),
                    "On Kubeflow Pipelines a node that comes after one that runs always must "
                    "not wait for others.",
                )
    return frozenset(found)


def _add_claims(draft: Draft) -> None:
    """Volume claims are made before everything else, and deleted after it."""
    around, draft.dags[None], end = _with_end(
        draft, draft.root, "volumes", "with volumes", "delete volumes"
    )
    for name, volume in draft.claims.items():
        node = CLAIM + name
        make = ClaimTask(draft.new_key(f"make-{name}"), f"make {name}", draft.root, node)
        for key, (kind, value) in executor.new_claim(volume).items():
            make.inputs["parameters"][key] = {"parameterType": kind}
            make.given["parameters"][key] = {"runtimeValue": {"constant": value}}
        make.outputs["parameters"]["name"] = STRING
        draft.root.tasks[node] = make
        draft.executors[executor_name(make)] = {"container": {"image": "argostub/createpvc"}}
        around.after = (*around.after, make.key)
        ended = f"{node} deleted"
        delete = ClaimTask(draft.new_key(f"delete-{name}"), f"delete {name}", end, ended)
        delete.inputs["parameters"]["pvc_name"] = STRING
        delete.given["parameters"]["pvc_name"] = end.find(claim_name(name)).source
        end.tasks[ended] = delete
        draft.executors[executor_name(delete)] = {"container": {"image": "argostub/deletepvc"}}


def _with_end(draft: Draft, parent: Dag, whole: str, main: str, last: str) -> tuple[Dag, Dag, Dag]:
    """A DAG with one inside, and another one that starts when that has ended, however.

    What runs at the end must not wait for another task of its own DAG, and still needs the
    files: those are left before the DAG around both.
    """
    around = draft.add_dag(parent, whole, draft.plan.name)
    inside = draft.add_dag(around, main, draft.plan.name)
    end = draft.add_dag(around, last, last)
    end.after = (inside.key,)
    end.settings["triggerPolicy"] = {"strategy": "ALL_UPSTREAM_TASKS_COMPLETED"}
    return around, inside, end


def _add_group(draft: Draft, group: Group) -> None:
    dag = draft.add_dag(draft.dag_of(group), group.id, group.name)
    dag.loop = group.for_each
    draft.dags[group.id] = dag


def _add_step(draft: Draft, step: Step) -> Task:
    home = draft.dag_of(step)
    key = draft.new_key(step.id)
    task: Task
    if step.kind == "component":
        what = component_from_json(draft.plan.components[step.component or ""])
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
        task.outputs["parameters"][VALUES] = {"parameterType": "STRUCT"}
        kinds = {"files": "system.Artifact", "metrics": "system.Metrics"}
        if step.kind == "notebook":
            kinds |= {"notebook": "system.Artifact", "html": "system.HTML"}
        for name, title in kinds.items():
            task.outputs["artifacts"][name] = {
                "artifactType": {"schemaTitle": title, "schemaVersion": "0.0.1"}
            }
    task.settings = executor.task_settings(step)
    if draft.home:  # What is taken from the cache has no log that would bring it back.
        task.settings["cachingOptions"] = {}
    home.tasks[step.id] = task
    return task


def place_of(draft: Draft, task: Task) -> Place:
    above: Place = ()
    if task.parent is not None and task.parent is not draft.root:
        above = place_of(draft, task.parent)
    if "" in draft.dags and task is draft.dags[""]:
        above = (*above, draft.dags[None].key, "onExit")
    return (*above, task.key, *([EACH] if isinstance(task, Dag) and task.loop else []))
