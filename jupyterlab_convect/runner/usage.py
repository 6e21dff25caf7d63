"""What a step uses of the machine while it runs: processors, memory, GPUs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from .kernels import create_process

INTERVAL = 2.0
"""Seconds between two samples, at first."""
SAMPLES = 200
"""After so many the interval doubles, so that a step of days leaves no more than a few thousand."""
PATIENCE = 5.0
"""Seconds that the driver of GPUs has for its answer."""

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_QUERY = "--query-gpu=index,uuid,utilization.gpu,memory.used"

Gpu = tuple[float, float]
"""Its load in percent, and the bytes in use on it."""


class Meter:
    """What processes use with all their descendants, from one look to the next."""

    def __init__(self) -> None:
        self.read_at: float | None = None
        self._seconds = 0.0

    def read(self, roots: Iterable[int]) -> dict[str, float] | None:
        """`cpu` in cores since the last look, `memory` in bytes; None when there is none yet."""
        seconds, memory = used_by(tree(roots))
        now, before = time.monotonic(), self.read_at
        new, self.read_at, self._seconds = seconds - self._seconds, now, seconds
        if before is None or not memory:
            return None
        return {"cpu": round(max(0.0, new) / (now - before), 3), "memory": memory}


class Usage:
    """Samples processes with all their descendants, ever more seldom. Knows nothing but Linux."""

    def __init__(self) -> None:
        self.gpus: dict[str, Gpu] = {}
        """In the last sample, by their numbers and by their ids."""
        self._interval = INTERVAL
        self._left = SAMPLES
        self._meter = Meter()
        self._gpus = shutil.which("nvidia-smi") if os.environ.get("CUDA_VISIBLE_DEVICES") else None

    def is_due(self) -> bool:
        last = self._meter.read_at
        return last is None or time.monotonic() - last >= self._interval

    async def sample(self, roots: Iterable[int]) -> dict[str, float] | None:
        """As the meter reads, and what is used of GPUs; None when there is none yet."""
        used = self._meter.read(roots)
        if used is None:
            return None
        self._left -= 1
        if not self._left:
            self._interval, self._left = self._interval * 2, SAMPLES
        return {**used, **await self._of_gpus()}

    async def _of_gpus(self) -> dict[str, float]:
        """The mean load of the step's GPUs in percent, and the bytes in use on them."""
        if self._gpus is None:
            return {}
        devices = f"--id={os.environ['CUDA_VISIBLE_DEVICES']}"
        words = (self._gpus, _QUERY, "--format=csv,noheader,nounits", devices)
        try:
            process = await create_process(
                *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
            )
            answer, _ = await asyncio.wait_for(process.communicate(), PATIENCE)
            rows = [row.split(",") for row in answer.decode().splitlines()]
            found = [(float(load), float(used) * 2**20) for _, _, load, used in rows]
            for (number, name, *_), gpu in zip(rows, found, strict=True):
                self.gpus[number.strip()] = self.gpus[name.strip()] = gpu
            load = sum(load for load, _ in found) / len(found)
            return {"gpu": round(load, 1), "gpu_memory": sum(used for _, used in found)}
        except (OSError, ValueError, ZeroDivisionError, asyncio.TimeoutError):
            self._gpus = None
            self.gpus.clear()
            return {}


def tree(roots: Iterable[int]) -> set[int]:
    """Processes and all their descendants."""
    found: set[int] = set()
    left = list(roots)
    while left:
        pid = left.pop()
        if pid not in found:
            found.add(pid)
            left += _children(pid)
    return found


def used_by(pids: Iterable[int]) -> tuple[float, int]:
    """Seconds of processors, those of children that have ended included, and bytes of memory."""
    seconds, memory = 0.0, 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The name of the program, in brackets, may hold anything.
            fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
            seconds += sum(map(int, fields[11:15])) / _TICKS
            memory += int(fields[21]) * _PAGE
    return seconds, memory


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        for thread in (_PROC / str(pid) / "task").iterdir():
            found += map(int, (thread / "children").read_bytes().split())
    return found
