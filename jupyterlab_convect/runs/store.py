"""The folder of the runs: the only place that reads and writes it.

Every method may be called from any thread. What `read` returns is live and shared:
look, do not touch.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from .events import Event
from .index import Index, Page, Query
from .model import Run, RunState


ALL = Query()


class Record(NamedTuple):
    run: Run
    state: RunState


class Store:
    """Processes of one machine may share `index`, and machines may share `folder`."""

    def __init__(self, folder: Path, index: Index) -> None:
        self.folder = folder
        self.index = index

    def create(self, run: Run) -> RunState:
        """Write `run.json`; from then on the run exists, queued."""
        raise NotImplementedError

    def read(self, run_id: str) -> Record:
        """The run and its state now. Missing when there is none."""
        raise NotImplementedError

    def find(self, query: Query = ALL) -> Page:
        """A page of runs, the newest first unless asked otherwise."""
        raise NotImplementedError

    def change(
        self,
        run_id: str,
        *,
        name: str | None = None,
        labels: dict[str, str] | None = None,
        note: str | None = None,
    ) -> RunState:
        """Rename, label (all labels at once) or annotate; None leaves as it is."""
        raise NotImplementedError

    def ask_stop(self, run_id: str, step: str | None = None) -> RunState:
        """Leave word for whoever drives the run; `Engine.stop` is quicker where it is at hand."""
        raise NotImplementedError

    def append(self, run_id: str, *events: Event) -> RunState:
        """Write what happened. Only for the holder of the lease."""
        raise NotImplementedError

    def run_folder(self, run_id: str) -> Path:
        raise NotImplementedError

    def attempt_folder(self, run_id: str, step_id: str, attempt: int) -> Path:
        """Where the attempt's files lie. It says nothing of whether they do."""
        raise NotImplementedError

    def result_folder(self, run_id: str, step_id: str) -> Path | None:
        """The folder of the attempt that has the step's result, also when it was taken over."""
        raise NotImplementedError

    def delete(self, run_id: str) -> None:
        """Remove the run and all that it left. Conflict while it runs."""
        raise NotImplementedError

    def prune(
        self,
        *,
        keep_days: float = 0,
        keep_runs: int = 0,
        keep_bytes: int = 0,
        dry_run: bool = False,
    ) -> list[str]:
        """Delete ended runs, the oldest first, until all limits hold; 0 is no limit.

        Returns the ids of what was (or would be) deleted.
        """
        raise NotImplementedError

    def refresh(self) -> None:
        """Make the index agree with the folders: runs of other hosts, or all after a loss."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError
