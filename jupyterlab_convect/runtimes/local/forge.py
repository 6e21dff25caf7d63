"""A warm process: it has imported what its children need, and forks.

Run as a script, by any interpreter, with nothing but the standard library around it:
`python forge.py <socket fd> <options as JSON>`. One kind forks runners. The other, one
for each interpreter, has ipykernel imported and nothing that an ordinary kernel has not,
and forks kernels. It keeps spares ready, processes that wait for their one order; with a
spare kernel comes a keeper, which tells the runner how the kernel ends and ends it when
the runner is gone.

A warm process never has a thread, a ZeroMQ context or an event loop, so that forking is
safe. It ends when its owner closes the socket, or after `idle` seconds without an order;
what it has started goes on.
"""

from __future__ import annotations

import _io
import array
import contextlib
import gc
import importlib
import json
import os
import secrets
import select
import shutil
import signal
import socket
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

KERNEL_MODULES = (
    "ipykernel.kernelapp",
    "ipykernel.ipkernel",
    "ipykernel.debugger",
    "IPython.extensions.storemagic",
    "IPython.core.completerlib",
    "IPython.core.debugger",
    "IPython.core.logger",
    "IPython.core.oinspect",
    "tornado.platform.asyncio",
    "sqlite3",
    "faulthandler",
    "unicodedata",
)
"""What every kernel has loaded before its first cell."""
RUNNER_MODULES = (
    "jupyterlab_convect.runner.run",
    "jupyterlab_convect.runner.environment",
    "jupyterlab_convect.runner.execution",
    "jupyterlab_convect.runner.forked",
    "asyncio.subprocess",
)
LATER = ("papermill.parameterize",)
"""Imported when there is nothing else to do: only parameters need it, and it takes long."""
COURTESY, HASTE = 0.15, 0.03
"""Seconds after an order in which its step has the processors for itself; when the next
is likely to follow, because this one did."""
REAP = 5.0
"""Seconds between two looks for processes of a kernel that have ended and lost their parent."""
CLOSELY = 1.0
"""Seconds between two orders that follow each other."""
TRIES = 3
"""Processes forked for one order, when they die before they can take it."""
ANSWER = 20.0
"""Seconds a spare has to take an order."""
REST = (0.1, 30.0)
"""Seconds until the next spare is forked after one that died unused; doubled each time, at most."""
BASE = dict(os.environ)
"""The environment in which this process was started."""
CONNECTION = "connection.json"
HISTORY = "HistoryManager.hist_file"
PORTS = ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")


def send(channel: socket.socket, message: Any, descriptors: Sequence[int] = ()) -> None:
    """Send JSON, and open files with it."""
    data = json.dumps(message).encode()
    data = struct.pack("!I", len(data)) + data
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
    sent = channel.sendmsg([data], rights if descriptors else [])
    if sent < len(data):
        channel.sendall(data[sent:])


def receive(channel: socket.socket) -> tuple[Any, list[int]]:
    """The next message and the open files with it; (None, []) when there is nobody any more."""
    descriptors = array.array("i")
    try:
        head, rights, _, _ = channel.recvmsg(4, socket.CMSG_SPACE(8 * descriptors.itemsize))
        for level, kind, data in rights:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
        head += _exactly(channel, 4 - len(head)) if head else b""
        if not head:
            return None, []
        data = _exactly(channel, struct.unpack("!I", head)[0])
    except (OSError, EOFError):
        return None, []
    return json.loads(data), list(descriptors)


def _exactly(channel: socket.socket, count: int) -> bytes:
    parts = []
    while count:
        part = channel.recv(min(count, 1 << 16))
        if not part:
            raise EOFError
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


