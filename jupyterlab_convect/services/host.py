"""The process around a service: starts it, watches it, and stops it when nobody uses it.

It outlives whoever started it, and has the lease of the service's folder while it is there, so
that everybody can tell whether somebody is.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import select
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from ..errors import ConvectError, words_of
from ..json_text import dumps
from ..pipeline.plan import from_json, to_json
from ..runner import processes
from ..runner.notebook_worker import KEY
from ..runs.json_files import read_json, write_json
from ..runs.lease import RENEW, Lease
from ..secret_values import without_secrets
from ..text import duration_text
from .base import UP, Service, ServiceCommand, ServiceKind, ServiceState, ServiceStatus, kind_of

SERVICE, STATUS, LOG, STOP, USED = "service.json", "status.json", "log.txt", "stop", "used"
REASON, LEFT = "reason", "left.json"
"""What a service writes into its folder: why it is not ready; and what it has made elsewhere and
not removed yet, which is what the command that its kind has for that reads."""
MARK = "CONVECT_SERVICE"
"""The variable by which the processes of a service are found when its host was killed."""
STARTING_PAUSE, PAUSE = 0.05, 1.0
LONGEST_LINE = 300
LONGEST_REASON = 2000


class ServiceHost:
    def __init__(self, folder: Path, lease: Lease) -> None:
        self._folder = folder
        self._lease = lease
        self._renewed = time.monotonic()
        self.service = from_json(Service, read_json(folder / SERVICE))
        self.status = ServiceStatus(
            "starting", started=time.time(), process=processes.identify(os.getpid())
        )
        for name in (STOP, REASON):
            (folder / name).unlink(missing_ok=True)
        touch(folder)
        self._write()

    def keep(self, told: int) -> None:
        """Start the service and stay until it has ended; `told` can be read when it should."""
        try:
            kind = kind_of(self.service.kind)
            port = _free_port()
            child = self._start(kind.command(self.service, port))
        except (ConvectError, OSError) as error:
            self._end("failed", f"It could not be started: {words_of(error)}.")
            return
        self._began = time.monotonic()
        ending: tuple[ServiceState, str | None] | None = None
        try:
            while ending is None and self._is_kept():
                pause = STARTING_PAUSE if self.status.state == "starting" else PAUSE
                is_told = bool(select.select([told], [], [], pause)[0])
                ending = self._look(child, kind, port, is_told)
        except Exception as error:  # Without this process nobody would ever stop the service.
            ending = "failed", f"It could not be watched: {type(error).__name__}: {error}."
        if not processes.end(politely=kind.politely):
            child.kill()
        remove_leftovers(self._folder, self.service)
        if ending is not None:  # Otherwise somebody else has the lease, and the last word.
            self._end(*ending)

    def _look(
        self, child: subprocess.Popen[bytes], kind: ServiceKind, port: int, is_told: bool
    ) -> tuple[ServiceState, str | None] | None:
        """How it ends, and why, if it does now."""
        if (code := child.poll()) is not None:
            reason = _reason(self._folder) or _ending(code, self._folder / LOG)
            return "failed" if code else "stopped", reason
        if is_told or (self._folder / STOP).exists():
            return "stopped", None
        self.status = replace(self.status, reason=_reason(self._folder))
        if self.status.state == "ready":
            is_idle = self._is_idle(kind)
            reason = f"Nobody used it for {duration_text(self.service.idle)}."
            return ("stopped", reason) if is_idle else None
        if _answers(port, kind.ready_path, kind.ready_below):
            touch(self._folder)
            self.status = replace(self.status, state="ready", address=f"http://127.0.0.1:{port}")
        elif time.monotonic() - self._began > (patience := kind.patience_for(self.service)):
            late = duration_text(patience)
            if self.status.reason:
                return "failed", f"It did not answer within {late}. {self.status.reason}"
            return "failed", f"It did not answer within {late}."
        return None

    def _start(self, command: ServiceCommand) -> subprocess.Popen[bytes]:
        with (self._folder / LOG).open("wb") as log:
            child = subprocess.Popen(
                command.words,
                cwd=command.folder,
                env={
                    **without_secrets(os.environ),
                    **command.environment,
                    MARK: str(self._folder),
                    KEY: self.service.key,
                },
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )
        assert child.stdin is not None
        with contextlib.suppress(BrokenPipeError), child.stdin:
            child.stdin.write(dumps(command.order).encode() if command.order else b"")
        return child

    def _is_idle(self, kind: ServiceKind) -> bool:
        idle = self.service.idle
        if not idle or time.time() - used(self._folder) < idle:
            return False
        if kind.is_busy(self.service, self.status.address):
            touch(self._folder)
            return False
        return True

    def _is_kept(self) -> bool:
        """Whether the lease is still held. What a full disk does not take is tried again; a folder
        that was deleted is nobody's."""
        with contextlib.suppress(OSError):
            if not self._folder.is_dir():
                return False
            if self._written != self.status:
                self._write()
            if time.monotonic() - self._renewed >= RENEW:
                is_kept = self._lease.renew()
                self._renewed = time.monotonic()
                return is_kept
        return True

    def _end(self, state: ServiceState, reason: str | None) -> None:
        self.status = replace(
            self.status, state=state, reason=reason, address="", ended=time.time()
        )
        while self._is_kept() and self._written != self.status:
            time.sleep(PAUSE)
        with contextlib.suppress(OSError):
            self._lease.end()

    def _write(self) -> None:
        write_json(self._folder / STATUS, to_json(self.status))
        self._written = self.status


