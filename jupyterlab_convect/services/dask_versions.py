"""What a kernel and the workers of a Dask cluster have installed, compared in words.

Objects travel between them as they are in memory: where the versions differ, what fails is often
far from the cause.
"""

from __future__ import annotations

from collections.abc import Mapping

Versions = Mapping[str, str | None]
"""Version by package, and that of `python`; None is not installed."""

NEEDED = ("dask", "distributed", "msgpack", "cloudpickle")
"""Packages without which nothing travels."""
CARRIED = ("numpy", "pandas", "toolz", "lz4")
"""Packages whose objects travel, if both have them."""


def differences(kernel: Versions, cluster: Mapping[str, Mapping[str, Versions]]) -> list[str]:
    """A sentence for each difference that is likely to do harm.

    `cluster` has the versions of each of its processes by address, under `workers`, and those of
    its `scheduler`.
    """
    others = [("workers", each) for each in cluster.get("workers", {}).values()]
    others += [("scheduler", each) for each in cluster.get("scheduler", {}).values()]
    found: dict[str, None] = {}
    for where, theirs in others:
        if _series(kernel.get("python")) != _series(theirs.get("python")):
            found[_differs("Python", kernel.get("python"), theirs.get("python"), where)] = None
        for name in (*NEEDED, *CARRIED):
            mine, its = kernel.get(name), theirs.get(name)
            if mine == its:
                continue
            if mine and its:
                found[_differs(name, mine, its, where)] = None
            elif where == "workers" and mine:
                found[f"The kernel has {name} {mine}, and the workers lack it."] = None
            elif where == "workers" and name in NEEDED:
                found[f"The workers have {name} {its}, and the kernel lacks it."] = None
    return list(found)


def _differs(name: str, mine: str | None, its: str | None, where: str) -> str:
    if where == "workers":
        return f"The kernel has {name} {mine or '?'}, and the workers have {its or '?'}."
    return f"The kernel has {name} {mine or '?'}, and the scheduler has {its or '?'}."


def _series(version: str | None) -> str:
    """`3.11` of `3.11.7.final.0`: code of one series runs in another release of it."""
    return ".".join((version or "").split(".")[:2])
