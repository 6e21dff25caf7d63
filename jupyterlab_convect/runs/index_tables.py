"""The tables of the index, and the work on them inside one transaction.

Rows are numbered by time, so that the newest runs are the last rows, of the full-text
table too. How many runs there are of each state is kept for each value of the
columns that lists are filtered by: a page costs the same however many runs there are.
"""

from __future__ import annotations

import calendar
import contextlib
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..errors import ConvectError
from ..json_text import dumps, loads, shown
from ..pipeline.plan import Json
from .model import ENDED, State

VERSION = 4

SORTS = ("created", "started", "ended", "name", "state", "runtime", "path")

NO_SWEEP = "none"
"""What to ask for to get the runs that belong to no sweep."""

MOST_TERMS = 50
"""Words, and labels, that one search may have; SQLite's limits are not far."""
MOST_LETTERS = 5000

MOST_IDS = 200
"""Runs that one question may name."""

LAST = (1 << 41) - 2
"""The last millisecond that a row number can hold, in the year 2039."""

CAP = 1000
"""Runs are counted one by one up to here, where no count is kept for what was asked."""

SCHEMA = (
    """CREATE TABLE runs (
        n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, state TEXT NOT NULL,
        started REAL, ended REAL, name TEXT, runtime TEXT, path TEXT, sweep TEXT,
        text TEXT NOT NULL, seen INTEGER NOT NULL, bytes INTEGER)""",
    *(
        f"CREATE INDEX runs_{column} ON runs ({column})"
        for column in ("state", "started", "ended", "name", "runtime", "path", "sweep")
    ),
    "CREATE TABLE summaries (n INTEGER PRIMARY KEY, summary TEXT NOT NULL)",
    """CREATE TABLE labels (
        label TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (label, n)) WITHOUT ROWID""",
    "CREATE INDEX labels_n ON labels (n)",
    """CREATE TABLE counts (
        kind TEXT NOT NULL, value TEXT NOT NULL, state TEXT NOT NULL, runs INTEGER NOT NULL,
        PRIMARY KEY (kind, value, state)) WITHOUT ROWID""",
    """CREATE TABLE results (
        run TEXT NOT NULL, step TEXT NOT NULL, attempt INTEGER NOT NULL, key TEXT NOT NULL,
        place TEXT NOT NULL, ended REAL NOT NULL, seconds REAL NOT NULL, parts TEXT NOT NULL,
        PRIMARY KEY (run, step)) WITHOUT ROWID""",
    "CREATE INDEX results_key ON results (key, ended)",
    "CREATE INDEX results_step ON results (place, step, ended)",
)


@dataclass(frozen=True, slots=True)
class Query:
    """Which runs, in which order, and which page of them."""

    states: tuple[State, ...] = ()
    name: str | None = None
    """The exact name, or a pattern with `*`."""
    runtime: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None
    """Words that all have to occur in id, name, path, parameters, note, labels or final reason."""
    path: str | None = None
    sweep: str | None = None
    """The sweep's id, or NO_SWEEP."""
    since: float | None = None
    until: float | None = None
    sort: str = "-created"
    """One of SORTS, with `-` in front for the other way round."""
    limit: int = 50
    offset: int = 0
    ids: tuple[str, ...] = ()
    """These runs alone, all on one page. Like `states`, it does not change the counts."""


@dataclass(frozen=True, slots=True)
class Page:
    runs: list[dict[str, Json]]
    """Summaries, as `views.summary` makes them."""
    total: int
    """How many there are on all pages."""
    counts: dict[str, int]
    """How many there are of each state, whatever `states` asks for."""
    exact: bool = True
    """False when there are more than were counted."""


@dataclass(frozen=True, slots=True)
class Result:
    """Where the result of a successful attempt lies, and what it depended on."""

    key: str
    run: str
    step: str
    attempt: int
    place: str
    """The path (or else the name) of the plan."""
    ended: float
    seconds: float
    parts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Entry:
    """What the index keeps of one run."""

    summary: Mapping[str, Json]
    seen: int
    """Bytes of its journals that the summary covers."""
    results: tuple[Result, ...] = ()


def prepare(database: sqlite3.Connection) -> None:
    """Make the tables, unless they are there already as this version knows them."""
    if database.execute("PRAGMA user_version").fetchone()[0] != VERSION:
        rebuild(database)


