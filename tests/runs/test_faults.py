"""Disks that are full, folders that cannot be written, runtimes that misbehave."""

from __future__ import annotations

import asyncio
import errno
import os

import pytest

from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.runs.files import Journal


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
    engine, make_run, step, disk, runtime, store, caplog
):
    run = make_run(step("a", "sleep", "0.2"), step("b", after=["a"]))
    await engine.submit(run)
    disk.full = True
    await asyncio.sleep(0.4)
    state = store.read(run.id).state
    assert state.state == "running"
    assert state.reason == "It cannot go on: no space left on device. It is tried again."
    disk.full = False
    state = await engine.wait(run.id, 10)
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
    real, calls = runtime.poll, 0

    async def poll(attempts):
        nonlocal calls
        calls += 1
        if calls < 3:
            raise ConnectionError("not now")
        return await real(attempts)

    runtime.poll = poll
    assert (await finish(make_run(step("a", "sleep", "0.05")))).state == "succeeded"


async def test_a_stop_that_fails_is_tried_again(engine, make_run, step, runtime, monkeypatch):
    real, calls = runtime.stop, 0

    async def stop(attempt):
        nonlocal calls
        calls += 1
        if calls == 1:
            raise ConnectionError("not now")
        await real(attempt)

    runtime.stop = stop
    monkeypatch.setattr("jupyterlab_convect.runs.supervisor.AGAIN", 0.01)
    run = make_run(step("a", "sleep", "30"))
    await engine.submit(run)
    await asyncio.sleep(0.05)
    await engine.stop(run.id)
    assert (await engine.wait(run.id, 5)).state == "cancelled"


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

    monkeypatch.setattr("jupyterlab_convect.runs.lease._create", full)
    with pytest.raises(ConvectError, match="no space left"):
        await engine.submit(make_run(step("a")))
    assert list(store.folder.iterdir()) == []
    assert store.find().total == 0
