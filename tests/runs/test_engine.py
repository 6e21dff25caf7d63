"""What the engine promises, with steps that need no process."""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter

import pytest

from jupyterlab_convect.errors import Conflict, Missing, Refused
from jupyterlab_convect.runs.index import Query
from jupyterlab_convect.runs.model import Selection


async def test_steps_run_in_order(finish, make_run, step, runtime):
    run = make_run(step("a"), step("b", after=["a"]), step("c", after=["b"]))
    state = await finish(run)
    assert state.state == "succeeded"
    assert [key[1] for key in runtime.started] == ["a", "b", "c"]
    assert state.steps["c"].started >= state.steps["b"].ended >= state.steps["a"].ended


async def test_independent_steps_run_at_the_same_time(engine, make_run, step, runtime, eventually):
    run = make_run(*(step(f"s{n}", "wait") for n in range(5)))
    await engine.submit(run)
    await eventually(lambda: len(runtime.started) == 5)
    runtime.go_on.set()
    assert (await engine.wait(run.id, 60)).state == "succeeded"


async def test_no_more_run_than_there_is_room_for(engine, make_run, step, runtime, eventually):
    runtime.slots = 2
    run = make_run(*(step(f"s{n}", "wait") for n in range(6)))
    await engine.submit(run)
    await eventually(lambda: len(runtime.started) == 2)
    runtime.go_on.set()
    assert (await engine.wait(run.id, 60)).state == "succeeded"
    assert runtime.most_held == 2
    assert not runtime.held


async def test_who_waits_says_why(engine, make_run, step, runtime, eventually):
    runtime.slots = 1
    run = make_run(step("a", "sleep", "600"), step("b"), step("c"), step("d", after=["a", "b"]))
    await engine.submit(run)
    steps = engine.store.read(run.id).state.steps
    await eventually(lambda: steps["b"].state == steps["c"].state == "queued")
    assert (steps["b"].state, steps["b"].reason) == ("queued", "All 1 slots are taken.")
    assert (steps["c"].state, steps["c"].reason) == ("queued", "Waiting for its turn.")
    assert (steps["d"].state, steps["d"].reason) == (
        "waiting",
        "Waiting for “a” and “b” to finish.",
    )


