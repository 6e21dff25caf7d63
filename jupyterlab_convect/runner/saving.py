"""Whole files or none, and not too often."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..run_files import write_whole

__all__ = ["Pace", "write_whole"]


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
