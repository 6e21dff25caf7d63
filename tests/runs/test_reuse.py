"""Results that are taken over: by cache, by partial runs, with their files."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from jupyterlab_convect.pipeline.plan import Amount, Resources, SourceFile
from jupyterlab_convect.runs.model import Selection
from jupyterlab_convect.runs.reuse import RunResults, preview_reuse


@pytest.fixture
def root(tmp_path):
    return tmp_path / "root"


async def test_an_unchanged_step_is_not_run_again(finish, make_run, step, runtime):
    first = make_run(step("a", "value", parameters={"x": 1}, cache=True))
    before = await finish(first)
    assert before.steps["a"].cache == "Not reused: there is no earlier result."
    state = await finish(make_run(step("a", "value", parameters={"x": 1}, cache=True)))
    found = state.steps["a"]
    assert (state.state, found.state, found.attempts) == ("succeeded", "cached", [])
    assert found.outputs == {"x": 1}
    assert found.source == f"{first.id}/1"
    assert found.cache == f"Reused from run {first.id}: nothing has changed since."
    assert len(runtime.started) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"parameters": {"x": 2}}, "its parameters have changed"),
        ({"digest": "sha256:1"}, "its code has changed"),
        ({"env": {"A": "2"}}, "its environment variables have changed"),
        ({"image": "b:2"}, "its image has changed"),
        ({"kernel": "ir"}, "its kernel has changed"),
        ({"dependencies": (SourceFile("d.csv", "sha256:2"),)}, "the files it needs have changed"),
        ({"outputs": ("*.csv",)}, "the files it is to make have changed"),
        (
            {"image": "b:2", "kernel": "ir", "parameters": {"x": 3}},
            "its parameters, its image and its kernel have changed",
        ),
    ],
)
async def test_what_has_changed_is_named(finish, make_run, step, change, words):
    same = {"parameters": {"x": 1}, "cache": True}
    first = make_run(step("a", "value", **same))
    await finish(first)
    state = await finish(make_run(step("a", "value", **{**same, **change})))
    assert state.steps["a"].state == "succeeded"
    assert state.steps["a"].cache == f"Not reused: {words} since run {first.id}."


async def test_what_would_be_taken_over_is_told_before(finish, make_run, step, store):
    def run(x, **more):
        first = step("a", "value", parameters={"x": x}, cache=True)
        then = step("b", after=("a",), cache=True, parameters={"y": "${{ nodes.a.outputs.x }}"})
        return make_run(first, then, step("c", after=("b",)), **more)

    assert preview_reuse(store, run(1)) == {}
    done = run(1)
    await finish(done)
    assert preview_reuse(store, run(1)) == {"a": f"{done.id}/1", "b": f"{done.id}/1"}
    assert preview_reuse(store, run(2)) == {}
    assert preview_reuse(store, run(1, use_cache=False)) == {}


async def test_where_it_runs_does_not_matter(finish, make_run, step):
    await finish(make_run(step("a", cache=True)))
    moved = step("a", cache=True, resources=Resources(cpu=Amount("2")), retries=3, timeout=60)
    assert (await finish(make_run(moved))).steps["a"].state == "cached"


async def test_reuse_has_to_be_wanted(finish, make_run, step):
    await finish(make_run(step("a", cache=True)))
    state = await finish(make_run(step("a", cache=True), use_cache=False))
    assert state.steps["a"].cache == "Not reused: reuse is off for this run."
    state = await finish(make_run(step("a")))
    assert state.steps["a"].cache == "Not reused: reuse is off for this step."


async def test_a_failure_is_never_reused(finish, make_run, step, runtime):
    for _ in range(2):
        assert (await finish(make_run(step("a", "fail", "No.", cache=True)))).state == "failed"
    assert len(runtime.started) == 2


async def test_a_change_upstream_counts_only_when_it_changes_the_result(finish, make_run, step):
    def pipeline(env, value):
        return make_run(
            step("a", "value", env={"E": env}, parameters={"x": value}),
            step("b", after=["a"], cache=True),
        )

    await finish(pipeline("1", 1))
    state = await finish(pipeline("2", 1))
    assert (state.steps["a"].state, state.steps["b"].state) == ("succeeded", "cached")
    state = await finish(pipeline("2", 2))
    assert state.steps["b"].state == "succeeded"
    assert "the results it uses have changed" in state.steps["b"].cache


async def test_an_upstream_that_declares_nothing_counts_by_its_code(finish, make_run, step):
    def pipeline(digest):
        return make_run(step("a", digest=digest), step("b", after=["a"], cache=True))

    await finish(pipeline("sha256:1"))
    assert (await finish(pipeline("sha256:1"))).steps["b"].state == "cached"
    assert (await finish(pipeline("sha256:2"))).steps["b"].state == "succeeded"


async def test_a_chain_of_reused_steps(finish, make_run, step, runtime):
    def chain():
        first = step("s0", cache=True)
        rest = [step(f"s{n}", after=[f"s{n - 1}"], cache=True) for n in range(1, 300)]
        return make_run(first, *rest)

    await finish(chain())
    state = await finish(chain())
    assert {found.state for found in state.steps.values()} == {"cached"}
    assert len(runtime.started) == 300


async def test_reused_files_are_put_back(finish, make_run, step, root):
    def pipeline():
        return make_run(
            step("a", "write", "data/x.csv", "1,2", cache=True, outputs=("data/*",)),
            step("b", "write", "other.txt", "o", cache=True, outputs=("*.txt",)),
        )

    await finish(pipeline())
    (root / "data" / "x.csv").unlink()
    (root / "other.txt").write_text("changed by hand")
    state = await finish(pipeline())
    assert {found.state for found in state.steps.values()} == {"cached"}
    assert (root / "data" / "x.csv").read_text() == "1,2"
    assert (root / "other.txt").read_text() == "o"
    assert sorted(path.name for path in root.rglob("*") if path.is_file()) == ["other.txt", "x.csv"]


async def test_a_result_whose_files_are_gone_is_made_again(finish, make_run, step, store):
    def pipeline():
        return make_run(step("a", "write", "x.csv", "1,2", cache=True, outputs=("*.csv",)))

    first = pipeline()
    await finish(first)
    (store.attempt_folder(first.id, "a", 1) / "files" / "x.csv").unlink()
    state = await finish(pipeline())
    assert state.steps["a"].state == "succeeded"
    assert "is no longer complete" in state.steps["a"].cache


async def test_a_result_goes_with_its_run(finish, make_run, step, store):
    first = make_run(step("a", cache=True))
    await finish(first)
    store.delete(first.id)
    assert (await finish(make_run(step("a", cache=True)))).steps["a"].state == "succeeded"


@pytest.fixture
def diamond(make_run, step):
    """prepare → train, explore → report; train fails the first time when asked."""

    def make(train=("value",), **request):
        return make_run(
            step("prepare", "value", parameters={"rows": 7}),
            step(
                "train",
                *train,
                after=["prepare"],
                parameters={"n": "${{ nodes.prepare.outputs.rows }}"},
            ),
            step("explore", after=["prepare"]),
            step("report", after=["train", "explore"]),
            **request,
        )

    return make


@pytest.mark.parametrize(
    ("mode", "node", "executed", "cached"),
    [
        ("only", "train", {"train"}, {"prepare"}),
        ("only", "report", {"report"}, {"prepare", "train", "explore"}),
        ("from", "train", {"train", "report"}, {"prepare", "explore"}),
        ("upto", "train", {"prepare", "train"}, set()),
        ("from", "prepare", {"prepare", "train", "explore", "report"}, set()),
    ],
)
async def test_part_of_a_pipeline(finish, diamond, mode, node, executed, cached):
    first = diamond()
    await finish(first)
    state = await finish(diamond(select=Selection(mode, node), of=first.id))
    assert state.state == "succeeded"
    by_state = {
        kind: {name for name, found in state.steps.items() if found.state == kind}
        for kind in ("succeeded", "cached", "skipped")
    }
    assert by_state["succeeded"] == executed
    assert by_state["cached"] == cached
    assert by_state["skipped"] == set(state.steps) - executed - cached
    assert all(state.steps[name].source == f"{first.id}/1" for name in cached)
    assert all(
        state.steps[name].reason == "Not part of this partial run." for name in by_state["skipped"]
    )
    if "train" in executed:
        assert state.steps["train"].outputs == {"n": 7}


async def test_a_part_begins_when_all_that_it_takes_over_is_there(
    engine, store, diamond, finish, monkeypatch, eventually
):
    """Also what lies further up than what it waits for, whose files it sees as well."""
    first = diamond()
    await finish(first)
    keep, may_be_kept = RunResults.keep, threading.Event()

    def keep_the_first_last(self, source, step_id):
        if step_id == "prepare":
            may_be_kept.wait(60)
        return keep(self, source, step_id)

    monkeypatch.setattr(RunResults, "keep", keep_the_first_last)
    part = diamond(select=Selection("only", "report"), of=first.id)
    await engine.submit(part)
    steps = store.read(part.id).state.steps
    await eventually(lambda: all(steps[name].state == "cached" for name in ("train", "explore")))
    for _ in range(100):
        await asyncio.sleep(0)
    assert steps["report"].state == "waiting"
    may_be_kept.set()
    state = await engine.wait(part.id, 60)
    assert state.state == "succeeded"
    assert state.steps["prepare"].ended <= state.steps["report"].started


async def test_only_what_failed(finish, diamond):
    first = diamond(train=("fail", "No."))
    assert (await finish(first)).state == "failed"
    second = diamond(select=Selection("failed"), of=first.id)
    state = await finish(second)
    assert state.state == "succeeded"
    assert {name: found.state for name, found in state.steps.items()} == {
        "prepare": "cached",
        "train": "succeeded",
        "explore": "cached",
        "report": "succeeded",
    }
    third = await finish(diamond(select=Selection("only", "report"), of=second.id))
    assert third.steps["prepare"].source == f"{first.id}/1"
    assert third.steps["train"].source == f"{second.id}/1"


async def test_a_part_without_a_run_to_go_by_takes_the_last_results(finish, diamond):
    first = diamond()
    await finish(first)
    state = await finish(diamond(select=Selection("only", "train")))
    assert state.steps["prepare"].source == f"{first.id}/1"


async def test_a_part_puts_the_files_it_builds_on_in_place(finish, make_run, step, root):
    def pipeline(**request):
        return make_run(
            step("a", "write", "x.csv", "1,2", outputs=("*.csv",)),
            step("b", after=["a"]),
            **request,
        )

    first = pipeline()
    await finish(first)
    (root / "x.csv").unlink()
    await finish(pipeline(select=Selection("only", "b"), of=first.id))
    assert (root / "x.csv").read_text() == "1,2"


async def test_an_isolated_step_gets_its_files_and_nothing_else(
    finish, make_run, step, store, root
):
    (root / "lib").mkdir(parents=True)
    run = make_run(
        step("a", "write", "data/x.csv", "1,2", outputs=("data/*",)),
        step(
            "b",
            after=["a"],
            working_folder="isolated",
            dependencies=(SourceFile("lib/tools.py", "sha256:0"),),
        ),
    )
    await finish(run)
    folder = store.attempt_folder(run.id, "b", 1)
    described = json.loads((folder / "step.json").read_text())
    assert described["folder"] == str(folder / "work")
    upstream = store.attempt_folder(run.id, "a", 1) / "files" / "data" / "x.csv"
    assert {(item["from"], item["to"]) for item in described["inputs"]} == {
        (str(root / "lib" / "tools.py"), "lib/tools.py"),
        (str(upstream), "data/x.csv"),
    }


async def test_steps_in_one_folder_need_no_copies(finish, make_run, step, store, root):
    run = make_run(step("a", "write", "x.csv", "1", outputs=("*.csv",)), step("b", after=["a"]))
    await finish(run)
    described = json.loads((store.attempt_folder(run.id, "b", 1) / "step.json").read_text())
    assert (described["inputs"], described["folder"]) == ([], str(root))