def touch(folder: Path) -> None:
    """Say that somebody uses the service, if the disk takes it."""
    with contextlib.suppress(OSError):
        (folder / USED).touch(0o600)
        os.utime(folder / USED, (time.time(),) * 2)


def used(folder: Path) -> float:
    """When somebody used the service last."""
    try:
        return (folder / USED).stat().st_mtime
    except OSError:
        return 0.0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _answers(port: int, path: str, below: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status < below
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _reason(folder: Path) -> str | None:
    """What the service itself says of why it is not ready, or has failed."""
    try:
        return (folder / REASON).read_text("utf-8", "replace")[:LONGEST_REASON] or None
    except OSError:
        return None


def remove_leftovers(folder: Path, service: Service) -> None:
    """Start what removes what the service has left elsewhere, if it has; it goes on by itself."""
    words = kind_of(service.kind).removal(service)
    try:
        left = (folder / LEFT).read_bytes()
        if not words or not left:
            return
        with (folder / LOG).open("ab") as log:
            process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
            )
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError), process.stdin:
            process.stdin.write(left)
        (folder / LEFT).unlink()
    except OSError:
        return


def _ending(code: int, log: Path) -> str:
    """How a service ended that nobody stopped, with the last that it said."""
    with contextlib.suppress(OSError):
        lines = log.read_text("utf-8", "replace").split("\n")
        if last := next((line.strip() for line in reversed(lines) if line.strip()), None):
            last = last[:LONGEST_LINE]
            return f"It ended by itself with code {code}. The last line of its log: “{last}”."
    return f"It ended by itself with code {code}."


def read_status(folder: Path) -> ServiceStatus:
    try:
        return from_json(ServiceStatus, read_json(folder / STATUS))
    except (ConvectError, ValueError, TypeError):
        return ServiceStatus("lost", "Its outcome is unknown.")


def _take_lease(folder: Path) -> Lease | None:
    """None if another host keeps the service. One that has written how it ended is on its way
    out, and is waited for."""
    while (lease := Lease.take(folder)) is None and read_status(folder).state not in UP:
        time.sleep(STARTING_PAUSE)
    return lease


def _hear_signals() -> int:
    """A descriptor that can be read once this process was told to end."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(writing)
    return reading


def main() -> None:
    """Answers one line on its standard output once the folder says that the service starts."""
    folder = Path(sys.argv[1]).resolve()
    told = _hear_signals()
    lease = _take_lease(folder)
    if lease is not None:
        processes.adopt()
        host = ServiceHost(folder, lease)
    sys.stdout.write("kept\n")
    sys.stdout.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if lease is not None:
        host.keep(told)


if __name__ == "__main__":
    main()
