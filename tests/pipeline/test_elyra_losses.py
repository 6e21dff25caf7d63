"""Nothing in an Elyra pipeline is lost; what is none is refused in one sentence."""

import json

import pytest
from elyra_files import codes, convert, convert_node, flow, link, load, node, pipeline, supernode

from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.pipeline.document import dumps
from jupyterlab_convect.pipeline.elyra import import_elyra


@pytest.mark.parametrize(
    "place",
    [
        (),
        ("pipelines", 0),
        ("pipelines", 0, "app_data"),
        ("pipelines", 0, "app_data", "ui_data"),
        ("pipelines", 0, "app_data", "properties"),
        ("pipelines", 0, "app_data", "properties", "pipeline_defaults"),
        ("pipelines", 0, "app_data", "properties", "pipeline_parameters", 0),
        ("pipelines", 0, "app_data", "properties", "pipeline_parameters", 0, "default_value"),
        ("pipelines", 0, "app_data", "ui_data", "comments", 0),
        ("pipelines", 0, "nodes", 0),
        ("pipelines", 0, "nodes", 0, "app_data"),
        ("pipelines", 0, "nodes", 0, "app_data", "ui_data"),
        ("pipelines", 0, "nodes", 0, "app_data", "component_parameters"),
        ("pipelines", 0, "nodes", 0, "app_data", "component_parameters", "env_vars", 0),
        ("pipelines", 0, "nodes", 1, "app_data"),
        ("pipelines", 0, "nodes", 1, "app_data", "component_parameters"),
        ("pipelines", 0, "nodes", 2, "inputs", 0, "links", 0),
        ("pipelines", 0, "nodes", 3),
        ("pipelines", 0, "nodes", 3, "app_data"),
        ("pipelines", 0, "nodes", 3, "app_data", "ui_data"),
    ],
)
def test_what_nobody_knows_is_kept_wherever_it_is(place):
    value = load("v8-everything")
    target = value
    for key in place:
        target = target[key]
    target["surprise"] = {"deep": ["treasure"]}
    document, problems = convert(value)
    assert "treasure" in dumps(document)
    is_input = place[3:] == (1, "app_data", "component_parameters")
    assert is_input or problems != convert(load("v8-everything"))[1]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("env_vars", "A=1"),
        ("env_vars", [5]),
        ("env_vars", ["=1"]),
        ("env_vars", ["A=${{ run.id }}"]),
        ("runtime_image", 5),
        ("outputs", [{}, 5]),
        ("cpu", "many"),
        ("cpu", -1),
        ("gpu", True),
        ("include_subdirectories", "perhaps"),
        ("mounted_volumes", ["/path"]),
        ("mounted_volumes", [{"path": "/", "pvc_name": "x"}]),
        ("kubernetes_secrets", ["A=b"]),
        ("kubernetes_tolerations", ["a:b"]),
        ("kubernetes_tolerations", [{"operator": "Like"}]),
        ("kubernetes_tolerations", [{"effect": "Never"}]),
        ("kubernetes_shared_mem_size", {"size": 1, "units": "M"}),
        ("kubernetes_pod_labels", [{"value": "x"}]),
        ("filename", 5),
        ("pipeline_parameters", [5]),
        ("pipeline_parameters", ["${{"]),
        ("disable_node_caching", "sometimes"),
    ],
)
def test_a_property_that_cannot_be_read_is_kept_and_reported(key, value):
    found, problems = convert_node({"filename": "a.ipynb", key: value})
    kept = found["extra"]["elyra"][key]
    assert kept == value or (isinstance(value, list) and all(item in value for item in kept))
    (place,) = {problem.path for problem in problems if problem.code == "elyra-unreadable"}
    assert place == ("extra", "elyra", key)


def test_flows_that_nobody_uses_are_kept():
    document, problems = convert(pipeline(node("a"), flows=[flow("orphan", node("b"))]))
    assert [item["id"] for item in document["extra"]["elyra"]["pipelines"]] == ["orphan"]
    assert "elyra-kept" in codes(problems)


def put(value, *place_and_new):
    *place, key, new = place_and_new
    for step in place:
        value = value[step]
    value[key] = new


FIRST = ("pipelines", 0, "nodes", 0)


