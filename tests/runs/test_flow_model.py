"""Pipelines of every shape come to what the model says, also when a host is followed by another.

Each seed is one pipeline, the same every time.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from random import Random

import pytest
from flow_model import Model, random_document
from inprocess import InProcess

from jupyterlab_convect.pipeline.resolve import resolve
from jupyterlab_convect.runs.engine import Engine
from jupyterlab_convect.runs.index import Index
from jupyterlab_convect.runs.model import ENDED, Request, Run, RunState, Selection, new_id
from jupyterlab_convect.runs.store import Store


class Host:
    """An engine on the runs of a folder."""

    def __init__(self, folder: Path) -> None:
        self._store = Store(folder / "runs", Index(folder / "index.sqlite"))
        self.engine = Engine(self._store, {"inprocess": InProcess()}, beat=0.2)

    async def finish(self, run: Run, *, stops: bool = False) -> RunState:
        await self.engine.submit(run)
        if stops:
            await self.engine.stop(run.id)
        return await self.engine.wait(run.id, 60)

    async def close(self) -> None:
        await self.engine.close()
        self._store.close()


def make_run(plan, folder, **request):
    asked = Request(root=str(folder), runtime="inprocess", **request)
    return Run(new_id(), "flow", time.time(), "inprocess", plan, asked)


def ends(state, *, is_partial=False):
    """How each unit ended, by id and item; of a partial run without what it left out."""
    units = [*state.steps.values(), *state.groups.values()]
    assert {unit.state for unit in units} <= ENDED
    return {
        (unit.node, unit.item): (unit.state.replace("cached", "succeeded"), unit.by_rule)
        for unit in units
        if not (is_partial and unit.reason == "Not part of this partial run.")
    }


@pytest.mark.parametrize("seed", range(40))
async def test_a_pipeline_comes_to_what_the_model_says(tmp_path, seed):
    folder = tmp_path / "first"
    (folder / "runs").mkdir(parents=True)
    document = random_document(seed, folder if seed % 2 else None)
    plan = resolve(document, root=folder, path="outer.pipeline")
    model = Model(plan)
    expected = {key: (end.state, end.by_rule) for key, end in model.ends.items()}
    host = Host(folder)
    run = make_run(plan, folder)
    state = await host.finish(run)
    assert (ends(state), state.state) == (expected, model.state)
    for step in state.steps.values():
        assert step.outputs == model.ends[step.node, step.item].outputs, step.id

    stopped = await host.finish(make_run(plan, folder), stops=True)
    assert ends(stopped)
    assert not (stopped.stopping and stopped.state == "succeeded")

    if state.state == "failed":
        again = make_run(plan, folder, of=run.id, select=Selection("failed"))
        once_more = await host.finish(again)
        assert ends(once_more, is_partial=True).items() <= expected.items()
        assert once_more.state == "failed"
    await host.close()

    await _continue_after_a_cut(folder, tmp_path / "second", run, Random(seed), expected)


async def _continue_after_a_cut(folder, target, run, chance, expected):
    """The next host finds only the beginning of what the first one wrote."""
    shutil.copytree(folder, target)
    events = target / "runs" / run.id / "events.ndjson"
    lines = events.read_text("utf-8").splitlines(keepends=True)
    events.write_text("".join(lines[: chance.randrange(1, len(lines))]), "utf-8")
    for lease in events.parent.glob("lease-*"):
        lease.unlink()
    (target / "index.sqlite").unlink()
    host = Host(target)
    await host.engine.resume()
    assert ends(await host.engine.wait(run.id, 60)) == expected
    await host.close()
