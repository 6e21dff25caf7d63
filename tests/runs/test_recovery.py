"""A host may end at any moment; whoever comes next goes on from the folder."""

from __future__ import annotations

import json
import time

from inprocess import InProcess, failing_first

from jupyterlab_convect.runs import events as e
from jupyterlab_convect.runs.engine import Engine
from jupyterlab_convect.runs.lease import Lease
from jupyterlab_convect.runs.model import Selection
from jupyterlab_convect.runtimes.base import StepStatus


def outcome(store, run, step_id, attempt, **fields):
    folder = store.attempt_folder(run.id, step_id, attempt)
    folder.mkdir(parents=True)
    (folder / "step.json").write_text(json.dumps({"folder": str(folder), "parameters": {}}))
    if fields:
        (folder / "outputs.json").write_text(json.dumps(fields))


async def test_a_run_that_nobody_took_up_is_taken_up(store, engine, make_run, step):
    run = make_run(step("a"), step("b", after=["a"]))
    store.create(run)
    assert await engine.resume() == [run.id]
    assert (await engine.wait(run.id, 60)).state == "succeeded"
    assert await engine.resume() == []


async def test_what_ended_meanwhile_is_not_started_again(store, engine, make_run, step, runtime):
    run = make_run(step("a"), step("b", after=["a"]))
    store.create(run)
    now = time.time()
    store.append(
        run.id, e.RunStart(now), e.AttemptStart(now, "a", 1), e.AttemptHandle(now, "a", 1, 5)
    )
    outcome(store, run, "a", 1, state="succeeded", values={"x": 1})
    await engine.resume()
    state = await engine.wait(run.id, 60)
    assert state.steps["a"].outputs == {"x": 1}
    assert [key[1] for key in runtime.started] == ["b"]


async def test_what_a_killed_runner_left_half_written_is_removed(
    store, engine, make_run, step, runtime, eventually
):
    run = make_run(step("a", "sleep", "600"))
    await engine.submit(run)
    folder = store.attempt_folder(run.id, "a", 1)
    await eventually(lambda: runtime.started)
    for name in (".reserve", ".executed.ipynb.1234"):
        (folder / name).write_bytes(b"x")
    runtime.states[run.id, "a", 1] = StepStatus((run.id, "a", 1), "failed", "It was killed.")
    runtime.changed()
    assert (await engine.wait(run.id, 60)).state == "failed"
    assert not list(folder.glob(".*"))


async def test_what_was_about_to_start_is_started_once(store, engine, make_run, step, runtime):
    run = make_run(step("a"))
    store.create(run)
    now = time.time()
    store.append(run.id, e.RunStart(now), e.AttemptStart(now, "a", 1))
    outcome(store, run, "a", 1)
    await engine.resume()
    state = await engine.wait(run.id, 60)
    assert state.state == "succeeded"
    assert runtime.started == [(run.id, "a", 1)]


async def test_a_run_that_cannot_be_picked_up_keeps_no_other_from_it(
    store, engine, make_run, step, runtime, monkeypatch
):
    bad, good = make_run(step("a")), make_run(step("a"))
    store.create(bad)
    store.create(good)
    take = Lease.take

    def damaged(folder):
        return 1 // 0 if folder == store.run_folder(bad.id) else take(folder)

    monkeypatch.setattr(Lease, "take", damaged)
    assert await engine.resume() == [good.id]
    assert (await engine.wait(good.id, 60)).state == "succeeded"
    (trouble,) = engine.health.troubles()
    assert trouble.name == f"Picking up run {bad.id}"


async def test_what_was_about_to_start_but_did_is_found(store, engine, make_run, step, runtime):
    run = make_run(step("a"))
    store.create(run)
    now = time.time()
    store.append(run.id, e.RunStart(now), e.AttemptStart(now, "a", 1))
    outcome(store, run, "a", 1, state="failed", reason="It broke.")
    await engine.resume()
    state = await engine.wait(run.id, 60)
    assert (state.steps["a"].state, state.steps["a"].reason) == ("failed", "It broke.")
    assert runtime.started == []


async def test_nothing_is_started_while_the_runtime_cannot_say(
    store, engine, make_run, step, runtime, monkeypatch
):
    monkeypatch.setattr("jupyterlab_convect.runs.active_attempt.AGAIN", 0.02)
    runtime.poll = failing_first(2, runtime.poll)
    run = make_run(step("a"))
    store.create(run)
    now = time.time()
    store.append(run.id, e.RunStart(now), e.AttemptStart(now, "a", 1))
    outcome(store, run, "a", 1, state="succeeded")
    await engine.resume()
    assert (await engine.wait(run.id, 60)).state == "succeeded"
    assert runtime.started == []


