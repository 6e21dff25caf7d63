"""A run folder as a zip, made while it is sent: no copy on disk, no copy in memory."""

from __future__ import annotations

import io
import os
import re
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from ..safe_files import open_regular

if TYPE_CHECKING:
    from typing_extensions import Buffer

CHUNK = 1 << 18
_LEASE = re.compile(r"lease(-\d+)?\.json")


def archive(folder: Path) -> Iterator[bytes]:
    """The bytes of a zip with all that lies in `folder`, under the folder's name.

    Files keep their modes. Links, FIFOs and the like are left out, and so are the marks of a
    running engine.
    """
    sink = _Sink()
    with zipfile.ZipFile(
        cast("IO[bytes]", sink), "w", zipfile.ZIP_DEFLATED, compresslevel=1
    ) as whole:
        for file in _files(folder):
            try:
                source = open_regular(file)
            except OSError:
                continue  # It is a link or a FIFO, or it is gone because the run is at work.
            with source:
                name = str(Path(folder.name) / file.relative_to(folder))
                entry = _entry(name, os.fstat(source.fileno()))
                with whole.open(entry, "w", force_zip64=entry.file_size > 1 << 30) as target:
                    while data := source.read(CHUNK):
                        target.write(data)
                        yield sink.take()
            yield sink.take()
    yield sink.take()


def _files(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            file = Path(parent, name)
            if not _is_mark(file.relative_to(folder)):
                yield file


def _is_mark(path: Path) -> bool:
    """Whether a file of a run folder is a lease or a draft, and of no use to anybody else.

    What steps leave lies deeper than what engine and runner write: `steps/<step>/<attempt>/`.
    """
    is_ours = len(path.parts) == 1 or (path.parts[0] == "steps" and len(path.parts) <= 4)
    return is_ours and (path.name.startswith(".") or bool(_LEASE.fullmatch(path.name)))


def _entry(name: str, status: os.stat_result) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)
    when = time.localtime(status.st_mtime)[:6]
    if 1980 <= when[0] <= 2107:  # all the years that a zip knows
        entry.date_time = when
    entry.external_attr = status.st_mode << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.file_size = status.st_size
    return entry


class _Sink(io.RawIOBase):
    """What `zipfile` writes to: no seeking, so it never goes back."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer) -> int:
        self._parts.append(bytes(data))
        return len(self._parts[-1])

    def take(self) -> bytes:
        taken = b"".join(self._parts)
        self._parts.clear()
        return taken
