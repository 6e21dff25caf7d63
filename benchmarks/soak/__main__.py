"""Endurance: minutes of runs under faults, after which nothing may be lost or left behind.

Usage: python -m benchmarks.soak [PHASE ...] [--minutes 4] [--points 500] [--seed 1]

Each fault is a phase with its own promise; a phase that needs what this machine does
not have says so. It ends by itself, and fails if a promise was broken.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from . import cluster, disks, hosts, load
from .support import Broken, Skipped, leftovers

Phase = Callable[[Path], str]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=4, help="of kills at random (4)")
    parser.add_argument("--points", type=int, default=500, help="of the sweep (500)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("phases", nargs="*", metavar="PHASE", help="all, if none is named")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    phases: dict[str, tuple[str, Phase]] = {
        "kills": ("kills at random", lambda at: hosts.kills(at, chance, options.minutes * 60)),
        "editing": ("sources are edited while runs wait", hosts.editing),
        "sweep": (
            "a sweep whose hosts come, go and are killed",
            lambda at: hosts.sweep(at, chance, options.points),
        ),
        "skew": ("hosts with skewed clocks", hosts.skewed_clocks),
        "clock": ("a clock that jumps", hosts.clock_steps),
        "full": ("a full disk", disks.full_disk),
        "slow": ("a slow disk", disks.slow_disk),
        "blocked": ("a runs folder that blocks", disks.blocked),
        "lines": ("a talkative step", load.many_lines),
        "clients": ("200 clients at once", load.many_clients),
        "catalogs": ("slow catalogs", load.slow_catalogs),
        "credentials": ("credentials that expire", cluster.credentials),
        "flat": ("nothing grows", load.flat),
    }
    if unknown := set(options.phases) - set(phases):
        parser.error(f"no phase is called {min(unknown)}; there are {', '.join(phases)}")
    chosen = [phases[name] for name in options.phases or phases]
    verdicts = [try_phase(name, phase) for name, phase in chosen]
    counts = {word: verdicts.count(word) for word in ("ok", "skipped", "BROKEN")}
    print(f"{counts['ok']} passed, {counts['skipped']} skipped, {counts['BROKEN']} failed")
    return 1 if counts["BROKEN"] else 0


def try_phase(name: str, phase: Phase) -> str:
    with tempfile.TemporaryDirectory(prefix="convect-soak-") as scratch:
        project = Path(scratch, "project")
        (project / ".convect").mkdir(parents=True)  # The project begins here, and no higher.
        try:
            said = phase(project)
            leftovers(Path(scratch))
            verdict = "ok"
        except Skipped as reason:
            verdict, said = "skipped", str(reason)
        except Broken as reason:
            verdict, said = "BROKEN", str(reason)
    print(f"{verdict:8} {name}: {said}", flush=True)
    return verdict


if __name__ == "__main__":
    sys.exit(main())
