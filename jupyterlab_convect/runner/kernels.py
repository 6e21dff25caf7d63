"""Kernel processes: started, interrupted, watched until they end."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import importlib.util
import json
import os
import re
import secrets
import shutil
import signal
import socket
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..filesystems import fits_sockets, socket_folders
from . import processes
from .limits import Limits
from .outcome import StepFailed
from .view_spec import View

CONNECTION = "connection.json"
HISTORY = "HistoryManager.hist_file"
PORTS = ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")

_started: set[int] = set()
"""Processes that asyncio reaps."""
_starting = 0
"""How many more are being started, of which the ids are not known yet."""
NATIVE = "python3"
"""The kernel of the interpreter that runs this, installed or not."""
_PLACE = re.compile(r"\{([A-Za-z0-9_]+)\}")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


class Kernel(ABC):
    """A kernel and everything it started: one process group."""

    connection: Mapping[str, Any]
    pid: int
    ended: asyncio.Future[int]
    """Done when the process has ended: its exit code, or minus the signal that ended it."""
    gone: asyncio.Future[Any]
    """Done when the process has ended, which may be before anybody can say how."""
    is_prepared = False
    """Whether it was made ready for steps before it was given to this one."""

    async def introduction(self) -> Mapping[str, Any] | None:
        """What it says of itself when it has started: `language_info`, and whether it `welcomes`
        who listens. None when it has to be asked."""
        return None

    def interrupt(self) -> None:
        self._signal(signal.SIGINT)

    def terminate(self) -> None:
        """Ask the process to end, and not what it has started."""
        if not self.gone.done():
            with contextlib.suppress(OSError):
                os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    @abstractmethod
    async def end_rest(self) -> None:
        """End what it has left running."""

    @abstractmethod
    def forget(self) -> None:
        """Remove what it leaves behind, once it has ended."""

    def _signal(self, number: signal.Signals) -> None:
        # Once it is gone, the number of its group may be that of another.
        if not self.gone.done():
            with contextlib.suppress(OSError):
                os.killpg(self.pid, number)


class StartedKernel(Kernel):
    """A kernel started from its specification, as Jupyter does it."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reading: asyncio.Future[None],
        connection: Mapping[str, Any],
        folder: Path,
    ) -> None:
        self.connection = connection
        self._reading = reading
        self.pid = process.pid
        self.ended = self.gone = asyncio.ensure_future(process.wait())
        self._folder = folder

    @classmethod
    async def start(
        cls,
        spec: KernelSpec,
        cwd: Path,
        env: Mapping[str, str],
        limits: Limits,
        log: Callable[[str], None],
        view: View,
    ) -> StartedKernel:
        folder = make_folder()
        connection = new_connection(folder, spec)
        file = folder / CONNECTION
        file.write_text(json.dumps(connection))
        command = spec.command(str(file))
        if spec.ipykernel is not None and not any(HISTORY in word for word in command):
            command.append(f"--{HISTORY}=:memory:")
        env = {**spec.environment(env), "JPY_PARENT_PID": str(os.getpid())}
        try:
            process, reading = await start_process(command, cwd, env, limits, log, view)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise StepFailed(
                f"The kernel {spec.name} could not be started: {explain_os_error(error)}."
            ) from error
        return cls(process, reading, connection, folder)

    async def end_rest(self) -> None:
        await end_rest(self.pid)

    def forget(self) -> None:
        self._reading.cancel()
        shutil.rmtree(self._folder, ignore_errors=True)


def make_folder() -> Path:
    """A folder for the sockets and the connection file of a kernel, where there is room for it."""
    for parent in (*socket_folders(), None):
        with contextlib.suppress(OSError):
            folder = Path(tempfile.mkdtemp(prefix=f"convect-{os.getpid()}-", dir=parent))
            (folder / CONNECTION).touch(0o600)
            (folder / CONNECTION).write_bytes(bytes(1024))
            return folder
    raise StepFailed(f"No folder can be made in {tempfile.gettempdir()}; is its disk full?")


def new_connection(folder: Path, spec: KernelSpec) -> dict[str, Any]:
    """Where a new kernel listens: files below `folder` for ipykernel, else loopback ports."""
    common = {
        "key": secrets.token_hex(16),
        "signature_scheme": "hmac-sha256",
        "kernel_name": spec.name,
    }
    if spec.ipykernel is not None and os.name == "posix" and fits_sockets(folder):
        ports = dict(zip(PORTS, range(1, 6), strict=True))
        return {"transport": "ipc", "ip": str(folder / "k"), **ports, **common}
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in PORTS]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        ports = {name: s.getsockname()[1] for name, s in zip(PORTS, sockets, strict=True)}
    return {"transport": "tcp", "ip": "127.0.0.1", **ports, **common}


def prepare_child(limits: Limits, view: View, cwd: Path) -> None:
    """Runs in a child before it executes: a process group, limits and a view of its own."""
    os.setpgid(0, 0)
    limits.apply()
    view.enter()
    os.chdir(view.path(cwd))


def explain_os_error(error: OSError) -> str:
    what = error.filename if isinstance(error.filename, str) else None
    if isinstance(error, FileNotFoundError) and what:
        return f"{what} was not found"
    why = error.strerror or str(error)
    return f"{what}: {why}" if what else why


async def create_process(*command: str, **options: Any) -> asyncio.subprocess.Process:
    """A process whose end asyncio alone takes note of."""
    global _starting
    _starting += 1
    try:
        process = await asyncio.create_subprocess_exec(*command, **options)
        _started.add(process.pid)
    finally:
        _starting -= 1
    return process


