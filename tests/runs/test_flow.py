"""Conditions, loops, what runs after a failure, and pipelines in pipelines, in the engine.

Steps need no process: `value` gives its parameters as outputs, `fail` fails, `wait` waits.
"""

from __future__ import annotations

import json
import time
from collections import Counter

import pytest

from jupyterlab_convect.errors import Missing, Refused
from jupyterlab_convect.pipeline.resolve import resolve
from jupyterlab_convect.runs import driver as driver_module
from jupyterlab_convect.runs.engine import Engine
from jupyterlab_convect.runs.events import decode
from jupyterlab_convect.runs.graph import Graph
from jupyterlab_convect.runs.model import Request, Run, Selection, new_id
from jupyterlab_convect.runs.values import evaluate_in
from jupyterlab_convect.runs.views import items_view, view

PIPELINE = {"kind": "pipeline"}


def give(after=(), **values):
    """A node that gives these values."""
    return {
        "kind": "command", "command": ["value"], "parameters": values, "after": list(after)
    }  # fmt: skip


def do(*words, **more):
    return {"kind": "command", "command": [*map(str, words)], **more}


def group(*members, **rule):
    return {"kind": "group", "members": list(members), **rule}


def each(name, items, **more):
    return {"name": name, "in": items, **more}


@pytest.fixture
def flow(tmp_path):
    """A run of a pipeline that is given by its nodes."""
    root = tmp_path / "root"
    root.mkdir(exist_ok=True)

    def make(nodes, *, given=None, declared=None, select=None, pipelines=None, **request):
        for name, document in (pipelines or {}).items():
            (root / name).write_text(json.dumps({"convect": 1, **document}), "utf-8")
        document = {"convect": 1, "nodes": nodes, "parameters": declared or {}}
        plan = resolve(document, root=root, path="flow.pipeline", parameters=given)
        asked = Request(
            root=str(root), runtime="inprocess", select=select or Selection(), **request
        )
        return Run(new_id(), "flow", time.time(), "inprocess", plan, asked, user="ana")

    return make


def states(state):
    return {step.id: step.state for step in state.steps.values()}


TRAIN = {"train": give(auc=0.71)}
AUC = "${{ nodes.train.outputs.auc >= 0.8 }}"


async def test_a_branch_that_is_not_taken_is_skipped_with_the_reason(finish, flow):
    nodes = TRAIN | {"publish": do("noop", when=AUC), "tell": do("noop", after=["publish"])}
    state = await finish(flow(nodes))
    assert state.state == "succeeded"
    assert states(state) == {"train": "succeeded", "publish": "skipped", "tell": "skipped"}
    assert state.steps["publish"].reason == "Skipped: auc >= 0.8 was false, auc was 0.71."
    assert state.steps["tell"].reason == "Skipped because “publish” was skipped."


async def test_a_branch_that_is_taken_runs(finish, flow):
    nodes = {"train": give(auc=0.9), "publish": do("noop", when=AUC)}
    assert set(states(await finish(flow(nodes))).values()) == {"succeeded"}


async def test_a_condition_of_parameters_alone_is_decided_too(finish, flow):
    when = "${{ parameters.mode == 'fast' && !parameters.dry }}"
    declared = {"mode": {"default": "slow"}, "dry": {"default": False}}
    nodes = {"a": do("noop", when=when), "b": do("noop")}
    state = await finish(flow(nodes, declared=declared))
    assert states(state) == {"a": "skipped", "b": "succeeded"}
    state = await finish(flow(nodes, declared=declared, given={"mode": "fast"}))
    assert states(state) == {"a": "succeeded", "b": "succeeded"}


@pytest.mark.parametrize(("rows", "model"), [(2_000, "big"), (20, "small")])
async def test_first_is_the_value_of_the_branch_that_ran(finish, flow, rows, model):
    used = "${{ first(nodes.big.outputs.model, nodes.small.outputs.model) }}"
    nodes = {
        "size": give(rows=rows),
        "big": give(model="big") | {"when": "${{ nodes.size.outputs.rows > 1000 }}"},
        "small": give(model="small") | {"when": "${{ nodes.size.outputs.rows <= 1000 }}"},
        "report": give(model=used),
    }
    state = await finish(flow(nodes))
    assert state.state == "succeeded"
    assert state.steps["report"].outputs == {"model": model}


async def test_first_without_a_branch_that_ran_skips_or_takes_the_value(finish, flow):
    nodes = TRAIN | {
        "a": give(x=1) | {"when": AUC},
        "none": give(x="${{ first(nodes.a.outputs.x) }}"),
        "default": give(x="${{ first(nodes.a.outputs.x, 'no') }}"),
    }
    state = await finish(flow(nodes))
    assert state.state == "succeeded"
    assert state.steps["none"].state == "skipped"
    assert state.steps["none"].reason == "Skipped: nothing that it uses has run."
    assert state.steps["default"].outputs == {"x": "no"}


