"""Sweeps: one request, run at many points of a space of parameters.

A sweep is a folder `sweeps/<id>` in the runs folder: `sweep.json` says what was
asked, `events.ndjson` which points there are and which runs they got.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from ..pipeline.plan import Json
from .engine import Engine
from .model import Request, Run
from .store import Store

Mode = Literal["grid", "random", "list"]
Point = dict[str, Json]


def points_of(
    space: Mapping[str, Json], mode: Mode = "grid", samples: int | None = None, seed: int = 0
) -> list[Point]:
    """The points of a space; ConvectError when it makes no sense."""
    raise NotImplementedError


class Sweeps:
    """`make` resolves a request to a run; it is called in a thread."""

    def __init__(self, store: Store, engine: Engine, make: Callable[[Request], Run]) -> None:
        self.store = store
        self.engine = engine
        self.make = make

    async def create(
        self,
        request: Request,
        space: Mapping[str, Json],
        *,
        mode: Mode = "grid",
        samples: int | None = None,
        seed: int = 0,
        concurrency: int | None = None,
        select: str | None = None,
    ) -> str:
        """Start a sweep and return its id."""
        raise NotImplementedError

    def view(self, sweep_id: str) -> dict[str, Json]:
        """`SweepView`: the summary, `request`, `points` and `runs` (the last run of each point)."""
        raise NotImplementedError

    def all(self) -> list[dict[str, Json]]:
        """`SweepSummary` of each, the newest first."""
        raise NotImplementedError

    async def stop(self, sweep_id: str) -> None:
        raise NotImplementedError

    async def rerun(self, sweep_id: str) -> list[str]:
        """Run the points again whose last run ended without success; the new runs' ids."""
        raise NotImplementedError

    async def add_points(
        self,
        sweep_id: str,
        space: Mapping[str, Json],
        *,
        mode: Mode = "grid",
        samples: int | None = None,
        seed: int = 0,
    ) -> list[str]:
        """Add points, also to a finished sweep; the new runs' ids."""
        raise NotImplementedError

    async def resume(self) -> None:
        """Make the runs that a killed host did not come to. Call after `Engine.resume`."""
        raise NotImplementedError

    async def wait(self, sweep_id: str, timeout: float | None = None) -> dict[str, Json]:
        """The view when all runs have ended."""
        raise NotImplementedError
