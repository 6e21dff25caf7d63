"""A command in the pod of a running step, tied to this terminal."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from ...errors import Refused
from ...runner import enter_step
from ...runner.enter_step import NOT_FOUND
from .api import Api
from .objects import Object, step_container

STDIN, STDOUT, STDERR, STATUS, RESIZE = range(5)
SHELL = """export TERM="${TERM:-xterm}"
code="$0"
command -v python3 >/dev/null 2>&1 && exec python3 -c "$code" "$@"
cd "$1" 2>/dev/null
shift
[ $# -gt 0 ] && { command -v "$1" >/dev/null 2>&1 || exit NOT_FOUND; exec "$@"; }
command -v bash >/dev/null 2>&1 && exec bash
exec sh""".replace("NOT_FOUND", str(NOT_FOUND))
WRONG_WORDS = ("executable file not found", "no such file or directory")


def run_in_pod(
    api: Api, pod: Object, folder: str, command: Sequence[str], local_rank: int | None = None
) -> int:
    """Run it, or a shell, where the step works, or else in the folder; the exit code.

    `local_rank`: where that replica of the pod works.
    """
    code = f"{inspect.getsource(enter_step)}\nmain({local_rank})"
    try:
        ended = _execute(api, pod, ("/bin/sh", "-c", SHELL, code, folder, *command))
    except Refused:
        if not command:
            raise
        ended = _execute(api, pod, command)  # An image without a shell may have the program.
    if ended == NOT_FOUND:
        raise Refused(_explain(WRONG_WORDS[0], command), code="no-shell")
    return ended


def _execute(api: Api, pod: Object, command: Sequence[str]) -> int:
    from kubernetes.stream import ws_client

    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    query = {
        "container": step_container(pod["spec"])["name"],
        "command": list(command),
        "stdin": terminal,
        "stdout": True,
        "stderr": not terminal,
        "tty": terminal,
    }
    url = api.url(f"{api.path('pods', pod['metadata']['name'])}/exec", query).replace(
        "http", "ws", 1
    )
    headers = {**api.headers(), "sec-websocket-protocol": "v4.channel.k8s.io"}
    open_socket: Any = ws_client.create_websocket
    try:
        socket = open_socket(api.client.configuration, url, headers)
    except Exception as error:
        raise Refused(_explain(_words_of(error), command), code="no-shell") from None
    session = _Session(socket)
    with _raw_terminal(session) if terminal else contextlib.nullcontext():
        reader = threading.Thread(target=session.read, daemon=True)
        reader.start()
        while reader.is_alive():
            if not (terminal and _type(session)):
                reader.join(0.1)
    if session.trouble:
        raise Refused(_explain(session.trouble, command), code="no-shell")
    return session.code


def _type(session: _Session) -> bool:
    """Pass on what is typed; False when nothing is, or never will be."""
    if not select.select([sys.stdin], [], [], 0.1)[0]:
        return True
    try:
        data = os.read(sys.stdin.fileno(), 4096)
    except OSError:  # The terminal is gone.
        data = b""
    if not data:
        session.close()
        return False
    session.send(STDIN, data)
    return True


def _words_of(error: Exception) -> str:
    """What the cluster says of a connection that it does not take, or else what went wrong."""
    body = getattr(error, "resp_body", None) or b""
    with contextlib.suppress(ValueError, TypeError, AttributeError):
        if message := json.loads(body).get("message"):
            return str(message).strip().rstrip(".")
    text = body.decode(errors="replace") if isinstance(body, bytes) else str(body)
    return (text.strip() or str(error).partition(" -+-+- ")[0]).rstrip(".")


def _explain(words: str, command: Sequence[str]) -> str:
    if any(each in words for each in WRONG_WORDS):
        return f"The image of the step has no {command[0] if command else 'shell'}."
    return f"Could not open a shell in the pod: {words}."


class _Session:
    def __init__(self, socket: Any) -> None:
        self.code = 1
        self.trouble: str | None = None
        """Why the command did not even begin."""
        self._socket = socket

    def send(self, channel: int, data: bytes) -> None:
        with contextlib.suppress(Exception):
            self._socket.send_binary(bytes([channel]) + data)

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._socket.close()

    def resize(self, *_: object) -> None:
        size = os.get_terminal_size(sys.stdout.fileno())
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
                self.code, self.trouble = outcome(json.loads(content))
                return


def outcome(status: dict[str, Any]) -> tuple[int, str | None]:
    """What the cluster says of the command's end: its exit code, or why it did not begin."""
    if status.get("status") == "Success":
        return 0, None
    for cause in status.get("details", {}).get("causes") or ():
        if cause.get("reason") == "ExitCode":
            return int(cause["message"]), None
    return 1, str(status.get("message") or "it gave no reason").strip().rstrip(".")


@contextlib.contextmanager
def _raw_terminal(session: _Session) -> Iterator[None]:
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    handler = signal.signal(signal.SIGWINCH, session.resize)
    try:
        tty.setraw(sys.stdin, termios.TCSADRAIN)  # What was typed meanwhile counts.
        session.resize()
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        signal.signal(signal.SIGWINCH, handler)
