"""What an attempt left (or leaves at this moment) in its folder, read piece by piece."""

from __future__ import annotations

import codecs
import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ..errors import ConvectError, Missing, words_of
from ..json_text import dumps, loads
from ..pipeline.plan import Json
from ..runtimes.base import Attempt
from ..safe_files import open_regular, read_regular, size_of_regular
from .attempts import read_outcome
from .model import ENDED, step_of
from .step_file import SOURCE
from .store import Record, Store

LIMIT = 1 << 20
NESTED = 200
LOG = "log.txt"
MANIFEST, CLUSTER = "manifest.json", "cluster.json"


@dataclass(frozen=True, slots=True)
class AttemptFiles:
    """`folder` may belong to another run, when the result was reused from there."""

    attempt: Attempt
    folder: Path
    ended: bool


@dataclass(frozen=True, slots=True)
class LogChunk:
    text: str
    offset: int
    """Where to continue reading, in bytes."""
    complete: bool
    """True when the attempt has ended and this chunk reaches the end."""


@dataclass(frozen=True, slots=True)
class EventChunk:
    events: list[dict[str, Json]]
    offset: int
    complete: bool


def files_of(store: Store, record: Record, step_id: str, number: int) -> AttemptFiles:
    """The place of an attempt's files. Missing when there is no such step or attempt."""
    run, state = record
    if step_id not in state.steps:
        raise Missing(f"Run {run.id} has no step “{step_id}”.", code="no-such-step")
    step = state.steps[step_id]
    folder = store.attempt_folder(run.id, step_id, number)
    if store.is_linked(folder):
        raise Missing(
            f"The folder of step “{step_id}” of run {run.id} is a link, which is not followed.",
            code="no-such-attempt",
        )

    def attempt(at: Path, handle: Json = None) -> Attempt:
        return Attempt(
            run.id,
            step_of(state, step_id),
            number,
            at,
            handle,
            root=Path(run.request.root),
            plan=run.plan,
            runs=store.folder,
            options=run.request.options,
        )

    if 0 < number <= len(step.attempts):
        found = step.attempts[number - 1]
        return AttemptFiles(attempt(folder, found.handle), folder, found.state in ENDED)
    taken_over = store.result_folder(run.id, step_id) if step.source else None
    if taken_over is None:
        raise Missing(
            f"Step “{step_id}” of run {run.id} has no attempt {number}.",
            code="no-such-attempt",
            hint=step.reason,
        )
    return AttemptFiles(attempt(taken_over), taken_over, True)


def read_log(
    files: AttemptFiles, offset: int = 0, limit: int = LIMIT, log: Path | None = None
) -> LogChunk:
    """The log, or another one of the attempt, from `offset` on, never cut inside a character."""
    data, end = _read(log or files.folder / LOG, offset, limit)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data, final=files.ended and end)
    held_back, _ = decoder.getstate()
    return LogChunk(text, offset + len(data) - len(held_back), files.ended and end)


def log_end(log: Path, size: int) -> int:
    """Where the last bytes of a log begin."""
    try:
        return max(0, size_of_regular(log) - size)
    except OSError:
        return 0


def read_events(files: AttemptFiles, offset: int = 0, limit: int = LIMIT) -> EventChunk:
    """Whole events from `offset` on; what cannot be read is passed over."""
    file = files.folder / "events.ndjson"
    data, end = _read(file, offset, limit)
    while not end and b"\n" not in data:  # One event larger than the limit.
        limit *= 2
        data, end = _read(file, offset, limit)
    whole = data[: data.rfind(b"\n") + 1]
    complete = files.ended and end
    return EventChunk(
        [event for line in whole.splitlines() if (event := _event(line))],
        offset + len(data if complete else whole),
        complete,
    )


def all_events(files: AttemptFiles) -> Iterator[dict[str, Json]]:
    """Everything that the attempt did so far."""
    offset, new = 0, -1
    while new != offset:
        offset = max(new, 0)
        chunk = read_events(files, offset)
        new = chunk.offset
        yield from chunk.events


