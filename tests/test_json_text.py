from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyterlab_convect.json_text import dumps, dumps_for_floats, loads, number, short, shown

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
    assert number(-(10**400)) == -(10**400)
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


def test_integers_that_no_float_holds_keep_their_digits() -> None:
    value = {"a": [10**400, -(2**53)], "b": 2**53 - 1, "c": "12345678901234567890", "d": 0.1}
    assert loads(dumps(value)) == value
    text = dumps_for_floats(value)
    assert loads(text) == value
    assert json.loads(text) == {
        **value,
        "a": [{"$numberInteger": "1" + "0" * 400}, {"$numberInteger": "-9007199254740992"}],
    }
    assert loads(dumps_for_floats(10**20)) == 10**20
    odd = {"$numberInteger": "no digits"}
    assert loads(dumps_for_floats(odd)) == odd


def test_narrow_columns_shorten_numbers_and_never_call_them_infinite() -> None:
    values = (10**400, -1234567 * 10**20, 10**20, 1 / 3, True, math.inf)
    assert [short(value) for value in values] == [
        "1e+400",
        "-1.23456e+26",
        "1" + "0" * 20,
        "0.333333",
        "True",
        "Infinity",
    ]
