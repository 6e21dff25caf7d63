"""A distributed step on this machine, against torchrun by hand."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from . import workloads
from .measure import Result, absent, versus
from .server import server

ROW = "distributed step, 4 local processes"
PROCESSES = 4
MENDED = "import enum; enum.EnumType.__iter__ = lambda cls: iter(cls._member_map_.values())"
"""The torch of Debian 12 (1.13) loops over a Flag, which leaves out two of its members since
Python 3.11: without this its torchrun always fails."""
SCRIPT = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
weights = torch.zeros(1000)
for _ in range(200):
    gradient = torch.ones(1000)
    dist.all_reduce(gradient)
    weights -= gradient
print(weights[0].item())
"""


def rows() -> Iterator[Result]:
    python = torch_python()
    if python is None:
        yield absent(ROW, "no Python here has torch", against="torchrun")
        return
    with tempfile.TemporaryDirectory(prefix="convect-bench-") as scratch:
        folder = Path(scratch)
        (folder / "train.py").write_text(SCRIPT)
        (folder / "mended").mkdir()
        (folder / "mended" / "sitecustomize.py").write_text(MENDED)
        env = {"PYTHONPATH": str(folder / "mended"), "OMP_NUM_THREADS": "1"}
        how = {"processes": PROCESSES, "launcher": "torchrun"}
        node = {"kind": "command", "command": [python, "train.py"], "env": env, "distributed": how}
        workloads.pipeline(folder / "train.pipeline", {"train": node})
        words = [python, "-m", "torch.distributed.run", "--standalone"]
        command = [*words, f"--nproc_per_node={PROCESSES}", "train.py"]

        def by_hand() -> None:
            subprocess.run(
                command, cwd=folder, env={**os.environ, **env}, check=True, capture_output=True
            )

        places = {"CONVECT_RUNS_DIR": f"{folder}/runs", "CONVECT_INDEX_DIR": f"{folder}/index"}
        with server(folder, options=(f"--LocalRuntime.cpus={PROCESSES}",), **places) as running:
            running.run(path="train.pipeline")
            yield versus(
                ROW, lambda: running.run(path="train.pipeline"), by_hand,
                budget=1.05, against="torchrun", repeat=5,
                note="200 sums of 1000 numbers over gloo, with one log per rank",
            )  # fmt: skip


def torch_python() -> str | None:
    """An interpreter that has torch: ours, or that of the system."""
    code = "import torch.distributed as d, sys; sys.exit(not d.is_gloo_available())"
    for interpreter in (sys.executable, "/usr/bin/python3"):
        done = subprocess.run([interpreter, "-c", code], capture_output=True, check=False)
        if done.returncode == 0:
            return interpreter
    return None
