"""What may be thrown away."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from .index_tables import number_of

DAY = 86400.0
HOUR = 3600.0


def outlived(
    sizes: Mapping[str, int], now: float, keep_days: float, keep_runs: int, keep_bytes: int
) -> list[str]:
    """Which of the ended runs (oldest first, with their bytes) have to go; 0 is no limit."""
    left = len(sizes)
    total = sum(sizes.values())
    doomed = []
    for run_id, size in sizes.items():
        too_old = keep_days > 0 and created_of(run_id) < now - keep_days * DAY
        too_many = 0 < keep_runs < left
        too_much = 0 < keep_bytes < total
        if not (too_old or too_many or too_much):
            break
        doomed.append(run_id)
        left -= 1
        total -= size
    return doomed


def created_of(run_id: str) -> float:
    """When the run of this id was made."""
    return (number_of(run_id) >> 22) / 1000


def size_of(folder: Path) -> int:
    """The bytes of all files below a folder."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += Path(parent, name).lstat().st_size
            except OSError:
                continue
    return total


def stale_leftovers(folder: Path, is_empty_sweep: Callable[[str], bool]) -> Iterator[Path]:
    """What a killed process began to make or to delete, and sweeps without any run."""
    for pattern in (".new-*", ".old-*", "sweeps/*", "schedules/.new-*", "schedules/.old-*"):
        for path in folder.glob(pattern):
            if _age(path) > HOUR and (path.name.startswith(".") or is_empty_sweep(path.name)):
                yield path


def _age(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0
