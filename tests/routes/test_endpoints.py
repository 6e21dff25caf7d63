"""Endpoints of a Jupyter server: made with its login, called with a token of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tornado.httpclient import AsyncHTTPClient

from jupyterlab_convect.routes import PREFIX


@pytest.fixture
def train(jp_root_dir: Path, write_notebook: Callable[..., Path]) -> str:
    write_notebook(
        jp_root_dir / "train.ipynb",
        ("parameters", "depth: int = 1"),
        "assert depth < 5, 'too deep'",
        ("outputs", "twice = 2 * depth"),
    )
    return "train.ipynb"


@pytest.fixture
def call(jp_serverapp: Any) -> Callable[..., Any]:
    """A request that has nothing of Jupyter's, no cookie and no token of its own."""

    async def ask(
        method: str, path: str, token: str, body: Any = None, **headers: str
    ) -> tuple[int, Any]:
        answer = await AsyncHTTPClient().fetch(
            jp_serverapp.connection_url.rstrip("/") + PREFIX + path,
            method=method,
            headers={"Authorization": f"Bearer {token}", **headers},
            body=None if body is None else json.dumps(body),
            raise_error=False,
            request_timeout=120,
        )
        return answer.code, json.loads(answer.body)

    return ask


async def test_an_endpoint_is_made_called_and_deleted(api: Any, call: Any, train: str) -> None:
    status, made = await api("POST", "endpoints", {"path": train, "rate": 100})
    assert (status, made["id"], made["rate"]) == (201, "train", 100)
    token = made["token"]
    status, found = await api("GET", "endpoints")
    assert [each["id"] for each in found["endpoints"]] == ["train"]
    assert token not in json.dumps(found)
    status, done = await call("POST", "call/train?wait=60", token, {"depth": 4})
    assert (status, done["state"], done["outputs"]) == (200, "succeeded", {"twice": 8}), done
    _, run = await api("GET", f"runs/{done['id']}")
    assert run["labels"] == {"endpoint": "train"}
    for wait in ("soon", "-1", "nan"):
        status, refused = await call("POST", f"call/train?wait={wait}", token, {"depth": 4})
        assert (status, "must be a number of seconds" in refused["message"]) == (400, True)
    # What is refused runs nothing.
    assert (await api("GET", "runs"))[1]["total"] == 1
    status, failed = await call("POST", "call/train?wait=60", token, {"depth": 9})
    assert status == 500
    assert "too deep" in failed["reason"]
    chinese = {"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.8"}
    for body, words in (
        ({"depth": 1.5}, "参数 'depth' 的类型为 integer，而 1.5 不是。"),
        ({"width": 1}, "此端点没有参数 'width'。"),
    ):
        status, refused = await call("POST", "call/train", token, body, **chinese)
        assert (status >= 400, refused["message"]) == (True, words)
    status, refused = await call("POST", "call/train/predict", token, {}, **chinese)
    assert refused["message"] == "train.ipynb 没有带有标签 `serve` 的单元格。"
    _, paused = await api("PATCH", "endpoints/train", {"paused": True})
    assert paused["paused"]
    assert (await call("POST", "call/train", token, {}))[0] == 429
    status, _ = await api("DELETE", "endpoints/train")
    assert status == 204
    assert (await call("POST", "call/train", token, {}))[0] == 401


async def test_a_token_opens_its_endpoint_and_no_other_run(
    api: Any, call: Any, train: str, jp_serverapp: Any
) -> None:
    _, first = await api("POST", "endpoints", {"path": train, "id": "one"})
    _, other = await api("POST", "endpoints", {"path": train, "id": "two"})
    _, run = await api("POST", "runs", {"path": train})
    for token in (other["token"], jp_serverapp.identity_provider.token, "", "x"):
        assert (await call("POST", "call/one", token, {}))[0] == 401
        assert (await call("GET", "call/one/openapi.json", token))[0] == 401
        assert (await call("POST", f"call/{'x' * 300}", token, {}))[0] == 401
    assert (await call("GET", f"call/one/runs/{run['id']}", first["token"]))[0] == 404
    _, second = await api("POST", "endpoints/one/tokens", {"name": "ana"})
    assert (await call("GET", "call/one/openapi.json", second["token"]))[0] == 200
    _, left = await api("DELETE", "endpoints/one/tokens/ana")
    assert [each["name"] for each in left["tokens"]] == ["first"]
    assert (await call("GET", "call/one/openapi.json", second["token"]))[0] == 401


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "malformed"),
        ({"path": "none.ipynb"}, "missing"),
        ({"path": "../x.ipynb"}, "path-outside"),
        ({"path": "train.ipynb", "id": "No Id"}, "bad-endpoint"),
        ({"path": "train.ipynb", "concurrency": 0}, "bad-endpoint"),
        ({"path": "train.ipynb", "parameters": {"depth": "deep"}}, "wrong-type"),
    ],
)
async def test_what_cannot_be_called_is_refused(
    api: Any, train: str, body: dict[str, Any], code: str
) -> None:
    status, refused = await api("POST", "endpoints", body)
    assert (status >= 400, refused["code"]) == (True, code)
    assert (await api("GET", "endpoints"))[1] == {"endpoints": []}
