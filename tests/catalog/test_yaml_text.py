"""YAML from strangers is read within limits, and what is wrong has a line."""

from __future__ import annotations

import pytest
import yaml

from jupyterlab_convect.catalog import yaml_text
from jupyterlab_convect.catalog.model import UnreadableComponent
from jupyterlab_convect.catalog.yaml_text import documents


def refused(data: str | bytes) -> UnreadableComponent:
    with pytest.raises(UnreadableComponent) as caught:
        documents(data.encode() if isinstance(data, str) else data, "a.yaml")
    return caught.value


def test_values_are_those_of_a_safe_loader() -> None:
    source = """
    text: a
    number: 12
    float: 1.5
    yes: true
    nothing:
    quoted: "12"
    list: [1, two, {three: 3}]
    base: &base {a: 1, b: 2}
    merged: {<<: *base, b: 3}
    folded: >-
      one
      two
    """
    assert documents(source.encode(), "a.yaml")[0][0].value == {
        **{str(key).replace("True", "yes"): value for key, value in yaml.safe_load(source).items()}
    }


def test_what_json_cannot_say_stays_text() -> None:
    value = documents(b"date: 2020-01-01\ninfinite: .inf\n", "a.yaml")[0][0].value
    assert value == {"date": "2020-01-01", "infinite": ".inf"}


def test_every_value_knows_its_line() -> None:
    document = documents(b"a:\n  - one\n  - b: two\n", "a.yaml")[0][0]
    assert document.under("a").under(1).under("b").line == 3


def test_a_key_that_is_there_twice_is_refused_with_its_line() -> None:
    error = refused("a: 1\nb: 2\na: 3\n")
    assert (error.line, error.file) == (3, "a.yaml")
    assert "twice" in error.reason


def test_a_bomb_of_aliases_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    assert "more values" in refused("\n".join(lines)).reason


def test_nesting_beyond_measure_is_refused() -> None:
    assert "deep" in refused("[" * 500 + "]" * 500).reason
    aliased = "a: &a " + "[" * 60 + "]" * 60 + "\nb: " + "[" * 60 + "*a" + "]" * 60
    assert "deep" in refused(aliased).reason


def test_a_file_beyond_the_limit_is_refused_unread() -> None:
    assert "larger" in refused(b"a" * (yaml_text.MAX_BYTES + 1)).reason


@pytest.mark.parametrize(
    ("data", "word", "line"),
    [
        (b"<!DOCTYPE html><html></html>", "web page", 1),
        (b"a: 1\nb: [1, 2\nc: 3\n", "Not YAML", 3),
        (b"a: 1\nb: \xff\xfe\n", "UTF-8", 2),
        (b"a: 1\nb: \x00\n", "Not YAML", 0),
        (b"a: !!python/object:os.system {}\n", "not allowed", 1),
        (b"a: !!binary aGVsbG8=\n", "not allowed", 1),
        (b"a: 1\nb: *nowhere\n", "nothing above", 2),
        (b"? [a, b]\n: 1\n", "key must be text", 1),
        (b"a: !!int seven\n", "not a value of its type", 1),
    ],
)
def test_what_is_wrong_is_said_with_its_line(data: bytes, word: str, line: int) -> None:
    error = refused(data)
    assert word in error.reason
    assert error.line == line or line == 0
