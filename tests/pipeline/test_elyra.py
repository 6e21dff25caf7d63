"""Elyra pipelines of every version become documents of ours, and nothing in them is lost."""

import json
from pathlib import Path

import pytest

from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.pipeline.document import dumps, parse
from jupyterlab_convect.pipeline.elyra import import_elyra, seen_from
from jupyterlab_convect.pipeline.validate import validate

FILES = Path(__file__).parents[1] / "golden" / "elyra"


def load(name):
    """One of our own files in Elyra's format."""
    return json.loads((FILES / f"{name}.pipeline").read_bytes())


def node(node_id, parameters=None, *, op="execute-notebook-node", after=(), **app_data):
    parameters = {"filename": f"{node_id}.ipynb"} if parameters is None else parameters
    return {
        "id": node_id,
        "type": "execution_node",
        "op": op,
        "app_data": {"component_parameters": parameters, "ui_data": {}, **app_data},
        "inputs": [{"id": "inPort", "links": [link(source) for source in after]}],
        "outputs": [{"id": "outPort"}],
    }


def link(source, port="outPort"):
    return {"id": f"link from {source}", "node_id_ref": source, "port_id_ref": port}


def pipeline(*nodes, version=8, comments=(), flows=(), **properties):
    main = {
        "id": "main",
        "nodes": list(nodes),
        "app_data": {
            "version": version,
            "properties": {"name": "test", **properties},
            "ui_data": {"comments": list(comments)},
        },
    }
    return {
        "doc_type": "pipeline",
        "version": "3.0",
        "id": "a pipeline",
        "primary_pipeline": "main",
        "pipelines": [main, *flows],
    }


def convert(value, path=None):
    """The document and the problems, after the checks that hold for every import."""
    text = json.dumps(value)
    document, problems = import_elyra(text, path=path)
    assert import_elyra(text, path=path) == (document, problems)
    written = dumps(document)
    assert dumps(parse(written)) == written
    shape = [problem for problem in validate(document) if problem.code in ("wrong-type", "unknown")]
    assert shape == []
    return document, problems


def convert_node(parameters, version=8, **others):
    document, problems = convert(pipeline(node("a", parameters, **others), version=version))
    (found,) = document["nodes"].values()
    return found, problems


def codes(problems):
    return [problem.code for problem in problems]


# Versions


def test_version_0_has_names_of_its_own():
    document, _ = convert(load("v0-oldest"))
    assert document["name"] == "oldest"
    assert document["nodes"] == {
        "fit": {
            "kind": "notebook",
            "path": "work/fit.ipynb",
            "image": "registry/ds:1",
            "env": {"A": "1"},
            "dependencies": ["**/*.py"],
            "outputs": ["model.bin"],
        }
    }
    assert document["layout"] == {"fit": [1, 2]}


@pytest.mark.parametrize("version", range(1, 9))
def test_the_same_node_in_every_version(version):
    properties = {"filename": "fit.ipynb", "runtime_image": "registry/ds:1", "env_vars": ["A=1"]}
    if version == 8:
        properties["env_vars"] = [{"env_var": "A", "value": "1"}]
    made = node("1", properties)
    if version < 4:
        made["app_data"] = {**properties, "ui_data": {}}
    document, _ = convert(pipeline(made, version=version))
    assert document["nodes"] == {
        "fit": {
            "kind": "notebook",
            "path": "fit.ipynb",
            "image": "registry/ds:1",
            "env": {"A": "1"},
        }
    }
    assert document["extra"]["elyra"]["version"] == version


@pytest.mark.parametrize(
    ("version", "path", "expected"),
    [
        (0, "flows/old.pipeline", "../data/fit.ipynb"),
        (1, "data/old.pipeline", "fit.ipynb"),
        (1, "old.pipeline", "data/fit.ipynb"),
        (1, None, "data/fit.ipynb"),
        (2, "flows/old.pipeline", "data/fit.ipynb"),
        (8, "flows/old.pipeline", "data/fit.ipynb"),
    ],
)
def test_paths_are_relative_to_the_pipeline(version, path, expected):
    made = node("1", {"filename": "data/fit.ipynb"})
    document, problems = convert(pipeline(made, version=version), path)
    assert document["nodes"]["fit"]["path"] == expected
    assert ("elyra-paths" in codes(problems)) == (path is None)