class Forge:
    def __init__(self, control: socket.socket, options: dict[str, Any]) -> None:
        self.control = control
        self.options = options
        self.spares: list[tuple[int, socket.socket]] = []
        self.later: list[str] = []
        self.deaths = 0
        """Spares that died unused, since one was used."""
        self.rest_until = 0.0
        self.wake, wakeup = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(wakeup, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakeup)

    def preload(self) -> None:
        """Import; what is there then is not looked at, and so not copied, when a child collects
        garbage."""
        gc.disable()
        if self.options["runner"]:
            for name in RUNNER_MODULES:
                importlib.import_module(name)
            self.later = list(LATER)
        else:
            # Nobody debugs a step, and the debugger is a fifth of what a kernel loads.
            sys.modules["debugpy"] = None  # type: ignore[assignment]
            importlib.import_module(KERNEL_MODULES[0])
            for name in KERNEL_MODULES[1:]:
                with contextlib.suppress(ImportError):
                    importlib.import_module(name)
            del sys.modules["debugpy"]
            rehearse()
            self.options["views"] = [load(path) for path in self.options["views"]]
            self.options["launcher"] = launcher()
        self.options["descendants"] = load_descendants()
        tempfile.gettempdir()  # tries it out, once for all
        gc.freeze()
        gc.enable()

    def preload_more(self) -> None:
        with contextlib.suppress(Exception):  # the runner says what is missing, if it needs it
            importlib.import_module(self.later.pop())
            sys.modules["nbformat"].v4.new_code_cell("")  # compiles its validator
        gc.freeze()

    def serve(self) -> None:
        used, courtesy = time.monotonic(), COURTESY
        waiting: list[Any] = [self.control, self.wake]
        while True:
            missing = self.options["spares"] - len(self.spares)
            end = used + self.options["idle"]
            due = end
            if self.later:
                due = used + courtesy
            elif missing:
                due = min(end, max(used + courtesy, self.rest_until))
            ready, _, _ = select.select(waiting, [], [], max(due - time.monotonic(), 0))
            if not ready and self.later:
                self.preload_more()
            elif not ready and due >= end:
                return
            elif not ready:
                self.add_spare(leisure=courtesy != HASTE)
            if self.wake in ready:
                self.reap()
            if self.control in ready:
                order, descriptors = receive(self.control)
                if order is None:
                    return
                used, before = time.monotonic(), used
                courtesy = HASTE if used - before < CLOSELY else COURTESY
                pid = self.give(order, descriptors)
                for descriptor in descriptors:
                    os.close(descriptor)
                send(self.control, {"id": order["id"], "pid": pid})

    def give(self, order: dict[str, Any], descriptors: list[int]) -> int | None:
        """Have a spare do it, or a process forked for it; None when they all die first."""
        for _ in range(len(self.spares) + TRIES):
            try:
                pid, channel = self.spares.pop() if self.spares else self.fork(leisure=False)
            except OSError:  # no more processes, or no memory
                continue
            with channel:
                try:
                    channel.settimeout(ANSWER)
                    send(channel, order, descriptors)
                    taken = channel.recv(1)
                except OSError:
                    taken = b""
            if taken:
                self.deaths = 0
                return pid
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        return None

    def add_spare(self, *, leisure: bool) -> None:
        try:
            self.spares.append(self.fork(leisure=leisure))
        except OSError:
            self.rest()

    def rest(self) -> None:
        """Fork no spare for a while: what kills one at its birth would kill the next as well."""
        shortest, longest = REST
        self.rest_until = time.monotonic() + min(shortest * 2**self.deaths, longest)
        self.deaths = min(self.deaths + 1, 20)

    def fork(self, *, leisure: bool) -> tuple[int, socket.socket]:
        """A process that waits for an order; with `leisure` it gets ready for it meanwhile."""
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid:
            theirs.close()
            return pid, ours
        try:
            start_over({theirs.fileno()})
            os.setsid()
            spare(theirs, self.options, leisure=leisure)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(70)

    def reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self.wake, 1024):
                pass
        gone = set()
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, _ = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    break
                gone.add(pid)
        for found in [each for each in self.spares if each[0] in gone]:
            self.spares.remove(found)
            found[1].close()
            self.rest()


def load_descendants() -> Any:
    """The one module of ours that a keeper needs, where no kernel finds it among its own."""
    name = "jupyterlab_convect.runner.descendants"
    if name in sys.modules:
        return sys.modules[name]
    path = Path(__file__).parents[2] / "runner" / "descendants.py"
    return SimpleNamespace(**load(str(path)))


def rehearse() -> None:
    """Compile the patterns that a kernel reads its first cell with, and set up its database."""
    from IPython.core.inputtransformer2 import TransformerManager

    TransformerManager().transform_cell("0")  # type: ignore[no-untyped-call]
    if "sqlite3" in sys.modules:
        sys.modules["sqlite3"].connect(":memory:").close()


def launcher() -> str:
    """The program that an ordinary kernel is told to be."""
    found = importlib.util.find_spec("ipykernel_launcher")
    return found.origin if found and found.origin else "ipykernel_launcher.py"