async def test_runs_take_turns(engine, make_run, step, runtime):
    runtime.slots = 1
    first = make_run(*(step(f"s{n}", "wait") for n in range(6)))
    second = make_run(*(step(f"s{n}", "wait") for n in range(6)))
    for run in (first, second):
        await engine.submit(run)
    runtime.go_on.set()
    for run in (first, second):
        await engine.wait(run.id, 60)
    owners = [key[0] for key in runtime.started]
    half = Counter(owners[: len(owners) // 2])
    assert abs(half[first.id] - half[second.id]) <= 1


async def test_a_big_step_that_does_not_fit_holds_up_no_small_one(
    engine, make_run, step, runtime, eventually
):
    from jupyterlab_convect.pipeline.plan import Amount, Resources

    small = runtime.admit

    def admit(attempt):
        return "Too big." if attempt.step.resources.cpu else small(attempt)

    runtime.admit = admit
    run = make_run(step("big", resources=Resources(cpu=Amount("64"))), step("small"))
    await engine.submit(run)
    steps = engine.store.read(run.id).state.steps
    await eventually(lambda: steps["small"].state == "succeeded")
    await eventually(lambda: steps["big"].state == "queued")
    assert (steps["big"].state, steps["big"].reason) == ("queued", "Too big.")
    assert steps["small"].state == "succeeded"


async def test_values_keep_their_type_on_the_way(finish, make_run, step, engine):
    value = {"n": 3, "x": [1.5, None, True], "text": "naïve 数据"}
    run = make_run(
        step("a", "value", parameters={"rows": value}),
        step(
            "b",
            "value",
            after=["a"],
            parameters={"rows": "${{ nodes.a.outputs.rows }}", "id": "${{ run.id }}"},
            env={"ROWS": "n=${{ nodes.a.outputs.rows }}"},
        ),
    )
    state = await finish(run)
    assert state.steps["b"].outputs == {"rows": value, "id": run.id}
    folder = engine.store.attempt_folder(run.id, "b", 1)
    described = json.loads((folder / "step.json").read_text())
    assert described["env"]["ROWS"] == "n=" + json.dumps(value, ensure_ascii=False)


async def test_a_value_that_is_missing_fails_the_step_with_its_name(finish, make_run, step):
    state = await finish(
        make_run(step("a"), step("b", after=["a"], parameters={"x": "${{ nodes.a.outputs.q }}"}))
    )
    assert state.state == "failed"
    assert "q" in state.steps["b"].reason
    assert state.steps["b"].attempts == []


async def test_a_failure_stops_only_what_depends_on_it(finish, make_run, step):
    state = await finish(
        make_run(
            step("bad", "fail", "It broke."),
            step("good", "sleep", "0.05"),
            step("after_bad", after=["bad"]),
            step("further", after=["after_bad", "good"]),
            step("after_good", after=["good"]),
        )
    )
    states = {name: found.state for name, found in state.steps.items()}
    assert states == {
        "bad": "failed",
        "good": "succeeded",
        "after_bad": "skipped",
        "further": "skipped",
        "after_good": "succeeded",
    }
    assert state.steps["further"].reason == "Skipped because “bad” failed."
    assert (state.state, state.reason) == ("failed", "“bad” failed: It broke.")


async def test_every_attempt_is_kept(finish, make_run, step, engine):
    run = make_run(step("a", "flaky", "3", retries=4))
    state = await finish(run)
    assert state.state == "succeeded"
    assert [attempt.state for attempt in state.steps["a"].attempts] == [
        "failed",
        "failed",
        "succeeded",
    ]
    for number in (1, 2, 3):
        assert (engine.store.attempt_folder(run.id, "a", number) / "outputs.json").exists()


async def test_retries_come_to_an_end(finish, make_run, step):
    state = await finish(make_run(step("a", "fail", "No luck.", retries=2)))
    assert state.state == "failed"
    assert len(state.steps["a"].attempts) == 3
    assert state.steps["a"].reason == "All 3 attempts failed. The last: No luck."


async def test_a_retry_waits_longer_each_time_and_says_so(engine, make_run, step, eventually):
    from jupyterlab_convect.pipeline.plan import Retries

    run = make_run(step("a", "fail", "No.", retries=Retries(3, delay=30, factor=2)))
    await engine.submit(run)
    found = engine.store.read(run.id).state.steps["a"]
    await eventually(lambda: found.attempts and found.state == "waiting")
    assert found.reason == "Attempt 1 of 4 failed: No. The next one starts in 30 s."
    await engine.stop(run.id)
    assert (await engine.wait(run.id, 60)).state == "cancelled"


async def test_stop_a_run(engine, make_run, step, runtime, eventually):
    run = make_run(step("a", "sleep", "600"), step("b", after=["a"]))
    await engine.submit(run)
    await eventually(lambda: runtime.started)
    await engine.stop(run.id)
    state = await engine.wait(run.id, 60)
    assert state.state == "cancelled"
    assert {found.state for found in state.steps.values()} == {"cancelled"}
    assert not runtime.held


async def test_stop_one_step(engine, make_run, step, runtime, eventually):
    run = make_run(step("a", "sleep", "600"), step("b", after=["a"]), step("c", "sleep", "0.2"))
    await engine.submit(run)
    await eventually(lambda: len(runtime.started) == 2)
    await engine.stop(run.id, "a")
    state = await engine.wait(run.id, 60)
    assert state.state == "cancelled"
    assert state.steps["a"].state == "cancelled"
    assert state.steps["b"].reason == "Skipped because “a” was stopped."
    assert state.steps["c"].state == "succeeded"


async def test_stop_what_is_not_there(engine, make_run, step):
    run = make_run(step("a", "sleep", "600"))
    await engine.submit(run)
    with pytest.raises(Missing):
        await engine.stop(run.id, "nobody")
    with pytest.raises(Missing):
        await engine.stop("20200101-000000000-abcdef")
    await engine.stop(run.id)
    await engine.wait(run.id, 60)
    await engine.stop(run.id)


async def test_a_stop_left_by_another_process_is_heeded(engine, make_run, step, store):
    run = make_run(step("a", "sleep", "600"))
    await engine.submit(run)
    store.ask_stop(run.id)
    assert (await engine.wait(run.id, 60)).state == "cancelled"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (("lie", "{half"), "The result cannot be read: outputs.json is damaged"),
        (("lie", "[]"), "The result cannot be read: outputs.json is damaged"),
        (("lie", '{"state": "splendid"}'), "The result cannot be read"),
        (("lie", '{"state": "succeeded", "error": {"name": "E"}}'), "It reported an error."),
        (("lie", '{"state": "failed", "reason": "Cell 3 broke."}'), "Cell 3 broke."),
        (("lie", '{"state": "succeeded", "files": [{"path": "../x"}]}'), "cannot be read"),
        (("nothing",), "It ended without leaving a result."),
        (("refuse", "The image is not there."), "The image is not there."),
        (("break",), "It could not be started: ZeroDivisionError: a mistake."),
    ],
)
async def test_success_is_never_taken_on_trust(finish, make_run, step, command, reason, runtime):
    state = await finish(make_run(step("a", *command), step("b", after=["a"])))
    assert state.steps["a"].state == "failed"
    assert reason in state.steps["a"].reason
    assert state.steps["b"].state == "skipped"
    assert state.state == "failed"
    assert not runtime.held


async def test_what_is_lost_is_called_lost(finish, make_run, step):
    state = await finish(make_run(step("a", "vanish"), step("b", after=["a"])))
    assert state.steps["a"].state == "lost"
    assert state.steps["a"].reason
    assert state.state == "failed"


