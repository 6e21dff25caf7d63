"""How far steps are, read from the ends of their event files."""

from __future__ import annotations

import json
from collections.abc import Hashable

from ..runs.model import Progress
from ..safe_files import open_regular
from .base import Attempt

LARGEST_READ = 1 << 20


class Progresses:
    """Remembers where it read to, so that each look costs only what is new."""

    def __init__(self) -> None:
        self._offsets: dict[Hashable, int] = {}
        self._latest: dict[Hashable, Progress] = {}

    def read(self, attempt: Attempt) -> Progress | None:
        key = attempt.key
        offset = self._offsets.get(key, 0)
        try:
            with open_regular(attempt.folder / "events.ndjson") as file:
                file.seek(offset)
                data = file.read(LARGEST_READ)
        except OSError:
            return self._latest.get(key)
        whole = data.rfind(b"\n") + 1
        self._offsets[key] = offset + whole
        for line in reversed(data[:whole].splitlines()):
            if b'"progress"' in line and (found := _parse(line)):
                self._latest[key] = found
                break
        return self._latest.get(key)

    def forget(self, key: Hashable) -> None:
        self._offsets.pop(key, None)
        self._latest.pop(key, None)


def _parse(line: bytes) -> Progress | None:
    try:
        event = json.loads(line)
        if event["type"] != "progress":
            return None
        return Progress(event["cell"], event["cells"], event["elapsed"], event["expected"])
    except (ValueError, KeyError, TypeError):
        return None
