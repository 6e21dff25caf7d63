"""The order of nodes: what comes before what, and where it goes in circles."""

from __future__ import annotations

import contextlib
import heapq
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter

Edges = Mapping[str, Iterable[str]]
"""The nodes that each node comes after."""

MAX_CYCLES = 20


def order(edges: Edges) -> list[str]:
    """Every node behind those it comes after, by id where there is a choice; no cycles."""
    sorter = TopologicalSorter(edges)
    with contextlib.suppress(CycleError):  # What does not lie behind a cycle has its order.
        sorter.prepare()
    ready = list(sorter.get_ready())
    heapq.heapify(ready)
    ordered = []
    while ready:
        node = heapq.heappop(ready)
        ordered.append(node)
        sorter.done(node)
        for follower in sorter.get_ready():
            heapq.heappush(ready, follower)
    return ordered


def cycles(edges: Edges) -> list[list[str]]:
    """Cycles in the direction of the flow, up to `MAX_CYCLES` of them.

    Each is without the last link of those before it: when all of these are cut, none is left.
    """
    left = {node: sorted(set(before)) for node, before in sorted(edges.items())}
    found: list[list[str]] = []
    while len(found) < MAX_CYCLES and (cycle := _first_cycle(left)):
        found.append(cycle)
        left[cycle[0]].remove(cycle[-1])
    return found


def way(cycle: list[str]) -> str:
    """A cycle in words, cut where it would flood a sentence."""
    shown = cycle if len(cycle) <= 12 else [*cycle[:10], "…", cycle[-1]]
    return " → ".join((*shown, cycle[0]))


def _first_cycle(edges: Edges) -> list[str] | None:
    """Begins with its smallest id."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1][:-1]
        start = cycle.index(min(cycle))
        return cycle[start:] + cycle[:start]
    return None
