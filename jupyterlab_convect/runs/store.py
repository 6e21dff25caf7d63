"""The folder of the runs: the only place that reads and writes it.

Every method may be called from any thread. What `read` returns is live and shared:
look, do not touch.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import re
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ..errors import Conflict, ConvectError, Missing, words_of
from ..pipeline.plan import to_json
from ..safe_files import PRIVATE, make_folder, owner_of, owner_of_new_files, refuse_links
from .environments import remove_unused
from .events import Event, RunChange, RunFiles, StopAsk
from .index import Entry, Index, Page, Query
from .json_files import write_json
from .model import ENDED, Run, RunState, StepState, ids_of, read_source
from .retention import created_of, outlived, size_of, stale_leftovers
from .run_file import OpenRun, damaged_entry, open_run, written
from .snapshots import Snapshots

ID = re.compile(
    r"(19[7-9]|20[0-3])\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])"
    r"-([01]\d|2[0-3])([0-5]\d){2}\d{3}-[0-9a-f]{6}",
    re.ASCII,
)
"""A moment that can have been, and what makes the id one of a kind; see `model.new_id`."""
ALL = Query()

KEPT_OPEN, KEPT_STEPS = 512, 20_000
"""Runs whose state is kept in memory, and how many steps they have together."""
AT_ONCE = 200
"""Unknown runs that `find` reads before it answers; more are read in the background."""
BATCH = 100
AGAIN = 4
"""Times that `find` asks an index which loses what it knew meanwhile."""
TAKEN_OVER = 0
"""The number under which a run keeps a result that it took over from another one."""


class Record(NamedTuple):
    run: Run
    state: RunState


class Store:
    """Processes of one machine may share `index`, and machines may share `folder`."""

    def __init__(self, folder: Path, index: Index, folder_mode: int = PRIVATE) -> None:
        self.folder = folder
        self.folder_mode = folder_mode
        """Of the folders of new runs; what is in them has the same rights."""
        self.index = index
        self.snapshots = Snapshots(folder)
        self._lock = threading.RLock()
        self._open: OrderedDict[str, OpenRun] = OrderedDict()
        self._dirty: dict[str, OpenRun] = {}
        self._look = _Look()
        self._reader: threading.Thread | None = None
        self._reader_lock = threading.Lock()

    def create(self, run: Run) -> RunState:
        """Write `run.json`; from then on the run exists, queued."""
        folder = self.run_folder(run.id)
        beside = self.folder / f".new-{run.id}"
        try:
            make_folder(beside, self.folder_mode)
            write_json(beside / "run.json", to_json(run))
            beside.rename(folder)
        except OSError as error:
            shutil.rmtree(beside, ignore_errors=True)
            if folder.exists():
                raise Conflict(f"Run {run.id} already exists.") from None
            raise ConvectError(
                f"The run cannot be written to {self.folder}: {words_of(error)}.",
                code="unwritable",
                hint="Free some space there, or choose another folder for the runs.",
            ) from None
        with self._lock:
            self._dirty[run.id] = opened = self._keep(run.id, OpenRun(folder, run))
            return opened.state

    def read(self, run_id: str) -> Record:
        """The run and its state now. Missing when there is none, Conflict when it is damaged."""
        with self._lock:
            opened = self._opened(run_id)
            return Record(opened.run, opened.state)

    def find(self, query: Query = ALL) -> Page:
        """A page of runs, the newest first unless asked otherwise."""
        self.flush()
        for _ in range(AGAIN):
            self._look_around()
            page = self.index.find(query)
            if self._look.knows(self.index.generation):
                break
        return page

    def change(
        self,
        run_id: str,
        *,
        name: str | None = None,
        labels: dict[str, str] | None = None,
        note: str | None = None,
    ) -> RunState:
        """Rename, label (all labels at once) or annotate; None leaves as it is."""
        return self._ask(run_id, RunChange(time.time(), name, labels, note))

    def ask_stop(self, run_id: str, step: str | None = None) -> RunState:
        """Leave word for whoever drives the run; `Engine.stop` is quicker where it is at hand."""
        run, state = self.read(run_id)
        steps = [None] if step is None else ids_of(state, step)
        if not steps:
            raise Missing(f"The run {run.name} has no step “{step}”.", code="no-such-step")
        if state.state in ENDED:
            return state
        return self._ask(run_id, *(StopAsk(time.time(), each) for each in steps))

    def note_files(self, run_id: str, put: list[str], kept: Mapping[str, str]) -> RunState:
        """Write down that files of an ended run were put into the project."""
        return self._ask(run_id, RunFiles(time.time(), put, kept))

    def append(self, run_id: str, *events: Event) -> RunState:
        """Write what happened. Only for the holder of the lease.

        An OSError means that nothing of it counts as having happened.
        """
        with self._lock:
            opened = self._opened(run_id, fresh=False)
            opened.happen(*events)
            self._dirty[run_id] = opened
            return opened.state

    def run_folder(self, run_id: str) -> Path:
        if not ID.fullmatch(run_id):
            raise Missing(f"There is no run {run_id!r}.")
        return self.folder / run_id

    def attempt_folder(self, run_id: str, step_id: str, attempt: int) -> Path:
        """Where the attempt's files lie. It says nothing of whether they do."""
        name = step_id.replace("/", "%2F")
        return self.run_folder(run_id) / "steps" / name / str(attempt)

    def is_linked(self, folder: Path) -> bool:
        """Whether the folder of an attempt lies behind a link: then it is somebody else's."""
        try:
            refuse_links(self.folder, folder)
        except OSError:
            return True
        return False

    def result_folder(self, run_id: str, step_id: str) -> Path | None:
        """The folder of the attempt that has the step's result, also when it was taken over.

        None when there is none, or only a link to one.
        """
        step = self.read(run_id).state.steps.get(step_id)
        return None if step is None else self.folder_of(run_id, step)

    def folder_of(self, run_id: str, step: StepState) -> Path | None:
        """`result_folder` of a step whose state is at hand."""
        if step.source is not None:
            own = self.attempt_folder(run_id, step.id, TAKEN_OVER)
            if not own.is_dir():
                own = self.attempt_folder(*read_source(step.source, step.id))
        elif step.attempts:
            own = self.attempt_folder(run_id, step.id, len(step.attempts))
        else:
            return None
        return None if self.is_linked(own) else own

    def delete(self, run_id: str) -> None:
        """Remove the run and all that it left. Conflict while it runs."""
        self._require_own(run_id)
        self._refuse_while_running(run_id)
        self.withdraw(run_id)

    def withdraw(self, run_id: str) -> None:
        """Remove a run that nobody drives, in whatever state it is."""
        folder = self.run_folder(run_id)
        beside = self.folder / f".old-{run_id}"
        with self._lock:
            try:
                folder.rename(beside)
            except OSError as error:
                raise ConvectError(
                    f"The run {run_id} cannot be deleted: {words_of(error)}.", code="unwritable"
                ) from None
            self._open.pop(run_id, None)
            self._dirty.pop(run_id, None)
            self.index.drop([run_id])
        shutil.rmtree(beside, ignore_errors=True)

    def prune(
        self,
        *,
        keep_days: float = 0,
        keep_runs: int = 0,
        keep_bytes: int = 0,
        dry_run: bool = False,
        live: Iterable[str] = (),
    ) -> list[str]:
        """Delete ended runs, the oldest first, until all limits hold; 0 is no limit.

        Runs that are pinned stay, and do not count.
        `live` are snapshots that runs are still to be made from. Returns the ids of what was
        (or would be) deleted.
        """
        self.refresh()
        sizes = self._sizes() if keep_bytes else dict.fromkeys(self.index.sizes(), 0)
        doomed = outlived(sizes, time.time(), keep_days, keep_runs, keep_bytes)
        if dry_run:
            return doomed
        deleted = []
        for run_id in doomed:
            with contextlib.suppress(Conflict, Missing):
                self.delete(run_id)
                deleted.append(run_id)
        self._remove_leftovers()
        if deleted or not self.snapshots.is_clean:
            self._remove_unnamed(live)
        return deleted

    def clean(self, live: Iterable[str] = ()) -> None:
        """Remove, once a day, what no run needs any more; deletes no run."""
        if not self.snapshots.is_clean:
            self.refresh()
            self._remove_leftovers()
            self._remove_unnamed(live)

    def flush(self) -> None:
        """Tell the index what has changed; `find` does so by itself."""
        with self._lock:
            self.index.put([_entry_of(each, opened) for each, opened in self._dirty.items()])
            for opened in self._dirty.values():
                opened.told()
            self._dirty.clear()

    def refresh(self) -> None:
        """Make the index agree with the folders: runs of other machines, or all after a loss."""
        self.flush()
        self._look.forget()
        self._index(self._unknown())
        self._index_live()

    def live_runs(self) -> list[str]:
        """The ids of the runs that have not ended, as far as the index knows, oldest first."""
        self.flush()
        self._look_around()
        return sorted(self.index.seen(live=True))

    def recent_runs(self, since: float) -> dict[str, tuple[int, bool]]:
        """The runs that have not ended or were made since then: how much is written of each, and
        whether it goes on, as far as the index knows.
        """
        self.flush()
        self._look_around()
        return self.index.recent(since)

    def ended_runs(self, since: float) -> list[tuple[str, str, str, str | None]]:
        """Id, state, name and path of the runs outside of sweeps that ended later than that, as
        far as the index knows."""
        self.flush()
        self._look_around()
        return self.index.ended(since)

    def remark(self, run_id: str, reason: str) -> None:
        """Show a reason that cannot be written down, until something happens to the run."""
        with self._lock:
            self._opened(run_id).state.reason = reason

    def is_own(self, run_id: str) -> bool:
        """Whether the run belongs to this user, by all that was read of it.

        Nobody else's is driven, changed or deleted, whatever the rights of its files allow.
        """
        with self._lock:
            return self._opened(run_id).owners == {self._owner}

    def is_own_folder(self, folder: Path, owners: Iterable[int] = ()) -> bool:
        """Whether a folder is this user's, and so are all `owners` of what was read from it."""
        return {owner_of(folder), *owners} == {self._owner}

    def run_ids(self) -> Iterator[str]:
        """The ids of all run folders, in no order."""
        with contextlib.suppress(FileNotFoundError), os.scandir(self.folder) as found:
            yield from (
                item.name for item in found if ID.fullmatch(item.name) and not item.is_symlink()
            )

    def close(self) -> None:
        self.flush()
        with self._reader_lock:  # Somebody who still asks may be about to start it.
            self._look.closed = True
            reader = self._reader
        if reader is not None:
            reader.join()
        self.index.close()

    def _opened(self, run_id: str, *, fresh: bool = True) -> OpenRun:
        opened = self._open.get(run_id)
        if opened is not None:
            self._open.move_to_end(run_id)
            with contextlib.suppress(OSError):  # What is wrong with it, `open_run` says.
                if not fresh or opened.catch_up():
                    return opened
        return self._keep(run_id, open_run(self.run_folder(run_id)))

    def _keep(self, run_id: str, opened: OpenRun) -> OpenRun:
        self._open[run_id] = opened
        self._open.move_to_end(run_id)
        steps = sum(len(each.state.steps) for each in self._open.values())
        while len(self._open) > 1 and (len(self._open) > KEPT_OPEN or steps > KEPT_STEPS):
            steps -= len(self._open.popitem(last=False)[1].state.steps)
        return opened

    def _ask(self, run_id: str, *events: Event) -> RunState:
        self._require_own(run_id)
        with self._lock:
            opened = self._opened(run_id)
            try:
                opened.ask(*events)
            except OSError as error:
                raise ConvectError(
                    f"The run {run_id} cannot be changed: {words_of(error)}.", code="unwritable"
                ) from None
            self._dirty[run_id] = opened
            self.flush()
            return opened.state

    @functools.cached_property
    def _owner(self) -> int:
        return owner_of_new_files(self.folder)

    def _require_own(self, run_id: str) -> None:
        folder = self.run_folder(run_id)
        if folder.is_dir() and not self.is_own_folder(folder):
            raise Conflict(
                f"The run {run_id} belongs to another user, and only they can change it.",
                code="not-own",
            )

    def _refuse_while_running(self, run_id: str) -> None:
        try:
            run, state = self.read(run_id)
        except Conflict:
            return  # Damaged: all that is left is to delete it.
        if state.state not in ENDED:
            raise Conflict(f"The run {run.name} is {state.state}.", hint="Stop it first.")

    def _look_around(self) -> None:
        """Notice runs that the index does not know: at once the first time, then in a thread."""
        if not self._look.knows(self.index.generation):
            self._look.forget(self.index.generation)
            unknown = self._unknown()
            self._index(unknown[:AT_ONCE])
            self._index_live()
            self._read_behind(unknown[AT_ONCE:])
        elif self._look.is_due():
            self._read_behind(None)

    def _read_behind(self, run_ids: list[str] | None) -> None:
        def read() -> None:
            self._index(self._unknown() if run_ids is None else run_ids)
            self._index_live()

        with self._reader_lock:
            is_reading = self._reader is not None and self._reader.is_alive()
            if run_ids != [] and not is_reading and not self._look.closed:
                self._reader = threading.Thread(target=read, name="convect-index", daemon=True)
                self._reader.start()

    def _unknown(self) -> list[str]:
        """Runs that the index has to read, the newest first; forgets those that are gone."""
        if self._look.is_unchanged(self.folder):
            return []
        with self._look.timed():
            found = set(self.run_ids())
            known = self.index.seen()
            self.index.drop(known.keys() - found)
            damaged = {run_id for run_id, seen in known.items() if seen < 0}
            return sorted(found & damaged | found - known.keys(), reverse=True)

    def _index(self, run_ids: Iterable[str]) -> None:
        entries: list[Entry] = []
        for run_id in run_ids:
            if self._look.closed:
                return
            with contextlib.suppress(Missing):
                entries.append(self._entry(run_id))
            if len(entries) >= BATCH:
                self.index.put(entries)
                entries.clear()
        self.index.put(entries)

    def _index_live(self) -> None:
        """Read again the runs that go on and that another process has written to."""
        live = self.index.seen(live=True)
        self._index(
            run_id
            for run_id, seen in live.items()
            if run_id not in self._dirty and written(self.folder / run_id) != seen
        )

    def _entry(self, run_id: str) -> Entry:
        try:
            opened = open_run(self.run_folder(run_id))
        except Missing:
            raise
        except ConvectError as error:
            return damaged_entry(run_id, created_of(run_id), error.sentence)
        return _entry_of(run_id, opened)

    def _sizes(self) -> dict[str, int]:
        known = self.index.sizes()
        counted = {
            run_id: size_of(self.folder / run_id) for run_id, size in known.items() if size is None
        }
        self.index.set_sizes(counted)
        return {run_id: counted.get(run_id, size or 0) for run_id, size in known.items()}

    def _remove_leftovers(self) -> None:
        for leftover in stale_leftovers(self.folder, self._is_empty_sweep):
            shutil.rmtree(leftover, ignore_errors=True)
        remove_unused(self)

    def _remove_unnamed(self, live: Iterable[str]) -> None:
        """Remove the sources and the projects of runs that are gone."""
        documents = itertools.chain(
            (self.folder / run_id / "run.json" for run_id in self.run_ids()),
            self.folder.glob("sweeps/*/sweep.json"),
            self.folder.glob("schedules/*/schedule.json"),
            self.folder.glob("schedules/*/changes/*.ndjson"),
        )
        with contextlib.suppress(OSError):  # Nothing is removed unless all runs can be read.
            self.snapshots.clean(documents, itertools.chain(live, self._live_snapshots()))

    def _live_snapshots(self) -> Iterator[str]:
        for run_id in self.index.seen(live=True):
            with contextlib.suppress(Conflict, Missing):
                run, _ = self.read(run_id)
                if run.snapshot is not None:
                    yield run.snapshot

    def _is_empty_sweep(self, sweep_id: str) -> bool:
        return self.index.find(Query(sweep=sweep_id, limit=1)).total == 0