async def test_first_does_not_hide_a_failure(finish, flow):
    nodes = {
        "a": do("fail", "broken"),
        "b": give(x=2),
        "c": give(x="${{ first(nodes.a.outputs.x, nodes.b.outputs.x) }}"),
    }
    state = await finish(flow(nodes))
    assert state.state == "failed"
    assert state.steps["c"].reason == "Skipped because “a” failed."


async def test_a_condition_that_cannot_be_evaluated_fails_the_node(finish, flow):
    nodes = {"a": give(x="text"), "b": do("noop", when="${{ nodes.a.outputs.x > 3 }}")}
    state = await finish(flow(nodes))
    assert state.state == "failed"
    assert state.steps["b"].reason == '"text" and 3 cannot be compared.'
    nodes = {"a": give(x=1), "b": do("noop", when="${{ nodes.a.outputs.y > 3 }}")}
    state = await finish(flow(nodes))
    assert state.steps["b"].reason == "Node “a” produced no output “y”."


async def test_a_group_is_skipped_as_a_whole(finish, flow):
    nodes = TRAIN | {
        "branch": group("a", "b", "inner", when=AUC),
        "a": do("noop"),
        "b": do("noop", after=["a"]),
        "inner": group("c", for_each=each("n", [1, 2])),
        "c": do("noop"),
        "after": do("noop", after=["branch"]),
    }
    state = await finish(flow(nodes))
    assert state.state == "succeeded"
    assert states(state) == {
        "train": "succeeded", "a": "skipped", "b": "skipped", "after": "skipped"
    }  # fmt: skip
    assert state.groups["inner"].state == "skipped"
    assert state.groups["branch"].reason == "Skipped: auc >= 0.8 was false, auc was 0.71."


async def test_groups_without_a_rule_keep_nothing_waiting(finish, flow, runtime):
    nodes = {
        "g": group("a", "b", after=["first"]),
        "first": do("noop"),
        "a": do("noop"),
        "b": do("noop"),
        "last": do("noop", after=["g"]),
    }
    run = flow(nodes)
    assert not run.plan.groups
    assert run.plan.step("last").after == ("a", "b")
    assert (await finish(run)).state == "succeeded"
    order = [key[1] for key in runtime.started]
    assert (order[0], order[-1]) == ("first", "last")


@pytest.mark.parametrize("source", ["literal", "parameter", "output"])
async def test_a_loop_runs_once_per_item_and_collects_in_order(finish, flow, source):
    items = ["eu", "us", "华东 ✓"]
    of = {
        "literal": items,
        "parameter": "${{ parameters.regions }}",
        "output": "${{ nodes.prepare.outputs.regions }}",
    }[source]
    nodes = {
        "prepare": give(regions=items),
        "score": give(region="${{ each.region }}", both="<${{ each.region }}>")
        | {"for_each": each("region", of)},
        "all": give(regions="${{ nodes.score.outputs.region }}"),
    }
    state = await finish(flow(nodes, declared={"regions": {"default": items}}))
    assert state.state == "succeeded"
    assert [state.steps[f"score.{n}"].outputs["both"] for n in range(3)] == [
        f"<{item}>" for item in items
    ]
    assert state.steps["all"].outputs == {"regions": items}
    assert state.groups["score"].counts == {"succeeded": 3}


async def test_a_loop_over_a_group_keeps_items_apart(finish, flow, runtime):
    nodes = {
        "regions": group("score", "report", for_each=each("r", [1, 2, 3])),
        "score": give(x="${{ each.r }}"),
        "report": give(y="${{ nodes.score.outputs.x }}"),
        "end": give(
            xs="${{ nodes.score.outputs.x }}", ys="${{ nodes.report.outputs.y }}",
            after=["regions"],
        ),
    }  # fmt: skip
    state = await finish(flow(nodes))
    assert state.state == "succeeded"
    assert state.steps["regions.1.report"].outputs == {"y": 2}
    assert state.steps["end"].outputs == {"xs": [1, 2, 3], "ys": [1, 2, 3]}
    assert state.groups["regions.2"].state == "succeeded"


async def test_a_branch_in_a_loop_in_a_branch(finish, flow):
    nodes = {
        "start": give(go=True),
        "outer": group("loop", when="${{ nodes.start.outputs.go }}"),
        "loop": group("count", "big", "tell", for_each=each("n", [1, 5, 9])),
        "count": give(n="${{ each.n }}"),
        "big": give(n="${{ each.n }}") | {"when": "${{ nodes.count.outputs.n > 4 }}"},
        "tell": give(n="${{ first(nodes.big.outputs.n, 0) }}"),
        "end": give(
            big="${{ first(nodes.big.outputs.n) }}", told="${{ first(nodes.tell.outputs.n) }}"
        ),
    }
    state = await finish(flow(nodes))
    assert state.state == "succeeded"
    assert state.steps["loop.0.big"].reason == "Skipped: n > 4 was false, n was 1."
    assert state.steps["end"].outputs == {"big": [None, 5, 9], "told": [0, 5, 9]}


