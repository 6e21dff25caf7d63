"""Pools do not starve each other, and nothing that they wait for keeps a process from ending."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any

import pytest

from jupyterlab_convect.pools import SIZES, Threads, pool

PATIENCE = 120


def test_work_is_done_and_its_errors_are_told() -> None:
    with Threads(2, "test") as threads:
        assert list(threads.map(abs, range(-50, 0))) == list(range(50, 0, -1))
        with pytest.raises(ZeroDivisionError):
            threads.submit(divmod, 1, 0).result(PATIENCE)
    with pytest.raises(RuntimeError):
        threads.submit(abs, 1)


def test_there_are_never_more_threads_than_asked_for_and_no_fewer_than_needed() -> None:
    go_on, most, now = threading.Event(), 0, 0
    lock = threading.Lock()
    all_in = threading.Barrier(3)

    def work() -> None:
        nonlocal most, now
        with lock:
            now += 1
            most = max(most, now)
        if not go_on.is_set():
            all_in.wait(PATIENCE)
        with lock:
            now -= 1

    threads = Threads(3, "test")
    first = [threads.submit(work) for _ in range(3)]  # They wait for each other.
    for future in first:
        future.result(PATIENCE)
    go_on.set()
    for future in [threads.submit(work) for _ in range(50)]:
        future.result(PATIENCE)
    assert most == 3


def test_work_never_waits_for_a_thread_that_is_held_up_while_another_could_be_started(
    until: Callable[..., Any],
) -> None:
    threads, hold = Threads(3, "test"), threading.Event()
    for _ in range(200):  # Whoever takes the next work, the moment it is done with the last.
        threads.submit(abs, 1)
    held = threads.submit(hold.wait, PATIENCE)
    until(held.running)
    for _ in range(50):
        assert [threads.submit(abs, -n).result(PATIENCE) for n in (1, 2)] == [1, 2]
    hold.set()
    threads.shutdown()


def test_threads_end_when_the_pool_is_shut_down(until: Callable[..., Any]) -> None:
    threads = Threads(4, "shut-down")
    hold = threading.Event()
    running, waiting = [threads.submit(hold.wait, PATIENCE) for _ in range(4)], threads.submit(abs)
    until(lambda: all(future.running() for future in running))
    threads.shutdown(wait=False, cancel_futures=True)
    with pytest.raises(CancelledError):
        waiting.result(PATIENCE)
    hold.set()
    until(lambda: not any(t.name.startswith("shut-down") for t in threading.enumerate()))


def test_a_full_pool_holds_up_no_other() -> None:
    hold = threading.Event()
    for _ in range(3 * SIZES["refreshing"]):
        pool("refreshing").submit(hold.wait, PATIENCE)
    assert pool("reading").submit(abs, -1).result(PATIENCE) == 1
    hold.set()


def test_a_process_ends_whatever_its_pools_wait_for() -> None:
    code = """
import asyncio, threading
from jupyterlab_convect.pools import SIZES, LoopThread, pool
never = threading.Event()
begun = threading.Semaphore(0)
def wait():
    begun.release()
    never.wait()
for name, size in SIZES.items():
    for _ in range(2 * size):
        pool(name).submit(wait)
engine = LoopThread("engine")
engine.begin(asyncio.to_thread(wait))
for _ in range(sum(SIZES.values()) + 1):
    begun.acquire()
print("all wait")
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE
    )
    assert (ended.returncode, ended.stdout) == (0, "all wait\n"), ended.stderr
