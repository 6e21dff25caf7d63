"""Every route and every verb asks who is there and whether they may."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jupyter_server.auth import Authorizer
from tornado.web import RequestHandler
from traitlets.config import Config

from jupyterlab_convect.routes import PREFIX, all_routes

READING = ("GET",)
WRITING = ("POST", "PUT", "PATCH", "DELETE")


def every_verb() -> list[tuple[str, str, type[RequestHandler]]]:
    """Verb, path and handler of all that Jupyter's login opens; the rest has tokens of its own."""
    return [
        (verb, example(pattern).removeprefix(PREFIX), handler)
        for pattern, handler in all_routes()
        for verb in (*READING, *WRITING)
        if getattr(handler, verb.lower()) is not getattr(RequestHandler, verb.lower())
        and not pattern.startswith((f"{PREFIX}call/", f"{PREFIX}hooks/"))
    ]


def example(pattern: str) -> str:
    return re.sub(r"\([^()]*\)", "1", pattern)


class ReadOnly(Authorizer):
    asked: list[tuple[str, str]] = []

    def is_authorized(self, handler: Any, user: Any, action: str, resource: str) -> bool:
        self.asked.append((action, resource))
        return action == "read"


@pytest.fixture
def jp_server_config(jp_server_config: Config, request: pytest.FixtureRequest) -> Config:
    mark = request.node.get_closest_marker("parametrize")
    jp_server_config.merge(Config({"ServerApp": getattr(request, "param", {})}) if mark else {})
    return jp_server_config


def test_there_are_routes_to_walk() -> None:
    verbs = {verb for verb, _, _ in every_verb()}
    assert verbs >= {"GET", "POST", "PATCH", "DELETE"}
    assert len(every_verb()) > 20


@pytest.mark.parametrize(
    "jp_server_config",
    [
        {},
        # Nothing but the decorators of the verb itself is left to protect it.
        {"allow_unauthenticated_access": True, "disable_check_xsrf": True},
    ],
    indirect=True,
    ids=["closed server", "open server"],
)
async def test_without_a_token_every_verb_is_forbidden(api: Any) -> None:
    for verb, path, _ in every_verb():
        response = await api.response(verb, path, {}, headers={"Authorization": ""})
        assert response.code == 403, f"{verb} {path}"
    response = await api.response("GET", "runs", headers={"Authorization": ""})
    assert json.loads(response.body)["code"] == "logged-out"


@pytest.mark.parametrize("jp_server_config", [{"authorizer_class": ReadOnly}], indirect=True)
async def test_a_reader_can_read_and_nothing_else(api: Any, jp_root_dir: Path) -> None:
    for verb, path, _ in every_verb():
        ReadOnly.asked.clear()
        response = await api.response(verb, path, {})
        # A question about many files has a body, and so has one about a clock. The token of a
        # schedule is for those who may have it run.
        reads = (verb in READING and path != "schedules/1/hook") or (verb, path) in (
            ("POST", "discover"),
            ("POST", "schedules/next"),
        )
        assert (response.code == 403) == (not reads), f"{verb} {path}"
        assert b"logged-out" not in response.body
        ((action, resource),) = ReadOnly.asked
        assert (action == "read") == reads
        assert resource.startswith("jupyterlab-convect:")
