"""The folder of the schedules: the only place that reads and writes it.

A schedule is a folder `schedules/<id>` in the runs folder: `schedule.json` says what was asked
first, `changes/` what anybody asked since (an edit, a pause, a run), `ledger.ndjson` what became
of its due times, and `claims/` which run each of them has. Only the keeper writes the ledger.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import Conflict, ConvectError, Missing, words_of
from ..pipeline.plan import from_json, to_json
from ..runs.json_files import (
    Changes,
    Journal,
    create_whole,
    event_line,
    events_in,
    read_owned_json,
    write_json,
)
from ..runs.model import new_id
from ..runs.store import ID, Store
from ..safe_files import make_folder, own_folder, read_regular
from .ledger import Event, Ledger, apply
from .schedule import DAY, Schedule
from .times import is_due
from .triggers import Noticed

KEEPER, PROCESS, ENGINE = "keeper", "process", "engine"


@dataclass(slots=True)
class OpenSchedule:
    """What was read of the folder of a schedule so far."""

    ledger: Ledger
    owner: int
    journal: Journal
    changes: Changes
    lock: threading.Lock = field(default_factory=threading.Lock)

    def catch_up(self) -> bool:
        """Read what is new; False when the folder is not the one it was."""
        with self.lock:
            lines = self.journal.read()
            if lines is None:
                return False
            apply(self.ledger, events_in(lines), events_in(self.changes.read()))
            return True


class Schedules:
    """Every method may be called from any thread."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.folder = store.folder / "schedules"
        self._opened: dict[str, OpenSchedule] = {}
        self._folders: dict[str, Path] = {}
        self._lock = threading.RLock()

    def add(self, schedule: Schedule, *events: Event) -> None:
        """`events` begin its ledger."""
        beside = self.folder / f".new-{schedule.id}"
        try:
            make_folder(self.folder, stat.S_IMODE(self.store.folder.stat().st_mode))
            make_folder(beside, self.store.folder_mode)
            write_json(beside / "schedule.json", to_json(schedule))
            if events:
                Journal(beside / "ledger.ndjson").append(b"".join(map(event_line, events)))
            beside.rename(self.folder / schedule.id)
            self._touch()
        except OSError as error:
            shutil.rmtree(beside, ignore_errors=True)
            raise ConvectError(
                f"The schedule cannot be written to {self.folder}: {words_of(error)}.",
                code="unwritable",
            ) from None

    def edit(self, schedule: Schedule, files: dict[str, str] | None = None) -> None:
        """`files` are those that do not count any more."""
        event: Event = {"type": "edit", "schedule": to_json(schedule)}
        self.ask(schedule.id, event if files is None else {**event, "files": files})

    def pause(self, schedule_id: str) -> None:
        self.ask(schedule_id, {"type": "pause"})

    def resume(self, schedule_id: str) -> None:
        self.ask(schedule_id, {"type": "resume"})

    def ask(self, schedule_id: str, *events: Event, urgent: bool = True) -> None:
        """Write what somebody wants or did, for whoever keeps the clock; it is looked at at once
        if it is urgent."""
        self.read(schedule_id, own=True)
        changes = self._open(schedule_id).changes
        with _said(schedule_id):
            changes.add(b"".join(map(event_line, events)))
            if urgent:
                self._touch()

    def happened(self, schedule_id: str, noticed: Noticed, now: float) -> Event:
        """What to write of something that makes a schedule due: the same for all who notice it."""
        folder = self.folder / schedule_id / "claims"
        path = folder / _key_name(noticed.key)
        clock, due = self.read(schedule_id).schedule.clock, now
        with _said(schedule_id):
            make_folder(folder)
            while not path.exists():
                if is_due(clock, due) or not create_whole(folder / f"{due!r}", new_id().encode()):
                    due += 1e-3  # Something else is due in this moment.
                elif not create_whole(path, repr(due).encode()):
                    (folder / f"{due!r}").unlink()
            due = float(read_regular(path))
        return {
            "time": now,
            "type": "happened",
            "due": due,
            "key": noticed.key,
            "version": noticed.version,
            "happening": to_json(noticed.happening),
        }

    def remove(self, schedule_id: str) -> None:
        """Delete it with its ledger; its runs stay."""
        self.read(schedule_id, own=True)
        aside = self.folder / f".old-{schedule_id}-{new_id()}"
        with _said(schedule_id):
            (self.folder / schedule_id).rename(aside)
            self._touch()
        shutil.rmtree(aside, ignore_errors=True)
        with self._lock:
            self._opened.pop(schedule_id, None)

    def ids(self) -> list[str]:
        """The newest first."""
        with contextlib.suppress(FileNotFoundError), os.scandir(self.folder) as found:
            return sorted((item.name for item in found if ID.fullmatch(item.name)), reverse=True)
        return []

    def all(self) -> Iterator[Ledger]:
        for schedule_id in self.ids():
            with contextlib.suppress(ConvectError):
                yield self.read(schedule_id)

    def read(self, schedule_id: str, *, own: bool = False) -> Ledger:
        """The schedule and what became of it; with `own`, Conflict when it is somebody else's."""
        if not ID.fullmatch(schedule_id) or not (self.folder / schedule_id).is_dir():
            raise Missing(f"There is no schedule {schedule_id!r}.")
        found = self._open(schedule_id)
        if own and not self._is_own(schedule_id, found):
            raise Conflict(
                f"The schedule {schedule_id} belongs to another user, and only they can change it.",
                code="not-own",
            )
        return found.ledger

    def is_own(self, schedule_id: str) -> bool:
        return self._is_own(schedule_id, self._open(schedule_id))

    def write(self, schedule_id: str, *events: Event) -> None:
        """Write what became of due times. Only for the keeper."""
        with _said(schedule_id):
            journal = Journal(self.folder / schedule_id / "ledger.ndjson")
            journal.append(b"".join(map(event_line, events)))

    def claim(self, schedule_id: str, due: float) -> str:
        """The id of the run that a due time has: one for all who ask, and for ever."""
        folder = self.folder / schedule_id / "claims"
        path, run_id = folder / f"{due!r}", new_id()
        with _said(schedule_id):
            make_folder(folder)
            if create_whole(path, run_id.encode()):
                return run_id
            known = read_regular(path).decode()
        if not ID.fullmatch(known):
            raise ConvectError(f"The schedule {schedule_id} is damaged: {path.name}.")
        return known

    def forget_claims(self, schedule_id: str) -> None:
        """Remove claims so old that every host has read in the ledger what became of them."""
        ledger = self.read(schedule_id)
        keys = set(map(_key_name, list(ledger.keys)))
        for path in (self.folder / schedule_id / "claims").glob("*"):
            with contextlib.suppress(OSError, ValueError):
                if time.time() - path.stat().st_mtime < DAY:
                    continue
                line = None if path.name in keys else ledger.lines.get(float(path.name))
                if path.name in keys or (line is not None and line.sure):
                    path.unlink()

    def changed(self) -> float | None:
        """Grows when anybody changes a schedule; None when there are none."""
        try:
            return (self.folder / "changed").stat().st_mtime_ns
        except OSError:
            return None

    def keeper_folder(self) -> Path:
        """Where the lease of whoever keeps this user's clocks lies."""
        return self._own_folder(KEEPER)

    def keeper_folder_of(self, schedule_id: str) -> Path:
        """Where the lease of whoever keeps the clock of this schedule alone lies."""
        folder = self.folder / schedule_id / KEEPER
        if folder.parent.is_dir():
            make_folder(folder)
        return folder

    def engine_folder(self) -> Path:
        """Where what a cluster starts for this user's schedules finds its configuration."""
        return self._own_folder(ENGINE)

    def process_folder(self) -> Path:
        """Where the lease of this user's process that keeps clocks, or stands by, lies."""
        return self._own_folder(PROCESS)

    def _own_folder(self, name: str) -> Path:
        """Looked up once: to find out whose files are costs writing one."""
        known = self._folders.get(name)
        if known is None or not known.is_dir():
            known = self._folders[name] = own_folder(self.folder, name)
        return known

    def _touch(self) -> None:
        mark = self.folder / "changed"
        mark.touch(0o600)
        os.utime(mark, ns=(time.time_ns(), max(time.time_ns(), mark.stat().st_mtime_ns + 1)))

    def _is_own(self, schedule_id: str, found: OpenSchedule) -> bool:
        owners = {found.owner, *found.journal.owners, *found.changes.owners}
        return self.store.is_own_folder(self.folder / schedule_id, owners)

    def _open(self, schedule_id: str) -> OpenSchedule:
        """What is in its folder now."""
        with self._lock:
            known = self._opened.get(schedule_id)
        with contextlib.suppress(OSError):
            if known is not None and known.catch_up():
                return known
        folder = self.folder / schedule_id
        try:
            value, owner = read_owned_json(folder / "schedule.json")
            schedule = from_json(Schedule, value)
            opened = OpenSchedule(
                Ledger(schedule, schedule.created),
                owner,
                Journal(folder / "ledger.ndjson"),
                Changes(folder / "changes"),
            )
            opened.catch_up()
        except (OSError, TypeError, ValueError, AttributeError) as error:
            raise ConvectError(f"The schedule {schedule_id} is damaged: {error}.") from None
        with self._lock:
            self._opened[schedule_id] = opened
        return opened


def _key_name(key: str) -> str:
    return f"key-{hashlib.sha256(key.encode()).hexdigest()[:32]}"


@contextlib.contextmanager
def _said(schedule_id: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConvectError(
            f"The schedule {schedule_id} cannot be changed: {words_of(error)}.", code="unwritable"
        ) from None
