"""Wait for what has to come true, and say what did not: the one way in which tests wait."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any

PATIENCE = 300.0
"""Seconds until a test gives up on something that takes a second or two on a machine at rest."""


def until(holds: Callable[[], Any], what: str = "it", seconds: float = PATIENCE) -> Any:
    """What `holds` gives, once it gives something; for tests without an event loop."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, f"{what} never came true"
        time.sleep(0.02)
    return found


async def eventually(holds: Callable[[], Any], what: str = "it", seconds: float = PATIENCE) -> Any:
    """The same on an event loop; what holds may have to be awaited."""
    deadline = time.monotonic() + seconds
    while True:
        found = holds()
        if inspect.isawaitable(found):
            found = await found
        if found:
            return found
        assert time.monotonic() < deadline, f"{what} never came true"
        await asyncio.sleep(0.02)
