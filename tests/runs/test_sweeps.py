from __future__ import annotations

import asyncio
import json
import math
import shutil
import threading
from collections import Counter
from dataclasses import replace

import pytest
from inprocess import InProcess
from waiting import eventually

from jupyterlab_convect.errors import ConvectError, Missing
from jupyterlab_convect.pipeline.plan import Plan
from jupyterlab_convect.runs.best import best_of
from jupyterlab_convect.runs.engine import Engine
from jupyterlab_convect.runs.index import Index, Query
from jupyterlab_convect.runs.model import Request, Run, new_id
from jupyterlab_convect.runs.store import Store
from jupyterlab_convect.runs.sweep_space import points_of
from jupyterlab_convect.runs.sweeps import Sweeps


def test_a_grid_combines_everything():
    points = points_of({"a": [1, 2], "b": {"from": 0.1, "to": 0.3, "step": 0.1}})
    assert points == [{"a": a, "b": b} for a in (1, 2) for b in (0.1, 0.2, 0.3)]


def test_a_list_goes_side_by_side():
    assert points_of({"a": [1, 2], "b": ["x", "y"]}, "list") == [
        {"a": 1, "b": "x"},
        {"a": 2, "b": "y"},
    ]


def test_ranges_include_their_end_and_keep_their_type():
    assert points_of({"n": {"from": 8, "to": 2, "step": -3}}) == [{"n": 8}, {"n": 5}, {"n": 2}]
    assert points_of({"n": {"from": 1, "to": 3}}) == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_chance_can_be_repeated_and_stays_inside():
    space = {
        "lr": {"min": 1e-5, "max": 1e-1, "log": True},
        "n": {"min": 2, "max": 9, "type": "integer"},
        "kind": ["x", "y"],
    }
    points = points_of(space, "random", 200, seed=7)
    assert points == points_of(space, "random", 200, seed=7)
    assert points != points_of(space, "random", 200, seed=8)
    assert all(1e-5 <= point["lr"] <= 1e-1 for point in points)
    assert {point["n"] for point in points} == set(range(2, 10))
    assert sum(point["lr"] < 1e-3 for point in points) > 60


@pytest.mark.parametrize(
    ("space", "mode", "samples"),
    [
        ({}, "grid", None),
        ({"a": []}, "grid", None),
        ({"a": 3}, "grid", None),
        ({"a": {"min": 0, "max": 1}}, "grid", None),
        ({"a": {"from": 0, "to": 1, "step": 0}}, "grid", None),
        ({"a": {"from": 0, "to": 1, "step": -1}}, "grid", None),
        ({"a": {"from": "x", "to": 1}}, "grid", None),
        ({"a": {"from": 0, "to": 1e12}}, "grid", None),
        ({"a": list(range(200)), "b": list(range(200))}, "grid", None),
        ({"a": [1], "b": [1, 2]}, "list", None),
        ({"a": [1]}, "random", None),
        ({"a": [1]}, "random", 0),
        ({"a": {"min": 2, "max": 1}}, "random", 3),
        ({"a": {"min": 0, "max": 1, "log": True}}, "random", 3),
        ({"a": [1]}, "spiral", None),
    ],
)
def test_a_space_without_sense_is_refused(space, mode, samples):
    with pytest.raises(ConvectError):
        points_of(space, mode, samples)


def test_the_best_is_one_that_succeeded():
    runs = {
        "a": {"state": "succeeded", "metrics": {"accuracy": 0.8}},
        "b": {"state": "failed", "metrics": {"accuracy": 0.99}},
        "c": {"state": "succeeded", "metrics": {"accuracy": 0.9}},
        "d": {"state": "succeeded", "metrics": {}},
    }
    assert best_of("max:accuracy", runs) == "c"
    assert best_of("min:accuracy", runs) == "a"
    assert best_of("min:loss", runs) is None
    assert best_of(None, runs) is None
    runs["e"] = {"state": "succeeded", "metrics": {"accuracy": math.nan}}
    runs["f"] = {"state": "succeeded", "metrics": {"accuracy": math.inf}}
    runs["g"] = {"state": "succeeded", "metrics": {"accuracy": -math.inf}}
    assert best_of("max:accuracy", runs) == "c"
    assert best_of("min:accuracy", runs) == "a"
    assert best_of("min:accuracy", {name: runs[name] for name in "efg"}) is None
    runs["h"] = {"state": "succeeded", "metrics": {"accuracy": 10**400}}
    assert best_of("max:accuracy", runs) == "h"
    assert best_of("min:accuracy", runs) == "a"
    with pytest.raises(ConvectError):
        best_of("accuracy", runs)


