"""Kernel processes: started, interrupted, watched until they end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .kernelspecs import KernelSpec
from .outcome import StepFailed

PORTS = ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")


class Kernel(ABC):
    """A kernel and everything it started: one process group."""

    connection: Mapping[str, Any]
    pid: int
    ended: asyncio.Future[int]
    """Done when the process has ended: its exit code, or minus the signal that ended it."""

    def interrupt(self) -> None:
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    @abstractmethod
    def forget(self) -> None:
        """Remove what it leaves behind, once it has ended."""

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self.pid, number)


class StartedKernel(Kernel):
    """A kernel started from its specification, as Jupyter does it."""

    def __init__(self, process: asyncio.subprocess.Process, connection: Any, folder: Path) -> None:
        self.connection = connection
        self.pid = process.pid
        self.ended = asyncio.ensure_future(process.wait())
        self._folder = folder

    @classmethod
    async def start(
        cls,
        spec: KernelSpec,
        cwd: Path,
        env: Mapping[str, str],
        memory_limit: int,
        log: Callable[[str], None],
    ) -> StartedKernel:
        folder = Path(tempfile.mkdtemp(prefix=f"convect-{os.getpid()}-"))
        connection = new_connection(folder, spec)
        file = folder / "connection.json"
        file.touch(0o600)
        file.write_text(json.dumps(connection))
        command = spec.command(str(file))
        if spec.ipykernel is not None:
            command.append("--HistoryManager.hist_file=:memory:")
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=cwd,
                env={**spec.environment(env), "JPY_PARENT_PID": str(os.getpid())},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                preexec_fn=lambda: prepare_child(memory_limit),
            )
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise StepFailed(
                f"The kernel {spec.name} could not be started: {explain_os_error(error)}."
            ) from error
        kernel = cls(process, connection, folder)
        assert process.stdout is not None
        kernel.reading = asyncio.ensure_future(copy_text(process.stdout, log))
        return kernel

    reading: asyncio.Future[None]

    def forget(self) -> None:
        self.reading.cancel()
        shutil.rmtree(self._folder, ignore_errors=True)


def new_connection(folder: Path, spec: KernelSpec) -> dict[str, Any]:
    """Where a new kernel listens: files below `folder` for ipykernel, else loopback ports."""
    common = {
        "key": secrets.token_hex(16),
        "signature_scheme": "hmac-sha256",
        "kernel_name": spec.name,
    }
    if spec.ipykernel is not None and os.name == "posix":
        ports = dict(zip(PORTS, range(1, 6), strict=True))
        return {"transport": "ipc", "ip": str(folder / "k"), **ports, **common}
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in PORTS]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        ports = {name: s.getsockname()[1] for name, s in zip(PORTS, sockets, strict=True)}
    return {"transport": "tcp", "ip": "127.0.0.1", **ports, **common}


def prepare_child(memory_limit: int) -> None:
    """Runs in a child before it executes: a process group of its own, and its limit."""
    os.setpgid(0, 0)
    if memory_limit:
        limit_memory(memory_limit)


def limit_memory(count: int) -> None:
    """Limit the private memory of this process and of each it starts.

    Address space would be the wrong measure where it can be avoided: GPU libraries
    reserve far more of it than they use.
    """
    import resource
    import sys

    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    resource.setrlimit(kind, (count, count))


def explain_os_error(error: OSError) -> str:
    what = error.filename if isinstance(error.filename, str) else None
    if isinstance(error, FileNotFoundError) and what:
        return f"{what} was not found"
    why = error.strerror or str(error)
    return f"{what}: {why}" if what else why


async def copy_text(source: asyncio.StreamReader, write: Callable[[str], None]) -> None:
    """Hand on what a process prints, as text, as it comes."""
    import codecs

    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    while data := await source.read(1 << 16):
        if text := decoder.decode(data):
            write(text)
    if text := decoder.decode(b"", final=True):
        write(text)
