"""Reading is strict and says where; writing depends on nothing but the content."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.pipeline.document import MAX_BYTES, dumps, new, parse, write_number

GOLDEN = sorted((Path(__file__).parent.parent / "golden").glob("*.pipeline"))


def test_opening_and_saving_changes_nothing() -> None:
    assert GOLDEN
    for path in GOLDEN:
        text = path.read_bytes()
        assert dumps(parse(text)).encode() == text


def test_the_text_does_not_depend_on_the_order_in_which_keys_were_added(
    churn: dict[str, Any],
) -> None:
    def reverse(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: reverse(value[key]) for key in reversed(value)}
        return value

    assert dumps(reverse(churn)) == dumps(churn)  # type: ignore[arg-type]


def test_moving_a_node_changes_only_its_line_in_layout(churn: dict[str, Any]) -> None:
    moved = copy.deepcopy(churn)
    moved["layout"]["train"] = [300.5, -20]
    before, after = dumps(churn).splitlines(), dumps(moved).splitlines()  # type: ignore[arg-type]
    changed = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
    assert changed == [('    "train": [240, 0]', '    "train": [300.5, -20]')]


def test_a_new_pipeline_is_complete() -> None:
    assert dumps(new("训练")) == (
        '{\n  "convect": 1,\n  "name": "训练",\n  "nodes": {},\n  "layout": {}\n}\n'
    )


def test_what_is_unknown_is_kept() -> None:
    text = '{"convect": 1, "nodes": {"a": {"kind": "dream", "zz": 1, "b": [true]}}, "later": {}}'
    assert parse(dumps(parse(text))) == json.loads(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (1.5e-9, "1.5e-9"),
        (1e20, "100000000000000000000"),
        (1.2345678901234568e20, "123456789012345680000"),
        (1e21, "1e+21"),
        (2**60, "1152921504606846976"),
    ],
)
def test_numbers_are_written_as_javascript_does(value: float, text: str) -> None:
    assert write_number(value) == text


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        ('{\n  "convect": 1,\n  "nodes": {', "malformed-json", "Line 3, column 13"),
        ('{"convect": 1,\n "nodes": nope}', "malformed-json", "Line 2, column 11"),
        ("", "malformed-json", "empty"),
        (b" \n ", "malformed-json", "empty"),
        ("[1]", "malformed", "a list"),
        ("null", "malformed", "null"),
        ('{"convect": 1, "a": 1, "a": 2}', "duplicate-key", '"a"'),
        ('{"convect": 1, "nodes": {"x": {}, "x": {}}}', "duplicate-key", '"x"'),
        ('{"convect": 1,\n "name": "\0"}', "nul-byte", "Line 2, column 11"),
        ('{"convect": 1, "name": "\\u0000"}', "nul-byte", "NUL"),
        ('{"convect": 1, "name": "中\\u0000"}', "nul-byte", "NUL"),
        ('{"convect": 1, "name": "\\ud83d"}', "bad-encoding", "lone surrogate"),
        (b'{"convect": 1,\n "name": "\xe9"}', "bad-encoding", "line 2, column 11"),
        ('{"convect": 1}'.encode("utf-16"), "bad-encoding", "not UTF-8"),
        ("[" * 200_000, "too-deep", "nested"),
        ('{"convect": 1, "extra": ' + "[" * 150 + "]" * 150 + "}", "too-deep", "nested"),
        ('{"convect": 1, "x": NaN}', "malformed-json", "NaN"),
        ('{"convect": 1, "x": 1e999}', "malformed-json", "too large"),
        ('{"convect": 1, "x": ' + "9" * 5000 + "}", "malformed-json", "digits"),
        (" " * (MAX_BYTES + 1), "too-large", "16 MiB"),
        ("{}", "bad-version", "missing"),
        ('{"convect": "1"}', "bad-version", "must be 1"),
        ('{"convect": true}', "bad-version", "must be 1"),
        ('{"convect": 0}', "bad-version", "must be 1"),
        ('{"convect": 2, "nodes": {}}', "newer-version", "version 2"),
        ('{"doc_type": "pipeline", "pipelines": []}', "foreign-format", "Elyra"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(content: str | bytes, code: str, words: str) -> None:
    with pytest.raises(ConvectError) as caught:
        parse(content)
    assert caught.value.code == code
    assert words in caught.value.sentence
    assert "\n" not in caught.value.sentence
    assert len(caught.value.sentence) < 200


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        ('{"convect": 1', "may be truncated"),
        ('{"convect": 1,\n}', "does not allow a comma"),
        ('{"convect": [1, ]}', "does not allow a comma"),
        ('{\n// mine\n"convect": 1}', "no comments"),
        ("{'convect': 1}", "double quotes"),
        ('{"convect": 1,\n<<<<<<< HEAD\n', "merge conflict markers"),
    ],
)
def test_the_usual_mistakes_in_json_get_a_hint(content: str, hint: str) -> None:
    with pytest.raises(ConvectError) as caught:
        parse(content)
    assert hint in (caught.value.hint or "")


def test_a_byte_order_mark_is_passed_over() -> None:
    assert parse("\ufeff{}".replace("{}", '{"convect": 1, "nodes": {}}').encode())["nodes"] == {}
