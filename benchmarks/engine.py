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
from typing import TYPE_CHECKING, cast

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

if TYPE_CHECKING:
    from jupyterlab_convect.pipeline.types import Document

SHAPES = {"chain": (100, 1000, 5000), "loop": (1000, 10_000)}
"""How many steps one after the other, and how many items of one loop."""


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
    for shape, counts in SHAPES.items():
        cost: dict[int, float] = {}
        for count in counts:
            # A process each, so that memory is this run's alone.
            command = [sys.executable, "-m", "benchmarks.engine", str(count), shape]
            answer = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
            cost[count] = answer["cpu"] / count * 1000
            of = "" if shape == "chain" else "for-each of "
            yield Result(
                f"engine, {of}{count} no-op steps", cost[count], "ms CPU per step", budget=1.2,
                note=f"{answer['bytes'] / count / 1024:.1f} KiB a step at the peak",
            )  # fmt: skip
        many = counts[-1]
        what = "a step" if shape == "chain" else "an item"
        yield Result(
            f"engine, cost of {what} with {many} against 1000", cost[many] / cost[1000],
            budget=1.2, against="itself", note="1 is linear",
        )  # fmt: skip


def loop(count: int) -> Document:
    """One node for each of so many items."""
    node = {
        "kind": "command",
        "command": ["true", "${{ each.n }}"],
        "for_each": {"name": "n", "in": [*range(count)]},
    }
    return cast("Document", {"convect": 1, "nodes": {"loop": node}})


async def drive(count: int, shape: str, folder: Path) -> str:
    """Run so many steps to their end, in the runs below a folder; the id of the run."""
    store = Store(folder / "runs", Index(folder / "index.sqlite"))
    engine = Engine(store, {"nothing": NothingRuntime()})
    document = loop(count) if shape == "loop" else cast("Document", chain(count))
    plan = resolve(document, root=folder, path=None, parameters={})
    now = time.time()
    request = Request(root=str(folder), runtime="nothing", use_cache=False)
    run = Run(new_id(now), "nothing", now, "nothing", plan, request)
    await engine.submit(run)
    state = await engine.wait(run.id)
    assert state.state == "succeeded", state.reason
    await engine.close()
    store.close()
    return run.id


def _main(count: int, shape: str) -> None:
    with tempfile.TemporaryDirectory(prefix="convect-bench-") as scratch:
        before = resource.getrusage(resource.RUSAGE_SELF)
        asyncio.run(drive(count, shape, Path(scratch)))
        after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps({"cpu": cpu, "bytes": (after.ru_maxrss - before.ru_maxrss) * 1024}))


if __name__ == "__main__":
    _main(int(sys.argv[1]), *sys.argv[2:])
