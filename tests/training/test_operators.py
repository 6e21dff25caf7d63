"""Distributed steps by each of the operators, and by none: the same promises for all of them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
import test_conformance as suite
from operated import by_operator, clean_up
from waiting import PATIENCE, eventually

from jupyterlab_convect.errors import Refused
from jupyterlab_convect.pipeline.plan import Distributed
from jupyterlab_convect.runtimes.kubernetes import operators as table
from jupyterlab_convect.runtimes.kubernetes.operators import place_of

KINDS = ("TrainJob", "PyTorchJob", "TFJob", "MPIJob", "none")


pytestmark = pytest.mark.parametrize("kind", KINDS)


async def test_the_ranks_work_together(lab: Any) -> None:
    """The sum of all ranks, the log of each, files of one node, a name that is not ASCII."""
    await suite.test_replicas_on_several_nodes_work_together(lab)


async def test_the_rank_that_fails_first_ends_the_others(lab: Any) -> None:
    await suite.test_the_rank_that_fails_first_ends_those_of_other_nodes(lab)


async def test_all_nodes_start_again_after_a_rank_failed(lab: Any) -> None:
    await suite.test_all_nodes_start_again_after_a_rank_failed(lab)


async def test_a_host_that_is_killed_is_followed_by_another_and_stopping_frees_all(
    lab: Any, bed: Any
) -> None:
    """The first host is a process that gets SIGKILL; the second one stops what it finds."""
    lab.write("训练.py", f"{suite.MEET}\nmeet(0)\nprint('up', flush=True)\ntime.sleep(600)")
    lab.hand_over()
    run = await lab.start({"train": suite.script("训练.py", distributed={"nodes": 2})})

    def is_up() -> bool:
        logs = lab.store.folder.glob(f"{run.id}/**/replicas/*.log")
        return sorted(log.read_text() for log in logs) == ["up\n", "up\n"]

    await eventually(is_up, "both ranks are up")
    await lab.close()
    host = lab.start_host()
    await eventually(lambda: suite.owner_of(lab, run.id) == host.pid, "the host drives the run")
    host.kill()
    host.wait()
    lab.open()
    assert await lab.engine.resume() == [run.id]
    await lab.engine.stop(run.id)
    state = await lab.engine.wait(run.id, PATIENCE)
    assert (state.state, len(state.steps["train"].attempts)) == ("cancelled", 1)
    assert [each["state"] for each in suite.replicas_of(lab, run)] == ["cancelled"] * 2

    async def is_gone() -> bool:
        return not await asyncio.to_thread(left_of, bed, run.id)

    await eventually(is_gone, "its pods and its objects are gone")


async def test_a_pod_that_is_killed_ends_all_of_them(lab: Any, bed: Any) -> None:
    """An operator would start it again alone, and the others would wait for it for ever."""
    lab.write("train.py", f"{suite.MEET}\nmeet(0)\nprint('up', flush=True)\ntime.sleep(600)")
    run = await lab.start({"train": suite.script("train.py", distributed={"nodes": 2})})

    def is_up() -> bool:
        logs = lab.store.folder.glob(f"{run.id}/**/replicas/*.log")
        return sorted(log.read_text() for log in logs) == ["up\n", "up\n"]

    await eventually(is_up, "both ranks are up")
    (second,) = [pod for pod in bed.pods(run.id) if place_of(pod)[1] == 1]
    await asyncio.to_thread(bed.admin.delete, bed.admin.path("pods", second["metadata"]["name"]))
    state = await lab.engine.wait(run.id, PATIENCE)
    step = state.steps["train"]
    assert (step.state, len(step.attempts)) == ("failed", 1), step.reason
    assert {each["state"] for each in suite.replicas_of(lab, run)} <= {"failed", "cancelled"}


async def test_a_rank_whose_pod_is_evicted_is_named_and_all_are_tried_again(
    lab: Any, bed: Any
) -> None:
    wait = "print('up', flush=True)\nif os.environ['CONVECT_ATTEMPT'] == '1': time.sleep(600)"
    lab.write("train.py", f"{suite.MEET}\nmeet(0)\n{wait}")
    again = {"count": 1, "delay": 0}
    train = suite.script("train.py", distributed={"nodes": 2}, retries=again)
    run = await lab.start({"train": train})

    def is_up() -> bool:
        logs = lab.store.folder.glob(f"{run.id}/**/replicas/*.log")
        return sorted(log.read_text() for log in logs) == ["up\n", "up\n"]

    await eventually(is_up, "both ranks are up")
    (second,) = [pod for pod in bed.pods(run.id) if place_of(pod)[1] == 1]
    name = second["metadata"]["name"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    path = f"{bed.admin.path('pods', name)}/eviction"
    await asyncio.to_thread(bed.admin.create, path, eviction)
    state = await lab.engine.wait(run.id, PATIENCE)
    first, last = state.steps["train"].attempts
    assert (first.state, last.state) == ("failed", "succeeded"), (first.reason, last.reason)
    assert first.reason == "Rank 1 failed: Its node is being drained."
    told = json.loads((lab.result(run, "train").parent / "1" / "outputs.json").read_text())
    assert [each["state"] for each in told["replicas"]] == ["cancelled", "failed"]


ELASTIC = f"""{suite.MEET}
print("round", os.environ["CONVECT_RESTART"], "of", SIZE, meet(1), flush=True)
if SIZE == 3: open("all", "w").close()
while SIZE == 3 or not os.path.exists("all"): time.sleep(0.1)
"""
"""A pod may come so late that the others have begun without it."""


async def test_those_that_are_left_go_on_without_a_pod_that_is_lost(
    lab: Any, bed: Any, kind: str
) -> None:
    lab.write("train.py", ELASTIC)
    how = {"nodes": 3, "min_nodes": 2}
    if kind not in ("TrainJob", "none"):
        with pytest.raises(Refused, match="cannot continue with fewer nodes"):
            table.choose(Distributed(operator=kind, **how), table.OPERATORS, queued=False)
        return
    run = await lab.start({"train": suite.script("train.py", distributed=how)})

    def said(rank: int) -> str:
        (found,) = list(lab.store.folder.glob(f"{run.id}/**/replicas/{rank}.log")) or [None]
        return found.read_text() if found else ""

    await eventually(lambda: all("of 3 3" in said(rank) for rank in range(3)), "all are up")
    (second,) = [pod for pod in bed.pods(run.id) if place_of(pod)[1] == 1]
    await asyncio.to_thread(bed.admin.delete, bed.admin.path("pods", second["metadata"]["name"]))
    state = await lab.engine.wait(run.id, PATIENCE)
    step = state.steps["train"]
    assert (step.state, len(step.attempts)) == ("succeeded", 1), step.reason
    log = (lab.result(run, "train") / "log.txt").read_text()
    assert "[Restart, on 2 of 3 nodes: Node 1 was lost.]" in log
    assert all(said(rank).endswith(" of 2 2\n") for rank in (0, 2))
    states = [each["state"] for each in suite.replicas_of(lab, run)]
    assert (states[0], states[2]) == ("succeeded", "succeeded")
    assert states[1] in ("failed", "cancelled")


async def test_results_come_back_without_a_shared_volume(
    make_lab: Any, kind: str, operators: Any, bed: Any
) -> None:
    lab = by_operator(make_lab(shared=False), kind)
    await suite.test_replicas_on_several_nodes_work_together(lab)
    await clean_up(bed)


def left_of(bed: Any, run: str) -> list[Any]:
    found = list(bed.pods(run))
    operated = ("trainjobs", "trainingruntimes", "pytorchjobs", "tfjobs", "mpijobs")
    for plural in ("jobs", *operated, "services"):
        for item in bed.admin.list(bed.admin.path(plural)):
            if run in item["metadata"]["name"]:
                found.append(item)
    return found