async def test_loops_in_loops_give_lists_of_lists(finish, flow):
    nodes = {
        "outer": group("inner", for_each=each("row", [[1, 2], [], [3]])),
        "inner": group("cell", for_each=each("x", "${{ each.row }}")),
        "cell": give(x="${{ each.x }}"),
        "end": give(table="${{ nodes.cell.outputs.x }}"),
    }
    state = await finish(flow(nodes))
    assert state.steps["outer.0.inner.1.cell"].outputs == {"x": 2}
    assert state.steps["end"].outputs == {"table": [[1, 2], [], [3]]}


async def test_a_field_of_an_item(finish, flow):
    items = [{"name": "eu", "n": 3}, {"name": "us", "n": 4}]
    nodes = {"a": give(text="${{ each.r.name }}-${{ each.r.n }}") | {"for_each": each("r", items)}}
    state = await finish(flow(nodes))
    assert state.steps["a.1"].outputs == {"text": "us-4"}


async def test_no_items_is_fine(finish, flow):
    nodes = {
        "score": give(x="${{ each.n }}") | {"for_each": each("n", [])},
        "g": group("m", for_each=each("n", [])),
        "m": give(y="${{ each.n }}"),
        "end": give(xs="${{ nodes.score.outputs.x }}", ys="${{ nodes.m.outputs.y }}"),
    }
    state = await finish(flow(nodes))
    assert state.state == "succeeded"
    assert state.steps["end"].outputs == {"xs": [], "ys": []}


@pytest.mark.parametrize(("value", "what"), [("eu", "a string"), (3, "a number"), (None, "null")])
async def test_a_list_that_is_none_fails_the_loop(finish, flow, value, what):
    nodes = {
        "a": give(x=value),
        "loop": do("noop", for_each=each("n", "${{ nodes.a.outputs.x }}")),
        "end": do("noop", after=["loop"]),
    }
    state = await finish(flow(nodes))
    assert state.state == "failed"
    assert state.groups["loop"].reason == f"It runs for each item of a list, but it got {what}."
    assert state.steps["end"].reason == "Skipped because “loop” failed."
    assert state.reason == f"“loop” failed: {state.groups['loop'].reason}"


async def test_no_more_items_run_than_the_limit_allows(engine, flow, runtime, eventually):
    nodes = {
        "g": group("a", "b", for_each=each("n", [*range(7)], parallel=2)),
        "a": do("wait"),
        "b": do("noop", after=["a"]),
    }
    runtime.slots = 100
    run = flow(nodes)
    await engine.submit(run)
    await eventually(lambda: len(runtime.started) == 2)
    assert [key[1] for key in runtime.started] == ["g.0.a", "g.1.a"]
    runtime.go_on.set()
    assert (await engine.wait(run.id, 60)).state == "succeeded"
    assert runtime.most_held == 2


async def test_an_item_that_fails_leaves_the_others_alone(finish, flow):
    nodes = {
        "score": do("${{ each.word }}", "bad", for_each=each("word", ["noop", "fail", "noop"])),
        "end": do("noop", after=["score"]),
    }
    state = await finish(flow(nodes))
    assert state.state == "failed"
    assert states(state) == {
        "score.0": "succeeded", "score.1": "failed", "score.2": "succeeded", "end": "skipped"
    }  # fmt: skip
    assert state.groups["score"].reason == "1 of 3 items failed."
    assert state.reason == "“score.1” failed: bad"


async def test_an_item_is_tried_again(finish, flow):
    nodes = {
        "a": do(
            "${{ each.word }}", 2, for_each=each("word", ["noop", "flaky"]),
            retries={"count": 1, "delay": 0.01},
        )
    }  # fmt: skip
    state = await finish(flow(nodes))
    assert state.state == "succeeded"
    assert [len(state.steps[name].attempts) for name in ("a.0", "a.1")] == [1, 2]


async def test_always_and_failed_run_after_a_failure_and_the_run_stays_failed(finish, flow):
    nodes = {
        "a": do("fail", "broken"),
        "b": do("noop", after=["a"]),
        "clean": give(
            a="${{ nodes.a.state }}", b="${{ nodes.b.state }}", x="${{ nodes.a.outputs.x }}"
        )
        | {"run_if": "always"},
        "notify": do("noop", after=["b"], run_if="failed"),
        "good": do("noop", after=["clean"]),
    }  # fmt: skip
    state = await finish(flow(nodes))
    assert state.state == "failed"
    assert state.steps["clean"].outputs == {"a": "failed", "b": "skipped", "x": None}
    assert states(state) == {
        "a": "failed", "b": "skipped", "clean": "succeeded", "notify": "succeeded",
        "good": "succeeded",
    }  # fmt: skip