async def start_process(
    command: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    limits: Limits,
    write: Callable[[str], None],
    view: View,
) -> tuple[asyncio.subprocess.Process, asyncio.Future[None]]:
    """A process in a group of its own, and the task that hands on what it prints.

    The pipe is not asyncio's, which would wait for every process that has it open.
    """
    ours, theirs = os.pipe()
    try:
        process = await create_process(
            *command,
            cwd=cwd if view.kind == "shared" else None,
            env=env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            preexec_fn=lambda: prepare_child(limits, view, cwd),
        )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    return process, asyncio.ensure_future(copy_text(ours, write))


async def end_rest(group: int) -> None:
    """End what a process has left running, which was started in a group of its own."""
    if not processes.adopts():  # only what has stayed in the group can be found
        with contextlib.suppress(OSError):
            os.killpg(group, signal.SIGKILL)
    elif processes.children():
        await asyncio.to_thread(processes.end, _started)


def reap_rest() -> None:
    """Take note of what has ended and has no other parent left than the runner."""
    if processes.adopts() and not _starting:
        processes.reap(_started)


async def copy_text(descriptor: int, write: Callable[[str], None]) -> None:
    """Hand on what comes out of a pipe, as text, until everybody has closed it."""
    reader = asyncio.StreamReader()
    pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
    )
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    try:
        while data := await reader.read(1 << 16):
            if text := decoder.decode(data):
                write(text)
    finally:
        pipe.close()


@dataclass(frozen=True, slots=True)
class KernelSpec:
    name: str
    argv: tuple[str, ...]
    folder: Path | None = None
    language: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    interrupt_mode: str = "signal"
    provisioner: str | None = None
    """Set when something other than a process on this machine runs the kernel."""

    def command(self, connection_file: str) -> list[str]:
        places = {
            "connection_file": connection_file,
            "resource_dir": str(self.folder or ""),
            "prefix": sys.prefix,
        }
        command = [
            _PLACE.sub(lambda match: places.get(match[1], match[0]), part) for part in self.argv
        ]
        own = {"python", f"python{sys.version_info[0]}"}
        own.add(f"python{sys.version_info[0]}.{sys.version_info[1]}")
        if command and command[0] in own:
            command[0] = sys.executable
        return command

    @property
    def interpreter(self) -> str:
        return self.command("")[0]

    @property
    def ipykernel(self) -> tuple[list[str], list[str]] | None:
        """Interpreter flags and kernel arguments, when this is `python -m ipykernel_launcher`."""
        command = self.command("{connection_file}")
        for module in ("ipykernel_launcher", "ipykernel"):
            if module in command[1:] and command[command.index(module) - 1] == "-m":
                index = command.index(module)
                rest = command[index + 1 :]
                if rest[:2] == ["-f", "{connection_file}"]:
                    return command[1 : index - 1], rest[2:]
        return None

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """`base` with the kernel's own variables, in which `${NAME}` refers to `base`."""

        def expand(value: str) -> str:
            return _VARIABLE.sub(lambda match: base.get(match[1] or match[2], match[0]), value)

        return {**base, **{name: expand(value) for name, value in self.env.items()}}


def installed() -> dict[str, KernelSpec]:
    """Every kernel by its name, lower case; the first found of a name counts."""
    specs: dict[str, KernelSpec] = {}
    for folder in _folders():
        try:
            names = sorted(entry.name for entry in folder.iterdir())
        except OSError:
            continue
        for name in names:
            if name.lower() not in specs and (spec := _read(folder / name)):
                specs[name.lower()] = spec
    if NATIVE not in specs and importlib.util.find_spec("ipykernel") is not None:
        argv = (sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}")
        specs[NATIVE] = KernelSpec(NATIVE, argv, language="python")
    return specs


def resolved(name: str) -> str:
    """The name under which a kernel is installed; Jupyter calls the native one `python`, too."""
    return NATIVE if name == "python" else name


def default_for(language: str) -> str | None:
    """The kernel of a notebook that names none: the native one, or the only one of its language."""
    wanted = "python" if language in ("ipython", NATIVE) else language
    found = [name for name, spec in installed().items() if spec.language.lower() == wanted]
    return NATIVE if NATIVE in found else found[0] if len(found) == 1 else None


def find(name: str) -> KernelSpec:
    name = resolved(name)
    for folder in _folders():
        if name and Path(name).name == name and (spec := _read(folder / name)):
            return spec
    specs = installed()
    if name.lower() in specs:
        return specs[name.lower()]
    raise StepFailed(f"The kernel {name} is not installed; {known(specs)}.")


def known(specs: Mapping[str, KernelSpec]) -> str:
    return f"installed are {', '.join(sorted(specs))}" if specs else "none is installed"


def _folders() -> list[Path]:
    from jupyter_core.paths import jupyter_path

    ipython = Path(os.environ.get("IPYTHONDIR") or Path.home() / ".ipython", "kernels")
    return [*(Path(folder) for folder in jupyter_path("kernels")), ipython]


def _read(folder: Path) -> KernelSpec | None:
    try:
        data: Any = json.loads((folder / "kernel.json").read_bytes())
        provisioner = (data.get("metadata") or {}).get("kernel_provisioner") or {}
        other = provisioner.get("provisioner_name")
        return KernelSpec(
            name=folder.name,
            argv=tuple(str(part) for part in data["argv"]),
            folder=folder,
            language=str(data.get("language") or ""),
            env={str(key): str(value) for key, value in (data.get("env") or {}).items()},
            interrupt_mode=str(data.get("interrupt_mode") or "signal"),
            provisioner=None if other == "local-provisioner" else other,
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
