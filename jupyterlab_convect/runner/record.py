"""What a step leaves in its attempt folder while it runs: log, events, values, metrics."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..json_text import dumps, loads, number
from ..run_files import append_to, open_regular
from .masking import Mask
from .outcome import size
from .patterns import Patterns
from .settings import VALUES

LARGEST_VALUE = 256 * 1024


class Record:
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
        self._patterns = Patterns(patterns or {}, lambda note: self._log.write(note))
        self._events = _Lines(self, folder / "events.ndjson", event_limit)
        self._log = _Lines(self, folder / "log.txt", log_limit)
        self._held = ""
        self._values_read = 0

    def event(self, kind: str, /, **data: Any) -> None:
        entry = self.mask.tree({"time": round(time.time(), 6), "type": kind, **data})
        self._events.write(dumps(entry) + "\n")

    def log(self, text: str) -> None:
        """Add to the log at once, except what may be the beginning of a secret."""
        if self._patterns:
            for name, found in self._patterns.find(text):
                self.report("metric", name, found)
        if self.mask:
            text = self.mask(self._held + text)
            keep = len(text) - self.mask.unfinished(text)
            text, self._held = text[:keep], text[keep:]
        self._log.write(
            text, f"\n[The log ends here: it is longer than {size(self._log.limit)}.]\n"
        )

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
                self.log(f"[The value of {name} is larger than {size(LARGEST_VALUE)}; left out.]\n")
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


class _Lines:
    """A file that is appended to, up to a limit."""

    def __init__(self, record: Record, path: Path, limit: int) -> None:
        self.limit = limit
        self._record = record
        self._file = append_to(path)
        self._room = limit
        self._full = False

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
