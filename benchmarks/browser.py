"""The front end in a real browser: many runs, a long loop, a large pipeline, the first cell."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .engine import drive
from .measure import Result, absent, median, percentile
from .server import TOKEN, Server, server
from .storage import fill
from .workloads import notebook, trivial

ROOT = Path(__file__).resolve().parent.parent
RUNS = 100_000
ITEMS = 10_000
RANKS = 512
SIZES = (100, 500, 1000)
LAB = (
    "--ServerApp.jpserver_extensions=jupyterlab=True",
    "--LabApp.expose_app_in_browser=True",
)


def rows() -> Iterator[Result]:
    if not is_installed():
        yield absent("browser", "the browser tests are not installed; run make test once")
        return
    with tempfile.TemporaryDirectory(prefix="convect-bench-") as scratch:
        folder = Path(scratch)
        fill(folder / "runs", RUNS)
        loop = asyncio.run(drive(ITEMS, "loop", folder))
        trivial(folder, "first")
        notebook(folder / "second.ipynb", "import time; time.sleep(1)")
        (folder / "small.pipeline").write_text(json.dumps(_large(2)))
        for size in SIZES:
            (folder / f"large-{size}.pipeline").write_text(json.dumps(_large(size)))
        with server(
            folder,
            options=LAB,
            CONVECT_RUNS_DIR=f"{folder}/runs",
            CONVECT_INDEX_DIR=f"{folder}/index",
            JUPYTER_CONFIG_DIR=f"{folder}/config",
        ) as running:
            running.convect("runs?limit=1")
            ranks = _distributed(running, folder)
            parts = ["panel", "items", "ranks", "firstCell", "live", "editor"]
            found = measure(running.port, parts, sizes=SIZES, loop=loop, ranks=ranks)
    panel, items, ranks = found["panel"], found["items"], found["ranks"]
    first, live = found["firstCell"], found["live"]
    yield Result(f"runs panel opens, {RUNS:,} runs", panel["shown"], "ms")
    yield Result(
        f"runs panel scrolls, {RUNS:,} runs, median frame", median(panel["frames"]), "ms",
        budget=17, against="60 Hz", ours=panel["frames"],
    )  # fmt: skip
    yield Result("runs panel jumps to the middle", panel["jumped"], "ms")
    yield Result(f"page of a loop opens, {ITEMS:,} items", items["shown"], "ms")
    yield Result(
        f"page of a loop scrolls, {ITEMS:,} items, median frame", median(items["frames"]), "ms",
        budget=17, against="60 Hz", ours=items["frames"],
    )  # fmt: skip
    yield Result("page of a loop jumps to the middle", items["jumped"], "ms")
    yield Result(f"processes of a step open, {RANKS} ranks", ranks["shown"], "ms")
    yield Result(
        f"processes of a step scroll, {RANKS} ranks, median frame", median(ranks["frames"]), "ms",
        budget=17, against="60 Hz", ours=ranks["frames"],
    )  # fmt: skip
    yield Result(
        "from the click on Run to the first cell", median(first["times"]), "ms", ours=first["times"]
    )
    yield Result("requests per changed run, panel and page open", live["perChange"], "", budget=1)
    yield Result("requests per second, sweep of 300, both open", live["perSecond"], "", budget=4)
    yield Result(
        "event on disk to painted status, p95", percentile(live["painted"], 0.95), "ms",
        budget=200, ours=live["painted"],
    )  # fmt: skip
    for size in SIZES:
        yield from _editor(size, found["editor"][str(size)])


def _editor(size: int, found: dict[str, Any]) -> Iterator[Result]:
    yield Result(f"editor opens, {size} nodes", found["opened"] / 1000, "s", budget=1)
    for what, doing in (("moved", "panning"), ("dragged", "dragging"), ("typed", "typing")):
        yield Result(
            f"editor, {size} nodes, median frame while {doing}", median(found[what]), "ms",
            budget=17, against="60 Hz", ours=found[what],
        )  # fmt: skip


def _distributed(running: Server, folder: Path) -> str:
    """A run with what a step on 64 nodes with 8 GPUs each leaves."""
    (folder / "train.py").write_text("print('epoch')")
    settings = {"distributed": {"processes": 2}}
    running.run(path="train.py", settings=settings)
    (run,) = running.convect("runs?limit=1")["runs"]
    (results,) = folder.glob(f"runs/{run['id']}/steps/train/1")
    for rank in range(RANKS):
        said = f"epoch 3 loss {1 / (rank + 1):.4f}, {rank % 9}.5 it/s\n" * 20
        (results / "replicas" / f"{rank}.log").write_text(said)
    told = [
        {"rank": rank, "state": "failed" if rank == 300 else "succeeded", "gpu": str(rank % 8)}
        | {"node": f"gpu-{rank // 8}", "exit_code": 0, "started": 1.0, "ended": 2.0}
        | {"cpu": 1.5, "memory": 2.5e9, "gpu_load": 93.0, "gpu_memory": 7e10}
        for rank in range(RANKS)
    ]
    (results / "replicas.json").write_text(json.dumps({"replicas": told}))
    return str(run["id"])


def is_installed() -> bool:
    return (ROOT / "ui-tests" / "node_modules").is_dir() and shutil.which("node") is not None


def measure(port: int, parts: list[str], **given: Any) -> dict[str, Any]:
    """What the browser measures of each part; `given` is what it needs to know for that."""
    asked = {"address": f"http://127.0.0.1:{port}", "token": TOKEN, "parts": parts, **given}
    done = subprocess.run(
        ["node", "measure.js", json.dumps(asked)],
        cwd=ROOT / "ui-tests",
        env=os.environ,
        check=True,
        capture_output=True,
        text=True,
    )
    return dict(json.loads(done.stdout))


def _large(count: int) -> dict[str, Any]:
    """Nodes in rows, each after the one to its left."""
    width = 40
    nodes: dict[str, Any] = {}
    layout: dict[str, Any] = {}
    for number in range(count):
        name = f"n{number}"
        nodes[name] = {"kind": "notebook", "path": "first.ipynb"}
        if number % width:
            nodes[name]["after"] = [f"n{number - 1}"]
        layout[name] = [number % width * 240, number // width * 120]
    return {"convect": 1, "name": "large", "nodes": nodes, "layout": layout}
