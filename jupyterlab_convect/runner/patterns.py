"""Finds metrics in what a step prints, by the regular expressions of its user."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

from .outcome import StepFailed

LONGEST_LINE = 64 * 1024
BUDGET = 1.0
"""Seconds that one pattern may take for one line."""


class Patterns:
    """Looks at whole lines, and gives up a pattern that takes too long.

    Python's engine takes exponential time for some patterns, such as `((?:a+)+)$`.
    Nothing that the standard library has is linear, but the engine heeds signals.
    """

    def __init__(self, patterns: Mapping[str, str], warn: Callable[[str], None]) -> None:
        self._patterns = {name: _compiled(name, pattern) for name, pattern in patterns.items()}
        self._warn = warn
        self._rest = ""

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def find(self, text: str) -> list[tuple[str, float]]:
        """The metrics in the lines that `text` completes."""
        *lines, rest = re.split(r"[\r\n]+", self._rest + text)
        self._rest = rest[-LONGEST_LINE:]
        return [
            (name, number)
            for line in lines
            for name in tuple(self._patterns)
            for number in self._search(name, line[-LONGEST_LINE:])
        ]

    def finish(self) -> list[tuple[str, float]]:
        """The metrics in a last line that no new line ends."""
        return self.find("\n") if self._rest else []

    def _search(self, name: str, line: str) -> list[float]:
        pattern = self._patterns[name]
        try:
            with _within(BUDGET):
                texts = [
                    match.group(1 if pattern.groups else 0) for match in pattern.finditer(line)
                ]
        except TimeoutError:
            del self._patterns[name]
            self._warn(
                f"[The pattern of metric {name} took longer than {BUDGET:g} s for one line; "
                "it is not looked for any more.]\n"
            )
            return []
        return [number for text in texts if (number := _number(text)) is not None]


def _compiled(name: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise StepFailed(
            f"The pattern of metric {name} is not a regular expression: {error}."
        ) from error


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


@contextmanager
def _within(seconds: float) -> Iterator[None]:
    """TimeoutError after that time, also in the middle of a match; main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, _give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _give_up(number: int, frame: FrameType | None) -> None:
    raise TimeoutError
