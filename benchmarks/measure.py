"""What a row of the table is, and how it is measured: interleaved, repeated, side by side."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Result:
    """One row. `value` is what the budget speaks of, usually a ratio of medians."""

    name: str
    value: float | None
    unit: str = "×"
    budget: float | None = None
    against: str = "–"
    ours: list[float] = field(default_factory=list)
    peer: list[float] = field(default_factory=list)
    note: str = ""

    @property
    def met(self) -> bool | None:
        if self.value is None or self.budget is None:
            return None
        return self.value <= self.budget


def absent(name: str, why: str, *, against: str = "–") -> Result:
    """A row that could not be filled here, with the reason."""
    return Result(name, None, against=against, note=why)


def seconds(action: Callable[[], object]) -> float:
    """How long it takes, unless it knows better and returns that."""
    start = time.perf_counter()
    known = action()
    return known if isinstance(known, float) else time.perf_counter() - start


def versus(
    name: str,
    ours: Callable[[], object],
    peer: Callable[[], object],
    *,
    budget: float | None,
    against: str,
    repeat: int = 5,
    peer_repeat: int | None = None,
    note: str = "",
) -> Result:
    """The ratio of medians, ours to the peer's, with turns taken one after the other."""
    turns = peer_repeat or repeat
    mine: list[float] = []
    theirs: list[float] = []
    for turn in range(max(repeat, turns)):
        if turn < repeat:
            mine.append(seconds(ours))
        if turn < turns:
            theirs.append(seconds(peer))
    ratio = statistics.median(mine) / statistics.median(theirs)
    return Result(name, ratio, budget=budget, against=against, ours=mine, peer=theirs, note=note)


def median(values: list[float]) -> float:
    return statistics.median(values)


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def spread(values: list[float]) -> str:
    if not values:
        return "–"
    return f"{median(values):.3g} ({min(values):.3g}–{max(values):.3g}, n={len(values)})"
