"""Files that are never seen half-written, on any file system and without locks."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..errors import ConvectError, words_of
from ..json_text import dumps, loads
from ..pipeline.plan import Json
from ..safe_files import (
    append_to,
    make_folder,
    open_regular,
    size_of_regular,
    write_new,
    write_whole,
)

__all__ = [
    "Changes",
    "Journal",
    "create_whole",
    "event_line",
    "events_in",
    "read_json",
    "read_owned_json",
    "remove_drafts",
    "write_json",
    "write_whole",
]


def create_whole(path: Path, data: bytes) -> bool:
    """Create the file, complete; False when there is one already."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        write_new(beside, data)
        try:
            path.hardlink_to(beside)
        except FileExistsError:
            return False
        except OSError:
            # A disk without links, on which a reader may find the file empty for a moment.
            return _create_without_link(path, data)
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()
    return True


def _create_without_link(path: Path, data: bytes) -> bool:
    try:
        write_new(path, data)
    except FileExistsError:
        return False
    return True


def remove_drafts(folder: Path) -> None:
    """Remove what a writer that was killed in the middle left beside its files."""
    for path in folder.glob(".*"):
        with contextlib.suppress(OSError):
            path.unlink()


def write_json(path: Path, value: Json) -> None:
    text = dumps(value, indent=1)
    # Lone surrogates are legal in JSON and in Python, but not in UTF-8.
    write_whole(path, text.encode("utf-8", "backslashreplace"))


def read_json(path: Path) -> dict[str, Json]:
    """The object in a JSON file; ConvectError when there is none that can be read."""
    return read_owned_json(path)[0]


def read_owned_json(path: Path) -> tuple[dict[str, Json], int]:
    """The same, and whom the file belongs to that was read."""
    try:
        with open_regular(path) as file:
            owner = os.fstat(file.fileno()).st_uid
            value = loads(file.read())
    except FileNotFoundError:
        raise ConvectError(f"{path.name} is missing.", code="damaged") from None
    except OSError as error:
        raise ConvectError(
            f"{path.name} cannot be read: {words_of(error)}.", code="damaged"
        ) from None
    except (ValueError, RecursionError) as error:
        raise ConvectError(f"{path.name} is damaged: {error}.", code="damaged") from None
    if not isinstance(value, dict):
        raise ConvectError(f"{path.name} is damaged: it is not a JSON object.", code="damaged")
    return value, owner


def event_line(event: Mapping[str, Json]) -> bytes:
    """Something that happens now, as one line of a journal."""
    text = dumps({"time": time.time(), **event})
    # Lone surrogates are legal in JSON and in Python, but not in UTF-8.
    return text.encode("utf-8", "backslashreplace") + b"\n"


def events_in(lines: Iterable[bytes]) -> list[dict[str, Json]]:
    """What lines of a journal say, as far as they can be read."""
    events = []
    for line in lines:
        with contextlib.suppress(ValueError):
            events.append(loads(line))
    return events


class Journal:
    """A file of lines that only grows, read from where it was left."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        """Bytes read so far, always at the start of a line."""
        self.owners: set[int] = set()
        """Whom the files belong to that were read."""

    def append(self, data: bytes) -> bool:
        """Add whole lines; True when that makes them read as well, because nothing was unread.

        What a killed writer left of a line is closed off first.
        """
        file = append_to(self.path, os.O_RDWR)
        try:
            size = os.lseek(file, 0, os.SEEK_END)
            if size:
                os.lseek(file, size - 1, os.SEEK_SET)
                if os.read(file, 1) != b"\n":
                    data = b"\n" + data
            written = os.write(file, data)
            if written != len(data):
                os.write(file, data[written:])  # Says what is wrong: no space, most likely.
            end = os.lseek(file, 0, os.SEEK_CUR)
        finally:
            os.close(file)
        # Somebody may have written in between, before or after the look at the size.
        if end != self.offset + len(data):
            return False
        self.offset = end
        return True

    def read(self) -> list[bytes] | None:
        """The lines since the last time; None when the file is not the one it was."""
        try:
            size = size_of_regular(self.path)
        except FileNotFoundError:
            return [] if self.offset == 0 else None
        if size == self.offset:
            return []
        if size < self.offset:
            return None
        with open_regular(self.path) as file:
            self.owners.add(os.fstat(file.fileno()).st_uid)
            file.seek(self.offset)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self.offset += len(whole)
        return whole.splitlines()


class Changes:
    """A folder to which anybody adds: one numbered file per change, read in their order."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0
        """Files read so far."""
        self.owners: set[int] = set()
        """Whom they and their folder belong to."""

    def add(self, data: bytes) -> None:
        """Add whole lines under the next number that is free."""
        make_folder(self.folder)
        number = self.count + 1
        while not create_whole(self._path(number), data):
            number += 1

    def read(self) -> list[bytes]:
        """The lines since the last time."""
        lines: list[bytes] = []
        while True:
            try:
                with open_regular(self._path(self.count + 1)) as file:
                    data, owner = file.read(), os.fstat(file.fileno()).st_uid
            except FileNotFoundError:
                return lines
            if not data.endswith(b"\n") and not self._path(self.count + 2).exists():
                return lines  # It is just being written.
            self.count += 1
            self.owners |= {owner, self.folder.lstat().st_uid}
            lines += data.splitlines()

    def has_more(self) -> bool:
        """Whether something came since the last time."""
        return self._path(self.count + 1).exists()

    def _path(self, number: int) -> Path:
        return self.folder / f"{number}.ndjson"
