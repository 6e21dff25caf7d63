"""Objects of operators in a queue of the real Kueue: all of their pods are let in, or none.

Without TrainJobs: Kueue lets these in only with its webhooks, which the test bed does not have.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from types import ModuleType
from typing import Any

import pytest
import test_conformance as suite
from operated import by_operator, clean_up
from test_queue import queue  # noqa: F401
from waiting import PATIENCE, eventually

from jupyterlab_convect.runtimes.kubernetes.queues import LABEL

FRAMEWORKS = ("kubeflow.org/pytorchjob", "kubeflow.org/mpijob")
HOLD = "import pathlib, time\nwhile not pathlib.Path('go').exists(): time.sleep(0.05)"


@pytest.fixture
async def labs(
    make_lab: Callable[..., Any], operators: ModuleType, bed: Any
) -> AsyncIterator[tuple[Any, Any]]:
    yield make_lab("viewer"), make_lab("viewer")
    await clean_up(bed)


@pytest.mark.parametrize("kind", ["PyTorchJob", "MPIJob", "none"])
async def test_a_queue_lets_in_all_pods_or_none(
    labs: tuple[Any, Any],
    bed: Any,
    queue: str,  # noqa: F811
    kind: str,
) -> None:
    """It has two GPUs, and one of them is taken."""
    first, lab = labs
    by_operator(lab, kind)
    queued = {"resources": {"gpu": 1}, "kubernetes": {"labels": {LABEL: queue}}}
    first.write("hold.py", HOLD)
    holding = await first.start("hold.py", settings=queued)
    await eventually(
        lambda: [p for p in bed.pods(holding.id) if p["status"]["phase"] == "Running"], "it runs"
    )
    lab.write("a.py", f"{suite.MEET}\nprint('sum', meet(1))")
    train = suite.script("a.py", distributed={"nodes": 2}, **queued)
    run = await lab.start({"train": train})

    def reason() -> str:
        attempts = lab.store.read(run.id).state.steps["train"].attempts
        return (attempts and attempts[-1].reason) or ""

    await eventually(lambda: f"queue {queue}" in reason() or f"“{queue}”" in reason(), "it waits")
    assert bed.pods(run.id) == []
    first.write("go", "")
    assert (await first.engine.wait(holding.id, PATIENCE)).state == "succeeded"
    state = await lab.engine.wait(run.id, PATIENCE)
    assert state.state == "succeeded", state.steps["train"].reason
    kinds = state.steps["train"].attempts[-1].handle.get("kind", "none")
    assert kinds == kind
    assert (lab.result(run, "train") / "replicas" / "1.log").read_text() == "sum 2\n"
