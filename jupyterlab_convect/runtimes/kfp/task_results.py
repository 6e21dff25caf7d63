"""Brings home what a task of Kubeflow has left: in its log, on a volume, in an object store."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path

from ...errors import Refused
from ...transfer.agent import MARK
from ...transfer.receive import LogReceiver
from ...transfer.s3 import S3Transfer
from ..base import Attempt
from .volume_files import FOLDER

_KEPT = re.compile(re.escape(MARK).encode() + rb'{"kept": "([0-9a-f]{32})"}')
_STORED = re.compile(
    re.escape(MARK).encode() + rb'{"stored": "([0-9a-f]{32})", "digest": "([0-9a-f]{64})"}'
)


class TaskReceiver(LogReceiver):
    """One reading of the log of a task, from its beginning."""

    def __init__(self, attempt: Attempt) -> None:
        super().__init__(attempt.folder)
        self._attempt = attempt
        self._stored: tuple[str, str] | None = None

    @property
    def is_stored(self) -> bool:
        """Whether the results are in the object store, and still have to be taken from there."""
        return self._stored is not None and not (self.folder / "outputs.json").exists()

    def take_stored(self, store: S3Transfer | None) -> None:
        """May block for long. A ConvectError as long as it cannot be."""
        assert self._stored is not None
        if store is None:
            raise Refused("No object store is configured.", code="no-object-store")
        store.take_left(self._attempt.run, *self._stored, self.folder)

    def _take_line(self, line: bytes) -> None:
        if found := _KEPT.fullmatch(line):
            self._take_kept(found[1].decode())
        elif found := _STORED.fullmatch(line):
            self._stored = found[1].decode(), found[2].decode()
        else:
            super()._take_line(line)

    def _take_kept(self, name: str) -> None:
        """What is on the volume: regular files alone."""
        kept = self._attempt.runs / FOLDER / self._attempt.run / name
        for inside in ("files", "made"):
            if kept.is_symlink() or (kept / inside).is_symlink():
                continue
            for place, _, names in os.walk(kept / inside):
                for each in names:
                    path = Path(place, each)
                    if path.is_symlink() or not path.is_file():
                        continue
                    target = self.folder / path.relative_to(kept)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with contextlib.suppress(OSError):
                        shutil.copyfile(path, target)
        shutil.rmtree(kept, ignore_errors=True)
