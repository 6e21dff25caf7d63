"""The description and the routes say the same."""

from __future__ import annotations

import re

import openapi_spec_validator
from tornado.web import RequestHandler

from jupyterlab_convect.routes import PREFIX, all_routes, requests

VERBS = ("get", "post", "put", "patch", "delete")


def test_the_document_is_valid_openapi() -> None:
    openapi_spec_validator.validate(requests.openapi_document())


def test_every_route_and_verb_is_described_and_nothing_else() -> None:
    described = {
        (re.sub(r"\{[^}]+\}", "{}", path), verb)
        for path, item in requests.openapi_document()["paths"].items()
        for verb in item
        if verb in VERBS
    }
    registered = {
        ("/" + re.sub(r"\([^()]*\)", "{}", pattern).removeprefix(PREFIX), verb)
        for pattern, handler in all_routes()
        for verb in VERBS
        if getattr(handler, verb) is not getattr(RequestHandler, verb)
    }
    assert described == registered