async def test_nan_and_infinity_stay_what_they_are(finish, make_run, step, store):
    outcome = (
        '{"state": "succeeded", "values": {"x": NaN, "y": [{"$numberDouble": "-Infinity"}, 1]}, '
        f'"metrics": {{"m": {{"$numberDouble": "NaN"}}, "large": 1{"0" * 400}, "no": true}}}}'
    )
    run = make_run(step("a", "lie", outcome))
    state = await finish(run)
    assert math.isnan(state.steps["a"].outputs["x"])
    assert state.steps["a"].outputs["y"] == [-math.inf, 1]
    assert math.isnan(state.steps["a"].metrics["m"])
    assert state.steps["a"].metrics["large"] == 10**400
    assert "no" not in state.steps["a"].metrics
    [summary] = store.find(Query()).runs
    assert math.isnan(summary["metrics"]["m"])


async def test_a_step_past_its_time_is_stopped_from_outside(finish, make_run, step, monkeypatch):
    monkeypatch.setattr("jupyterlab_convect.runs.active_attempt.GRACE", 0.0)
    state = await finish(make_run(step("a", "sleep", "600", timeout=0.1)))
    assert (state.steps["a"].state, state.steps["a"].reason) == (
        "failed",
        "Timed out after 0.1 s.",
    )


async def test_listeners_hear_of_changes(engine, make_run, step, eventually):
    heard = []
    off = engine.on_change(lambda run_id, seq, state: heard.append((run_id, seq, state)))
    run = make_run(step("a", "sleep", "0.1"))
    await engine.submit(run)
    await engine.wait(run.id, 60)
    await eventually(lambda: heard and heard[-1][2] == "succeeded")
    assert {run_id for run_id, _, _ in heard} == {run.id}
    assert heard[-1][2] == "succeeded"
    assert [seq for _, seq, _ in heard] == sorted({seq for _, seq, _ in heard})
    off()
    count = len(heard)
    await engine.submit(other := make_run(step("a")))
    await engine.wait(other.id, 60)
    assert len(heard) == count


async def test_two_runs_of_the_same_file_do_not_meet(engine, make_run, step):
    runs = [make_run(step("a", "value", parameters={"n": n})) for n in range(2)]
    await asyncio.gather(*(engine.submit(run) for run in runs))
    states = [await engine.wait(run.id, 60) for run in runs]
    assert [state.steps["a"].outputs for state in states] == [{"n": 0}, {"n": 1}]


async def test_an_unknown_runtime_is_refused(engine, make_run, step, store):
    from dataclasses import replace

    run = replace(make_run(step("a")), runtime="moon")
    with pytest.raises(Missing):
        await engine.submit(run)
    assert store.find().total == 0


async def test_wait_gives_up_in_time(engine, make_run, step):
    run = make_run(step("a", "sleep", "600"))
    await engine.submit(run)
    with pytest.raises(TimeoutError):
        await engine.wait(run.id, 0.05)


async def test_a_deleted_run_cannot_be_one_that_runs(engine, make_run, step, store):
    run = make_run(step("a", "sleep", "600"))
    await engine.submit(run)
    with pytest.raises(Conflict):
        store.delete(run.id)
    await engine.stop(run.id)
    await engine.wait(run.id, 60)
    store.delete(run.id)
    with pytest.raises(Missing):
        store.read(run.id)


async def test_progress_and_expected_duration_come_from_the_last_success(
    finish, make_run, step, store
):
    await finish(make_run(step("a", "lie", '{"state": "succeeded", "started": 10, "ended": 17}')))
    run = make_run(step("a", "sleep", "0"))
    await finish(run)
    folder = store.attempt_folder(run.id, "a", 1)
    assert json.loads((folder / "step.json").read_text())["expected"] == 7


@pytest.mark.parametrize(
    ("select", "of", "error"),
    [
        (Selection("only", "nobody"), None, Missing),
        (Selection("only", "b"), None, Refused),
        (Selection("failed"), None, Refused),
        (Selection("only", "b"), "20200101-000000000-abcdef", Missing),
    ],
)
async def test_a_partial_run_that_cannot_be_is_refused(
    engine, make_run, step, select, of, error, store
):
    run = make_run(step("a"), step("b", after=["a"]), select=select, of=of)
    with pytest.raises(error):
        await engine.submit(run)
    assert store.find().total == 0


async def test_a_thousand_steps_in_a_chain(finish, make_run, step):
    chain = [step("s0"), *(step(f"s{n}", after=[f"s{n - 1}"]) for n in range(1, 1000))]
    state = await finish(make_run(*chain))
    assert {found.state for found in state.steps.values()} == {"succeeded"}


async def test_a_failure_at_the_head_of_a_long_chain(finish, make_run, step):
    chain = [
        step("s0", "fail", "No."),
        *(step(f"s{n}", after=[f"s{n - 1}"]) for n in range(1, 1500)),
    ]
    state = await finish(make_run(*chain))
    assert state.steps["s1499"].state == "skipped"
