from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from jupyterlab_convect.runs.lease import EXPIRES, Lease, host_name, owner_of, process_birth


def write(folder, number=1, **fields):
    owner = {"host": host_name(), "process": os.getpid(), "born": process_birth(os.getpid())}
    owner |= {"renewed": time.time(), "token": "other"} | fields
    (folder / f"lease-{number}.json").write_text(json.dumps(owner))


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


def test_another_machine_has_to_renew(tmp_path):
    write(tmp_path, host="elsewhere", renewed=time.time())
    assert Lease.take(tmp_path) is None
    write(tmp_path, host="elsewhere", renewed=time.time() - EXPIRES - 1)
    assert Lease.take(tmp_path) is not None


def test_a_damaged_lease_is_free(tmp_path):
    (tmp_path / "lease-1.json").write_text("{")
    assert Lease.take(tmp_path) is not None


def test_a_look_at_old_files_does_not_win(tmp_path, monkeypatch):
    """Somebody who saw a stale lease wakes up after another has taken over and moved on."""
    write(tmp_path, number=3, born="0")
    winner = Lease.take(tmp_path)
    monkeypatch.setattr("jupyterlab_convect.runs.lease._numbers", lambda _: [3])
    monkeypatch.setattr("jupyterlab_convect.runs.lease.is_held", lambda _: False)
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
