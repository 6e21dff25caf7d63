"""Asks a runtime how its attempts are: at once when it calls, else with every beat."""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractContextManager
from typing import Protocol

from ..background import Health
from ..runtimes.base import StepRuntime
from .driver import Driver
from .supervisor import Active

BREATH = 0.005
"""A poll that takes longer than this is followed by as long a pause."""


class Asker(Protocol):
    """What a watch needs of the engine."""

    beat: float
    health: Health

    def guarded(self, driver: Driver) -> AbstractContextManager[None]: ...
    def admit_soon(self) -> None: ...


class Watch:
    def __init__(self, engine: Asker, runtime: StepRuntime) -> None:
        self._engine = engine
        self._runtime = runtime
        self._actives: dict[tuple[str, str, int], Active] = {}
        self._call = asyncio.Event()
        self._checked = 0.0
        self._loop = asyncio.get_running_loop()

    def add(self, active: Active) -> None:
        self._actives[active.attempt.key] = active

    def remove(self, active: Active) -> None:
        self._actives.pop(active.attempt.key, None)

    def wake(self) -> None:
        self._call.set()

    def wake_from_anywhere(self) -> None:
        """What the runtime calls, from whatever thread."""
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is self._loop:
            self._call.set()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._call.set)

    async def look(self) -> None:
        """Wait for a call or a beat, and ask once."""
        beat = self._loop.call_later(self._engine.beat, self._call.set)
        await self._call.wait()
        beat.cancel()
        self._call.clear()
        self._engine.admit_soon()
        began = time.monotonic()
        self._check_times()
        with self._engine.health.guard(f"Asking {self._runtime.name} about its steps"):
            await self._poll()
        took = time.monotonic() - began
        await asyncio.sleep(took if took > BREATH else 0)

    def _check_times(self) -> None:
        """Once a beat, however often somebody calls."""
        if time.monotonic() < self._checked + self._engine.beat:
            return
        self._checked, now = time.monotonic(), time.time()
        for active in list(self._actives.values()):
            with self._engine.guarded(active.driver):
                active.driver.check_time(active, now)

    async def _poll(self) -> None:
        asked = [active.attempt for active in self._actives.values() if active.settled]
        if not asked:
            return
        for status in await self._runtime.poll(asked):
            if active := self._actives.get(status.key):
                with self._engine.guarded(active.driver):
                    active.driver.hear(active, status)
