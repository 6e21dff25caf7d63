"""A run folder as a zip, made while it is sent: no copy on disk, no copy in memory."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

if TYPE_CHECKING:
    from typing_extensions import Buffer

CHUNK = 1 << 18


def archive(folder: Path) -> Iterator[bytes]:
    """The bytes of a zip with all that lies in `folder`, under the folder's name.

    Links and the marks of a running engine are left out.
    """
    sink = _Sink()
    with zipfile.ZipFile(
        cast("IO[bytes]", sink), "w", zipfile.ZIP_DEFLATED, compresslevel=1
    ) as whole:
        for file in _files(folder):
            try:
                source = file.open("rb")
            except OSError:
                continue  # It was there a moment ago: the run is at work.
            with source:
                name = str(Path(folder.name) / file.relative_to(folder))
                entry = zipfile.ZipInfo.from_file(file, name, strict_timestamps=False)
                entry.compress_type = zipfile.ZIP_DEFLATED
                with whole.open(entry, "w", force_zip64=entry.file_size > 1 << 30) as target:
                    while data := source.read(CHUNK):
                        target.write(data)
                        yield sink.take()
            yield sink.take()
    yield sink.take()


def _files(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            file = Path(place, name)
            if not (name.startswith(".") or name == "lease.json" or file.is_symlink()):
                yield file


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
