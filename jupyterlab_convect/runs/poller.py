"""Asks a runtime how its attempts are: at once when it calls, else with every beat."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from ..background import Health
from ..runtimes.base import StepRuntime
from .active_attempt import ActiveAttempt

BREATH = 0.005
"""A poll that takes longer than this is followed by as long a pause."""


class Poller:
    def __init__(
        self, runtime: StepRuntime, beat: float, health: Health, on_room: Callable[[], None]
    ) -> None:
        """`on_room` is called whenever steps that wait may find room."""
        self.runtime = runtime
        self._beat = beat
        self._health = health
        self._on_room = on_room
        self._attempts: dict[tuple[str, str, int], ActiveAttempt] = {}
        self._call = asyncio.Event()
        self._checked = 0.0
        self._loop = asyncio.get_running_loop()

    def add(self, active: ActiveAttempt) -> None:
        self._attempts[active.attempt.key] = active

    def remove(self, active: ActiveAttempt) -> None:
        self._attempts.pop(active.attempt.key, None)
        self._on_room()

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
        beat = self._loop.call_later(self._beat, self._call.set)
        await self._call.wait()
        beat.cancel()
        self._call.clear()
        self._on_room()
        began = time.monotonic()
        self._check_times()
        with self._health.guard(f"Asking {self.runtime.name} about its steps"):
            await self._poll()
        took = time.monotonic() - began
        await asyncio.sleep(took if took > BREATH else 0)

    def _check_times(self) -> None:
        """Once a beat, however often somebody calls."""
        if time.monotonic() < self._checked + self._beat:
            return
        self._checked, now = time.monotonic(), time.time()
        for active in list(self._attempts.values()):
            active.check_time(now)

    async def _poll(self) -> None:
        asked = [active.attempt for active in self._attempts.values() if active.is_settled]
        if not asked:
            return
        for status in await self.runtime.poll(asked):
            if active := self._attempts.get(status.key):
                active.hear(status)
