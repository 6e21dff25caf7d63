"""Answers with a function of a notebook: its cells are executed once, then it stays.

    python notebook_worker.py <port> < {"name", "cells", "function", "parameters"}
    python notebook_worker.py <port> <inbox> <folder>

The interpreter of the notebook's kernel executes this file as it is: it needs the standard
library and IPython alone. Calls are answered one after the other.

In the pod of a cluster everything is in the inbox: the same in `order.json`, its key in `key`, and
the files of the project in `files.tar.xz` where the pod does not see them anyway.
"""

from __future__ import annotations

import csv
import hmac
import importlib
import importlib.util
import inspect
import io
import json
import math
import os
import sys
import tarfile
import threading
import traceback
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NoReturn

KEY = "CONVECT_SERVICE_KEY"
KEY_HEADER = "X-Convect-Key"
LARGEST = 64 << 20
FILES, UNPACKED = "files.tar.xz", "/convect"
"""The archive of the inbox, and where it is unpacked."""
TYPES = {
    "BOOL": "bool",
    **{f"{u}INT{bits}": f"{u.lower()}int{bits}" for u in ("", "U") for bits in (8, 16, 32, 64)},
    **{f"FP{bits}": f"float{bits}" for bits in (16, 32, 64)},
}
"""The element types of the Open Inference Protocol, as numpy calls them."""


class RefusedCall(Exception):
    """What is wrong with a request: a status and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


class Worker:
    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self._function = function
        self._parameters = [
            each
            for each in inspect.signature(function).parameters.values()
            if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
        ]
        self._turn = threading.Lock()

    def predict(self, kind: str, body: bytes) -> Any:
        """What the function makes of the body of a request."""
        if kind == "text/csv":
            return self._call(_table(body))
        if kind.startswith("image/") or kind == "application/octet-stream":
            return self._call(self._picture(body))
        value = _json(body)
        names = {each.name for each in self._parameters}
        if isinstance(value, dict) and value.keys() <= names and (value or not self._needed()):
            return self._call(**value)
        return self._call(value)

    def infer(self, body: bytes) -> dict[str, Any]:
        """The same by the Open Inference Protocol: tensors in, tensors out."""
        request = _json(body)
        inputs = request.get("inputs") if isinstance(request, dict) else None
        if not isinstance(inputs, list) or not all(isinstance(each, dict) for each in inputs):
            raise RefusedCall(400, "The request has no list `inputs`.")
        tensors = {str(each.get("name")): _tensor(each) for each in inputs}
        by_name = tensors.keys() <= {each.name for each in self._parameters}
        given = self._call(**tensors) if by_name else self._call(*tensors.values())
        outputs = given if isinstance(given, Mapping) else {"output": given}
        answer = {
            "model_name": self.name,
            "outputs": [_output(str(name), value) for name, value in outputs.items()],
        }
        return {**answer, "id": request["id"]} if "id" in request else answer

    def describe(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "platform": "python",
            "inputs": [{"name": each.name} for each in self._parameters],
            "outputs": [],
        }

    def _needed(self) -> list[str]:
        return [each.name for each in self._parameters if each.default is each.empty]

    def _call(self, *values: Any, **named: Any) -> Any:
        try:
            inspect.signature(self._function).bind(*values, **named)
        except TypeError as error:
            raise RefusedCall(422, f"{self._function.__name__}: {error}.") from None
        with self._turn:
            try:
                return self._function(*values, **named)
            except Exception as error:
                traceback.print_exc()
                raise RefusedCall(500, f"{type(error).__name__}: {error}".rstrip(": ")) from None

    def _picture(self, body: bytes) -> Any:
        """The bytes, or the picture in them when the first parameter is annotated as one."""
        wanted = str(self._parameters[0].annotation) if self._parameters else ""
        if "Image" not in wanted and "ndarray" not in wanted:
            return body
        try:
            picture = importlib.import_module("PIL.Image").open(io.BytesIO(body))
            picture.load()
        except Exception as error:
            raise RefusedCall(400, f"This is not a picture: {error}.") from None
        if "ndarray" in wanted:
            return importlib.import_module("numpy").asarray(picture)
        return picture


def _json(body: bytes) -> Any:
    def refuse(word: str) -> NoReturn:
        raise ValueError(f"{word} is not a JSON number")

    try:
        return json.loads(body or b"{}", parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise RefusedCall(400, f"The request is not JSON: {error}.") from None


def _table(body: bytes) -> Any:
    """A CSV as a pandas DataFrame, or as a list of rows where there is no pandas."""
    try:
        if importlib.util.find_spec("pandas"):
            return importlib.import_module("pandas").read_csv(io.BytesIO(body))
        return list(csv.DictReader(io.StringIO(body.decode())))
    except ValueError as error:
        raise RefusedCall(400, f"This is not a CSV: {error}.") from None


def _tensor(given: Mapping[str, Any]) -> Any:
    data, shape, kind = given.get("data"), given.get("shape"), given.get("datatype")
    if not isinstance(data, list) or not isinstance(shape, list):
        raise RefusedCall(400, "An input has `name`, `shape`, `datatype` and `data`.")
    try:
        if importlib.util.find_spec("numpy"):
            dtype = TYPES.get(str(kind), "object")
            return importlib.import_module("numpy").array(data, dtype=dtype).reshape(shape)
        return _shaped(_flat(data), shape)
    except (ValueError, TypeError) as error:
        raise RefusedCall(400, f"The data do not match the shape and the type: {error}.") from None


def _output(name: str, value: Any) -> dict[str, Any]:
    plain = plain_value(value)
    shape, inner = [], plain
    while isinstance(inner, list):
        shape.append(len(inner))
        inner = inner[0] if inner else None
    if hasattr(value, "dtype") and str(value.dtype) in TYPES.values():
        kind = next(key for key, dtype in TYPES.items() if dtype == str(value.dtype))
    else:
        kinds = {bool: "BOOL", int: "INT64", float: "FP64"}
        kind = kinds.get(type(inner), "BYTES")
    data = _flat(plain) if isinstance(plain, list) else [plain]
    return {"name": name, "shape": shape or [1], "datatype": kind, "data": data}


def _flat(values: list[Any]) -> list[Any]:
    return [
        inner for each in values for inner in (_flat(each) if isinstance(each, list) else [each])
    ]


def _shaped(flat: list[Any], shape: list[int]) -> Any:
    if math.prod(shape) != len(flat):
        raise ValueError(f"{len(flat)} values for the shape {shape}")
    for size in reversed(shape[1:]):
        flat = [flat[start : start + size] for start in range(0, len(flat), size)]
    return flat


def plain_value(value: Any) -> Any:
    """A value as JSON has it: arrays and tables as lists, and NaN by its name."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain_value(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain_value(each) for each in value]
    if hasattr(value, "to_dict") and hasattr(value, "columns"):
        return plain_value(value.to_dict(orient="records"))
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    for method in ("tolist", "item"):
        if hasattr(value, method):
            return plain_value(getattr(value, method)())
    raise RefusedCall(500, f"A {type(value).__name__} cannot be sent as JSON.")