@pytest.fixture
def make(tmp_path, step):
    """Resolve a request: the parameter `do` is what the only step does."""

    def make(request: Request) -> Run:
        words = json.loads(request.parameters.get("do", '["value"]'))
        only = step("a", *words, parameters=dict(request.parameters))
        plan = Plan("study", (only,), path="study.ipynb", parameters=dict(request.parameters))
        return Run(new_id(), "study", 0.0, "inprocess", plan, request)

    return make


@pytest.fixture
def sweeps(store, engine, make):
    return Sweeps(store, engine, make)


@pytest.fixture
def request_(tmp_path):
    return Request(path="study.ipynb", root=str(tmp_path), runtime="inprocess")


async def test_a_sweep_is_one_object_with_its_runs(sweeps, request_):
    sweep = await sweeps.create(request_, {"x": [3, 1, 2]}, select="min:x")
    view = await sweeps.wait(sweep, 60)
    assert view["state"] == "succeeded"
    assert (view["total"], view["done"], view["counts"]) == (3, 3, {"succeeded": 3})
    assert [point["parameters"] for point in view["points"]] == [{"x": 3}, {"x": 1}, {"x": 2}]
    assert view["best"] == view["points"][1]["run"]
    assert [run["parameters"]["x"] for run in view["runs"]] == [3, 1, 2]
    assert {run["sweep"] for run in view["runs"]} == {sweep}
    assert [found["id"] for found in sweeps.all()] == [sweep]
    assert json.dumps(view)


async def test_no_more_runs_at_a_time_than_asked(sweeps, request_, runtime, store, eventually):
    space = {"n": list(range(6)), "do": ['["wait"]']}
    sweep = await sweeps.create(request_, space, concurrency=2)
    waiting = [run for run in sweeps.view(sweep)["runs"] if run["state"] == "queued"]
    assert len(waiting) == 4
    assert all("2 at a time" in run["reason"] for run in waiting)
    await eventually(lambda: len(runtime.started) == 2)
    runtime.go_on.set()
    view = await sweeps.wait(sweep, 60)
    assert view["state"] == "succeeded"
    assert runtime.most_held == 2


async def test_stop_all(sweeps, request_, runtime, eventually):
    space = {"n": list(range(5)), "do": ['["sleep", "600"]']}
    sweep = await sweeps.create(request_, space, concurrency=2)
    await eventually(lambda: len(runtime.started) == 2)
    await sweeps.stop(sweep)
    view = await sweeps.wait(sweep, 60)
    assert view["state"] == "cancelled"
    assert view["counts"] == {"cancelled": 5}
    assert len(runtime.started) == 2


async def test_only_what_failed_runs_again(sweeps, request_, make, store):
    luck = {"do": '["fail", "No."]'}

    def moody(request: Request) -> Run:
        bad = request.parameters["x"] == 2
        parameters = {**request.parameters, **(luck if bad else {})}
        return make(replace(request, parameters=parameters))

    sweeps.make = moody
    sweep = await sweeps.create(request_, {"x": [1, 2, 3]})
    view = await sweeps.wait(sweep, 60)
    assert (view["state"], view["counts"]) == ("failed", {"succeeded": 2, "failed": 1})
    luck.clear()
    again = await sweeps.rerun(sweep)
    assert len(again) == 1
    view = await sweeps.wait(sweep, 60)
    assert (view["state"], view["counts"]) == ("succeeded", {"succeeded": 3})
    assert view["points"][1]["run"] == again[0]
    assert store.read(again[0]).run.request.of is not None
    assert await sweeps.rerun(sweep) == []


async def test_more_points_for_a_finished_sweep(sweeps, request_):
    sweep = await sweeps.create(request_, {"x": [1, 2]}, select="max:x")
    await sweeps.wait(sweep, 60)
    new = await sweeps.add_points(sweep, {"x": [2, 3]})
    assert len(new) == 1
    view = await sweeps.wait(sweep, 60)
    assert [run["parameters"]["x"] for run in view["runs"]] == [1, 2, 3]
    assert view["best"] == new[0]


async def test_bad_questions(sweeps, request_, store):
    with pytest.raises(Missing):
        sweeps.view("20200101-000000000-abcdef")
    with pytest.raises(Missing):
        sweeps.view("../etc")
    with pytest.raises(ConvectError):
        await sweeps.create(request_, {"x": [1]}, select="accuracy")
    with pytest.raises(ConvectError):
        await sweeps.create(request_, {"x": [1]}, concurrency=0)
    assert sweeps.all() == []
    assert store.find().total == 0


