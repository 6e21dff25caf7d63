"""A run as the REST API, the Python API and the command line show it."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict

from ..errors import ConvectError
from ..json_text import is_number
from ..pipeline.expressions import bind
from ..pipeline.plan import Json, Step, to_json
from .model import ENDED, AttemptState, Progress, Run, RunState, StepState

BRIEF = 1000
"""Characters of a parameter that a summary has."""


def summary(run: Run, state: RunState) -> dict[str, Json]:
    """`RunSummary` of docs/rest.md."""
    steps = state.steps.values()
    parameters = parameters_of(run, state)
    return {
        "id": run.id,
        "name": state.name or run.name,
        "path": run.plan.path or run.request.path,
        "runtime": run.runtime,
        **standing(state),
        "created": run.created,
        "started": work_began(state),
        "ended": state.ended,
        "user": run.user,
        **parameters,
        "parameters": {name: _brief(value) for name, value in parameters["parameters"].items()},
        "metrics": metrics_of(run, state),
        "labels": dict(state.labels),
        "note": state.note,
        "sweep": run.request.sweep,
        "steps_total": len(state.steps),
        "steps_done": sum(step.state in ENDED for step in steps),
        "progress": progress_of(state),
        "seq": state.seq,
    }


def standing(state: RunState) -> dict[str, Json]:
    """`state` and `reason`: a run of which nothing has begun is queued, and says why."""
    steps = state.steps.values()
    if state.state != "running" or any(step.state in ("starting", "running") for step in steps):
        return {"state": state.state, "reason": state.reason}
    queued = [step for step in steps if step.state == "queued"]
    shown = "queued" if queued and work_began(state) is None else state.state
    reasons = (step.reason for step in queued if step.reason)
    return {"state": shown, "reason": state.reason or next(reasons, None)}


def _brief(value: Json) -> Json:
    """A value as lists show it: the beginning of what is long, as text."""
    if isinstance(value, list | dict):
        text = json.dumps(value, ensure_ascii=False)
    else:
        text = value if isinstance(value, str) else ""
    return value if len(text) <= BRIEF else text[:BRIEF] + "…"


def view(run: Run, state: RunState) -> dict[str, Json]:
    """`RunView` of docs/rest.md, without what lies in the folders of the attempts."""
    return {
        **summary(run, state),
        "parameters": parameters_of(run, state)["parameters"],
        "stopping": state.stopping,
        "files": state.files,
        "plan": to_json(run.plan),
        "request": to_json(run.request),
        "git": None if run.git is None else asdict(run.git),
        "steps": {
            step.id: step_view(state.steps[step.id])
            | {"parameters": step_parameters(run, step, state)}
            for step in run.plan.steps
        },
    }


def step_view(step: StepState) -> dict[str, Json]:
    return {
        **_fields(step),
        "attempts": [_fields(attempt) for attempt in step.attempts],
        "progress": None if step.progress is None else _fields(step.progress),
    }


def work_began(state: RunState) -> float | None:
    """When the first step began: waiting for a turn is not work."""
    begun = [step.started for step in state.steps.values() if step.started is not None]
    return min(begun, default=state.started if state.state in ENDED else None)


def parameters_of(run: Run, state: RunState) -> dict[str, Json]:
    """The parameters in effect, which of them nobody gave, and those that some code gives.

    Those of a pipeline are its own; each step has more.
    """
    given = dict(run.plan.parameters) or dict(run.request.parameters)
    parameters, computed = given, {}
    if len(run.plan.steps) == 1 and run.request.document is None and _is_own_plan(run):
        step = run.plan.steps[0]
        found = state.steps[step.id].parameters
        parameters = {**given, **step.defaults, **found}
        computed = {name: code for name, code in step.computed.items() if name not in found}
    asked = run.request.parameters
    defaults = [name for name in parameters if name not in asked]
    return {"parameters": parameters, "defaults": defaults, "computed": computed}


def step_parameters(run: Run, step: Step, state: RunState) -> dict[str, Json]:
    """The parameters of a step in effect, with the values of what came before it once it began."""
    result = state.steps[step.id]
    given = dict(step.parameters)
    if result.started is not None:
        outputs = {name: state.steps[name].outputs for name in step.after}
        with contextlib.suppress(ConvectError):
            given = bind(given, outputs, {"id": run.id, "name": run.name})
    return {**given, **step.defaults, **result.parameters}


def _is_own_plan(run: Run) -> bool:
    """Whether it is the plan of a single notebook or script."""
    return run.plan.path is not None and run.plan.path == run.plan.steps[0].path


def metrics_of(run: Run, state: RunState) -> dict[str, float]:
    """All metrics, and outputs that are numbers; of two by one name the later step's."""
    found: dict[str, float] = {}
    for step in run.plan.steps:
        result = state.steps[step.id]
        for name, value in result.outputs.items():
            if is_number(value):
                found[name] = value
        found.update(result.metrics)
    return found


def progress_of(state: RunState) -> float:
    """How much is done, from 0 to 1."""
    if state.state in ENDED or not state.steps:
        return 1.0 if state.state in ENDED else 0.0
    return sum(map(_share, state.steps.values())) / len(state.steps)


def _fields(item: StepState | AttemptState | Progress) -> dict[str, Json]:
    """`dataclasses.asdict`, without copies of all that is in it."""
    return {name: getattr(item, name) for name in item.__slots__}


def _share(step: StepState) -> float:
    if step.state in ENDED:
        return 1.0
    if step.progress is None or step.state != "running":
        return 0.0
    if step.progress.cells:
        return min(step.progress.cell / step.progress.cells, 1.0)
    if step.progress.expected:
        return min(step.progress.elapsed / step.progress.expected, 0.95)
    return 0.0
