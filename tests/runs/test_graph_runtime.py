"""A runtime that is handed whole graphs, and the engine that follows it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from inprocess import InProcess, make_step
from waiting import eventually

from jupyterlab_convect.errors import Refused
from jupyterlab_convect.pipeline.plan import Json, Plan
from jupyterlab_convect.runs.engine import Engine
from jupyterlab_convect.runs.model import Selection
from jupyterlab_convect.runtimes.base import Attempt, GraphRuntime


class TakesGraphs(GraphRuntime, InProcess):
    """What it was handed is kept; a step does its work when the engine gets there."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.handed: list[tuple[Plan, Json]] = []
        self.fails_once = False

    async def submit(self, attempt: Attempt, known: Json) -> AsyncIterator[Json]:
        yield {"asked": True}
        self.handed.append((attempt.plan, known))
        if self.fails_once:
            self.fails_once = False
            raise Refused("Not now.")
        yield {"id": str(len(self.handed)), "done": True}

    async def start(self, attempt: Attempt) -> AsyncIterator[Json]:
        async for handle in GraphRuntime.start(self, attempt):
            yield handle
        async for _ in InProcess.start(self, attempt):
            pass


@pytest.fixture
def runtime() -> TakesGraphs:
    return TakesGraphs()


async def test_the_graph_is_handed_over_once(runtime, finish, make_run, store):
    run = make_run(make_step("a"), make_step("b"), make_step("c", after=["a", "b"]))
    assert (await finish(run)).state == "succeeded"
    assert runtime.handed == [(run.plan, None)]
    graph = json.loads((store.run_folder(run.id) / "graph.json").read_bytes())
    assert graph == {"id": "1", "done": True}


async def test_who_asked_and_heard_nothing_asks_with_what_is_known(runtime, finish, make_run):
    runtime.fails_once = True
    run = make_run(make_step("a", retries=1))
    state = await finish(run)
    assert [attempt.state for attempt in state.steps["a"].attempts] == ["failed", "succeeded"]
    assert [known for _, known in runtime.handed] == [None, {"asked": True}]


async def test_another_engine_does_not_hand_it_over_again(runtime, engine, make_run, store):
    run = make_run(make_step("a", "wait"), make_step("b", after=["a"]))
    await engine.submit(run)
    await eventually(lambda: runtime.started)
    await engine.close()
    second = Engine(store, {"inprocess": runtime}, beat=0.2)
    await second.resume()
    runtime.go_on.set()
    assert (await second.wait(run.id, 60)).state == "succeeded"
    assert len(runtime.handed) == 1
    await second.close()


async def test_a_part_of_a_run_is_handed_over_with_the_values_of_the_rest(
    runtime, finish, make_run
):
    steps = (
        make_step("a", "value", parameters={"n": 3}),
        make_step("b", "fail", "no", after=["a"], parameters={"m": "${{ nodes.a.outputs.n }}"}),
        make_step("c", after=["b"], when="${{ nodes.a.outputs.n > 2 }}"),
    )
    first = make_run(*steps)
    assert (await finish(first)).state == "failed"
    second = make_run(*steps, select=Selection("failed"), of=first.id)
    state = await finish(second)
    assert state.steps["a"].state == "cached"
    plan = runtime.handed[1][0]
    assert [(step.id, step.after) for step in plan.steps] == [("b", ()), ("c", ("b",))]
    assert plan.step("b").parameters == {"m": 3}
    assert plan.step("c").when is True


async def test_what_comes_first_is_reused_and_the_rest_is_handed_over(runtime, finish, make_run):
    a = make_step("a", "value", parameters={"n": 3}, cache=True)
    b = make_step("b", "value", after=["a"], parameters={"m": "${{ nodes.a.outputs.n }}"})
    c = make_step("c", "value", after=["b"], cache=True)
    first = make_run(a, b, c)
    await finish(first)
    second = make_run(a, b, c)
    state = await finish(second)
    assert {step.id: step.state for step in state.steps.values()} == {
        "a": "cached",
        "b": "succeeded",
        "c": "succeeded",
    }
    assert state.steps["a"].cache == f"Reused from run {first.id}: nothing has changed since."
    plan = runtime.handed[1][0]
    assert [step.id for step in plan.steps] == ["b", "c"]
    assert plan.step("b").parameters == {"m": 3}
    again = await finish(make_run(a, b, c, use_cache=False))
    assert again.steps["a"].state == "succeeded"


async def test_a_result_that_comes_later_does_not_change_a_run_that_goes_on(
    runtime, engine, make_run, store, finish
):
    step = make_step("a", "value", cache=True)
    run = make_run(make_step("before", "wait"), replace(step, after=("before",)))
    await engine.submit(run)
    await eventually(lambda: runtime.started)
    await engine.close()
    other = Engine(store, {"inprocess": runtime}, beat=0.2)
    await other.submit(alone := make_run(step))
    assert (await other.wait(alone.id, 60)).state == "succeeded"
    await other.resume()
    runtime.go_on.set()
    assert (await other.wait(run.id, 60)).steps["a"].state == "succeeded"
    await other.close()


async def test_one_step_cannot_be_stopped_alone(runtime, engine, make_run):
    run = make_run(make_step("a", "wait"))
    await engine.submit(run)
    with pytest.raises(Refused, match="only stop a whole run"):
        await engine.stop(run.id, "a")
    await engine.stop(run.id)
    assert (await engine.wait(run.id, 60)).state == "cancelled"
