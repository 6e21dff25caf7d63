"""What a runtime made for a run as a whole is removed before the run ends."""

from __future__ import annotations

from typing import Any

import pytest
from inprocess import InProcess, make_step
from waiting import eventually

from jupyterlab_convect.errors import Refused
from jupyterlab_convect.pipeline.plan import Plan, Volume
from jupyterlab_convect.runs.engine import Engine

SCRATCH = (Volume("scratch", "/scratch", size="1Gi"),)


class MakesClaims(InProcess):
    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.ended: list[str] = []
        self.trouble = ""

    async def end_run(self, run: str, plan: Plan) -> None:
        assert not self.held
        self.ended.append(run)
        if self.trouble:
            raise Refused(self.trouble)


@pytest.fixture
def runtime() -> MakesClaims:
    return MakesClaims()


async def test_once_after_the_last_step_however_it_ended(runtime, finish, make_run):
    good = make_run(make_step("a", volumes=SCRATCH), make_step("b", after=["a"]))
    assert (await finish(good)).state == "succeeded"
    bad = make_run(make_step("a", "fail", "no", volumes=SCRATCH))
    assert (await finish(bad)).state == "failed"
    assert (await finish(make_run(make_step("a")))).state == "succeeded"
    assert runtime.ended == [good.id, bad.id]


async def test_what_cannot_be_removed_is_said(runtime, finish, make_run):
    runtime.trouble = "The cluster cannot be reached."
    state = await finish(make_run(make_step("a", volumes=SCRATCH)))
    assert state.state == "succeeded"
    words = "Its volume claims could not be deleted: The cluster cannot be reached."
    assert state.reason == words


async def test_who_goes_on_with_a_run_removes_it_too(runtime, engine, make_run, store):
    run = make_run(make_step("a", "wait", volumes=SCRATCH))
    await engine.submit(run)
    await eventually(lambda: runtime.started)
    await engine.close()
    second = Engine(store, {"inprocess": runtime}, beat=0.2)
    await second.resume()
    runtime.go_on.set()
    assert (await second.wait(run.id, 60)).state == "succeeded"
    assert runtime.ended == [run.id]
    await second.close()


async def test_a_result_on_such_a_volume_is_not_reused(finish, make_run):
    step = make_step("a", "value", volumes=SCRATCH, cache=True)
    await finish(make_run(step))
    state = await finish(make_run(step))
    assert state.steps["a"].state == "succeeded"
    assert "a volume that is made for each run" in state.steps["a"].cache