def rebuild(database: sqlite3.Connection) -> None:
    """Make all tables anew, empty."""
    found = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (name,) in found:
        if not name.startswith(("sqlite_", "texts_")):
            database.execute(f'DROP TABLE IF EXISTS "{name}"')
    for statement in SCHEMA:
        database.execute(statement)
    with contextlib.suppress(sqlite3.OperationalError):  # An old SQLite: `find` reads every text.
        database.execute("CREATE VIRTUAL TABLE texts USING fts5(text, tokenize = 'trigram')")
    database.execute(f"PRAGMA user_version = {VERSION}")


def put(database: sqlite3.Connection, entries: Iterable[Entry]) -> None:
    searchable = _searchable(database)
    for entry in entries:
        _put_run(database, entry.summary, entry.seen, searchable)
        database.executemany(
            "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    result.run,
                    result.step,
                    result.attempt,
                    result.key,
                    result.place,
                    result.ended,
                    result.seconds,
                    json.dumps(result.parts),
                )
                for result in entry.results
            ],
        )


def _put_run(
    database: sqlite3.Connection, summary: Mapping[str, Json], seen: int, searchable: bool
) -> None:
    run_id = summary["id"]
    labels = [_storable(f"{name}={value}") for name, value in summary["labels"].items()]
    facts = {name: summary[name] for name in ("state", "name", "runtime", "path", "sweep")}
    facts["sweep"] = facts["sweep"] or NO_SWEEP
    kept = {name: None if fact is None else _storable(fact) for name, fact in facts.items()}
    text = _storable(_text_of(summary))
    known = database.execute(
        "SELECT n, state, name, runtime, path, sweep, text FROM runs WHERE id = ?", (run_id,)
    ).fetchone()
    if known is None:
        n = _free_number(database, run_id)
    else:
        n, old_text = known[0], known[-1]
        old = dict(zip(kept, known[1:-1], strict=True))
        old_labels = [
            label for (label,) in database.execute("SELECT label FROM labels WHERE n = ?", (n,))
        ]
        _count(database, old, old_labels, -1)
    _count(database, kept, labels, +1)
    database.execute(
        """INSERT INTO runs (n, id, state, started, ended, name, runtime, path, sweep, text, seen)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (n) DO UPDATE SET state = excluded.state, started = excluded.started,
        ended = excluded.ended, name = excluded.name, runtime = excluded.runtime,
        path = excluded.path, sweep = excluded.sweep, text = excluded.text,
        seen = excluded.seen, bytes = NULL""",
        (
            n,
            run_id,
            kept["state"],
            summary["started"],
            summary["ended"],
            kept["name"],
            kept["runtime"],
            kept["path"],
            kept["sweep"],
            text,
            seen,
        ),
    )
    database.execute(
        "INSERT OR REPLACE INTO summaries VALUES (?, ?)",
        (n, _storable(dumps(summary))),
    )
    if known is None or labels != old_labels:
        database.execute("DELETE FROM labels WHERE n = ?", (n,))
        database.executemany("INSERT INTO labels VALUES (?, ?)", [(label, n) for label in labels])
    if searchable and (known is None or text != old_text):
        database.execute("INSERT OR REPLACE INTO texts (rowid, text) VALUES (?, ?)", (n, text))


def drop(database: sqlite3.Connection, run_ids: Iterable[str]) -> None:
    searchable = _searchable(database)
    for run_id in run_ids:
        known = database.execute(
            "SELECT n, state, name, runtime, path, sweep FROM runs WHERE id = ?", (run_id,)
        ).fetchone()
        if known is None:
            continue
        n = known[0]
        kept = dict(zip(("state", "name", "runtime", "path", "sweep"), known[1:], strict=True))
        labels = [
            label for (label,) in database.execute("SELECT label FROM labels WHERE n = ?", (n,))
        ]
        _count(database, kept, labels, -1)
        database.execute("DELETE FROM runs WHERE n = ?", (n,))
        database.execute("DELETE FROM summaries WHERE n = ?", (n,))
        database.execute("DELETE FROM labels WHERE n = ?", (n,))
        database.execute("DELETE FROM results WHERE run = ?", (run_id,))
        if searchable:
            database.execute("DELETE FROM texts WHERE rowid = ?", (n,))