async def test_a_sweep_survives_its_host(store, runtime, make, request_):
    """The host dies after some points have had their run; the next one makes the others."""
    engine = Engine(store, {"inprocess": runtime}, beat=0.2)
    sweeps = Sweeps(store, engine, make)
    count = 0

    async def die(run):
        nonlocal count
        count += 1
        if count > 3:
            raise asyncio.CancelledError
        await Engine.submit(engine, run)

    engine.submit = die
    space = {"n": list(range(8)), "do": ['["sleep", "0.05"]']}
    with pytest.raises(asyncio.CancelledError):
        await sweeps.create(request_, space, concurrency=2)
    await engine.close()

    engine = Engine(store, {"inprocess": runtime}, beat=0.2)
    sweeps = Sweeps(store, engine, make)
    sweep = sweeps.all()[0]["id"]
    assert sweeps.view(sweep)["state"] == "running"
    await engine.resume()
    await sweeps.resume()
    view = await sweeps.wait(sweep, 60)
    assert sorted(run["parameters"]["n"] for run in view["runs"]) == list(range(8))
    assert store.find().total == 8
    await engine.close()


async def test_a_sweep_without_runs_is_cleared_away(sweeps, request_, store, monkeypatch):
    monkeypatch.setattr("jupyterlab_convect.runs.retention.HOUR", -1.0)
    kept = await sweeps.create(request_, {"x": [1]})
    gone = await sweeps.create(request_, {"x": [1, 2]})
    for sweep in (kept, gone):
        await sweeps.wait(sweep, 60)
    for run in sweeps.view(gone)["runs"]:
        store.delete(run["id"])
    store.prune(keep_days=1)
    assert [found["id"] for found in sweeps.all()] == [kept]


class Host:
    """A process of its own, as far as the folder of the runs can tell."""

    def __init__(self, folder, index, make):
        self.store = Store(folder, Index(index))
        self.runtime = InProcess(slots=1000)
        self.engine = Engine(self.store, {"inprocess": self.runtime}, beat=0.05)
        self.sweeps = Sweeps(self.store, self.engine, make)

    async def close(self):
        await self.engine.close()
        self.store.close()


@pytest.fixture
async def hosts(store, tmp_path, make):
    """Two on one folder: a lease is as good between them as between processes."""
    made = [Host(store.folder, tmp_path / f"index-{n}.sqlite", make) for n in range(2)]
    yield made
    for host in made:
        await host.close()


def points_of_all_runs(store, sweep):
    store.refresh()
    runs = store.find(Query(sweep=sweep, limit=1000)).runs
    return Counter(run["parameters"]["x"] for run in runs)


async def test_a_sweep_that_is_being_filled_is_filled_once(hosts, request_, store, make):
    """More points than one batch, and another host that starts and looks meanwhile."""
    first, second = hosts
    began, go_on = threading.Event(), threading.Event()

    def slow(request):
        if request.parameters["x"] == 40:
            began.set()
            go_on.wait(60)
        return make(request)

    sweep = await first.sweeps.create(request_, {"x": list(range(30))})
    first.sweeps.make = slow
    adding = asyncio.create_task(first.sweeps.add_points(sweep, {"x": list(range(60))}))

    async def look_in_vain():
        await second.sweeps.resume()
        return began.is_set()

    await eventually(look_in_vain)
    go_on.set()
    await second.engine.resume()
    await second.sweeps.resume()
    await adding
    await second.sweeps.resume()
    await first.sweeps.wait(sweep, 60)
    assert points_of_all_runs(store, sweep) == Counter(range(60))


async def test_what_another_host_asks_is_done_by_the_one_that_holds_the_lease(
    hosts, request_, store, eventually
):
    first, second = hosts
    space = {"x": [1], "do": ['["sleep", "600"]']}
    sweep = await first.sweeps.create(request_, space)
    waiting = asyncio.create_task(first.sweeps.wait(sweep, 60))
    assert await second.sweeps.add_points(sweep, {"x": [1, 2], "do": ['["value"]']}) == []
    await eventually(lambda: len(first.runtime.started) == 3)
    assert second.runtime.started == []
    await second.sweeps.stop(sweep)
    view = await waiting
    assert view["state"] == "cancelled"
    assert points_of_all_runs(store, sweep) == Counter({1: 2, 2: 1})


async def test_two_who_run_it_again_at_once_run_it_again_once(sweeps, request_, store, make):
    def bad(request):
        return make(replace(request, parameters={**request.parameters, "do": '["fail", "No."]'}))

    sweep = await sweeps.create(request_, {"x": [1, 2]}, make=bad)
    await sweeps.wait(sweep, 60)
    again = await asyncio.gather(sweeps.rerun(sweep), sweeps.rerun(sweep))
    assert sorted(map(len, again)) == [0, 2]
    await sweeps.wait(sweep, 60)
    assert points_of_all_runs(store, sweep) == Counter({1: 2, 2: 2})