def test_a_document_can_be_written_elsewhere():
    value = pipeline(
        node("a", {"filename": "sub/a.ipynb"}),
        node(
            "b",
            {"it": {"widget": "file", "value": "x.csv"}, "n": {"widget": "", "value": 1}},
            op="c",
        ),
    )
    moved = seen_from(convert(value)[0], "../old")["nodes"]
    assert moved["a"]["path"] == "../old/sub/a.ipynb"
    (inputs,) = (item["inputs"] for item in moved.values() if "inputs" in item)
    assert inputs == {"it": {"file": "../old/x.csv"}, "n": 1}


def test_the_name_is_that_of_the_file_when_there_is_none():
    value = pipeline()
    del value["pipelines"][0]["app_data"]["properties"]["name"]
    assert convert(value, "folder/old one.pipeline")[0]["name"] == "old one"
    assert "name" not in convert(value)[0]


# Properties


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("A=1,2", {"A": "1,2"}),
        ("A=b=c", {"A": "b=c"}),
        ("URL=https://example.com/?a=1&b=2", {"URL": "https://example.com/?a=1&b=2"}),
        ("A = 1 ", {"A": "1"}),
        ({"env_var": "A", "value": "b=c"}, {"A": "b=c"}),
        ({"env_var": "A", "value": 5}, {"A": "5"}),
    ],
)
def test_only_the_first_equals_sign_splits(written, expected):
    assert convert_node({"filename": "a.ipynb", "env_vars": [written]})[0]["env"] == expected


def test_a_variable_without_a_value_stays_unset():
    for written in ("A=", "A", {"env_var": "A", "value": ""}, {"env_var": "A"}):
        found, problems = convert_node({"filename": "a.ipynb", "env_vars": [written, "B=1"]})
        assert found["env"] == {"B": "1"}
        assert found["extra"]["elyra"]["env_vars"] == [written]
        assert [problem.severity for problem in problems if problem.node] == ["info"]


@pytest.mark.parametrize(
    "written",
    [
        {
            "kubernetes_secrets": ["KEY=vault:some.key"],
            "mounted_volumes": ["/mnt/my-data=my-pvc"],
            "kubernetes_tolerations": ["TOL_1=gpu:Equal:yes:NoSchedule", "all:Exists::"],
            "kubernetes_pod_labels": ["team=churn=1", "plain"],
            "kubernetes_pod_annotations": ["note=a:b"],
        },
        {
            "kubernetes_secrets": [{"env_var": "KEY", "name": "vault", "key": "some.key"}],
            "mounted_volumes": [{"path": "mnt/my-data/", "pvc_name": "my-pvc", "read_only": False}],
            "kubernetes_tolerations": [
                {"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"},
                {"key": "all", "operator": "Exists", "value": "", "effect": None},
            ],
            "kubernetes_pod_labels": [{"key": "team", "value": "churn=1"}, {"key": "plain"}],
            "kubernetes_pod_annotations": [{"key": "note", "value": "a:b"}],
        },
    ],
    ids=["texts", "objects"],
)
@pytest.mark.parametrize("op", ["execute-python-node", "catalog:123"])
def test_kubernetes_properties_as_texts_and_as_objects(written, op):
    found, problems = convert_node({"filename": "a.py", **written}, op=op)
    assert found["kind"] == ("component" if op == "catalog:123" else "script")
    assert found["secrets"] == [{"env": "KEY", "name": "vault", "key": "some.key"}]
    assert found["volumes"] == [{"claim": "my-pvc", "path": "/mnt/my-data"}]
    assert found["kubernetes"] == {
        "tolerations": [
            {"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"},
            {"key": "all", "operator": "Exists"},
        ],
        "labels": {"team": "churn=1", "plain": ""},
        "annotations": {"note": "a:b"},
    }
    assert "elyra-unreadable" not in codes(problems)


