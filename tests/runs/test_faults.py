"""Disks that are full, folders that cannot be written, runtimes that misbehave."""

from __future__ import annotations

import errno
import json
import os
import shutil
import time

import pytest
from inprocess import failing_first

from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.pipeline.plan import Amount, Resources
from jupyterlab_convect.runner.processes import identify
from jupyterlab_convect.runs.json_files import Journal
from jupyterlab_convect.runs.lease import Lease
from jupyterlab_convect.runtimes.local.machine import (
    MachineCapacity,
    Requirements,
    Reservations,
    Room,
)


class FullDisk:
    """Makes journals fail as on a full disk, after a part has been written."""

    def __init__(self, monkeypatch):
        self.full = False
        real = Journal.append

        def append(journal, data):
            if self.full and journal.path.name == "events.ndjson":
                with journal.path.open("ab") as file:
                    file.write(data[: len(data) // 2])
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(journal, data)

        monkeypatch.setattr(Journal, "append", append)


@pytest.fixture
def disk(monkeypatch):
    return FullDisk(monkeypatch)


async def test_no_space_holds_a_run_up_and_loses_nothing(
    engine, make_run, step, disk, runtime, store, caplog, eventually
):
    run = make_run(step("a", "wait"), step("b", after=["a"]))
    await engine.submit(run)
    await eventually(lambda: store.read(run.id).state.state == "running")
    disk.full = True
    runtime.go_on.set()
    state = store.read(run.id).state
    await eventually(lambda: state.reason is not None)
    assert state.state == "running"
    assert state.reason == "It cannot continue: no space left on device. Trying again."
    disk.full = False
    state = await engine.wait(run.id, 60)
    assert (state.state, state.reason) == ("succeeded", None)
    assert [key[1] for key in runtime.started] == ["a", "b"]
    assert "no space left on device" in caplog.text
    assert "Traceback" not in caplog.text


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
async def test_a_read_only_folder_is_said_so(engine, make_run, step, store):
    store.folder.chmod(0o500)
    try:
        with pytest.raises(ConvectError, match="permission denied"):
            await engine.submit(make_run(step("a")))
    finally:
        store.folder.chmod(0o700)
    assert store.find().total == 0


async def test_no_folder_at_all_is_said_so(engine, make_run, step, store):
    store.folder.rmdir()
    store.folder.write_text("in the way")
    with pytest.raises(ConvectError, match="cannot be written"):
        await engine.submit(make_run(step("a")))


async def test_a_runtime_that_cannot_be_asked_is_asked_again(finish, make_run, step, runtime):
    runtime.poll = failing_first(2, runtime.poll)
    assert (await finish(make_run(step("a", "sleep", "0.05")))).state == "succeeded"


async def test_a_stop_that_fails_is_tried_again(
    engine, make_run, step, runtime, monkeypatch, eventually
):
    runtime.stop = failing_first(1, runtime.stop)
    monkeypatch.setattr("jupyterlab_convect.runs.active_attempt.AGAIN", 0.01)
    run = make_run(step("a", "sleep", "600"))
    await engine.submit(run)
    await eventually(lambda: runtime.started)
    await engine.stop(run.id)
    assert (await engine.wait(run.id, 60)).state == "cancelled"


async def test_a_listener_that_fails_disturbs_nobody(engine, finish, make_run, step):
    heard = []

    def bad(*_):
        raise RuntimeError("no")

    engine.on_change(bad)
    engine.on_change(lambda run_id, seq, state: heard.append(state))
    assert (await finish(make_run(step("a", "sleep", "0.1")))).state == "succeeded"
    assert heard


async def test_a_run_that_cannot_be_driven_is_not_left_behind(
    engine, make_run, step, store, monkeypatch
):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("jupyterlab_convect.runs.lease.create_whole", full)
    with pytest.raises(ConvectError, match="no space left"):
        await engine.submit(make_run(step("a")))
    assert list(store.folder.iterdir()) == []
    assert store.find().total == 0


@pytest.fixture
def often(monkeypatch):
    """Leases are renewed with every beat."""
    monkeypatch.setattr("jupyterlab_convect.runs.engine.RENEW", 0.0)


class Leases:
    """Renewals, as they are done and as they are made to fail."""

    def __init__(self, monkeypatch):
        self.broken = set()
        self.renewed = []
        real = Lease.renew

        def renew(lease):
            if lease._folder.name in self.broken:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self.renewed.append(lease._folder.name)
            return real(lease)

        monkeypatch.setattr(Lease, "renew", renew)


@pytest.fixture
def leases(monkeypatch):
    return Leases(monkeypatch)


async def test_one_lease_that_cannot_be_renewed_stops_neither_the_others_nor_the_beat(
    engine, make_run, step, store, leases, often, eventually
):
    bad, good = make_run(step("a", "sleep", "600")), make_run(step("a", "sleep", "600"))
    leases.broken.add(bad.id)
    for run in (bad, good):
        await engine.submit(run)
    await eventually(lambda: leases.renewed.count(good.id) > 2)
    (trouble,) = engine.health.troubles()
    assert (trouble.name, trouble.sentence) == ("Renewing leases", "No space is left on the disk.")
    for run in (bad, good):
        store.ask_stop(run.id)  # As another process does it.
        assert (await engine.wait(run.id, 60)).state == "cancelled"
    await eventually(lambda: not engine.health.troubles())


async def test_a_beat_that_fails_is_followed_by_another(
    engine, make_run, step, store, monkeypatch, eventually
):
    monkeypatch.setattr("jupyterlab_convect.background.FIRST", 0.01)
    real, calls = engine.admit_soon, 0

    def admit_soon():
        nonlocal calls
        calls += 1
        if calls in (3, 4):
            raise KeyError("sweep")
        real()

    engine.admit_soon = admit_soon
    run = make_run(step("a", "sleep", "600"))
    await engine.submit(run)
    await eventually(lambda: calls > 6)
    store.ask_stop(run.id)
    assert (await engine.wait(run.id, 60)).state == "cancelled"


async def test_a_held_run_keeps_its_lease(
    engine, make_run, step, runtime, disk, leases, often, store, eventually
):
    run = make_run(step("a", "wait"))
    other = make_run(step("a", "sleep", "600"))
    await engine.submit(other)
    await engine.submit(run)
    disk.full = True
    runtime.go_on.set()
    await eventually(lambda: run.id in engine._held)
    leases.renewed.clear()
    await eventually(lambda: leases.renewed.count(run.id) > 2)
    assert Lease.take(store.run_folder(run.id)) is None


async def test_a_held_run_that_somebody_else_has_taken_is_let_go(
    engine, make_run, step, disk, runtime, store, monkeypatch, eventually
):
    run = make_run(step("a", "wait"), step("b", after=["a"]))
    await engine.submit(run)
    disk.full = True
    runtime.go_on.set()
    await eventually(lambda: run.id in engine._held)
    (store.run_folder(run.id) / "lease-9.json").write_text(
        json.dumps(
            {"host": "elsewhere", "process": 1, "born": "1", "renewed": time.time(), "token": "x"}
        )
    )
    disk.full = False
    await eventually(lambda: run.id not in engine._held)
    assert run.id not in engine._drivers
    assert all(key[1] != "b" for key in runtime.started)


@pytest.mark.parametrize("bad", ["one", "two", "three"])
async def test_a_step_that_cannot_be_let_in_spoils_only_itself(
    engine, make_run, step, runtime, store, bad, eventually
):
    """Whichever of several it is, those before and after it in the queue start."""
    real, broken = runtime.admit, True

    def admit(attempt):
        if broken and attempt.step.id == bad:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        return real(attempt)

    runtime.admit = admit
    run = make_run(
        step("one"), step("two", resources=Resources(cpu=Amount("2"))), step("three"), step("four")
    )
    await engine.submit(run)
    steps = store.read(run.id).state.steps
    others = [one for name, one in steps.items() if name != bad]
    await eventually(lambda: all(one.state == "succeeded" for one in others))
    await eventually(lambda: steps[bad].state == "queued")
    assert steps[bad].reason == "It cannot start now: No such file or directory. Trying again."
    assert [trouble.name for trouble in engine.health.troubles()] == ["Starting steps that wait"]
    broken = False
    assert (await engine.wait(run.id, 60)).state == "succeeded"
    await eventually(lambda: not engine.health.troubles())


async def test_reservations_survive_whoever_cleans_the_temporary_folder(tmp_path):
    reservations, me = Reservations(tmp_path / "reservations"), identify(os.getpid())
    (tmp_path / "reservations").mkdir()
    for _ in range(2):
        assert reservations.take("key", Requirements(), MachineCapacity(4, 1e9), me) == Room()
        shutil.rmtree(tmp_path / "reservations")
