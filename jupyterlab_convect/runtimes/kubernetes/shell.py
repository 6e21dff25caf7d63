"""A command in the pod of a running step, tied to this terminal."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from ...errors import Refused
from .api import Api
from .objects import STEP

STDIN, STDOUT, STDERR, STATUS, RESIZE = range(5)
SHELL = ("/bin/sh", "-c", "command -v bash >/dev/null 2>&1 && exec bash; exec sh")


def run_in_pod(api: Api, pod: str, command: Sequence[str]) -> int:
    """Run it, or a shell; the exit code of the command."""
    from kubernetes.stream import ws_client

    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    query = {
        "container": STEP,
        "command": list(command or SHELL),
        "stdin": terminal,
        "stdout": True,
        "stderr": not terminal,
        "tty": terminal,
    }
    url = api.url(f"{api.place('pods', pod)}/exec", query).replace("http", "ws", 1)
    headers = {**api.headers(), "sec-websocket-protocol": "v4.channel.k8s.io"}
    open_socket: Any = ws_client.create_websocket
    try:
        socket = open_socket(api.client.configuration, url, headers)
    except Exception as error:
        words = str(error).partition(" -+-+- ")[0]
        raise Refused(f"The pod does not let us in: {words}.", code="no-shell") from None
    session = _Session(socket)
    with _raw_terminal(session) if terminal else contextlib.nullcontext():
        reader = threading.Thread(target=session.read, daemon=True)
        reader.start()
        while reader.is_alive():
            if terminal and select.select([sys.stdin], [], [], 0.1)[0]:
                session.send(STDIN, os.read(sys.stdin.fileno(), 4096))
            elif not terminal:
                reader.join(0.1)
    return session.code


class _Session:
    def __init__(self, socket: Any) -> None:
        self.code = 1
        self._socket = socket

    def send(self, channel: int, data: bytes) -> None:
        with contextlib.suppress(Exception):
            self._socket.send_binary(bytes([channel]) + data)

    def resize(self, *_: object) -> None:
        size = shutil.get_terminal_size()
        self.send(RESIZE, json.dumps({"Width": size.columns, "Height": size.lines}).encode())

    def read(self) -> None:
        """Until the other side closes."""
        while True:
            try:
                data = self._socket.recv()
            except Exception:
                return
            if not data:
                return
            frame = data if isinstance(data, bytes) else data.encode()
            channel, content = frame[0], frame[1:]
            if channel in (STDOUT, STDERR):
                stream = sys.stdout if channel == STDOUT else sys.stderr
                stream.buffer.write(content)
                stream.flush()
            elif channel == STATUS:
                self.code = exit_code(json.loads(content))
                return


def exit_code(status: dict[str, Any]) -> int:
    """What the cluster says of the command's end, as its exit code."""
    if status.get("status") == "Success":
        return 0
    for cause in status.get("details", {}).get("causes", ()):
        if cause.get("reason") == "ExitCode":
            return int(cause["message"])
    return 1


@contextlib.contextmanager
def _raw_terminal(session: _Session) -> Iterator[None]:
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    handler = signal.signal(signal.SIGWINCH, session.resize)
    try:
        tty.setraw(sys.stdin)
        session.resize()
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        signal.signal(signal.SIGWINCH, handler)
