"""What an attempt left (or leaves at this moment) in its folder, read piece by piece."""

from __future__ import annotations

import codecs
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from .errors import Missing
from .json_text import dumps, loads
from .pipeline.plan import Json
from .run_files import open_regular, read_regular, size_of_regular
from .runs.attempts import SOURCE
from .runs.files import plain
from .runs.model import ENDED
from .runs.store import Record, Store
from .runtimes.base import Attempt, LogChunk

LIMIT = 1 << 20
NESTED = 200
MANIFEST, CLUSTER = "manifest.json", "cluster.json"


@dataclass(frozen=True, slots=True)
class Results:
    """`folder` may belong to another run, when the result was taken over from there."""

    attempt: Attempt
    folder: Path
    ended: bool


@dataclass(frozen=True, slots=True)
class EventChunk:
    events: list[dict[str, Json]]
    offset: int
    complete: bool


def results_of(store: Store, record: Record, step_id: str, number: int) -> Results:
    """The place of an attempt's results. Missing when there is no such step or attempt."""
    run, state = record
    if step_id not in state.steps:
        raise Missing(f"Run {run.id} has no step {step_id!r}.", code="no-such-step")
    step = state.steps[step_id]
    folder = store.attempt_folder(run.id, step_id, number)
    if store.is_linked(folder):
        raise Missing(
            f"The folder of step {step_id!r} of run {run.id} is a link, which is not followed.",
            code="no-such-attempt",
        )
    if 0 < number <= len(step.attempts):
        found = step.attempts[number - 1]
        attempt = Attempt(run.id, run.plan.step(step_id), number, folder, found.handle)
        return Results(attempt, folder, found.state in ENDED)
    taken_over = store.result_folder(run.id, step_id) if step.source else None
    if taken_over is None:
        raise Missing(
            f"Step {step_id!r} of run {run.id} has no attempt {number}.",
            code="no-such-attempt",
            hint=step.reason,
        )
    return Results(Attempt(run.id, run.plan.step(step_id), number, taken_over), taken_over, True)


def read_log(results: Results, offset: int = 0, limit: int = LIMIT) -> LogChunk:
    """The log from `offset` on, never cut inside a character."""
    data, end = _read(results.folder / "log.txt", offset, limit)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data, final=results.ended and end)
    held_back, _ = decoder.getstate()
    return LogChunk(text, offset + len(data) - len(held_back), results.ended and end)


def log_end(results: Results, size: int) -> int:
    """Where the last bytes of a log begin."""
    try:
        return max(0, size_of_regular(results.folder / "log.txt") - size)
    except OSError:
        return 0


def read_events(results: Results, offset: int = 0, limit: int = LIMIT) -> EventChunk:
    """Whole events from `offset` on; what cannot be read is passed over."""
    file = results.folder / "events.ndjson"
    data, end = _read(file, offset, limit)
    while not end and b"\n" not in data:  # One event larger than the limit.
        limit *= 2
        data, end = _read(file, offset, limit)
    whole = data[: data.rfind(b"\n") + 1]
    complete = results.ended and end
    return EventChunk(
        [event for line in whole.splitlines() if (event := _event(line))],
        offset + len(data if complete else whole),
        complete,
    )


def executed_notebook(results: Results) -> bytes:
    """The notebook with its output so far."""
    try:
        return read_regular(results.folder / "executed.ipynb")
    except OSError:
        name = results.attempt.step.id
        raise Missing(f"There is no executed notebook of step {name!r}.") from None


def source_notebook(results: Results, root: Path) -> bytes:
    """The notebook as it was before it ran: the file if it is still the same, else what is known.

    An executed notebook without its outputs and without the cell of parameters that
    was put into it is the source, but for outputs that the source itself had.
    """
    step = results.attempt.step
    if step.path is not None and step.digest is not None:
        try:
            data = (root / step.path).read_bytes()
        except OSError:
            data = b""
        if "sha256:" + hashlib.sha256(data).hexdigest() == step.digest:
            return data
    notebook = json.loads(executed_notebook(results))
    notebook["metadata"].pop("papermill", None)
    notebook["cells"] = [
        _unexecuted(cell)
        for cell in notebook["cells"]
        if "injected-parameters" not in cell.get("metadata", {}).get("tags", ())
    ]
    return json.dumps(notebook, ensure_ascii=False, indent=1).encode()


def source_text(results: Results) -> str:
    """The script as it was when the attempt began."""
    try:
        return read_regular(results.folder / SOURCE).decode("utf-8", "replace")
    except OSError:
        name = results.attempt.step.id
        raise Missing(f"The source of step {name!r} was not kept.") from None


def manifest(results: Results) -> Json:
    """What the runtime was asked for, in its own words; None when it keeps no record of it."""
    try:
        return cast(Json, json.loads(read_regular(results.folder / MANIFEST)))
    except (OSError, ValueError):
        return None


def cluster_record(results: Results) -> Json:
    """What the cluster knew of the pod, with its events; None where there was none."""
    try:
        return cast(Json, json.loads(read_regular(results.folder / CLUSTER)))
    except (OSError, ValueError):
        return None


def list_files(results: Results) -> list[dict[str, Json]]:
    """The declared output files; with digests once the attempt has ended."""
    try:
        outcome = loads(read_regular(results.folder / "outputs.json"))
        return [
            {"path": file["path"], "size": file["size"], "digest": file.get("digest")}
            for file in outcome.get("files", ())
        ]
    except (OSError, ValueError):
        folder = results.folder / "files"
        if folder.is_symlink():
            return []
        return [
            {"path": file.relative_to(folder).as_posix(), "size": size, "digest": None}
            for place, _, names in os.walk(folder)
            for file in (Path(place, name) for name in sorted(names))
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
        raise Missing(f"{file.name} cannot be read: {plain(error)}.") from None
    return data[:limit], len(data) <= limit


def _event(line: bytes) -> dict[str, Json] | None:
    try:
        event = loads(line)
        if line.count(b"[") + line.count(b"{") > NESTED:
            dumps(event)  # What is nested too deeply for an answer is none.
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and "type" in event and "time" in event else None
