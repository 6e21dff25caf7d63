from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_convect.cli.arguments import declared_types, known_types, space_of, typed_parameters
from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.runs.sweep_space import points_of

TYPES = {
    "text": "string",
    "count": "integer",
    "rate": "number",
    "flag": "boolean",
    "items": "array",
    "any": None,
}


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("text=7", "7"),
        ("text=", ""),
        ("text=a=b", "a=b"),
        ("count=7", 7),
        ("rate=1", 1.0),
        ("rate=1e-3", 0.001),
        ("flag=True", True),
        ("flag=false", False),
        ("items=[1, 2]", [1, 2]),
        ("any=7", 7),
        ("any=seven", "seven"),
        ("unknown=null", None),
        ("unknown=你好", "你好"),
    ],
)
def test_a_parameter_is_read_as_its_declared_type(pair: str, value: Any) -> None:
    (found,) = typed_parameters([pair], TYPES).values()
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "pair", ["count=1.5", "count=x", "rate=fast", "flag=1", "items={}", "rate", "=1"]
)
def test_a_value_of_the_wrong_type_is_refused_in_one_sentence(pair: str) -> None:
    with pytest.raises(ConvectError) as caught:
        typed_parameters([pair], TYPES)
    assert "\n" not in caught.value.sentence


@pytest.mark.parametrize(
    ("text", "axis"),
    [
        ("count=1:9:2", {"from": 1, "to": 9, "step": 2}),
        ("count=1..9 step 2", {"from": 1, "to": 9, "step": 2}),
        ("rate=0..1 step 0.5", {"from": 0.0, "to": 1.0, "step": 0.5}),
        ("rate=.001:1:log", {"min": 0.001, "max": 1.0, "log": True}),
        ("rate=0.001..1 log", {"min": 0.001, "max": 1.0, "log": True}),
        ("count=1..3", {"min": 1, "max": 3, "type": "integer"}),
        ("count=1:3", {"min": 1, "max": 3, "type": "integer"}),
        ("text=1..3", ["1..3"]),
    ],
)
def test_a_sweep_is_written_as_in_the_dialog_or_shorter(text: str, axis: Any) -> None:
    (found,) = space_of([text], TYPES).values()
    assert found == axis


def test_whole_numbers_between_two_are_a_grid() -> None:
    space = space_of(["count=1..3"], TYPES)
    assert points_of(space) == [{"count": 1}, {"count": 2}, {"count": 3}]


@pytest.mark.parametrize("parameters", [None, [], {"a": 1, "b": {}, "c": {"type": []}}])
def test_types_are_read_from_documents_that_nobody_checked(parameters: Any) -> None:
    types = declared_types({"parameters": parameters})
    assert set(types.values()) <= {None}


@pytest.mark.parametrize(
    ("pair", "values"),
    [
        ("rate=0.1,1", [0.1, 1.0]),
        ("count=1,2", [1, 2]),
        ("count=1:9:2", {"from": 1, "to": 9, "step": 2}),
        ("rate=0.1:1:0.1", {"from": 0.1, "to": 1.0, "step": 0.1}),
        ("rate=0.1:1", {"min": 0.1, "max": 1.0}),
        ("text=1:2,b", ["1:2", "b"]),
        ('any=["a,b", 2]', ["a,b", 2]),
    ],
)
def test_values_of_a_sweep_are_a_list_or_a_range(pair: str, values: Any) -> None:
    assert list(space_of([pair], TYPES).values()) == [values]


def test_types_come_from_the_notebook_and_from_the_pipeline(
    tmp_path: Path, write_notebook: Callable[..., Path]
) -> None:
    write_notebook(tmp_path / "a.ipynb", ("parameters", "lr: float = 1\nname = 'x'\nn = 3"))
    assert known_types(tmp_path, "a.ipynb") == {"lr": "number", "name": "string", "n": "integer"}
    document = {"convect": 1, "parameters": {"lr": {"type": "number"}}, "nodes": {}}
    (tmp_path / "a.pipeline").write_text(json.dumps(document))
    assert known_types(tmp_path, "a.pipeline") == {"lr": "number"}
