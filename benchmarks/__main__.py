"""Usage: python -m benchmarks [part ...]

Measures every part (or those named) against its peer, prints a table, and writes
`benchmarks/results/results.json`, `docs/performance.md` and its plot.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
import traceback

from . import report
from .measure import Result, absent

PARTS = (
    "notebooks",
    "training",
    "engine",
    "storage",
    "schedules",
    "documents",
    "weight",
    "browser",
    "cluster_page",
    "kubernetes",
    "kfp_runs",
)


def main(wanted: list[str]) -> int:
    unknown = set(wanted) - set(PARTS)
    if unknown:
        print(f"There is no part {', '.join(sorted(unknown))}; there is {', '.join(PARTS)}.")
        return 2
    # With it set, every start compiles what was not installed by pip, and only ours is not.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.monotonic()
    results: list[Result] = []
    for part in wanted or PARTS:
        for result in _rows(part):
            results.append(result)
            print(report.table([result]).splitlines()[1], file=sys.stderr, flush=True)
    print(report.table(results))
    if not wanted:
        report.write(results, time.monotonic() - began)
    return 1 if any(result.met is False for result in results) else 0


def _rows(part: str) -> list[Result]:
    """All rows of a part; what goes wrong is a row that says so."""
    found: list[Result] = []
    try:
        found.extend(importlib.import_module(f"benchmarks.{part}").rows())
    except Exception as error:
        traceback.print_exc()
        found.append(absent(part, f"{type(error).__name__}: {error}"))
    return found


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
