"""Reads the scalars of TensorBoard's event files while a step writes them, without TensorBoard.

An event file is a sequence of records: the length of the data (8 bytes), a checksum of the length
(4), the data, and a checksum of the data (4). The data is a protobuf message `Event`.
"""

from __future__ import annotations

import contextlib
import os
import struct
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

MARK = "tfevents"
"""What the name of every event file contains."""
INTERVAL = 2.0
SHARE = 20
"""A search that takes long is repeated after so many times as long."""
LARGEST_READ = 4 << 20
LARGEST_RECORD = 64 << 20
MOST_ENTRIES, DEEPEST = 20_000, 12
STRIDE = 2000
"""After so many points of a curve every second one is left out, and so on."""
_FORMATS = {1: "<f", 2: "<d", 3: "<i", 9: "<q"}
"""Of the types of tensors that hold numbers."""

Report = Callable[[str, float, int, float], object]
"""Takes the name, the value, the step and the time of a point."""


class Scalar(NamedTuple):
    tag: str
    value: float
    step: int
    time: float


@dataclass(slots=True)
class _Curve:
    name: str
    seen: int = 0
    last: Scalar | None = None
    """The newest point, if it was left out."""

    def is_kept(self) -> bool:
        self.seen += 1
        return self.seen % (1 << (self.seen // STRIDE).bit_length()) == 0


@dataclass
class EventFiles:
    """The event files that were written since a moment."""

    since: float
    report: Report
    known: Collection[str] = ()
    """The metrics that are reported so far: what the step reports itself is not reported twice."""
    _read: dict[Path, int] = field(default_factory=dict)
    _curves: dict[tuple[Path, str], _Curve] = field(default_factory=dict)
    _told: set[str] = field(default_factory=set)
    _due: float = 0.0

    def look(self, folder: Path) -> None:
        """Once in a while, report what is new below a folder."""
        began = time.monotonic()
        if began >= self._due:
            self._look(folder)
            ended = time.monotonic()
            self._due = ended + max(INTERVAL, SHARE * (ended - began))

    def finish(self, folder: Path) -> None:
        """Report whatever is left."""
        self._look(folder)
        for curve in self._curves.values():
            if curve.last is not None:
                self._tell(curve, curve.last)

    def _look(self, folder: Path) -> None:
        for path in self._find(folder):
            self._read.setdefault(path, 0)
        for path in self._read:
            self._take(path)

    def _find(self, top: Path) -> Iterator[Path]:
        left = MOST_ENTRIES
        depth = len(top.parts)
        for parent, folders, names in os.walk(top):
            left -= len(folders) + len(names)
            if left < 0:
                return
            is_deep = len(Path(parent).parts) - depth >= DEEPEST
            folders[:] = [] if is_deep else [each for each in folders if not each.startswith(".")]
            for name in names:
                path = Path(parent, name)
                if MARK in name and path not in self._read and self._is_new(path):
                    yield path

    def _is_new(self, path: Path) -> bool:
        with contextlib.suppress(OSError):
            return not path.is_symlink() and path.stat().st_mtime >= self.since
        return False

    def _take(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                while True:
                    file.seek(self._read[path])
                    data = file.read(LARGEST_READ)
                    scalars, used = scalars_in(data)
                    if not used and len(data) == LARGEST_READ:
                        data += file.read(LARGEST_RECORD)
                        scalars, used = scalars_in(data)
                    for scalar in scalars:
                        self._add(path.parent, scalar)
                    self._read[path] += used
                    if not used:
                        return
        except OSError:
            return

    def _add(self, folder: Path, scalar: Scalar) -> None:
        key = (folder, scalar.tag)
        if key not in self._curves:
            is_known = any(curve.name == scalar.tag for curve in self._curves.values())
            name = f"{folder.name}/{scalar.tag}" if is_known else scalar.tag
            self._curves[key] = _Curve(name)
        curve = self._curves[key]
        if curve.is_kept():
            self._tell(curve, scalar)
        else:
            curve.last = scalar

    def _tell(self, curve: _Curve, scalar: Scalar) -> None:
        curve.last = None
        if curve.name in self._told or curve.name not in self.known:
            self._told.add(curve.name)
            self.report(curve.name, scalar.value, scalar.step, scalar.time)


def scalars_in(data: bytes) -> tuple[list[Scalar], int]:
    """The scalars in the whole records of `data`, and how many bytes those are.

    What is damaged is the end: whoever wrote it wrote no more.
    """
    found: list[Scalar] = []
    at = 0
    while at + 12 <= len(data):
        size, check = struct.unpack_from("<QI", data, at)
        end = at + 16 + size
        if size > LARGEST_RECORD or end > len(data) or check != masked_checksum(data[at : at + 8]):
            break
        with contextlib.suppress(ValueError, IndexError, struct.error):
            found += _event(data[at + 12 : end - 4])
        at = end
    return found, at


def masked_checksum(data: bytes) -> int:
    """CRC-32C, turned round and shifted as TensorFlow does."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def _event(data: bytes) -> Iterator[Scalar]:
    wall, step, summary = 0.0, 0, b""
    for number, value in _fields(data):
        if number == 1 and isinstance(value, bytes):
            (wall,) = struct.unpack("<d", value)
        elif number == 2 and isinstance(value, int):
            step = value - (1 << 64) if value >> 63 else value
        elif number == 5 and isinstance(value, bytes):
            summary = value
    for number, item in _fields(summary):
        if number == 1 and isinstance(item, bytes):
            tag, found = _value(item)
            if found is not None:
                yield Scalar(tag, found, step, wall)


def _value(data: bytes) -> tuple[str, float | None]:
    tag, found = "", None
    for number, value in _fields(data):
        if number == 1 and isinstance(value, bytes):
            tag = value.decode(errors="replace")
        elif number == 2 and isinstance(value, bytes):
            (found,) = struct.unpack("<f", value)
        elif number == 8 and isinstance(value, bytes):
            found = _scalar_of_tensor(value)
    return tag, found


def _scalar_of_tensor(data: bytes) -> float | None:
    """The number in a tensor without dimensions; None for any other, such as an image."""
    form, content, numbers = None, b"", b""
    for number, value in _fields(data):
        if number == 1 and isinstance(value, int):
            form = _FORMATS.get(value)
        elif number == 2 and isinstance(value, bytes):
            if any(part == 2 for part, _ in _fields(value)):
                return None
        elif number == 4 and isinstance(value, bytes):
            content = value
        elif number in (5, 6) and isinstance(value, bytes):
            numbers = value
    found = content or numbers
    if form is None or len(found) != struct.calcsize(form):
        return None
    return float(struct.unpack(form, found)[0])


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message: whole numbers as such, everything else as bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if kind == 2:
            size, at = _varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(kind)
        if at + size > len(data):
            raise ValueError(size)
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if not byte & 128:
            return value, at
        if shift > 63:
            raise ValueError(shift)