def find(database: sqlite3.Connection, query: Query) -> Page:
    _check(query)
    if query.ids:
        return _named(database, query.ids)
    source, where, arguments = _conditions(database, query)
    order = _order(query.sort, source)
    counted = _kept_counts(database, query)
    exact = counted is not None
    if counted is None:
        rows = database.execute(
            f"SELECT runs.n, state FROM {source} WHERE {where} ORDER BY {order} LIMIT ?",  # noqa: S608
            (*arguments, CAP + 1),
        ).fetchall()
        counted = Counter(state for _, state in rows[:CAP])
        exact = len(rows) <= CAP
        wanted = [n for n, state in rows if not query.states or state in query.states]
        end = query.offset + query.limit
        if exact or end <= len(wanted):
            page = wanted[query.offset : end]
            return Page(_summaries(database, page), len(wanted), dict(counted), exact)
    if query.states:
        states = tuple(set(query.states))
        where += f" AND state IN ({','.join('?' * len(states))})"
        arguments += states
    rows = database.execute(
        f"SELECT runs.n FROM {source} WHERE {where} ORDER BY {order} LIMIT ? OFFSET ?",  # noqa: S608
        (*arguments, query.limit, query.offset),
    ).fetchall()
    page = [n for (n,) in rows]
    total = sum(n for state, n in counted.items() if not query.states or state in query.states)
    if not exact and page:
        total = max(total, query.offset + len(page))
    return Page(_summaries(database, page), total, dict(counted), exact)


def _named(database: sqlite3.Connection, ids: tuple[str, ...]) -> Page:
    """These runs, as far as there are any, and the counts of all."""
    rows = database.execute(
        f"SELECT n FROM runs WHERE id IN ({','.join('?' * len(ids))}) ORDER BY n DESC",  # noqa: S608
        ids,
    )
    page = [n for (n,) in rows]
    return Page(_summaries(database, page), len(page), _kept_counts(database, Query()) or {})


def _check(query: Query) -> None:
    """Refuse what no person asks for, and what would cost too much or is more than SQLite takes."""
    words = query.text.split() if query.text else []
    if len(query.ids) > MOST_IDS:
        raise ConvectError(f"At most {MOST_IDS} runs can be requested by id.", code="too-large")
    if len(words) > MOST_TERMS or len(query.labels) > MOST_TERMS:
        raise ConvectError(
            f"A search has at most {MOST_TERMS} words and {MOST_TERMS} labels.", code="too-large"
        )
    labels = (f"{name}={value}" for name, value in query.labels.items())
    texts = (query.text, query.name, query.runtime, query.path, query.sweep, *labels)
    if any(text is not None and len(text) > MOST_LETTERS for text in texts):
        raise ConvectError(
            f"The search text can have at most {MOST_LETTERS} characters.", code="too-large"
        )


def number_of(run_id: str) -> int:
    """The first free row for this id: milliseconds, then what makes it one of a kind."""
    # Not `strptime`, which takes ten times as long.
    fields = (run_id[:4], run_id[4:6], run_id[6:8], run_id[9:11], run_id[11:13], run_id[13:15])
    seconds = calendar.timegm(tuple(map(int, fields)))
    milliseconds = min(seconds * 1000 + int(run_id[15:18]), LAST)
    return _number_at(milliseconds) | (int(run_id[19:], 16) & 0x3FFFFF)


def number_at(seconds: float) -> int:
    """The first row of the runs that were made since then."""
    return _number_at(_milliseconds(seconds))


def _number_at(milliseconds: int) -> int:
    return milliseconds << 22


def _free_number(database: sqlite3.Connection, run_id: str) -> int:
    n = number_of(run_id)
    while database.execute("SELECT 1 FROM runs WHERE n = ?", (n,)).fetchone():
        n += 1
    return n


def _storable(text: str) -> str:
    """Names of files, and JSON, may hold lone surrogates; SQLite takes none."""
    return text.encode("utf-8", "backslashreplace").decode()


def _searchable(database: sqlite3.Connection) -> bool:
    found = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'texts'").fetchone()
    return found is not None


def _count(
    database: sqlite3.Connection, kept: Mapping[str, str | None], labels: list[str], by: int
) -> None:
    state = kept["state"]
    values = [("", "")]
    values += [
        (kind, value) for kind, value in kept.items() if kind != "state" and value is not None
    ]
    values += [("label", label) for label in labels]
    database.executemany(
        """INSERT INTO counts VALUES (?, ?, ?, ?)
        ON CONFLICT DO UPDATE SET runs = runs + excluded.runs""",
        [(kind, value, state, by) for kind, value in values],
    )


def _kept_counts(database: sqlite3.Connection, query: Query) -> dict[str, int] | None:
    """The counts by state when they are kept for such a query, which has one condition at most."""
    if query.text or query.since is not None or query.until is not None:
        return None
    conditions = [
        (kind, value)
        for kind in ("name", "runtime", "path", "sweep")
        if (value := getattr(query, kind)) is not None
    ]
    conditions += [("label", f"{name}={value}") for name, value in query.labels.items()]
    if len(conditions) > 1 or (query.name is not None and "*" in query.name):
        return None
    kind, value = conditions[0] if conditions else ("", "")
    return dict(
        database.execute(
            "SELECT state, runs FROM counts WHERE kind = ? AND value = ? AND runs > 0",
            (kind, value),
        )
    )


