"""The process of a worker that runs in a cluster: has it made there, and forwards calls to it.

    python -m jupyterlab_convect.worker_process <port> < order
    python -m jupyterlab_convect.worker_process forget < {"runtime", "name"}

What it makes is named in a file of the service's folder before it is made. It is removed when this
process is told to end; whoever finds that it was killed has it removed by the second command.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from .background import Health
from .errors import ConvectError
from .json_text import dumps
from .pipeline.files import FileCache
from .pipeline.plan import Json, from_json
from .planning import examine, plan_of
from .runner import notebook_worker
from .runner.notebook_worker import KEY, KEY_HEADER, LARGEST
from .runs.model import Request
from .runs.project import project_root
from .runtimes.base import RemoteWorker, Runtime, WorkerOrder, WorkerStatus
from .runtimes.registry import Runtimes
from .safe_files import write_whole
from .services.calls import refuse_uncallable
from .services.host import LEFT, MARK, REASON
from .settings import Settings

STARTING_PAUSE, PAUSE = 0.5, 5.0
LONGEST_NAME = 40
FORGET_PATIENCE, FORGET_PAUSE = 3600.0, 10.0


def runtime_of(place: Mapping[str, Json]) -> Runtime:
    """The runtime, with the settings that it had where the endpoint was called."""
    settings = Settings(named_runtimes={place["name"]: {**place["traits"], "kind": place["kind"]}})
    log = logging.getLogger(__package__)
    return Runtimes(settings, log, Health(log))[place["name"]]


def order_of(order: Mapping[str, Json], name: str, runs: Path) -> WorkerOrder:
    request = from_json(Request, order["request"])
    root = Path(request.root)
    files = FileCache(root)
    examined = examine(request, files)
    refuse_uncallable(examined.problems)
    (step,) = plan_of(examined, request, files).steps
    source = root / str(step.path)
    folder = source.parent
    project = project_root([folder], root, Path.home())
    work = {key: order[key] for key in ("name", "cells", "function", "parameters")}
    declared = (source, *(root / each.path for each in step.dependencies))
    return WorkerOrder(
        name,
        str(order["name"]),
        step,
        project,
        folder,
        tuple(each for each in dict.fromkeys(declared) if each.is_relative_to(project)),
        runs,
        Path(notebook_worker.__file__).read_bytes(),
        {"order.json": dumps(work).encode(), "key": os.environ[KEY].encode()},
    )


class Forwarder:
    """Keeps the worker, and says how it is."""

    def __init__(self, worker: RemoteWorker, folder: Path) -> None:
        self.worker = worker
        self.status = WorkerStatus("starting")
        self._folder = folder
        self._told: str | None = None

    def watch(self, ended: threading.Event) -> None:
        """Until it has failed, or is told to end."""
        while not ended.is_set() and self.status.state != "failed":
            self.status = self.worker.look()
            self.tell(self.status.reason)
            ended.wait(PAUSE if self.status.state == "ready" else STARTING_PAUSE)

    def tell(self, reason: str | None) -> None:
        if reason != self._told:
            self._told = reason
            write_whole(self._folder / REASON, (reason or "").encode())
            if reason:
                _say(f"{reason}\n".encode())


class ForwardedCall(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    forwarder: Forwarder

    def do_GET(self) -> None:
        if self.path == "/v2/health/ready":
            is_ready = self.forwarder.status.state == "ready"
            self._answer(200 if is_ready else 503, "application/json", b"{}")
        else:
            self._pass_on(None)

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        if size > LARGEST:
            self.close_connection = True
            self._refuse(413, f"The body is larger than {LARGEST >> 20} MiB.")
        else:
            self._pass_on(self.rfile.read(size))

    def _pass_on(self, body: bytes | None) -> None:
        forwarder = self.forwarder
        if forwarder.status.state != "ready":
            self._refuse(503, forwarder.status.reason or "The worker is starting.")
            return
        names = (KEY_HEADER, "Content-Type")
        headers = {name: self.headers[name] for name in names if name in self.headers}
        try:
            answer = forwarder.worker.send(self.command, self.path, headers, body)
        except ConvectError as error:
            self._refuse(503, error.sentence)
        else:
            self._answer(*answer)

    def _refuse(self, status: int, sentence: str) -> None:
        words = {"code": "no-worker", "message": sentence, "hint": None}
        self._answer(status, "application/json", json.dumps(words).encode())

    def _answer(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind or "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """What the notebook prints is the log."""


def _say(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def serve(port: int, order: Mapping[str, Json], folder: Path) -> int:
    """Until it is told to end; not 0 when the worker cannot be had, with the reason in its file."""
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    runtime = runtime_of(order["runtime"])
    label = "".join(c if c.isascii() and c.isalnum() else "-" for c in str(order["name"]).lower())
    name = f"endpoint-{label[:LONGEST_NAME].strip('-')}-{secrets.token_hex(4)}".replace("--", "-")
    forwarder = None
    try:
        worker = runtime.worker(order_of(order, name, folder.parent.parent))
        forwarder = Forwarder(worker, folder)
        write_whole(folder / LEFT, dumps({"runtime": order["runtime"], "name": name}).encode())
        worker.start()
        ForwardedCall.forwarder = forwarder
        server = ThreadingHTTPServer(("127.0.0.1", port), ForwardedCall)
        for work in (server.serve_forever, lambda: worker.follow_log(_say)):
            threading.Thread(target=work, daemon=True).start()
        forwarder.watch(ended)
        return 1 if forwarder.status.state == "failed" else 0
    except ConvectError as error:
        write_whole(folder / REASON, error.sentence.encode())
        return 1
    finally:
        if forwarder is not None:
            with contextlib.suppress(ConvectError):  # Whoever started this process tries again.
                runtime.forget_worker(name)
                (folder / LEFT).unlink(missing_ok=True)


def forget_patiently(left: Mapping[str, Json]) -> None:
    """Remove what somebody has left behind; the cluster may be away for a while."""
    runtime, deadline = runtime_of(left["runtime"]), time.monotonic() + FORGET_PATIENCE
    while True:
        try:
            runtime.forget_worker(str(left["name"]))
            return
        except ConvectError:
            if time.monotonic() > deadline:
                raise
        time.sleep(FORGET_PAUSE)


def main() -> int:
    given = json.load(sys.stdin)
    if sys.argv[1] == "forget":
        forget_patiently(given)
        return 0
    return serve(int(sys.argv[1]), given, Path(os.environ[MARK]))


if __name__ == "__main__":
    sys.exit(main())
