"""Files on a volume that the server and the pod see at the same path: nothing is sent."""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path

from ..runner.one_file import bundle
from ..runner.outcome import INTERRUPTED
from ..runtimes.base import Attempt
from ..safe_files import write_whole
from .base import PYTHON, Mounts, Sent, SharedVolume, Transfer

SCRATCH = "/convect-view"
"""Where a step keeps what it writes, until it has ended."""


class SharedVolumeTransfer(Transfer):
    way = "shared"

    def __init__(self, volumes: tuple[SharedVolume, ...]) -> None:
        self._volumes = volumes

    def mounts(self) -> Mounts:
        return Mounts(self._volumes, (SCRATCH,))

    def put(self, attempt: Attempt) -> Sent:
        write_stop(attempt.folder, "failed", INTERRUPTED)
        command = (PYTHON, str(_runner_beside(attempt.runs)), str(attempt.folder))
        return Sent(command, {"CONVECT_SCRATCH": SCRATCH})


def write_stop(folder: Path, state: str, reason: str) -> None:
    """What the runner finds when it is stopped."""
    write_whole(folder / "stop.json", stop_record(state, reason))


def stop_record(state: str, reason: str) -> bytes:
    return json.dumps({"state": state, "reason": reason}).encode()


def _runner_beside(runs: Path) -> Path:
    """The runner in the folder of the runs, where the pod sees it too; one for each version."""
    content, digest = _runner()
    path = runs / ".runner" / f"{digest}.pyz"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        write_whole(path, content)
    return path


@functools.cache
def _runner() -> tuple[bytes, str]:
    content = bundle()
    return content, hashlib.sha256(content).hexdigest()[:16]
