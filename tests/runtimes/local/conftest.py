"""The local runtime, driven by hand the way the engine drives it."""

import asyncio
import json
import os
import time
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from waiting import PATIENCE

from jupyterlab_convect.pipeline.plan import Plan, Step
from jupyterlab_convect.runner.processes import is_alive
from jupyterlab_convect.runtimes.base import Attempt
from jupyterlab_convect.runtimes.local import LocalRuntime
from jupyterlab_convect.runtimes.local.machine import Reservations

OVER = ("succeeded", "failed", "cancelled", "lost")


class Driver:
    def __init__(self, runtime, place):
        self.runtime = runtime
        self.place = place
        self._count = 0

    def attempt(self, source, *, settings=None, **step):
        """An attempt at a notebook (cells), a script (`x.py`, text) or a command."""
        self._count += 1
        name = f"{self._count} é"
        folder = self.place / f"runs {id(self)}" / name
        folder.mkdir(parents=True)
        work = self.place / "work"
        work.mkdir(exist_ok=True)
        described = {"step": "s", "attempt": 1, "folder": str(work), "kernel": "python3"}
        if isinstance(source, list):
            kind, path = "notebook", work / f"n{self._count}.ipynb"
            spec = {"name": "python3", "display_name": "p", "language": "python"}
            notebook = nbformat.v4.new_notebook(metadata={"kernelspec": spec})
            notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in source]
            nbformat.write(notebook, path)
        else:
            kind, path = "script", work / f"s{self._count}{source[0]}"
            path.write_text(source[1])
            described["kernel"] = None
        described |= {"kind": kind, "source": str(path), **step}
        (folder / "step.json").write_text(json.dumps(described))
        step = Step("s", kind, "s", path=path.name, **(settings or {}))
        about = {"root": work, "plan": Plan("p", (step,)), "runs": folder}
        return Attempt(f"run{self._count}", step, 1, folder, **about)

    async def start(self, attempt):
        async for handle in self.runtime.start(attempt):
            attempt = replace(attempt, handle=json.loads(json.dumps(handle)))
        return attempt

    async def until(self, attempt, *states, patience=PATIENCE):
        deadline = time.monotonic() + patience
        while True:
            (status,) = await self.runtime.poll([attempt])
            if status.state in states:
                return status
            assert status.state not in OVER, status
            assert time.monotonic() < deadline, status
            await asyncio.sleep(0.01)

    async def run(self, source, **step):
        """Run it to its end; the attempt, its last status and its log."""
        attempt = await self.start(self.attempt(source, **step))
        status = await self.until(attempt, *OVER)
        self.runtime.release(attempt)
        log = (attempt.folder / "log.txt").read_text()
        return attempt, status, log


@pytest.fixture
async def make(tmp_path):
    """Make runtimes with a reservations of their own."""
    made = []

    def make(**traits):
        runtime = LocalRuntime(**traits)
        runtime.reservations = Reservations(tmp_path)
        made.append(runtime)
        return Driver(runtime, tmp_path)

    yield make
    for runtime in made:
        await runtime.close()


@pytest.fixture
def wait_for(eventually):
    return eventually


def exists(pid):
    return Path(f"/proc/{pid}").exists() and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[
        2
    ].split()[0] not in ("Z", "X")


@pytest.fixture
def alive():
    def alive(what):
        if isinstance(what, int):
            try:
                return exists(what)
            except OSError:
                return False
        return is_alive(what)

    return alive


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch):
    for name in list(os.environ):
        if name.startswith("CONVECT_SECRET"):
            monkeypatch.delenv(name)
