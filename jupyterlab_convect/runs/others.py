"""What other processes do to the runs: a terminal, another server, another machine."""

from __future__ import annotations

import time
from collections.abc import Collection

from .store import Store

RECENT = 60.0
"""Seconds by which the clock of another machine may be behind when it makes a run."""


class Others:
    """Notices by the index, which all processes of a machine share, that somebody wrote."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, tuple[int, bool]] | None = None

    @property
    def recent(self) -> Collection[str]:
        """The runs that had not ended or were new at the last look."""
        return self._known or {}

    def look(self) -> list[str]:
        """The runs that were made, went on, ended or were deleted since the last look.

        Also those of this process: whoever told of them already knows.
        """
        before = self._known
        self._known = found = self._store.recent_runs(time.time() - RECENT)
        if before is None:
            return []
        changed = [run_id for run_id, facts in found.items() if before.get(run_id) != facts]
        over = [run_id for run_id, (_, live) in before.items() if live and run_id not in found]
        return changed + over
