"""A warm process: it has imported what its children need, and forks.

Run as a script, by any interpreter, with nothing but the standard library around it:
`python fork_server.py <socket fd> <options as JSON>`. One kind forks runners. The other, one
for each interpreter, has ipykernel imported and nothing that an ordinary kernel has not,
and forks kernels. It keeps spares ready, processes that wait for their one order: see
`fork_children.py`.

A warm process never has a thread, a ZeroMQ context or an event loop, so that forking is
safe. It ends when its owner closes the socket, or after `idle` seconds without an order;
what it has started continues.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import json
import os
import select
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from . import fork_children as children
else:
    # A script finds its neighbours by their path, and no kernel finds them among its modules.
    _found = importlib.util.spec_from_file_location(
        "fork_children", Path(__file__).with_name("fork_children.py")
    )
    children = importlib.util.module_from_spec(_found)
    _found.loader.exec_module(children)

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
    "jupyterlab_convect.runner.attempt",
    "jupyterlab_convect.runner.environment",
    "jupyterlab_convect.runner.execution",
    "jupyterlab_convect.runner.forked_kernel",
    "asyncio.subprocess",
)
COURTESY, HASTE = 0.15, 0.03
"""Seconds after an order in which its step has the processors for itself; when the next
is likely to follow, because this one did."""
CLOSELY = 1.0
"""Seconds between two orders that follow each other."""
TRIES = 3
"""Processes forked for one order, when they die before they can take it."""
ANSWER = 20.0
"""Seconds a spare has to take an order."""
REST = (0.1, 30.0)
"""Seconds until the next spare is forked after one that died unused; doubled each time, at most."""


class ForkServer:
    def __init__(self, control: socket.socket, options: dict[str, Any]) -> None:
        self.control = control
        self.options = options
        self.spares: list[tuple[int, socket.socket]] = []
        self.later = False
        """Whether something is left to import when there is nothing else to do."""
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
            sys.modules["ssl"] = None  # type: ignore[assignment]  # a runner has no use for it
            importlib.import_module("asyncio")
            del sys.modules["ssl"]
            for name in RUNNER_MODULES:
                importlib.import_module(name)
            # To find kernels takes the system's list of users, which is slow the first time.
            sys.modules["jupyterlab_convect.runner.kernels"].installed()
            sys.modules["jupyterlab_convect.runner.environment"].host()
            self.later = True  # papermill: only parameters need it, and it takes long
        else:
            # Nobody debugs a step, and the debugger is a fifth of what a kernel loads.
            sys.modules["debugpy"] = None  # type: ignore[assignment]
            importlib.import_module(KERNEL_MODULES[0])
            for name in KERNEL_MODULES[1:]:
                with contextlib.suppress(ImportError):
                    importlib.import_module(name)
            del sys.modules["debugpy"]
            rehearse()
            self.options["views"] = [children.load(path) for path in self.options["views"]]
            self.options["launcher"] = launcher()
            self.options["app"] = children.begin_app(self.options["launch"]["arguments"])
        self.options["processes"] = load_processes()
        tempfile.gettempdir()  # tries it out, once for all
        gc.freeze()
        gc.enable()

    def preload_more(self) -> None:
        self.later = False
        with contextlib.suppress(Exception):  # the runner says what is missing, if it needs it
            sys.modules["jupyterlab_convect.runner.notebooks"].papermill()
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
                order, descriptors = children.receive(self.control)
                if order is None:
                    return
                used, before = time.monotonic(), used
                courtesy = HASTE if used - before < CLOSELY else COURTESY
                pid = self.give(order, descriptors)
                for descriptor in descriptors:
                    os.close(descriptor)
                children.send(self.control, {"id": order["id"], "pid": pid})

    def give(self, order: dict[str, Any], descriptors: list[int]) -> int | None:
        """Have a spare do it, or a process forked for it; None when they all die first."""
        for _ in range(len(self.spares) + TRIES):
            try:
                pid, channel = self.spares.pop(0) if self.spares else self.fork(leisure=False)
            except OSError:  # no more processes, or no memory
                continue
            with channel:
                try:
                    channel.settimeout(ANSWER)
                    children.send(channel, order, descriptors)
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
            children.start_over({theirs.fileno()})
            os.setsid()
            children.spare(theirs, self.options, leisure=leisure)
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


def load_processes() -> Any:
    """The one module of ours that a keeper needs, where no kernel finds it among its own."""
    name = "jupyterlab_convect.runner.processes"
    if name in sys.modules:
        return sys.modules[name]
    path = Path(__file__).parents[2] / "runner" / "processes.py"
    return SimpleNamespace(**children.load(str(path)))


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


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    sys.path.pop(0)  # the folder of this script, which is nobody's business
    server = ForkServer(control, json.loads(sys.argv[2]))
    try:
        server.preload()
    except Exception as error:
        children.send(control, {"failed": f"{type(error).__name__}: {error}"})
        sys.exit(1)
    if server.options["eager"]:
        while len(server.spares) < server.options["spares"] and not server.deaths:
            server.add_spare(leisure=True)
    children.send(control, {"ready": True})
    server.serve()


if __name__ == "__main__":
    main()