def test_volumes_keep_their_folder_and_their_protection():
    volume = {"path": "/data", "pvc_name": "claim", "sub_path": "a/b", "read_only": True}
    found, _ = convert_node({"filename": "a.py", "mounted_volumes": [volume]})
    expected = {"claim": "claim", "path": "/data", "sub_path": "a/b", "read_only": True}
    assert found["volumes"] == [expected]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"cpu": 2, "memory": 4, "gpu": 1}, {"cpu": 2, "memory": "4G", "gpu": 1}),
        ({"cpu": "0.5", "memory": "1.5"}, {"cpu": 0.5, "memory": "1.5G"}),
        (
            {"cpu": 1, "cpu_limit": 2, "memory_limit": 8},
            {"cpu": {"request": 1, "limit": 2}, "memory": {"limit": "8G"}},
        ),
        (
            {"gpu": 2, "gpu_vendor": "amd.com/gpu"},
            {"gpu": {"count": 2, "resource": "amd.com/gpu"}},
        ),
        ({"gpu": 2, "gpu_vendor": "nvidia.com/gpu"}, {"gpu": 2}),
        ({"kubernetes_shared_mem_size": {"size": 0.5, "units": "G"}}, {"shared_memory": "0.5G"}),
        ({"kubernetes_shared_mem_size": {"size": "2"}}, {"shared_memory": "2G"}),
        ({"cpu": "", "gpu": 0, "memory": None, "kubernetes_shared_mem_size": {}}, None),
        ({"kubernetes_shared_mem_size": {"size": 0}}, None),
    ],
)
def test_resources(written, expected):
    found, _ = convert_node({"filename": "a.py", **written})
    assert found.get("resources") == expected
    assert "extra" not in found


@pytest.mark.parametrize(
    ("written", "expected"),
    [("True", False), ("False", True), (True, False), ({"selection": "true"}, False), ("", None)],
)
def test_caching(written, expected):
    found, _ = convert_node({"disable_node_caching": written}, op="catalog:1")
    assert found.get("cache") == expected


@pytest.mark.parametrize(
    ("globs", "expected"),
    [
        (["*.py", "data.csv"], ["**/*.py", "**/data.csv"]),
        (["lib/*.py"], ["lib/**/*.py"]),
        ([], None),
    ],
)
def test_dependencies_in_folders_below(globs, expected):
    parameters = {"filename": "a.py", "dependencies": globs, "include_subdirectories": True}
    assert convert_node(parameters)[0].get("dependencies") == expected


def test_defaults_of_the_pipeline():
    document, problems = convert(
        pipeline(
            node("a"),
            pipeline_defaults={
                "runtime_image": "registry/ds:1",
                "env_vars": [{"env_var": "A", "value": "1"}],
                "mounted_volumes": [],
                "cos_object_prefix": "some/where",
            },
        )
    )
    assert document["defaults"] == {
        "image": "registry/ds:1",
        "env": {"A": "1"},
        "extra": {"elyra": {"cos_object_prefix": "some/where"}},
    }
    assert ("defaults", "extra", "elyra") in [problem.path for problem in problems]


def test_parameters_of_the_pipeline_reach_notebooks_as_variables():
    document, _ = convert(
        pipeline(
            node("a", {"filename": "a.ipynb", "pipeline_parameters": ["rate", "who"]}),
            pipeline_parameters=[
                {
                    "name": "rate",
                    "description": "How fast.",
                    "default_value": {"type": "Float", "value": 0.5},
                    "value": 0.7,
                    "required": True,
                },
                {"name": "who", "default_value": {"type": "String", "value": "me"}},
                {"name": "odd", "default_value": {"type": "GCSPath", "value": "gs://x"}},
                {"description": "nameless"},
            ],
        )
    )
    assert document["parameters"] == {
        "rate": {
            "type": "number",
            "default": 0.5,
            "description": "How fast.",
            "required": True,
            "extra": {"elyra": {"value": 0.7}},
        },
        "who": {"type": "string", "default": "me"},
        "odd": {"default": "gs://x", "extra": {"elyra": {"type": "GCSPath"}}},
    }
    assert document["nodes"]["a"]["env"] == {
        "rate": "${{ parameters.rate }}",
        "who": "${{ parameters.who }}",
    }
    assert document["extra"]["elyra"]["pipeline_parameters"] == [{"description": "nameless"}]


