"""Whole files or none, and not too often."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees the old one or the new one, never a part."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(content)
        draft.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


class Pace:
    """Keeps saving below a quarter of the time: after each save three times as long a pause."""

    def __init__(self, least: float = 1.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._least = least
        self._clock = clock
        self._next = clock() + least

    def due(self) -> bool:
        return self._clock() >= self._next

    def save(self, write: Callable[[], None]) -> None:
        start = self._clock()
        try:
            write()
        finally:
            end = self._clock()
            self._next = end + max(self._least, 3 * (end - start))
