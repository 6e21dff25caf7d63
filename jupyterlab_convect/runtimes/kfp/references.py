"""What steps refer to, as inputs of their tasks.

Kubeflow has types where we have JSON. A step of ours gives every value as JSON text, so that
each keeps its type, and besides as the type that a component or a loop needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...errors import Refused
from ...pipeline.expressions import (
    Constant,
    Expression,
    First,
    Reference,
    parse,
    parse_one,
    texts,
)
from ...pipeline.plan import Json, Step
from ...pipeline.problems import Path
from .conditions import is_branch
from .dags import LISTS, STRING, Channel, ComponentTask, Dag, Key, Task, is_in
from .draft import Draft


def take(draft: Draft, task: Task, reference: Reference, form: str = "json") -> tuple[str, Channel]:
    """The value of a reference as an input of a task."""
    if reference.kind == "run":
        return task.tell(reference.name), Channel({}, STRING, "STRING")
    if reference.kind == "each":
        if form in LISTS:
            raise Refused("On Kubeflow Pipelines an item that is a list cannot be looped over.")
        return task.take(Key("parameters", "", reference.name))
    if reference.of == "state":
        raise Refused("Kubeflow Pipelines does not tell a node the state of another.")
    node, name = origin_of(draft, reference)
    if _crosses_exit(draft, task, node):
        raise Refused("On Kubeflow Pipelines a node that runs always cannot use outputs of others.")
    holder = draft.root.holding(node)
    while isinstance(holder, Dag):
        holder = holder.holding(node)
    if isinstance(holder, ComponentTask) and form == "json":
        output = holder.what.output(name)
        if output is not None and output.passed == "file":
            return task.take(Key("artifacts", node, name))
    return task.take(Key("parameters", node, name, form))


def origin_of(draft: Draft, reference: Reference) -> tuple[str, str]:
    """The step whose output it is: that of an inner pipeline is one of its nodes'."""
    node, name = reference.node or "", reference.name
    while node in draft.groups:
        if name not in draft.groups[node].outputs:
            raise Refused(f"“{node}” has no output “{name}”.")
        inner = parse_one(draft.groups[node].outputs[name])
        if not isinstance(inner, Reference) or inner.kind != "nodes" or inner.of == "state":
            raise Refused(
                f"The output “{name}” of “{node}” is computed, which Kubeflow Pipelines cannot do."
            )
        node, name = inner.node or "", inner.name
    return node, name


def _crosses_exit(draft: Draft, task: Task, node: str) -> bool:
    last = draft.dags.get("")
    if last is None:
        return False
    return is_in(task, last) != (last.holding(node) is not None)


def template(draft: Draft, task: Task, value: Json) -> Json:
    """A value with inputs of the task in place of expressions."""
    if isinstance(value, str):
        parts = [
            ["value", part] if isinstance(part, str) else _input(draft, task, part)
            for part in parse(value)
        ]
        if len(parts) == 1:
            return parts[0]
        return ["text", parts] if parts else ["value", value]
    if isinstance(value, Mapping):
        return ["object", {key: template(draft, task, item) for key, item in value.items()}]
    if isinstance(value, list | tuple):
        return ["list", [template(draft, task, item) for item in value]]
    return ["value", value]


def _input(draft: Draft, task: Task, expression: Expression, form: str = "json") -> Json:
    if isinstance(expression, Constant):
        return ["value", expression.value]
    if isinstance(expression, First):
        return ["first", [_input(draft, task, *each) for each in _options(expression)]]
    assert isinstance(expression, Reference)
    if expression.kind == "run" and draft.home is not None and draft.home.run:
        return ["value", draft.home.run[expression.name]]
    name, _ = take(draft, task, expression, form)
    return ["input", name, list(expression.fields)]


def bound(step: Step) -> Iterator[tuple[Path, Json]]:
    """The properties of a step in which expressions are bound when it starts."""
    yield from ((("parameters", name), value) for name, value in step.parameters.items())
    yield from ((("env", name), value) for name, value in step.env.items())
    yield from ((("command", index), value) for index, value in enumerate(step.command))


def references_in(value: Json) -> Iterator[tuple[Reference, str]]:
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
            yield from references_in(item)


def _options(first: First) -> Iterator[tuple[Expression, str]]:
    """Of what `first(…)` chooses from, each with the form that it is needed in."""
    return ((option, "branch" if is_branch(option) else "json") for option in first.options)


def computed_in(step: Step) -> Iterator[Expression]:
    """The expressions in what a step is given, as far as they choose."""
    for _, value in bound(step):
        for _, text in texts(value):
            yield from (part for part in parse(text) if isinstance(part, First))


def reading(channel: Channel) -> str:
    words = {"NUMBER_INTEGER": "integer", "NUMBER_DOUBLE": "number"}
    if "artifactType" in channel.definition:
        return "file"
    form = channel.form
    return form if form in ("json", "branch", "file") else words.get(form, "plain")
