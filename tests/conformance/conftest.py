"""One suite for every runtime. To add yours: a function that makes it, and its name in RUNTIMES."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE

from jupyterlab_convect.pipeline.resolve import plan_for_file, resolve
from jupyterlab_convect.runs.engine import Engine
from jupyterlab_convect.runs.index import Index
from jupyterlab_convect.runs.model import Request, Run, RunState, Selection, new_id
from jupyterlab_convect.runs.project import take_snapshot
from jupyterlab_convect.runs.store import Store
from jupyterlab_convect.runtimes.base import StepRuntime
from jupyterlab_convect.runtimes.local import LocalRuntime

RUNTIMES: dict[str, Callable[[], StepRuntime]] = {"local": LocalRuntime}


class Lab:
    """A root folder, a runs folder, and a runtime with an engine that can be replaced."""

    many = int(os.environ.get("CONVECT_TEST_ITEMS", "100"))
    """How many items a long loop has."""

    def __init__(self, folder: Path, make: Callable[[], StepRuntime]) -> None:
        self.root = folder / "root"
        self.root.mkdir()
        self._folder = folder
        self._make = make
        (folder / "runs").mkdir()
        self.open()

    def open(self) -> None:
        self.store = Store(self._folder / "runs", Index(self._folder / "index.sqlite"))
        self.runtime = self._make()
        self.engine = Engine(self.store, {self.runtime.name: self.runtime})

    async def close(self) -> None:
        """What happens when the host goes away in good order: steps go on."""
        await self.engine.close()
        await self.runtime.close()
        self.store.close()

    def start_host(self) -> subprocess.Popen[bytes]:
        """A process of its own that drives all runs which nobody else drives."""
        kind = type(self.runtime)
        given = self.runtime.traits(config=True)
        traits = {name: getattr(self.runtime, name) for name in given}
        traits = {name: value for name, value in traits.items() if value != given[name].default()}
        return subprocess.Popen(
            [
                *(sys.executable, str(Path(__file__).with_name("host.py")), str(self._folder)),
                *(f"{kind.__module__}:{kind.__qualname__}", json.dumps(traits, default=str)),
            ]
        )

    def write(self, path: str, text: str) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        return target

    def notebook(self, path: str, *cells: str | tuple[str, str]) -> Path:
        """A notebook of code cells; a cell is its source, or `(tag, source)`."""
        content = {
            "cells": [_cell(number, cell) for number, cell in enumerate(cells)],
            "metadata": {
                "kernelspec": {"name": "python3", "display_name": "p", "language": "python"},
                "language_info": {"name": "python"},
            },
            "nbformat": 4,
            "nbformat_minor": 5,
        }
        return self.write(path, json.dumps(content))

    async def start(
        self,
        what: str | dict[str, Any],
        parameters: dict[str, Any] | None = None,
        select: Selection | None = None,
        settings: dict[str, Any] | None = None,
        *,
        own_view: bool = False,
        **request: Any,
    ) -> Run:
        """Start a file, or a pipeline given by its nodes.

        Most tests look into the folder while a run works there; with `own_view` it works in its
        own version of the folder, as runs do that nobody has told otherwise.
        """
        if isinstance(what, str):
            plan = plan_for_file(what, self.root, parameters, settings)
        else:
            document: Any = {"convect": 1, "name": "pipeline", "nodes": what}
            plan = resolve(document, root=self.root, parameters=parameters, settings=settings)
        asked = Request(
            path=plan.path,
            root=str(self.root),
            runtime=self.runtime.name,
            parameters=parameters or {},
            select=select or Selection(),
            **request,
        )
        snapshot = take_snapshot(self.store.snapshots, plan, self.root) if own_view else None
        now, name = time.time(), self.runtime.name
        run = Run(new_id(), plan.name, now, name, plan, asked, snapshot=snapshot)
        await self.engine.submit(run)
        return run

    async def finish(self, *what: Any, **how: Any) -> tuple[Run, RunState]:
        run = await self.start(*what, **how)
        return run, await self.engine.wait(run.id, PATIENCE)

    async def succeed(self, *what: Any, **how: Any) -> tuple[Run, RunState]:
        run, state = await self.finish(*what, **how)
        reasons = {step.id: step.reason for step in state.steps.values() if step.reason}
        assert state.state == "succeeded", (state.reason, reasons)
        return run, state

    def result(self, run: Run, step_id: str) -> Path:
        folder = self.store.result_folder(run.id, step_id)
        assert folder is not None
        return folder


def _cell(number: int, cell: str | tuple[str, str]) -> dict[str, Any]:
    tag, source = (None, cell) if isinstance(cell, str) else cell
    return {
        "cell_type": "code",
        "id": f"cell{number}",
        "metadata": {"tags": [tag]} if tag else {},
        "source": source,
        "outputs": [],
        "execution_count": None,
    }


@pytest.fixture(params=RUNTIMES)
async def lab(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Lab]:
    lab = Lab(tmp_path, RUNTIMES[request.param])
    yield lab
    await lab.close()
