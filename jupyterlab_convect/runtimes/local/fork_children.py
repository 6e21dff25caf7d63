"""What the processes become that a fork server forks: a runner, or a kernel with its keeper.

Like the server, it runs in any interpreter, with nothing but the standard library around it. A
spare waits for its one order. With a spare kernel comes a keeper, which tells the runner how
the kernel ends and ends it when the runner is gone.
"""

from __future__ import annotations

import _io
import array
import contextlib
import gc
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
from typing import Any

REAP = 5.0
"""Seconds between two looks for processes of a kernel that have ended and lost their parent."""
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
    """The next message and the open files with it; (None, []) when the other end is gone."""
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
    processes = options["processes"]
    if options["runner"]:
        kernel = None
        if leisure:
            sys.modules["jupyterlab_convect.runner.kernel_connection"].rehearse()
    else:
        overlay, landlock = options["views"]
        confined = confine(overlay)
        kernel = fork_kernel(options, channel, overlay, landlock, leisure=leisure)
        kernel["confined"] = confined and os.geteuid() != 0
    processes.adopt()
    if leisure:
        processes.children()
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
    keep(socket.socket(fileno=descriptors[0]), kernel, overlay if confined else None, processes)
    os._exit(0)


def run_step(order: dict[str, Any], descriptors: list[int]) -> int:
    """Become the runner of a step, with a kernel at hand if a keeper is at the other end.

    The first descriptor is closed when the outcome is written, some time before the end.
    """
    from jupyterlab_convect.runner.attempt import run
    from jupyterlab_convect.runner.environment import record
    from jupyterlab_convect.runner.forked_kernel import ForkedSpare
    from jupyterlab_convect.runner.outcome import TAKEN
    from jupyterlab_convect.safe_files import append_to

    set_environment(order["env"])
    folder = Path(order["folder"])
    with contextlib.suppress(OSError):
        log = append_to(folder / "log.txt")
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
    done, *keepers = descriptors
    offer = ForkedSpare(socket.socket(fileno=keepers[0]), receive) if keepers else None
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
    processes: Any,
) -> None:
    """Look after a kernel for its runner: show it what it is to see, end what it leaves running,
    and tell how it ended. When the runner is gone, all of that ends at once."""
    facts = ("pid", "connection", "folder", "launch", "base", "confined", "answers")
    message = {key: kernel[key] for key in facts}
    send(runner, message, [kernel["channel"], kernel["output"]])
    os.close(kernel["channel"])
    os.close(kernel["output"])
    pidfd = os.pidfd_open(kernel["pid"])
    waiting: list[Any] = [pidfd, runner]

    def wait() -> list[Any]:
        while not (ready := select.select(waiting, [], [], REAP)[0]):
            processes.reap({kernel["pid"]})
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
    processes.end(politely=processes.POLITELY if pidfd in ready else 0)
    with contextlib.suppress(OSError):
        send(runner, {"ended": os.waitstatus_to_exitcode(status)})


def fork_kernel(
    options: dict[str, Any],
    owner: socket.socket,
    overlay: dict[str, Any],
    landlock: dict[str, Any],
    *,
    leisure: bool,
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
            be_kernel(theirs, folder, connection, options, landlock["protect"], leisure=leisure)
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
        "answers": True,  # not so the kernels of an older version, which may be about
    }


def make_folder(parents: list[str]) -> Path:
    """A folder for sockets and the connection file, in the first place with room for it."""
    for parent in parents:
        with contextlib.suppress(OSError):
            folder = Path(tempfile.mkdtemp(prefix=f"convect-{os.getpid()}-", dir=parent))
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


class OwnSettings(Exception):
    """Somebody has written settings for kernels."""


def new_app() -> Any:
    """The application of a kernel, at the very beginning of its start."""
    from ipykernel.kernelapp import IPKernelApp
    from IPython.core.application import BaseIPythonApplication
    from traitlets.config import Config

    class Begun(BaseIPythonApplication):
        """What every application of IPython does before its own start, once."""

        shell_ahead: Any = None

        def initialize(self, argv: list[str] | None = None) -> None:
            if self.shell_ahead is None:
                super().initialize(argv)  # type: ignore[no-untyped-call]

    class SpareKernelApp(IPKernelApp, Begun):
        pause: Callable[[], None]
        takes_settings = True

        def begin(self) -> None:
            """Do what comes before the start of a kernel, unless that takes settings."""
            self.takes_settings = False
            super(IPKernelApp, self).initialize([])

        def parse_command_line(self, argv: list[str] | None = None) -> None:
            if argv:  # else it would make a parser of all there is to set
                super().parse_command_line(argv)

        def has_settings(self) -> bool:
            names = ("ipython_config", Path(self.config_file_name).stem)
            files = (Path(at, name) for at in self.config_file_paths for name in names)
            return any(
                os.path.exists(f"{file}{end}")  # noqa: PTH110
                for file in files
                for end in (".py", ".json")
            )

        def load_config_file(self, *args: Any, **kwargs: Any) -> None:
            if not self.takes_settings and self.has_settings():
                raise OwnSettings
            super().load_config_file(*args, **kwargs)  # type: ignore[no-untyped-call]

        def log_connection_info(self) -> None:
            pass

        def init_kernel(self) -> None:
            super().init_kernel()  # type: ignore[no-untyped-call]
            if self.shell_ahead is not None:
                give_shell(self.shell_ahead, self.kernel)

        def init_path(self) -> None:
            # Sockets and shell are there; working folder, startup files and extensions
            # come next, and those are the step's own.
            self.pause()
            if self.kernel.shell is not None:
                self.kernel.shell.starting_dir = os.getcwd()  # noqa: PTH109 (as the shell does)
                self.kernel.shell.history_manager.reset(new_session=False)
            super().init_path()  # type: ignore[no-untyped-call]

    settings = {"IPKernelApp": {"connection_file": ""}, "HistoryManager": {"hist_file": ":memory:"}}
    return SpareKernelApp.instance(config=Config(settings))


