"""The order of nodes: what comes before what, and where it goes in circles."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Mapping

Edges = Mapping[str, Iterable[str]]
"""The nodes that each node comes after."""

MAX_CYCLES = 20
_MAX_STEPS = 20_000


def order(edges: Edges) -> list[str]:
    """Every node behind those it comes after, by id where there is a choice; no cycles."""
    open_edges = {node: set(before) for node, before in edges.items()}
    followers = _reverse(edges)
    ready = [node for node, before in open_edges.items() if not before]
    heapq.heapify(ready)
    ordered = []
    while ready:
        node = heapq.heappop(ready)
        ordered.append(node)
        for follower in followers[node]:
            open_edges[follower].discard(node)
            if not open_edges[follower]:
                heapq.heappush(ready, follower)
    return ordered


def cycles(edges: Edges) -> list[list[str]]:
    """Every cycle, in the direction of the flow, up to `MAX_CYCLES` of them.

    A tangle can hold more cycles than anybody can count; each tangle shows at least one.
    """
    found: list[list[str]] = []
    for tangle in _tangles(_reverse(edges)):
        simple = _simple_cycles(tangle, MAX_CYCLES - len(found))
        found += simple or [_shortest_cycle(tangle)]
        if len(found) >= MAX_CYCLES:
            break
    return found


def way(cycle: list[str]) -> str:
    """A cycle in words, cut where it would flood a sentence."""
    shown = cycle if len(cycle) <= 12 else [*cycle[:10], "…", cycle[-1]]
    return " → ".join((*shown, cycle[0]))


def _reverse(edges: Edges) -> dict[str, list[str]]:
    followers: dict[str, list[str]] = {node: [] for node in edges}
    for node, before in edges.items():
        for other in set(before):
            followers[other].append(node)
    return {node: sorted(after) for node, after in followers.items()}


def _tangles(followers: dict[str, list[str]]) -> list[dict[str, list[str]]]:
    """The strongly connected parts that hold a cycle (Tarjan's algorithm, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found = []
    for root in sorted(followers):
        if root in index:
            continue
        work = [(root, iter(followers[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, remaining = work[-1]
            for follower in remaining:
                if follower not in index:
                    index[follower] = low[follower] = len(index)
                    stack.append(follower)
                    on_stack.add(follower)
                    work.append((follower, iter(followers[follower])))
                    break
                if follower in on_stack:
                    low[node] = min(low[node], index[follower])
            else:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == index[node]:
                    part: set[str] = set()
                    while node not in part:
                        part.add(stack.pop())
                    on_stack -= part
                    if len(part) > 1 or node in followers[node]:
                        found.append(
                            {n: [f for f in followers[n] if f in part] for n in sorted(part)}
                        )
    return found


def _simple_cycles(tangle: dict[str, list[str]], limit: int) -> list[list[str]]:
    """Cycles without repetition, each once, from its smallest node, within a budget of steps."""
    found: list[list[str]] = []
    steps = 0
    for start in tangle:
        path = {start: None}
        work = [iter(tangle[start])]
        while work and steps < _MAX_STEPS and len(found) < limit:
            steps += 1
            follower = next(work[-1], None)
            if follower is None:
                work.pop()
                path.popitem()
            elif follower == start:
                found.append(list(path))
            elif follower > start and follower not in path:
                path[follower] = None
                work.append(iter(tangle[follower]))
    return found


def _shortest_cycle(tangle: dict[str, list[str]]) -> list[str]:
    """The shortest way from the first node back to itself."""
    start = next(iter(tangle))
    came_from: dict[str, str] = {}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for follower in tangle[node]:
            if follower == start:
                path = [node]
                while path[-1] != start:
                    path.append(came_from[path[-1]])
                return path[::-1]
            if follower not in came_from:
                came_from[follower] = node
                queue.append(follower)
    return [start]
