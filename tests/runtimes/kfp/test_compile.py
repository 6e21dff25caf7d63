"""Plans as pipelines of Kubeflow."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from launcher import Launcher

from jupyterlab_convect.catalog.model import Component
from jupyterlab_convect.catalog.read import read
from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.pipeline.plan import Plan, to_json
from jupyterlab_convect.pipeline.problems import Problem
from jupyterlab_convect.runtimes.kfp import support
from jupyterlab_convect.runtimes.kfp.compile import Compiled, compile_plan, examine
from jupyterlab_convect.runtimes.kfp.executor import TaskDefaults
from jupyterlab_convect.runtimes.kfp.export import as_yaml
from jupyterlab_convect.runtimes.kfp.payload import ProjectFiles, RunPayload
from jupyterlab_convect.runtimes.kfp.task import NO_ITEM, NOT_GIVEN, ExecutorInput, decode, encode

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "jupyterlab_convect/pipeline/schema.json").read_bytes())
NOTEBOOK = {"kind": "notebook", "path": "one.ipynb"}
COMPONENT = """
name: Count words
inputs:
- {name: Text, type: Data}
- {name: Least, type: Integer, default: '2'}
- {name: Label, type: String, optional: true}
outputs:
- {name: Words, type: Integer}
- {name: List, type: Data}
implementation:
  container:
    image: words:1
    command: [count, --text, {inputPath: Text}, --least, {inputValue: Least}]
    args:
    - if: {cond: {isPresent: Label}, then: [--label, {inputValue: Label}]}
    - {concat: [--words=, {outputPath: Words}]}
    - {outputPath: List}
