"""How runs go, on the terminal: lines for a pipe or a log, a live table for a person."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..pipeline.plan import Json
from ..results import read_log, results_of
from ..runs.engine import Engine
from ..runs.model import StepState
from ..runs.store import Record, Store
from . import output

TICK = 0.1

STYLES = {
    "succeeded": "green",
    "cached": "green",
    "failed": "red",
    "lost": "red",
    "cancelled": "yellow",
}

URGENCY = {"running": 0, "starting": 0, "failed": 1, "queued": 2, "waiting": 3}
"""What to show first when there is no room for all."""


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
    """One line for each change, on standard error."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, int]] = {}

    def update(self, rows: list[Row]) -> None:
        for row in rows:
            if row.state == "waiting" or self._seen.get(row.name) == (row.state, row.attempt):
                continue
            self._seen[row.name] = (row.state, row.attempt)
            tries = f" (attempt {row.attempt})" if row.attempt > 1 else ""
            words = f": {row.words}" if row.words else ""
            output.note(f"{time.strftime('%H:%M:%S')} {row.name}: {row.state}{tries}{words}")

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
    _offsets: dict[tuple[str, str, int], int] = field(default_factory=dict)

    def update(self, record: Record) -> None:
        for step in record.state.steps.values():
            if self.step in (None, step.id):
                for number in self._attempts(step):
                    self._pass_on(record, step.id, number)
        with output.writing():
            sys.stdout.flush()

    def _attempts(self, step: StepState) -> list[int]:
        """All of them, or the one that is asked for; a result taken over is the first."""
        if self.attempt is not None:
            return [self.attempt]
        return list(range(1, len(step.attempts) + 1)) or ([1] if step.source else [])

    def _pass_on(self, record: Record, step: str, number: int) -> None:
        results = results_of(self.store, record, step, number)
        key = (record.run.id, step, number)
        offset = self._offsets.get(key, 0)
        while True:
            chunk = read_log(results, offset)
            with output.writing():
                sys.stdout.write(chunk.text)
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
            update()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(changed.wait(), 0.5)
            await asyncio.wait({end}, timeout=TICK)
        await end
        update()
    finally:
        forget()


def step_rows(record: Record) -> list[Row]:
    return [
        Row(
            name=step.id,
            state=step.state,
            words=_words(step),
            share=_share(step),
            elapsed=_elapsed(step.started, step.ended),
            attempt=max(1, len(step.attempts)),
        )
        for step in record.state.steps.values()
    ]


def run_rows(points: list[dict[str, Json]], runs: list[dict[str, Json]]) -> list[Row]:
    """The points of a sweep that have a run, with how it goes."""
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


def seconds(number: float) -> str:
    """`0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`."""
    if number < 10:
        return f"{number:.1f} s"
    whole = round(number)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _elapsed(started: float | None, ended: float | None) -> str:
    return "" if started is None else seconds((ended or time.time()) - started)


def _share(step: StepState) -> float | None:
    if step.state != "running" or step.progress is None or not step.progress.cells:
        return None
    return min(step.progress.cell / step.progress.cells, 1.0)


def _words(step: StepState) -> str:
    if step.state == "running" and step.progress is not None and step.progress.cells:
        return f"cell {step.progress.cell} of {step.progress.cells}"
    return step.reason or ""
