"""Runs that work in the folder itself take turns in it, when it is too large to be copied."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
from pathlib import Path

from ..safe_files import make_folder, read_regular, write_new, write_whole
from .layers import digest_file
from .outcome import StepFailed
from .record import StepRecord
from .step import StepSpec

PAUSE = 0.2
WAITING = "waiting.txt"
"""Says in the attempt's folder what it waits for, as long as it does."""


async def wait_for_turn(step: StepSpec, record: StepRecord) -> None:
    """Return when the folder is this run's, which it stays until the run ends."""
    assert step.view is not None
    mark = turn_mark(step.view.turns or record.folder, step.view.root)
    told = None
    while holder := take_turn(mark, step.run):
        if told != holder:
            told = holder
            reason = (
                f"Waiting for its turn: run {holder} works in {step.view.root}, which is too large "
                "to copy for each run."
            )
            write_whole(record.folder / WAITING, reason.encode())
            record.log(f"[{reason}]\n")
        await asyncio.sleep(PAUSE)
    (record.folder / WAITING).unlink(missing_ok=True)
    check_source(step)


def waits_for(folder: Path) -> str | None:
    """What the runner of an attempt says it is waiting for."""
    try:
        return read_regular(folder / WAITING).decode(errors="replace")
    except OSError:
        return None


def take_turn(mark: Path, run: str) -> str | None:
    """None when the folder is this run's now; else the run that has it."""
    make_folder(mark.parent)
    try:
        write_new(mark, run.encode())
    except FileExistsError:
        with contextlib.suppress(OSError):
            holder = read_regular(mark).decode(errors="replace")
            return None if holder == run else holder or "another one"
        return "another one"
    return None


def end_turn(mark: Path, run: str) -> None:
    """Let the next run have the folder. Whoever drives the run calls this at its end."""
    with contextlib.suppress(OSError):
        if read_regular(mark).decode(errors="replace") == run:
            mark.unlink()


def turn_mark(turns: Path, root: Path) -> Path:
    """The file that says whose turn it is in a folder."""
    return turns / hashlib.sha256(os.fsencode(root)).hexdigest()[:24]


def check_source(step: StepSpec) -> None:
    """A script is executed where it lies, and so as it is now: it must be what was submitted."""
    if step.kind != "script" or not step.digest or step.source is None:
        return
    with contextlib.suppress(OSError):
        if digest_file(step.source) != step.digest:
            raise StepFailed(
                f"{step.source.name} changed after this run was submitted, and the run works in "
                "its folder itself. Run it again."
            )
