"""Endpoints: who may call, how often, and what a call is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE, until

from jupyterlab_convect.errors import Conflict, ConvectError, Missing
from jupyterlab_convect.pipeline.discovery import discover
from jupyterlab_convect.runs.lease import process_birth
from jupyterlab_convect.runs.model import Request
from jupyterlab_convect.runs.store import Store
from jupyterlab_convect.services.calls import openapi_of, request_of_call
from jupyterlab_convect.services.endpoints import (
    CallRate,
    Endpoint,
    EndpointStore,
    admits,
    check_endpoint,
    id_for,
    this_process,
)


def endpoint(**changes: Any) -> Endpoint:
    facts = {"id": "score", "name": "Score", "created": 1.0, "request": Request(path="a.ipynb")}
    return Endpoint(**{**facts, "concurrency": 2, **changes})


def write_notebook(path: Path, parameters: str, *cells: str) -> None:
    tags = [["parameters"], *[[] for _ in cells]]
    content = {
        "cells": [
            {
                "cell_type": "code",
                "id": f"c{number}",
                "metadata": {"tags": tags[number]},
                "source": source,
                "outputs": [],
                "execution_count": None,
            }
            for number, source in enumerate((parameters, *cells))
        ],
        "metadata": {"kernelspec": {"name": "python3", "display_name": "p", "language": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.write_text(json.dumps(content))


@pytest.fixture
def endpoints(tmp_path: Path) -> EndpointStore:
    from jupyterlab_convect.runs.index import Index

    return EndpointStore(Store(tmp_path / "runs", Index(tmp_path / "index" / "i.sqlite")))


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": ""},
        {"id": "../x"},
        {"id": "Über"},
        {"id": "a" * 64},
        {"name": "  "},
        {"concurrency": 0},
        {"queue": -1},
        {"rate": -1},
    ],
)
def test_what_cannot_be_an_endpoint_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConvectError) as refused:
        check_endpoint(endpoint(**wrong))
    assert refused.value.code == "bad-endpoint"


def test_an_id_is_like_the_name_of_the_file() -> None:
    assert id_for("models/Score it.ipynb") == "score-it"
    check_endpoint(endpoint(id=id_for("数.ipynb")))


def test_tokens_are_told_once_and_can_be_taken_back(endpoints: EndpointStore) -> None:
    endpoints.create(endpoint())
    first, second = (endpoints.add_token("score", name) for name in ("ana", "bo"))
    assert first not in (endpoints._folders._folder / "score" / "endpoint.json").read_text()
    assert admits(endpoints.read("score"), first)
    assert not admits(endpoints.read("score"), "")
    endpoints.remove_token("score", "ana")
    assert not admits(endpoints.read("score"), first)
    assert admits(endpoints.read("score"), second)
    with pytest.raises(Conflict):
        endpoints.add_token("score", "bo")


@pytest.mark.parametrize("damage", ["é", "数", "\\ud800", ""])
def test_a_damaged_digest_admits_nobody(endpoints: EndpointStore, damage: str) -> None:
    endpoints.create(endpoint())
    token, other = (endpoints.add_token("score", name) for name in ("ana", "bo"))
    file = endpoints._folders._folder / "score" / "endpoint.json"
    (digest, _) = endpoints.read("score").tokens
    file.write_text(file.read_text().replace(digest.digest, damage))
    for word in (token, damage, "é", ""):
        assert not admits(endpoints.read("score"), word.encode("utf-8", "replace").decode())
    assert admits(endpoints.read("score"), other), "what is not damaged is as good as before"


@pytest.mark.parametrize("process", ["x", "x 1", "² 1", "-1 1", "1"])
def test_an_endpoint_of_no_process_is_not_there(endpoints: EndpointStore, process: str) -> None:
    endpoints.create(endpoint())
    file = endpoints._folders._folder / "score" / "endpoint.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "process": process}))
    assert endpoints.all() == []
    with pytest.raises(Missing):
        endpoints.read("score")


def test_of_two_endpoints_of_one_id_the_first_stays(endpoints: EndpointStore) -> None:
    endpoints.create(endpoint(name="first"))
    with pytest.raises(Conflict):
        endpoints.create(endpoint(name="second"))
    assert [each.name for each in endpoints.all()] == ["first"]
    endpoints.delete("score")
    assert endpoints.all() == []
    endpoints.create(endpoint(name="second"))


def test_an_endpoint_ends_with_the_process_that_serves_it(endpoints: EndpointStore) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        served = f"{other.pid} {process_birth(other.pid)}"
        endpoints.create(endpoint(process=served, name="first"))
        assert endpoints.read("score").name == "first"
        other.kill()
    assert endpoints.all() == []
    endpoints.create(endpoint(process=this_process(), name="second"))
    assert endpoints.read("score").name == "second"


@pytest.mark.parametrize("name", ["..", "x/y", "", "none", "link"])
def test_nothing_else_is_an_endpoint(endpoints: EndpointStore, name: str) -> None:
    endpoints.create(endpoint())
    (endpoints._folders._folder / "link").symlink_to(endpoints._folders._folder / "score")
    with pytest.raises(Missing):
        endpoints.read(name)


def test_calls_are_counted_over_a_minute() -> None:
    now = 0.0
    rate, often = CallRate(lambda: now), endpoint(rate=2)
    assert [rate.wait(often), rate.wait(often), rate.wait(often)] == [0.0, 0.0, 60.0]
    now = 45.0
    assert rate.wait(often) == 15.0
    now = 60.0
    assert rate.wait(often) == 0.0
    assert rate.wait(endpoint()) == 0.0


def test_a_call_is_the_request_with_its_parameters(tmp_path: Path) -> None:
    write_notebook(
        tmp_path / "a.ipynb",
        "x: int = 1  # how many\nword = 'hi'\nfixed = 2\n"
        "how: Literal['fast', 'exact'] = 'fast'\nmost: int | None = None",
    )
    made = endpoint(request=Request(path="a.ipynb", root=str(tmp_path), parameters={"fixed": 3}))
    found = discover(tmp_path / "a.ipynb")
    request = request_of_call(made, found, {"x": 5})
    assert request.parameters == {"x": 5, "fixed": 3}
    assert (request.endpoint, request.labels) == ("score", {"endpoint": "score"})
    assert request_of_call(made, found, {"x": 2.0, "how": "exact", "most": None}).parameters
    others = ({"x": "5"}, {"x": 1.5}, {"word": 1}, {"how": "slow"}, {"most": True})
    for wrong in ({"z": 1}, {"fixed": 1}, [1], None, *others):
        with pytest.raises(ConvectError) as refused:
            request_of_call(made, found, wrong)
        assert refused.value.code == "bad-call"
    body = openapi_of(made, found, "/call/score")["paths"]["/"]["post"]["requestBody"]
    schema = body["content"]["application/json"]["schema"]
    assert schema["properties"] == {
        "x": {"type": "integer", "description": "how many", "default": 1},
        "word": {"type": "string", "default": "hi"},
        "how": {"type": "string", "enum": ["fast", "exact"], "default": "fast"},
        "most": {"type": "integer", "nullable": True},
    }


class Served:
    def __init__(self, address: str, token: str) -> None:
        self.address = address
        self.token = token

    def ask(
        self, path: str = "", body: Any = None, token: str | None = None, **more: Any
    ) -> tuple[int, Any, Any]:
        request = urllib.request.Request(
            self.address + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token if token is None else token}"},
            **more,
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, answer.read(), answer.headers
        except urllib.error.HTTPError as error:
            return error.code, error.read(), error.headers


@pytest.fixture
def served(tmp_path: Path) -> Any:
    """`convect serve` of a notebook, in a process of its own."""
    write_notebook(
        tmp_path / "score.ipynb",
        "x: int = 1\nfail = False",
        "import jupyterlab_convect as convect\nassert not fail, 'as asked'",
        "convect.output('y', 2 * x); open('made.txt', 'w').write(str(x))",
    )
    token = tmp_path / "token"
    command = [sys.executable, "-c", "from jupyterlab_convect.cli import program; program()"]
    command += ["serve", "score.ipynb", "--port", "0", "--token-file", str(token)]
    command += ["--concurrency", "1", "--queue", "3"]
    environment = {**os.environ, "CONVECT_RUNS_DIR": str(tmp_path / "runs")}
    with (tmp_path / "out.txt").open("wb") as out:
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=out, stderr=subprocess.STDOUT
        )
    try:
        told = until(lambda: "Ctrl-C" in (tmp_path / "out.txt").read_text(), "an address")
        assert told
        address = (tmp_path / "out.txt").read_text().split()[0]
        yield Served(address, token.read_text().strip())
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
        assert not any((tmp_path / "runs" / "endpoints").iterdir())
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_a_notebook_is_called(served: Served, tmp_path: Path) -> None:
    status, body, _ = served.ask("?wait=60", {"x": 21})
    done = json.loads(body)
    assert (status, done["state"], done["outputs"]) == (200, "succeeded", {"y": 42}), body
    assert json.loads(served.ask(f"/runs/{done['id']}")[1])["parameters"] == {
        "x": 21,
        "fail": False,
    }
    notebook = json.loads(served.ask(f"/runs/{done['id']}/notebook")[1])
    assert notebook["nbformat"] == 4
    assert not (tmp_path / "made.txt").exists()  # a call is one of many
    status, body, _ = served.ask("?wait=60", {"fail": True})
    assert status == 500
    assert "as asked" in json.loads(body)["reason"]
    status, body, headers = served.ask("", {})
    assert status == 202
    again = f"{headers['Location'].removeprefix('/call/score')}?wait=60"
    assert json.loads(served.ask(again)[1])["outputs"] == {"y": 2}
    assert b"<form" in urllib.request.urlopen(served.address).read()
    refused = {
        400: ({"x": "a"}, None),
        422: ({"z": 1}, None),
        401: ({}, "wrong"),
    }
    for wanted, (given, token) in refused.items():
        status, body, _ = served.ask("?wait=1", given, token)
        assert status == wanted, body
        assert json.loads(body)["message"].endswith(".")
    assert served.ask("/runs/20200101-000000000-abcdef")[0] == 404


@pytest.mark.slow
def test_a_flood_of_calls_is_answered(served: Served) -> None:
    answers = [served.ask("", {"x": number}) for number in range(8)]
    accepted = [json.loads(body)["id"] for status, body, _ in answers if status == 202]
    refused = [headers for status, _, headers in answers if status == 429]
    assert len(accepted) + len(refused) == 8
    assert len(accepted) >= 4
    assert all(int(headers["Retry-After"]) >= 1 for headers in refused)
    for run_id in accepted:
        done = until(
            lambda run_id=run_id: (  # type: ignore[misc]
                found
                if (found := json.loads(served.ask(f"/runs/{run_id}?wait=30")[1]))["ended"]
                else None
            )
        )
        assert done["state"] == "succeeded", done["reason"]