def _conditions(database: sqlite3.Connection, query: Query) -> tuple[str, str, tuple[Json, ...]]:
    """Tables to read, the one with the fewest rows first, and conditions without the states.

    SQLite goes by the index of a column unless there is a `+` in front of it. That pays
    when few rows have the value; else the order of the result is the better guide.
    """
    source = "runs"
    terms: list[str] = ["1"]
    arguments: list[Json] = []

    def add(term: str, value: Json) -> None:
        terms.append(term)
        arguments.append(value)

    words = query.text.lower().split() if query.text else []
    indexed = [word for word in words if len(word) >= 3] if _searchable(database) else []
    if indexed:
        source = "texts CROSS JOIN runs ON runs.n = texts.rowid"
        add("texts MATCH ?", " AND ".join('"' + word.replace('"', '""') + '"' for word in indexed))
    for word in words:
        if word not in indexed:
            add("instr(runs.text, ?)", word)
    for name, value in query.labels.items():
        if source == "runs":
            source = "labels CROSS JOIN runs ON runs.n = labels.n"
            add("labels.label = ?", f"{name}={value}")
        else:
            add("runs.n IN (SELECT n FROM labels WHERE label = ?)", f"{name}={value}")
    if query.path is not None:
        add("path = ?", query.path)
    if query.name is not None and "*" not in query.name:
        add("name = ?", query.name)
    elif query.name is not None:
        pattern = re.sub(r"[\[?]", r"[\g<0>]", query.name)
        add("name GLOB ?" if _is_rare(database, pattern) else "+name GLOB ?", pattern)
    if query.sweep is not None and query.sweep != NO_SWEEP:
        add("sweep = ?", query.sweep)
    by_time = query.sort.removeprefix("-") == "created"
    for column, common in (("sweep", query.sweep == NO_SWEEP), ("runtime", True)):
        if common and (value := getattr(query, column)) is not None:
            alone = len(terms) == 1 and by_time
            add(f"{column} = ?" if alone else f"+{column} = ?", value)
    if query.since is not None:
        add("runs.n >= ?", number_at(query.since))
    if query.until is not None:
        add("runs.n < ?", _number_at(_milliseconds(query.until) + 1))
    return source, " AND ".join(terms), tuple(arguments)


def _is_rare(database: sqlite3.Connection, pattern: str) -> bool:
    found = database.execute(
        "SELECT count(*) FROM (SELECT 1 FROM runs WHERE name GLOB ? LIMIT ?)", (pattern, 2 * CAP)
    )
    return bool(found.fetchone()[0] < 2 * CAP)


def _milliseconds(seconds: float) -> int:
    """Within what a row number can hold, whatever was asked."""
    return int(min(max(seconds, 0.0) * 1000, LAST))


def _order(sort: str, source: str) -> str:
    """The order, by the row number of the table that is read first."""
    column = sort.removeprefix("-")
    if column not in SORTS:
        raise ConvectError(
            f"Runs cannot be sorted by {column!r}.", hint=f"Sort by one of {', '.join(SORTS)}."
        )
    direction = "DESC" if sort.startswith("-") else "ASC"
    first = source.split()[0]
    number = "texts.rowid" if first == "texts" else f"{first}.n"
    if column == "created":
        return f"{number} {direction}"
    return f"runs.{column} {direction}, {number} {direction}"


def _summaries(database: sqlite3.Connection, numbers: list[int]) -> list[dict[str, Json]]:
    found: list[dict[str, Json]] = []
    for n in numbers:
        row = database.execute("SELECT summary FROM summaries WHERE n = ?", (n,)).fetchone()
        found.append(loads(row[0]))
    return found


def _text_of(summary: Mapping[str, Json]) -> str:
    values = {**summary["parameters"], **summary.get("computed", {})}
    parameters = " ".join(f"{name}={shown(value)}" for name, value in values.items())
    labels = " ".join(f"{name}={value}" for name, value in summary["labels"].items())
    # While it goes on, the reason changes too often to be indexed each time.
    reason = summary["reason"] if summary["state"] in ENDED else None
    facts = (summary[name] for name in ("id", "name", "path"))
    words = (*facts, reason, parameters, summary["note"], labels)
    return " ".join(str(word) for word in words if word).lower()[:4000]
