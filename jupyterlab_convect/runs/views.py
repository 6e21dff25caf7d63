"""A run as the REST API, the Python API and the command line show it."""

from __future__ import annotations

import json
import math
from dataclasses import asdict

from ..json_text import is_number, number
from ..pipeline.plan import Json, to_json
from .model import ENDED, AttemptState, Progress, Run, RunState, StepState

BRIEF = 1000
"""Characters of a parameter that a summary has."""


def summary(run: Run, state: RunState) -> dict[str, Json]:
    """`RunSummary` of docs/rest.md."""
    steps = state.steps.values()
    return {
        "id": run.id,
        "name": state.name or run.name,
        "path": run.plan.path or run.request.path,
        "runtime": run.runtime,
        "state": state.state,
        "reason": state.reason,
        "created": run.created,
        "started": work_began(state),
        "ended": state.ended,
        "user": run.user,
        "parameters": {name: _brief(value) for name, value in parameters_of(run).items()},
        "metrics": metrics_of(run, state),
        "labels": dict(state.labels),
        "note": state.note,
        "sweep": run.request.sweep,
        "steps_total": len(state.steps),
        "steps_done": sum(step.state in ENDED for step in steps),
        "progress": progress_of(state),
        "seq": state.seq,
    }


def parameters_of(run: Run) -> dict[str, Json]:
    return dict(run.plan.parameters) or dict(run.request.parameters)


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
        "parameters": parameters_of(run),
        "stopping": state.stopping,
        "files": state.files,
        "plan": to_json(run.plan),
        "request": to_json(run.request),
        "git": None if run.git is None else asdict(run.git),
        "steps": {step_id: step_view(step) for step_id, step in state.steps.items()},
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


def metrics_of(run: Run, state: RunState) -> dict[str, float]:
    """All metrics, and outputs that are numbers; of two by one name the later step's."""
    found: dict[str, float] = {}
    for step in run.plan.steps:
        result = state.steps[step.id]
        for name, value in result.outputs.items():
            if is_number(value):
                as_float = number(value)
                found[name] = value if math.isfinite(as_float) else as_float
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
