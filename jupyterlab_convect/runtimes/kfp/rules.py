"""What a step or a group of a pipeline waits for, whether it runs, and how often."""

from __future__ import annotations

import json
from functools import partial

from ...errors import ConvectError, Refused
from ...pipeline.expressions import Constant, Reference, parse_one
from ...pipeline.plan import ForEach, Group, Json, Step
from .conditions import Inexpressible, condition, guards
from .dags import ITEM, STRING, Channel, Task, loops_alone
from .draft import Draft
from .references import computed_in, take
from .scopes import BRANCH
from .task import NO_ITEM


def add_rules(draft: Draft, task: Task, unit: Step | Group) -> None:
    """What it waits for, whether it runs, and how often."""
    assert task.parent is not None
    siblings = task.parent.tasks
    task.after = tuple(siblings[name].key for name in unit.after if name in siblings)
    _check_branches(draft, unit)
    _add_condition(draft, task, unit)
    if unit.for_each is not None:
        _add_loop(draft, task, unit, unit.for_each)


def _check_branches(draft: Draft, unit: Step | Group) -> None:
    """What `first(…)` chooses from has to be something that Kubeflow can do without."""
    hint = "Put what comes after a branch into the branch."
    for name in filter(partial(_may_be_skipped, draft), unit.weak):
        branch, step = draft.units[name], draft.units.get(name.partition(" ")[0])
        if not name.endswith(BRANCH) or not isinstance(step, Step) or step.kind == "component":
            words = (
                f"On Kubeflow Pipelines first(…) cannot do without “{branch.name}”: it chooses "
                "between notebooks, scripts and commands with a condition."
            )
            draft.refuse(unit.id, (), words, hint)
        elif any(map(partial(_may_be_skipped, draft), set(branch.after) - set(branch.weak))):
            words = (
                f"On Kubeflow Pipelines first(…) cannot do without “{branch.name}”, because "
                "what that waits for may be skipped too."
            )
            draft.refuse(unit.id, (), words, hint)
    for name in set(unit.after) - set(unit.weak):
        if name.endswith(BRANCH):
            words = (
                f"On Kubeflow Pipelines no node can need “{draft.units[name].name}”, which "
                "first(…) does without elsewhere."
            )
            draft.refuse(unit.id, (), words, hint)


def _may_be_skipped(draft: Draft, name: str) -> bool:
    """Whether a rule may skip it, or something that it cannot do without."""
    unit = draft.units[name]
    is_asked = unit.when is not None or name.endswith(BRANCH)
    return is_asked or any(map(partial(_may_be_skipped, draft), set(unit.after) - set(unit.weak)))


def _add_condition(draft: Draft, task: Task, unit: Step | Group) -> None:
    """When it runs: as it says itself, and when each `first(…)` of it finds a value."""
    asked = unit.when
    expression = Constant(asked) if isinstance(asked, bool) else parse_one(asked)
    given = list(computed_in(unit)) if isinstance(unit, Step) else []
    if expression is None and not given:
        return

    def input_of(reference: Reference, form: str) -> tuple[str, Channel]:
        taken, channel = take(draft, task, reference, form)
        if channel.lists:
            raise Inexpressible("a list that a loop has collected")
        return f"inputs.parameter_values[{json.dumps(taken)}]", channel

    def name(reference: Reference) -> str:
        value, channel = input_of(reference, "json")
        return f"parseJson({value})" if channel.form == "json" else value

    def option(reference: Reference) -> str:
        return input_of(reference, "branch")[0]

    try:
        wanted = [] if expression is None else [expression]
        words = [word for each in (*wanted, *given) for word in guards(each, option)]
        words += [condition(each, name, option) for each in wanted]
        if words:
            task.settings["triggerPolicy"] = {"condition": " && ".join(words)}
    except Inexpressible as error:
        draft.refuse(unit.id, ("when",), f"A condition of Kubeflow Pipelines cannot have {error}.")
    except ConvectError as error:
        draft.refuse(unit.id, ("when",), error.sentence, error.hint)


def _add_loop(draft: Draft, task: Task, unit: Step | Group, loop: ForEach) -> None:
    task.inputs["parameters"][ITEM] = STRING
    task.names.add(ITEM)
    if loop.parallel is not None:
        task.settings["iteratorPolicy"] = {"parallelismLimit": loop.parallel}
    items: dict[str, Json]
    is_one = loops_alone(task)
    if isinstance(loop.items, list):
        words = [json.dumps(item) for item in loop.items] or [NO_ITEM] * is_one
        items = {"raw": json.dumps(words)}
    else:
        expression = parse_one(loop.items)
        try:
            if not isinstance(expression, Reference):
                raise Refused("On Kubeflow Pipelines a loop goes over one output.")
            name, _ = take(draft, task, expression, "some" if is_one else "items")
            items = {"inputParameter": name}
        except ConvectError as error:
            draft.refuse(unit.id, ("for_each", "in"), error.sentence, error.hint)
            return
    task.settings["parameterIterator"] = {"itemInput": ITEM, "items": items}
