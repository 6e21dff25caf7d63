"""A call of an endpoint: what may be asked, what that makes of it, and what comes back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import ConvectError, Refused
from ..pipeline.check_values import fits
from ..pipeline.discovery import Discovery, discover, parameter_json
from ..pipeline.document import shorten
from ..pipeline.plan import Json
from ..pipeline.problems import Problem
from ..pipeline.python_code import Assignment
from ..pipeline.resolve import raise_first_error
from ..runs import views
from ..runs.attempt_files import AttemptFiles, files_of, list_files
from ..runs.index import Query
from ..runs.model import ENDED, Request, State, StepState, step_of, steps_of
from ..runs.store import Record, Store
from .endpoints import Endpoint

LONGEST_WAIT = 60.0
"""Seconds that a call is answered late; proxies give up soon after."""
LIVE: tuple[State, ...] = ("waiting", "queued", "starting", "running")


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A file that a call has left."""

    step: str
    path: str
    size: int | None
    attempt: AttemptFiles


def what_it_takes(endpoint: Endpoint) -> Discovery:
    """What the file asks for, as it is now. Missing when it is gone. Reads files."""
    request = endpoint.request
    return discover(Path(request.root, request.path or ""))


def refuse_uncallable(problems: Iterable[Problem]) -> None:
    """Raise what would keep every call from running; what a call may give is not missing yet."""
    missing = ("missing-parameter", "missing-parameter-of-notebook")
    raise_first_error([each for each in problems if each.code not in missing])


def request_of_call(endpoint: Endpoint, found: Discovery, body: Json) -> Request:
    """What is run when an endpoint is called with this body, which is checked."""
    if not isinstance(body, Mapping):
        raise ConvectError(
            "The body of a call is a JSON object with the parameters by name.", code="bad-call"
        )
    fixed = endpoint.request.parameters
    if name := next((name for name in body if name in fixed), None):
        raise Refused(
            f"The parameter {name!r} of this endpoint cannot be set by its callers.",
            code="bad-call",
        )
    if found.parameters is not None:
        known = [each.name for each in found.parameters if each.name not in fixed]
        if unknown := next((name for name in body if name not in known), None):
            raise Refused(
                f"This endpoint has no parameter {str(unknown)[:80]!r}.",
                code="bad-call",
                hint=f"Its parameters: {', '.join(known)}." if known else "It has no parameters.",
            )
        for each in found.parameters:
            if each.name in body:
                _refuse_other_value(each, body[each.name])
            elif each.source is None and each.name not in fixed:
                raise Refused(f"The parameter {each.name!r} is required.", code="bad-call")
    return replace(
        endpoint.request,
        parameters={**body, **fixed},
        labels={**endpoint.request.labels, "endpoint": endpoint.id},
        endpoint=endpoint.id,
    )


def _refuse_other_value(parameter: Assignment, value: Json) -> None:
    """Hold what the description of the endpoint says of a parameter."""
    if not fits(value, parameter.type):
        raise ConvectError(
            f"The parameter {parameter.name!r} is of type {parameter.type}, "
            f"and {shorten(value)} is not.",
            code="bad-call",
        )
    if parameter.choices and value not in parameter.choices:
        raise ConvectError(
            f"{shorten(value)} is not a value of the parameter {parameter.name!r}.",
            code="bad-call",
            hint=f"Choose one of {', '.join(map(shorten, parameter.choices))}.",
        )


def refuse_too_many(store: Store, endpoint: Endpoint) -> None:
    """Refuse a call when as many have not ended as may run or wait."""
    most = endpoint.concurrency + endpoint.queue
    live = store.find(Query(labels={"endpoint": endpoint.id}, states=LIVE, limit=1)).total
    if live >= most:
        raise TooMany(f"{live} calls of this endpoint have not ended yet.", seconds=1.0)


class TooMany(ConvectError):
    """Come back later."""

    status = 429

    def __init__(self, sentence: str, *, seconds: float) -> None:
        super().__init__(sentence, code="too-many-calls", hint="Call it again later.")
        self.seconds = seconds


def is_call_of(endpoint: Endpoint, record: Record) -> bool:
    return record.run.request.endpoint == endpoint.id


def results_of(store: Store, record: Record) -> Iterator[ResultFile]:
    """The declared files of all steps that have one, in the order of the plan."""
    for step in steps_of(record.state):
        attempt = _last(store, record, step)
        if attempt is not None:
            for file in list_files(attempt):
                yield ResultFile(step.id, file["path"], file["size"], attempt)


def notebook_of(store: Store, record: Record) -> AttemptFiles | None:
    """The attempt with the executed notebook; of several, the last step's."""
    for step in reversed(steps_of(record.state)):
        if step_of(record.state, step.id).kind == "notebook":
            return _last(store, record, step)
    return None


def answer(store: Store, record: Record) -> dict[str, Json]:
    """`CallView`: how a call stands, and what it has given so far. Reads files."""
    run, state = record
    ended = state.state in ENDED
    return {
        "id": run.id,
        "state": state.state,
        "reason": state.reason,
        "created": run.created,
        "ended": state.ended,
        "parameters": views.parameters_of(run, state)["parameters"],
        "outputs": views.outputs_of(run, state),
        "metrics": views.metrics_of(state),
        "files": [
            {"step": each.step, "path": each.path, "size": each.size}
            for each in results_of(store, record)
        ]
        if ended
        else [],
        "notebook": notebook_of(store, record) is not None,
    }