def begin_app(arguments: Sequence[str]) -> Any:
    """The same with what is alike for all kernels done already: it has a shell.

    None where somebody has written settings. Those are programs, which each kernel has to
    execute itself.
    """
    from ipykernel.ipkernel import IPythonKernel
    from ipykernel.zmqshell import ZMQInteractiveShell

    app = new_app()
    try:
        if arguments or app.kernel_class is not IPythonKernel:
            raise OwnSettings
        app.begin()
        app.shell_ahead = ZMQInteractiveShell.instance(
            parent=app,
            profile_dir=app.profile_dir,
            user_module=None,
            user_ns=None,
            kernel=None,
            compiler_class=IPythonKernel.compiler_class.default_value,
        )
    except (Exception, SystemExit):
        forget_app(app)
        return None
    return app


def forget_app(app: Any) -> None:
    from ipykernel.zmqshell import ZMQInteractiveShell

    type(app).clear_instance()
    ZMQInteractiveShell.clear_instance()


def give_shell(shell: Any, kernel: Any) -> None:
    """Have a shell that was made before its kernel be as if it had been made by it."""
    import atexit

    shell.parent = shell.kernel = kernel
    shell._orig_sys_module_state.update(
        stdin=sys.stdin, stdout=sys.stdout, stderr=sys.stderr, excepthook=sys.excepthook
    )
    place = shell.configurables.index(shell.history_manager)
    shell.init_history()
    shell.configurables[place] = shell.configurables.pop()
    shell.init_user_ns()
    # Who registers last comes first: before the kernel's connections are closed.
    atexit.unregister(shell.atexit_operations)
    atexit.register(shell.atexit_operations)


def rehearse_cell(app: Any) -> None:
    """Use what the first cell will use and what keeps no trace of it, to have its memory here."""
    with contextlib.suppress(Exception):
        source = app.kernel.shell.transform_cell("0")
        compile(app.kernel.shell.compile.ast_parse(source), "", "exec")
        parts = [app.session.pack(each) for each in ({}, {"x": "0"}, {}, {})]
        app.session.sign(parts)
        for part in parts:
            app.session.unpack(part)


def be_kernel(
    channel: socket.socket,
    folder: Path,
    connection: dict[str, Any],
    options: dict[str, Any],
    protect: Callable[[Sequence[Path], Sequence[Path]], bool],
    *,
    leisure: bool,
) -> None:
    """An ordinary IPython kernel that pauses in the middle of its start."""
    import atexit
    import threading

    def pause() -> None:
        if leisure:
            rehearse_cell(app)
        channel.send(b"r")
        assignment, _ = receive(channel)
        if assignment is None:
            os._exit(0)
        channel.send(b"t")
        adopt(assignment)
        if guard := assignment["guard"]:
            protect(*([Path(path) for path in each] for each in guard))

    arguments = options["launch"]["arguments"]
    file = str(folder / CONNECTION)
    Path(file).write_text(json.dumps(connection))
    history = [] if any(HISTORY in each for each in arguments) else [f"--{HISTORY}=:memory:"]
    sys.argv = [options["launcher"], "-f", file, *arguments, *history]
    app: Any = options["app"]
    if app is not None and app.has_settings():  # which are new
        forget_app(app)
        app = None
    app = app or new_app()
    app.config.IPKernelApp.connection_file = app.connection_file = file
    app.pause = pause
    app.initialize(arguments)
    app.kernel._process_children = list  # the runner ends them, without ipykernel's long waits
    send(channel, introduce(app))
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
    if is_alone(options["processes"]):
        with contextlib.suppress(OSError):
            send(channel, {"left": True})
    os._exit(0)


def is_alone(processes: Any) -> bool:
    """Whether nothing is left running that this kernel has started, here or with its keeper."""
    keeper = os.getppid()
    try:
        kept = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
    except OSError:
        return False
    return kept == [str(os.getpid())] and not processes.children()


def introduce(app: Any) -> dict[str, Any]:
    """What a kernel would answer when it is asked, said before, because an answer takes long; and
    whether it welcomes who listens, which shows that it is heard."""
    import zmq

    welcomes = getattr(app.iopub_thread, "session", None) and app.iopub_socket.type == zmq.XPUB
    return {"language_info": app.kernel.language_info, "welcomes": bool(welcomes)}


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
