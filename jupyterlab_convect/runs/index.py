"""Answers questions about many runs without opening their folders.

The index is a SQLite file on a disk of this machine. It holds nothing that is not
in the run folders: it is thrown away and made again when it is missing or damaged.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, TypeVar, get_args

from ..errors import ConvectError
from .index_tables import Entry, Page, Query, Result, drop, find, prepare, put
from .model import ENDED, State
from .places import local_place

__all__ = ["Entry", "Index", "Page", "Query", "Result"]

T = TypeVar("T")

_ENDED = ",".join(f"'{state}'" for state in sorted(ENDED))
_LIVE = ",".join(f"'{state}'" for state in sorted(set(get_args(State)) - ENDED))


class Index:
    """`path` is a file on a local disk; processes and threads may share it.

    On a network file system, where SQLite's locks cannot be trusted, a file in the
    machine's temporary folder is taken instead.
    """

    def __init__(self, path: Path) -> None:
        self.path = local_place(path)
        self.generation = 0
        """Grows when all that was known is lost and has to be read from the folders again."""
        self._closed = False
        self._lock = threading.RLock()
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

    def results(self, key: str) -> list[Result]:
        """Results that depended on exactly the same, the newest first."""
        return self._results("key = ? ORDER BY ended DESC LIMIT 20", key)

    def last_result(self, place: str, step: str) -> Result | None:
        found = self._results("place = ? AND step = ? ORDER BY ended DESC LIMIT 1", place, step)
        return found[0] if found else None

    def sizes(self) -> dict[str, int | None]:
        """Bytes of each ended run's folder, None where nobody has counted, the oldest first."""
        select = f"SELECT id, bytes FROM runs WHERE state IN ({_ENDED}) ORDER BY n"  # noqa: S608
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
        """Work in a transaction; a damaged file is made anew, for the store to fill."""
        with self._lock:
            if self._closed:
                raise ConvectError("The index of the runs is closed.", code="closed")
            try:
                with _transaction(self._database, kind):
                    return work(self._database)
            except sqlite3.DatabaseError as error:
                if "locked" in str(error) or "busy" in str(error):
                    raise ConvectError(
                        "The index of the runs is busy.", code="busy", hint="Try again."
                    ) from None
            self._start_over(self._open)
            try:
                with _transaction(self._database, kind):
                    return work(self._database)
            except sqlite3.DatabaseError:
                self._start_over(_in_memory)
            with _transaction(self._database, kind):
                return work(self._database)

    def _start_over(self, opened: Callable[[], sqlite3.Connection]) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._database.close()
        _remove(self.path)
        self.generation += 1
        self._database = opened()

    def _open(self) -> sqlite3.Connection:
        for _ in range(2):
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                return _connect(str(self.path))
            except (OSError, sqlite3.OperationalError):
                break
            except sqlite3.DatabaseError:
                _remove(self.path)
        return _in_memory()


def _in_memory() -> sqlite3.Connection:
    """There is nowhere to write: everything still works, only slower at the start."""
    return _connect(":memory:")


def _connect(path: str) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA cache_size = -8000")
    # What a power cut destroys is made again from the folders.
    database.execute("PRAGMA synchronous = OFF")
    with _transaction(database, "IMMEDIATE"):
        prepare(database)
    return database


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(OSError):
            Path(f"{path}{suffix}").unlink()


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