async def test_failed_is_skipped_when_all_is_well_and_always_runs(finish, flow):
    nodes = {
        "a": do("noop"),
        "notify": do("noop", after=["a"], run_if="failed"),
        "clean": do("noop", after=["a", "notify"], run_if="always"),
    }
    state = await finish(flow(nodes))
    assert state.state == "succeeded"
    assert state.steps["notify"].reason == "Skipped: nothing that it waits for has failed."
    assert state.steps["clean"].state == "succeeded"


async def test_a_disabled_node_is_left_out_with_all_that_needs_it(finish, flow):
    nodes = {
        "a": do("noop"),
        "off": do("fail", "bad", after=["a"], disabled=True),
        "g": group("b", "c", disabled=True),
        "b": do("fail", "bad"),
        "c": do("fail", "bad"),
        "needs": do("noop", after=["off"]),
        "loop": do("fail", "bad", for_each=each("word", ["x", "y"]), disabled=True),
        "clean": do("noop", after=["needs", "g", "loop"], run_if="always"),
    }
    state = await finish(flow(nodes))
    assert state.state == "succeeded"
    assert states(state) == {
        "a": "succeeded", "off": "skipped", "b": "skipped", "c": "skipped", "needs": "skipped",
        "clean": "succeeded",
    }  # fmt: skip
    assert (state.groups["loop"].state, state.groups["loop"].reason) == ("skipped", "Disabled.")
    assert state.steps["off"].reason == state.steps["b"].reason == "Disabled."
    assert state.steps["needs"].reason == "Skipped because “off” was skipped."


async def test_always_runs_after_a_loop_with_a_failed_item(finish, flow):
    nodes = {
        "g": group("a", for_each=each("word", ["noop", "fail"])),
        "a": do("${{ each.word }}", "bad"),
        "clean": give(state="${{ nodes.g.state }}", after=["g"]) | {"run_if": "always"},
    }
    state = await finish(flow(nodes))
    assert state.state == "failed"
    assert state.steps["clean"].outputs == {"state": "failed"}


async def test_always_runs_after_a_stop_and_the_run_stays_stopped(
    engine, flow, runtime, eventually
):
    nodes = {
        "g": group("a", for_each=each("n", [1, 2, 3], parallel=1)),
        "a": do("wait"),
        "later": group("b", for_each=each("n", [1]), after=["g"]),
        "b": do("noop"),
        "clean": give(g="${{ nodes.g.state }}", after=["g"]) | {"run_if": "always"},
        "end": do("noop", after=["clean"]),
    }
    run = flow(nodes)
    await engine.submit(run)
    await eventually(lambda: len(runtime.started) == 1)
    await engine.stop(run.id)
    state = await engine.wait(run.id, 60)
    assert state.state == "cancelled"
    assert state.steps["clean"].outputs == {"g": "cancelled"}
    assert state.steps["end"].state == "cancelled"
    assert state.groups["later"].state == "cancelled"
    assert [key[1] for key in runtime.started] == ["g.0.a", "clean"]


async def test_always_has_a_limited_time_after_a_stop(
    engine, flow, runtime, eventually, monkeypatch
):
    nodes = {"a": do("wait"), "clean": do("wait", after=["a"], run_if="always")}
    run = flow(nodes)
    await engine.submit(run)
    await eventually(lambda: len(runtime.started) == 1)
    await engine.stop(run.id)
    await eventually(lambda: len(runtime.started) == 2)
    monkeypatch.setattr(driver_module, "CLEAN_UP", 0.0)
    state = await engine.wait(run.id, 60)
    assert (state.state, state.steps["clean"].state) == ("cancelled", "cancelled")


async def test_one_item_and_a_whole_loop_can_be_stopped(engine, flow, runtime, eventually):
    nodes = {
        "g": group("a", "b", for_each=each("n", [1, 2])),
        "a": do("wait"),
        "b": do("noop", after=["a"]),
        "c": do("wait", for_each=each("n", [1, 2])),
    }
    run = flow(nodes)
    await engine.submit(run)
    await eventually(lambda: len(runtime.started) == 4)
    await engine.stop(run.id, "g.0")
    await engine.stop(run.id, "c")
    steps = engine.store.read(run.id).state.steps
    await eventually(lambda: steps["c.1"].state == steps["g.0.a"].state == "cancelled")
    assert steps["g.1.a"].state == "running"
    runtime.go_on.set()
    state = await engine.wait(run.id, 60)
    assert (state.state, state.groups["g.1"].state) == ("cancelled", "succeeded")
    assert state.groups["c"].counts == {"cancelled": 2}


