"""The smallest honest runtime: one process a step, no admission, no warm anything.

It keeps the suite from learning the habits of one runtime, and drives the crash test.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from jupyterlab_convect.pipeline.plan import Json, Plan
from jupyterlab_convect.pipeline.problems import Problem
from jupyterlab_convect.runner.identity import identify, is_alive
from jupyterlab_convect.runtimes.base import Attempt, StepRuntime, StepStatus


class Processes(StepRuntime):
    name = "processes"
    display_name = "Processes"

    async def check(self, plan: Plan) -> list[Problem]:
        return []

    async def start(self, attempt: Attempt) -> AsyncIterator[Json]:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab_convect.runner", str(attempt.folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        asyncio.get_running_loop().run_in_executor(None, self._wait, process)
        yield identify(process.pid)

    async def poll(self, attempts: Sequence[Attempt]) -> list[StepStatus]:
        return [StepStatus(attempt.key, *self._look(attempt)) for attempt in attempts]

    async def stop(self, attempt: Attempt) -> None:
        runner = _read(attempt.folder / "runner.json") or attempt.handle
        if runner is not None and is_alive(runner):
            os.kill(runner["pid"], signal.SIGTERM)

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        self.changed()

    def _look(self, attempt: Attempt) -> tuple[Any, ...]:
        """The runner that claimed the attempt counts, not the one that we happened to start."""
        claimed = _read(attempt.folder / "runner.json")
        running = is_alive(claimed or attempt.handle or {})
        outcome = _read(attempt.folder / "outputs.json")
        if outcome is not None:
            return outcome["state"], outcome.get("reason")
        if running:
            return ("running",) if claimed else ("starting",)
        if claimed is None and attempt.handle is None:
            return ("lost",)
        return "failed", "The process is gone and left no result."


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