"""


@pytest.fixture
def compiled(project: Path, plan_of: Callable[..., Plan]) -> Callable[..., Compiled]:
    def make(nodes: dict[str, Any], **document: Any) -> Compiled:
        return compile_plan(plan_of(nodes, **document), ProjectFiles(project), TaskDefaults())

    return make


@pytest.fixture
def problems(project: Path, plan_of: Callable[..., Plan]) -> Callable[..., list[Problem]]:
    def make(nodes: dict[str, Any], **document: Any) -> list[Problem]:
        return examine(plan_of(nodes, **document), ProjectFiles(project), TaskDefaults())[1]

    return make


def tasks(compiled: Compiled, *way: str) -> dict[str, Any]:
    """The tasks of the root, or of the DAG that a way of task keys leads to."""
    spec = compiled.pipeline_spec
    found = spec["root"]["dag"]["tasks"]
    for key in way:
        component = found[key]["componentRef"]["name"]
        found = spec["components"][component]["dag"]["tasks"]
    return found


def words_component() -> tuple[str, dict[str, Any]]:
    found = component(COMPONENT)
    return found.digest, {found.digest: to_json(found)}


def component(text: str) -> Component:
    (found,) = read(text.encode(), "component.yaml").components
    return found


SCRATCH = {"claim": "scratch", "path": "/scratch", "size": "1Gi", "storage_class": "fast"}
# What each property is set to, to see what becomes of it.
SAMPLES: dict[str, Any] = {
    "name": {"name": "Other"},
    "image": {"image": "other:2"},
    "pull_policy": {"pull_policy": "Always"},
    "kernel": {"kernel": "python3-other"},
    "env": {"env": {"A": "1"}},
    "secrets": {"secrets": [{"env": "TOKEN", "name": "hub", "key": "token"}]},
    "resources.cpu": {"resources": {"cpu": {"request": "500m", "limit": 2}}},
    "resources.memory": {"resources": {"memory": "2Gi"}},
    "resources.gpu.count": {"resources": {"gpu": 1}},
    "resources.gpu.type": {"resources": {"gpu": {"count": 1, "type": "A100"}}},
    "resources.gpu.resource": {"resources": {"gpu": {"count": 1, "resource": "amd.com/gpu"}}},
    "resources.shared_memory": {"resources": {"shared_memory": "1Gi"}},
    "resources.ephemeral_storage": {"resources": {"ephemeral_storage": "1Gi"}},
    "parameters": {"parameters": {"x": 2}},
    "volumes.claim": {"volumes": [{"claim": "data", "path": "/data"}]},
    "volumes.path": {"volumes": [{"claim": "data", "path": "/other"}]},
    "volumes.sub_path": {"volumes": [{"claim": "data", "path": "/data", "sub_path": "a"}]},
    "volumes.read_only": {"volumes": [{"claim": "data", "path": "/data", "read_only": True}]},
    "volumes.size": {"volumes": [{**SCRATCH, "size": "2Gi"}]},
    "volumes.mode": {"volumes": [{**SCRATCH, "mode": "ReadWriteMany"}]},
    "volumes.storage_class": {"volumes": [{**SCRATCH, "storage_class": "slow"}]},
    "dependencies": {"dependencies": ["two.ipynb"]},
    "outputs": {"outputs": ["*.csv"]},
    "metrics": {"metrics": {"loss": "loss=(.*)"}},
    "retries.count": {"retries": 2},
    "retries.delay": {"retries": {"count": 2, "delay": 30}},
    "retries.factor": {"retries": {"count": 2, "factor": 3}},
    "timeout": {"timeout": "2h"},
    "cache": {"cache": True},
    "working_folder": {"working_folder": "work"},
    "distributed": {"distributed": {"processes": 2}},
    "dask": {"dask": {"workers": 2}},
    "kubernetes.node_selector": {"kubernetes": {"node_selector": {"zone": "a"}}},
    "kubernetes.tolerations": {"kubernetes": {"tolerations": [{"key": "a", "seconds": 5}]}},
    "kubernetes.labels": {"kubernetes": {"labels": {"team": "x"}}},
    "kubernetes.annotations": {"kubernetes": {"annotations": {"note": "x"}}},
    "kubernetes.priority": {"kubernetes": {"priority": "high"}},
    "kubernetes.service_account": {"kubernetes": {"service_account": "me"}},
    "kubernetes.pull_secrets": {"kubernetes": {"pull_secrets": ["registry"]}},
    "kubernetes.resources": {"kubernetes": {"resources": {"rdma/hca": "1"}}},
    "when": {"when": "${{ nodes.before.outputs.x > 1 }}"},
    "for_each.name": {"for_each": {"name": "i", "in": [1]}},
    "for_each.in": {"for_each": {"name": "i", "in": [1, 2]}},
    "for_each.parallel": {"for_each": {"name": "i", "in": [1], "parallel": 2}},
    "run_if": {"run_if": "always"},
    "disabled": {"disabled": True},
    "after": {"after": ["before"]},
}


def properties() -> Iterator[str]:
    """Every property of the schema, down to those that mean one thing."""
    yield from SCHEMA["properties"]
    kinds = ("notebook", "script", "command", "component", "pipeline", "group")
    found: dict[str, None] = {}
    for kind in kinds:
        for name in _of("$defs/" + kind):
            found[f"node.{name}"] = None
    yield from found


def _of(place: str) -> Iterator[str]:
    definition = SCHEMA
    for part in place.split("/"):
        definition = definition[part]
    for part in definition.get("allOf", ()):
        if "$ref" in part:
            yield from _of(part["$ref"].removeprefix("#/"))
        yield from _named(part.get("properties", {}))
    yield from _named(definition.get("properties", {}))


WHOLE = ("free", "amount", "quantity", "toleration", "distributed", "dask")
"""Definitions that mean one thing, whatever they are made of."""


def _named(named: dict[str, Any]) -> Iterator[str]:
    for name, definition in named.items():
        options = [definition, definition.get("items", {}), *definition.get("oneOf", ())]
        inner = [option["$ref"].rpartition("/")[2] for option in options if "$ref" in option]
        if not inner or inner[0] in WHOLE:
            yield name
        else:
            yield from (f"{name}.{each}" for each in _of(f"$defs/{inner[0]}"))


def test_the_table_has_every_property_and_no_other() -> None:
    assert sorted(set(properties())) == sorted(support.PROPERTIES)


def test_the_documentation_has_the_table() -> None:
    assert support.table() in (ROOT / "docs" / "kfp.md").read_text("utf-8")
    chinese = (ROOT / "docs" / "kfp.zh.md").read_text("utf-8")
    words = {"honoured": "支持", "approximated": "近似", "refused": "拒绝", "not needed": "不需要"}
    rows = [f"| `{name}` | {words[item.support]} |" for name, item in support.PROPERTIES.items()]
    assert "\n".join(rows) in chinese


@pytest.mark.parametrize("name", SAMPLES)
def test_a_property_is_honoured_or_refused_as_the_table_says(
    name: str, project: Path, plan_of: Callable[..., Plan]
) -> None:
    before = {"kind": "notebook", "path": "two.ipynb"}
    plain = {"before": before, "node": NOTEBOOK}
    # “always” says something only of a node that comes after another.
    base = {**NOTEBOOK, "after": ["before"]} if name == "run_if" else NOTEBOOK
    if name == "distributed":  # which a notebook cannot be
        base = {"kind": "command", "command": ["true"]}
    asked = {"before": before, "node": {**base, **SAMPLES[name]}}
    first, _ = examine(plan_of(plain), ProjectFiles(project), TaskDefaults())
    second, told = examine(plan_of(asked), ProjectFiles(project), TaskDefaults())
    expected = [item for key, item in support.PROPERTIES.items() if key.startswith(f"node.{name}")]
    if expected[0].support == "refused":
        (problem,) = told
        assert second is None
        assert (problem.severity, problem.node) == ("error", "node")
        parts = [part for part in problem.path if isinstance(part, str)]
        assert ".".join(parts) == name
    else:
        assert told == []
        assert first is not None
        assert second is not None
        assert as_yaml(second) != as_yaml(first)


def test_the_samples_cover_all_that_a_step_can_be_set_to() -> None:
    settable = {
        key.removeprefix("node.")
        for key, item in support.PROPERTIES.items()
        if key.startswith("node.") and item.support != "not needed"
    }
    # These say what a node is, and are in every document of these tests.
    identity = {"kind", "path", "command", "component", "inputs", "members"}
    grouped = {key if not key.startswith("secrets.") else "secrets" for key in settable}
    assert grouped - identity == set(SAMPLES)


def test_conditions_loops_and_what_runs_always(compiled: Callable[..., Compiled]) -> None:
    found = compiled(
        {
            "prepare": NOTEBOOK,
            "regions": {
                "kind": "group",
                "members": ["score", "report"],
                "when": "${{ nodes.prepare.outputs.auc >= 0.8 && !nodes.prepare.outputs.dry }}",
                "for_each": {
                    "name": "region",
                    "in": "${{ nodes.prepare.outputs.regions }}",
                    "parallel": 4,
                },
            },
            "score": {**NOTEBOOK, "parameters": {"region": "${{ each.region.name }}"}},
            "report": {**NOTEBOOK, "parameters": {"x": "${{ nodes.score.outputs.x }}"}},
            "sum": {**NOTEBOOK, "after": ["regions"]},
            "clean": {"kind": "command", "command": ["true"], "after": ["sum"]}
            | {"run_if": "always"},
        }
    )
    assert set(tasks(found)) == {"files", "whole"}
    whole = tasks(found, "whole")
    assert whole["finally"]["triggerPolicy"] == {"strategy": "ALL_UPSTREAM_TASKS_COMPLETED"}
    assert whole["finally"]["dependentTasks"] == ["exit-handler-1"]
    # What runs at the end takes nothing from a task beside it, which would make it wait for that.
    assert whole["finally"]["inputs"]["artifacts"] == {
        "files-bundle": {"componentInputArtifact": "files-bundle"}
    }
    assert set(tasks(found, "whole", "finally")) == {"clean"}
    main = tasks(found, "whole", "exit-handler-1")
    value = 'parseJson(inputs.parameter_values["prepare-{}"])'
    assert main["regions-if"]["triggerPolicy"]["condition"] == (
        f"(({value.format('auc')} >= 0.8) && !({value.format('dry')}))"
    )
    loop = tasks(found, "whole", "exit-handler-1", "regions-if")["regions"]
    assert loop["iteratorPolicy"] == {"parallelismLimit": 4}
    assert loop["parameterIterator"] == {
        "itemInput": "each",
        "items": {"inputParameter": "prepare-regions-items"},
    }
    inner = tasks(found, "whole", "exit-handler-1", "regions-if", "regions")
    assert inner["score"]["inputs"]["parameters"]["region"] == {"componentInputParameter": "each"}
    assert inner["report"]["inputs"]["parameters"]["score-x"] == {
        "taskOutputParameter": {"producerTask": "score", "outputParameterKey": "x"}
    }
    assert main["sum"]["dependentTasks"] == ["regions-if"]
    above = ("whole", "exit-handler-1")
    assert found.places["score"] == (*above, "regions-if", "regions", "*", "score")
    assert found.places["clean"] == (*above, "onExit", "finally", "clean")


def test_first_takes_the_branch_that_ran(compiled: Callable[..., Compiled]) -> None:
    """What needs it waits for a DAG around each branch, which ends well when that is skipped."""
    chosen = "first(nodes.good.outputs.x, nodes.plain.outputs.x)"
    found = compiled(
        {
            "train": NOTEBOOK,
            "good": {**NOTEBOOK, "when": "${{ nodes.train.outputs.x > 1 }}"},
            "plain": {**NOTEBOOK, "when": "${{ nodes.train.outputs.x <= 1 }}"},
            "end": {**NOTEBOOK, "parameters": {"x": f"${{{{ {chosen} }}}}"}},
            "more": {**NOTEBOOK, "when": f"${{{{ {chosen} == 3 }}}}"},
            "least": {**NOTEBOOK, "parameters": {"x": "${{ first(nodes.good.outputs.x, 0) }}"}},
        }
    )
    known = tasks(found)
    assert known["end"]["dependentTasks"] == ["good-branch", "plain-branch"]
    inside = found.pipeline_spec["components"]["comp-good-branch"]["dag"]
    assert inside["tasks"]["good"]["triggerPolicy"] == {
        "condition": '(parseJson(inputs.parameter_values["train-x"]) > 1.0)'
    }
    assert "triggerPolicy" not in known["good-branch"]
    one, other = (f'inputs.parameter_values["{name}-x-branch"]' for name in ("good", "plain"))
    either = f'({one} != "" || {other} != "")'
    assert known["end"]["triggerPolicy"] == {"condition": either}
    value = f'({one} != "" ? parseJson({one}) : parseJson({other}))'
    assert known["more"]["triggerPolicy"] == {"condition": f"{either} && ({value} == 3.0)"}
    assert "triggerPolicy" not in known["least"]
    assert found.places["good"] == ("good-branch", "good")


@pytest.mark.parametrize(
    ("given", "value"), [({"a": "1", "b": "2"}, 1), ({"a": "", "b": "2"}, 2), ({"b": "null"}, None)]
)
def test_a_task_takes_what_is_there(given: dict[str, str], value: Any) -> None:
    told = ExecutorInput({"inputs": {"parameterValues": given}})
    spec = {name: {"kind": "branch", "lists": 0, "words": "none"} for name in ("a", "b")}
    chosen = ["first", [["input", "a", []], ["input", "b", []]]]
    assert told.value(chosen, spec) == value
    # One that ran and gave nothing is not passed over, here as anywhere.
    with pytest.raises(SystemExit, match="none"):
        ExecutorInput({"inputs": {"parameterValues": {"a": NOT_GIVEN, "b": "2"}}}).value(
            chosen, spec
        )


def test_a_claim_that_a_run_makes_is_made_first_and_deleted_last(
    compiled: Callable[..., Compiled],
) -> None:
    mounted = {"claim": "scratch", "path": "/scratch"}
    found = compiled(
        {
            "one": {**NOTEBOOK, "volumes": [SCRATCH], "cache": True},
            "two": {
                **NOTEBOOK,
                "after": ["one"],
                "volumes": [mounted],
                "for_each": {"name": "i", "in": [1, 2]},
            },
            "clean": {**NOTEBOOK, "after": ["two"], "run_if": "always", "volumes": [mounted]},
        }
    )
    root = tasks(found)
    assert sorted(root) == ["files", "make-scratch", "volumes"]
    assert root["volumes"]["dependentTasks"] == ["make-scratch"]
    assert root["make-scratch"]["cachingOptions"] == {}
    given = root["make-scratch"]["inputs"]["parameters"]
    assert {name: item["runtimeValue"]["constant"] for name, item in given.items()} == {
        "access_modes": ["ReadWriteOnce"],
        "pvc_name_suffix": "-scratch",
        "size": "1Gi",
        "storage_class_name": "fast",
    }
    around = tasks(found, "volumes")
    assert sorted(around) == ["delete-volumes", "with-volumes"]
    assert around["delete-volumes"]["triggerPolicy"] == {"strategy": "ALL_UPSTREAM_TASKS_COMPLETED"}
    assert around["delete-volumes"]["dependentTasks"] == ["with-volumes"]
    (delete,) = tasks(found, "volumes", "delete-volumes").values()
    name = "claim-scratch-name-string"
    assert delete["inputs"]["parameters"] == {"pvc_name": {"componentInputParameter": name}}
    executors = found.pipeline_spec["deploymentSpec"]["executors"]
    images = [item["container"]["image"] for item in executors.values()]
    assert sorted(images)[:2] == ["argostub/createpvc", "argostub/deletepvc"]
    settings = found.platform_spec["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    mounts = [item["pvcMount"] for item in settings.values() if "pvcMount" in item]
    source = {"componentInputParameter": name}
    assert mounts == [[{**source, "pvcNameParameter": source, "mountPath": "/scratch"}]] * 3
    assert (
        tasks(found, "volumes", "with-volumes", "whole", "exit-handler-1")["one"]["cachingOptions"]
        == {}
    )


def test_what_a_loop_gives_is_a_list_outside(compiled: Callable[..., Compiled]) -> None:
    found = compiled(
        {
            "score": {
                **NOTEBOOK,
                "for_each": {"name": "i", "in": ["a", 1, None]},
                "parameters": {"i": "${{ each.i }}"},
            },
            "sum": {**NOTEBOOK, "parameters": {"all": "${{ nodes.score.outputs.x }}"}},
        }
    )
    loop = tasks(found)["score-each"]
    # By this name Kubeflow looks for the outputs of a loop.
    assert loop["taskInfo"] == {"name": "score-each"}
    # Each item is JSON text, so that it keeps its type.
    raw = loop["parameterIterator"]["items"]["raw"]
    assert [json.loads(item) for item in json.loads(raw)] == ["a", 1, None]
    component = found.pipeline_spec["components"]["comp-score-each"]
    assert component["outputDefinitions"]["parameters"] == {"score-x": {"parameterType": "LIST"}}
    assert tasks(found)["sum"]["inputs"]["parameters"]["score-x"] == {
        "taskOutputParameter": {"producerTask": "score-each", "outputParameterKey": "score-x"}
    }


def test_a_loop_of_nothing_gives_an_empty_list(
    compiled: Callable[..., Compiled], tmp_path: Path
) -> None:
    """Kubeflow finds no outputs of a loop without items, so that there is always one."""
    none = {"kind": "STRING", "lists": 0}
    found = compiled(
        {
            "a": NOTEBOOK,
            "b": {**NOTEBOOK, "for_each": {"name": "i", "in": "${{ nodes.a.outputs.x }}"}},
            "c": {**NOTEBOOK, "parameters": {"x": "${{ nodes.b.outputs.x }}"}},
            "d": {**NOTEBOOK, "for_each": {"name": "i", "in": []}},
        }
    )
    assert tasks(found)["d-each"]["parameterIterator"]["items"] == {"raw": f'["{NO_ITEM}"]'}
    assert encode({"name": "x", "kind": "some"}, {"x": []}) == f'["{NO_ITEM}"]'
    assert encode({"name": "x", "kind": "some"}, {"x": [1]}) == '["1"]'
    # The step in the loop is told its item, and does nothing without one.
    inside = found.pipeline_spec["components"]["comp-b-each"]["dag"]["tasks"]["b"]
    assert inside["inputs"]["parameters"]["i"] == {"componentInputParameter": "each"}
    written = tmp_path / "x"
    told = {
        "inputs": {"parameterValues": {"i": NO_ITEM}},
        "outputs": {"parameters": {"x": {"outputFile": str(written)}}},
    }
    task = ExecutorInput(told)
    assert task.has_no_item({"inputs": {"i": {**none, "kind": "json"}}})
    assert not task.has_no_item({"inputs": {"i": {**none, "kind": "plain"}}})
    assert task.give_nothing([{"name": "x", "kind": "json", "key": "x"}]) == 0
    assert decode([written.read_text()], "json", 1, "") == []


def test_a_pipeline_in_a_pipeline_is_a_dag_with_its_outputs(
    compiled: Callable[..., Compiled], project: Path
) -> None:
    inner = {
        "convect": 1,
        "parameters": {"lr": {"type": "number"}},
        "nodes": {"train": {**NOTEBOOK, "image": "ds:1"}},
        "outputs": {"auc": "${{ nodes.train.outputs.x }}"},
    }
    inner["nodes"]["train"]["parameters"] = {"lr": "${{ parameters.lr }}"}  # type: ignore[index]
    (project / "inner.pipeline").write_text(json.dumps(inner))
    found = compiled(
        {
            "first": NOTEBOOK,
            "inner": {
                "kind": "pipeline",
                "path": "inner.pipeline",
                "parameters": {"lr": "${{ nodes.first.outputs.lr }}"},
            },
            "last": {**NOTEBOOK, "parameters": {"auc": "${{ nodes.inner.outputs.auc }}"}},
        }
    )
    assert list(tasks(found, "inner")) == ["inner-train"]
    assert tasks(found)["inner"]["inputs"]["parameters"]["first-lr"] == {
        "taskOutputParameter": {"producerTask": "first", "outputParameterKey": "lr"}
    }
    assert tasks(found)["last"]["inputs"]["parameters"]["inner-train-x"] == {
        "taskOutputParameter": {"producerTask": "inner", "outputParameterKey": "inner-train-x"}
    }


def test_a_component_runs_as_itself(compiled: Callable[..., Compiled]) -> None:
    digest, definitions = words_component()
    count = {"kind": "component", "component": digest}
    found = compiled(
        {
            "first": {**count, "inputs": {"Text": "${{ nodes.zero.outputs.List }}", "Least": 3}},
            "zero": {**count, "inputs": {"Text": "${{ nodes.none.outputs.List }}", "Label": "l"}},
            "none": {"kind": "component", "component": "made"},
            "last": {
                **NOTEBOOK,
                "parameters": {
                    "words": "${{ nodes.first.outputs.Words }}",
                    "list": "${{ nodes.first.outputs.List }}",
                },
            },
        },
        components={**definitions, **maker()},
    )
    container = found.pipeline_spec["deploymentSpec"]["executors"]["exec-first"]["container"]
    assert container == {
        "image": "words:1",
        "command": [
            "count",
            "--text",
            "{{$.inputs.artifacts['text'].path}}",
            "--least",
            "{{$.inputs.parameters['least']}}",
        ],
        "args": [
            "--words={{$.outputs.parameters['words'].output_file}}",
            "{{$.outputs.artifacts['list'].path}}",
        ],
    }
    assert tasks(found)["first"]["inputs"] == {
        "parameters": {"least": {"runtimeValue": {"constant": 3}}},
        "artifacts": {
            "text": {"taskOutputArtifact": {"producerTask": "zero", "outputArtifactKey": "list"}}
        },
    }
    labelled = found.pipeline_spec["deploymentSpec"]["executors"]["exec-zero"]["container"]
    assert labelled["args"][:2] == ["--label", "{{$.inputs.parameters['label']}}"]
    assert set(tasks(found)["last"]["inputs"]["artifacts"]) == {"first-list", "files-bundle"}


def maker() -> dict[str, Any]:
    text = (
        "name: Make\noutputs: [{name: List, type: Data}]\nimplementation:\n  container:\n"
        "    image: make:1\n    command: [make, {outputPath: List}]\n"
    )
    return {"made": to_json(component(text))}


@pytest.mark.parametrize(
    ("nodes", "place", "words"),
    [
        (
            {"a": NOTEBOOK, "b": {**NOTEBOOK, "after": ["a"], "run_if": "failed"}},
            ("b", "run_if"),
            "only after a failure",
        ),
        (
            {"a": NOTEBOOK, "b": {**NOTEBOOK, "after": ["a"], "run_if": "always"}}
            | {"c": {**NOTEBOOK, "after": ["a", "b"]}},
            ("c", "after"),
            "must not wait for others",
        ),
        (
            {"a": NOTEBOOK}
            | {
                "b": {
                    **NOTEBOOK,
                    "run_if": "always",
                    "parameters": {"x": "${{ nodes.a.outputs.x }}"},
                }
            },
            ("b", "parameters"),
            "cannot use outputs",
        ),
        (
            {"a": NOTEBOOK, "b": {**NOTEBOOK, "when": "${{ nodes.a.outputs.x == 1 }}"}}
            | {"c": {**NOTEBOOK, "parameters": {"x": "${{ first(nodes.b.outputs.x, 2) }}"}}}
            | {"d": {**NOTEBOOK, "after": ["b"]}},
            ("d",),
            "first(…) does without elsewhere",
        ),
        (
            {"a": NOTEBOOK, "b": {**NOTEBOOK, "when": "${{ nodes.a.outputs.x == 1 }}"}}
            | {"c": {**NOTEBOOK, "after": ["b"], "when": "${{ nodes.a.outputs.x == 2 }}"}}
            | {"d": {**NOTEBOOK, "parameters": {"x": "${{ first(nodes.c.outputs.x, 2) }}"}}},
            ("d",),
            "what that waits for may be skipped too",
        ),
        (
            {"a": NOTEBOOK, "b": NOTEBOOK}
            | {"g": {"kind": "group", "members": ["b"], "when": "${{ nodes.a.outputs.x == 1 }}"}}
            | {"c": {**NOTEBOOK, "parameters": {"x": "${{ first(nodes.b.outputs.x, 2) }}"}}},
            ("c",),
            "with a condition",
        ),
        (
            {"a": NOTEBOOK}
            | {"b": {**NOTEBOOK, "parameters": {"x": "${{ nodes.a.outputs.x > 2 }}"}}},
            ("b",),
            "only conditions can compute",
        ),
        (
            {"a": {**NOTEBOOK, "outputs": ["*.csv"], "for_each": {"name": "i", "in": [1]}}}
            | {"b": {**NOTEBOOK, "after": ["a"]}},
            ("b",),
            "inside a group",
        ),
        (
            {"a": {**NOTEBOOK, "retries": {"count": 1, "factor": 1.5}}},
            ("a", "retries"),
            "a whole number",
        ),
        (
            {"a": {**NOTEBOOK, "resources": {"gpu": 0.5}}},
            ("a", "resources"),
            "whole GPUs",
        ),
    ],
)
def test_what_kubeflow_cannot_do_is_refused_by_its_place(
    problems: Callable[..., list[Problem]],
    nodes: dict[str, Any],
    place: tuple[str, ...],
    words: str,
) -> None:
    first, *_ = problems(nodes)
    assert first.severity == "error"
    assert (first.node, *first.path[: len(place) - 1]) == place
    assert words in first.message


def test_a_step_without_an_image_and_files_that_are_too_large_are_refused(
    problems: Callable[..., list[Problem]], project: Path
) -> None:
    (told,) = problems({"a": NOTEBOOK}, defaults={})
    assert (told.code, told.message) == ("no-image", "“a” has no image.")
    (project / "large.bin").write_bytes(os.urandom(120_000))
    (told,) = problems({"a": {**NOTEBOOK, "dependencies": ["large.bin"]}})
    assert "too large to be a part of the pipeline" in told.message
    loop = {"for_each": {"name": "i", "in": [*range(300)]}}
    (told,) = problems({"a": {**NOTEBOOK, **loop, "parameters": {"i": "${{ each.i }}"}}})
    assert "The pipeline is too large for Kubeflow Pipelines" in told.message


def test_many_steps_stay_below_what_argo_keeps_of_a_run(
    compiled: Callable[..., Compiled],
) -> None:
    """The state of a run has the container of each task about four times, in at most 1 MB."""
    found = compiled({f"n{number}": NOTEBOOK for number in range(30)})
    executors = found.pipeline_spec["deploymentSpec"]["executors"]
    assert 4 * sum(len(json.dumps(each)) for each in executors.values()) < 800_000


def test_tries_have_time(compiled: Callable[..., Compiled]) -> None:
    """Argo fails with “Max duration limit exceeded” after the first try when none is given."""
    found = compiled({"a": {**NOTEBOOK, "retries": {"count": 2, "delay": 0.5}}})
    assert tasks(found)["a"]["retryPolicy"] == {
        "maxRetryCount": 2,
        "backoffDuration": "1s",
        "backoffFactor": 2.0,
        "backoffMaxDuration": "2592000s",
    }


def test_a_pipeline_is_the_same_each_time(compiled: Callable[..., Compiled]) -> None:
    nodes = {"a": NOTEBOOK, "b": {**NOTEBOOK, "parameters": {"x": "${{ nodes.a.outputs.x }}"}}}
    assert as_yaml(compiled(nodes)) == as_yaml(compiled(nodes))
    # Kubeflow's cache goes by all that a task is given: nothing of the run may be in it.
    cached = tasks(compiled({"a": {**NOTEBOOK, "cache": True}}))["a"]
    assert cached["cachingOptions"] == {"enableCache": True}
    assert set(cached["inputs"]) == {"artifacts"}


def test_a_result_is_reused_by_a_key_that_has_all_it_depends_on(
    compiled: Callable[..., Compiled],
) -> None:
    """Kubeflow's own key is the image, the command and the inputs of a task."""

    def key(**settings: Any) -> Any:
        found = compiled({"a": {**NOTEBOOK, "cache": True, **settings}})
        return found.pipeline_spec["deploymentSpec"]["executors"]["exec-a"]["container"]["args"]

    secret = {"env": "TOKEN", "name": "tokens"}
    different = [
        {},
        {"env": {"X": "1"}},
        {"secrets": [{**secret, "key": "old"}]},
        {"secrets": [{**secret, "key": "new"}]},
    ]
    keys = [key(**settings) for settings in different]
    assert all(keys.count(each) == 1 for each in keys)
    node = {"kind": "component", "component": "made", "cache": True}
    for settings, options in (({}, {"enableCache": True}), ({"env": {"X": "1"}}, {})):
        found = compiled({"a": {**node, **settings}}, components=maker())
        assert tasks(found)["a"]["cachingOptions"] == options