async def test_a_stop_waits_for_what_runs_in_the_groups_of_an_item(
    engine, flow, runtime, eventually
):
    nodes = {
        "g": group("h", "k", for_each=each("n", [1, 2])),
        "h": group("a", when="${{ each.n > 0 }}"),
        "a": do("wait"),
        "k": do("wait", for_each=each("m", [1])),
    }
    run = flow(nodes)
    await engine.submit(run)
    await eventually(lambda: len(runtime.started) == 4)
    assert engine.store.read(run.id).state.groups["g"].counts == {"running": 2}
    await engine.stop(run.id)
    state = await engine.wait(run.id, 60)
    units = [*state.steps.values(), *state.groups.values()]
    assert {unit.state for unit in units} == {state.state} == {"cancelled"}


async def test_stopping_an_item_that_waits_makes_no_room_for_another(
    engine, flow, runtime, eventually
):
    nodes = {"a": do("wait", for_each=each("n", [*range(5)], parallel=2))}
    run = flow(nodes)
    await engine.submit(run)
    await eventually(lambda: len(runtime.started) == 2)
    await engine.stop(run.id, "a.3")
    steps = engine.store.read(run.id).state.steps
    await eventually(lambda: steps["a.3"].state == "cancelled")
    runtime.go_on.set()
    state = await engine.wait(run.id, 60)
    assert state.groups["a"].counts == {"succeeded": 4, "cancelled": 1}
    assert runtime.most_held == 2


async def test_what_always_runs_waits_for_its_group(engine, flow, runtime, eventually):
    nodes = {
        "first": do("wait"),
        "g": group("a", "b", when="${{ nodes.first.state == 'succeeded' }}", run_if="always"),
        "a": do("noop"),
        "b": do("noop", after=["a"], run_if="always"),
    }
    run = flow(nodes)
    await engine.submit(run)
    await eventually(lambda: len(runtime.started) == 1)
    await engine.stop(run.id, "a")
    steps = engine.store.read(run.id).state.steps
    await eventually(lambda: steps["a"].state == "cancelled")
    assert steps["b"].state == "waiting"
    runtime.go_on.set()
    state = await engine.wait(run.id, 60)
    assert [key[1] for key in runtime.started] == ["first", "b"]
    assert (state.state, state.groups["g"].state) == ("cancelled", "cancelled")


INNER = {
    "parameters": {"n": {"type": "integer", "default": 1}, "flag": {"default": True}},
    "outputs": {"double": "${{ nodes.b.outputs.n }}"},
    "nodes": {
        "a": give(n="${{ parameters.n }}"),
        "b": give(n="${{ nodes.a.outputs.n }}") | {"when": "${{ parameters.flag }}"},
    },
}
INNER["outputs"] = {"double": "${{ first(nodes.b.outputs.n, 0) }}"}


async def test_a_pipeline_twice_in_one(finish, flow):
    nodes = {
        "seven": give(n=7),
        "one": {"kind": "pipeline", "path": "inner.pipeline", "parameters": {"n": 5}},
        "two": {
            "kind": "pipeline",
            "path": "inner.pipeline",
            "parameters": {"n": "${{ nodes.seven.outputs.n }}", "flag": False},
        },
        "end": give(one="${{ nodes.one.outputs.double }}", two="${{ nodes.two.outputs.double }}"),
    }
    run = flow(nodes, pipelines={"inner.pipeline": INNER})
    assert [group.id for group in run.plan.groups] == ["one", "two"]
    assert all(group.digest for group in run.plan.groups)
    state = await finish(run)
    assert state.state == "succeeded"
    assert state.steps["end"].outputs == {"one": 5, "two": 0}
    assert state.steps["two.a"].outputs == {"n": 7}
    assert state.steps["two.b"].state == "skipped"


async def test_a_pipeline_in_a_loop_does_not_mix_up_items(finish, flow):
    inner = {
        "parameters": {"outer": {}},
        "outputs": {"all": "${{ nodes.x.outputs.v }}"},
        "nodes": {
            "x": give(v="${{ parameters.outer }}-${{ each.r }}")
            | {"for_each": each("r", ["p", "q"])}
        },
    }
    nodes = {
        "sub": {
            "kind": "pipeline",
            "path": "inner.pipeline",
            "parameters": {"outer": "${{ each.r }}"},
            "for_each": each("r", ["a", "b"]),
        },
        "end": give(all="${{ nodes.sub.outputs.all }}"),
    }
    state = await finish(flow(nodes, pipelines={"inner.pipeline": inner}))
    assert state.state == "succeeded"
    assert state.steps["end"].outputs == {"all": [["a-p", "a-q"], ["b-p", "b-q"]]}
    assert "sub.1.x.0" in state.steps


