"""Files on a volume that the tasks of Kubeflow and we see at the same path."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import time
from pathlib import Path

from ...safe_files import make_folder, write_whole
from ...transfer.base import KEPT

FOLDER = ".kfp"
"""Where they are, in the folder of the runs."""


class VolumeFiles:
    """Those of one run."""

    def __init__(self, runs: Path, run: str) -> None:
        self.folder = runs / FOLDER / run

    def share(self, data: bytes) -> tuple[str, str]:
        """Keep them; the address where a task finds them, and their digest."""
        digest = hashlib.sha256(data).hexdigest()
        path = self.folder / f"{digest}.tar"
        write_whole(path, data)
        return path.as_uri(), digest

    def open(self) -> None:
        """Make the folder, and remove those that nobody has asked for in a week."""
        make_folder(self.folder)
        for other in self.folder.parent.iterdir():
            with contextlib.suppress(OSError):
                if time.time() - other.stat().st_mtime > KEPT:
                    shutil.rmtree(other)
