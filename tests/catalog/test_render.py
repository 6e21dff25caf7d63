"""Commands come out as Kubeflow would run them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_convect.catalog.model import Component
from jupyterlab_convect.catalog.read import read
from jupyterlab_convect.catalog.render import File, Paths, Rendered, Value, render, slugs
from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.pipeline.component_types import from_text

CONTEXT = {
    "run.id": "RUN",
    "run.name": "my run",
    "step.id": "load",
    "step.uid": "RUN-load-1",
    "root": "/runs/RUN",
    "time": "2026-01-01T00:00:00Z",
}

Make = Callable[..., Component]


def rendered(component: Component, **arguments: Any) -> Rendered:
    given = {
        name: item if isinstance(item, File) else Value(item) for name, item in arguments.items()
    }
    return render(component, given, Paths(), CONTEXT)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("String", "a b", "a b"),
        ("Integer", 3, "3"),
        ("Integer", 3.0, "3"),
        ("Integer", "0007", "0007"),
        ("Float", 1.5, "1.5"),
        ("Float", 2, "2"),
        ("Bool", True, "True"),
        ("Boolean", False, "False"),
        ("Bool", "true", "true"),
        ("JsonObject", {"b": 1, "a": "é"}, '{"a": "\\u00e9", "b": 1}'),
        ("JsonArray", [1, "x"], '[1, "x"]'),
        ("List", "[1]", "[1]"),
        (None, 5, "5"),
        ({"GcsPath": {}}, "gs://x", "gs://x"),
    ],
)
def test_values_become_text_by_their_type(
    component: Make, kind: Any, value: Any, text: str
) -> None:
    inputs = [{"name": "i", **({"type": kind} if kind else {})}]
    made = component([{"inputValue": "i"}, {"inputPath": "i"}], inputs)
    result = rendered(made, i=value)
    assert result.args == (text, "/tmp/inputs/i/data")
    assert result.writes == {"/tmp/inputs/i/data": text}


@pytest.mark.parametrize(("kind", "value"), [("Integer", 1.5), ("Bool", 1), ("List", {"a": 1})])
def test_a_value_of_the_wrong_type_is_refused(component: Make, kind: str, value: Any) -> None:
    with pytest.raises(ConvectError, match="The input “i” takes"):
        rendered(component([{"inputValue": "i"}], [{"name": "i", "type": kind}]), i=value)


def test_a_default_is_used_and_counts_as_present(component: Make) -> None:
    choice = {"if": {"cond": {"isPresent": "i"}, "then": ["-i", {"inputValue": "i"}]}}
    made = component([choice], [{"name": "i", "default": 1440, "type": "Integer"}])
    assert rendered(made).args == ("-i", "1440")


def test_an_optional_input_without_a_value_is_left_out(component: Make) -> None:
    made = component(
        [
            "--x",
            {"inputValue": "i"},
            {"inputPath": "i"},
            {"concat": ["a", {"inputValue": "i"}, "b"]},
            {"if": {"cond": {"isPresent": "i"}, "then": ["yes"], "else": ["no", "!"]}},
            {"if": {"cond": {"isPresent": "i"}, "then": ["yes"]}},
        ],
        [{"name": "i", "optional": True}],
    )
    assert rendered(made).args == ("--x", "ab", "no", "!")
    assert rendered(made, i="v").args == ("--x", "v", "/tmp/inputs/i/data", "avb", "yes", "yes")


def test_a_value_of_none_takes_away_an_optional_default(component: Make) -> None:
    made = component([{"inputValue": "i"}], [{"name": "i", "default": "d", "optional": True}])
    assert rendered(made).args == ("d",)
    assert rendered(made, i=None).args == ()


def test_a_required_input_must_have_a_value(component: Make) -> None:
    made = component([{"inputValue": "i"}], [{"name": "i"}])
    with pytest.raises(ConvectError, match="The input “i” of “Example” has no value"):
        rendered(made)


def test_an_unknown_input_is_refused(component: Make) -> None:
    with pytest.raises(ConvectError, match="no input “z”"):
        rendered(component([]), z=1)


@pytest.mark.parametrize(
    ("condition", "word"), [("yes", "then"), ("0", "else"), (True, "then"), (False, "else")]
)
def test_conditions_are_words_that_mean_yes_or_no(
    component: Make, condition: Any, word: str
) -> None:
    made = component(
        [{"if": {"cond": {"inputValue": "c"}, "then": ["then"], "else": "else"}}], [{"name": "c"}]
    )
    assert rendered(made, c=condition).args == (word,)
    with pytest.raises(ConvectError, match="neither true nor false"):
        rendered(made, c="perhaps")


def test_an_empty_else_is_an_empty_argument(component: Make) -> None:
    made = component(
        [{"if": {"cond": {"isPresent": "i"}, "then": ["x"], "else": ""}}],
        [{"name": "i", "optional": True}],
    )
    assert rendered(made).args == ("",)


def test_files_are_seen_in_place_or_under_the_inputs(component: Make) -> None:
    made = component([{"inputPath": "my data"}], [{"name": "my data"}])
    argument = {"my data": File("/home/x.csv")}
    outside = render(made, argument, Paths(), CONTEXT)
    assert outside.args == ("/tmp/inputs/my_data/data",)
    assert outside.files == {"/tmp/inputs/my_data/data": "/home/x.csv"}
    here = render(made, argument, Paths("/a/in", "/a/out", in_place=True), CONTEXT)
    assert here.args == ("/home/x.csv",)
    assert not here.files


def test_the_content_of_a_file_is_a_value_where_one_is_wanted(component: Make) -> None:
    made = component([{"inputValue": "i"}], [{"name": "i"}])
    assert rendered(made, i=File("/x", text="42")).args == ("42",)
    with pytest.raises(ConvectError, match="not a small text file"):
        rendered(made, i=File("/x"))


def test_outputs_have_paths_of_their_own(component: Make) -> None:
    made = component(
        [{"outputPath": "a b"}, {"outputPath": "a_b"}, {"outputUri": "a b"}],
        outputs=[{"name": "a b"}, {"name": "a_b"}, {"name": "unused"}],
    )
    result = rendered(made)
    assert result.args == (
        "/tmp/outputs/a_b/data",
        "/tmp/outputs/a_b-2/data",
        "/tmp/outputs/a_b/data",
    )
    assert set(result.reads) == {"a b", "a_b"}


def test_an_output_with_a_fixed_path_is_read_there(component: Make) -> None:
    made = component(["x"], outputs=[{"name": "o"}], fileOutputs={"o": "/output.txt"})
    assert rendered(made).reads == {"o": "/output.txt"}


def test_an_address_is_passed_on_as_it_is(component: Make) -> None:
    made = component([{"inputUri": "i"}], [{"name": "i"}])
    assert rendered(made, i="gs://bucket/x").args == ("gs://bucket/x",)


def test_what_the_workflow_would_fill_in_is_filled_in(component: Make) -> None:
    made = component(
        [{"concat": [{"inputValue": "i"}, "{{workflow.uid}}_{{pod.name}}"]}],
        [{"name": "i"}],
        env={"POD": "{{pod.name}}", "V": {"inputValue": "i"}},
    )
    result = rendered(made, i="{{pod.name}}/")
    assert result.args == ("{{pod.name}}/RUN_RUN-load-1",)
    assert result.env == {"POD": "RUN-load-1", "V": "{{pod.name}}/"}


def compiled(corpus: Path, name: str) -> Component:
    return read((corpus / name).read_bytes(), name).components[0]


def test_a_compiled_function_gets_its_executor_input(corpus: Path) -> None:
    result = rendered(compiled(corpus, "ir-add-numbers.yaml"), a="2", b=3.0)
    message = json.loads(result.args[1])
    assert message["inputs"]["parameterValues"] == {"a": 2, "b": 3}
    assert message["outputs"]["parameters"]["Output"]["outputFile"] == "/tmp/outputs/Output/data"
    assert message["outputs"]["outputFile"] == result.executor_output


def test_compiled_placeholders_are_resolved(corpus: Path) -> None:
    result = rendered(compiled(corpus, "ir-if-placeholder.yaml"))
    assert result.command == ("my_program", "default", "--dataset", "/tmp/outputs/dataset/data")
    absent = rendered(compiled(corpus, "ir-if-placeholder.yaml"), optional_input=None)
    assert absent.command == ("my_program", "bye", "--dataset", "bye")


def test_compiled_values_are_spelled_as_json() -> None:
    text = """
    pipelineInfo: {name: p}
    components:
      c:
        executorLabel: e
        inputDefinitions:
          parameters:
            b: {parameterType: BOOLEAN}
            n: {parameterType: NUMBER_DOUBLE}
            l: {parameterType: LIST}
    deploymentSpec:
      executors:
        e:
          container:
            image: a
            command:
            - "--b={{$.inputs.parameters['b']}}"
            - "{{$.inputs.parameters['n']}}"
            - "{{$.inputs.parameters['l']}}"
            - '{"Concat": ["x-", "{{$.pipeline_job_uuid}}", {"Concat": ["-y"]}]}'
    root:
      inputDefinitions:
        parameters:
          b: {parameterType: BOOLEAN}
          n: {parameterType: NUMBER_DOUBLE}
          l: {parameterType: LIST}
      dag:
        tasks:
          t:
            componentRef: {name: c}
            inputs:
              parameters:
                b: {componentInputParameter: b}
                n: {componentInputParameter: n}
                l: {componentInputParameter: l}
    """
    (component,) = read(text.encode(), "p.yaml").components
    result = rendered(component, b=True, n=9.0, l=[1, "é"])
    assert result.command == ("--b=true", "9", '[1,"é"]', "x-RUN-y")


def test_a_list_of_artifacts_is_spelled_as_json() -> None:
    dataset = {"artifactType": {"schemaTitle": "system.Dataset"}, "isArtifactList": True}
    text = {
        "pipelineInfo": {"name": "p"},
        "components": {
            "c": {"executorLabel": "e", "inputDefinitions": {"artifacts": {"d": dataset}}}
        },
        "deploymentSpec": {
            "executors": {
                "e": {"container": {"image": "a", "command": ["{{$.inputs.artifacts['d']}}"]}}
            }
        },
        "root": {
            "inputDefinitions": {"artifacts": {"d": dataset}},
            "dag": {
                "tasks": {
                    "t": {
                        "componentRef": {"name": "c"},
                        "inputs": {"artifacts": {"d": {"componentInputArtifact": "d"}}},
                    }
                }
            },
        },
    }
    (component,) = read(json.dumps(text).encode(), "p.yaml").components
    (command,) = rendered(component, d=File("/home/x.csv")).command
    (artifact,) = json.loads(command)
    assert (artifact["name"], artifact["uri"]) == ("d", "/tmp/inputs/d/data")


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("5\n", "Integer", 5),
        ("5.5", "Integer", "5.5"),
        ("1e3", "Float", 1000.0),
        ("NaN", "Float", "NaN"),
        ("True\n", "Bool", True),
        ('{"a": 1}', "JsonObject", {"a": 1}),
        ("[1]", "JsonObject", "[1]"),
        ("a\n", "String", "a\n"),
        ("5", None, "5"),
    ],
)
def test_what_was_written_is_read_back_by_its_type(text: str, kind: Any, value: Any) -> None:
    assert from_text(text, kind) == value


def test_names_become_folders_that_differ() -> None:
    assert list(slugs(["../..", "é", "a/b", "a b", "x" * 100]).values()) == [
        "_",
        "_-2",
        "a_b",
        "a_b-2",
        "x" * 60,
    ]
