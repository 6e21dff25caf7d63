"""How a run goes, on the terminal: lines for a pipe or a log, a live table for a person."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..results import read_log, results_of
from ..runs.model import StepState
from ..runs.store import Record
from ..workspace import Workspace
from . import output

TICK = 0.1
PATIENCE = 0.4
"""Seconds; what is done by then is not worth a live table."""

STYLES = {
    "succeeded": "green",
    "cached": "green",
    "failed": "red",
    "lost": "red",
    "cancelled": "yellow",
    "skipped": "dim",
    "running": "blue",
    "starting": "blue",
}


class Display(Protocol):
    def update(self, records: list[Record]) -> None: ...

    def close(self) -> None: ...


@dataclass
class Lines:
    """One line for each change of a step, on standard error."""

    several: bool = False
    _seen: dict[tuple[str, str], str] = field(default_factory=dict)

    def update(self, records: list[Record]) -> None:
        for run, state in records:
            for step in state.steps.values():
                words = _line(step)
                if words is not None and self._seen.get((run.id, step.id)) != words:
                    self._seen[run.id, step.id] = words
                    name = f"{state.name}: {step.id}" if self.several else step.id
                    output.note(f"{time.strftime('%H:%M:%S')} {name}: {words}")

    def close(self) -> None:
        """Nothing is left on the screen."""


class Table:
    """A table that is drawn over and over, with a bar for each step that runs."""

    ROWS = 30

    def __init__(self, several: bool = False) -> None:
        from rich.console import Console
        from rich.live import Live

        self._several = several
        self._live = Live(console=Console(stderr=True), transient=True, auto_refresh=False)
        self._live.start()

    def update(self, records: list[Record]) -> None:
        self._live.update(self._draw(records), refresh=True)

    def close(self) -> None:
        self._live.stop()

    def _draw(self, records: list[Record]) -> Any:
        from rich.progress_bar import ProgressBar
        from rich.spinner import Spinner
        from rich.table import Table as Grid
        from rich.text import Text

        grid = Grid.grid(padding=(0, 2))
        rows = self._rows(records)
        for name, state, share, elapsed, words in rows[: self.ROWS]:
            mark: Any = Text("●", style=STYLES.get(state, "dim"))
            if state in ("running", "starting"):
                mark = Spinner("dots", style="blue")
            bar = "" if share is None else ProgressBar(1.0, share, width=20)
            grid.add_row(mark, Text(name), Text(state), bar, Text(elapsed), Text(words, "dim"))
        if len(rows) > self.ROWS:
            grid.add_row("", Text(f"and {len(rows) - self.ROWS} more", "dim"))
        return grid

    def _rows(self, records: list[Record]) -> list[tuple[str, str, float | None, str, str]]:
        """What is at work first, then what waits, then what is done."""
        rows: list[tuple[str, str, float | None, str, str]] = [
            (
                f"{state.name}: {step.id}" if self._several else step.id,
                step.state,
                _share(step),
                _elapsed(step),
                _words(step),
            )
            for _, state in records
            for step in state.steps.values()
        ]
        if len(rows) <= self.ROWS:
            return rows
        order = {"running": 0, "starting": 0, "failed": 1, "queued": 2, "waiting": 3}
        return sorted(rows, key=lambda row: order.get(row[1], 4))


@dataclass
class Logs:
    """What the steps print, passed on to standard output as it comes."""

    workspace: Workspace
    step: str | None = None
    attempt: int | None = None
    _offsets: dict[tuple[str, str, int], int] = field(default_factory=dict)

    def update(self, records: list[Record]) -> None:
        for record in records:
            for step in record.state.steps.values():
                if self.step in (None, step.id):
                    for number in self._attempts(step):
                        self._pass_on(record, step.id, number)

    def close(self) -> None:
        """All of it is out."""

    def _attempts(self, step: StepState) -> list[int]:
        """All of them, or the one that is asked for; a result taken over is the first."""
        numbers = list(range(1, len(step.attempts) + 1)) or ([1] if step.source else [])
        return numbers if self.attempt is None else [self.attempt]

    def _pass_on(self, record: Record, step: str, number: int) -> None:
        key = (record.run.id, step, number)
        results = results_of(self.workspace.store, record, step, number)
        while True:
            offset = self._offsets.get(key, 0)
            chunk = read_log(results, offset)
            sys.stdout.write(chunk.text)
            self._offsets[key] = chunk.offset
            if chunk.complete or chunk.offset == offset:
                break
        sys.stdout.flush()


async def watch(
    workspace: Workspace, end: Awaitable[Any], records: Callable[[], list[Record]], display: Display
) -> None:
    """Show how it goes until `end`."""
    changed = asyncio.Event()
    forget = workspace.engine.on_change(lambda *_: changed.set())
    task = asyncio.ensure_future(end)
    task.add_done_callback(lambda _: changed.set())
    try:
        while not task.done():
            changed.clear()
            display.update(records())
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(changed.wait(), 1.0)
                await asyncio.sleep(TICK)
        display.update(records())
        await task
    finally:
        forget()
        display.close()


def _line(step: StepState) -> str | None:
    if step.state == "waiting" and not step.attempts:
        return None
    tries = f" (attempt {len(step.attempts)})" if len(step.attempts) > 1 else ""
    return f"{step.state}{tries}" + (f": {step.reason}" if step.reason else "")


def _share(step: StepState) -> float | None:
    if step.state != "running" or step.progress is None or not step.progress.cells:
        return None
    return min(step.progress.cell / step.progress.cells, 1.0)


def _elapsed(step: StepState) -> str:
    if step.started is None:
        return ""
    return seconds((step.ended or time.time()) - step.started)


def _words(step: StepState) -> str:
    if step.state == "running" and step.progress is not None and step.progress.cells:
        return f"cell {step.progress.cell} of {step.progress.cells}"
    return step.reason or ""


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
