"""Threads for blocking work, a pool of its own for each end, so that none starves another."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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


async def run_in(name: Pool, work: Callable[..., T], *arguments: Any, **keywords: Any) -> T:
    """Do blocking work in a thread of that pool."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(pool(name), functools.partial(work, *arguments, **keywords))