async def test_reuse_inside_a_loop_goes_by_the_value_of_the_item(finish, flow, runtime):
    def nodes(items):
        return {"a": give(n="${{ each.n }}") | {"for_each": each("n", items), "cache": True}}

    await finish(flow(nodes([1, 2, 3])))
    started = len(runtime.started)
    state = await finish(flow(nodes([9, 3, 1])))
    assert states(state) == {"a.0": "succeeded", "a.1": "cached", "a.2": "cached"}
    assert [state.steps[f"a.{n}"].outputs["n"] for n in range(3)] == [9, 3, 1]
    assert len(runtime.started) == started + 1


async def test_only_failed_takes_over_the_items_that_were_good(finish, flow, runtime):
    def nodes(last):
        return {
            "first": do("noop"),
            "g": group("a", "b", after=["first"], for_each=each("w", ["x", "fail", "y"])),
            "a": give(w="${{ each.w }}"),
            "b": do("noop" if last else "${{ each.w }}", "bad", after=["a"]),
            "end": give(ws="${{ nodes.a.outputs.w }}", after=["g"]),
        }

    bad = flow(nodes(last=False))
    state = await finish(bad)
    assert state.state == "failed"
    started = len(runtime.started)
    again = flow(nodes(last=True), select=Selection("failed"), of=bad.id)
    state = await finish(again)
    assert state.state == "succeeded"
    assert state.steps["first"].state == "cached"
    assert states(state)["g.1.a"] == "cached"
    assert states(state)["g.1.b"] == "succeeded"
    assert states(state)["g.0.b"] == "cached"
    assert state.steps["end"].outputs == {"ws": ["x", "fail", "y"]}
    assert {key[1] for key in runtime.started[started:]} == {"g.1.b", "end"}


async def test_only_failed_runs_what_ran_in_spite_of_the_failure_once_more(finish, flow, runtime):
    nodes = {
        "data": do("noop"),
        "train": do("fail", "No.", after=["data"]),
        "clean": do("noop", after=["train"], run_if="always", for_each=each("n", [1])),
        "report": do("noop", after=["clean", "train"]),
    }
    first = flow(nodes)
    assert (await finish(first)).steps["report"].reason == "Skipped because “train” failed."
    runtime.started.clear()
    nodes["train"] = do("noop", after=["data"])
    state = await finish(flow(nodes, of=first.id, select=Selection("failed")))
    assert state.state == "succeeded"
    assert [key[1] for key in runtime.started] == ["train", "clean.0", "report"]


async def test_only_failed_uses_no_result_that_saw_the_failure(finish, flow, runtime):
    def nodes(word):
        return {
            "g": group("a", "b", "c", "d", for_each=each("n", [1, 2])),
            "a": give(n="${{ each.n }}"),
            "b": do(word, "No.", after=["a"], when="${{ each.n == 1 }}"),
            "c": give(was="${{ nodes.b.state }}", after=["b"]) | {"run_if": "always"},
            "d": give(n="${{ nodes.a.outputs.n }}"),
        }

    first = flow(nodes("fail"))
    state = await finish(first)
    assert [state.steps[f"g.{n}.c"].outputs["was"] for n in (0, 1)] == ["failed", "skipped"]
    runtime.started.clear()
    state = await finish(flow(nodes("noop"), of=first.id, select=Selection("failed")))
    assert [state.steps[f"g.{n}.c"].outputs["was"] for n in (0, 1)] == ["succeeded", "skipped"]
    assert [key[1] for key in runtime.started] == ["g.0.b", "g.0.c"]


async def test_an_item_whose_result_is_gone_runs_again(finish, flow, runtime, store):
    nodes = {
        "a": do("${{ each.w }}", "bad", for_each=each("w", ["noop", "fail"])),
    }
    bad = flow(nodes)
    await finish(bad)
    (store.attempt_folder(bad.id, "a.0", 1) / "outputs.json").unlink()
    started = len(runtime.started)
    state = await finish(flow(nodes, select=Selection("failed"), of=bad.id))
    assert states(state) == {"a.0": "succeeded", "a.1": "failed"}
    assert len(runtime.started) == started + 2


async def test_what_comes_after_a_loop_can_run_alone(finish, flow, runtime):
    nodes = {
        "g": group("a", "b", for_each=each("n", [1, 2])),
        "a": give(n="${{ each.n }}"),
        "b": do("noop", when="${{ nodes.a.outputs.n > 1 }}"),
        "end": give(ns="${{ nodes.a.outputs.n }}", after=["g"]),
        "other": do("noop"),
    }
    first = flow(nodes)
    await finish(first)
    started = len(runtime.started)
    state = await finish(flow(nodes, select=Selection("only", "end"), of=first.id))
    assert state.state == "succeeded"
    assert [key[1] for key in runtime.started[started:]] == ["end"]
    assert state.steps["end"].outputs == {"ns": [1, 2]}
    assert states(state)["g.0.b"] == "skipped"
    assert states(state)["g.1.b"] == "cached"
    assert state.steps["other"].reason == "Not part of this partial run."
    state = await finish(flow(nodes, select=Selection("only", "b"), of=first.id))
    assert states(state)["g.1.a"] == "succeeded"


