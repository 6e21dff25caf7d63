"""A real Jupyter Server with the extension, and a client that asks it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TOKEN = "bench"
ENDED = {"succeeded", "failed", "cancelled", "lost"}


class Server:
    def __init__(self, port: int, pid: int) -> None:
        self.port = port
        self.pid = pid

    def ask(self, path: str, body: Any = None, *, method: str | None = None) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"token {TOKEN}", "Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def convect(self, path: str, body: Any = None) -> Any:
        return self.ask(f"jupyterlab-convect/api/v1/{path}", body)

    def run(self, **request: Any) -> float:
        """Seconds from the request to the end that the server writes down for the run.

        Whoever asks too often takes the processor away from the run.
        """
        return self._watch("runs", request, pause=0.05)

    def endpoint(self, path: str) -> Callable[[], None]:
        """Make a file callable; a call of it that waits for the outcome."""
        made = self.convect("endpoints", {"path": path})
        address = f"http://127.0.0.1:{self.port}/jupyterlab-convect/api/v1/call/{made['id']}"
        request = urllib.request.Request(
            f"{address}?wait=60",
            data=b"{}",
            headers={"Authorization": f"Bearer {made['token']}"},
        )

        def call() -> None:
            with urllib.request.urlopen(request, timeout=120) as answer:
                told = json.load(answer)
            if told["state"] != "succeeded":
                raise RuntimeError(f"It ended as {told['state']}: {told['reason']}")

        return call

    def sweep(self, space: dict[str, list[Any]], **request: Any) -> float:
        """The same for a sweep, whose answers are longer."""
        return self._watch("sweeps", {"request": request, "space": space}, pause=0.25)

    def _watch(self, kind: str, body: Any, pause: float) -> float:
        begun = time.time()
        made = self.convect(kind, body)
        while made["state"] not in ENDED:
            time.sleep(pause)
            made = self.convect(f"{kind}/{made['id']}")
        if made["state"] != "succeeded":
            raise RuntimeError(f"It ended as {made['state']}: {made.get('reason')}")
        return float(made["ended"]) - begun

    @property
    def memory(self) -> int:
        """Resident bytes of the server process itself."""
        pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def server(
    root: Path,
    *,
    extension: bool = True,
    options: tuple[str, ...] = (),
    prefix: tuple[str, ...] = (),
    **environment: str,
) -> Iterator[Server]:
    """A server on `root` that is ready to answer, and gone afterwards."""
    port = free_port()
    command = [
        *prefix,
        sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root",
        f"--port={port}", "--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}",
        f"--ServerApp.root_dir={root}",
        f"--ServerApp.jpserver_extensions=jupyterlab_convect={extension}",
        *options,
    ]  # fmt: skip
    log = (root / ".server.log").open("ab")
    process = subprocess.Popen(
        command, stdout=log, stderr=log, env={**os.environ, **environment}, start_new_session=True
    )
    running = Server(port, process.pid)
    try:
        _wait_until_it_answers(running, process)
        yield running
    finally:
        process.terminate()
        process.wait(30)
        log.close()


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_it_answers(running: Server, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            running.ask("api/status")
            return
        except OSError:
            time.sleep(0.02)
    raise RuntimeError("The server did not start.")
