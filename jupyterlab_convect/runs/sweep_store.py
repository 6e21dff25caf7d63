"""The folders of sweeps: `sweeps/<id>` in the runs folder.

`sweep.json` says what was asked, `changes/` what anybody asked since (more points, runs
again, a stop, another name), and `events.ndjson` which runs the points got.
"""

from __future__ import annotations

import contextlib
import json
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import Conflict, ConvectError, Missing, words_of
from ..pipeline.plan import Json, from_json, to_json
from ..runner.layers import FileKey
from ..safe_files import make_folder
from .json_files import Changes, Journal, event_line, events_in, read_owned_json, write_json
from .model import Request, SweepSources
from .store import ID, Store
from .sweep_space import Mode, Point

KEPT_OPEN = 64
"""Sweeps whose events are kept in memory."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """The content of `sweep.json`."""

    id: str
    name: str
    created: float
    request: Request
    space: Json
    mode: Mode = "grid"
    concurrency: int | None = None
    select: str | None = None
    sources: SweepSources | None = None
    """None for one of an earlier version, whose points each took the files of their day."""


@dataclass(slots=True)
class SweepProgress:
    """The fold of a sweep's events."""

    points: list[Point] = field(default_factory=list)
    runs: dict[int, str] = field(default_factory=dict)
    """The last run of each point."""
    submitted: set[str] = field(default_factory=set)
    """Runs that are there for sure; of the others it was only decided to make them."""
    again: set[str] = field(default_factory=set)
    """Runs whose points are to be run again."""
    stopped: bool = False
    select: str | None = None
    """What was chosen since the sweep was made, if anything."""
    name: str | None = None
    """What it was called since, if anything."""

    def todo(self) -> list[int]:
        """The points that need a run."""
        if self.stopped:
            return []
        return [
            number
            for number in range(len(self.points))
            if (last := self.runs.get(number)) is None or last in self.again
        ]

    def unsure(self) -> list[str]:
        """Runs that were decided on, and of which nobody has written that they are there."""
        runs = self.runs.values()
        return [] if self.stopped else [run for run in runs if run not in self.submitted]

    def add(self, points: list[Point]) -> None:
        """Add those that are not there yet."""
        known = set(map(_text, self.points))
        self.points += [point for point in points if _text(point) not in known]


@dataclass(slots=True)
class _Opened:
    """What was read of the folder of a sweep so far."""

    sweep: Sweep
    key: FileKey
    """That of `sweep.json`."""
    owner: int
    journal: Journal
    changes: Changes
    happened: list[dict[str, Json]] = field(default_factory=list)
    asked: list[dict[str, Json]] = field(default_factory=list)

    def catch_up(self) -> bool:
        """Read what is new; False when the folder is not the one it was."""
        lines = self.journal.read()
        if lines is None:
            return False
        self.happened += events_in(lines)
        self.asked += events_in(self.changes.read())
        return True


class SweepStore:
    """Those of one runs folder. Every method may be called from any thread."""

    def __init__(self, runs: Store) -> None:
        self._runs = runs
        self._folder = runs.folder / "sweeps"
        self._opened: dict[str, _Opened] = {}
        self._lock = threading.Lock()

    def ids(self) -> list[str]:
        if not self._folder.is_dir():
            return []
        names = (path.name for path in self._folder.iterdir())
        return sorted((name for name in names if ID.fullmatch(name)), reverse=True)

    def read(self, sweep_id: str, *, own: bool = False) -> tuple[Sweep, SweepProgress]:
        """What was asked and what came of it; with `own`, Conflict when it is somebody else's."""
        folder = self._folder / sweep_id
        if not ID.fullmatch(sweep_id) or not folder.is_dir():
            raise Missing(f"There is no sweep {sweep_id!r}.")
        with self._lock:
            found = self._open(sweep_id, folder)
            progress = _fold([*found.happened, *found.asked])
        owners = {found.owner, *found.journal.owners, *found.changes.owners}
        if own and not self._runs.is_own_folder(folder, owners):
            raise Conflict(
                f"The sweep {sweep_id} belongs to another user, and only they can change it.",
                code="not-own",
            )
        return found.sweep, progress

    def _open(self, sweep_id: str, folder: Path) -> _Opened:
        """What is in its folder now."""
        path = folder / "sweep.json"
        known = self._opened.get(sweep_id)
        with contextlib.suppress(OSError):
            if known is not None and known.key == FileKey.of(path.lstat()) and known.catch_up():
                return known
        journal, changes = Journal(folder / "events.ndjson"), Changes(folder / "changes")
        try:
            key = FileKey.of(path.lstat())
            value, owner = read_owned_json(path)
            opened = _Opened(from_json(Sweep, value), key, owner, journal, changes)
        except (OSError, TypeError, ValueError, AttributeError) as error:
            raise ConvectError(f"The sweep {sweep_id} is damaged: {error}.") from None
        opened.catch_up()
        while len(self._opened) >= KEPT_OPEN:
            del self._opened[next(iter(self._opened))]
        self._opened[sweep_id] = opened
        return opened

    def write(self, sweep: Sweep, points: list[Point]) -> None:
        beside = self._folder / f".new-{sweep.id}"
        try:
            make_folder(self._folder, stat.S_IMODE(self._runs.folder.stat().st_mode))
            make_folder(beside, self._runs.folder_mode)
            write_json(beside / "sweep.json", to_json(sweep))
            Journal(beside / "events.ndjson").append(
                event_line({"type": "points", "points": points})
            )
            beside.rename(self._folder / sweep.id)
        except OSError as error:
            raise ConvectError(
                f"The sweep cannot be written to {self._folder}: {words_of(error)}.",
                code="unwritable",
            ) from None

    def note(self, sweep_id: str, *events: dict[str, Json]) -> None:
        """Write what happened. Only for the holder of the lease."""
        with _said(sweep_id):
            journal = Journal(self._folder / sweep_id / "events.ndjson")
            journal.append(b"".join(map(event_line, events)))

    def ask(self, sweep_id: str, event: dict[str, Json]) -> None:
        """Write what somebody wants, for whoever tends the sweep."""
        with _said(sweep_id):
            self.changes(sweep_id).add(event_line(event))

    def changes(self, sweep_id: str) -> Changes:
        """What anybody asked of it since it was made."""
        return Changes(self._folder / sweep_id / "changes")


@contextlib.contextmanager
def _said(sweep_id: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConvectError(
            f"The sweep {sweep_id} cannot be changed: {words_of(error)}.", code="unwritable"
        ) from None


def _text(point: Point) -> str:
    return json.dumps(point, sort_keys=True)


def _fold(events: list[dict[str, Json]]) -> SweepProgress:
    progress = SweepProgress()
    for event in events:
        try:
            kind = event["type"]
            if kind == "points":
                progress.add(event["points"])
                progress.stopped = False
            elif kind == "rerun":
                progress.again |= set(event["runs"])
                progress.stopped = False
            elif kind == "run":
                progress.runs[event["point"]] = event["run"]
            elif kind == "submitted":
                progress.submitted |= set(event["runs"])
            elif kind == "made":  # As earlier versions counted.
                progress.submitted |= set(progress.runs.values())
            elif kind == "unmade":
                lost = set(event["runs"])
                progress.runs = {n: run for n, run in progress.runs.items() if run not in lost}
            elif kind == "stop":
                progress.stopped = True
            elif kind == "select":
                progress.select = event["select"]
            elif kind == "name":
                progress.name = str(event["name"])
        except (KeyError, TypeError):
            continue
    return progress