def _encoded(value: Any) -> tuple[str, bytes]:
    """The type and the bytes of an answer; pictures and bytes are sent as they are."""
    if isinstance(value, bytes):
        return "application/octet-stream", value
    if type(value).__module__.startswith("PIL."):
        file = io.BytesIO()
        value.save(file, "PNG")
        return "image/png", file.getvalue()
    return "application/json", json.dumps(plain_value(value)).encode()


class Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    worker: Worker
    key: str

    def do_GET(self) -> None:
        name = self.worker.name
        answers = {
            "/v2": {"name": "convect", "version": "2", "extensions": []},
            "/v2/health/live": {"live": True},
            "/v2/health/ready": {"ready": True},
            f"/v2/models/{name}": self.worker.describe(),
            f"/v2/models/{name}/ready": {"name": name, "ready": True},
        }
        self._answer(lambda: answers[self.path] if self.path in answers else _nothing(self.path))

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        if size > LARGEST:
            self.close_connection = True
            self._answer(lambda: _refuse(413, f"The body is larger than {LARGEST >> 20} MiB."))
            return
        body = self.rfile.read(size)
        kind = self.headers.get_content_type() if "Content-Type" in self.headers else ""
        if self.path == "/predict":
            self._answer(lambda: self.worker.predict(kind, body))
        elif self.path == f"/v2/models/{self.worker.name}/infer":
            self._answer(lambda: self.worker.infer(body))
        else:
            self._answer(lambda: _nothing(self.path))

    def _answer(self, work: Callable[[], Any]) -> None:
        status = 200
        try:
            given = self.headers.get(KEY_HEADER, "")
            if self.path != "/v2/health/ready" and not hmac.compare_digest(
                given.encode(), self.key.encode()
            ):
                raise RefusedCall(403, "This worker is for its endpoint alone.")
            kind, data = _encoded(work())
        except RefusedCall as refusal:
            status = refusal.status
            words = {"code": "bad-call" if status < 500 else "failed"}
            words["message"] = refusal.sentence
            kind, data = "application/json", json.dumps({**words, "hint": None}).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """What the notebook prints is the log."""


def _refuse(status: int, sentence: str) -> NoReturn:
    raise RefusedCall(status, sentence)


def _nothing(path: str) -> NoReturn:
    _refuse(404, f"There is nothing at {path}.")


def load(order: Mapping[str, Any]) -> Callable[..., Any]:
    """Execute the cells; the function that the last of them defines."""
    from IPython.core.interactiveshell import InteractiveShell

    shell: Any = InteractiveShell.instance()
    shell.autoawait = False
    for source, tags in order["cells"]:
        done = shell.run_cell(source, store_history=False)
        if not done.success:
            error = done.error_before_exec or done.error_in_exec
            sys.stdout.flush()  # What it says of itself comes last.
            sys.exit(f"A cell failed: {type(error).__name__}: {error}")
        if "parameters" in tags:
            shell.push(order["parameters"])
    function: Callable[..., Any] = shell.user_ns[order["function"]]
    return function


def _from_inbox(inbox: Path, folder: Path) -> Any:
    """The order of a worker in a pod; its folder and its key are there afterwards."""
    if (inbox / FILES).exists():
        with tarfile.open(inbox / FILES) as files:
            files.extractall(UNPACKED)  # noqa: S202 - We made it.
    os.chdir(folder)
    os.environ[KEY] = (inbox / "key").read_text()
    return json.loads((inbox / "order.json").read_bytes())


def main() -> None:
    port, *inbox = sys.argv[1:]
    host = "0.0.0.0" if inbox else "127.0.0.1"  # noqa: S104 - Who has not the key is refused.
    order = _from_inbox(*map(Path, inbox)) if inbox else json.load(sys.stdin)
    sys.path[0] = str(Path.cwd())  # not the folder of this file
    Requests.key = os.environ.pop(KEY)
    Requests.worker = Worker(order["name"], load(order))
    sys.stdout.flush()
    ThreadingHTTPServer((host, int(port)), Requests).serve_forever()


if __name__ == "__main__":
    main()
