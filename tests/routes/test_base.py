from __future__ import annotations

import json

from jupyterlab_convect.routes.base import encode


def test_an_answer_is_json_that_every_browser_reads() -> None:
    for value in ({"a": "\ud800"}, {"a": [float("nan"), {"b": float("inf")}], "c": "\udfff你好"}):
        text = encode(value).decode()
        assert json.loads(text, parse_constant=lambda word: 1 / 0) is not None
    assert json.loads(encode({"a": 10**400})) == {"a": {"$numberInteger": "1" + "0" * 400}}
    assert json.loads(encode({"a": [float("nan"), float("-inf")]})) == {
        "a": [{"$numberDouble": "NaN"}, {"$numberDouble": "-Infinity"}]
    }
    assert encode({"a": "你好"}) == '{"a":"你好"}'.encode()
