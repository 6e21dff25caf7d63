"""The workspace of this process for the Python API, with its engine in a thread."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ..detached import hand_over
from ..errors import Missing
from ..pools import LoopThread
from ..runs.model import ENDED, Request, Selection
from ..runs.versions import Version
from ..settings import load_settings
from ..workspace import Workspace
from .run_handles import RunHandle

T = TypeVar("T")


class ClientSession:
    """A workspace whose engine lives on an event loop in a thread of its own.

    A notebook has a running event loop already, and a script has none: this suits both.
    """

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.submitted: set[str] = set()
        self.sweeps: set[str] = set()
        self._thread = LoopThread("convect")

    def do(self, work: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Wait for work on the session's loop."""
        return self._thread.wait(work, timeout)

    def submit(self, request: Request) -> RunHandle:
        made = self.workspace.make(request)
        self.do(self.workspace.submit(made))
        self.submitted.add(made.id)
        return RunHandle(self, made.id)

    def again(self, run_id: str, selection: Selection, version: Version) -> RunHandle:
        return self.submit(self.workspace.again(run_id, selection, version=version))

    def close(self) -> None:
        """Let go of everything; what runs continues, and the next process picks it up."""
        self.do(self.workspace.close())
        self._thread.close()

    def is_busy(self) -> bool:
        """Whether something that was started here has not ended."""
        store, sweeps = self.workspace.store, self.workspace.sweeps
        try:
            return any(
                store.read(run_id).state.state not in ENDED for run_id in self.submitted
            ) or any(sweeps.view(sweep_id)["state"] not in ENDED for sweep_id in self.sweeps)
        except Missing:
            return True


_sessions: dict[int, ClientSession] = {}
_lock = threading.Lock()


def current_session() -> ClientSession:
    """The session of this process; a forked child makes its own."""
    with _lock:
        process = os.getpid()
        if process not in _sessions:
            _sessions[process] = ClientSession(Workspace(load_settings()))
            _before_threads_end(_leave)
        return _sessions[process]


def _before_threads_end(work: Callable[[], None]) -> None:
    """`atexit` comes too late: by then the pools of threads that the engine needs are closed.

    What is registered last is called first, so the pools have to be registered by now.
    """
    import concurrent.futures.thread  # noqa: F401

    getattr(threading, "_register_atexit", atexit.register)(work)


def _leave() -> None:
    session = _sessions.pop(os.getpid(), None)
    if session is None:
        return
    busy = session.is_busy()
    session.close()
    if busy:
        hand_over(session.workspace.settings)
