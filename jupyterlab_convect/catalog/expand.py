"""Graph components unfolded: a plan whose every component step has a container.

The tasks of a node `g` become the steps `g.<task>`. Ids of nodes have no dots, so
nothing can collide, and the node of a step is what stands before the first dot.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ..errors import ConvectError, Refused
from ..pipeline.cycles import order
from ..pipeline.expressions import Reference, as_text, substitute
from ..pipeline.plan import Amount, Group, Json, Plan, Resources, Secret, Step, digest_of, to_json
from ..pipeline.quantities import canonical
from .model import Component, ComponentGraph, GraphTask, component_from_json

MAX_STEPS = 5_000
RULE = ("after", "weak", "group", "when", "run_if", "for_each")
"""What a group has in place of its parts."""
Unit = TypeVar("Unit", Step, Group)
_ABSENT = object()
_ELSEWHERE = "Run it with Kubeflow Pipelines, or build the pipeline from its parts."


def expand(plan: Plan) -> Plan:
    """The plan with every graph unfolded. Refused for what only Kubeflow can do."""
    if all(step.kind != "component" for step in plan.steps):
        return plan
    expansion = _Expansion(plan)
    for step in plan.steps:
        expansion.add(step)
    return replace(
        plan,
        steps=tuple(expansion.steps),
        components=expansion.components,
        groups=(*map(expansion.redirected, plan.groups), *expansion.groups),
    )


@dataclass(slots=True)
class _Expansion:
    plan: Plan
    steps: list[Step] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    """The graphs that have a rule."""
    components: dict[str, Json] = field(default_factory=dict)
    parts: dict[str, list[str]] = field(default_factory=dict)
    """The steps that each graph has become."""
    outputs: dict[str, Mapping[str, Json]] = field(default_factory=dict)
    """What stands for each output of a graph: an expression or a value."""

    def add(self, step: Step) -> None:
        step = replace(
            self.redirected(step),
            parameters=substitute(step.parameters, self.look_up),
            env={name: as_text(substitute(text, self.look_up)) for name, text in step.env.items()},
            command=tuple(as_text(substitute(text, self.look_up)) for text in step.command),
        )
        if step.kind != "component":
            self.steps.append(step)
            return
        definition = self.plan.components.get(step.component or "")
        if definition is None:
            raise Refused(
                f"The definition of the component of “{step.id}” is not in the pipeline.",
                code="missing-component",
            )
        self.component(step, component_from_json(definition))

    def redirected(self, unit: Unit) -> Unit:
        """A step or group that waits for the parts of graphs instead of the graphs."""
        if not self.parts:
            return unit
        for_each = unit.for_each
        if for_each is not None:
            for_each = replace(for_each, items=substitute(for_each.items, self.look_up))
        changed = replace(
            unit,
            after=self.parted(unit.after),
            weak=self.parted(unit.weak),
            when=substitute(unit.when, self.look_up),
            for_each=for_each,
        )
        if isinstance(changed, Group):
            return replace(changed, outputs=substitute(changed.outputs, self.look_up))
        return changed

    def parted(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for item in names for name in self.parts.get(item, [item])))

    def look_up(self, reference: Reference) -> Json:
        if reference.kind != "nodes" or reference.node not in self.outputs:
            return str(reference)
        if reference.name not in self.outputs[reference.node]:
            raise Refused(f"“{reference.node}” has no output “{reference.name}”.")
        return self.outputs[reference.node][reference.name]

    def component(self, step: Step, component: Component) -> None:
        if component.graph is not None:
            self.graph(step, component, component.graph)
            return
        if component.container is None:
            raise Refused(
                f"“{component.name}” imports an artifact, which cannot be done here.",
                code="unsupported-component",
                hint=_ELSEWHERE,
            )
        if len(self.steps) >= MAX_STEPS:
            raise Refused(f"The pipeline expands to more than {MAX_STEPS} steps.")
        definition = to_json(component)
        key = component.digest or digest_of(definition)
        self.components[key] = definition
        asked = step.resources
        if asked == Resources():
            asked = _resources(component, component.container.resources)
        secrets = (*step.secrets, *_secrets(component))
        self.steps.append(
            replace(
                step,
                component=key,
                resources=asked,
                secrets=secrets,
                working_folder="isolated",
            )
        )

    def graph(self, step: Step, component: Component, graph: ComponentGraph) -> None:
        _refuse_unsupported(component, graph)
        outer = step
        has_rule = step.when is not None or step.for_each or step.run_if != "succeeded"
        if has_rule:  # All of it is under the rule, as that of a group is.
            rule = {name: getattr(step, name) for name in RULE}
            self.groups.append(Group(step.id, step.name, **rule))
            free = Step("", step.kind, "")
            plain = {name: getattr(free, name) for name in RULE}
            step = replace(step, **{**plain, "group": step.id})
        names = _step_ids(step.id, graph.tasks)
        given = _given(component, step)
        start = len(self.steps)
        for key in order({key: task.after for key, task in graph.tasks.items()}):
            task = graph.tasks[key]
            resolved = {
                name: self.resolve(argument, names, given)
                for name, argument in task.arguments.items()
            }
            inner = replace(
                step,
                id=names[key],
                name=f"{step.name}: {key}",
                after=tuple(dict.fromkeys((*step.after, *self.waits(task, names)))),
                parameters={
                    name: value for name, value in resolved.items() if value is not _ABSENT
                },
            )
            self.component(inner, graph.components[task.component])
        outputs = {
            name: None if value is _ABSENT else value
            for name, argument in graph.outputs.items()
            for value in [self.resolve(argument, names, given)]
        }
        if has_rule:
            place = next(i for i, group in enumerate(self.groups) if group.id == outer.id)
            self.groups[place] = replace(self.groups[place], outputs=outputs)
            return
        self.parts[step.id] = [item.id for item in self.steps[start:]]
        self.outputs[step.id] = outputs

    def waits(self, task: GraphTask, names: Mapping[str, str]) -> Iterable[str]:
        for key in task.after:
            yield from self.parts.get(names[key], [names[key]])

    def resolve(self, argument: Json, names: Mapping[str, str], given: Mapping[str, Json]) -> Json:
        kind, body = next(iter(argument.items()))
        if kind == "constant":
            return body
        if kind == "graphInput":
            return given.get(body, _ABSENT)
        if kind == "taskOutput":
            node, output = names[body["task"]], body["output"]
            if node in self.outputs:
                return self.look_up(Reference("nodes", output, node))
            return str(Reference("nodes", output, node))
        if kind == "concat":
            return "".join(self.text(part, names, given) for part in body)
        if kind == "context" and body in ("run.id", "run.name"):
            return f"${{{{ {body} }}}}"
        raise Refused(
            str(body) if kind == "unsupported" else "An argument cannot be given here.",
            code="unsupported-component",
            hint=_ELSEWHERE,
        )

    def text(self, part: Json, names: Mapping[str, str], given: Mapping[str, Json]) -> str:
        value = self.resolve(part, names, given)
        if isinstance(value, Mapping) and "file" in value:
            raise Refused("The content of a file cannot be put into a string here.")
        return "" if value is _ABSENT or value is None else as_text(value)


def _refuse_unsupported(component: Component, graph: ComponentGraph) -> None:
    for task in graph.tasks.values():
        if task.unsupported:
            raise Refused(
                f"“{component.name}” cannot run here: {task.unsupported}",
                code="unsupported-component",
                hint=_ELSEWHERE,
            )


def _given(component: Component, step: Step) -> dict[str, Json]:
    """What each input of the graph stands for; one without a value is not there."""
    given: dict[str, Json] = {}
    for item in component.inputs:
        value = step.parameters.get(item.name, item.default)
        if value is not None:
            given[item.name] = value
        elif not item.optional:
            raise Refused(
                f"The input “{item.name}” of “{step.name}” has no value.", code="missing-input"
            )
    return given


def _step_ids(node: str, tasks: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for key in tasks:
        slug = re.sub(r"\W+", "-", key).strip("-").lower()[:50]
        slug = "task" if slug in ("", "outputs") else slug
        name, number = f"{node}.{slug}", 2
        while name in found.values():
            name, number = f"{node}.{slug}-{number}", number + 1
        found[key] = name
    return found


def _resources(component: Component, asked: Resources) -> Resources:
    def plain(amount: Amount | None) -> Amount | None:
        if amount is None:
            return None
        request, limit = (text and canonical(text) for text in (amount.request, amount.limit))
        return Amount(request, limit)

    try:
        return replace(asked, cpu=plain(asked.cpu), memory=plain(asked.memory))
    except ConvectError:
        raise _beyond(component, "an amount that is known only when it runs") from None


def _secrets(component: Component) -> Iterator[Secret]:
    """Secrets that a compiled pipeline asks of Kubernetes; anything else it asks is refused."""
    asked = component.platforms or {}
    try:
        for kind in asked:
            if kind != "secretAsEnv":
                raise _beyond(component, kind)
            for item in asked[kind]:
                named = item.get("secretNameParameter", {}).get("runtimeValue", {})
                name = item.get("secretName") or named.get("constant")
                if not isinstance(name, str):
                    raise _beyond(component, "a secret whose name is known only when it runs")
                for pair in item["keyToEnv"]:
                    yield Secret(str(pair["envVar"]), name, str(pair["secretKey"]))
    except (AttributeError, KeyError, TypeError):
        raise _beyond(component, "what cannot be understood") from None


def _beyond(component: Component, what: str) -> Refused:
    return Refused(
        f"“{component.name}” asks Kubernetes for {what}, which cannot be given here.",
        code="unsupported-component",
        hint=_ELSEWHERE,
    )
