"""Every format of component becomes one model, and what cannot be read says why."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
import yaml

from jupyterlab_convect.catalog.model import Component, component_from_json, executable_digests
from jupyterlab_convect.catalog.read import Reading, digest_of_bytes, name_from, read
from jupyterlab_convect.errors import ConvectError, Missing
from jupyterlab_convect.pipeline.plan import to_json

Fetch = Callable[[Sequence[str]], Mapping[str, bytes | ConvectError]]


def only(corpus: Path, name: str) -> Component:
    reading = read((corpus / name).read_bytes(), name)
    assert not reading.errors
    assert len(reading.components) == 1
    return reading.components[0]


def read_spec(spec: object) -> Reading:
    return read(yaml.safe_dump(spec, sort_keys=False).encode(), "a.yaml")


def test_all_of_the_corpus_reads_and_survives_json(corpus: Path, fetch: Fetch) -> None:
    paths = sorted(corpus.glob("[vi]*.yaml")) + sorted(corpus.glob("refs/**/*.yaml"))
    assert len(paths) > 25
    for path in paths:
        reading = read(path.read_bytes(), path.name, fetch=fetch)
        assert not reading.errors, reading.errors
        for component in reading.components:
            stored = json.loads(json.dumps(to_json(component)))
            assert component_from_json(stored) == component
            assert component.digest == digest_of_bytes(path.read_bytes())


def test_the_bad_one_is_refused_with_file_line_and_reason(corpus: Path) -> None:
    name = "bad-v1-name-is-number.yaml"
    (error,) = read((corpus / name).read_bytes(), name).errors
    assert (error.file, error.line) == (name, 3)
    assert error.reason == "The name of an input must be text."


def test_types_may_be_words_structures_or_missing(corpus: Path) -> None:
    component = only(corpus, "v1-dict-type.yaml")
    assert component.inputs[0].type == {"GcsPath": {"data_type": "TSV"}}
    untyped = only(corpus, "v1-many-types.yaml").input("test_unusual_type_notgiven")
    assert untyped is not None
    assert untyped.type is None


def test_defaults_keep_their_type_and_optional_ones_are_not_required(corpus: Path) -> None:
    component = only(corpus, "v1-no-name-pytorch-launcher.yaml")
    assert component.name == "v1 no name pytorch launcher"
    ends = {item.name: item for item in component.inputs}
    assert ends["job_timeout_minutes"].default == 1440
    assert not ends["backoff_limit"].required
    assert ends["name"].required


def test_an_input_and_an_output_may_share_a_name(corpus: Path) -> None:
    component = only(corpus, "v1-remove-header.yaml")
    assert component.container is not None
    assert component.container.command[-2:] == ({"inputPath": "table"}, {"outputPath": "table"})
    assert component.inputs[0].passed == "file"


def test_fixed_paths_of_outputs_are_kept(corpus: Path) -> None:
    output = only(corpus, "v1-file-outputs.yaml").output("output")
    assert output is not None
    assert output.path == "/output.txt"


def test_environment_placeholders_and_labels_are_kept(corpus: Path) -> None:
    component = only(corpus, "v1-env.yaml")
    assert component.container is not None
    assert component.container.env == {"KFP_POD_NAME": "{{pod.name}}"}
    assert component.labels == {"add-pod-env": "true"}


def test_a_compiled_pipeline_of_one_component_is_that_component(corpus: Path) -> None:
    component = only(corpus, "ir-if-placeholder.yaml")
    assert component.container is not None
    assert component.container.command[1] == {
        "if": {
            "cond": {"isPresent": "optional_input"},
            "then": [{"inputValue": "optional_input"}],
            "else": ["bye"],
        }
    }
    dataset = component.output("dataset")
    assert dataset is not None
    assert (dataset.type, dataset.passed) == ("system.Dataset", "file")


def test_a_compiled_pipeline_of_several_is_a_graph_that_says_what_cannot_run(corpus: Path) -> None:
    graph = only(corpus, "ir-flip-coin-conditions.yaml").graph
    assert graph is not None
    assert graph.tasks["condition-1"].unsupported == "The task “condition-1” has a condition."
    inner = graph.components["comp-condition-1"].graph
    assert inner is not None
    assert inner.components["comp-condition-2"].graph is not None


def test_a_constant_that_quotes_an_input_is_put_together(corpus: Path) -> None:
    outer = only(corpus, "ir-flip-coin-conditions.yaml").graph
    assert outer is not None
    middle = outer.components["comp-condition-1"].graph
    assert middle is not None
    inner = middle.components["comp-condition-2"].graph
    assert inner is not None
    assert inner.tasks["print-msg"].arguments["msg"] == {
        "concat": [
            {"constant": "heads and "},
            {"graphInput": "pipelinechannel--random-num-Output"},
            {"constant": " > 5!"},
        ]
    }


def test_settings_for_kubernetes_in_a_second_document_are_kept(corpus: Path) -> None:
    component = only(corpus, "ir-multi-document-secret.yaml")
    assert component.graph is not None
    (asked,) = component.graph.components["comp-comp"].platforms.items()
    assert (asked[0], len(asked[1])) == ("secretAsEnv", 3)
    assert component.graph.tasks["comp"].after == ("generate-secret-name",)


GRAPH = "graph-xgboost-train-and-cross-validate.yaml"


def test_a_reference_that_is_dead_is_reported_with_its_task_and_line(
    corpus: Path, fetch: Fetch
) -> None:
    (error,) = read((corpus / GRAPH).read_bytes(), GRAPH, fetch=fetch).errors
    assert error.line == 295
    assert "“Aggregate regression metrics from csv”" in error.reason
    assert "404" in error.reason
    assert error.hint is not None
    assert "Aggregate_regression_metrics" in error.hint


def test_a_graph_is_whole_when_a_twin_stands_in(
    corpus: Path, xgboost: Callable[[], Component]
) -> None:
    data = (corpus / GRAPH).read_bytes()
    component = xgboost()
    assert component.graph is not None
    assert len(component.graph.tasks) == 32
    assert len(component.graph.components) == 7
    assert component.digest != digest_of_bytes(data), "a replacement changes what it does"
    assert component.inputs[0].passed == "file"
    last = component.graph.tasks["Aggregate regression metrics from csv"]
    assert last.after[0] == "Calculate regression metrics from csv 2"
    assert component_from_json(to_json(component)) == component


def graph_of(tasks: object, **more: object) -> dict[str, object]:
    return {"name": "G", "implementation": {"graph": {"tasks": tasks}}, **more}


LEAF = {"name": "Leaf", "implementation": {"container": {"image": "alpine"}}}


def serve(texts: dict[str, bytes]) -> Fetch:
    return lambda addresses: {
        address: texts.get(address, Missing("Nothing there.")) for address in addresses
    }


def test_a_wrong_digest_is_refused() -> None:
    leaf = yaml.safe_dump(LEAF).encode()
    spec = graph_of({"t": {"componentRef": {"url": "leaf", "digest": "0" * 64}}})
    reading = read(yaml.safe_dump(spec).encode(), "g", fetch=serve({"leaf": leaf}))
    assert "not what the graph was made with" in reading.errors[0].reason


def test_graphs_that_refer_to_each_other_are_refused() -> None:
    texts = {
        name: yaml.safe_dump(graph_of({"t": {"componentRef": {"url": other}}})).encode()
        for name, other in (("a", "b"), ("b", "a"))
    }
    reading = read(texts["a"], "a", fetch=serve(texts))
    assert "contains itself" in reading.errors[0].reason


def test_graphs_that_multiply_are_refused() -> None:
    texts = {"0": yaml.safe_dump(LEAF).encode()}
    for level in range(1, 8):
        for twin in range(6):
            tasks = {
                f"t{n}": {"componentRef": {"url": f"{level - 1}-{n}" if level > 1 else "0"}}
                for n in range(6)
            }
            spec = graph_of(tasks, description=str(twin))
            texts[f"{level}-{twin}"] = yaml.safe_dump(spec).encode()
    reading = read(texts["7-0"], "7-0", fetch=serve(texts))
    assert "more than 2000 components" in reading.errors[0].reason


def test_a_graph_without_pinned_references_changes_its_digest_with_them() -> None:
    spec = yaml.safe_dump(graph_of({"t": {"componentRef": {"url": "leaf"}}})).encode()
    digests = {
        read(spec, "g", fetch=serve({"leaf": yaml.safe_dump(leaf).encode()})).components[0].digest
        for leaf in (LEAF, {**LEAF, "description": "another"})
    }
    assert len(digests) == 2


def test_a_task_may_bring_its_component_along() -> None:
    (component,) = read_spec(graph_of({"t": {"componentRef": {"spec": LEAF}}})).components
    assert component.graph is not None
    assert [item.name for item in component.graph.components.values()] == ["Leaf"]


def test_tasks_that_wait_for_each_other_are_refused() -> None:
    both = {
        "name": "Both",
        "inputs": [{"name": "i"}],
        "outputs": [{"name": "o"}],
        "implementation": {
            "container": {"image": "a", "args": [{"inputPath": "i"}, {"outputPath": "o"}]}
        },
    }
    tasks = {
        name: {
            "componentRef": {"spec": both},
            "arguments": {"i": {"taskOutput": {"taskId": other, "outputName": "o"}}},
        }
        for name, other in (("a", "b"), ("b", "a"))
    }
    (error,) = read_spec(graph_of(tasks)).errors
    assert "wait for each other: a → b → a" in error.reason


def test_several_documents_are_several_components_and_a_bad_one_stays_alone() -> None:
    good = yaml.safe_dump(LEAF)
    other = yaml.safe_dump({**LEAF, "name": "Other"})
    reading = read(f"{good}---\nname: bad\n---\n{other}".encode(), "many.yaml")
    assert [item.name for item in reading.components] == ["Leaf", "Other"]
    assert len({item.digest for item in reading.components}) == 2
    assert [error.line for error in reading.errors] == [6]


def v1(container: object, **more: object) -> dict[str, object]:
    return {"name": "V", **more, "implementation": {"container": container}}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ([1, 2], "A component must be a mapping"),
        ({"name": "x"}, "no “implementation”"),
        ({"name": "x", "implementation": {}}, "neither “container” nor “graph”"),
        (v1({"command": ["a"]}), "no “image”"),
        (v1({"image": 3}), "The image must be text"),
        (v1({"image": "a", "args": [{"inputValue": "x"}]}), "“x”, which is not an input"),
        (v1({"image": "a", "args": [{"outputPath": "x"}]}), "“x”, which is not an output"),
        (v1({"image": "a", "args": [{"inputvalue": "x"}]}), "“inputvalue” is not a placeholder"),
        (v1({"image": "a", "args": [{"a": 1, "b": 2}]}), "exactly one key"),
        (v1({"image": "a", "args": [{"if": {"then": []}}]}), "“if” has no “cond”"),
        (v1({"image": "a", "args": [[["x"]]]}), "An argument must be text"),
        (v1({"image": "a"}, inputs={"a": 1}), "“inputs” must be a list"),
        (v1({"image": "a"}, inputs=[{"type": "String"}]), "An input has no “name”"),
        (v1({"image": "a"}, inputs=[{"name": "i"}] * 2), "Two inputs are called “i”"),
        (v1({"image": "a"}, inputs=[{"name": "i", "type": 3}]), "A type must be"),
        (v1({"image": "a"}, inputs=[{"name": "i", "optional": "perhaps"}]), "true or false"),
        (v1({"image": "a", "fileOutputs": {"x": "/x"}}), "“x”, which is not an output"),
        ({"pipelineInfo": {}, "root": {"executorLabel": "x"}}, "no executor “x”"),
        ({"pipelineInfo": {}}, "no “root”"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(spec: object, words: str) -> None:
    reading = read_spec(spec)
    assert not reading.components
    assert words in reading.errors[0].reason
    assert reading.errors[0].line > 0


def test_numbers_in_a_command_are_passed_as_they_are_written() -> None:
    (component,) = read(
        b"implementation: {container: {image: a, args: [1.10, true, 0x10]}}", "x.yaml"
    ).components
    assert component.container is not None
    assert component.container.args == ("1.10", "true", "0x10")


def compiled(components: object, tasks: object) -> dict[str, object]:
    return {
        "pipelineInfo": {"name": "p"},
        "components": components,
        "deploymentSpec": {"executors": {"e": {"container": {"image": "a"}}}},
        "root": {"dag": {"tasks": tasks}},
    }


def test_compiled_components_that_contain_themselves_are_refused() -> None:
    loop = {"dag": {"tasks": {"t": {"componentRef": {"name": "c"}}}}}
    (error,) = read_spec(compiled({"c": loop}, {"t": {"componentRef": {"name": "c"}}})).errors
    assert "contains itself" in error.reason


def test_compiled_components_that_multiply_are_refused() -> None:
    components: dict[str, object] = {"c0-0": {"executorLabel": "e"}, "c0-1": {"executorLabel": "e"}}
    for level in range(1, 20):
        for twin in range(2):
            tasks = {f"t{n}": {"componentRef": {"name": f"c{level - 1}-{n}"}} for n in range(2)}
            components[f"c{level}-{twin}"] = {"dag": {"tasks": tasks}}
    (error,) = read_spec(compiled(components, {"t": {"componentRef": {"name": "c19-0"}}})).errors
    assert "more than 2000 components" in error.reason


def test_resources_of_a_compiled_component_are_read() -> None:
    spec = compiled({"c": {"executorLabel": "e"}}, {"t": {"componentRef": {"name": "c"}}})
    spec["deploymentSpec"] = {
        "executors": {
            "e": {
                "container": {
                    "image": "a",
                    "resources": {
                        "cpuLimit": 1.5,
                        "resourceMemoryRequest": "2Gi",
                        "accelerator": {"count": "1", "type": "nvidia.com/gpu"},
                    },
                }
            }
        }
    }
    (component,) = read_spec(spec).components
    assert component.container is not None
    resources = component.container.resources
    assert resources.cpu is not None
    assert resources.memory is not None
    assert resources.gpu is not None
    assert (resources.cpu.limit, resources.memory.request) == ("1.5", "2Gi")
    assert (resources.gpu.count, resources.gpu.resource) == (1, "nvidia.com/gpu")


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("https://host/a/XGBoost/Train/component.yaml", "Train"),
        ("folder/split_csv.yaml", "split csv"),
        ("component.yaml", "component"),
        ("", "component"),
    ],
)
def test_a_component_without_a_name_is_called_after_its_place(source: str, name: str) -> None:
    assert name_from(source) == name


@pytest.mark.parametrize(
    "damage",
    [
        {"container": None},
        {"format": "v9"},
        {"inputs": [{"name": 3}]},
        {"inputs": "text"},
        {"container": {"image": "a", "args": [{"inputValue": "nowhere"}]}},
        {"graph": {"tasks": {}}},
    ],
)
def test_a_damaged_definition_in_a_document_is_refused(
    component: Callable[..., Component], damage: dict[str, object]
) -> None:
    stored = to_json(component(["x"]))
    with pytest.raises(ConvectError, match="damaged"):
        component_from_json(stored | damage)


def test_an_approval_covers_what_is_executed_and_nothing_else(
    component: Callable[..., Component],
) -> None:
    one, other = component(["x"]), component(["x"], inputs=[{"name": "unused"}])
    assert executable_digests(one) == executable_digests(other)
    assert executable_digests(one) != executable_digests(component(["y"]))