def start_over(keep: set[int]) -> None:
    """In a child: forget what belongs to the parent."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for descriptor in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208
        if descriptor > 2 and descriptor not in keep:
            with contextlib.suppress(OSError):
                os.close(descriptor)
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()


def spare(channel: socket.socket, options: dict[str, Any], *, leisure: bool) -> None:
    """Wait for the one order of this process."""
    descendants = options["descendants"]
    if options["runner"]:
        kernel = None
        if leisure:
            sys.modules["jupyterlab_convect.runner.wire"].rehearse()
    else:
        overlay, landlock = options["views"]
        confined = confine(overlay)
        kernel = fork_kernel(options, channel, overlay, landlock)
        kernel["confined"] = confined and os.geteuid() != 0
    descendants.adopt()
    order, descriptors = receive(channel)
    if order is None:
        if kernel is not None:
            os.kill(kernel["pid"], signal.SIGKILL)
            os.waitpid(kernel["pid"], 0)
            shutil.rmtree(kernel["folder"], ignore_errors=True)
        os._exit(0)
    channel.send(b"t")
    channel.close()
    if kernel is None:
        os._exit(run_step(order, descriptors))
    keep(socket.socket(fileno=descriptors[0]), kernel, overlay if confined else None, descendants)
    os._exit(0)


def run_step(order: dict[str, Any], descriptors: list[int]) -> int:
    """Become the runner of a step, with a kernel at hand if a keeper is at the other end.

    The first descriptor is closed when the outcome is written, some time before the end.
    """
    from jupyterlab_convect.run_files import append_to
    from jupyterlab_convect.runner.environment import record
    from jupyterlab_convect.runner.forked import ForkedSpare
    from jupyterlab_convect.runner.outcome import TAKEN
    from jupyterlab_convect.runner.run import run

    set_environment(order["env"])
    folder = Path(order["folder"])
    with contextlib.suppress(OSError):
        log = append_to(folder / "log.txt")
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
    offer = None
    done, *keepers = descriptors
    for each in keepers:
        keeper = socket.socket(fileno=each)
        kernel, rights = receive(keeper)
        if kernel is not None:
            offer = ForkedSpare(kernel, keeper, *rights)
    listener = os.fdopen(done)
    code = run(folder, offer, listener.close)
    listener.close()
    if offer is not None:
        offer.discard()
    if code != TAKEN:
        record(folder)
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def load(path: str) -> dict[str, Any]:
    """The names of a module that must not show in a kernel."""
    names: dict[str, Any] = {"__name__": Path(path).stem}
    exec(compile(Path(path).read_bytes(), path, "exec"), names)  # noqa: S102 (our own file)
    return names


def confine(overlay: dict[str, Any]) -> bool:
    """Give this process, and the kernel it will fork, mounts of their own, if that is allowed."""
    try:
        overlay["enter"]()
    except Exception:
        return False
    return True


def show(overlay: dict[str, Any] | None, order: dict[str, Any]) -> bool:
    """Put the step's view of its folder where the kernel sees it."""
    if overlay is None:
        return False
    try:
        overlay["mount"](order)
        overlay["drop_capabilities"]()
    except Exception:
        return False
    return True


def keep(
    runner: socket.socket,
    kernel: dict[str, Any],
    overlay: dict[str, Any] | None,
    descendants: Any,
) -> None:
    """Look after a kernel for its runner: show it what it is to see, end what it leaves running,
    and tell how it ended. When the runner is gone, all of that ends at once."""
    facts = ("pid", "connection", "folder", "launch", "base", "confined")
    message = {key: kernel[key] for key in facts}
    send(runner, message, [kernel["channel"], kernel["output"]])
    os.close(kernel["channel"])
    os.close(kernel["output"])
    pidfd = os.pidfd_open(kernel["pid"])
    waiting: list[Any] = [pidfd, runner]

    def wait() -> list[Any]:
        while not (ready := select.select(waiting, [], [], REAP)[0]):
            descendants.reap({kernel["pid"]})
        return ready

    ready = wait()
    if pidfd not in ready:
        order, _ = receive(runner)
        if order is not None:
            runner.send(b"y" if show(overlay, order["view"]) else b"n")
            ready = wait()
    if pidfd not in ready:
        with contextlib.suppress(OSError):
            os.killpg(kernel["pid"], signal.SIGKILL)
    _, status = os.waitpid(kernel["pid"], 0)
    descendants.end(politely=descendants.POLITELY if pidfd in ready else 0)
    with contextlib.suppress(OSError):
        send(runner, {"ended": os.waitstatus_to_exitcode(status)})


