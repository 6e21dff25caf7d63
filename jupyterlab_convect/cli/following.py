"""The progress of runs on the terminal: lines for a pipe or a log, a live table for a person."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..detached import hand_over
from ..json_text import short, shown
from ..pipeline.metrics import larger_is_better
from ..pipeline.plan import Json
from ..pipeline.problems import Problem
from ..runs import views
from ..runs.attempt_files import files_of, read_log
from ..runs.best import parse_select
from ..runs.engine import Engine
from ..runs.model import GOOD, GroupState, Request, RunState, StepState
from ..runs.replicas import fold, log_of
from ..runs.store import Record, Store
from ..text import elapsed_text, some_of
from ..workspace import Workspace
from . import output

TICK = 0.1
"""Seconds between two looks, at least."""
SHARE = 50
"""How many times longer than a look takes the engine has the processor before the next one."""

STYLES = {
    "succeeded": "green",
    "cached": "green",
    "failed": "red",
    "lost": "red",
    "cancelled": "yellow",
}

URGENCY = {"running": 0, "starting": 0, "failed": 1, "queued": 2, "waiting": 3}
"""What to show first when there is no room for all."""
TAIL = 15
MOST_TOLD = 10
"""Steps whose failure is told when a run has ended."""
PATIENCE = 0.4
"""Seconds; what is over by then is not worth a live table."""


@dataclass(frozen=True, slots=True)
class Row:
    """A step of a run, or a run of a sweep."""

    name: str
    state: str
    words: str = ""
    share: float | None = None
    elapsed: str = ""
    attempt: int = 1


class Display(Protocol):
    def update(self, rows: list[Row]) -> None: ...

    def close(self) -> None: ...


class Lines:
    """One line for each change, on standard error, and one for many that begin to wait."""

    FEW = 3

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, int]] = {}

    def update(self, rows: list[Row]) -> None:
        changed = [
            row
            for row in rows
            if row.state != "waiting" and self._seen.get(row.name) != (row.state, row.attempt)
        ]
        self._seen.update({row.name: (row.state, row.attempt) for row in changed})
        queued = [row for row in changed if row.state == "queued"]
        for row in changed:
            if row.state != "queued" or len(queued) <= self.FEW:
                self._say(row.name, row)
        if len(queued) > self.FEW:
            self._say(f"{len(queued)} others", queued[0])

    def _say(self, name: str, row: Row) -> None:
        tries = f" (attempt {row.attempt})" if row.attempt > 1 else ""
        said = row.words.removeprefix(row.state.capitalize())  # “Skipped because …”
        words = f": {said}" if said and said == row.words else said
        output.note(f"{time.strftime('%H:%M:%S')} {name}: {row.state}{tries}{words}")

    def close(self) -> None:
        """Nothing is left on the screen."""


class Table:
    """A table that is drawn over and over, with a bar for all that runs."""

    MOST = 20

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._live = Live(console=Console(stderr=True), transient=True, auto_refresh=False)
        self._live.start()

    def update(self, rows: list[Row]) -> None:
        with output.writing():
            self._live.update(self._draw(rows), refresh=True)

    def close(self) -> None:
        with contextlib.suppress(OSError):  # The terminal may be gone.
            self._live.stop()

    def _draw(self, rows: list[Row]) -> Any:
        from rich.progress_bar import ProgressBar
        from rich.spinner import Spinner
        from rich.table import Table as Grid
        from rich.text import Text

        grid = Grid.grid(padding=(0, 2))
        shown = rows
        if len(rows) > self.MOST:
            shown = sorted(rows, key=lambda row: URGENCY.get(row.state, 4))[: self.MOST]
        for row in shown:
            mark: Any = Text("●", style=STYLES.get(row.state, "dim"))
            if row.state in ("running", "starting"):
                mark = Spinner("dots", style="blue")
            bar = "" if row.share is None else ProgressBar(1.0, row.share, width=20)
            texts = (Text(row.elapsed), Text(row.words, "dim", overflow="ellipsis", no_wrap=True))
            grid.add_row(mark, Text(row.name), Text(row.state), bar, *texts)
        if len(rows) > len(shown):
            grid.add_row("", Text(f"and {len(rows) - len(shown)} more", "dim"))
        return grid


@dataclass
class Logs:
    """What the steps of a run print, passed on to standard output as it comes."""

    store: Store
    step: str | None = None
    attempt: int | None = None
    replica: int | None = None
    _offsets: dict[tuple[str, str, int], int] = field(default_factory=dict)

    def update(self, record: Record) -> None:
        for step in record.state.steps.values():
            if self.step in (None, step.id):
                for number in self._attempts(step):
                    self._pass_on(record, step.id, number)
        with output.writing():
            sys.stdout.flush()

    def _attempts(self, step: StepState) -> list[int]:
        """All of them, or the one that is asked for; a reused result counts as the first."""
        if self.attempt is not None:
            return [self.attempt]
        return list(range(1, len(step.attempts) + 1)) or ([1] if step.source else [])

    def _pass_on(self, record: Record, step: str, number: int) -> None:
        results = files_of(self.store, record, step, number)
        key = (record.run.id, step, number)
        offset = self._offsets.get(key, 0)
        log = None if self.replica is None else log_of(results, self.replica)
        is_folded = log is None and results.attempt.step.distributed is not None
        while True:
            chunk = read_log(results, offset, log=log)
            with output.writing():
                sys.stdout.write(fold(chunk.text) if is_folded else chunk.text)
            if chunk.offset == offset:
                return
            self._offsets[key] = offset = chunk.offset


async def watch(engine: Engine, end: asyncio.Future[Any], update: Callable[[], None]) -> None:
    """Call `update` whenever something has changed, seldom enough, until and after `end`."""
    changed = asyncio.Event()
    forget = engine.on_change(lambda *_: changed.set())
    end.add_done_callback(lambda _: changed.set())
    try:
        while not end.done():
            changed.clear()
            began = time.thread_time()
            update()
            pause = max(TICK, SHARE * (time.thread_time() - began))
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(changed.wait(), 0.5)
            await asyncio.wait({end}, timeout=pause)
        await end
        update()
    finally:
        forget()


def step_rows(record: Record) -> list[Row]:
    """The steps, and the groups and loops that ended before they had any."""
    groups = [Row(group.id, group.state, group.reason or "") for group in not_begun(record.state)]
    return groups + [
        Row(
            name=step.id,
            state=step.state,
            words=_words(step),
            share=_share(step),
            elapsed=_elapsed(step.started, step.ended),
            attempt=max(1, len(step.attempts)),
        )
        for step in views.shown_steps(record.state)
    ]


def not_begun(state: RunState) -> list[GroupState]:
    """The groups and loops that were skipped, or failed, as a whole."""
    return [
        group
        for group in views.shown_groups(state)
        if group.started is None
        and group.state in ("skipped", "failed")
        and not state.graph.is_iteration(group.node, group.item)
    ]


def run_rows(points: list[dict[str, Json]], runs: list[dict[str, Json]]) -> list[Row]:
    """The points of a sweep that have a run, with its progress."""
    by_id = {run["id"]: run for run in runs}
    return [
        Row(
            name=", ".join(f"{name}={value}" for name, value in point["parameters"].items()),
            state=run["state"],
            words=run["reason"] or "",
            share=run["progress"] if run["state"] == "running" else None,
            elapsed=_elapsed(run["started"], run["ended"]),
        )
        for point in points
        if (run := by_id.get(point["run"])) is not None
    ]


def _elapsed(started: float | None, ended: float | None) -> str:
    return "" if started is None else elapsed_text((ended or time.time()) - started)


def _share(step: StepState) -> float | None:
    if step.state != "running" or step.progress is None or not step.progress.cells:
        return None
    return min(step.progress.cell / step.progress.cells, 1.0)


def _words(step: StepState) -> str:
    if step.state == "running" and step.progress is not None and step.progress.cells:
        return f"cell {step.progress.cell} of {step.progress.cells}"
    return step.reason or ""


async def follow_run(workspace: Workspace, request: Request, logs: bool, as_json: bool) -> int:
    """Submit it, watch it, and return the exit code."""
    engine, store = workspace.engine, workspace.store
    try:
        run = workspace.make(request, tell=warn_of)
        await workspace.submit(run)
        with _stopping(workspace, lambda: engine.stop(run.id)) as interrupted:
            if logs:
                printed = Logs(store)
                end = asyncio.ensure_future(engine.wait(run.id))
                await watch(engine, end, lambda: printed.update(store.read(run.id)))
            else:
                await _show(workspace, engine.wait(run.id), lambda: step_rows(store.read(run.id)))
        record = store.read(run.id)
        with contextlib.suppress(BrokenPipeError):  # How it ended is true all the same.
            if as_json:
                from ..runs import environments

                output.say_json(environments.view(store, record))
            else:
                _tell_end(workspace, record)
        return 130 if interrupted else 0 if record.state.state in GOOD else 1
    finally:
        await workspace.close()


def warn_of(problem: Problem) -> None:
    if problem.severity == "warning":
        output.warn(problem.message)


async def follow_sweep(
    workspace: Workspace, request: Request, sweep: dict[str, Any], as_json: bool
) -> int:
    """Start it, watch its runs, and return the exit code."""
    sweeps = workspace.sweeps

    def rows() -> list[Row]:
        view = sweeps.view(sweep_id)
        return run_rows(view["points"], view["runs"])

    try:
        sweep_id = await workspace.create_sweep(request, tell=warn_of, **sweep)
        with _stopping(workspace, lambda: sweeps.stop(sweep_id)) as interrupted:
            await _show(workspace, sweeps.wait(sweep_id), rows)
        view = sweeps.view(sweep_id)
        with contextlib.suppress(BrokenPipeError):
            if as_json:
                output.say_json(view)
            else:
                tell_sweep(view)
        return 130 if interrupted else 0 if view["state"] in GOOD else 1
    finally:
        await workspace.close()


async def _show(
    workspace: Workspace, end: Coroutine[Any, Any, Any], rows: Callable[[], list[Row]]
) -> None:
    """Lines, or on a terminal a table, unless it is over before one could look at it."""
    task = asyncio.ensure_future(end)
    display: Display = Lines()
    if sys.stderr.isatty():
        done, _ = await asyncio.wait({task}, timeout=PATIENCE)
        if done:
            return
        display = await asyncio.to_thread(Table)
    try:
        await watch(workspace.engine, task, lambda: display.update(rows()))
    finally:
        display.close()


@contextlib.contextmanager
def _stopping(
    workspace: Workspace, stop: Callable[[], Coroutine[Any, Any, None]]
) -> Iterator[list[int]]:
    """Ctrl-C stops the run; the second leaves at once and others see it stopped.

    Yields the signals that came.
    """
    loop = asyncio.get_running_loop()
    main = asyncio.current_task()
    came: list[int] = []
    stopping: list[asyncio.Future[None]] = []

    def interrupt(number: int) -> None:
        came.append(number)
        if len(came) == 1 and number != signal.SIGHUP:
            stopping.append(asyncio.ensure_future(stop()))
            with contextlib.suppress(BrokenPipeError):
                output.note("Stopping; press Ctrl-C again to leave at once.")
            return
        assert main is not None
        main.cancel()
        hand_over(workspace.settings)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, interrupt, number)
    try:
        yield came
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    except BrokenPipeError:
        # Nobody is reading any longer, which is no reason to stop.
        hand_over(workspace.settings)
        raise
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def _tell_end(workspace: Workspace, record: Record) -> None:
    run, state = record
    took = elapsed_text((state.ended or run.created) - run.created)
    words = output.paint(state.state, "green" if state.state in GOOD else "red")
    output.say(f"{state.name} {words} in {took} ({run.id})")
    for name, value in {**views.metrics_of(state), **views.outputs_of(*record)}.items():
        output.say(f"  {name} = {shown(value)}")
    for path, why in ((state.files or {}).get("kept") or {}).items():
        output.note(f"{path} was kept with the run and not put into the project: {why}.")
    if (state.files or {}).get("kept"):
        output.note(f"See `convect runs files {run.id}`.")
    failed = [step for step in state.steps.values() if step.state not in (*GOOD, "skipped")]
    for group in not_begun(state):
        if group.state == "failed":
            output.note(f"{group.id}: failed: {group.reason}")
    for step in failed[:MOST_TOLD]:
        _tell_failure(workspace, record, step.id)
    if len(failed) > MOST_TOLD:
        more = len(failed) - MOST_TOLD
        output.note(f"{more} more steps did not succeed: see `convect runs show {run.id}`.")


def _tell_failure(workspace: Workspace, record: Record, step_id: str) -> None:
    step = record.state.steps[step_id]
    output.note(f"{step_id}: {step.state}: {step.reason}")
    if not step.attempts:
        return
    results = files_of(workspace.store, record, step_id, len(step.attempts))
    log = results.folder / "log.txt"
    size = log.stat().st_size if log.exists() else 0
    for line in read_log(results, max(0, size - 4096)).text.splitlines()[-TAIL:]:
        output.note(f"  | {line}")
    notebook = results.folder / "executed.ipynb"
    output.note(f"  {notebook if notebook.exists() else results.folder}")


def tell_sweep(view: dict[str, Json]) -> None:
    runs = {run["id"]: run for run in view["runs"]}
    names = sorted({name for point in view["points"] for name in point["parameters"]})
    metrics = sorted({name for run in view["runs"] for name in run["metrics"]} - set(names))
    rows = []
    for point in view["points"]:
        run = runs.get(point["run"], {"state": "", "metrics": {}})
        rows.append(
            [
                "*" if point["run"] and point["run"] == view["best"] else "",
                *(number(point["parameters"].get(name)) for name in names),
                run["state"],
                *(number(run["metrics"].get(name)) for name in metrics),
                point["run"] or "",
            ]
        )
    output.say(output.table(rows, ("", *names, "state", *metrics, "run")))
    _tell_best(view, metrics)
    if changed := view["changed"]:
        output.note(
            f"Changed since this sweep was submitted: {some_of(changed)}. Points that are added to "
            "it run the version of then; to run that of today, start a new sweep."
        )


def _tell_best(view: dict[str, Json], metrics: list[str]) -> None:
    """By what the best is told or, where nobody could know, how to say it."""
    if view["select"] is not None:
        largest, metric = parse_select(view["select"])
        goal = f"the {'highest' if largest else 'lowest'} {metric}"
        marked = f"* has {goal}." if view["best"] else f"No run succeeded with a finite {metric}."
        output.note(marked)
    elif metrics:
        example = next((name for name in metrics if larger_is_better(name) is not None), metrics[0])
        goal = "min" if larger_is_better(example) is False else "max"
        output.note(f"Mark the best with: convect runs best {view['id']} {goal}:{example}")


def number(value: Json) -> str:
    """A value for a narrow column."""
    return "" if value is None else short(value)
