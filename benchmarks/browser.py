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
from .server import TOKEN, server
from .storage import fill
from .workloads import notebook, trivial

ROOT = Path(__file__).resolve().parent.parent
RUNS = 100_000
ITEMS = 10_000
SIZES = (100, 500, 1000)
LAB = (
    "--ServerApp.jpserver_extensions=jupyterlab=True",
    "--LabApp.expose_app_in_browser=True",
)


def rows() -> Iterator[Result]:
    if not (ROOT / "ui-tests" / "node_modules").is_dir() or not shutil.which("node"):
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
            found = _measure(running.port, loop, ["panel", "items", "firstCell", "live", "editor"])
    panel, items = found["panel"], found["items"]
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


def _measure(port: int, loop: str, parts: list[str]) -> dict[str, Any]:
    address = f"http://127.0.0.1:{port}"
    asked = {"address": address, "token": TOKEN, "parts": parts, "sizes": SIZES, "loop": loop}
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
