"""Answers questions about many runs without opening their folders.

The index is a SQLite file on a disk of this machine. It holds nothing that is not
in the run folders: it is thrown away and made again when it is missing, or when SQLite
calls it damaged. Where it cannot be written, a process keeps an index in its memory and
tries the file again after a while.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, TypeVar, get_args

from ..background import Health
from ..errors import ConvectError
from ..filesystems import local_folder
from ..safe_files import append_to, make_folder
from .index_tables import (
    NO_SWEEP,
    Entry,
    Page,
    Query,
    Result,
    drop,
    find,
    number_at,
    prepare,
    put,
    rebuild,
)
from .model import ENDED, State

__all__ = ["Entry", "Index", "Page", "Query", "Result"]

T = TypeVar("T")

RETRY_FIRST, RETRY_MOST = 60.0, 3600.0
"""Seconds after which a file that could not be used is tried again."""
WRITING = "Writing the index of the runs"

_log = logging.getLogger(__name__)

PIN = "pinned"
"""The label that keeps a run, and on top of lists."""

_ENDED = ",".join(f"'{state}'" for state in sorted(ENDED))
_LIVE = ",".join(f"'{state}'" for state in sorted(set(get_args(State)) - ENDED))


class Index:
    """`path` is a file on a local disk; processes and threads may share it.

    On a network file system, where SQLite's locks cannot be trusted, a file in the
    machine's temporary folder is taken instead.
    """

    def __init__(self, path: Path, health: Health | None = None) -> None:
        self.path = local_folder(path.parent, "jupyterlab-convect") / path.name
        self.generation = 0
        """Grows when all that was known is lost and has to be read from the folders again."""
        self._health = health or Health(_log)
        self._closed = False
        self._lock = threading.RLock()
        self._file: tuple[int, int] | None = None
        """Which file is open: its device and number; None for memory."""
        self._retry_at = 0.0
        self._pause = RETRY_FIRST
        self._database = self._open()

    def put(self, entries: Iterable[Entry]) -> None:
        """Add runs, or replace what is known of them; their results come on top."""
        rows = list(entries)
        if rows:
            self._do("IMMEDIATE", lambda database: put(database, rows))

    def drop(self, run_ids: Iterable[str]) -> None:
        gone = list(run_ids)
        if gone:
            self._do("IMMEDIATE", lambda database: drop(database, gone))

    def find(self, query: Query) -> Page:
        return self._do("DEFERRED", lambda database: find(database, query))

    def seen(self, *, live: bool = False) -> dict[str, int]:
        """Every run known (or every one that has not ended) with the bytes it covers."""
        where = f"WHERE state IN ({_LIVE})" if live else ""
        return self._do(
            "DEFERRED",
            lambda database: dict(database.execute(f"SELECT id, seen FROM runs {where}")),  # noqa: S608
        )

    def recent(self, since: float) -> dict[str, tuple[int, bool]]:
        """Every run that has not ended or was made since then: the bytes it covers, and whether
        it goes on.
        """
        select = f"SELECT id, seen, state IN ({_LIVE}) FROM runs WHERE state IN ({_LIVE}) OR n >= ?"  # noqa: S608
        rows = self._do(
            "DEFERRED",
            lambda database: database.execute(select, (number_at(since),)).fetchall(),
        )
        return {run_id: (seen, bool(live)) for run_id, seen, live in rows}

    def ended(self, since: float) -> list[tuple[str, str, str, str | None]]:
        """Id, state, name and path of the runs outside of sweeps that ended later than that, in
        order of time."""
        select = (
            f"SELECT id, state, name, path FROM runs WHERE ended > ? AND state IN ({_ENDED}) "  # noqa: S608
            "AND sweep = ? ORDER BY ended"
        )
        return self._do(
            "DEFERRED", lambda database: database.execute(select, (since, NO_SWEEP)).fetchall()
        )

    def results(self, key: str) -> list[Result]:
        """Results that depended on exactly the same, the newest first."""
        return self._results("key = ? ORDER BY ended DESC LIMIT 20", key)

    def last_result(self, place: str, step: str) -> Result | None:
        found = self._results("place = ? AND step = ? ORDER BY ended DESC LIMIT 1", place, step)
        return found[0] if found else None

    def sizes(self) -> dict[str, int | None]:
        """Bytes of each ended run's folder, None where nobody has counted, the oldest first.

        Without those that are pinned.
        """
        select = (
            f"SELECT id, bytes FROM runs WHERE state IN ({_ENDED}) "  # noqa: S608
            f"AND n NOT IN (SELECT n FROM labels WHERE label = '{PIN}=') ORDER BY n"
        )
        return self._do("DEFERRED", lambda database: dict(database.execute(select)))

    def set_sizes(self, sizes: Mapping[str, int]) -> None:
        rows = [(size, run_id) for run_id, size in sizes.items()]
        update = "UPDATE runs SET bytes = ? WHERE id = ?"
        self._do("IMMEDIATE", lambda database: database.executemany(update, rows))

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._database.close()

    def _results(self, where: str, *arguments: str) -> list[Result]:
        select = f"""SELECT key, run, step, attempt, place, ended, seconds, parts
            FROM results WHERE {where}"""  # noqa: S608
        rows = self._do("DEFERRED", lambda database: database.execute(select, arguments).fetchall())
        return [
            Result(key, run, step, attempt, place, ended, seconds, json.loads(parts))
            for key, run, step, attempt, place, ended, seconds, parts in rows
        ]

    def _do(
        self, kind: Literal["IMMEDIATE", "DEFERRED"], work: Callable[[sqlite3.Connection], T]
    ) -> T:
        """Work in a transaction. What is wrong with the file costs time, never an answer."""
        with self._lock:
            if self._closed:
                raise ConvectError("The index of the runs is closed.", code="closed")
            self._follow_file()
            try:
                return self._work(kind, work)
            except sqlite3.DatabaseError as error:
                self._mend(error)
            try:
                return self._work(kind, work)
            except sqlite3.DatabaseError as error:
                if not _is_mendable(error):
                    raise
                self._use_memory(error)
            return self._work(kind, work)

    def _work(
        self, kind: Literal["IMMEDIATE", "DEFERRED"], work: Callable[[sqlite3.Connection], T]
    ) -> T:
        with _transaction(self._database, kind):
            result = work(self._database)
        if kind == "IMMEDIATE" and self._file is not None:
            self._pause = RETRY_FIRST
            self._health.recovered(WRITING)
        return result

    def _mend(self, error: sqlite3.DatabaseError) -> None:
        """Make the work possible, or say why it is not."""
        if _is_busy(error):
            raise ConvectError(
                "The index of the runs is busy.", code="busy", hint="Try again."
            ) from None
        if _is_damage(error):
            _log.warning("The index %s is damaged (%s) and is being rebuilt.", self.path, error)
            self._replace(lambda: self._open(damaged=self._file))
        elif _is_other_version(error):
            with _transaction(self._database, "IMMEDIATE"):
                rebuild(self._database)
            self.generation += 1
        elif _is_unwritable(error):
            self._use_memory(error)
        else:
            raise error

    def _follow_file(self) -> None:
        """Go on with the file that is there now, when another process has replaced it."""
        if self._file is not None:
            if _identity(self.path) != self._file:
                self._replace(self._open)
        elif time.monotonic() >= self._retry_at:
            try:
                opened = self._open_file()
            except (OSError, sqlite3.DatabaseError):
                self._put_off()
            else:
                self._replace(lambda: opened)

    def _replace(self, opened: Callable[[], sqlite3.Connection]) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._database.close()
        self.generation += 1
        self._database = opened()

    def _use_memory(self, error: Exception) -> None:
        self._replace(lambda: self._in_memory(error))

    def _open(self, damaged: tuple[int, int] | None = None) -> sqlite3.Connection:
        try:
            return self._open_file(damaged)
        except (OSError, sqlite3.DatabaseError) as error:
            return self._in_memory(error)

    def _open_file(self, damaged: tuple[int, int] | None = None) -> sqlite3.Connection:
        """Open the file, made anew if it is still the `damaged` one.

        One process at a time: nobody removes a file that another has just made.
        """
        make_folder(self.path.parent)
        with _alone(self.path):
            if damaged is not None and _identity(self.path) == damaged:
                _remove(self.path)
            try:
                database = _connect_file(self.path)
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    raise
                _remove(self.path)
                database = _connect_file(self.path)
            self._file = _identity(self.path)
            return database

    def _in_memory(self, error: Exception) -> sqlite3.Connection:
        """There is nowhere to write: everything still works, only slower at the start."""
        self._file = None
        self._put_off()
        self._health.failed(
            WRITING,
            ConvectError(
                f"The index {self.path} cannot be used ({error}). It is kept in memory for now.",
                code="unwritable",
            ),
        )
        return _connect(":memory:")

    def _put_off(self) -> None:
        self._retry_at = time.monotonic() + self._pause
        self._pause = min(2 * self._pause, RETRY_MOST)


def _connect_file(path: Path) -> sqlite3.Connection:
    # Made before SQLite does, which gives the files beside it the same mode.
    descriptor = append_to(path)
    try:
        os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)
    return _connect(str(path))


def _connect(path: str) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA cache_size = -8000")
        # What a power cut destroys is made again from the folders.
        database.execute("PRAGMA synchronous = OFF")
        with _transaction(database, "IMMEDIATE"):
            prepare(database)
    except BaseException:
        database.close()
        raise
    return database


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep other processes from opening or removing the file at `path` meanwhile."""
    lock = append_to(path.with_name(f"{path.name}.lock"))
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _remove(path: Path) -> None:
    for suffix in ("-wal", "-shm", ""):
        with contextlib.suppress(OSError):
            Path(f"{path}{suffix}").unlink()


# SQLite's codes reach Python from version 3.11 on; its words are the same in all.


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    return _says(error, "malformed", "not a database")


def _is_busy(error: sqlite3.DatabaseError) -> bool:
    return _says(error, "locked", "busy")


def _is_other_version(error: sqlite3.DatabaseError) -> bool:
    """Another version of ours has made the tables its own way."""
    return _says(error, "no such table", "no such column", "has no column")


def _is_unwritable(error: sqlite3.DatabaseError) -> bool:
    return _says(error, "is full", "disk I/O error", "readonly", "unable to open")


def _is_mendable(error: sqlite3.DatabaseError) -> bool:
    return _is_damage(error) or _is_other_version(error) or _is_unwritable(error)


def _says(error: sqlite3.DatabaseError, *words: str) -> bool:
    return any(word in str(error) for word in words)


@contextlib.contextmanager
def _transaction(
    database: sqlite3.Connection, kind: Literal["IMMEDIATE", "DEFERRED"]
) -> Iterator[None]:
    database.execute(f"BEGIN {kind}")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            database.execute("ROLLBACK")
        raise