async def test_what_comes_after_a_loop_runs_alone_with_the_last_run_that_has_it(
    finish, flow, runtime
):
    def nodes(*words):
        return {
            "a": do("${{ each.w }}", "bad", for_each=each("w", [*words])),
            "end": give(count="${{ nodes.a.outputs.w }}", after=["a"]),
        }

    only = Selection("only", "end")
    with pytest.raises(Refused, match="needs the result of “a”, and there is none"):
        await finish(flow(nodes("value"), select=only))
    good = flow(nodes("value", "value"))
    await finish(good)
    await finish(flow(nodes("value", "fail")))
    started = len(runtime.started)
    state = await finish(flow(nodes("value", "value", "value"), select=only))
    assert state.state == "succeeded"
    assert [key[1] for key in runtime.started[started:]] == ["end"]
    assert state.reuse == {"a": f"{good.id}/"}
    assert state.groups["a"].counts == {"cached": 2}


async def test_a_partial_run_keeps_to_the_branch_of_the_last_run(finish, flow, runtime):
    def nodes(rows):
        return {
            "size": give(rows=rows),
            "big": give(model="big") | {"when": "${{ nodes.size.outputs.rows > 10 }}"},
            "small": give(model="small") | {"when": "${{ nodes.size.outputs.rows <= 10 }}"},
            "report": give(
                model="${{ first(nodes.big.outputs.model, nodes.small.outputs.model) }}"
            ),
        }

    large = flow(nodes(20))
    await finish(large)
    await finish(flow(nodes(5)))
    only = Selection("only", "report")
    state = await finish(flow(nodes(5), select=only))
    assert state.steps["report"].outputs == {"model": "small"}
    state = await finish(flow(nodes(5), select=only, of=large.id))
    assert state.steps["report"].outputs == {"model": "big"}


@pytest.mark.parametrize("name", ["g.1.b", "g.1", "b"])
async def test_a_step_of_an_item_names_the_loop_that_runs_again(finish, flow, runtime, name):
    nodes = {
        "before": do("noop"),
        "g": group("b", for_each=each("n", [1, 2]), after=["before"]),
        "b": do("noop"),
        "end": do("noop", after=["g"]),
    }
    first = flow(nodes)
    await finish(first)
    started = len(runtime.started)
    state = await finish(flow(nodes, select=Selection("from", name), of=first.id))
    assert state.state == "succeeded"
    assert {key[1] for key in runtime.started[started:]} == {"g.0.b", "g.1.b", "end"}
    with pytest.raises(Missing, match=r"no node “g\.b\.1”"):
        await finish(flow(nodes, select=Selection("from", "g.b.1"), of=first.id))


async def test_a_host_goes_on_in_the_middle_of_a_loop(store, engine, flow, runtime, eventually):
    nodes = {
        "g": group("a", "b", for_each=each("n", [*range(6)], parallel=2)),
        "a": do("${{ each.n }}", for_each=each("k", [0])) | {"command": ["wait"]},
        "b": do("noop", after=["a"]),
        "end": do("noop", after=["g"]),
    }
    run = flow(nodes)
    await engine.submit(run)
    await eventually(lambda: len(runtime.started) == 2)
    await engine.close()
    other = Engine(store, {"inprocess": runtime}, beat=0.2)
    try:
        await other.resume()
        runtime.go_on.set()
        state = await other.wait(run.id, 60)
    finally:
        await other.close()
    assert state.state == "succeeded"
    assert Counter(key[1] for key in runtime.started).most_common(1)[0][1] == 1
    assert len(runtime.started) == 13
    assert runtime.most_held <= 2


async def test_a_thousand_items(finish, flow, runtime):
    runtime.slots = 100
    nodes = {
        "a": do("noop", for_each=each("n", [*range(1000)])),
        "end": do("noop", after=["a"]),
    }
    run = flow(nodes)
    state = await finish(run)
    assert state.state == "succeeded"
    assert state.groups["a"].counts == {"succeeded": 1000}
    shown = view(run, state)
    assert len(shown["steps"]) <= 201
    assert shown["groups"]["a"]["items"] == 1000
    assert shown["steps_total"] == 1001


async def test_items_are_shown_by_page_and_by_state(finish, flow):
    words = ["fail" if n % 100 == 7 else "value" for n in range(300)]
    nodes = {"a": do("${{ each.w }}", "bad", parameters={}, for_each=each("w", words))}
    run = flow(nodes)
    state = await finish(run)
    page = items_view(run, state, "a", {"failed"}, offset=1, limit=1)
    assert (page["matched"], page["items"], page["counts"]["failed"]) == (3, 300, 3)
    (item,) = page["page"]
    assert (item["index"], item["value"], item["reason"]) == (107, "fail", "bad")
    assert list(item["steps"]) == ["a.107"]
    page = items_view(run, state, "a", offset=1, limit=4, worst_first=True)
    assert [item["index"] for item in page["page"]] == [107, 207, 0, 1]
    steps = view(run, state)["steps"].items()
    failed = {name for name, step in steps if step["state"] == "failed"}
    assert failed == {"a.7", "a.107", "a.207"}