@pytest.mark.parametrize(
    "change",
    [
        lambda value: [],
        lambda value: "text",
        lambda value: {},
        lambda value: {"doc_type": "pipeline"},
        lambda value: {"convect": 1, "nodes": {}},
        lambda value: put(value, "pipelines", []),
        lambda value: put(value, "pipelines", {}),
        lambda value: put(value, "pipelines", [5]),
        lambda value: put(value, "primary_pipeline", "other"),
        lambda value: put(value, "pipelines", 0, "app_data", "version", 9),
        lambda value: put(value, "pipelines", 0, "app_data", "version", "new"),
        lambda value: put(value, "pipelines", 0, "app_data", "version", True),
        lambda value: put(value, "pipelines", 0, "app_data", "version", 1.5),
        lambda value: put(value, "pipelines", 0, "app_data", []),
        lambda value: put(value, "pipelines", 0, "nodes", {}),
        lambda value: put(value, "pipelines", 0, "nodes", 0, "node"),
        lambda value: put(value, *FIRST, "id", None),
        lambda value: put(value, *FIRST, "id", "b"),
        lambda value: put(value, *FIRST, "type", "model_node"),
        lambda value: put(value, *FIRST, "app_data", 5),
        lambda value: put(value, *FIRST, "inputs", 0, "links", [link("nowhere")]),
        lambda value: put(value, *FIRST, "inputs", 0, "links", [{}]),
        lambda value: put(value, *FIRST, "inputs", 0, "links", [link("group", "nothing")]),
        lambda value: put(value, *FIRST, "inputs", 0, "links", [link("b")]),
        lambda value: put(value, *FIRST, "inputs", 0, "links", [link("a")]),
        lambda value: put(value, "pipelines", 0, "nodes", 3, "subflow_ref", {}),
        lambda value: put(
            value, "pipelines", 0, "nodes", 3, "subflow_ref", {"pipeline_id_ref": "main"}
        ),
        lambda value: put(value, "pipelines", 0, "app_data", "ui_data", "comments", "text"),
    ],
)
def test_what_cannot_be_an_elyra_pipeline_is_refused_in_one_sentence(change):
    value = load("v8-everything")
    changed = change(value)
    value = value if changed is None else changed
    with pytest.raises(ConvectError) as caught:
        import_elyra(json.dumps(value))
    assert caught.value.sentence.endswith(".")
    assert "\n" not in caught.value.sentence


def test_a_circle_is_refused_with_the_names_of_its_nodes():
    value = pipeline(node("a", after=["c"]), node("b", after=["a"]), node("c", after=["b"]))
    with pytest.raises(ConvectError, match="a → b → c → a") as caught:
        import_elyra(json.dumps(value))
    assert caught.value.code == "cycle"


def test_a_circle_through_values_is_one_too():
    value = pipeline(
        node("a", {"it": {"value": "b", "option": "output_x"}}, op="c:1", label="a"),
        node("b", {}, op="c:1", label="b", after=["a"]),
    )
    with pytest.raises(ConvectError, match="a → b → a"):
        import_elyra(json.dumps(value))


def test_thousands_of_nested_supernodes_are_no_trouble():
    count = 3000
    flows = [flow(f"f{i}", supernode(f"s{i}", f"f{i + 1}")) for i in range(1, count)]
    value = pipeline(supernode("s0", "f1"), flows=[*flows, flow(f"f{count}", node("a"))])
    document, _ = import_elyra(json.dumps(value))
    assert len(document["nodes"]) == count + 1


def test_a_link_into_a_supernode_that_leads_to_nothing_is_told():
    inside = {"id": "entry", "type": "binding", "outputs": [{"id": "out"}]}
    group = supernode("s", "f") | {
        "inputs": [{"id": "in", "subflow_node_ref": "gone", "links": [link("a")]}]
    }
    value = pipeline(node("a"), group, flows=[flow("f", inside, node("b"))])
    _, problems = convert(value)
    assert "elyra-dropped-link" in codes(problems)
    # With somebody at the other end there is nothing to tell.
    group["inputs"][0]["subflow_node_ref"] = "entry"
    value = pipeline(node("a"), group, flows=[flow("f", inside, node("b", after=["entry"]))])
    document, problems = convert(value)
    assert document["nodes"]["b"]["after"] == ["a"]
    assert "elyra-dropped-link" not in codes(problems)