async def test_an_ended_attempt_whose_step_did_not_end(store, engine, make_run, step, runtime):
    run = make_run(step("a", retries=1), step("b", "value", retries=1))
    store.create(run)
    now = time.time()
    store.append(
        run.id,
        e.RunStart(now),
        e.AttemptStart(now, "a", 1),
        e.AttemptEnd(now, "a", 1, "succeeded"),
        e.AttemptStart(now, "b", 1),
        e.AttemptEnd(now, "b", 1, "failed", "No."),
    )
    outcome(store, run, "a", 1, state="succeeded")
    outcome(store, run, "b", 1, state="failed", reason="No.")
    await engine.resume()
    state = await engine.wait(run.id, 60)
    assert state.state == "succeeded"
    assert [key[1:] for key in runtime.started] == [("b", 2)]


async def test_a_failure_whose_followers_were_not_skipped_yet(store, engine, make_run, step):
    run = make_run(step("a"), step("b", after=["a"]), step("c", after=["b"]))
    store.create(run)
    now = time.time()
    store.append(run.id, e.RunStart(now), e.StepEnd(now, "a", "failed", "No."))
    await engine.resume()
    state = await engine.wait(run.id, 60)
    assert state.state == "failed"
    assert state.steps["c"].state == "skipped"


async def test_all_steps_ended_but_not_the_run(store, engine, make_run, step):
    run = make_run(step("a"))
    store.create(run)
    now = time.time()
    store.append(run.id, e.RunStart(now), e.StepEnd(now, "a", "succeeded"))
    await engine.resume()
    assert (await engine.wait(run.id, 60)).state == "succeeded"


async def test_a_stop_that_was_asked_of_a_dead_host(store, engine, make_run, step, runtime):
    run = make_run(step("a"), step("b", after=["a"]))
    store.create(run)
    store.ask_stop(run.id)
    await engine.resume()
    assert (await engine.wait(run.id, 60)).state == "cancelled"
    assert runtime.started == []


async def test_what_runs_goes_on_when_the_engine_lets_go(
    store, make_run, step, runtime, eventually
):
    run = make_run(step("a", "wait"), step("b", after=["a"]))
    first = Engine(store, {"inprocess": runtime}, beat=0.1)
    await first.submit(run)
    await eventually(lambda: store.read(run.id).state.steps["a"].state == "running")
    await first.close()
    assert store.read(run.id).state.state == "running"
    assert runtime.held == set()
    second = Engine(store, {"inprocess": runtime}, beat=0.1)
    assert await second.resume() == [run.id]
    runtime.go_on.set()
    state = await second.wait(run.id, 60)
    await second.close()
    assert state.state == "succeeded"
    assert [key[1] for key in runtime.started] == ["a", "b"]


async def test_one_run_has_one_owner(store, engine, make_run, step, runtime):
    run = make_run(step("a", "wait"))
    await engine.submit(run)
    other = Engine(store, {"inprocess": InProcess()}, beat=0.1)
    assert await other.resume() == []
    runtime.go_on.set()
    assert (await other.wait(run.id, 60)).state == "succeeded"
    await other.close()


async def test_a_run_that_lost_its_lease_is_let_go(
    store, engine, make_run, step, monkeypatch, eventually
):
    monkeypatch.setattr("jupyterlab_convect.runs.engine.RENEW", 0.1)
    run = make_run(step("a", "sleep", "600"))
    await engine.submit(run)
    folder = store.run_folder(run.id)
    (folder / "lease-9.json").write_text(
        json.dumps(
            {"host": "elsewhere", "process": 1, "born": "1", "renewed": time.time(), "token": "x"}
        )
    )
    await eventually(lambda: run.id not in engine._drivers)
    assert Lease.take(folder) is None


async def test_an_unreadable_run_does_not_keep_others_from_going_on(store, engine, make_run, step):
    bad, good = make_run(step("a")), make_run(step("a"))
    for run in (bad, good):
        store.create(run)
    store._open.clear()
    (store.run_folder(bad.id) / "run.json").write_text("{")
    assert await engine.resume() == [good.id]
    assert (await engine.wait(good.id, 60)).state == "succeeded"


