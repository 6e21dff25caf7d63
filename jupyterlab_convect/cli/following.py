"""Drive a run from the terminal, show how it goes, and say how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from ..host import hand_over
from ..json_text import short, shown
from ..pipeline.metrics import larger_is_better
from ..pipeline.plan import Json
from ..results import read_log, results_of
from ..runs import environments, views
from ..runs.best import parse_select
from ..runs.model import GOOD, Request
from ..runs.store import Record
from ..workspace import Workspace
from . import output
from .progress import Display, Lines, Logs, Row, Table, run_rows, seconds, step_rows, watch

TAIL = 15
PATIENCE = 0.4
"""Seconds; what is over by then is not worth a live table."""


async def follow_run(workspace: Workspace, request: Request, logs: bool, as_json: bool) -> int:
    """Submit it, watch it, and return the exit code."""
    engine, store = workspace.engine, workspace.store
    try:
        run = workspace.make(request)
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
                output.say_json(environments.view(store, record))
            else:
                _tell_end(workspace, record)
        return 130 if interrupted else 0 if record.state.state in GOOD else 1
    finally:
        await workspace.close()


async def follow_sweep(
    workspace: Workspace, request: Request, sweep: dict[str, Any], as_json: bool
) -> int:
    """Start it, watch its runs, and return the exit code."""
    sweeps = workspace.sweeps

    def rows() -> list[Row]:
        view = sweeps.view(sweep_id)
        return run_rows(view["points"], view["runs"])

    try:
        sweep_id = await workspace.create_sweep(request, **sweep)
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
        # Nobody reads any more, which is no reason to stop.
        hand_over(workspace.settings)
        raise
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def _tell_end(workspace: Workspace, record: Record) -> None:
    run, state = record
    took = seconds((state.ended or run.created) - run.created)
    words = output.paint(state.state, "green" if state.state in GOOD else "red")
    output.say(f"{state.name} {words} in {took} ({run.id})")
    for name, value in {**views.metrics_of(*record), **_outputs(record)}.items():
        output.say(f"  {name} = {shown(value)}")
    for path, why in ((state.files or {}).get("kept") or {}).items():
        output.note(f"{path} was kept with the run and not put into the project: {why}.")
    if (state.files or {}).get("kept"):
        output.note(f"See `convect runs files {run.id}`.")
    for step in state.steps.values():
        if step.state not in GOOD and step.state != "skipped":
            _tell_failure(workspace, record, step.id)


def _tell_failure(workspace: Workspace, record: Record, step_id: str) -> None:
    step = record.state.steps[step_id]
    output.note(f"{step_id}: {step.state}: {step.reason}")
    if not step.attempts:
        return
    results = results_of(workspace.store, record, step_id, len(step.attempts))
    log = results.folder / "log.txt"
    size = log.stat().st_size if log.exists() else 0
    for line in read_log(results, max(0, size - 4096)).text.splitlines()[-TAIL:]:
        output.note(f"  | {line}")
    notebook = results.folder / "executed.ipynb"
    output.note(f"  {notebook if notebook.exists() else results.folder}")


def _outputs(record: Record) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for step in record.run.plan.steps:
        found.update(record.state.steps[step.id].outputs)
    return found


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
        listed = ", ".join(changed[:3]) + (", …" if len(changed) > 3 else "")
        output.note(
            f"Changed since this sweep was submitted: {listed}. Points that are added to it run "
            "the version of then; to run that of today, start a new sweep."
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
