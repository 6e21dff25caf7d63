"""What a kernel and the workers of a Dask cluster have installed, compared in words.

Objects travel between them as they are in memory: where the versions differ, what fails is often
far from the cause.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

Versions = Mapping[str, str | None]
"""Version by package, and that of `python`; None is not installed."""

NEEDED = ("dask", "distributed", "msgpack", "cloudpickle")
"""Packages without which nothing travels."""
VARIABLE = "CONVECT_DASK_VERSIONS"
"""Holds what is installed in the cluster that was made for a step, as JSON."""
CARRIED = ("numpy", "pandas", "toolz", "lz4")
"""Packages whose objects travel, if both have them."""


def differences(
    kernel: Versions,
    cluster: Mapping[str, Mapping[str, Versions]],
    who: Literal["kernel", "step"] = "kernel",
) -> list[str]:
    """A sentence for each difference that is likely to do harm, seen from a kernel or a step.

    `cluster` has the versions of each of its processes by address, under `workers`, and those of
    its `scheduler`.
    """
    others = [("workers", each) for each in cluster.get("workers", {}).values()]
    others += [("scheduler", each) for each in cluster.get("scheduler", {}).values()]
    found: dict[str, None] = {}
    for where, theirs in others:
        if _series(kernel.get("python")) != _series(theirs.get("python")):
            found[_differs(who, "Python", kernel.get("python"), theirs.get("python"), where)] = None
        for name in (*NEEDED, *CARRIED):
            mine, its = kernel.get(name), theirs.get(name)
            if mine == its:
                continue
            if mine and its:
                found[_differs(who, name, mine, its, where)] = None
            elif where == "workers" and mine:
                found[f"The {who} has {name} {mine}, and the workers lack it."] = None
            elif where == "workers" and name in NEEDED:
                found[f"The workers have {name} {its}, and the {who} lacks it."] = None
    return list(found)


def differences_of_step(environment: Mapping[str, Any], told: str) -> list[str]:
    """The same for a step whose environment is known, and a cluster as `VARIABLE` tells it."""
    try:
        cluster = json.loads(told)
        mine = {**environment["packages"], "python": environment["python"]}
        return differences(mine, cluster, "step") if cluster else []
    except (ValueError, KeyError, TypeError, AttributeError):
        return []


def _differs(who: str, name: str, mine: str | None, its: str | None, where: str) -> str:
    if where == "workers":
        return f"The {who} has {name} {mine or '?'}, and the workers have {its or '?'}."
    return f"The {who} has {name} {mine or '?'}, and the scheduler has {its or '?'}."


def _series(version: str | None) -> str:
    """`3.11` of `3.11.7.final.0`: code of one series runs in another release of it."""
    return ".".join((version or "").split(".")[:2])
