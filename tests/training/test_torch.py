"""The real torch and the real Open MPI in pods: what the ranks add up together is right."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from types import ModuleType
from typing import Any

import pytest
import test_conformance as suite
from operated import by_operator, clean_up

TORCH_SUM = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
value = torch.ones(3) * (dist.get_rank() + 1)
dist.all_reduce(value)
print("sum", value.tolist())
"""
MPI_SUM = """
import os
from mpi4py import MPI
rank = MPI.COMM_WORLD.Get_rank()
assert rank == int(os.environ["RANK"])
print("sum", MPI.COMM_WORLD.allreduce(rank + 1))
"""


@pytest.fixture(scope="session")
def image(operators: ModuleType) -> str:
    if missing := operators.what_torch_lacks():
        pytest.skip(missing)
    operators.import_torch()
    return str(operators.TORCH)


@pytest.fixture
async def lab(
    make_lab: Callable[..., Any], operators: ModuleType, kind: str, bed: Any
) -> AsyncIterator[Any]:
    yield by_operator(make_lab(), kind)
    await clean_up(bed)


async def sums(lab: Any, image: str, script: str, launcher: str) -> list[str]:
    """What each rank of two nodes with two processes each says."""
    lab.write("训练.py", script)
    how = {"nodes": 2, "processes": 2, "launcher": launcher}
    run, _ = await lab.succeed({"train": suite.script("训练.py", distributed=how, image=image)})
    folder = lab.result(run, "train") / "replicas"
    return [(folder / f"{rank}.log").read_text() for rank in range(4)]


@pytest.mark.parametrize("kind", ["none", "TrainJob", "PyTorchJob"])
async def test_torch_reduces_across_pods(lab: Any, image: str) -> None:
    said = await sums(lab, image, TORCH_SUM, "torchrun")
    assert said == ["sum [10.0, 10.0, 10.0]\n"] * 4


@pytest.mark.parametrize("kind", ["none", "MPIJob"])
async def test_mpirun_reduces_across_pods(lab: Any, image: str) -> None:
    assert await sums(lab, image, MPI_SUM, "mpi") == ["sum 10\n"] * 4
