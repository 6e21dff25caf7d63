"""The machine is shared out fairly, over processes, and the dead hold nothing."""

import multiprocessing
import os
import subprocess

import pytest

from jupyterlab_convect.runner.identity import identify
from jupyterlab_convect.runtimes.local.ledger import Capacity, Ledger, Need, Room, too_much

CAPACITY = Capacity(cpu=4, memory=8 * 2**30, gpus=("0", "1"))


@pytest.fixture
def me():
    return identify(os.getpid())


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path)


def test_what_fits_gets_room_and_the_rest_waits_with_a_reason(ledger, me):
    assert ledger.take("a", Need(cpu=3), CAPACITY, me) == Room()
    reason = ledger.take("b", Need(cpu=2), CAPACITY, me)
    assert reason == "Waiting for 2 CPUs: 3 of 4 are in use by others."
    assert ledger.take("c", Need(cpu=1, memory=6 * 2**30), CAPACITY, me) == Room()
    ledger.give_back("a")
    reason = ledger.take("b", Need(cpu=2, memory=3 * 2**30), CAPACITY, me)
    assert reason == "Waiting for 3 GiB of memory: 6 GiB of 8 GiB are in use by others."
    ledger.give_back("c")
    ledger.give_back("c")
    assert ledger.take("b", Need(cpu=2), CAPACITY, me) == Room()


def test_who_waits_is_told_who_has_the_room(ledger, me):
    def take(key, need, name):
        about = {"run": "r", "step": key, "name": name}
        return ledger.take(key, need, CAPACITY, me, about=about)

    for number, name in enumerate(("slow", "train", "slow")):
        assert take(str(number), Need(cpu=1, gpu=number % 2), name) == Room(("0",) * (number % 2))
    assert take("b", Need(cpu=2), "b") == "Waiting for 2 CPUs: 3 of 4 are in use by slow and train."
    assert take("c", Need(cpu=0, gpu=2), "c") == "Waiting for 2 GPUs: all are in use by train."


def test_small_parts_add_up_exactly(ledger, me):
    for number in range(40):
        assert ledger.take(str(number), Need(cpu=0.1), CAPACITY, me) == Room()
    assert isinstance(ledger.take("more", Need(cpu=0.1), CAPACITY, me), str)


def test_gpus_are_given_whole_or_in_parts(ledger, me):
    assert ledger.take("half", Need(cpu=0, gpu=0.5), CAPACITY, me) == Room(("0",))
    assert ledger.take("whole", Need(cpu=0, gpu=1), CAPACITY, me) == Room(("1",))
    assert ledger.take("other half", Need(cpu=0, gpu=0.5), CAPACITY, me) == Room(("0",))
    assert ledger.take("w", Need(cpu=0, gpu=1), CAPACITY, me) == (
        "Waiting for 1 GPU: all are in use by others."
    )
    assert ledger.take("none", Need(cpu=0), CAPACITY, me) == Room()


def test_who_has_room_keeps_it(ledger, me):
    first = ledger.take("a", Need(gpu=2), CAPACITY, me)
    assert ledger.take("a", Need(gpu=2), CAPACITY, me) == first == Room(("0", "1"))


def test_force(ledger, me):
    ledger.take("a", Need(cpu=4), CAPACITY, me)
    assert ledger.take("b", Need(cpu=4), CAPACITY, me, force=True) == Room()
    assert isinstance(ledger.take("c", Need(cpu=1), CAPACITY, me), str)


def test_the_dead_hold_nothing(ledger, me):
    process = subprocess.Popen(["sleep", "600"])
    ledger.take("a", Need(cpu=4), CAPACITY, me)
    ledger.hand_over("a", identify(process.pid))
    assert isinstance(ledger.take("b", Need(), CAPACITY, me), str)
    process.kill()
    process.wait()
    assert ledger.take("b", Need(), CAPACITY, me) == Room()
    assert set(ledger.used()) == {"b"}


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"a": 1}', b"\xff"])
def test_a_damaged_file_counts_as_empty(ledger, tmp_path, me, content):
    (tmp_path / "room.json").write_bytes(content)
    assert ledger.take("a", Need(), CAPACITY, me) == Room()


@pytest.mark.parametrize(
    ("need", "reason"),
    [
        (Need(cpu=64), "needs 64 CPUs; this machine has 4"),
        (Need(memory=2**40), "needs 1.02e+03 GiB of memory; this machine has 8 GiB"),
        (Need(gpu=3), "needs 3 GPUs; this machine has 2"),
        (Need(cpu=4, memory=8 * 2**30, gpu=2), None),
    ],
)
def test_what_can_never_fit(need, reason):
    assert too_much(need, CAPACITY) == reason


def _take_many(folder, name, results):
    ledger = Ledger(folder)
    holder = identify(os.getppid())
    taken = [ledger.take(f"{name}{n}", Need(cpu=1), CAPACITY, holder) for n in range(5)]
    results.put(sum(isinstance(room, Room) for room in taken))


def test_many_processes_never_take_too_much(tmp_path):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    workers = [context.Process(target=_take_many, args=(tmp_path, n, results)) for n in range(3)]
    for worker in workers:
        worker.start()
    total = sum(results.get(timeout=60) for _ in workers)
    for worker in workers:
        worker.join()
    assert total == 4