def test_argo_and_kubernetes_find_nothing_to_replace(compiled: Callable[..., Compiled]) -> None:
    """Both put values into what looks like one of their templates, wherever it stands."""
    tricky = {"x": "{{workflow.name}} $(HOME) {{$.inputs.parameters['x']}}"}
    found = compiled({"a": {**NOTEBOOK, "parameters": tricky}})
    for executor in found.pipeline_spec["deploymentSpec"]["executors"].values():
        for word in (*executor["container"]["command"], *executor["container"]["args"]):
            assert word.startswith("{{$") or not any(mark in word for mark in ("{{", "$("))


def test_tasks_execute_one_after_the_other(
    project: Path, compiled: Callable[..., Compiled], write_notebook: Callable[..., Path]
) -> None:
    """What Kubeflow's launcher does, done here: real tasks, with the real runner and kernel."""
    write_notebook(
        project / "one.ipynb",
        "import jupyterlab_convect\njupyterlab_convect.metric('loss', 0.5)\n"
        "jupyterlab_convect.metric('auc', float('nan'))",
        "open('made.txt', 'w').write('hello')",
        ("outputs", "rows = [1, 'two']\nname = '名'\nunseen = {'x': float('inf')}"),
    )
    write_notebook(
        project / "two.ipynb",
        ("parameters", "rows = name = run = None"),
        "print(open('made.txt').read(), rows, name)",
        ("outputs", "seen = [rows, name]"),
    )
    found = compiled(
        {
            "one": NOTEBOOK,
            "two": {
                "kind": "notebook",
                "path": "two.ipynb",
                "parameters": {
                    "rows": "${{ nodes.one.outputs.rows }}",
                    "name": "n-${{ nodes.one.outputs.name }}",
                },
            },
            "three": {
                "kind": "command",
                "command": ["echo", "${{ nodes.two.outputs.seen }}", "${{ run.id }}"],
            },
        }
    )
    launcher = Launcher(found, project.parent / "store")
    assert launcher.execute("one").returncode == 0
    two = launcher.execute("two")
    assert two.returncode == 0, two.stdout + two.stderr
    assert "hello [1, 'two'] n-名" in two.stdout
    assert "hello [1, 'two']" in launcher.text("two", "html")
    assert json.loads(launcher.text("two", "notebook"))["cells"]
    assert (launcher.path("one", "files") / "made.txt").read_text() == "hello"
    metrics = launcher.metadata["one"]["metrics"]["artifacts"][0]["metadata"]
    assert metrics == {"loss": 0.5, "auc": "NaN"}
    assert launcher.values["one", "values"] == {
        "rows": [1, "two"],
        "name": "名",
        "unseen": {"x": "Infinity"},
    }
    three = launcher.execute("three")
    assert '[[1, "two"], "n-名"] the-run' in three.stdout


