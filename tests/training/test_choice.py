"""What is chosen and said when nobody names an operator, and when one does not do its work."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from types import ModuleType
from typing import Any

import pytest
import test_conformance as suite
from operated import by_operator, clean_up
from waiting import PATIENCE, eventually

from jupyterlab_convect.pipeline.resolve import plan_for_file
from jupyterlab_convect.runtimes.kubernetes import operators as table


@pytest.fixture
async def lab(make_lab: Callable[..., Any], operators: ModuleType, bed: Any) -> AsyncIterator[Any]:
    yield make_lab()
    await clean_up(bed)


async def said(lab: Any, **how: Any) -> dict[str, str]:
    lab.write("a.py", "pass")
    plan = plan_for_file("a.py", lab.root, {}, {"distributed": {"nodes": 2, **how}})
    found = await lab.runtime.check(plan)
    assert [each.message for each in found if each.severity == "error"] == []
    return {each.code: each.message for each in found}


async def test_the_operator_that_the_cluster_has_is_said_before_and_taken(lab: Any) -> None:
    first = "“a” would run as a TrainJob of trainer.kubeflow.org/v1alpha1."
    assert (await said(lab))["operator"] == first
    assert "PyTorchJob of kubeflow.org/v1" in (await said(lab, operator="PyTorchJob"))["operator"]
    assert (await said(lab, operator="none"))["operator"].endswith("a Job, without an operator.")
    assert "operator" not in await said(lab, nodes=1, processes=2)
    train = suite.script("a.py", distributed={"nodes": 2})
    _, state = await lab.succeed({"train": train})
    assert state.steps["train"].attempts[0].handle["kind"] == "TrainJob"


async def test_an_account_without_the_rights_gets_a_job(
    lab: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "jupyterlab_convect.runtimes.kubernetes.cluster.RIGHTS",
        {**_rights(), "create trainjobs": ("create", "trainer.kubeflow.org", "none", "")},
    )
    assert "PyTorchJob" in (await said(lab))["operator"]


async def test_an_operator_that_is_gone_is_named_and_the_step_can_be_stopped(
    lab: Any, operators: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a TrainJob nothing is heard when JobSet is gone."""
    monkeypatch.setattr(table, "SILENT", 1.0)
    operators.stop(operators.JOB_SET)
    try:
        by_operator(lab, "TrainJob")
        lab.write("a.py", "pass")
        run = await lab.start({"train": suite.script("a.py", distributed={"nodes": 2})})

        def reason() -> str:
            attempts = lab.store.read(run.id).state.steps["train"].attempts
            return (attempts and attempts[-1].reason) or ""

        await eventually(lambda: "has not begun to work on its TrainJob" in reason(), "it is said")
        await lab.engine.stop(run.id)
        assert (await lab.engine.wait(run.id, PATIENCE)).state == "cancelled"
    finally:
        operators.restart(operators.JOB_SET)


@pytest.mark.parametrize("kind", ["TrainJob", "none"])
async def test_ranks_that_hang_on_several_nodes_are_found_and_stopped(lab: Any, kind: str) -> None:
    by_operator(lab, kind)
    lab.write("train.py", f"{suite.MEET}\nmeet(0)\nprint('up', flush=True)\ntime.sleep(600)")
    how = {"nodes": 2, "hang_after": "2s", "on_hang": "stop"}
    run, state = await lab.finish({"train": suite.script("train.py", distributed=how)})
    step = state.steps["train"]
    assert step.state == "failed"
    assert step.reason == "It seems to hang: no output and no use of a CPU or GPU for 2 s."
    for rank in range(2):
        log = (lab.result(run, "train") / "replicas" / f"{rank}.log").read_text()
        assert "train.py" in log
        assert "most recent call first" in log


async def test_ranks_that_hang_on_several_nodes_start_again(lab: Any) -> None:
    by_operator(lab, "none")
    again = "if os.environ['CONVECT_RESTART'] == '0': time.sleep(600)"
    lab.write("train.py", f"{suite.MEET}\nmeet(0)\nprint('up', flush=True)\n{again}")
    how = {"nodes": 2, "hang_after": "2s", "on_hang": "stop", "restarts": 1}
    run, state = await lab.succeed({"train": suite.script("train.py", distributed=how)})
    assert len(state.steps["train"].attempts) == 1
    folder = lab.result(run, "train")
    assert "[Restart 1 of 1: It seems to hang" in (folder / "log.txt").read_text()
    for rank in range(2):
        log = (folder / "replicas" / f"{rank}.log").read_text()
        assert log.count("up\n") == 2
        assert "most recent call first" in log


def _rights() -> dict[str, Any]:
    from jupyterlab_convect.runtimes.kubernetes import cluster

    return dict(cluster.RIGHTS)


async def test_a_gang_begins_when_there_is_room_for_all_of_it(
    make_lab: Callable[..., Any], bed: Any, operators: ModuleType
) -> None:
    """Of the four GPUs of the node three are taken: one pod would fit, but not both."""
    first, lab = make_lab("viewer"), make_lab("viewer")
    first.write(
        "hold.py", "import pathlib, time\nwhile not pathlib.Path('go').exists(): time.sleep(0.05)"
    )
    holding = await first.start("hold.py", settings={"resources": {"gpu": 3}})
    await eventually(
        lambda: [p for p in bed.pods(holding.id) if p["status"]["phase"] == "Running"], "it runs"
    )
    lab.write("a.py", f"{suite.MEET}\nmeet(0)")
    together = suite.script("a.py", distributed={"nodes": 2, "gang": True}, resources={"gpu": 1})
    run = await lab.start({"train": together})

    def reason() -> str:
        return lab.store.read(run.id).state.steps["train"].reason or ""

    needs = "2 pods with 1 GPU each at the same time; at the moment there is room for 1."
    await eventually(lambda: reason() == f"Waiting: it needs {needs}", "it waits for both")
    assert bed.pods(run.id) == []
    first.write("go", "")
    assert (await first.engine.wait(holding.id, PATIENCE)).state == "succeeded"
    assert (await lab.engine.wait(run.id, PATIENCE)).state == "succeeded"
    await clean_up(bed)
