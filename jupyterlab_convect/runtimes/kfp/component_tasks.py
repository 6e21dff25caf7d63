"""The tasks of components, which run as themselves, and those that tell what they give."""

from __future__ import annotations

from collections.abc import Sequence

from ...catalog.model import Component
from ...errors import ConvectError, Refused
from ...pipeline.expressions import Reference, parse_one, references
from ...pipeline.plan import Json, Step
from . import components
from .argo_nodes import RESULTS
from .dags import ComponentTask, Key, Kind, ResultsTask
from .draft import Draft, add_executor, no_image
from .payload import results_command
from .references import origin_of, reading, take
from .step_tasks import files_of, helper_step


def add_results(draft: Draft, step: Step, task: ComponentTask) -> ResultsTask:
    assert task.parent is not None
    node = f"{step.id} {RESULTS}"
    found = ResultsTask(draft.new_key(node), f"{step.name}: {RESULTS}", task.parent, node)
    task.parent.tasks[node] = found
    return found


def finish_component(draft: Draft, task: ComponentTask, step: Step) -> None:
    what, container = task.what, task.what.container
    if container is None:
        raise Refused(f"“{what.name}” has no command of its own.")
    for output in what.outputs:
        if output.path:
            raise Refused(
                f"“{what.name}” writes its output “{output.name}” to a fixed path, where "
                "Kubeflow Pipelines does not look."
            )
    given: set[str] = set()
    for item in what.inputs:
        kind, definition = components.definition(item)
        name = task.ends.inputs[item.name]
        value = step.parameters.get(item.name, item.default)
        if value is None:
            continue
        given.add(item.name)
        path = ("inputs", item.name)
        try:
            _argument(draft, task, what, item.name, value)
        except ConvectError as error:
            draft.refuse(step.id, path, error.sentence, error.hint)
        where: Kind = "parameters" if kind == "parameters" else "artifacts"
        task.inputs[where][name] = definition

    def ask(fact: str) -> str:
        return task.tell(fact.removeprefix("run."))

    def words(arguments: Sequence[Json]) -> list[str]:
        return components.words(what, arguments, given, task.ends, ask)

    env = {name: "".join(words([item])) for name, item in container.env.items()}
    for name, text in step.env.items():
        if any(True for _ in references(text)):
            draft.refuse(
                step.id,
                ("env", name),
                "On Kubeflow Pipelines variables of a component cannot hold expressions.",
            )
        env[name] = text
    add_executor(
        draft,
        task,
        step,
        {
            "image": step.image or container.image,
            "command": words(container.command),
            "args": words(container.args),
            **(
                {"env": [{"name": name, "value": text} for name, text in sorted(env.items())]}
                if env
                else {}
            ),
        },
    )


def _argument(draft: Draft, task: ComponentTask, what: Component, name: str, value: Json) -> None:
    item, key = what.input(name), task.ends.inputs[name]
    assert item is not None
    kind = components.definition(item)[0]
    expression = parse_one(value)
    if isinstance(expression, Reference):
        if kind == "artifacts":
            node, output = origin_of(draft, expression)
            taken, _ = task.take(Key("artifacts", node, output))
            task.given["artifacts"][key] = task.given["artifacts"].pop(taken)
            task.inputs["artifacts"].pop(taken)
            return
        taken, channel = take(draft, task, expression, components.parameter_type(item))
        if channel.lists or expression.fields or channel.definition == {}:
            raise Refused("Kubeflow Pipelines cannot give a component what a loop collects.")
        task.given["parameters"][key] = task.given["parameters"].pop(taken)
        task.inputs["parameters"].pop(taken)
        return
    if expression is not None or any(True for _ in references(value)):
        raise Refused("On Kubeflow Pipelines an input of a component is one output, or a value.")
    if kind == "artifacts":
        raise Refused(
            f"On Kubeflow Pipelines the input “{name}” takes a file that another node makes."
        )
    told = components.constant(what, item, value)
    task.given["parameters"][key] = {"runtimeValue": {"constant": told}}


def finish_results(draft: Draft, task: ResultsTask, step: Step) -> None:
    """It takes all that the component gives, and tells it."""
    owner = draft.dag_of(step).tasks[step.id]
    assert isinstance(owner, ComponentTask)
    outputs = []
    for output in owner.what.outputs:
        kind, _ = components.definition(output)
        where: Kind = "parameters" if kind == "parameters" else "artifacts"
        name, channel = task.take(Key(where, step.id, output.name))
        spec = {"kind": reading(channel), "lists": 0, "words": ""}
        outputs.append({"name": output.name, "input": name, "spec": spec})
    around = helper_step(draft, task.node)
    if not around.image:
        draft.problems.append(no_image(step))
        return
    assert draft.home is not None
    words = results_command(outputs, files_of(draft, task), draft.home)
    container = {"image": around.image, "command": words[:3], "args": words[3:]}
    add_executor(draft, task, around, container)
