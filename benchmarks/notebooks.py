"""Notebooks on the command line and a warm server, one and many, against papermill and Elyra."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from . import peers, workloads
from .measure import Result, absent, median, seconds, versus
from .server import Server, server

CONVECT = Path(sys.executable).with_name("convect")
EXAMPLE = Path(__file__).parents[1] / "examples" / "churn"


def rows() -> Iterator[Result]:
    with tempfile.TemporaryDirectory(prefix="convect-bench-") as scratch:
        folder = Path(scratch)
        environment = {"CONVECT_RUNS_DIR": f"{folder}/runs", "CONVECT_INDEX_DIR": f"{folder}/index"}
        options = ("--LocalRuntime.cpus=2",)
        with server(folder, options=options, **environment) as running:
            os.environ.update(environment)
            yield from _single(folder, running)
            yield from _many(folder, running)
            yield _view(folder, running)
        wide = ("--LocalRuntime.cpus=8",)
        with server(folder, options=wide, **environment) as running:
            yield _sleepers(folder, running)
        yield _example(folder)


def _single(folder: Path, running: Server) -> Iterator[Result]:
    workloads.trivial(folder)
    for _ in range(3):
        running.run(path="trivial.ipynb")
    yield versus(
        "trivial notebook, warm server",
        lambda: running.run(path="trivial.ipynb"),
        _papermill(folder, "trivial.ipynb"),
        budget=0.045, against="papermill", repeat=11,
    )  # fmt: skip
    yield versus(
        "trivial notebook with a parameter, warm server",
        lambda: running.run(path="trivial.ipynb", parameters={"x": 2}),
        _papermill(folder, "trivial.ipynb", "-p", "x", "2"),
        budget=0.05, against="papermill", repeat=11,
    )  # fmt: skip
    call = running.endpoint("trivial.ipynb")
    call()
    yield versus(
        "endpoint, warm call of a trivial notebook",
        call,
        _papermill(folder, "trivial.ipynb"),
        budget=0.05, against="papermill", repeat=11,
        note="from the request to the answer with the outputs",
    )  # fmt: skip
    yield versus(
        "trivial notebook, warm server, six in a row",
        lambda: sum(running.run(path="trivial.ipynb") for _ in range(6)),
        lambda: [_papermill(folder, "trivial.ipynb")() for _ in range(6)],
        budget=None, against="papermill", repeat=3,
        note="each asked for when the one before is seen to have ended",
    )  # fmt: skip
    yield versus(
        "trivial notebook, cold command line",
        _convect(folder, "trivial.ipynb"),
        _papermill(folder, "trivial.ipynb"),
        budget=0.45, against="papermill", repeat=7,
    )  # fmt: skip
    workloads.hundred_cells(folder)
    yield versus(
        "100 trivial cells",
        lambda: running.run(path="hundred.ipynb"),
        _papermill(folder, "hundred.ipynb"),
        budget=0.17, against="papermill", repeat=5, peer_repeat=3,
    )  # fmt: skip
    workloads.large_output(folder)
    yield versus(
        "5 cells of 1 MB output",
        lambda: running.run(path="large.ipynb"),
        _papermill(folder, "large.ipynb"),
        budget=None, against="papermill", repeat=5, peer_repeat=3,
    )  # fmt: skip


def _many(folder: Path, running: Server) -> Iterator[Result]:
    def sweep() -> float:
        return running.sweep({"x": list(range(64))}, path="trivial.ipynb")

    def xargs() -> None:
        papermill = peers.papermill()
        words = f"{papermill} -p x {{}} --no-progress-bar trivial.ipynb out-{{}}.ipynb"
        subprocess.run(
            ["xargs", "-P2", "-I{}", *words.split()],
            input="\n".join(map(str, range(64))), text=True, cwd=folder, check=True,
            capture_output=True,
        )  # fmt: skip

    points = ",".join(map(str, range(64)))
    cold = _convect(folder, "trivial.ipynb", "--sweep", f"x={points}")
    warm = versus(
        "64-run sweep of a trivial notebook, warm server", sweep, xargs,
        budget=0.09, against="papermill under xargs -P2", repeat=3, peer_repeat=2,
    )  # fmt: skip
    yield warm
    times = [seconds(cold) for _ in range(3)]
    yield Result(
        "64-run sweep of a trivial notebook, cold command line",
        median(times) / median(warm.peer),
        budget=0.09, against=warm.against, ours=times, peer=warm.peer,
    )  # fmt: skip

    workloads.independent(folder, 8, "print(1)")
    name = "8 independent trivial notebooks"
    try:
        elyra = peers.elyra()
    except peers.NotToBeHad as reason:
        yield absent(name, str(reason), against="elyra-pipeline run")
        return
    workloads.elyra(folder, 8)
    yield versus(
        name,
        lambda: running.run(path="independent.pipeline"),
        _command(folder, elyra, "run", "elyra.pipeline"),
        budget=0.04, against="elyra-pipeline run", repeat=5, peer_repeat=2,
    )  # fmt: skip


def _view(folder: Path, running: Server) -> Result:
    """What a run has to see, at submit and at its end, of a project that it does not change."""
    empty, full = folder / "empty", folder / "full"
    for project in (empty, full):
        (project / ".convect").mkdir(parents=True)
        workloads.trivial(project)
    workloads.many_files(full, 2000, 200 << 20)
    for _ in range(2):
        for project in (empty, full):
            running.run(path=f"{project.name}/trivial.ipynb")
    times: dict[str, list[float]] = {"empty": [], "full": []}
    for _ in range(11):
        for name, taken in times.items():
            taken.append(running.run(path=f"{name}/trivial.ipynb"))
    return Result(
        "a view of a project of 2000 files and 200 MB, after the first",
        (median(times["full"]) - median(times["empty"])) * 1000, "ms more",
        budget=30, against="an empty project", ours=times["full"], peer=times["empty"],
    )  # fmt: skip


def _sleepers(folder: Path, running: Server) -> Result:
    workloads.independent(folder, 8, "import time; time.sleep(3)")
    running.run(path="independent.pipeline", use_cache=False)
    ours = [
        seconds(lambda: running.run(path="independent.pipeline", use_cache=False)) for _ in range(3)
    ]
    return Result(
        "8 × sleep(3), 8 workers", median(ours) / 3, budget=1.12, against="3 s", ours=ours
    )


def _example(folder: Path) -> Result:
    """prepare, train and evaluate, against the same three notebooks by papermill in a row."""
    import shutil

    copy = folder / "churn"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("data"))
    papermill = Path(sys.executable).with_name("papermill")

    def in_a_row() -> None:
        for name in ("prepare", "train", "evaluate"):
            _command(copy, papermill, "--no-progress-bar", f"{name}.ipynb", f"out-{name}.ipynb")()

    return versus(
        "the example pipeline, cold command line", _convect(copy, "churn.pipeline", "--no-cache"),
        in_a_row, budget=None, against="papermill, three times", repeat=3,
    )  # fmt: skip


def _papermill(folder: Path, name: str, *options: str) -> Callable[[], None]:
    command = ("--no-progress-bar", *options, name, f"out-{name}")
    return _command(folder, peers.papermill(), *command)


def _convect(folder: Path, name: str, *options: str) -> Callable[[], None]:
    return _command(folder, CONVECT, "run", name, *options)


def _command(folder: Path, *words: str | Path) -> Callable[[], None]:
    def call() -> None:
        subprocess.run([str(word) for word in words], cwd=folder, check=True, capture_output=True)

    return call
