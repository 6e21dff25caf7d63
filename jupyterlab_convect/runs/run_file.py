"""One run folder in memory, kept up to date with what others write into it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from ..errors import Conflict, ConvectError, Missing
from ..pipeline.plan import digest_of, from_json
from ..safe_files import owner_of
from .events import Event, StepEnd, decode, encode
from .fold import Fold
from .index import Entry, Result
from .json_files import Changes, Journal, read_owned_json
from .model import Run, RunState
from .views import summary

HAPPENED = "events.ndjson"
"""What the holder of the lease writes."""
ASKED = "changes"
"""What anybody asks for: names, labels, notes, stops."""
ASKED_BEFORE = "changes.ndjson"
"""Where it was written before each change had a file of its own."""


class OpenRun:
    def __init__(self, folder: Path, run: Run, owner: int | None = None) -> None:
        """`owner` is whom the `run.json` belongs to that was read; None when it was not."""
        self.folder = folder
        self.run = run
        self._owner = owner
        self._fold = Fold(run)
        self._happened = Journal(folder / HAPPENED)
        self._asked = Changes(folder / ASKED)
        self._asked_before = Journal(folder / ASKED_BEFORE)
        self._succeeded: set[str] = set()
        """Steps whose result the index has not been told of."""

    @property
    def state(self) -> RunState:
        return self._fold.state

    @property
    def owners(self) -> set[int | None]:
        """Whom all belongs to that the state was made from, and the leases."""
        read = {self._owner} - {None} | self._happened.owners
        read |= self._asked.owners | self._asked_before.owners
        return read | {owner_of(path) for path in (self.folder, *self.folder.glob("lease-*.json"))}

    def catch_up(self) -> bool:
        """Read what is new; False when the files are not what they were."""
        for journal in (self._happened, self._asked_before, self._asked):
            lines = journal.read()
            if lines is None:
                return False
            for line in lines:
                if event := decode(line):
                    self._apply(event)
        return True

    def happen(self, *events: Event) -> None:
        if self._happened.append(b"".join(map(encode, events))):
            for event in events:
                self._apply(event)
        else:
            self.catch_up()

    def ask(self, *events: Event) -> None:
        self._asked.add(b"".join(map(encode, events)))
        self.catch_up()

    def entry(self) -> Entry:
        """What the index should know, with the results that it has not been `told` of."""
        results = tuple(filter(None, map(self._result, sorted(self._succeeded))))
        seen = self._happened.offset + self._asked_before.offset + self._asked.count
        return Entry(summary(self.run, self.state), seen, results)

    def told(self) -> None:
        """The index knows all that `entry` said."""
        self._succeeded.clear()

    def _apply(self, event: Event) -> None:
        self._fold.apply(event)
        if isinstance(event, StepEnd) and event.state == "succeeded":
            self._succeeded.add(event.step)

    def _result(self, step_id: str) -> Result | None:
        attempts = self.state.steps[step_id].attempts
        if not attempts or attempts[-1].ended is None:
            return None
        last = attempts[-1]
        ended = last.ended or 0.0
        return Result(
            key=digest_of(last.parts),
            run=self.run.id,
            step=step_id,
            attempt=last.attempt,
            place=pipeline_name(self.run),
            ended=ended,
            seconds=ended - (last.started or ended),
            parts=last.parts,
        )


def pipeline_name(run: Run) -> str:
    """What tells the steps of one pipeline from those of another."""
    name = run.plan.path or run.plan.name
    return name.encode("utf-8", "backslashreplace").decode()  # A file's name may be any bytes.


def open_run(folder: Path) -> OpenRun:
    """Read a run folder; Missing, or Conflict when it is damaged."""
    if folder.is_symlink():
        raise Missing(f"There is no run {folder.name}.")
    try:
        value, owner = read_owned_json(folder / "run.json")
        run = from_json(Run, value)
        opened = OpenRun(folder, run, owner)
        if run.id != folder.name:
            raise ConvectError("run.json is that of another run.")
        opened.catch_up()
    except ConvectError as error:
        if not folder.is_dir():
            raise Missing(f"There is no run {folder.name}.") from None
        if not os.access(folder, os.R_OK | os.X_OK):
            raise Missing(f"The run {folder.name} is not shared with you.") from None
        raise _damaged(folder, error.sentence) from None
    except (TypeError, ValueError, AttributeError, KeyError, OSError, RecursionError) as error:
        raise _damaged(folder, f"run.json does not describe a run: {error}.") from None
    return opened


def _damaged(folder: Path, why: str) -> Conflict:
    return Conflict(
        f"The run {folder.name} cannot be read: {why}",
        code="damaged",
        hint="Delete it, or correct its run.json.",
    )


def damaged_entry(run_id: str, created: float, why: str) -> Entry:
    """A run that cannot be read, as lists show it: it can be seen and deleted."""
    empty = {
        "parameters": {},
        "defaults": [],
        "computed": {},
        "metrics": {},
        "labels": {},
        "note": "",
        "seq": 0,
    }
    unknown = dict.fromkeys(("path", "runtime", "started", "ended", "user", "sweep"))
    steps = {"steps_total": 0, "steps_done": 0, "progress": 0.0}
    facts = {"id": run_id, "name": run_id, "state": "lost", "reason": why, "created": created}
    return Entry({**facts, **unknown, **empty, **steps}, seen=-1)


def written(folder: Path) -> int:
    """How much there is now, as `Entry.seen` counts it."""
    total = 0
    for name in (HAPPENED, ASKED_BEFORE):
        with contextlib.suppress(OSError):
            total += (folder / name).stat().st_size
    with contextlib.suppress(OSError):
        total += sum(path.suffix == ".ndjson" for path in (folder / ASKED).iterdir())
    return total
