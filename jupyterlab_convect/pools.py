"""Threads for blocking work, a pool of its own for each end, so that none starves another."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Literal, TypeVar

T = TypeVar("T")

Pool = Literal["reading", "starting", "watching", "catalogs", "refreshing"]
"""What the threads of a pool are for: answers to requests, starting and stopping steps,
asking how steps are, answers about catalogs, and fetching components from far away."""

SIZES: dict[Pool, int] = {
    "reading": 8,
    "starting": 8,
    "watching": 4,
    "catalogs": 4,
    "refreshing": 8,
}


@functools.cache
def pool(name: Pool) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(SIZES[name], f"convect-{name}")


async def run_in(name: Pool, work: Callable[..., T], /, *arguments: Any, **keywords: Any) -> T:
    """Do blocking work in a thread of that pool."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(pool(name), functools.partial(work, *arguments, **keywords))


class LoopThread:
    """An event loop in a thread of its own: what blocks there holds up no other loop."""

    def __init__(self, name: str) -> None:
        self.is_closed = False
        self.loop = asyncio.new_event_loop()
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
