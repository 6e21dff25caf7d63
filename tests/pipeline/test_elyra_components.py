"""Component nodes of Elyra pipelines, with their inputs and their source."""

import json

import pytest
from elyra_files import codes, convert, convert_node, node, pipeline


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("plain", "plain"),
        ({"widget": "string", "value": "text"}, "text"),
        ({"widget": "string", "value": ""}, ""),
        ({"widget": "number", "value": 3}, 3),
        ({"widget": "boolean", "value": False}, False),
        ({"widget": "file", "value": "notes.txt"}, {"file": "notes.txt"}),
        ({"widget": "parameter", "value": "rate"}, "${{ parameters.rate }}"),
        (
            {"widget": "inputpath", "value": {"value": "up", "option": "output_my_data"}},
            "${{ nodes.first.outputs.my_data }}",
        ),
        ({"value": "up", "option": "elyra_output_data"}, "${{ nodes.first.outputs.data }}"),
        (
            {"value": "up", "option": "elyra_output_data", "label": "First: data"},
            "${{ nodes.first.outputs.data }}",
        ),
        ({"activeControl": "StringControl", "StringControl": "text"}, "text"),
        (
            {
                "activeControl": "NestedEnumControl",
                "NestedEnumControl": {"value": "up", "option": "elyra_output_data"},
            },
            "${{ nodes.first.outputs.data }}",
        ),
        ({"any": "object"}, {"any": "object"}),
    ],
)
def test_inputs_of_components(written, expected):
    document, problems = convert(
        pipeline(
            node("up", {"output_data": ""}, op="c:1", label="first"),
            node("down", {"it": written}, op="c:2", label="second", after=["up"]),
        )
    )
    assert document["nodes"]["second"]["inputs"] == {"it": expected}
    assert document["nodes"]["second"]["after"] == ["first"]
    assert "elyra-unreadable" not in codes(problems)


def test_inputs_may_have_the_names_of_properties():
    inputs = {"filename": "a.csv", "label": "first", "cpu": "2"}
    made = node("1", inputs, op="c:1", ui_data={"label": "first"})
    document, _ = convert(pipeline(made))
    assert document["nodes"]["first"]["inputs"] == inputs


@pytest.mark.parametrize("written", ["", "None", None, {"widget": "string"}])
def test_inputs_without_a_value(written):
    assert "inputs" not in convert_node({"it": written}, op="c:1")[0]


@pytest.mark.parametrize(
    "written",
    [
        {"widget": "inputpath", "value": {"value": "nowhere", "option": "output_x"}},
        {"widget": "inputpath", "value": "nonsense"},
        {"widget": "inputpath", "value": {"value": "a"}},
        {"widget": "parameter", "value": "a}}b"},
        {"widget": "file", "value": 5},
        {"widget": "string", "value": "${{ run.id }}"},
        "${{ x",
    ],
)
def test_inputs_that_cannot_be_read_are_kept(written):
    found, problems = convert_node({"it": written}, op="c:1")
    assert found["extra"]["elyra"]["it"] == written
    assert "elyra-unreadable" in codes(problems)


@pytest.mark.parametrize(
    ("written", "source", "is_kept"),
    [
        ("https://example.com/a.yaml", "https://example.com/a.yaml", False),
        (
            {"catalog_type": "url-catalog", "component_ref": {"url": "https://example.com/a.yaml"}},
            "https://example.com/a.yaml",
            True,
        ),
        (
            {
                "catalog_type": "local-file-catalog",
                "component_ref": {"base_dir": "/base", "path": "a.yaml"},
            },
            "/base/a.yaml",
            True,
        ),
        (
            {"catalog_type": "examples", "component_ref": {"component-id": "a.yaml"}},
            "examples:a.yaml",
            True,
        ),
        ({"nothing": 1}, None, True),
    ],
)
def test_where_a_component_came_from(written, source, is_kept):
    text = written if isinstance(written, str) else json.dumps(written)
    found, problems = convert_node({"x": "1"}, op="catalog:123", component_source=text)
    assert (found["kind"], found["component"]) == ("component", "catalog:123")
    assert found.get("source") == source
    assert (found.get("extra", {}).get("elyra", {}).get("component_source") == text) is is_kept
    assert "elyra-component" in codes(problems)
