"""The job definitions of jupyter-scheduler, read from its database, which stays as it is."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from ..errors import ConvectError
from ..pipeline.plan import Json

LABEL = "jupyter-scheduler"
"""The label that says which definition a schedule was made from."""
MOST_FILES = 100_000


@dataclass(frozen=True, slots=True)
class JobDefinition:
    id: str
    name: str
    file: str
    """The name of the file; where it was is not known."""
    cron: str
    zone: str
    parameters: dict[str, Json]
    is_active: bool


def read_definitions(database: Path) -> list[JobDefinition]:
    """Those that have a schedule; ConvectError when there are none to read."""
    if not database.is_file():
        raise ConvectError(f"There is no database of jupyter-scheduler at {database}.")
    columns = "job_definition_id, name, input_filename, schedule, timezone, parameters, active"
    try:
        with contextlib.closing(
            sqlite3.connect(f"file:{quote(str(database))}?mode=ro", uri=True)
        ) as connection:
            rows = connection.execute(f"SELECT {columns} FROM job_definitions").fetchall()  # noqa: S608
    except sqlite3.Error as error:
        raise ConvectError(f"{database} is not a database of jupyter-scheduler: {error}.") from None
    return [_definition(*row) for row in rows if row[2] and row[3]]


def _definition(
    job_id: Json,
    name: Json,
    file: Json,
    cron: Json,
    zone: Json,
    parameters: Json,
    active: Json,
) -> JobDefinition:
    given: Json = None
    with contextlib.suppress(ValueError, TypeError):
        given = json.loads(parameters)
    return JobDefinition(
        str(job_id),
        str(name or file),
        Path(str(file)).name,
        str(cron),
        str(zone or "UTC"),
        given if isinstance(given, dict) else {},
        bool(active),
    )


def find_file(root: Path, name: str) -> str:
    """The path of the only file of that name below a folder; ConvectError when it is not one."""
    found = _files(root, name)
    if not found:
        raise ConvectError(f"There is no file {name} below {root}.", code="no-such-file")
    if len(found) > 1:
        raise ConvectError(f"There are several files {name} below {root}.", code="ambiguous")
    return found[0]


def _files(root: Path, name: str) -> list[str]:
    found, seen = [], 0
    for folder, folders, files in os.walk(root):
        folders[:] = [each for each in folders if not each.startswith(".")]
        seen += len(files)
        if name in files:
            found.append(Path(folder, name).relative_to(root).as_posix())
        if seen > MOST_FILES:
            break
    return found
