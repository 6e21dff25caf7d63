"""Whatever is done to a pipeline, nothing but a ConvectError comes out, and what is good stays."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.pipeline.check_shape import check_shape
from jupyterlab_convect.pipeline.describe import describe
from jupyterlab_convect.pipeline.discovery import discover
from jupyterlab_convect.pipeline.document import dumps, parse
from jupyterlab_convect.pipeline.plan import Plan, from_json, to_json
from jupyterlab_convect.pipeline.resolve import resolve
from jupyterlab_convect.pipeline.schema import SOURCE
from jupyterlab_convect.pipeline.validate import validate

T = TypeVar("T")
CONTENTS = {
    ".ipynb": '{"cells": []}',
    ".pipeline": '{"convect": 1, "parameters": {"lr": {"default": 1}}, '
    '"nodes": {"a": {"kind": "command", "command": ["true"]}}}',
}
GOLDEN = Path(__file__).parent.parent / "golden"
TEXTS = [path.read_text(encoding="utf-8") for path in sorted(GOLDEN.glob("*.pipeline"))]
JSON_SCHEMA = jsonschema.Draft202012Validator(json.loads(SOURCE.read_text()))
FORMATS = {"bad-quantity", "bad-duration"}
"""What our checker knows about texts and a general one does not."""

names = st.sampled_from(
    ["kind", "path", "after", "train", "cpu", "count", "env", "resources", "", "a/b", "训", "at"]
)
atoms = (
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(-1e15, 1e15)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
    | st.sampled_from(
        ["notebook", "group", "${{ parameters.lr }}", "${{", "2Gi", "../..", "*", "/"]
    )
)
values = st.recursive(
    atoms,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    """A good pipeline with some values replaced, removed, added or moved."""
    document: dict[str, Any] = json.loads(draw(st.sampled_from(TEXTS)))
    for _ in range(draw(st.integers(1, 4))):
        holders = [holder for holder in _holders(document) if holder]
        holder = draw(st.sampled_from(holders))
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = draw(st.sampled_from(keys))
        match draw(st.sampled_from(["replace", "remove", "add", "copy"])):
            case "replace":
                holder[key] = draw(values)
            case "remove":
                del holder[key]
            case "add" if isinstance(holder, dict):
                holder[draw(names)] = draw(values)
            case _:
                holder[key] = copy.deepcopy(draw(st.sampled_from(holders)))
    document["convect"] = 1
    return document


def _holders(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value, *(found for item in value.values() for found in _holders(item))]
    if isinstance(value, list):
        return [value, *(found for item in value for found in _holders(item))]
    return []


def _refused_or(function: Callable[[], T]) -> T | None:
    """What a function gives, or None when it refuses in one sentence."""
    try:
        return function()
    except ConvectError as error:
        sentence = error.sentence
    assert sentence
    assert "\n" not in sentence
    return None


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every file that the good pipelines name."""
    folder = tmp_path_factory.mktemp("root")
    for text in TEXTS:
        for node in json.loads(text)["nodes"].values():
            files = [node.get("path"), *node.get("dependencies", ())]
            files += [
                item["file"] for item in node.get("inputs", {}).values() if "file" in str(item)
            ]
            for name in filter(None, files):
                path = folder / name.replace("*", "x")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(CONTENTS.get(path.suffix, ""))
    return folder


def test_the_good_pipelines_make_plans(root: Path) -> None:
    plans = [
        resolve(parse(text), root=root, path="x.pipeline", parameters={"who": "me"})
        for text in TEXTS
        if '"who"' in text
    ]
    assert plans


@given(document=mutated())
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_mutated_pipelines(root: Path, document: dict[str, Any]) -> None:
    before = copy.deepcopy(document)
    found = validate(document, root=root, path="x.pipeline", parameters={})
    assert document == before
    for problem in found:
        assert problem.message
        json.dumps(problem.path)
    _refused_or(lambda: describe(document, root=root))  # type: ignore[arg-type]
    plan = _refused_or(lambda: resolve(document, root=root, path="x.pipeline"))  # type: ignore[arg-type]
    if plan is None:
        return
    assert not [problem for problem in found if problem.severity == "error"]
    assert from_json(Plan, json.loads(json.dumps(to_json(plan)))).digest == plan.digest


@given(mutated())
@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_our_checker_and_json_schema_agree(document: dict[str, Any]) -> None:
    found = [problem for problem in check_shape(document) if problem.code not in FORMATS]
    assert JSON_SCHEMA.is_valid(document) is (not found), found


@given(mutated())
@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_whatever_can_be_read_round_trips(document: dict[str, Any]) -> None:
    text = dumps(document)  # type: ignore[arg-type]
    again = parse(text)
    assert again == document
    assert dumps(again) == text


@given(st.sampled_from(TEXTS), st.data())
@settings(max_examples=300, deadline=None)
def test_mutated_bytes(text: str, data: st.DataObject) -> None:
    content = bytearray(text.encode())
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, min(len(content), start + 40)) | st.just(len(content)))
    content[start:end] = data.draw(st.binary(max_size=8))
    document = _refused_or(lambda: parse(bytes(content)))
    if document is not None:
        validate(document)
        assert parse(dumps(document)) == document


@pytest.mark.parametrize(
    "part", ["${{", "${{ run.", "{{ run. ", "${a", "\n", " ", "1", "a ", "(\n"]
)
def test_nothing_is_read_again_and_again(part: str, tmp_path: Path) -> None:
    """Long texts that defeat careless patterns: whoever reads them twice never comes to an end."""
    text = part * 100_000
    node = {"kind": "command", "command": ["x", text], "env": {"A": text}, "timeout": text}
    validate({"convect": 1, "nodes": {"a": node}})
    cell = {"cell_type": "code", "source": f"x = {text}b", "metadata": {"tags": ["parameters"]}}
    for language in ("python", "R", "julia"):
        path = tmp_path / f"{language}.ipynb"
        spec = {"name": language, "language": language}
        path.write_text(json.dumps({"cells": [cell], "metadata": {"kernelspec": spec}}))
        discover(path)
    for name in ("a.sh", "a.R", "a.py"):
        (tmp_path / name).write_text(text)
        discover(tmp_path / name)
