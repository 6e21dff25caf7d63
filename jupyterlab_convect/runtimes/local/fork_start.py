"""Starts warm processes.

It imports little, so that the command line can start them before it imports all the rest: they
get ready meanwhile, on another processor.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...filesystems import socket_folders
from ...secret_values import without_secrets

SCRIPT = Path(__file__).with_name("fork_server.py")
VIEWS = [str(SCRIPT.parents[2] / "runner" / name) for name in ("overlay.py", "landlock.py")]
SUPPORTED = sys.platform == "linux" and hasattr(os, "pidfd_open")
"""Only Linux forks safely with the libraries involved, and finds processes again."""
IDLE = 600.0
"""Seconds without a run until a warm process gives its memory back."""
SPARES = 2
"""Kernels that are kept ready."""

Launch = Mapping[str, Any]
"""How an interpreter is started."""


class Started(NamedTuple):
    process: subprocess.Popen[bytes]
    control: socket.socket

    def end(self) -> None:
        self.control.close()
        self.process.kill()
        self.process.wait()


_early: dict[str, Started] = {}
"""Warm processes that nobody has asked for yet, by their options."""


def own_launch() -> dict[str, Any]:
    """The launch of a plain kernel by this interpreter."""
    return {"interpreter": sys.executable, "flags": [], "arguments": [], "env": {}}


def options_for(launch: Launch | None, spares: int, idle: float) -> dict[str, Any]:
    """What a warm process is told; `launch` is that of the kernels it forks, None for runners."""
    return {
        "runner": launch is None,
        "launch": launch,
        "spares": spares,
        "idle": idle,
        "sockets": socket_folders(),
        "views": VIEWS,
        "eager": False,
    }


def start(options: Mapping[str, Any]) -> Started:
    """A warm process with these options, which may have been started already."""
    found = _early.pop(json.dumps(options, sort_keys=True), None)
    return _start(options) if found is None else found


def start_early(spares: int, idle: float) -> None:
    """Start the warm processes that a run of an ordinary notebook will ask for, that of kernels
    first, which takes longest to get ready."""
    for launch in (own_launch(), None):
        options = options_for(launch, spares, idle)
        _early[json.dumps(options, sort_keys=True)] = _start(options)


def end_unused() -> None:
    """End those that were started early and that nobody asked for."""
    while _early:
        _early.popitem()[1].end()


def _start(options: Mapping[str, Any]) -> Started:
    launch = options["launch"] or own_launch()
    ours, theirs = socket.socketpair()
    words = [str(SCRIPT), str(theirs.fileno()), json.dumps(options)]
    try:
        process = subprocess.Popen(
            [launch["interpreter"], *launch["flags"], *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**without_secrets(os.environ), **launch["env"]},
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()
    return Started(process, ours)
