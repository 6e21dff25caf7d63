"""A notebook that several kernels execute together."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import nbformat
import pytest

from .conftest import Ended
from .test_distributed import ALL_REDUCE, environment, log_of, replicas

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("launcher", ["plain", "torchrun"])
def test_the_kernels_of_all_ranks_add_up_their_numbers(bench: Any, launcher: str) -> None:
    ended = bench.cells(
        ("start = 0", ["parameters"]),
        ALL_REDUCE,
        "total = all_reduce(start + RANK)\nprint('rank', RANK, 'of', SIZE)",
        "import jupyterlab_convect as convect\nconvect.metric('rank', RANK)",
        ("total, mine = int(total), RANK", ["outputs"]),
        parameters={"start": 10},
        distributed={"processes": 2, "launcher": launcher, "outputs_from": 1},
        env=environment(bench, launcher),
    )
    assert ended.state == "succeeded", ended.log
    assert ended.outputs["values"] == {"total": 21, "mine": 1}
    assert ended.outputs["metrics"] == {"rank": 1}
    assert [event["value"] for event in ended.events_of("metric")] == [1]
    assert [event["cell"] for event in ended.events_of("progress")][-1] == 5
    for rank in range(2):
        assert log_of(ended, rank) == f"rank {rank} of 2\n"
        assert replicas(ended)[rank]["state"] == "succeeded"
    assert "rank 1 of 2" in ended.printed(3)
    other = nbformat.read(ended.folder / "replicas" / "0.ipynb", as_version=4)
    assert other.cells[3].outputs[0].text == "rank 0 of 2\n"
    assert not (ended.folder / "replicas" / "1.ipynb").exists()


def test_a_cell_that_fails_on_one_rank_ends_all(bench: Any) -> None:
    ended = bench.cells(
        "import os, time",
        "if os.environ['RANK'] == '1': raise ValueError('no more data')\ntime.sleep(600)",
        distributed={"processes": 3},
    )
    assert ended.state == "failed"
    assert ended.reason == ("Rank 1 of n.ipynb failed: Cell 2 raised ValueError: no more data")
    assert ended.outputs["error"]["rank"] == 1
    assert [replicas(ended)[rank]["state"] for rank in range(3)] == [
        "cancelled",
        "failed",
        "cancelled",
    ]
    assert replicas(ended)[0]["reason"] == "Stopped because rank 1 failed."
    assert (ended.folder / "executed.ipynb").exists()


def test_a_kernel_that_dies_ends_all(bench: Any) -> None:
    cell = "import os, time\nif os.environ['RANK'] == '0': os._exit(3)\ntime.sleep(600)"
    ended = bench.cells(cell, distributed={"processes": 2})
    assert ended.state == "failed"
    assert ended.reason.startswith("Rank 0 of n.ipynb failed: ")
    assert replicas(ended)[1]["state"] == "cancelled"


def test_a_runner_that_cannot_execute_the_notebook_ends_all(bench: Any, tmp_path: Path) -> None:
    """Whatever the mistake is: the kernels end well, and the step must not."""
    broken = tmp_path / "papermill"
    broken.mkdir()
    (broken / "__init__.py").write_text("raise RuntimeError('broken')")
    source = bench.notebook(("x = 1", ["parameters"]))
    folder = bench.attempt(source, parameters={"x": 2}, distributed={"processes": 2})
    process = bench.start(folder, PYTHONPATH=str(tmp_path))
    ended = Ended(folder, process.wait())
    assert ended.state == "failed"
    assert "failed: The runner failed: " in ended.reason
    assert "running" not in {each["state"] for each in ended.outputs["replicas"]}


def test_all_kernels_start_again(bench: Any) -> None:
    cell = "import os\nassert os.environ['CONVECT_RESTART'] == '1', 'again'\nprint('there')"
    ended = bench.cells(cell, distributed={"processes": 2, "restarts": 1})
    assert ended.state == "succeeded", ended.log
    assert ended.printed(0) == "there\n"


def test_stopping_the_step_interrupts_all_kernels(bench: Any, until: Any) -> None:
    source = bench.notebook("import time\nprint('up', flush=True)", "time.sleep(600)")
    folder = bench.attempt(source, distributed={"processes": 2})
    process = bench.start(folder)
    logs = [folder / "replicas" / f"{rank}.log" for rank in range(2)]
    until(lambda: all(log.exists() and "up\n" in log.read_text() for log in logs))
    process.send_signal(signal.SIGTERM)
    ended = Ended(folder, process.wait())
    assert ended.state == "cancelled"
    assert {each["state"] for each in ended.outputs["replicas"]} == {"cancelled"}
    assert ended.printed(0) == "up\n"


def test_a_kernel_that_hangs_shows_where(bench: Any) -> None:
    cell = "import threading\ndef wait_for_nobody():\n    threading.Event().wait()\n"
    how = {"processes": 2, "hang_after": 1, "on_hang": "stop"}
    ended = bench.cells(cell + "wait_for_nobody()", distributed=how)
    assert ended.reason == "It seems to hang: no output and no use of a CPU or GPU for 1 s."
    assert all("in wait_for_nobody" in log_of(ended, rank) for rank in range(2))