def fork_kernel(
    options: dict[str, Any],
    owner: socket.socket,
    overlay: dict[str, Any],
    landlock: dict[str, Any],
) -> dict[str, Any]:
    """Start a kernel up to the point where it needs to know for whom."""
    folder = make_folder(options["sockets"])
    connection = {
        "transport": "ipc",
        "ip": str(folder / "k"),
        "key": secrets.token_hex(16),
        "signature_scheme": "hmac-sha256",
        "kernel_name": options.get("kernel_name", "python3"),
    }
    connection.update({name: number for number, name in enumerate(PORTS, 1)})
    ours, theirs = socket.socketpair()
    output, printed = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if not pid:
        try:
            owner.close()
            start_over({theirs.fileno(), printed})
            os.setpgid(0, 0)
            with contextlib.suppress(Exception):
                overlay["drop_capabilities"]()
            die_with(parent)
            os.dup2(printed, 1)
            os.dup2(printed, 2)
            os.close(printed)
            be_kernel(theirs, folder, connection, options, landlock["protect"])
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(70)
    theirs.close()
    os.close(printed)
    channel = os.dup(ours.fileno())
    ours.close()
    return {
        "pid": pid,
        "connection": connection,
        "folder": str(folder),
        "launch": options["launch"],
        "base": BASE,
        "channel": channel,
        "output": output,
    }


def make_folder(places: list[str]) -> Path:
    """A folder for sockets and the connection file, in the first place with room for it."""
    for place in places:
        with contextlib.suppress(OSError):
            folder = Path(tempfile.mkdtemp(prefix=f"convect-{os.getpid()}-", dir=place))
            (folder / CONNECTION).touch(0o600)
            (folder / CONNECTION).write_bytes(bytes(1024))
            return folder
    raise OSError("no folder for sockets can be made")


def die_with(parent: int) -> None:
    """Have the system kill this process when its parent ends, however it does."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def be_kernel(
    channel: socket.socket,
    folder: Path,
    connection: dict[str, Any],
    options: dict[str, Any],
    protect: Callable[[Sequence[Path], Sequence[Path]], bool],
) -> None:
    """An ordinary IPython kernel that pauses in the middle of its start."""
    import atexit
    import threading

    from ipykernel.kernelapp import IPKernelApp
    from traitlets.config import Config

    class SpareKernelApp(IPKernelApp):
        def parse_command_line(self, argv: list[str] | None = None) -> None:
            if argv:  # else it would make a parser of all there is to set
                super().parse_command_line(argv)

        def log_connection_info(self) -> None:
            pass

        def init_path(self) -> None:
            # Sockets and shell are there; working folder, startup files and extensions
            # come next, and those are the step's own.
            channel.send(b"r")
            assignment, _ = receive(channel)
            if assignment is None:
                os._exit(0)
            adopt(assignment)
            if guard := assignment["guard"]:
                protect(*([Path(path) for path in each] for each in guard))
            super().init_path()  # type: ignore[no-untyped-call]

    arguments = options["launch"]["arguments"]
    file = folder / CONNECTION
    file.write_text(json.dumps(connection))
    history = [] if any(HISTORY in each for each in arguments) else [f"--{HISTORY}=:memory:"]
    sys.argv = [options["launcher"], "-f", str(file), *arguments, *history]
    settings = {
        "IPKernelApp": {"connection_file": str(file)},
        "HistoryManager": {"hist_file": ":memory:"},
    }
    app: Any = SpareKernelApp.instance(config=Config(settings))
    app.initialize(arguments)
    app.kernel._process_children = list  # the runner ends them, without ipykernel's long waits
    app.start()
    app.control_thread.join(2)  # it may still flush streams that the exit closes
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    # An interpreter would now take every object apart; what matters of that is that
    # things of the notebook end, and that open files are written.
    app.shell.user_ns.clear()
    gc.collect()
    for each in gc.get_objects():
        if isinstance(each, _io._IOBase):  # without what io.IOBase asks of every class
            with contextlib.suppress(Exception):
                each.flush()
    os._exit(0)


def adopt(assignment: dict[str, Any]) -> None:
    """Take over the environment, the folder and the limits of the step.

    Variables that ipykernel has set meanwhile, it would set in any environment.
    """
    own = {name: value for name, value in os.environ.items() if BASE.get(name) != value}
    set_environment({**assignment["env"], **own})
    os.chdir(assignment["cwd"])
    for group in assignment["groups"]:
        with contextlib.suppress(OSError):
            Path(group, "cgroup.procs").write_text("0")
    if limit := assignment["memory"]:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def set_environment(wanted: dict[str, str]) -> None:
    for name in os.environ.keys() - wanted.keys():
        del os.environ[name]
    for name, value in wanted.items():
        if os.environ.get(name) != value:
            os.environ[name] = value
    time.tzset()


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    sys.path.pop(0)  # the folder of this script, which is nobody's business
    forge = Forge(control, json.loads(sys.argv[2]))
    try:
        forge.preload()
    except Exception as error:
        send(control, {"failed": f"{type(error).__name__}: {error}"})
        sys.exit(1)
    if forge.options["eager"]:
        while len(forge.spares) < forge.options["spares"] and not forge.deaths:
            forge.add_spare(leisure=True)
    send(control, {"ready": True})
    forge.serve()


if __name__ == "__main__":
    main()