def test_the_first_step_of_a_run_brings_the_files_for_those_after_it(
    plan_of: Callable[..., Plan], project: Path, tmp_path: Path
) -> None:
    nodes = {
        "one": {"kind": "command", "command": ["sh", "-c", "echo hello > word.txt"]},
        "two": {"kind": "command", "command": ["cat", "word.txt"], "after": ["one"]},
    }
    home = RunPayload({"id": "r1", "name": "a"}, "", ".", {})

    def made(nodes: dict[str, Any]) -> Compiled:
        found, told = examine(plan_of(nodes), ProjectFiles(project), TaskDefaults(), home)
        assert told == []
        assert found is not None
        return found

    found = made(nodes)
    assert sorted(tasks(found)) == ["one", "two"]
    launcher = Launcher(found, tmp_path / "store", begins=False)
    for task in ("one", "two"):
        done = launcher.execute(task)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "hello" in done.stdout
    apart = {**nodes, "three": {"kind": "command", "command": ["true"]}}
    assert "files" in tasks(made(apart))
    always = {**nodes, "two": {**nodes["two"], "run_if": "always"}}
    assert "files" in tasks(made(always))


def test_a_step_that_fails_says_why_and_leaves_nothing_behind(
    project: Path, compiled: Callable[..., Compiled], write_notebook: Callable[..., Path]
) -> None:
    write_notebook(project / "one.ipynb", "1 / 0")
    launcher = Launcher(compiled({"one": NOTEBOOK}), project.parent / "store")
    done = launcher.execute("one")
    assert done.returncode != 0
    assert "ZeroDivisionError" in done.stdout.splitlines()[-1]
    assert not launcher.path("one", "files").exists()