async def test_a_partial_run_whose_source_is_gone_ends_with_a_reason(
    store, engine, finish, make_run, step
):
    first = make_run(step("a"), step("b", after=["a"]))
    await finish(first)
    second = make_run(step("a"), step("b", after=["a"]), select=Selection("only", "b"), of=first.id)
    store.create(second)
    store.delete(first.id)
    await engine.resume()
    state = await engine.wait(second.id, 60)
    assert state.state == "failed"
    assert first.id in state.reason


class Endless(InProcess):
    """Everything runs until it is stopped."""

    def __init__(self):
        super().__init__()
        self.stopped = []

    async def poll(self, attempts):
        return [
            StepStatus(attempt.key, "cancelled" if attempt.key in self.stopped else "running")
            for attempt in attempts
        ]

    async def stop(self, attempt):
        self.stopped.append(attempt.key)


def two_hours_old(store, run, *changes):
    """A run whose step was started two hours ago, and what was heard of it since."""
    began = time.time() - 7200
    started = e.AttemptStart(began, "a", 1), e.AttemptHandle(began, "a", 1, {"n": 1})
    store.create(run)
    store.append(run.id, e.RunStart(began), *started, *changes)
    outcome(store, run, "a", 1)
    return run


async def test_time_in_a_queue_is_no_running_time_after_a_restart(
    store, make_run, step, eventually
):
    now = time.time()
    run = two_hours_old(
        store,
        make_run(step("a", timeout=60.0)),
        e.AttemptChange(now - 3600, "a", 1, "queued", "Waiting for quota."),
        e.AttemptChange(now - 5, "a", 1, "running"),
    )
    runtime, checked = Endless(), []
    engine = Engine(store, {"inprocess": runtime}, beat=0.01)
    real = engine.admit_soon
    engine.admit_soon = lambda: (checked.append(1), real())
    await engine.resume()
    await eventually(lambda: len(checked) >= 10)
    assert store.read(run.id).state.steps["a"].attempts[0].stopping is None
    assert runtime.stopped == []
    store.ask_stop(run.id)
    await engine.wait(run.id, 60)
    await engine.close()


async def test_running_time_counts_on_after_a_restart(store, make_run, step):
    running = e.AttemptChange(time.time() - 3600, "a", 1, "running")
    run = two_hours_old(store, make_run(step("a", timeout=60.0)), running)
    engine = Engine(store, {"inprocess": Endless()}, beat=0.01)
    await engine.resume()
    state = await engine.wait(run.id, 60)
    assert state.steps["a"].reason == "Timed out after 60 s."
    await engine.close()


async def test_a_partial_run_goes_on_after_its_source_is_gone(
    store, finish, make_run, step, runtime, engine, eventually
):
    """What it takes over was decided when it began."""
    first = make_run(step("a"), step("b", after=["a"]), step("c", after=["b"]))
    await finish(first)
    steps = (step("a"), step("b", "wait", after=["a"]), step("c", after=["b"]))
    second = make_run(*steps, select=Selection("from", "b"), of=first.id)
    await engine.submit(second)
    await eventually(lambda: any(key[0] == second.id for key in runtime.started))
    await engine.close()
    store.delete(first.id)
    next_engine = Engine(store, {"inprocess": runtime}, beat=0.1)
    assert await next_engine.resume() == [second.id]
    runtime.go_on.set()
    state = await next_engine.wait(second.id, 60)
    assert state.state == "succeeded"
    assert [key[1] for key in runtime.started if key[0] == second.id] == ["b", "c"]
    await next_engine.close()


async def test_what_runs_is_stopped_before_a_run_is_given_up(store, make_run, step):
    """A run that began before the choice was written down, and whose source is gone."""
    run = make_run(
        step("a"),
        step("b", after=["a"]),
        step("c", after=["b"]),
        select=Selection("from", "b"),
        of="20200101-000000000-abcdef",
    )
    store.create(run)
    now = time.time()
    store.append(
        run.id, e.RunStart(now), e.AttemptStart(now, "b", 1), e.AttemptHandle(now, "b", 1, {"n": 1})
    )
    outcome(store, run, "b", 1)
    runtime = Endless()
    engine = Engine(store, {"inprocess": runtime}, beat=0.05)
    await engine.resume()
    state = await engine.wait(run.id, 60)
    assert runtime.stopped == [(run.id, "b", 1)]
    assert state.state == "failed"
    assert "20200101-000000000-abcdef" in state.reason
    assert {one.state for one in state.steps.values()} == {"skipped", "cancelled"}
    assert not list(store.run_folder(run.id).glob("lease-*"))
    await engine.close()
