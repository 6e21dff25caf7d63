"""Order is deterministic; every cycle is named."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from jupyterlab_convect.pipeline.cycles import MAX_CYCLES, cycles, order

NODES = "abcdef"


def test_order_prefers_ids_where_there_is_a_choice() -> None:
    edges = {"c": [], "b": ["z"], "a": ["c"], "z": []}
    shuffled = list(edges.items())
    random.Random(1).shuffle(shuffled)
    assert order(edges) == order(dict(shuffled)) == ["c", "a", "z", "b"]


def test_every_cycle_is_named_in_the_direction_of_the_flow() -> None:
    edges = {"a": ["c"], "b": ["a"], "c": ["b", "d"], "d": ["c"], "e": ["e"], "f": ["a"]}
    assert cycles(edges) == [["a", "b", "c"], ["c", "d"], ["e"]]


def test_a_long_cycle_and_a_tangle_end() -> None:
    ring = {str(i): [str((i - 1) % 5000)] for i in range(5000)}
    assert len(cycles(ring)[0]) == 5000
    tangle = {str(i): [str(j) for j in range(60)] for i in range(60)}
    assert len(cycles(tangle)) == MAX_CYCLES


@given(st.dictionaries(st.sampled_from(NODES), st.sets(st.sampled_from(NODES))))
def test_a_graph_has_an_order_or_a_cycle(some: dict[str, set[str]]) -> None:
    edges = {node: sorted(some.get(node, ())) for node in NODES}
    ordered = order(edges)
    assert (len(ordered) == len(edges)) is (not cycles(edges))
    for index, node in enumerate(ordered):
        assert set(edges[node]) <= set(ordered[:index])
    for cycle in cycles(edges):
        for before, node in zip(cycle, cycle[1:] + cycle[:1], strict=True):
            assert before in edges[node]