# Components


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


# Names


def test_ids_are_made_of_file_names_and_labels():
    document, _ = convert(
        pipeline(
            node("1", {"filename": "work/Part 1 - Clean.ipynb"}),
            node("2", {"filename": "fit.ipynb"}),
            node("3", {"filename": "fit.py"}, op="execute-python-node"),
            node("4", {"filename": "other/FIT.py"}, op="execute-python-node"),
            node("5", {}, op="c:1", ui_data={"label": "Download data"}),
            node("6", {"filename": "数据.ipynb"}),
            node("7", {"filename": "???.ipynb"}, ui_data={"label": "???"}),
        )
    )
    assert list(document["nodes"]) == [
        "Part-1-Clean",
        "fit",
        "fit-2",
        "FIT-3",
        "Download-data",
        "数据",
        "node",
    ]


@pytest.mark.parametrize(
    ("label", "expected"),
    [("fit.ipynb", None), ("fit", None), ("Fit it!", "Fit it!"), ("", None), (None, None)],
)
def test_a_label_that_says_more_than_the_file_becomes_the_name(label, expected):
    found, _ = convert_node({"filename": "x/fit.ipynb"}, ui_data={"label": label}, label=label)
    assert found.get("name") == expected


def test_a_description_is_kept_and_stock_phrases_are_not():
    own, _ = convert_node({"filename": "a.py"}, ui_data={"description": "Fits it."})
    stock, _ = convert_node({"filename": "a.py"}, ui_data={"description": "Run Python script"})
    assert own["description"] == "Fits it."
    assert "description" not in stock


# Supernodes and comments


def supernode(node_id, flow):
    return {"id": node_id, "type": "super_node", "subflow_ref": {"pipeline_id_ref": flow}}


def flow(flow_id, *nodes):
    return {"id": flow_id, "nodes": list(nodes)}


def test_supernodes_become_groups_of_flat_nodes():
    document, problems = convert(load("v6-nested-supernodes"))
    nodes = document["nodes"]
    after = {name: found.get("after") for name, found in nodes.items() if found["kind"] != "group"}
    assert after == {"first": None, "b": ["first"], "c": ["b"], "last": ["c"]}
    assert nodes["outer"] == {"kind": "group", "members": ["c", "inner"]}
    assert nodes["inner"] == {"kind": "group", "members": ["b"]}
    assert codes(problems) == []


def test_what_is_in_a_supernode_lies_on_the_same_canvas():
    layout = convert(load("v6-nested-supernodes"))[0]["layout"]
    assert layout["outer"] == [200, 50, 400, 300]
    assert layout["inner"] == {"at": [240, 90], "folded": True}
    assert layout["c"] == [440, 90]
    assert layout["b"] == [280, 130]


def test_ports_of_supernodes_are_found_by_name_when_the_references_are_gone():
    value = load("v6-nested-supernodes")

    def forget(item):
        if isinstance(item, dict):
            item.pop("subflow_node_ref", None)
        for inner in item.values() if isinstance(item, dict) else item:
            if isinstance(inner, dict | list):
                forget(inner)

    expected = convert(value)[0]
    forget(value)
    assert convert(value)[0] == expected


def test_comments_keep_text_place_and_nodes():
    comments = [
        {
            "id": "x",
            "content": "Read *me*",
            "x_pos": 10.4,
            "y_pos": 20,
            "width": 100,
            "height": 50,
            "class_name": "d3-comment-rect",
            "associated_id_refs": [{"node_ref": "a", "class_name": "d3-comment-link"}],
        },
        {"id": "y", "associated_id_refs": [{"node_ref": "gone"}]},
    ]
    document, problems = convert(pipeline(node("a"), comments=comments))
    assert document["comments"] == {
        "comment": {"text": "Read *me*", "about": ["a"]},
        "comment-2": {
            "text": "",
            "extra": {"elyra": {"associated_id_refs": [{"node_ref": "gone"}]}},
        },
    }
    assert document["layout"]["comment"] == [10, 20, 100, 50]
    assert "elyra-unreadable" in codes(problems)


# Nothing is lost


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


# Refusals


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
