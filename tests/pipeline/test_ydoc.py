"""The shared document writes the bytes of `dumps`, changes little, and destroys nothing."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jupyter_ydoc import ydocs
from pycrdt import Doc, Map

from jupyterlab_convect.pipeline.document import dumps, parse
from jupyterlab_convect.pipeline.schema import schema

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.pipeline"))
YPipeline = ydocs["pipeline"]

CHURN = next(file for file in GOLDEN if file.stem == "churn").read_text(encoding="utf-8")

names = st.text(max_size=8).filter(lambda text: "\0" not in text)
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=12,
)
sections = st.sampled_from(("nodes", "comments", "layout", "components", "defaults", "extra"))
documents = st.builds(
    lambda named, others: {**others, **named, "convect": 1},
    st.dictionaries(sections, plain),
    st.dictionaries(names, plain, max_size=3),
)


def load(text):
    document = YPipeline()
    document.set(text)
    return document


def follow(document):
    """A second person's copy that receives every change, and the list of those changes."""
    copy = YPipeline(Doc())
    copy.ydoc.apply_update(document.ydoc.get_update())
    changes = []
    copy.observe(lambda name, events: changes.append((name, events)))
    document.ydoc.observe(lambda event: copy.ydoc.apply_update(event.update))
    return copy, changes


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_golden_files_are_written_as_they_were_read(file):
    text = file.read_bytes().decode("utf-8")
    assert dumps(parse(text)) == text
    assert load(text).get() == text


def test_the_golden_files_use_every_property_of_the_schema():
    def keys(value):
        if isinstance(value, dict):
            return set(value).union(*map(keys, value.values()))
        return set().union(*map(keys, value)) if isinstance(value, list) else set()

    definitions = [schema(), *schema()["$defs"].values()]
    known = {key for item in definitions for key in item.get("properties", {})}
    full = next(file for file in GOLDEN if file.stem == "full")
    assert known <= keys(json.loads(full.read_bytes()))


def test_the_structure_is_the_one_that_the_editor_reads():
    document = load(CHURN)
    shared = {name: document.ydoc.get(name, type=Map) for name in ("meta", "nodes", "layout")}
    assert isinstance(shared["nodes"]["train"], Map)
    assert isinstance(shared["nodes"]["train"]["parameters"], Map)
    assert shared["nodes"]["train"]["after"] == ["prepare"]
    assert shared["layout"]["train"] == [240, 0]
    assert shared["meta"]["name"] == "churn"
    assert len(shared["meta"]["nodes"]) == 0


@given(documents)
def test_every_document_is_written_as_dumps_writes_it(content):
    text = dumps(content)
    assert load(text).get() == text


@given(documents, documents)
def test_any_document_can_follow_any_other(first, second):
    document = load(dumps(first))
    document.set(dumps(second))
    assert document.get() == dumps(second)


def test_the_same_content_changes_nothing():
    document = load(CHURN)
    state = document.ydoc.get_state()
    document.set(CHURN)
    assert document.ydoc.get_state() == state


def test_a_file_in_its_own_style_stays_so_until_it_is_changed():
    text = json.dumps(json.loads(CHURN), indent=4)
    document = load(text)
    assert document.get() == text
    document.set(CHURN.replace("[240, 0]", "[240, 10]"))
    assert document.get() == CHURN.replace("[240, 0]", "[240, 10]")


def test_only_what_differs_changes():
    document = load(CHURN)
    copy, changes = follow(document)
    document.set(CHURN.replace('"retries": 2', '"retries": 3'))
    ((name, (event,)),) = changes
    assert name == "nodes"
    assert event.path == ["train"]
    assert list(event.keys) == ["retries"]
    assert copy.get() == document.get()


def test_moving_a_node_changes_only_its_place():
    document = load(CHURN)
    _, changes = follow(document)
    document.set(CHURN.replace("[240, 0]", "[240, 10]"))
    assert [name for name, _ in changes] == ["layout"]


def test_true_is_not_one():
    document = load(dumps({"convect": 1, "extra": {"flag": 1, "list": [1, {"a": 0}]}}))
    text = dumps({"convect": 1, "extra": {"flag": True, "list": [True, {"a": False}]}})
    document.set(text)
    assert document.get() == text


def test_two_people_change_two_parameters_of_one_node():
    mine = load(CHURN)
    yours = YPipeline(Doc())
    yours.ydoc.apply_update(mine.ydoc.get_update())
    mine.set(CHURN.replace("${{ parameters.lr }}", "mine"))
    yours.set(CHURN.replace("${{ nodes.prepare.outputs.rows }}", "yours"))
    mine.ydoc.apply_update(yours.ydoc.get_update())
    yours.ydoc.apply_update(mine.ydoc.get_update())
    assert mine.get() == yours.get()
    parameters = json.loads(mine.get())["nodes"]["train"]["parameters"]
    assert parameters == {"lr": "mine", "rows": "yours"}


def test_undo_takes_back_one_change():
    document = load(CHURN)
    changed = CHURN.replace('"retries": 2', '"retries": 3')
    document.set(changed)
    document.set(changed.replace('"2h"', '"3h"'))
    document.undo_manager.undo()
    assert document.get() == changed
    document.undo_manager.undo()
    assert document.get() == CHURN
    document.undo_manager.redo()
    assert document.get() == changed


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "",
        "no JSON",
        "[]",
        "{}",
        '{"convect": 2, "nodes": {}}',
        '{"doc_type": "pipeline", "pipelines": []}',
        '{ "convect": 1, "convect": 1 }',
        '{"convect": 1, "nodes": {}, "extra": {"large": 123456789012345678901}}',
    ],
)
def test_what_is_not_a_pipeline_is_given_back_to_the_letter(text):
    assert load(text).get() == text
    document = load(CHURN)
    document.set(text)
    assert document.get() == text
    document.set(CHURN)
    assert document.get() == CHURN


def test_a_mended_file_changes_only_what_was_mended():
    document = load(CHURN)
    document.set("{")
    _, changes = follow(document)
    document.set(CHURN.replace('"retries": 2', '"retries": 3'))
    assert sorted(name for name, _ in changes) == ["nodes", "raw"]


def test_an_empty_section_stays_and_a_missing_one_stays_away():
    with_sections = dumps({"convect": 1, "nodes": {}, "layout": {}, "comments": {}})
    without = dumps({"convect": 1, "nodes": {}})
    document = load(with_sections)
    assert document.get() == with_sections
    document.set(without)
    assert document.get() == without


def test_a_new_document_is_empty():
    assert YPipeline().get() == ""


def test_unobserve_ends_the_calls():
    document = load(CHURN)
    calls = []
    document.observe(lambda name, events: calls.append(name))
    document.dirty = True
    document.unobserve()
    document.set("{")
    assert calls == ["state"]