def test_an_output_that_was_not_given_fails_whoever_needs_it(
    project: Path, compiled: Callable[..., Compiled]
) -> None:
    nodes = {
        "one": NOTEBOOK,
        "two": {**NOTEBOOK, "parameters": {"y": "${{ nodes.one.outputs.y }}"}},
    }
    launcher = Launcher(compiled(nodes), project.parent / "store")
    assert launcher.execute("one").returncode == 0
    done = launcher.execute("two")
    assert done.returncode != 0
    assert "Node “one” produced no output “y”." in done.stderr


@pytest.mark.slow
def test_the_sdk_of_kubeflow_reads_what_is_exported(
    compiled: Callable[..., Compiled], sdk_python: str, tmp_path: Path
) -> None:
    digest, definitions = words_component()
    everything = {
        **SAMPLES["resources.cpu"],
        **SAMPLES["secrets"],
        **SAMPLES["retries.delay"],
        **SAMPLES["volumes.claim"],
        "kubernetes": {
            **SAMPLES["kubernetes.tolerations"]["kubernetes"],
            **SAMPLES["kubernetes.labels"]["kubernetes"],
            **SAMPLES["kubernetes.node_selector"]["kubernetes"],
            **SAMPLES["kubernetes.pull_secrets"]["kubernetes"],
        },
        "resources": {
            "cpu": 1,
            "memory": "1Gi",
            "shared_memory": "1Gi",
            "gpu": {"count": 1, "type": "A100"},
        },
        "pull_policy": "Always",
        "cache": True,
    }
    found = compiled(
        {
            "one": {**NOTEBOOK, **everything},
            "made": {"kind": "component", "component": "made"},
            "words": {
                "kind": "component",
                "component": digest,
                "timeout": 60,
                "inputs": {
                    "Text": "${{ nodes.made.outputs.List }}",
                    "Least": "${{ nodes.one.outputs.least }}",
                },
            },
            "loop": {
                **NOTEBOOK,
                "for_each": {"name": "i", "in": "${{ nodes.one.outputs.items }}", "parallel": 2},
                "parameters": {"i": "${{ each.i }}", "words": "${{ nodes.words.outputs.Words }}"},
                "when": "${{ nodes.words.outputs.Words in [1, 2] && nodes.one.outputs.x == 'a' }}",
            },
            "sum": {**NOTEBOOK, "after": ["loop"]},
            "clean": {**NOTEBOOK, "after": ["sum"], "run_if": "always"},
        },
        components={**definitions, **maker()},
    )
    file = tmp_path / "churn.yaml"
    file.write_text(as_yaml(found), encoding="utf-8")
    check = Path(__file__).with_name("check_with_sdk.py")
    done = subprocess.run([sdk_python, str(check), str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["same"] is True
    assert len(list(yaml.safe_load_all(file.read_text("utf-8")))) == 2


def test_a_broken_file_gives_one_sentence(plan_of: Callable[..., Plan], project: Path) -> None:
    plan = plan_of({"a": NOTEBOOK})
    (project / "one.ipynb").unlink()
    with pytest.raises(ConvectError, match=r"one\.ipynb cannot be read"):
        compile_plan(plan, ProjectFiles(project), TaskDefaults())