def openapi_of(
    endpoint: Endpoint, found: Discovery, address: str, function: str | None = None
) -> dict[str, Json]:
    """How this endpoint is called, for programs and for its page; `function` is the one that its
    worker calls, if it has one."""
    fixed = endpoint.request.parameters
    open_ = [each for each in found.parameters or () if each.name not in fixed]
    body: dict[str, Json] = {
        "type": "object",
        "properties": {each.name: _schema(each) for each in open_},
        "additionalProperties": found.parameters is None,
    }
    if required := [each.name for each in open_ if each.source is None]:
        body["required"] = required
    content = {"application/json": {"schema": body}}
    return {
        "openapi": "3.0.3",
        "info": {"title": endpoint.name, "version": "1"},
        "servers": [{"url": address}],
        "security": [{"token": []}],
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Call": _CALL},
        },
        "paths": {
            "/": {
                "post": {
                    "summary": "Call it",
                    "parameters": [_WAIT],
                    "requestBody": {"required": True, "content": content},
                    "responses": {
                        **_answers("It has ended", _IS_CALL),
                        "202": {
                            "description": "The run continues; "
                            "`Location` says where its state is found",
                            "content": _IS_CALL,
                        },
                        "400": {"description": "The body is not what the endpoint takes"},
                        "422": {"description": "A parameter is missing, unknown or fixed"},
                        "429": {"description": "Too many calls; `Retry-After` tells when to call"},
                        "500": {"description": "The run failed, and says why"},
                    },
                }
            },
            **_OF_RUN,
            **(_of_worker(endpoint, function) if function else {}),
        },
    }


def _answers(description: str, content: Json, status: str = "200") -> dict[str, Json]:
    return {
        status: {"description": description, "content": content},
        "401": {"description": "The token is missing or wrong"},
    }


def _in_path(*names: str) -> list[Json]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in names
    ]


_TEXT: dict[str, Json] = {"type": "string", "nullable": True}
_CALL: dict[str, Json] = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "state": {"type": "string"},
        "reason": _TEXT,
        "created": {"type": "number"},
        "ended": {"type": "number", "nullable": True},
        **{name: {"type": "object"} for name in ("parameters", "outputs", "metrics")},
        "files": {"type": "array", "items": {"type": "object"}},
        "notebook": {"type": "boolean"},
    },
}
_IS_CALL: dict[str, Json] = {"application/json": {"schema": {"$ref": "#/components/schemas/Call"}}}
_IS_FILE: dict[str, Json] = {
    "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}
}
_WAIT: dict[str, Json] = {
    "name": "wait",
    "in": "query",
    "description": f"Seconds to wait for the end, up to {LONGEST_WAIT:g}",
    "schema": {"type": "number"},
}
_OF_RUN: dict[str, Json] = {
    f"/runs/{{run}}{path}": {
        verb: {
            "summary": summary,
            "parameters": parameters,
            "responses": {
                **_answers("As asked", content, "202" if verb == "post" else "200"),
                "404": {"description": "This endpoint has no such call"},
            },
        }
    }
    for path, verb, summary, parameters, content in (
        ("", "get", "How a call stands", [*_in_path("run"), _WAIT], _IS_CALL),
        ("/stop", "post", "Stop a call", _in_path("run"), _IS_CALL),
        (
            "/notebook",
            "get",
            "The executed notebook",
            _in_path("run"),
            {"application/json": {"schema": {"type": "object"}}},
        ),
        (
            "/files/{step}/{path}",
            "get",
            "A declared output file",
            _in_path("run", "step", "path"),
            _IS_FILE,
        ),
    )
}
"""What can be asked of a call, by its address below that of the endpoint."""


def _of_worker(endpoint: Endpoint, function: str) -> dict[str, Json]:
    """The addresses that a worker answers: by its function's own names, and as KServe's clients
    ask."""
    any_body: dict[str, Json] = {
        kind: {"schema": {}} for kind in ("application/json", "text/csv", "image/*")
    }
    answers = {
        **_answers("What the function gives", {"application/json": {"schema": {}}}),
        "422": {"description": "These are not the parameters of the function"},
        "500": {"description": "The function failed, and says why"},
    }
    return {
        "/predict": {
            "post": {
                "summary": f"Call {function}, which stays loaded",
                "x-function": function,
                "requestBody": {"required": True, "content": any_body},
                "responses": answers,
            }
        },
        f"/v2/models/{endpoint.id}/infer": {
            "post": {
                "summary": f"Call {function} by the Open Inference Protocol",
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"type": "object"}}},
                },
                "responses": answers,
            }
        },
    }


def _schema(parameter: Assignment) -> dict[str, Json]:
    facts = parameter_json(parameter)
    schema: dict[str, Json] = {}
    if facts["type"] is not None:
        schema["type"] = facts["type"]
    if facts["help"]:
        schema["description"] = facts["help"]
    if facts["choices"]:
        schema["enum"] = facts["choices"]
    if facts["default"] is not None:
        schema["default"] = facts["default"]
    elif schema and not facts["required"]:
        schema["nullable"] = True
    return schema


def _last(store: Store, record: Record, step: StepState) -> AttemptFiles | None:
    with contextlib.suppress(ConvectError):
        return files_of(store, record, step.id, max(len(step.attempts), 1))
    return None