def _entry_of(run_id: str, opened: OpenRun) -> Entry:
    """What lists show of a run; one that makes no sense spoils no list."""
    try:
        return opened.entry()
    except Exception as error:
        why = f"The run {run_id} cannot be read: {error}."
        return damaged_entry(run_id, created_of(run_id), why)


class _Look:
    """When to look for runs that other machines have made, so that it never costs much."""

    EVERY = 2.0
    SHARE = 0.05
    """Of the time, spent looking."""

    def __init__(self) -> None:
        self.closed = False
        self.generation = -1
        """The index that was compared with the folders."""
        self._changed: float | None = None
        self._began = 0.0
        self._cost = 0.0

    def knows(self, generation: int) -> bool:
        return self.generation == generation

    def is_due(self) -> bool:
        return time.monotonic() - self._began > max(self.EVERY, self._cost / self.SHARE)

    def is_unchanged(self, folder: Path) -> bool:
        """Whether nothing came or went since the last look, as sure as coarse clocks allow."""
        try:
            changed = folder.stat().st_mtime
        except OSError:
            return True
        if changed == self._changed:
            return True
        self._changed = changed if time.time() - changed > self.EVERY else None
        return False

    def forget(self, generation: int | None = None) -> None:
        """Look again, whatever was seen before."""
        self._changed = None
        if generation is not None:
            self.generation = generation

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        self._began = time.monotonic()
        yield
        self._cost = time.monotonic() - self._began
