"""Graphs become steps, with every reference to them led to the part that answers it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from jupyterlab_convect.catalog.expand import MAX_STEPS, expand
from jupyterlab_convect.catalog.model import Component
from jupyterlab_convect.catalog.read import read
from jupyterlab_convect.errors import ConvectError, Refused
from jupyterlab_convect.pipeline.plan import (
    Amount,
    ForEach,
    Plan,
    Resources,
    Secret,
    Step,
    to_json,
)

LEAF = {
    "name": "Leaf",
    "inputs": [{"name": "i", "optional": True}, {"name": "n", "type": "Integer", "default": "1"}],
    "outputs": [{"name": "o"}],
    "implementation": {
        "container": {
            "image": "alpine",
            "command": ["sh", {"inputPath": "i"}, {"inputValue": "n"}, {"outputPath": "o"}],
        }
    },
}


def graph(tasks: dict[str, Any], outputs: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "name": "G",
        **more,
        "outputs": [{"name": name} for name in outputs],
        "implementation": {"graph": {"tasks": tasks, "outputValues": outputs}},
    }


def leaf(**arguments: Any) -> dict[str, Any]:
    return {"componentRef": {"spec": LEAF}, "arguments": arguments}


def output(task: str, name: str = "o") -> dict[str, Any]:
    return {"taskOutput": {"taskId": task, "outputName": name}}


def component(spec: dict[str, Any]) -> Component:
    reading = read(yaml.safe_dump(spec, sort_keys=False).encode(), "g.yaml")
    assert not reading.errors, reading.errors
    return reading.components[0]


def plan(made: Component, *others: Step, **arguments: Any) -> Plan:
    step = Step(
        id="g",
        kind="component",
        name="My graph",
        component="c",
        parameters=arguments,
        after=("first",),
        timeout=5.0,
    )
    first = Step(id="first", kind="notebook", name="first", path="a.ipynb")
    return Plan("p", (first, step, *others), components={"c": to_json(made)})


def simple() -> Component:
    tasks = {
        "Load data": leaf(n={"graphInput": {"inputName": "count"}}),
        "Use it": leaf(i=output("Load data"), n=7),
    }
    return component(
        graph(
            tasks,
            {"result": output("Use it"), "count": {"graphInput": {"inputName": "count"}}},
            inputs=[{"name": "count", "type": "Integer", "default": "3"}],
        )
    )


def test_tasks_become_steps_with_their_order_and_arguments() -> None:
    expanded = expand(plan(simple(), count=4))
    _, load, use = expanded.steps
    assert [step.id for step in expanded.steps] == ["first", "g.load-data", "g.use-it"]
    assert load.parameters == {"n": 4}
    assert load.after == ("first",)
    assert use.parameters == {"i": "${{ nodes.g.load-data.outputs.o }}", "n": 7}
    assert set(use.after) == {"first", "g.load-data"}
    assert (use.name, use.timeout) == ("My graph: Use it", 5.0)
    assert len(expanded.components) == 1
    assert "container" in expanded.components[use.component or ""]


def test_what_refers_to_a_graph_refers_to_the_part_that_answers() -> None:
    after = Step(
        id="after",
        kind="notebook",
        name="after",
        path="b.ipynb",
        after=("g",),
        parameters={
            "path": "${{ nodes.g.outputs.result }}",
            "n": "${{ nodes.g.outputs.count }}",
            "other": "${{ nodes.first.outputs.x }}",
        },
        env={"WHERE": "at ${{ nodes.g.outputs.result }}"},
    )
    last = expand(plan(simple(), after)).steps[-1]
    assert last.parameters == {
        "path": "${{ nodes.g.use-it.outputs.o }}",
        "n": "3",
        "other": "${{ nodes.first.outputs.x }}",
    }
    assert last.env == {"WHERE": "at ${{ nodes.g.use-it.outputs.o }}"}
    assert last.after == ("g.load-data", "g.use-it")


def test_graphs_in_graphs_unfold_all_the_way() -> None:
    inner = graph(
        {"a": leaf(i={"graphInput": {"inputName": "x"}}), "b": leaf(i=output("a"))},
        {"y": output("b")},
        inputs=[{"name": "x"}],
    )
    outer = component(
        graph(
            {
                "one": {
                    "componentRef": {"spec": inner},
                    "arguments": {"x": {"graphInput": {"inputName": "z"}}},
                },
                "two": {"componentRef": {"spec": inner}, "arguments": {"x": output("one", "y")}},
            },
            {"end": output("two", "y")},
            inputs=[{"name": "z"}],
        )
    )
    steps = {step.id: step for step in expand(plan(outer, z={"file": "d.csv"})).steps}
    assert set(steps) == {"first", "g.one.a", "g.one.b", "g.two.a", "g.two.b"}
    assert steps["g.one.a"].parameters == {"i": {"file": "d.csv"}}
    assert steps["g.two.a"].parameters == {"i": "${{ nodes.g.one.b.outputs.o }}"}
    assert "g.one.b" in steps["g.two.a"].after


def test_an_optional_input_without_a_value_is_left_out() -> None:
    made = component(
        graph(
            {"a": leaf(i={"graphInput": {"inputName": "x"}})},
            {},
            inputs=[{"name": "x", "optional": True}],
        )
    )
    assert expand(plan(made)).steps[1].parameters == {}
    assert expand(plan(made, x=5)).steps[1].parameters == {"i": 5}


def test_a_required_input_must_have_a_value() -> None:
    made = component(
        graph({"a": leaf(i={"graphInput": {"inputName": "x"}})}, {}, inputs=[{"name": "x"}])
    )
    with pytest.raises(Refused, match="The input “x” of “My graph” has no value"):
        expand(plan(made))


def test_names_that_look_alike_stay_apart() -> None:
    made = component(graph({"A b": leaf(), "a-b": leaf(), "outputs": leaf(), "数据": leaf()}, {}))
    assert [step.id for step in expand(plan(made)).steps[1:]] == [
        "g.a-b",
        "g.a-b-2",
        "g.task",
        "g.数据",
    ]


def test_a_plan_without_components_is_left_alone() -> None:
    made = Plan("p", (Step(id="a", kind="command", name="a", command=("true",)),))
    assert expand(made) is made


def test_a_definition_that_is_not_there_is_refused() -> None:
    step = Step(id="a", kind="component", name="a", component="gone")
    with pytest.raises(Refused, match="not in the pipeline"):
        expand(Plan("p", (step,)))


def test_conditions_are_refused_in_a_sentence(corpus: Path) -> None:
    name = "ir-flip-coin-conditions.yaml"
    made = read((corpus / name).read_bytes(), name).components[0]
    with pytest.raises(Refused, match="cannot run here: The task “condition-1” has a condition"):
        expand(plan(made))


def test_a_compiled_pipeline_of_several_steps_unfolds(corpus: Path) -> None:
    name = "ir-multi-document-secret.yaml"
    data = (corpus / name).read_bytes()
    made = read(data, name).components[0]
    with pytest.raises(Refused, match="a secret whose name is known only when it runs"):
        expand(plan(made))
    simpler = data.split(b"            - keyToEnv:")
    made = read(simpler[0] + b"            - keyToEnv:" + simpler[2], name).components[0]
    steps = {step.id: step for step in expand(plan(made)).steps}
    assert "g.generate-secret-name" in steps["g.comp"].after
    assert steps["g.comp"].secrets == (Secret("PASSWORD_VAR1", "test-secret-2", "password"),)


def test_a_constant_with_a_quoted_output_is_a_text_with_an_expression() -> None:
    text = """
    pipelineInfo: {name: p}
    components:
      a: {executorLabel: e, outputDefinitions: {parameters: {n: {parameterType: STRING}}}}
      b: {executorLabel: e, inputDefinitions: {parameters: {m: {parameterType: STRING}}}}
    deploymentSpec: {executors: {e: {container: {image: i, command: [x]}}}}
    root:
      dag:
        tasks:
          a: {componentRef: {name: a}}
          b:
            componentRef: {name: b}
            inputs:
              parameters:
                m: {runtimeValue: {constant: "n={{$.inputs.parameters['c']}}!"}}
                c: {taskOutputParameter: {producerTask: a, outputParameterKey: n}}
    """
    made = read(text.encode(), "p.yaml").components[0]
    step = expand(plan(made)).steps[-1]
    assert step.parameters == {"m": "n=${{ nodes.g.a.outputs.n }}!"}
    assert "g.a" in step.after


@pytest.mark.parametrize(
    ("limit", "found"),
    [("1.5", Resources(cpu=Amount(None, "1500m"))), ("{{$.inputs.parameters['n']}}", None)],
)
def test_resources_of_a_compiled_component_are_asked_for(
    limit: str, found: Resources | None
) -> None:
    container = {"image": "i", "command": ["x"], "resources": {"resourceCpuLimit": limit}}
    spec = {
        "pipelineInfo": {"name": "p"},
        "components": {"c": {"executorLabel": "e"}},
        "deploymentSpec": {"executors": {"e": {"container": container}}},
        "root": {"dag": {"tasks": {"t": {"componentRef": {"name": "c"}}}}},
    }
    made = plan(component(spec))
    if found is None:
        with pytest.raises(Refused, match="an amount that is known only when it runs"):
            expand(made)
    else:
        assert expand(made).steps[1].resources == found


def test_graphs_that_grow_beyond_measure_are_refused() -> None:
    levels = 4
    components: dict[str, Any] = {"c0": {"executorLabel": "e"}}
    for level in range(1, levels):
        tasks = {f"t{n}": {"componentRef": {"name": f"c{level - 1}"}} for n in range(20)}
        components[f"c{level}"] = {"dag": {"tasks": tasks}}
    spec = {
        "pipelineInfo": {"name": "p"},
        "components": components,
        "deploymentSpec": {"executors": {"e": {"container": {"image": "i", "command": ["x"]}}}},
        "root": {"dag": {"tasks": {"t": {"componentRef": {"name": f"c{levels - 1}"}}}}},
    }
    with pytest.raises(Refused, match=f"more than {MAX_STEPS} steps"):
        expand(plan(component(spec)))


def test_the_xgboost_graph_unfolds_to_its_tasks(
    corpus: Path, xgboost: Callable[[], Component]
) -> None:
    expanded = expand(plan(xgboost(), data={"file": "tips.csv"}))
    assert len(expanded.steps) == 33
    assert len(expanded.components) == 7
    last = expanded.step("g.aggregate-regression-metrics-from-csv")
    assert last.parameters["metrics_1"] == (
        "${{ nodes.g.calculate-regression-metrics-from-csv-3.outputs.metrics }}"
    )
    with pytest.raises(ConvectError):
        expand(plan(xgboost()))


def test_a_graph_with_a_rule_is_a_group() -> None:
    made = component(graph({"a": leaf(), "b": leaf(i=output("a"))}, {"out": output("b")}))
    use = Step(
        id="use",
        kind="command",
        name="use",
        after=("g",),
        parameters={"x": "${{ nodes.g.outputs.out }}"},
    )
    whole = plan(made, use)
    loop = ForEach("n", [1, 2])
    steps = tuple(
        replace(step, for_each=loop, when=True) if step.id == "g" else step for step in whole.steps
    )
    expanded = expand(replace(whole, steps=steps))
    (group,) = expanded.groups
    assert (group.id, group.after, group.when, group.for_each) == ("g", ("first",), True, loop)
    assert group.outputs == {"out": "${{ nodes.g.b.outputs.o }}"}
    inside = {step.id: step for step in expanded.steps if step.group == "g"}
    assert {name: step.after for name, step in inside.items()} == {"g.a": (), "g.b": ("g.a",)}
    assert all(step.when is None and step.for_each is None for step in inside.values())
    assert expanded.step("use").after == ("g",)
    assert expanded.step("use").parameters == {"x": "${{ nodes.g.outputs.out }}"}
