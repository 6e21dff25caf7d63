"""Attempt folders, and the real runner to execute them."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest

from jupyterlab_convect.runner.attempt import run

KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


@dataclass
class Ended:
    """What a runner left behind."""

    folder: Path
    code: int | None

    @property
    def outputs(self) -> dict[str, Any]:
        return json.loads((self.folder / "outputs.json").read_text())

    @property
    def state(self) -> str:
        return self.outputs["state"]

    @property
    def reason(self) -> str:
        return self.outputs["reason"]

    @property
    def events(self) -> list[dict[str, Any]]:
        text = (self.folder / "events.ndjson").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def events_of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]

    @property
    def log(self) -> str:
        return (self.folder / "log.txt").read_bytes().decode(errors="replace")

    @property
    def notebook(self) -> Any:
        return nbformat.read(self.folder / "executed.ipynb", as_version=4)

    def printed(self, index: int) -> str:
        """What a cell of the executed notebook printed."""
        outputs = self.notebook.cells[index].outputs
        return "".join(o.text for o in outputs if o.output_type == "stream")


class Bench:
    """Makes attempts and runs them, in this process or in one of their own."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.work = place / "work"
        self.work.mkdir()
        self._count = 0
        self._processes: list[subprocess.Popen[str]] = []

    def notebook(self, *cells: Any, name: str = "n.ipynb", **metadata: Any) -> Path:
        """A notebook of code cells; a cell is its source, or (source, tags)."""
        notebook = nbformat.v4.new_notebook(metadata={"kernelspec": KERNEL, **metadata})
        for cell in cells:
            source, tags = cell if isinstance(cell, tuple) else (cell, [])
            notebook.cells.append(nbformat.v4.new_code_cell(source, metadata={"tags": tags}))
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, path)
        return path

    def attempt(self, source: Path | None = None, **step: Any) -> Path:
        self._count += 1
        folder = self.place / f"attempt {self._count}"
        folder.mkdir()
        if source is not None:
            kind = "notebook" if source.suffix == ".ipynb" else "script"
            step = {"kind": kind, "source": str(source), **step}
        step = {"step": "s", "run": {"id": "r"}, "attempt": 1, "folder": str(self.work), **step}
        if how := step.get("distributed"):
            step["distributed"] = {"key": "k", **how}
        (folder / "step.json").write_text(json.dumps(step))
        return folder

    def run(self, source: Path | None = None, **step: Any) -> Ended:
        folder = self.attempt(source, **step)
        return Ended(folder, run(folder))

    def cells(self, *cells: Any, **step: Any) -> Ended:
        return self.run(self.notebook(*cells), **step)

    def script(self, text: str, name: str = "s.py", **step: Any) -> Ended:
        path = self.work / name
        path.write_text(text)
        return self.run(path, **step)

    def start(self, folder: Path, **env: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab_convect.runner", str(folder)],
            env={**os.environ, **env},
            stderr=subprocess.PIPE,
            text=True,
        )
        self._processes.append(process)
        return process

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()


@pytest.fixture
def bench(tmp_path):
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    bench = Bench(tmp_path)
    yield bench
    bench.close()
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def enough_memory(monkeypatch):
    """Nobody on this machine is killed for want of memory meanwhile, other tests included."""
    monkeypatch.setattr("jupyterlab_convect.runner.outcome.count_all_kills", lambda: 0)


@pytest.fixture
def wait_for(until):
    return until
