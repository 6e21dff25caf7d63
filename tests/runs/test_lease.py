from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from jupyterlab_convect.runner.processes import boot
from jupyterlab_convect.runs import lease as leases
from jupyterlab_convect.runs.lease import EXPIRES, LONG_AGO, Lease, owner_of, process_birth

ELSEWHERE = {"host": "elsewhere", "boot": "another", "processes": "pid:[1]"}


def write(folder, number=1, **fields):
    owner = {"host": leases.host_name(), "process": os.getpid()}
    owner |= {"born": process_birth(os.getpid()), "boot": boot()}
    owner |= {"processes": leases._process_namespace()}
    owner |= {"renewed": time.time(), "token": "other"} | fields
    (folder / f"lease-{number}.json").write_text(json.dumps(owner))


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """Our own, which only goes forward."""
    clock = Clock()
    monkeypatch.setattr(leases, "monotonic", clock)
    return clock


def test_only_one_can_have_it(tmp_path):
    lease = Lease.take(tmp_path)
    assert lease is not None
    assert lease.is_mine()
    assert Lease.take(tmp_path) is None
    assert owner_of(tmp_path).process == os.getpid()


def test_it_can_be_given_back_and_taken_again(tmp_path):
    lease = Lease.take(tmp_path)
    lease.give_back()
    assert owner_of(tmp_path) is None
    second = Lease.take(tmp_path)
    assert second.renew()
    assert not lease.renew()


def test_nothing_is_left_of_it_at_the_end(tmp_path):
    Lease.take(tmp_path).end()
    assert list(tmp_path.iterdir()) == []


def test_a_dead_process_has_no_lease(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    write(tmp_path, process=process.pid, born=process_birth(process.pid))
    assert Lease.take(tmp_path) is None
    process.kill()
    process.wait()
    assert Lease.take(tmp_path) is not None


def test_a_process_that_only_has_the_same_number_has_no_lease(tmp_path):
    write(tmp_path, born="0")
    assert Lease.take(tmp_path) is not None


def test_a_process_of_this_machine_need_not_hurry(tmp_path):
    write(tmp_path, renewed=time.time() - 10 * EXPIRES)
    assert Lease.take(tmp_path) is None


@pytest.mark.parametrize("minutes", [-50, -5, 0, 5, 50])
def test_clocks_that_differ_by_minutes_do_no_harm(tmp_path, clock, minutes):
    """Neither is a living owner robbed nor a dead one waited for longer than a right clock."""
    for _ in range(4):
        write(tmp_path, **ELSEWHERE, renewed=time.time() + 60 * minutes)
        assert Lease.take(tmp_path) is None
        clock.now += EXPIRES - 1
    assert Lease.take(tmp_path) is None
    clock.now += 1
    assert Lease.take(tmp_path) is not None


def test_what_was_renewed_long_ago_needs_no_watching(tmp_path, clock):
    write(tmp_path, **ELSEWHERE, renewed=time.time() - LONG_AGO - 1)
    assert Lease.take(tmp_path) is not None


@pytest.mark.parametrize("differs", ["boot", "processes"])
def test_a_machine_or_container_of_the_same_name_is_another_place(tmp_path, clock, differs):
    """Its process cannot be seen from here, which does not mean that it is dead."""
    write(tmp_path, process=2**22 + 1, born="1", **{differs: "another"})
    assert Lease.take(tmp_path) is None
    clock.now += EXPIRES
    assert Lease.take(tmp_path) is not None


def test_a_renewal_under_way_brings_nothing_back(tmp_path, monkeypatch):
    """The run ends while its lease is just being renewed in another thread."""
    lease = Lease.take(tmp_path)
    real, write_lease = threading.Event(), lease._write
    ending = threading.Thread(target=lease.end)

    def slow(owner):
        ending.start()
        real.set()
        write_lease(owner)

    monkeypatch.setattr(lease, "_write", slow)
    assert lease.renew()
    ending.join()
    assert not lease.renew()
    assert list(tmp_path.iterdir()) == []


def test_who_could_not_renew_in_time_looks_again_before_it_goes_on(tmp_path, clock):
    lease = Lease.take(tmp_path)
    write(tmp_path, number=2, **ELSEWHERE)
    assert lease.is_sure()  # As far as it can know: it was renewed a moment ago.
    clock.now += EXPIRES
    assert not lease.is_sure()


def test_a_lease_that_cannot_be_read_now_is_not_free(tmp_path, monkeypatch):
    write(tmp_path)

    def stale(path):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    monkeypatch.setattr(leases, "read_regular", stale)
    with pytest.raises(OSError, match="Stale"):
        Lease.take(tmp_path)


def test_a_damaged_lease_is_free(tmp_path):
    (tmp_path / "lease-1.json").write_text("{")
    assert Lease.take(tmp_path) is not None


def test_a_look_at_old_files_does_not_win(tmp_path, monkeypatch):
    """Somebody who saw a stale lease wakes up after another has taken over and moved on."""
    write(tmp_path, number=3, born="0")
    winner = Lease.take(tmp_path)
    monkeypatch.setattr("jupyterlab_convect.runs.lease._numbers", lambda _: [3])
    monkeypatch.setattr("jupyterlab_convect.runs.lease._holder", lambda *_: None)
    assert Lease.take(tmp_path) is None
    monkeypatch.undo()
    assert winner.is_mine()


def test_of_many_at_once_one_gets_it(tmp_path):
    for number in range(20):
        folder = tmp_path / str(number)
        folder.mkdir()
        write(folder, born="0")
        with ThreadPoolExecutor(8) as pool:
            leases = list(pool.map(lambda _, folder=folder: Lease.take(folder), range(8)))
        assert sum(lease is not None for lease in leases) == 1
