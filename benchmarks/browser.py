"""The front end in a real browser: the panel with many runs, a large pipeline, the first cell."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .measure import Result, absent, median
from .server import TOKEN, server
from .storage import fill
from .workloads import trivial

ROOT = Path(__file__).resolve().parent.parent
RUNS = 100_000
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
        trivial(folder, "first")
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
            found = _measure(running.port, ["panel", "firstCell", "editor"])
    panel, first = found["panel"], found["firstCell"]
    yield Result(f"runs panel opens, {RUNS:,} runs", panel["shown"], "ms")
    yield Result(
        f"runs panel scrolls, {RUNS:,} runs, median frame", median(panel["frames"]), "ms",
        budget=17, against="60 Hz", ours=panel["frames"],
    )  # fmt: skip
    yield Result("runs panel jumps to the middle", panel["jumped"], "ms")
    yield Result(
        "from the click on Run to the first cell", median(first["times"]), "ms", ours=first["times"]
    )
    for size in SIZES:
        yield from _editor(size, found["editor"][str(size)])


def _editor(size: int, found: dict[str, Any]) -> Iterator[Result]:
    yield Result(f"editor opens, {size} nodes", found["opened"] / 1000, "s", budget=1)
    for what, doing in (("moved", "panning"), ("dragged", "dragging"), ("typed", "typing")):
        yield Result(
            f"editor, {size} nodes, median frame while {doing}", median(found[what]), "ms",
            budget=17, against="60 Hz", ours=found[what],
        )  # fmt: skip


def _measure(port: int, parts: list[str]) -> dict[str, Any]:
    asked = {"address": f"http://127.0.0.1:{port}", "token": TOKEN, "parts": parts, "sizes": SIZES}
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
