"""Steps of several processes with the real torchrun and mpirun, where they are installed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import Ended
from .test_distributed import log_of, replicas, start_nodes

pytestmark = pytest.mark.slow

MENDED = "import enum; enum.EnumType.__iter__ = lambda cls: iter(cls._member_map_.values())"
"""The torch of Debian 12 (1.13) loops over a Flag, which leaves out two of its members since
Python 3.11: without this its torchrun always fails."""


@pytest.fixture(scope="module")
def torch_python() -> str:
    """An interpreter that has torch: ours, or that of the system."""
    for interpreter in (sys.executable, "/usr/bin/python3"):
        code = "import torch.distributed as d, sys; sys.exit(not d.is_gloo_available())"
        done = subprocess.run([interpreter, "-c", code], capture_output=True, check=False)
        if done.returncode == 0:
            return interpreter
    pytest.skip("No Python here has torch; on Debian it is the package python3-torch.")


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    mended = tmp_path / "mended"
    mended.mkdir()
    (mended / "sitecustomize.py").write_text(MENDED)
    return {"PYTHONPATH": str(mended)}


def torchrun(bench: Any, python: str, script: str, **step: Any) -> Ended:
    (bench.work / "训练.py").write_text(script)
    how = {"processes": 2, "launcher": "torchrun", **step.pop("distributed", {})}
    ended: Ended = bench.run(kind="command", command=[python, "训练.py"], distributed=how, **step)
    return ended


def test_torch_reduces(bench: Any, torch_python: str, env: dict[str, str]) -> None:
    script = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
value = torch.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(value)
print("sum", value.item())
"""
    ended = torchrun(bench, torch_python, script, env=env)
    assert ended.state == "succeeded", ended.log
    assert [log_of(ended, rank) for rank in range(2)] == ["sum 3.0\n"] * 2


def test_torch_reduces_across_nodes(bench: Any, torch_python: str, env: dict[str, str]) -> None:
    script = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
value = torch.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(value)
print("sum", value.item())
"""
    (bench.work / "s.py").write_text(script)
    command = {"kind": "command", "command": [torch_python, "s.py"], "env": env}
    folder, runners = start_nodes(bench, script, step=command, processes=2, launcher="torchrun")
    codes = [runner.wait() for runner in runners]
    ended = [Ended(folder / "nodes" / str(node), 0) for node in range(2)]
    assert codes == [0, 0], ended[0].log + ended[1].log
    assert [log_of(ended[rank // 2], rank) for rank in range(4)] == ["sum 10.0\n"] * 4


def test_the_rank_that_fails_under_torchrun_is_named(
    bench: Any, torch_python: str, env: dict[str, str]
) -> None:
    script = "import os, time\nif os.environ['RANK'] == '1': raise SystemExit(7)\ntime.sleep(600)"
    ended = torchrun(bench, torch_python, script, env=env)
    assert ended.reason == f"Rank 1 of {torch_python} exited with code 7."
    assert replicas(ended)[0]["state"] == "cancelled"
    assert replicas(ended)[1]["exit_code"] == 7


GUIDE = Path(__file__).parents[2] / "docs" / "training.md"


def example() -> str:
    """The training that the guide shows."""
    (found,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    return str(found)


def test_two_ranks_learn_digits_together(
    bench: Any, torch_python: str, env: dict[str, str]
) -> None:
    ended = torchrun(bench, torch_python, example(), env=env)
    assert ended.state == "succeeded", ended.log
    losses = [event["value"] for event in ended.events_of("metric")]
    assert len(losses) == 20
    assert losses[-1] < losses[0] / 4
    assert ended.outputs["values"]["accuracy"] > 0.95
    assert log_of(ended, 0) == log_of(ended, 1)


@pytest.fixture(scope="module")
def mpi_python() -> str:
    """An interpreter that has mpi4py: ours, or that of the system."""
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is not installed.")
    for interpreter in (sys.executable, "/usr/bin/python3"):
        check = [interpreter, "-c", "import mpi4py.MPI"]
        if subprocess.run(check, capture_output=True, check=False).returncode == 0:
            return interpreter
    pytest.skip("No Python here has mpi4py; on Debian it is the package python3-mpi4py.")


MPI_SUM = """
import os
from mpi4py import MPI
rank = MPI.COMM_WORLD.Get_rank()
assert rank == int(os.environ["RANK"])
print("sum", MPI.COMM_WORLD.allreduce(rank + 1))
"""


def test_mpirun_reduces(bench: Any, mpi_python: str) -> None:
    (bench.work / "s.py").write_text(MPI_SUM)
    how = {"processes": 3, "launcher": "mpi"}
    ended = bench.run(kind="command", command=[mpi_python, "s.py"], distributed=how)
    assert ended.state == "succeeded", ended.log
    assert [log_of(ended, rank) for rank in range(3)] == ["sum 6\n"] * 3


TCP = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,tcp"}
"""Both nodes are this machine, but must not take each other for neighbours."""


def test_mpirun_reduces_across_nodes(bench: Any, mpi_python: str) -> None:
    """Without ssh: the runner of each node starts the daemon there."""
    command = {"kind": "command", "command": [mpi_python, "s.py"], "env": TCP}
    folder, runners = start_nodes(bench, MPI_SUM, step=command, processes=2, launcher="mpi")
    codes = [runner.wait() for runner in runners]
    ended = [Ended(folder / "nodes" / str(node), 0) for node in range(2)]
    assert codes == [0, 0], ended[0].log + ended[1].log
    assert [log_of(ended[rank // 2], rank) for rank in range(4)] == ["sum 10\n"] * 4


def test_the_rank_of_another_node_that_fails_under_mpirun_is_named(
    bench: Any, mpi_python: str
) -> None:
    script = """
import os, time
from mpi4py import MPI
if MPI.COMM_WORLD.Get_rank() == 1: os._exit(7)
time.sleep(600)
"""
    command = {"kind": "command", "command": [mpi_python, "s.py"], "env": TCP}
    folder, runners = start_nodes(bench, script, step=command, launcher="mpi")
    assert [runner.wait() for runner in runners] == [1, 1]
    first, second = (Ended(folder / "nodes" / str(node), 1) for node in range(2))
    assert second.reason == "Rank 1 of s.py exited with code 7."
    assert replicas(first)[0]["state"] == "cancelled"
