"""The machine is shared out fairly, over processes, and the dead hold nothing."""

import multiprocessing
import os
import subprocess

import pytest
from waiting import PATIENCE

from jupyterlab_convect.runner.processes import identify
from jupyterlab_convect.runtimes.local.machine import (
    MachineCapacity,
    Requirements,
    Reservations,
    Room,
    too_much,
)

CAPACITY = MachineCapacity(cpu=4, memory=8 * 2**30, gpus=("0", "1"))


@pytest.fixture
def me():
    return identify(os.getpid())


@pytest.fixture
def reservations(tmp_path):
    return Reservations(tmp_path)


def test_what_fits_gets_room_and_the_rest_waits_with_a_reason(reservations, me):
    assert reservations.take("a", Requirements(cpu=3), CAPACITY, me) == Room()
    reason = reservations.take("b", Requirements(cpu=2), CAPACITY, me)
    assert reason == "Waiting for 2 CPUs: 3 of 4 are in use by others."
    assert reservations.take("c", Requirements(cpu=1, memory=6 * 2**30), CAPACITY, me) == Room()
    reservations.give_back("a")
    reason = reservations.take("b", Requirements(cpu=2, memory=3 * 2**30), CAPACITY, me)
    assert reason == "Waiting for 3 GiB of memory: 6 GiB of 8 GiB are in use by others."
    reservations.give_back("c")
    reservations.give_back("c")
    assert reservations.take("b", Requirements(cpu=2), CAPACITY, me) == Room()


def test_who_waits_is_told_who_has_the_room(reservations, me):
    def take(key, need, name):
        about = {"run": "r", "step": key, "name": name}
        return reservations.take(key, need, CAPACITY, me, about=about)

    for number, name in enumerate(("slow", "train", "slow")):
        assert take(str(number), Requirements(cpu=1, gpu=number % 2), name) == Room(
            ("0",) * (number % 2)
        )
    assert (
        take("b", Requirements(cpu=2), "b")
        == "Waiting for 2 CPUs: 3 of 4 are in use by “slow” and “train”."
    )
    assert (
        take("c", Requirements(cpu=0, gpu=2), "c")
        == "Waiting for 2 GPUs: all are in use by “train”."
    )


def test_small_parts_add_up_exactly(reservations, me):
    for number in range(40):
        assert reservations.take(str(number), Requirements(cpu=0.1), CAPACITY, me) == Room()
    assert isinstance(reservations.take("more", Requirements(cpu=0.1), CAPACITY, me), str)


def test_gpus_are_given_whole_or_in_parts(reservations, me):
    assert reservations.take("half", Requirements(cpu=0, gpu=0.5), CAPACITY, me) == Room(("0",))
    assert reservations.take("whole", Requirements(cpu=0, gpu=1), CAPACITY, me) == Room(("1",))
    assert reservations.take("other half", Requirements(cpu=0, gpu=0.5), CAPACITY, me) == Room(
        ("0",)
    )
    assert reservations.take("w", Requirements(cpu=0, gpu=1), CAPACITY, me) == (
        "Waiting for 1 GPU: all are in use by others."
    )
    assert reservations.take("none", Requirements(cpu=0), CAPACITY, me) == Room()


def test_who_has_room_keeps_it(reservations, me):
    first = reservations.take("a", Requirements(gpu=2), CAPACITY, me)
    assert reservations.take("a", Requirements(gpu=2), CAPACITY, me) == first == Room(("0", "1"))


def test_force(reservations, me):
    reservations.take("a", Requirements(cpu=4), CAPACITY, me)
    assert reservations.take("b", Requirements(cpu=4), CAPACITY, me, force=True) == Room()
    assert isinstance(reservations.take("c", Requirements(cpu=1), CAPACITY, me), str)


def test_the_dead_hold_nothing(reservations, me):
    process = subprocess.Popen(["sleep", "600"])
    reservations.take("a", Requirements(cpu=4), CAPACITY, me)
    reservations.hand_over("a", identify(process.pid))
    assert isinstance(reservations.take("b", Requirements(), CAPACITY, me), str)
    process.kill()
    process.wait()
    assert reservations.take("b", Requirements(), CAPACITY, me) == Room()
    assert set(reservations.used()) == {"b"}


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"a": 1}', b"\xff"])
def test_a_damaged_file_counts_as_empty(reservations, tmp_path, me, content):
    (tmp_path / "room.json").write_bytes(content)
    assert reservations.take("a", Requirements(), CAPACITY, me) == Room()


@pytest.mark.parametrize(
    ("need", "reason"),
    [
        (Requirements(cpu=64), "needs 64 CPUs; this machine has 4"),
        (Requirements(memory=2**40), "needs 1 TiB of memory; this machine has 8 GiB"),
        (Requirements(gpu=3), "needs 3 GPUs; this machine has 2"),
        (Requirements(cpu=4, memory=8 * 2**30, gpu=2), None),
    ],
)
def test_what_can_never_fit(need, reason):
    assert too_much(need, CAPACITY) == reason


def _take_many(folder, name, results):
    reservations = Reservations(folder)
    holder = identify(os.getppid())
    taken = [
        reservations.take(f"{name}{n}", Requirements(cpu=1), CAPACITY, holder) for n in range(5)
    ]
    results.put(sum(isinstance(room, Room) for room in taken))


def test_many_processes_never_take_too_much(tmp_path):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    workers = [context.Process(target=_take_many, args=(tmp_path, n, results)) for n in range(3)]
    for worker in workers:
        worker.start()
    total = sum(results.get(timeout=PATIENCE) for _ in workers)
    for worker in workers:
        worker.join()
    assert total == 4
