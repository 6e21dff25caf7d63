"""What a step leaves in its attempt folder while it runs: log, events, values, metrics."""

from __future__ import annotations

import math
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from ..json_text import dumps, loads, number
from ..safe_files import append_to, open_regular
from ..text import size_text
from .masking import Mask
from .outcome import StepFailed
from .step import REPLICA_LOGS, VALUES

LAST_WORDS = 4000
"""Letters that are shown of what a process said last."""
LARGEST_VALUE = 256 * 1024
LONGEST_LINE = 64 * 1024
MARK_INTERVAL = 1.0
"""Seconds of one stream that are not told apart."""
MOST_MARKS = 20_000
BUDGET = 1.0
"""Seconds that one pattern may take for one line."""


class StepRecord:
    """The only writer of `log.txt` and `events.ndjson`; masks and limits what goes there.

    A disk that is full does not end the step by itself: the first trouble is kept in
    `trouble`, and the rest of the writing is given up.
    """

    def __init__(
        self,
        folder: Path,
        mask: Mask | None = None,
        patterns: Mapping[str, str] | None = None,
        log_limit: int = 100_000_000,
        event_limit: int = 50_000_000,
    ) -> None:
        self.folder = folder
        self.mask = mask or Mask()
        self.values: dict[str, Any] = {}
        self.metrics: dict[str, float] = {}
        self.parameters: dict[str, Any] = {}
        self.trouble: OSError | None = None
        self.values_path = folder / VALUES
        self.log_limit = log_limit
        self._patterns = Patterns(patterns or {}, lambda note: self._log.write(note))
        self._events = _Lines(self, folder / "events.ndjson", event_limit)
        self._log = _Lines(self, folder / "log.txt", log_limit)
        self._held = ""
        self._marked: tuple[float, str | None] = (-math.inf, None)
        self._marks_left = MOST_MARKS
        self._values_read = 0

    def event(self, kind: str, /, **data: Any) -> None:
        entry = self.mask.tree({"time": round(time.time(), 6), "type": kind, **data})
        self._events.write(dumps(entry) + "\n")

    def search(self, text: str) -> None:
        """Look for metrics in what the step says."""
        if self._patterns:
            for name, found in self._patterns.find(text):
                self.report("metric", name, found)

    def log(self, text: str, stream: str | None = None) -> None:
        """Add to the log at once, except what may be the beginning of a secret.

        `stream` is by what it was written, where that is known.
        """
        self.search(text)
        self.add_to_log(text, stream)

    def add_to_log(self, text: str, stream: str | None = None) -> None:
        """The same for what has no metrics of the step in it."""
        if text:
            self._mark(stream)
        if self.mask:
            text = self.mask(self._held + text)
            keep = len(text) - self.mask.unfinished(text)
            text, self._held = text[:keep], text[keep:]
        self._log.write(
            text, f"\n[The log ends here: it is longer than {size_text(self._log.limit)}.]\n"
        )

    def _mark(self, stream: str | None) -> None:
        """Have the events say when and by what the log goes on from here."""
        now = time.monotonic()
        is_same = stream == self._marked[1] and now - self._marked[0] < MARK_INTERVAL
        if not is_same and self._marks_left:
            self._marks_left -= 1
            self._marked = (now, stream)
            self.event("log", offset=self._log.size, stream=stream)

    def read_values(self) -> None:
        """Take over what the step has reported since the last time."""
        try:
            with open_regular(self.values_path) as file:
                file.seek(self._values_read)
                content = file.read()
        except OSError:
            return
        whole = content.rfind(b"\n") + 1
        self._values_read += whole
        for line in content[:whole].splitlines():
            try:
                entry = loads(line)
                self.report(
                    entry["kind"],
                    entry["name"],
                    entry["value"],
                    entry.get("step"),
                    entry.get("time"),
                )
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                shown = line[:200].decode(errors="replace")
                self.log(f"[A line in CONVECT_VALUES was not understood: {shown}]\n")

    def report(self, kind: str, name: str, value: Any, step: Any = None, at: Any = None) -> None:
        """Take a value or a metric that was reported `at` a time, now unless it is given."""
        if not isinstance(name, str):
            raise TypeError(name)
        if kind == "metric":
            # Some languages write a NaN as null.
            self.metrics[name] = found = math.nan if value is None else number(value)
            reported = {"time": at} if isinstance(at, int | float) else {}
            self.event("metric", name=name, value=found, step=step, **reported)
        elif kind == "output":
            value = self.mask.tree(value)
            if len(dumps(value)) > LARGEST_VALUE:
                self.log(
                    f"[The value of {name} is larger than {size_text(LARGEST_VALUE)}; left out.]\n"
                )
                return
            self.values[name] = value
            self.event("output", name=name, value=value)
        else:
            raise ValueError(kind)

    def close(self) -> None:
        """The end. What was reported is in the events now, masked, so its file goes."""
        self.read_values()
        self.values_path.unlink(missing_ok=True)
        for name, found in self._patterns.finish():
            self.report("metric", name, found)
        held, self._held = self._held, ""
        self._log.write(held)
        self._log.close()
        self._events.close()


class ReplicaLog:
    """The log of one replica. Whole lines of it go to the log of the step, after its rank."""

    def __init__(self, record: StepRecord, rank: int, *, counts: bool) -> None:
        self.last = ""
        """The last line that says something."""
        self.said = ""
        """The end of all that it said."""
        self._record = record
        self._rank = rank
        self._counts = counts
        self._held = self._line = ""
        folder = record.folder / REPLICA_LOGS
        folder.mkdir(exist_ok=True)
        self._file = _Lines(record, folder / f"{rank}.log", record.log_limit)

    def write(self, text: str) -> None:
        if self._counts:
            self._record.search(text)
        text = self._record.mask(self._held + text)
        keep = len(text) - self._record.mask.unfinished(text)
        text, self._held = text[:keep], text[keep:]
        self._add(text)

    def _add(self, text: str) -> None:
        note = f"\n[The log ends here: it is longer than {size_text(self._file.limit)}.]\n"
        self._file.write(text, note)
        self.said = (self.said + text)[-LAST_WORDS:]
        whole, newline, self._line = (self._line + text).rpartition("\n")
        if len(self._line) > LONGEST_LINE:
            whole, newline, self._line = f"{whole}{newline}{self._line}", "\n", ""
        if newline:
            lines = whole.split("\n")
            # Of a line that a progress bar writes again and again, the last state counts.
            shown = [line.rstrip("\r").rpartition("\r")[2] for line in lines]
            self.last = next((line for line in reversed(shown) if line.strip()), self.last)
            prefixed = "".join(f"[{self._rank}] {line}\n" for line in shown)
            self._record.add_to_log(prefixed)

    def close(self) -> None:
        held, self._held = self._held, ""
        self._add(held + ("\n" if (self._line + held) else ""))
        self._file.close()


class _Lines:
    """A file that is appended to, up to a limit."""

    def __init__(self, record: StepRecord, path: Path, limit: int) -> None:
        self.limit = limit
        self._record = record
        self._file = append_to(path)
        self._room = limit
        self._full = False

    @property
    def size(self) -> int:
        return os.fstat(self._file).st_size

    def write(self, text: str, note: str = "") -> None:
        if not text or self._full or self._record.trouble:
            return
        data = text.encode(errors="replace")
        if len(data) > self._room:
            data = data[: self._room] if note else b""
            data += note.encode()
            self._full = True
        self._room -= len(data)
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError as error:
            self._record.trouble = error

    def close(self) -> None:
        os.close(self._file)


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
                "it is no longer searched for.]\n"
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
