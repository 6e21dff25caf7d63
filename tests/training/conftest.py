"""Real training operators, on the test bed of this machine: as pods, with their own webhooks.

`make test-training` runs these; without CONVECT_TEST_TRAINING none of them is collected.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from loading import load

HERE = Path(__file__).parent

if not os.environ.get("CONVECT_TEST_TRAINING"):
    collect_ignore_glob = ["test_*.py"]

sys.path[:0] = [str(HERE), *(str(HERE.parent / name) for name in ("testbed", "cluster"))]

from operated import by_operator, clean_up  # noqa: E402

on_cluster = load("cluster_lab", HERE.parent / "cluster" / "conftest.py")
sys.path.insert(0, str(HERE.parent / "conformance"))  # both have a suite of that name
bed, make_lab = on_cluster.bed, on_cluster.make_lab


@pytest.fixture(scope="session")
def operators(bed: Any) -> Iterator[ModuleType]:
    """All of them, on the cluster; those that were up before stay up."""
    import training

    found = [part for part in training.PARTS if not training.is_up(part)]
    if found:
        training.up(*found)
    yield training
    if found == list(training.PARTS):
        training.down()


@pytest.fixture
async def lab(
    make_lab: Callable[..., Any], operators: ModuleType, kind: str, bed: Any
) -> AsyncIterator[Any]:
    """For tests with the parameter `kind`."""
    yield by_operator(make_lab(), kind)
    await clean_up(bed)