async def test_all_steps_of_a_node_in_a_loop_are_counted(finish, flow):
    words = ["fail" if n == 299 else "noop" for n in range(300)]
    nodes = {
        "g": group("a", "inner", for_each=each("w", words)),
        "a": do("${{ each.w }}", "bad"),
        "inner": group("b", for_each=each("k", [1, 2])),
        "b": do("noop", after=["a"]),
    }
    run = flow(nodes)
    state = await finish(run)
    groups = view(run, state)["groups"]
    assert groups["g"]["members"] == {
        "a": {"succeeded": 299, "failed": 1},
        "b": {"succeeded": 598},
    }
    assert not any(shown["members"] for name, shown in groups.items() if name != "g")
    # It began with its first step, as the run did: waiting is not work.
    assert groups["g"]["started"] == view(run, state)["started"] > state.groups["g"].started


async def test_a_loop_of_one_node_began_with_its_first_step(finish, flow):
    run = flow({"a": do("noop", for_each=each("w", [1, 2, 3]))})
    state = await finish(run)
    shown = view(run, state)
    assert shown["groups"]["a"]["started"] == shown["started"] > state.groups["a"].started


async def test_a_rule_in_a_loop_is_evaluated_for_each_item(finish, flow):
    nodes = {
        "list": give(few=[1]),
        "g": group("a", "b", for_each=each("w", [1, 2, 3])),
        "a": give(n="${{ each.w }}", l=[1, 2]),
        "b": do("noop", when="${{ nodes.a.outputs.n > 1 }}"),
        "bad": do("fail", "No."),
        "clean": do("noop", after=["bad"], run_if="always"),
    }
    run = flow(nodes)
    state = await finish(run)

    def evaluate(text, *place, **more):
        return evaluate_in(run, state, f"${{{{ {text} }}}}", *place, **more)

    def items(**counts):
        return {"value": None, "values": {}, "items": {"total": 3, "true": 0, "length": 0} | counts}

    assert evaluate("nodes.a.outputs.n > 1", "g") == items(true=2)
    assert evaluate("each.w in nodes.list.outputs.few", "g") == items(true=1)
    assert evaluate("nodes.a.outputs.l", "g") == items(length=6)
    # What is the same for all items has its one value.
    few = {"value": True, "values": {"few": [1]}}
    assert evaluate("nodes.list.outputs.few == [1]", "g") == few
    assert evaluate("nodes.a.outputs.n == [1, 2, 3]")["value"] is True
    for text, loop, sentence in (
        ("each.w > 1", "other", "The items of the loop around it are not known beforehand."),
        ("nodes.a.outputs.x > 1", "g", "“a” .* no output “x”"),
        ("each.other > 1", "g", "There is no loop over “other” here."),
        ("nodes.bad.outputs.x == null", None, "It has no value, because a node that it needs"),
    ):
        with pytest.raises(Refused, match=sentence):
            evaluate(text, loop)
    assert evaluate("nodes.bad.outputs.x == null", runs_anyway=True)["value"] is True


async def test_the_state_follows_from_the_events_alone(finish, flow, store):
    nodes = {
        "g": group("a", for_each=each("n", [1, 2])),
        "a": give(n="${{ each.n }}"),
        "end": give(n="${{ nodes.a.outputs.n }}"),
    }
    run = flow(nodes)
    state = await finish(run)
    lines = (store.run_folder(run.id) / "events.ndjson").read_bytes().splitlines()
    assert all(decode(line) for line in lines)
    from jupyterlab_convect.runs.run_file import open_run

    assert open_run(store.run_folder(run.id)).state == state


def test_what_runs_for_an_item_is_named_by_its_path(flow):
    loop = each("x", [1, 2])
    inner = {
        "g": group("a", "deep", for_each=loop),
        "a": give(),
        "deep": {**PIPELINE, "path": "d.pipeline"},
    }
    deepest = {"h": group("b", for_each=loop), "b": give()}
    plan = flow(
        {"p": {**PIPELINE, "path": "i.pipeline"}, "own": {**give(), "for_each": loop}},
        pipelines={"i.pipeline": {"nodes": inner}, "d.pipeline": {"nodes": deepest}},
    ).plan
    graph = Graph(plan)
    assert graph.name("own", (1,)) == "own.1"
    assert graph.name("p.a", (0,)) == "p.g.0.a"
    assert graph.name("p.deep.b", (0, 1)) == "p.g.0.deep.h.1.b"
