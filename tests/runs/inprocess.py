"""A runtime without processes: what a step does is the first word of its command.

For tests and measurements of the engine alone.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.pipeline.plan import Json, Plan, Retries, Step
from jupyterlab_convect.pipeline.problems import Problem
from jupyterlab_convect.runs.model import Run
from jupyterlab_convect.runtimes.base import Attempt, StepRuntime, StepStatus

Key = tuple[str, str, int]
MakeRun = Callable[..., Run]


def make_step(step_id: str, *command: str, **fields: Any) -> Step:
    """A step that does what its command says; `retries` may be a number."""
    if isinstance(fields.get("retries"), int):
        fields["retries"] = Retries(fields["retries"], delay=0.01)
    fields["after"] = tuple(fields.get("after", ()))
    return Step(step_id, "command", step_id, command=command or ("noop",), **fields)


def failing_first(
    times: int, call: Callable[[Any], Awaitable[Any]]
) -> Callable[[Any], Awaitable[Any]]:
    """The same call, except that nobody answers the first times."""
    left = times

    async def wrapped(argument: Any) -> Any:
        nonlocal left
        left -= 1
        if left >= 0:
            raise ConnectionError("not now")
        return await call(argument)

    return wrapped


class InProcess(StepRuntime):
    """`slots` attempts at a time."""

    name = "inprocess"
    display_name = "In this process"

    def __init__(self, slots: int = 8, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.slots = slots
        self.held: set[Key] = set()
        self.most_held = 0
        self.started: list[Key] = []
        self.released: list[Key] = []
        self.states: dict[Key, StepStatus] = {}
        self.tasks: dict[Key, asyncio.Task[None]] = {}
        self.go_on = asyncio.Event()
        """What steps wait for whose word is `wait`."""

    async def check(self, plan: Plan) -> list[Problem]:
        return []

    def admit(self, attempt: Attempt) -> str | None:
        if attempt.key not in self.held and len(self.held) >= self.slots:
            return f"All {self.slots} slots are taken."
        self.held.add(attempt.key)
        self.most_held = max(self.most_held, len(self.held))
        return None

    def release(self, attempt: Attempt) -> None:
        self.held.discard(attempt.key)

    async def start(self, attempt: Attempt) -> AsyncIterator[Json]:
        word, *arguments = attempt.step.command or ("noop",)
        if word == "refuse":
            raise ConvectError(arguments[0])
        if word == "break":
            raise ZeroDivisionError("a mistake")
        self.started.append(attempt.key)
        self.states[attempt.key] = StepStatus(attempt.key, "running")
        if word == "noop":
            self._finish(attempt)
        else:
            self.tasks[attempt.key] = asyncio.create_task(self._run(attempt, word, arguments))
        yield {"n": len(self.started)}

    async def poll(self, attempts: Sequence[Attempt]) -> list[StepStatus]:
        return [self.states.get(attempt.key) or self._from_folder(attempt) for attempt in attempts]

    async def stop(self, attempt: Attempt) -> None:
        task = self.tasks.get(attempt.key)
        if task is not None and not task.done():
            task.cancel()
            self._finish(attempt, "cancelled", "Stopped.")

    async def _run(self, attempt: Attempt, word: str, arguments: list[str]) -> None:
        step = json.loads((attempt.folder / "step.json").read_text())
        folder = Path(step["folder"])
        values: dict[str, Json] = {}
        files: list[dict[str, Json]] = []
        if word == "sleep":
            await asyncio.sleep(float(arguments[0]))
        elif word == "wait":
            await self.go_on.wait()
        elif word == "fail":
            self._finish(attempt, "failed", arguments[0])
            return
        elif word == "flaky":  # Fails until the given attempt.
            if attempt.number < int(arguments[0]):
                self._finish(attempt, "failed", "Not yet.")
                return
        elif word == "value":
            values = dict(step["parameters"])
        elif word == "write":
            data = arguments[1].encode()
            for target in (folder / arguments[0], attempt.folder / "files" / arguments[0]):
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
            digest = "sha256:" + hashlib.sha256(data).hexdigest()
            files = [{"path": arguments[0], "size": len(data), "digest": digest}]
        elif word == "vanish":
            self.states[attempt.key] = StepStatus(attempt.key, "lost")
            self.changed()
            return
        elif word == "lie":  # Says it succeeded and leaves what it was told to.
            (attempt.folder / "outputs.json").write_text(arguments[0])
            self.states[attempt.key] = StepStatus(attempt.key, "succeeded")
            self.changed()
            return
        elif word == "nothing":
            self.states[attempt.key] = StepStatus(attempt.key, "succeeded")
            self.changed()
            return
        self._finish(attempt, values=values, files=files)

    def _finish(
        self,
        attempt: Attempt,
        state: Any = "succeeded",
        reason: str | None = None,
        values: dict[str, Json] | None = None,
        files: list[dict[str, Json]] | None = None,
    ) -> None:
        now = time.time()
        outcome = {"state": state, "started": now, "ended": now, "metrics": {}}
        outcome |= {"reason": reason, "values": values or {}, "files": files or []}
        (attempt.folder / "outputs.json").write_text(json.dumps(outcome))
        self.states[attempt.key] = StepStatus(attempt.key, state, reason)
        self.changed()

    def _from_folder(self, attempt: Attempt) -> StepStatus:
        if (attempt.folder / "outputs.json").exists():
            state = json.loads((attempt.folder / "outputs.json").read_text())["state"]
            return StepStatus(attempt.key, state)
        return StepStatus(attempt.key, "lost")
