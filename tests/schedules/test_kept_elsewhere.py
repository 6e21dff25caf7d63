"""Schedules whose clocks a cluster keeps: what it is told, and what it starts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from schedule_bench import BEGIN, HOUR, Bench

from jupyterlab_convect.errors import ConvectError, Missing, Refused
from jupyterlab_convect.keep_process import keep_one
from jupyterlab_convect.runs.model import Request
from jupyterlab_convect.runtimes.base import KeptClock
from jupyterlab_convect.runtimes.local.runtime import LocalRuntime
from jupyterlab_convect.schedules.ledger import newest
from jupyterlab_convect.schedules.times import Clock
from jupyterlab_convect.schedules.triggers import FileTrigger, Trigger
from jupyterlab_convect.settings import load_settings
from jupyterlab_convect.workspace import Workspace


class Told:
    """What a cluster was told, in place of one."""

    def __init__(self) -> None:
        self.clocks: dict[str, KeptClock] = {}
        self.error: ConvectError | None = None

    async def keep_clock(self, clock: KeptClock) -> None:
        if self.error is not None:
            raise self.error
        self.clocks[clock.id] = clock

    async def forget_clock(self, schedule_id: str) -> None:
        if self.error is not None:
            raise self.error
        self.clocks.pop(schedule_id, None)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    told = Told()
    monkeypatch.setattr(LocalRuntime, "keep_clock", lambda _, clock: told.keep_clock(clock))
    monkeypatch.setattr(LocalRuntime, "forget_clock", lambda _, found: told.forget_clock(found))
    return told


@pytest.fixture
def request_(tmp_path: Path, write_notebook: Callable[..., Path]) -> Request:
    write_notebook(tmp_path / "a.ipynb", "print(1)")
    return Request("a.ipynb", str(tmp_path))


async def test_only_what_a_cluster_started_keeps_its_clock(tmp_path: Path):
    bench = Bench(tmp_path)
    schedule_id = bench.add(missed="none", kept_by="runtime")
    server = bench.keeper()
    await server.look()
    bench.time.pass_by(HOUR + 900)  # The pod takes its time to start.
    await server.look()
    assert bench.started.runs == []
    due = BEGIN + HOUR
    pod, other = (bench.keeper(only=schedule_id, since=due - 1) for _ in range(2))
    await pod.look()
    await other.look()
    assert bench.started.runs == [(schedule_id, due)]
    assert pod.live_runs()
    assert (other.is_keeping, other.live_runs()) == (False, [])
    (line,) = newest(bench.schedules.read(schedule_id), bench.time.wall, 9)
    assert line["outcome"] == "ran"
    await pod.close()


async def test_the_cluster_is_told_of_every_change(told: Told, request_: Request):
    workspace = Workspace(load_settings())
    scheduling = workspace.scheduling
    clock = Clock("30 2 * * *", "Asia/Shanghai")
    found = await scheduling.add(request_, clock, kept_by="runtime", missed="none")
    kept = told.clocks[found]
    assert (kept.cron, kept.zone, kept.paused, kept.deadline) == (
        *("30 2 * * *", "Asia/Shanghai", False, 0.0),
    )
    assert kept.paths == (str(workspace.store.folder), request_.root)
    assert scheduling.view(found)["kept_by"] == "runtime"
    await scheduling.edit(found, {"paused": True})
    assert told.clocks[found].paused
    await scheduling.edit(found, {"paused": False, "clock": replace(clock, cron="@hourly")})
    assert (told.clocks[found].cron, told.clocks[found].paused) == ("0 * * * *", False)
    await scheduling.edit(found, {"kept_by": "here"})
    assert told.clocks == {}
    await scheduling.edit(found, {"kept_by": "runtime"})
    ended = replace(clock, end=time.time() + 60)
    await scheduling.edit(found, {"clock": ended})
    assert told.clocks[found].paused
    await scheduling.remove(found)
    assert told.clocks == {}
    await workspace.close()


async def test_a_cluster_that_refuses_changes_nothing(told: Told, request_: Request):
    workspace = Workspace(load_settings())
    scheduling = workspace.scheduling
    told.error = Refused("The cluster cannot be reached: it is off.")
    daily = Clock("@daily")
    with pytest.raises(Refused, match="it is off"):
        await scheduling.add(request_, daily, kept_by="runtime")
    assert scheduling.all() == []
    told.error = None
    found = await scheduling.add(request_, daily, kept_by="runtime")
    told.error = Refused("The cluster cannot be reached: it is off.")
    for changes in ({"paused": True}, {"clock": Clock("@weekly")}):
        with pytest.raises(Refused, match="it is off"):
            await scheduling.edit(found, changes)
    view = scheduling.view(found)
    assert (view["paused"], view["clock"]["cron"]) == (None, "@daily")
    with pytest.raises(ConvectError, match="still keeps the clock"):
        await scheduling.remove(found)
    assert scheduling.all() == []
    await workspace.close()


async def test_what_clusters_cannot_keep_is_refused(told: Told, request_: Request):
    workspace = Workspace(load_settings())
    adding: list[tuple[Clock, dict[str, Any]]] = [
        (Clock(every=7.0), {}),
        (Clock(), {"trigger": Trigger(file=FileTrigger("*.csv"))}),
    ]
    for clock, more in adding:
        with pytest.raises(Refused) as refused:
            await workspace.scheduling.add(request_, clock, kept_by="runtime", **more)
        assert refused.value.code == "not-for-clusters"
    assert told.clocks == {}
    await workspace.close()


async def test_a_runtime_without_clocks_refuses(request_: Request):
    workspace = Workspace(load_settings())
    with pytest.raises(Refused, match="keeps no clocks"):
        await workspace.scheduling.add(request_, Clock("@daily"), kept_by="runtime")
    await workspace.close()


@pytest.mark.slow
async def test_what_the_cluster_starts_drives_one_run_to_its_end(told: Told, request_: Request):
    """Also when the cluster starts it twice, and a little early."""
    workspace = Workspace(load_settings())
    clock = Clock(every=3600.0, anchor=time.time() - 3600 + 2)
    found = await workspace.scheduling.add(request_, clock, kept_by="runtime")
    await asyncio.gather(*(keep_one(Workspace(load_settings()), found) for _ in range(2)))
    (line,) = workspace.scheduling.lines(found)
    assert (line["outcome"], line["state"]) == ("ran", "succeeded")
    await keep_one(Workspace(load_settings()), found)  # Nothing is due.
    assert len(workspace.scheduling.lines(found)) == 1
    await workspace.scheduling.remove(found)
    with pytest.raises(Missing):
        await keep_one(Workspace(load_settings()), found)
    await workspace.close()
