"""Elyra pipelines of every version, and every property in them, become ours."""

import pytest
from elyra_files import codes, convert, convert_node, load, node, pipeline

from jupyterlab_convect.pipeline.elyra import seen_from


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


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6, 7, 7.5, 8])
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


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("A=1,2", {"A": "1,2"}),
        ("A=b=c", {"A": "b=c"}),
        ("URL=https://example.com/?a=1&b=2", {"URL": "https://example.com/?a=1&b=2"}),
        ("A = 1 ", {"A": " 1 "}),
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


def test_the_blanks_of_a_variable_are_kept():
    made = node("a", {"filename": "a.ipynb", "env_vars": ["column= finding", " B =b ", "C=c"]})
    document, _ = convert(pipeline(made))
    assert document["nodes"]["a"]["env"] == {"column": " finding", "B": "b ", "C": "c"}
