"""Runs of a Kubeflow Pipelines server that were made elsewhere, as far as it tells of them.

Nothing here changes a run. What the server says is read as data of a stranger: what is not there,
or is not what it should be, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from ...errors import Missing
from ...pipeline.plan import Json
from ...runs.model import State
from .api import Client

OURS = "jupyterlab-convect-"
"""How the word for the program that made a pipeline begins, if it is ours."""
STATES: Mapping[str, State] = {
    "PENDING": "queued",
    "RUNNING": "running",
    "PAUSED": "waiting",
    "CANCELING": "running",
    "SUCCEEDED": "succeeded",
    "SKIPPED": "skipped",
    "FAILED": "failed",
    "CANCELED": "cancelled",
}
WORST: tuple[State, ...] = (
    *("failed", "cancelled", "running", "queued"),
    *("waiting", "succeeded", "skipped"),
)
"""Of the items of a loop, the state that tells most."""
ID = re.compile(r"[\w-]+")
DEEPEST = 20
"""Pipelines in pipelines that are followed; one that contains itself ends there."""


def page(client: Client, limit: int, after: str) -> dict[str, Json]:
    """Runs of the namespace, newest first."""
    told = client.runs(limit, after)
    runs = [summary(run) for run in told.get("runs") or () if isinstance(run, Mapping)]
    return {"runs": runs, "next": told.get("next_page_token") or None}


def detail(client: Client, run_id: str) -> dict[str, Json]:
    """One run, with its parameters, its graph, and the state of each part of it."""
    if not ID.fullmatch(run_id):
        raise Missing("Kubeflow Pipelines has no such run.")
    run = client.run(run_id)
    spec = _spec(run)
    if spec is None and (reference := _mapping(run.get("pipeline_version_reference"))):
        spec = _spec(client.pipeline_version(reference))
    spec = spec or {}
    states = _states(run)
    steps: list[dict[str, Json]] = []
    groups: list[dict[str, Json]] = []
    for unit in _units(spec, _mapping(spec.get("root")), None, 0):
        task = unit.pop("task")
        unit["state"] = states.get(task, "waiting")
        (groups if "image" not in unit else steps).append(unit)
    return {
        **summary(run),
        "parameters": _parameters(spec, run),
        "steps": steps,
        "groups": groups,
    }


def summary(run: Mapping[str, Any]) -> dict[str, Json]:
    spec = _spec(run) or {}
    made_by = str(spec.get("sdkVersion") or "")
    name = str(run.get("display_name") or run.get("run_id") or "")
    error = str(_mapping(run.get("error")).get("message") or "")
    return {
        "id": str(run.get("run_id") or ""),
        "name": name,
        "state": _state(run),
        "reason": error[:300] or None,
        "created": _seconds(run.get("created_at")),
        "ended": _seconds(run.get("finished_at")),
        "pipeline": str(_mapping(spec.get("pipelineInfo")).get("name") or "") or None,
        "made_by": made_by or None,
        "convect_run": name.rpartition(" ")[2] if made_by.startswith(OURS) else None,
    }


def _state(run: Mapping[str, Any]) -> State:
    found = STATES.get(str(run.get("state") or ""), "queued")
    history = run.get("state_history") or ()
    was_stopped = any(_mapping(each).get("state") == "CANCELING" for each in history)
    # A run that somebody stopped ends as one that failed.
    return "cancelled" if found == "failed" and was_stopped else found


def _states(run: Mapping[str, Any]) -> dict[str, State]:
    """By the key of a task, which Kubeflow shows nodes by; that of a loop's items together."""
    found: dict[str, State] = {}
    for node in _mapping(run.get("run_details")).get("task_details") or ():
        name, state = str(node.get("display_name") or ""), STATES.get(str(node.get("state")))
        if state is None:
            continue
        known = found.get(name, state)
        found[name] = min(known, state, key=WORST.index)
    return found


def _units(
    spec: Mapping[str, Any], component: Mapping[str, Any], group: str | None, depth: int
) -> Iterator[dict[str, Json]]:
    """The tasks of a component that is a DAG, and what is in them."""
    tasks = _mapping(_mapping(component.get("dag")).get("tasks"))
    components, above = _mapping(spec.get("components")), f"{group}/" if group else ""
    for key, task in tasks.items():
        inner = _mapping(components.get(str(_mapping(task.get("componentRef")).get("name"))))
        condition = _mapping(task.get("triggerPolicy")).get("condition")
        unit: dict[str, Json] = {
            "task": key,
            "id": above + key,
            "name": str(_mapping(task.get("taskInfo")).get("name") or key),
            "group": group,
            "after": sorted(above + each for each in _before(task) if each in tasks),
            "when": str(condition) if condition else None,
            "loops": "parameterIterator" in task or "artifactIterator" in task,
        }
        if "dag" not in inner or depth == DEEPEST:
            yield {**unit, "image": _image(spec, inner)}
            continue
        yield unit
        yield from _units(spec, inner, above + key, depth + 1)


def _before(task: Mapping[str, Any]) -> set[str]:
    """The tasks that a task waits for, or takes something from."""
    found = {str(each) for each in task.get("dependentTasks") or ()}
    inputs = _mapping(task.get("inputs"))
    for kind in ("parameters", "artifacts"):
        for given in _mapping(inputs.get(kind)).values():
            for source in ("taskOutputParameter", "taskOutputArtifact"):
                found.add(str(_mapping(_mapping(given).get(source)).get("producerTask") or ""))
    return found


def _image(spec: Mapping[str, Any], component: Mapping[str, Any]) -> str:
    executors = _mapping(_mapping(spec.get("deploymentSpec")).get("executors"))
    found = _mapping(executors.get(str(component.get("executorLabel"))))
    return str(_mapping(found.get("container")).get("image") or "")


def _parameters(spec: Mapping[str, Any], run: Mapping[str, Any]) -> dict[str, Json]:
    """Those that the run was given, and the defaults of the others."""
    defined = _mapping(_mapping(spec.get("root")).get("inputDefinitions")).get("parameters")
    defaults = {
        name: item["defaultValue"]
        for name, item in _mapping(defined).items()
        if "defaultValue" in _mapping(item)
    }
    return {**defaults, **_mapping(_mapping(run.get("runtime_config")).get("parameters"))}


def _spec(told: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The pipeline of a run or a version, which has the platform's settings beside it at times."""
    found = _mapping(told.get("pipeline_spec"))
    return _mapping(found.get("pipeline_spec")) or found or None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _seconds(stamp: Any) -> float | None:
    try:
        found = datetime.fromisoformat(str(stamp).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None
    return found if found > 0 else None
