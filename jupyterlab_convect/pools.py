"""Threads for blocking work, a pool of its own for each end, so that none starves another.

None of them keeps the process from ending: a disk or a web site that never answers does not.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Literal, TypeVar

T = TypeVar("T")

Pool = Literal["reading", "starting", "watching", "catalogs", "refreshing", "dask"]
"""What the threads of a pool are for: answers to requests, starting and stopping steps,
asking how steps are, answers about catalogs, fetching components from far away, and asking a
Dask gateway."""

SIZES: dict[Pool, int] = {
    "reading": 8,
    "starting": 8,
    "watching": 4,
    "catalogs": 4,
    "refreshing": 8,
    "dask": 8,
}


class Threads(ThreadPoolExecutor):
    """A pool of at most `size` threads that nobody waits for when the process ends.

    Those of the standard library are joined then, however long that takes.
    """

    def __init__(self, size: int, name: str) -> None:
        super().__init__(size, name)
        self._size = size
        self._name = name
        self._changed = threading.Condition()
        self._begun = 0
        self._idle = 0
        """Threads that wait for work, or are about to look for it."""
        self._todo: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._unfinished: set[Future[Any]] = set()
        self._is_shut = False

    def submit(self, work: Callable[..., T], /, *arguments: Any, **keywords: Any) -> Future[T]:
        future: Future[T] = Future()
        future.add_done_callback(self._finished)
        with self._changed:
            if self._is_shut:
                raise RuntimeError("The pool is shut down.")
            self._unfinished.add(future)
            self._todo.append((future, functools.partial(work, *arguments, **keywords)))
            if len(self._todo) <= self._idle:
                self._changed.notify()
            elif self._begun < self._size:
                self._begun += 1
                self._idle += 1
                name = f"{self._name}_{self._begun}"
                threading.Thread(target=self._serve, name=name, daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._changed:
            self._is_shut = True
            unfinished = list(self._unfinished)
            self._changed.notify_all()
        if cancel_futures:
            for future in unfinished:
                future.cancel()
        if wait:
            concurrent.futures.wait(unfinished)

    def _finished(self, future: Future[Any]) -> None:
        with self._changed:
            self._unfinished.discard(future)

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._todo or self._is_shut)
                if not self._todo:
                    return
                self._idle -= 1
                future, work = self._todo.popleft()
            if future.set_running_or_notify_cancel():
                try:
                    result = work()
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(result)
                    del result
            del future, work  # Nothing is kept alive while there is nothing to do.
            with self._changed:
                self._idle += 1


@functools.cache
def pool(name: Pool) -> Threads:
    return Threads(SIZES[name], f"convect-{name}")


async def run_in(name: Pool, work: Callable[..., T], /, *arguments: Any, **keywords: Any) -> T:
    """Do blocking work in a thread of that pool."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(pool(name), functools.partial(work, *arguments, **keywords))


class LoopThread:
    """An event loop in a thread of its own: what blocks there holds up no other loop."""

    def __init__(self, name: str) -> None:
        self.is_closed = False
        self.loop = asyncio.new_event_loop()
        self.loop.set_default_executor(Threads(min(32, (os.cpu_count() or 1) + 4), f"{name}-aside"))
        self._thread = threading.Thread(target=self.loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Have work done there; what it comes to is in the future, which can be cancelled."""
        if self.is_closed:
            work.close()
            raise RuntimeError("The event loop is closed.")
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for work that is done there, on another event loop."""
        return await asyncio.wrap_future(self.begin(work))

    def wait(self, work: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Wait for work that is done there, in a thread that has nothing else to do."""
        future = self.begin(work)
        try:
            return future.result(timeout)
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Nothing is done there from now on."""
        self.is_closed = True
        self.loop.call_soon_threadsafe(self.loop.stop)
