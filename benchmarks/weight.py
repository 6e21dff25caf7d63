"""What the extension adds: to the server's start and memory, to the page, to the disk."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from .measure import Result, absent, median
from .server import server

ROOT = Path(__file__).parents[1]
STATIC = ROOT / "jupyterlab_convect" / "labextension" / "static"
IMPORT = "import time; t = time.perf_counter(); {}; print(time.perf_counter() - t)"


def rows() -> Iterator[Result]:
    yield _import_time()
    yield from _start_and_memory()
    yield from _bundles()
    yield _install_size()


def _import_time() -> Result:
    host = "import jupyter_server.serverapp, jupyter_server.extension.application"
    program = f"{host}; " + IMPORT.format("import jupyterlab_convect.app")
    times = [
        float(
            subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout
        )
        for _ in range(7)
    ]
    return Result(
        "import of the extension", median(times) * 600, "ms", budget=100,
        against="server without it", ours=times,
    )  # fmt: skip


def _start_and_memory() -> Iterator[Result]:
    starts: dict[bool, list[float]] = {True: [], False: []}
    memory: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(4):
        for extension in (True, False):
            with tempfile.TemporaryDirectory(prefix="convect-bench-") as scratch:
                folder = Path(scratch)
                places = {
                    "CONVECT_RUNS_DIR": f"{folder}/runs",
                    "CONVECT_INDEX_DIR": f"{folder}/index",
                }
                began = time.perf_counter()
                with server(folder, extension=extension, **places) as running:
                    starts[extension].append(time.perf_counter() - began)
                    time.sleep(2)
                    memory[extension].append(running.memory / 2**20)
    yield Result(
        "server start", (median(starts[True]) - median(starts[False])) * 1000, "ms more",
        against="server without it", ours=starts[True], peer=starts[False],
    )  # fmt: skip
    yield Result(
        "idle server memory", median(memory[True]) - median(memory[False]), "MiB more", budget=10,
        against="server without it", ours=memory[True], peer=memory[False],
    )  # fmt: skip


def _bundles() -> Iterator[Result]:
    """The files that the page loads at its start, and the largest that it loads later."""
    if not STATIC.exists():
        yield absent("bundle", "the front end is not built")
        return
    sizes = {path: len(gzip.compress(path.read_bytes())) / 1000 for path in STATIC.glob("*.js")}
    yield Result("entry bundle", sum(sizes[path] for path in _at_start()), "kB gzip", budget=60)
    canvas = [size for path, size in sizes.items() if b"react-flow__" in path.read_bytes()]
    if canvas:
        yield Result("canvas chunk, lazy", max(canvas), "kB gzip", budget=80)


def _at_start() -> list[Path]:
    """The remote entry, and the chunks that it loads before it hands out the plugins."""
    description = json.loads((STATIC.parent / "package.json").read_text())
    entry = STATIC.parent / description["jupyterlab"]["_build"]["load"]
    exposed = entry.read_text().split('"./index"', 1)[1].split("}", 1)[0]
    chunks = set(re.findall(r"""\.e\(["']?(\w+)""", exposed))
    # A chunk without a file is a module that JupyterLab shares.
    return [entry, *(path for chunk in chunks for path in STATIC.glob(f"{chunk}.*.js"))]


def _install_size() -> Result:
    """Of the wheel and what it brings, over jupyterlab and papermill."""
    with tempfile.TemporaryDirectory(prefix="convect-bench-") as scratch:
        folder = Path(scratch)
        base = folder / "base"
        ours = folder / "ours"
        try:
            _install(base, "jupyterlab", "papermill", "ipykernel")
            wheel = _wheel(folder)
            _install(ours, "jupyterlab", "papermill", "ipykernel", str(wheel))
        except subprocess.CalledProcessError as error:
            words = error.stderr.decode().strip().splitlines()
            return absent("install size", words[-1] if words else "pip failed")
        more = (_size(ours) - _size(base)) / 1e6
    return Result("install size", more, "MB more", budget=15, against="jupyterlab + papermill")


def _wheel(folder: Path) -> Path:
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "-o",
        str(folder),
        str(ROOT),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def _install(target: Path, *packages: str) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-compile",
        "--target",
        str(target),
    ]
    subprocess.run([*command, *packages], check=True, capture_output=True)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
