"""The engine alone: steps that do nothing, on a runtime that is done at once."""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

from jupyterlab_convect.pipeline.plan import Json, Plan
from jupyterlab_convect.pipeline.problems import Problem
from jupyterlab_convect.pipeline.resolve import resolve
from jupyterlab_convect.runs.engine import Engine
from jupyterlab_convect.runs.index import Index
from jupyterlab_convect.runs.model import Request, Run, new_id
from jupyterlab_convect.runs.store import Store
from jupyterlab_convect.runtimes.base import Attempt, StepRuntime, StepStatus

from .measure import Result
from .workloads import chain

COUNTS = (100, 1000, 5000)


class NothingRuntime(StepRuntime):
    """Writes the outcome of an attempt the moment it is started."""

    name = "nothing"
    display_name = "Nothing"

    async def check(self, plan: Plan) -> list[Problem]:
        return []

    async def start(self, attempt: Attempt) -> AsyncIterator[Json]:
        now = time.time()
        outcome = {"state": "succeeded", "started": now, "ended": now, "values": {}, "files": []}
        (attempt.folder / "outputs.json").write_text(json.dumps(outcome))
        yield {"started": now}
        self.changed()

    async def poll(self, attempts: Sequence[Attempt]) -> list[StepStatus]:
        return [StepStatus(attempt.key, "succeeded") for attempt in attempts]

    async def stop(self, attempt: Attempt) -> None:
        pass


def rows() -> Iterator[Result]:
    cost: dict[int, float] = {}
    for count in COUNTS:
        # A process each, so that memory is this run's alone.
        command = [sys.executable, "-m", "benchmarks.engine", str(count)]
        answer = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        cost[count] = answer["cpu"] / count * 1000
        yield Result(
            f"engine, {count} no-op steps", cost[count], "ms CPU per step", budget=1.2,
            note=f"{answer['bytes'] / count / 1024:.1f} KiB a step at the peak",
        )  # fmt: skip
    yield Result(
        "engine, cost of a step with 5000 against 1000", cost[5000] / cost[1000],
        budget=1.2, against="itself", note="1 is linear",
    )  # fmt: skip


async def _drive(count: int, folder: Path) -> None:
    store = Store(folder / "runs", Index(folder / "index.sqlite"))
    engine = Engine(store, {"nothing": NothingRuntime()})
    plan = resolve(chain(count), root=folder, path=None, parameters={})  # type: ignore[arg-type]
    now = time.time()
    request = Request(root=str(folder), runtime="nothing", use_cache=False)
    run = Run(new_id(now), "nothing", now, "nothing", plan, request)
    await engine.submit(run)
    state = await engine.wait(run.id)
    assert state.state == "succeeded", state.reason
    await engine.close()
    store.close()


def _main(count: int) -> None:
    with tempfile.TemporaryDirectory(prefix="convect-bench-") as scratch:
        before = resource.getrusage(resource.RUSAGE_SELF)
        asyncio.run(_drive(count, Path(scratch)))
        after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps({"cpu": cpu, "bytes": (after.ru_maxrss - before.ru_maxrss) * 1024}))


if __name__ == "__main__":
    _main(int(sys.argv[1]))
