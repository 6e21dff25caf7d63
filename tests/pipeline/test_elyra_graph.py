"""Names, supernodes and comments of Elyra pipelines."""

import pytest
from elyra_files import codes, convert, convert_node, load, node, pipeline


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
