"""A run as the REST API, the Python API and the command line show it."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import asdict
from typing import TypeVar

from ..errors import ConvectError, Missing
from ..json_text import is_number
from ..pipeline.expressions import Reference, Unavailable
from ..pipeline.metrics import larger_is_better
from ..pipeline.plan import Json, to_json
from .model import (
    ENDED,
    AttemptState,
    GroupState,
    Progress,
    Run,
    RunState,
    State,
    StepState,
    steps_in,
    steps_of,
)
from .values import Values, unit_state, values_for

Unit = TypeVar("Unit", StepState, GroupState)

BRIEF = 1000
"""Characters of a parameter that a summary has."""
SHOWN_ITEMS = 200
"""Steps of loops that the view of a run has; all are in `items_view`."""
_RANKS: dict[State, int] = {
    "failed": 0,
    "lost": 1,
    "cancelled": 2,
    "running": 3,
    "starting": 4,
    "queued": 5,
}
"""Which items of a loop matter most."""


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
        "metrics": metrics_of(state),
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
        "page": page_of(state),
        "goals": goals_of(metrics_of(state)),
        "files": state.files,
        "plan": to_json(run.plan),
        "request": to_json(run.request),
        "git": None if run.git is None else asdict(run.git),
        "steps": {step.id: full_step(run, state, step) for step in shown_steps(state)},
        "groups": groups_view(state),
    }


def page_of(state: RunState) -> str | None:
    """Where the runtime itself shows the run, if it has a page for it."""
    for step in state.steps.values():
        for attempt in step.attempts:
            page = attempt.handle.get("page") if isinstance(attempt.handle, dict) else None
            if isinstance(page, str) and page.startswith(("http://", "https://")):
                return page
    return None


def full_step(run: Run, state: RunState, step: StepState) -> dict[str, Json]:
    return step_view(step) | {"parameters": step_parameters(run, step, state)}


def shown_steps(state: RunState) -> list[StepState]:
    """All steps; of loops with many items those that matter most, the failed ones first."""
    return _shown(steps_of(state))


def shown_groups(state: RunState) -> list[GroupState]:
    """The groups and loops; of the items of loops as many as `shown_steps`."""
    return _shown([*state.groups.values()])


def _shown(units: list[Unit]) -> list[Unit]:
    of_items = [unit for unit in units if unit.item]
    if len(of_items) <= SHOWN_ITEMS:
        return units
    of_items.sort(key=lambda unit: _RANKS.get(unit.state, len(_RANKS)))
    shown = {unit.id for unit in of_items[:SHOWN_ITEMS]}
    return [unit for unit in units if not unit.item or unit.id in shown]


def groups_view(state: RunState) -> dict[str, Json]:
    """The groups that are shown; those that no other loop is around count all that is in them."""
    members: dict[str, dict[str, Counter[str]]] = {}
    began: dict[str, float] = {}
    for step in state.steps.values():
        around = state.graph.loops(step.node) if step.item else ()
        if around:
            nodes = members.setdefault(around[0], {})
            nodes.setdefault(step.node, Counter())[step.state] += 1
        if step.item and step.started is not None:
            loop = state.graph.inner_loops(step.node)[0]
            began[loop] = min(step.started, began.get(loop, step.started))
    return {
        group.id: {
            **group_view(group),
            # As for runs, waiting for a turn is not work.
            "started": began.get(group.id, group.started),
            "members": members.get(group.id, {}),
        }
        for group in shown_groups(state)
    }


def group_view(group: GroupState) -> dict[str, Json]:
    """A group, a loop (with how many `items` it has, and how many in which state) or an item."""
    facts = _fields(group)
    values = facts.pop("values")
    return {**facts, "item": list(group.item), "items": None if values is None else len(values)}


def items_view(
    run: Run,
    state: RunState,
    loop_id: str,
    states: Collection[str] = (),
    offset: int = 0,
    limit: int = 100,
    *,
    worst_first: bool = False,
) -> dict[str, Json]:
    """`LoopItems` of docs/rest.md: a page of the items of a loop, in their order; or those that
    failed before all others.
    """
    loop = state.groups.get(loop_id)
    graph = state.graph
    if loop is None or not graph.is_loop(loop.node) or graph.is_iteration(loop.node, loop.item):
        raise Missing(f"The run {run.name} has no loop “{loop_id}”.", code="no-such-loop")
    values = loop.values or []
    found: list[tuple[int, StepState | GroupState]] = []
    for number in range(len(values)):
        unit = unit_state(state, loop.node, (*loop.item, number))
        if unit is not None and (not states or unit.state in states):
            found.append((number, unit))
    if worst_first:
        found.sort(key=lambda each: each[1].state not in ("failed", "lost"))
    return {
        **group_view(loop),
        "matched": len(found),
        "offset": offset,
        "page": [
            {
                "index": number,
                "value": values[number],
                **_brief_unit(unit),
                "steps": {
                    step.id: full_step(run, state, step)
                    for step in steps_in(state, unit.node, unit.item)[:SHOWN_ITEMS]
                },
            }
            for number, unit in found[offset : offset + limit]
        ],
    }


def _brief_unit(unit: StepState | GroupState) -> dict[str, Json]:
    names = ("id", "state", "reason", "started", "ended")
    return {name: getattr(unit, name) for name in names}


def step_view(step: StepState) -> dict[str, Json]:
    return {
        **_fields(step),
        "item": list(step.item),
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
    if run.request.document is None and _is_own_plan(run):
        step = run.plan.steps[0]
        found = state.steps[step.id].parameters
        parameters = {**given, **step.defaults, **found}
        computed = {name: code for name, code in step.computed.items() if name not in found}
    asked = run.request.parameters
    defaults = [name for name in parameters if name not in asked]
    return {"parameters": parameters, "defaults": defaults, "computed": computed}


def step_parameters(run: Run, known: StepState, state: RunState) -> dict[str, Json]:
    """The parameters of a step in effect, with the values of what came before it once it began."""
    step = state.graph.steps[known.node]
    given = dict(step.parameters)
    if known.started is not None or known.item:
        with contextlib.suppress(ConvectError, Unavailable):
            given = values_for(run, state, known.node, known.item).bind(given)
    return {**given, **step.defaults, **known.parameters}


def _is_own_plan(run: Run) -> bool:
    """Whether it is the plan of a single notebook or script."""
    steps = run.plan.steps
    return len(steps) == 1 and run.plan.path is not None and run.plan.path == steps[0].path


def metrics_of(state: RunState) -> dict[str, float]:
    """All metrics, and outputs that are numbers; of two by one name the later step's."""
    found: dict[str, float] = {}
    # An item of a loop is one of many; its numbers are in the table of items.
    steps = [step for step in state.steps.values() if not step.item]
    if state.graph.has_rules:
        steps.sort(key=lambda step: state.graph.order[step.node])
    for step in steps:
        for name, value in step.outputs.items():
            if is_number(value):
                found[name] = value
        found.update(step.metrics)
    return found


def outputs_of(run: Run, state: RunState) -> dict[str, Json]:
    """The values that the steps gave; of two by one name the later step's, of loops lists."""
    found: dict[str, Json] = {}
    given: dict[str, dict[str, None]] = {}
    for step in steps_of(state):
        given.setdefault(step.node, {}).update(dict.fromkeys(step.outputs))
    seen = Values(run, state, None, (), is_lenient=True, wants_files=True)
    for node, names in given.items():
        for name in names:
            found[name] = seen.look_up(Reference("nodes", name, node))
    return found


def goals_of(metrics: Iterable[str]) -> dict[str, str]:
    """Whether each metric is to be large or small, as far as its name says that."""
    known = {name: larger_is_better(name) for name in metrics}
    return {
        name: "max" if is_larger else "min"
        for name, is_larger in known.items()
        if is_larger is not None
    }


def progress_of(state: RunState) -> float:
    """How much is done, from 0 to 1."""
    if state.state in ENDED or not state.steps:
        return 1.0 if state.state in ENDED else 0.0
    return sum(map(_share, state.steps.values())) / len(state.steps)


def _fields(item: StepState | GroupState | AttemptState | Progress) -> dict[str, Json]:
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
