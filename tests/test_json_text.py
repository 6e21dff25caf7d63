from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyterlab_convect.json_text import dumps, loads, number, shown

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(values)
def test_every_number_comes_back(value: object) -> None:
    text = dumps(value)
    json.loads(text, parse_constant=pytest.fail)
    assert repr(loads(text)) == repr(value)
    assert repr(loads(text.encode(errors="surrogatepass"))) == repr(value)


def test_texts_are_not_taken_for_numbers() -> None:
    value = {"a": "NaN", "b": math.inf, "c": {"$numberDouble": "much"}}
    assert dumps(value) == (
        '{"a":"NaN","b":{"$numberDouble":"Infinity"},"c":{"$numberDouble":"much"}}'
    )
    assert loads(dumps(value)) == value


def test_a_number_is_read_from_whatever_says_one() -> None:
    assert number("inf") == math.inf
    assert number(-(10**400)) == -math.inf
    assert number(3) == 3.0
    with pytest.raises(TypeError):
        number(True)


def test_people_read_the_same_words_everywhere() -> None:
    assert [shown(value) for value in (math.nan, -math.inf, 0.5, 3, "x")] == [
        "NaN",
        "-Infinity",
        "0.5",
        "3",
        "x",
    ]
