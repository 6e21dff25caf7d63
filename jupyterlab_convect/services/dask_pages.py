"""The page of a Dask scheduler that lists its workers, read as data."""

from __future__ import annotations

import contextlib
from html.parser import HTMLParser
from urllib.parse import urlsplit

from ..pipeline.plan import Json

WORKER, NAME, THREADS, LIMIT, USE, _, PROCESSING = range(7)
"""The columns of the table, in order, as far as they are of interest."""


def read_workers(page: str) -> list[dict[str, Json]]:
    table = _WorkerTable()
    table.feed(page)
    return [_worker(row) for row in table.rows if len(row) > PROCESSING]


class _WorkerTable(HTMLParser):
    """The cells of each row: their text, and the numbers that their attributes hold."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[dict[str, str]]] = []
        self._cell: dict[str, str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "tr":
            self.rows.append([])
        elif tag == "td" and self.rows:
            self._cell = {"text": "", "data-sort": given.get("data-sort", "")}
            self.rows[-1].append(self._cell)
        elif tag == "progress" and self._cell is not None:
            self._cell["value"] = given.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "td":
            self._cell = None

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell["text"] += data


def _worker(row: list[dict[str, str]]) -> dict[str, Json]:
    address = row[WORKER]["text"].strip()
    return {
        "name": row[NAME]["text"].strip()[:8],
        "host": urlsplit(address).hostname or "",
        "state": "",
        "threads": _whole(row[THREADS]["text"]),
        "cpu": None,
        "memory": _whole(row[USE].get("value", "")),
        "memory_limit": _whole(row[LIMIT]["data-sort"]),
        "processing": _whole(row[PROCESSING]["text"]),
    }


def _whole(text: str) -> int:
    with contextlib.suppress(ValueError):
        return int(text.strip())
    return 0
