"""The keeper with real folders, leases and runs, and clocks that the tests set."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from schedule_bench import BEGIN, HOUR, Bench
from waiting import eventually, until

from jupyterlab_convect import keep_process
from jupyterlab_convect.errors import Conflict, ConvectError, Refused
from jupyterlab_convect.runs.model import Request
from jupyterlab_convect.schedules.keeper import who_keeps
from jupyterlab_convect.schedules.ledger import newest
from jupyterlab_convect.schedules.schedule_store import Schedules
from jupyterlab_convect.schedules.times import Clock
from jupyterlab_convect.settings import load_settings
from jupyterlab_convect.workspace import Workspace


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    bench = Bench(tmp_path / "runs")
    yield bench
    bench.store.close()


async def test_what_is_due_is_started_once(bench: Bench):
    schedule_id = bench.add()
    keeper = bench.keeper()
    for _ in range(3 * 60):
        bench.time.pass_by(60)
        await keeper.look()
        bench.started.over |= bench.started.ids
    assert [(due - BEGIN) / HOUR for _, due in bench.started.runs] == [1, 2, 3]
    assert bench.outcomes(schedule_id) == [(1, "ran"), (2, "ran"), (3, "ran")]
    await keeper.close()


async def test_of_two_that_offer_one_keeps_the_clock_and_the_other_follows(bench: Bench):
    schedule_id = bench.add()
    first, second = bench.keeper(), bench.keeper(Schedules(bench.store))
    for hour in range(1, 5):
        bench.time.pass_by(HOUR)
        await asyncio.gather(first.look(), second.look())
        bench.started.over |= bench.started.ids
        assert first.is_keeping != second.is_keeping
        if hour == 2:
            keeping, other = (first, second) if first.is_keeping else (second, first)
            await keeping.close()
            await other.look()
            assert other.is_keeping
    assert [due for _, due in bench.started.runs] == [BEGIN + hour * HOUR for hour in range(1, 5)]
    assert [outcome for _, outcome in bench.outcomes(schedule_id)] == ["ran"] * 4
    await asyncio.gather(first.close(), second.close())


async def test_a_host_that_lost_the_lease_without_knowing_starts_nothing_twice(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    """As a machine that slept wakes up, while another has taken over."""
    schedule_id = bench.add()
    first, second = bench.keeper(), bench.keeper(Schedules(bench.store))
    await first.look()
    monkeypatch.setattr("jupyterlab_convect.runs.lease._holder", lambda folder, number: None)
    bench.time.pass_by(HOUR)
    await second.look()
    assert len(bench.started.runs) == 1
    for lease in (first._lease, second._lease):
        assert lease is not None
        monkeypatch.setattr(lease, "is_sure", lambda: True)
    await first.look()
    assert len(bench.started.runs) == 1
    assert bench.outcomes(schedule_id) == [(1, "ran")]


@pytest.mark.parametrize("when", ["before the ledger", "before the run", "after the run"])
async def test_whenever_the_keeper_is_killed_the_due_time_runs_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, when: str
):
    schedule_id = bench.add()
    keeper = bench.keeper()
    await keeper.look()
    bench.time.pass_by(HOUR)

    class Killed(BaseException):
        pass

    def kill(*_: Any) -> None:
        raise Killed

    write = bench.schedules.write

    def write_but(schedule_id: str, *events: Any) -> None:
        if when == "before the ledger" or events[0]["type"] == "submitted":
            raise Killed
        write(schedule_id, *events)

    def shown() -> list[Any]:
        return [line["run"] for line in newest(Schedules(bench.store).read(schedule_id), now, 9)]

    now = bench.time.wall
    with monkeypatch.context() as patched:
        if when == "before the run":
            patched.setattr(bench.started, "start", kill)
        else:
            patched.setattr(bench.schedules, "write", write_but)
        with pytest.raises(Killed):
            await keeper.look()
    assert shown() in ([], [None])  # No run is shown that may not be there.
    assert keeper._lease is not None
    keeper._lease.give_back()
    bench.time.pass_by(20)
    after = bench.keeper(Schedules(bench.store))
    await after.look()
    assert len(bench.started.runs) == 1
    assert bench.outcomes(schedule_id) == [(1, "ran")]
    await after.close()


async def test_a_machine_that_slept_says_so_in_the_ledger(bench: Bench):
    schedule_id = bench.add(missed="none")
    keeper = bench.keeper()
    await keeper.look()
    bench.time.wall += 5 * HOUR + 600  # The other clock stands still meanwhile.
    await keeper.look()
    assert [outcome for _, outcome in bench.outcomes(schedule_id)] == ["missed"] * 5
    gone = bench.schedules.read(schedule_id).ranges[0].gone
    assert gone == (BEGIN, BEGIN + 5 * HOUR + 600)
    await keeper.close()


async def test_what_cannot_be_started_says_why_and_the_next_is_tried(bench: Bench):
    schedule_id = bench.add()
    keeper = bench.keeper()
    await keeper.look()
    bench.started.error = Refused("There is no file a.ipynb.")
    bench.time.pass_by(HOUR)
    await keeper.look()
    line = bench.schedules.read(schedule_id).lines[BEGIN + HOUR]
    assert (line.outcome, line.reason) == ("refused", "There is no file a.ipynb.")
    bench.started.error = None
    bench.time.pass_by(HOUR)
    await keeper.look()
    assert bench.outcomes(schedule_id) == [(1, "refused"), (2, "ran")]
    await keeper.close()


async def test_a_full_disk_only_puts_it_off(bench: Bench):
    schedule_id = bench.add()
    keeper = bench.keeper()
    await keeper.look()
    bench.started.error = ConvectError("There is no room.", code="unwritable")
    bench.time.pass_by(HOUR)
    await keeper.look()
    bench.started.error = None
    bench.time.pass_by(5)
    await keeper.look()
    assert len(bench.started.runs) == 1
    assert bench.outcomes(schedule_id) == [(1, "ran")]
    await keeper.close()


async def test_edits_pauses_and_removals_are_heeded_while_it_keeps(bench: Bench):
    schedule_id, other = bench.add(), bench.add()
    keeper = bench.keeper()
    await keeper.look()
    bench.schedules.pause(schedule_id)
    bench.schedules.remove(other)
    bench.time.pass_by(HOUR)
    await keeper.look()
    assert bench.started.runs == []
    await keeper.close()


async def test_claims_are_kept_for_a_day_and_not_for_ever(bench: Bench):
    schedule_id = bench.add()
    keeper = bench.keeper()
    await keeper.look()
    bench.time.pass_by(HOUR)
    await keeper.look()
    claims = bench.schedules.folder / schedule_id / "claims"
    [claim] = claims.iterdir()
    bench.schedules.forget_claims(schedule_id)
    assert claim.exists()
    os.utime(claim, (0, 0))
    bench.time.pass_by(2 * HOUR)
    await keeper.look()
    assert not claim.exists()
    await keeper.close()


@pytest.mark.parametrize("damage", ["schedule.json", "ledger.ndjson", "changes/1.ndjson"])
async def test_a_damaged_schedule_spoils_no_other(bench: Bench, damage: str):
    broken, good = bench.add(), bench.add()
    path = bench.schedules.folder / broken / damage
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b'{"type": "edit", "schedule": 3, "time": "x"}\n[]\n\xff\n{"half')
    keeper = bench.keeper()
    await keeper.look()
    bench.time.pass_by(HOUR)
    await keeper.look()
    assert (good, BEGIN + HOUR) in bench.started.runs
    await keeper.close()


@pytest.mark.slow
async def test_schedules_cost_nothing_until_they_are_due(bench: Bench):
    for _ in range(200):
        bench.add()
    keeper = bench.keeper()
    await keeper.look()
    reads = 0
    read = bench.schedules.read

    def counted(*arguments: Any, **keywords: Any) -> Any:
        nonlocal reads
        reads += 1
        return read(*arguments, **keywords)

    bench.schedules.read = counted  # type: ignore[method-assign]
    for _ in range(30):
        bench.time.pass_by(1)
        await keeper.look()
    assert reads == 0
    bench.time.pass_by(HOUR)
    await keeper.look()
    assert len(bench.started.runs) == 200
    await keeper.close()


async def test_a_schedule_runs_a_notebook_and_shows_it(
    tmp_path: Path, write_notebook: Callable[..., Path]
):
    write_notebook(tmp_path / "a.ipynb", ("parameters", "day = ''"), ("outputs", "seen = day"))
    workspace = Workspace(load_settings())
    scheduling = workspace.scheduling
    keeper = scheduling.keeper("process")
    request = Request("a.ipynb", str(tmp_path), parameters={"day": "${{ schedule.date }}"})
    schedule_id = await scheduling.add(request, Clock(every=1.0), pinned=True)
    (tmp_path / "a.ipynb").write_text("no notebook any more")

    async def look() -> Any:
        await keeper.look()
        done = [each for each in scheduling.lines(schedule_id) if each["state"] == "succeeded"]
        return done[-1] if done else None

    line = await eventually(look, "a run of the schedule succeeded")
    run, state = workspace.store.read(line["run"])
    assert state.steps["a"].outputs["seen"] == time.strftime("%Y-%m-%d", time.gmtime(line["due"]))
    assert run.request.labels == {"schedule": "a"}
    view = scheduling.view(schedule_id)
    assert (view["pinned"], view["changed"]) == (True, ["a.ipynb"])
    (change,) = scheduling.changes(schedule_id)
    assert change == ("a.ipynb", "day = ''\n\nseen = day", "no notebook any more")
    assert (who_keeps(scheduling.schedules) or {})["kind"] == "process"
    await scheduling.edit(schedule_id, {"paused": True})
    await workspace.close()


async def test_a_line_says_why_its_run_failed(tmp_path: Path, write_notebook: Callable[..., Path]):
    write_notebook(tmp_path / "a.ipynb", "1 / 0")
    workspace = Workspace(load_settings())
    scheduling = workspace.scheduling
    keeper = scheduling.keeper("process")
    schedule_id = await scheduling.add(Request("a.ipynb", str(tmp_path)), Clock(every=1.0))

    async def look() -> Any:
        await keeper.look()
        found = scheduling.lines(schedule_id)
        return next((each for each in found if each["state"] == "failed"), None)

    line = await eventually(look, "a run of the schedule failed")
    assert "ZeroDivisionError" in line["reason"]
    await scheduling.edit(schedule_id, {"paused": True})
    await workspace.close()


async def test_outputs_of_a_pinned_notebook_are_no_change(
    tmp_path: Path, write_notebook: Callable[..., Path]
):
    file = write_notebook(tmp_path / "a.ipynb", "print(1)")
    (tmp_path / "own.py").write_text("x = 1\n")
    workspace = Workspace(load_settings())
    scheduling = workspace.scheduling
    request = Request("a.ipynb", str(tmp_path))
    schedule_id = await scheduling.add(request, Clock(cron="@daily"), pinned=True)
    executed = json.loads(file.read_text())
    executed["cells"][0]["execution_count"] = 7
    file.write_text(json.dumps(executed))
    assert scheduling.view(schedule_id)["changed"] == []
    (tmp_path / "own.py").unlink()
    assert scheduling.changes(schedule_id) == [("own.py", "x = 1\n", None)]
    await scheduling.edit(schedule_id, {"pinned": True})
    assert scheduling.changes(schedule_id) == []
    await workspace.close()


async def test_a_schedule_of_what_cannot_run_is_refused(tmp_path: Path):
    workspace = Workspace(load_settings())
    with pytest.raises(ConvectError, match=r"a\.ipynb"):
        await workspace.scheduling.add(Request("a.ipynb", str(tmp_path)), Clock(cron="@daily"))
    assert workspace.scheduling.all() == []
    await workspace.close()


async def test_a_backfill_is_a_sweep_over_the_due_times_that_have_no_run(
    tmp_path: Path, write_notebook: Callable[..., Path]
):
    write_notebook(tmp_path / "a.ipynb", ("parameters", "day = ''"), ("outputs", "seen = day"))
    workspace = Workspace(load_settings())
    scheduling = workspace.scheduling
    request = Request("a.ipynb", str(tmp_path))
    schedule_id = await scheduling.add(request, Clock(cron="0 2 * * *"))
    begin = 1_780_000_000.0 // 86400 * 86400
    with pytest.raises(ConvectError, match="No parameter of the schedule depends"):
        await scheduling.backfill(schedule_id, begin, begin + 3 * 86400)
    first = await scheduling.backfill(
        schedule_id, begin, begin + 2 * 86400, parameter="day", backwards=True
    )
    view = await workspace.sweeps.wait(first)
    days = [time.strftime("%Y-%m-%d", time.gmtime(begin + day * 86400)) for day in range(3)]
    assert [point["parameters"] for point in view["points"]] == [
        {"day": days[1]},
        {"day": days[0]},
    ]
    assert view["state"] == "succeeded"
    second = await scheduling.backfill(schedule_id, begin, begin + 3 * 86400, parameter="day")
    view = await workspace.sweeps.wait(second)
    assert [point["parameters"] for point in view["points"]] == [{"day": days[2]}]
    now, more = time.time(), {"parameter": "day", "which": "all"}
    for since, end in ((begin, begin + 3 * 86400), (now, now + 3 * 86400)):
        with pytest.raises(ConvectError, match="No due time that has passed is left to run"):
            await scheduling.backfill(schedule_id, since, end, parameter="day")
    third = await scheduling.backfill(schedule_id, now - 86400, now + 9 * 86400, **more)
    assert len((await workspace.sweeps.wait(third))["points"]) == 1, "what is to come is not run"
    await workspace.close()


def test_a_process_of_its_own_keeps_the_clock_without_a_server(
    tmp_path: Path, write_notebook: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    write_notebook(tmp_path / "a.ipynb", "print(1)")
    settings = load_settings()
    schedule_id = asyncio.run(_add(settings, Request("a.ipynb", str(tmp_path))))
    workspace = Workspace(settings)
    scheduling = workspace.scheduling
    owner = keep_process.start(settings)
    try:
        with pytest.raises(Conflict, match=f"kept by process {owner.process}"):
            keep_process.start(settings)
        until(
            lambda: any(each["state"] == "succeeded" for each in scheduling.lines(schedule_id)),
            "a run of the schedule succeeded",
        )
        os.kill(owner.process, signal.SIGKILL)
        again = until(lambda: _restarted(settings), "another process keeps the clock")
        known = len(scheduling.lines(schedule_id))
        until(lambda: len(scheduling.lines(schedule_id)) > known + 1, "it goes on")
        dues = [line["due"] for line in scheduling.lines(schedule_id, 1000)]
        assert len(dues) == len(set(dues))
        assert again.process != owner.process
    finally:
        assert keep_process.stop(settings)
    assert keep_process.process_of(scheduling.schedules) is None
    workspace.store.close()


async def _add(settings: Any, request: Request) -> str:
    workspace = Workspace(settings)
    try:
        return await workspace.scheduling.add(request, Clock(every=2.0))
    finally:
        await workspace.close()


def _restarted(settings: Any) -> Any:
    try:
        return keep_process.start(settings)
    except Conflict:
        return None


def test_the_unit_of_systemd_is_one_that_it_can_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", '/home/100 %s/"quoted"')
    text = keep_process.unit_text()
    assert f'ExecStart="{sys.executable}" -m jupyterlab_convect.keep_process' in text
    assert 'Environment="CONVECT_RUNS_DIR=' in text
    assert 'JUPYTER_CONFIG_DIR=/home/100 %%s/\\"quoted\\""' in text
    if shutil.which("systemd-analyze") is None:
        pytest.skip("There is no systemd here that could read it.")
    unit = tmp_path / keep_process.UNIT
    unit.write_text(text)
    (tmp_path / "runtime").mkdir(mode=0o700)
    read = subprocess.run(
        ["systemd-analyze", "verify", "--user", str(unit)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path / "runtime")},
        capture_output=True,
        text=True,
        check=False,
    )
    # What it says of other units of this machine is not of interest.
    assert (read.returncode, keep_process.UNIT in read.stderr) == (0, False)