async def test_stop_stops_a_sweep_whose_runs_are_still_being_made(
    sweeps, request_, store, make, runtime, eventually
):
    sweep = await sweeps.create(request_, {"x": [0], "do": ['["sleep", "600"]']})
    began, go_on, calls = threading.Event(), threading.Event(), 0

    def slow(request):
        nonlocal calls
        calls += 1
        if calls == 60 + 30:  # They are all made once to see whether they can be.
            began.set()
            go_on.wait(60)
        return make(request)

    sweeps.make = slow
    space = {"x": list(range(1, 61)), "do": ['["sleep", "600"]']}
    adding = asyncio.create_task(sweeps.add_points(sweep, space))
    await eventually(began.is_set)
    await sweeps.stop(sweep)
    go_on.set()
    await adding
    view = await sweeps.wait(sweep, 60)
    assert view["state"] == "cancelled"
    assert set(view["counts"]) == {"cancelled"}
    assert len(view["runs"]) < 61


async def test_a_point_that_cannot_be_made_is_refused_before_there_is_a_sweep(
    sweeps, request_, store, make
):
    def picky(request):
        if request.parameters["x"] == "abc":
            raise ConvectError("x is a whole number.")
        return make(request)

    sweeps.make = picky
    with pytest.raises(ConvectError, match="whole number"):
        await sweeps.create(request_, {"x": [*range(30), "abc"]})
    assert sweeps.all() == []
    assert store.find().total == 0
    sweep = await sweeps.create(request_, {"x": [1]})
    with pytest.raises(ConvectError, match="whole number"):
        await sweeps.add_points(sweep, {"x": [2, "abc"]})
    view = await sweeps.wait(sweep, 60)
    assert (view["state"], view["total"]) == ("succeeded", 1)


async def test_a_run_that_somebody_else_drives_keeps_its_turn(hosts, request_):
    first, _ = hosts
    space = {"x": [1, 2], "do": ['["sleep", "600"]']}
    sweep = await first.sweeps.create(request_, space, concurrency=1)
    driven, waiting = (point["run"] for point in first.sweeps.view(sweep)["points"])
    first.engine._drivers[driven].let_go()
    lease = first.engine._drivers.pop(driven).lease
    assert lease.is_mine()
    for _ in range(5):
        await first.engine.resume()
        first.engine.admit_soon()
        await asyncio.sleep(0)  # Whoever may begin has begun.
    assert first.store.read(waiting).state.state == "queued"
    assert first.engine.limits.inside() == [driven]


async def test_a_sweep_of_an_earlier_version_is_read(sweeps, request_, store):
    sweep = await sweeps.create(request_, {"x": [1, 2]})
    await sweeps.wait(sweep, 60)
    runs = [point["run"] for point in sweeps.view(sweep)["points"]]
    events = [
        {"time": 1.0, "type": "points", "points": [{"x": 1}, {"x": 2}]},
        *({"time": 1.0, "type": "run", "point": n, "run": run} for n, run in enumerate(runs)),
        {"time": 1.0, "type": "made", "count": 2},
    ]
    path = store.folder / "sweeps" / sweep / "events.ndjson"
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    store.delete(runs[0])
    await sweeps.resume()
    view = sweeps.view(sweep)
    assert (view["state"], [point["run"] for point in view["points"]]) == ("succeeded", runs)
    assert points_of_all_runs(store, sweep) == Counter({2: 1})


async def test_only_sweeps_in_which_something_is_left_to_do_are_read_again(
    sweeps, request_, store, make, runtime, monkeypatch
):
    for _ in range(3):
        sweep = await sweeps.create(request_, {"x": [1]})
        await sweeps.wait(sweep, 60)
    await sweeps.resume()
    read, real = [], sweeps.folders.read
    monkeypatch.setattr(
        sweeps.folders, "read", lambda each, **how: read.append(each) or real(each, **how)
    )
    await sweeps.resume()
    assert read == []
    other = Engine(store, {"inprocess": runtime}, beat=0.2)
    elsewhere = Sweeps(store, other, make)
    elsewhere.folders.ask(
        sweep, {"type": "points", "points": [{"x": 2}]}
    )  # As another process does it.
    await sweeps.resume()
    assert set(read) == {sweep}
    assert (await sweeps.wait(sweep, 60))["total"] == 2
    await other.close()


async def test_the_turn_of_a_run_that_is_gone_goes_to_the_next(hosts, request_):
    """Somebody has deleted its folder by hand."""
    first, _ = hosts
    space = {"x": [1, 2], "do": ['["sleep", "600"]']}
    sweep = await first.sweeps.create(request_, space, concurrency=1)
    driven, waiting = (point["run"] for point in first.sweeps.view(sweep)["points"])
    first.engine._drivers.pop(driven).let_go()
    shutil.rmtree(first.store.run_folder(driven))
    await eventually(lambda: first.store.read(waiting).state.state == "running", "the next runs")