def executed_notebook(files: AttemptFiles) -> bytes:
    """The notebook with its output so far."""
    try:
        return read_regular(files.folder / "executed.ipynb")
    except OSError:
        name = files.attempt.step.id
        raise Missing(f"There is no executed notebook of step “{name}”.") from None


def source_notebook(files: AttemptFiles, root: Path) -> bytes:
    """The notebook as it was before it ran: the file if it is still the same, else what is known.

    An executed notebook without its outputs and without the cell of parameters that
    was put into it is the source, but for outputs that the source itself had.
    """
    step = files.attempt.step
    if step.path is not None and step.digest is not None:
        try:
            data = (root / step.path).read_bytes()
        except OSError:
            data = b""
        if "sha256:" + hashlib.sha256(data).hexdigest() == step.digest:
            return data
    notebook = json.loads(executed_notebook(files))
    notebook["metadata"].pop("papermill", None)
    notebook["cells"] = [
        _unexecuted(cell)
        for cell in notebook["cells"]
        if "injected-parameters" not in cell.get("metadata", {}).get("tags", ())
    ]
    return json.dumps(notebook, ensure_ascii=False, indent=1).encode()


def source_text(files: AttemptFiles) -> str:
    """The script as it was when the attempt began."""
    try:
        return read_regular(files.folder / SOURCE).decode("utf-8", "replace")
    except OSError:
        name = files.attempt.step.id
        raise Missing(f"The source of step “{name}” was not kept.") from None


def manifest(files: AttemptFiles) -> Json:
    """What the runtime was asked for, in its own words; None when it keeps no record of it."""
    try:
        return cast(Json, json.loads(read_regular(files.folder / MANIFEST)))
    except (OSError, ValueError):
        return None


def cluster_record(files: AttemptFiles) -> Json:
    """What the cluster knew of the pod, with its events; None where there was none."""
    try:
        return cast(Json, json.loads(read_regular(files.folder / CLUSTER)))
    except (OSError, ValueError):
        return None


def list_files(files: AttemptFiles) -> list[dict[str, Json]]:
    """The declared output files; with digests once the attempt has ended."""
    outcome = None
    with contextlib.suppress(ConvectError):  # What is damaged says nothing; the files are there.
        outcome = read_outcome(files.folder)
    if outcome is not None:
        return [
            {"path": file["path"], "size": file["size"], "digest": file.get("digest")}
            for file in outcome.files
        ]
    folder = files.folder / "files"
    if folder.is_symlink():
        return []
    return [
        {"path": file.relative_to(folder).as_posix(), "size": size, "digest": None}
        for parent, _, names in os.walk(folder)
        for file in (Path(parent, name) for name in sorted(names))
        if (size := _size(file)) is not None
    ]


def _size(file: Path) -> int | None:
    try:
        return size_of_regular(file)
    except OSError:
        return None


def _unexecuted(cell: dict[str, Json]) -> dict[str, Json]:
    metadata = {
        key: value
        for key, value in cell.get("metadata", {}).items()
        if key not in ("papermill", "execution")
    }
    if cell.get("cell_type") != "code":
        return {**cell, "metadata": metadata}
    return {**cell, "metadata": metadata, "outputs": [], "execution_count": None}


def _read(file: Path, offset: int, limit: int) -> tuple[bytes, bool]:
    """At most `limit` bytes from `offset`, and whether the file ends there."""
    try:
        with open_regular(file) as source:
            source.seek(offset)
            data = source.read(limit + 1)
    except FileNotFoundError:
        return b"", True
    except OSError as error:
        raise Missing(f"{file.name} cannot be read: {words_of(error)}.") from None
    return data[:limit], len(data) <= limit


def _event(line: bytes) -> dict[str, Json] | None:
    try:
        event = loads(line)
        if line.count(b"[") + line.count(b"{") > NESTED:
            dumps(event)  # What is nested too deeply for an answer is none.
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and "type" in event and "time" in event else None
