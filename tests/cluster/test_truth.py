"""Whatever happens in the cluster, the step ends or waits in the right state and says why."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from waiting import PATIENCE, until

QUICK = "print('done')"
WAIT = "import pathlib, time\npathlib.Path('up').touch()\n" + (
    "while not pathlib.Path('go').exists(): time.sleep(0.05)\n"
)


def script(path: str, **settings: Any) -> dict[str, Any]:
    return {"step": {"kind": "script", "path": path, **settings}}


def gpus(count: int, kind: str | None = None) -> dict[str, Any]:
    return {"gpu": {"count": count, **({"type": kind} if kind else {})}}


async def reached(
    lab: Any, run: Any, check: Callable[[Any], Any], seconds: float = PATIENCE
) -> Any:
    """The last attempt of the step, once `check` likes it."""
    deadline = time.monotonic() + seconds
    while True:
        step = lab.store.read(run.id).state.steps["step"]
        if step.attempts and check(step.attempts[-1]):
            return step.attempts[-1]
        seen = [(a.state, a.reason, a.detail) for a in step.attempts]
        assert time.monotonic() < deadline, f"never reached; it is {seen}"
        await asyncio.sleep(0.05)


async def started(lab: Any, run: Any) -> None:
    await reached(lab, run, lambda _: (lab.root / "up").exists())


async def ended(lab: Any, run: Any, seconds: float = PATIENCE) -> Any:
    state = await lab.engine.wait(run.id, seconds)
    return state.steps["step"].attempts[-1]


async def test_runs_take_turns_in_a_folder_that_is_too_large_to_copy(lab: Any) -> None:
    """And the one that waits says for whom."""
    lab.write("a.py", WAIT)
    for name in (".convect", "many"):
        (lab.root / name).mkdir()
    for number in range(5001):
        (lab.root / f"many/{number}").touch()
    first = await lab.start(script("a.py"), own_view=True)
    await started(lab, first)
    second = await lab.start(script("a.py"), own_view=True)
    seen = await reached(lab, second, lambda a: "Waiting for its turn" in (a.reason or ""))
    assert seen.state == "queued"
    assert f"run {first.id} works in {lab.root}" in seen.reason
    lab.write("go", "")
    assert [(await ended(lab, run)).state for run in (first, second)] == ["succeeded"] * 2


async def test_an_image_that_does_not_exist(lab: Any) -> None:
    lab.write("a.py", QUICK)
    run = await lab.start(script("a.py", image="127.0.0.1:1/no/such:1"))
    seen = await reached(lab, run, lambda attempt: "image" in (attempt.reason or ""))
    assert seen.state == "starting"
    end = await ended(lab, run)
    assert end.state == "failed"
    assert "127.0.0.1:1/no/such:1" in end.reason
    assert end.detail


async def test_an_image_without_papermill(lab: Any, bed: Any) -> None:
    if bed.bare is None:
        pytest.skip("No such image.")
    lab.notebook("a.ipynb", "1")
    run = await lab.start({"step": {"kind": "notebook", "path": "a.ipynb", "image": bed.bare}})
    end = await ended(lab, run)
    assert end.state == "failed"
    assert "papermill" in end.reason


async def test_an_image_without_python(lab: Any, bed: Any) -> None:
    if bed.testbed is None:
        pytest.skip("No such image.")
    lab.write("a.py", QUICK)
    end = await ended(lab, await lab.start(script("a.py", image=bed.testbed.images.PAUSE)))
    assert end.state == "failed"
    assert (
        end.reason == f"The image {bed.testbed.images.PAUSE} has no python3, which runs the steps."
    )


async def test_memory_runs_out(lab: Any) -> None:
    lab.write("a.py", "x = []\nwhile True: x.append(b'1' * (1 << 20))")
    limit = {"memory": {"request": "32Mi", "limit": "128Mi"}}
    end = await ended(lab, await lab.start(script("a.py", resources=limit)))
    assert end.state == "failed"
    assert "memory" in end.reason


async def test_gpus_that_are_taken(make_lab: Any, bed: Any) -> None:
    holder, waiter = make_lab("viewer"), make_lab("viewer")
    holder.write("a.py", WAIT)
    waiter.write("a.py", QUICK)
    first = await holder.start(script("a.py", resources=gpus(3)))
    await started(holder, first)
    second = await waiter.start(script("a.py", resources=gpus(2, "A100")))
    seen = await reached(
        waiter, second, lambda a: a.state == "queued" and "largest free" in (a.reason or "")
    )
    node = (await asyncio.to_thread(bed.pods, first.id))[0]["spec"]["nodeName"]
    assert seen.reason == (
        f"Waiting: needs 2 GPUs of type A100 on one node; the largest free is 1 on {node}."
    )
    assert "nvidia.com/gpu" in seen.detail
    await holder.engine.stop(first.id)
    assert (await ended(waiter, second)).state == "succeeded"


async def test_gpus_that_are_taken_where_nodes_are_not_shown(make_lab: Any) -> None:
    lab = make_lab("convect")
    lab.write("a.py", QUICK)
    run = await lab.start(script("a.py", resources=gpus(64)))
    seen = await reached(lab, run, lambda attempt: "GPUs" in (attempt.reason or ""))
    assert seen.state == "queued"
    assert seen.reason.startswith("Waiting for room on")
    await lab.engine.stop(run.id)
    assert (await ended(lab, run)).state == "cancelled"


async def test_a_type_of_gpu_that_nobody_has(make_lab: Any) -> None:
    lab = make_lab("viewer")
    lab.write("a.py", QUICK)
    run = await lab.start(script("a.py", resources=gpus(1, "H100")))
    seen = await reached(lab, run, lambda attempt: "H100" in (attempt.reason or ""))
    assert seen.state == "queued"
    await lab.engine.stop(run.id)
    assert (await ended(lab, run)).state == "cancelled"


@pytest.fixture
def quota(bed: Any) -> Iterator[None]:
    bed.create("ResourceQuota", "gpus", spec={"hard": {"requests.nvidia.com/gpu": "2"}})
    place = bed.admin.path("resourcequotas", "gpus")
    nothing = {"requests.nvidia.com/gpu": "0"}
    until(lambda: bed.admin.get(place)["status"].get("used") == nothing, "an unused quota")
    yield
    bed.admin.delete(bed.admin.path("resourcequotas", "gpus"))


async def test_a_quota_that_is_used_up(make_lab: Any, quota: None) -> None:
    holder, waiter = make_lab(), make_lab(patience=0)
    holder.write("a.py", WAIT)
    waiter.write("a.py", QUICK)
    first = await holder.start(script("a.py", resources=gpus(1)))
    await started(holder, first)
    second = await waiter.start(script("a.py", resources=gpus(2)))
    seen = await reached(waiter, second, lambda attempt: "quota" in (attempt.reason or ""))
    assert seen.state == "queued"
    assert seen.reason == "Waiting for the quota gpus: it needs 2 GPUs, and 1 of 2 is left."
    assert "exceeded quota" in seen.detail
    holder.write("go", "")
    assert (await ended(holder, first)).state == "succeeded"
    assert (await ended(waiter, second, 90)).state == "succeeded"


async def test_more_than_the_quota_allows_at_all(lab: Any, quota: None) -> None:
    lab.write("a.py", QUICK)
    end = await ended(lab, await lab.start(script("a.py", resources=gpus(3))))
    assert end.state == "failed"
    assert "2 is all that it allows" in end.reason


async def test_a_secret_that_does_not_exist(lab: Any) -> None:
    lab.write("a.py", QUICK)
    secrets = [{"env": "TOKEN", "name": "no-such", "key": "k"}]
    end = await ended(lab, await lab.start(script("a.py", secrets=secrets)))
    assert end.state == "failed"
    assert end.reason == "There is no secret no-such in the namespace."


async def test_a_secret_reaches_the_step_and_nothing_else(lab: Any, bed: Any) -> None:
    bed.create("Secret", "s3", stringData={"key": "hunter2hunter2"})
    lab.write("a.py", "import os; t = os.environ['TOKEN']; print(t, len(t))")
    secrets = [{"env": "TOKEN", "name": "s3", "key": "key"}]
    run = await lab.start(script("a.py", secrets=secrets))
    assert (await ended(lab, run)).state == "succeeded"
    folder = lab.store.run_folder(run.id)
    assert (lab.result(run, "step") / "log.txt").read_text() == "*** 14\n"
    kept = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    assert not any(b"hunter2" in content for content in kept)


async def test_a_claim_that_does_not_exist(lab: Any) -> None:
    lab.write("a.py", QUICK)
    volumes = [{"claim": "no-such", "path": "/data"}]
    end = await ended(lab, await lab.start(script("a.py", volumes=volumes)))
    assert end.state == "failed"
    assert end.reason == "There is no volume claim no-such in the namespace."


async def test_a_pod_that_somebody_deletes_is_tried_again(lab: Any, bed: Any) -> None:
    lab.write("a.py", WAIT)
    retries = {"count": 1, "delay": 0.1}
    run = await lab.start(script("a.py", retries=retries))
    await started(lab, run)
    pod = (await asyncio.to_thread(bed.pods, run.id))[0]["metadata"]["name"]
    await asyncio.to_thread(bed.admin.delete, bed.admin.path("pods", pod))
    await reached(lab, run, lambda attempt: attempt.attempt == 2)
    lab.write("go", "")
    state = await lab.engine.wait(run.id, PATIENCE)
    first, second = state.steps["step"].attempts
    assert (first.state, second.state) == ("failed", "succeeded")
    assert "from outside" in first.reason


async def test_a_pod_that_is_evicted_says_so(lab: Any, bed: Any) -> None:
    lab.write("a.py", WAIT)
    run = await lab.start(script("a.py"))
    await started(lab, run)
    pod = (await asyncio.to_thread(bed.pods, run.id))[0]["metadata"]["name"]
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": bed.namespace},
    }
    place = f"{bed.admin.path('pods', pod)}/eviction"
    await asyncio.to_thread(bed.admin.create, place, eviction)
    end = await ended(lab, run)
    assert end.state == "failed"
    assert end.reason == "Its node is being drained."


async def test_a_job_that_somebody_deletes(lab: Any, bed: Any) -> None:
    lab.write("a.py", "import signal, time\nsignal.signal(15, signal.SIG_IGN)\n" + WAIT)
    run = await lab.start(script("a.py"))
    await started(lab, run)
    name = lab.store.read(run.id).state.steps["step"].attempts[0].handle["job"]
    await asyncio.to_thread(
        bed.admin.delete, bed.admin.path("jobs", name), propagationPolicy="Background"
    )
    end = await ended(lab, run)
    assert end.state == "failed"
    assert "outside" in end.reason or "deleted" in end.reason


async def test_starting_twice_makes_one_job(lab: Any, bed: Any) -> None:
    lab.write("a.py", WAIT)
    run = await lab.start(script("a.py"))
    await started(lab, run)
    attempt = next(iter(lab.engine._drivers[run.id].actives.values())).attempt
    again = [handle async for handle in lab.runtime.start(attempt)]
    assert again == [attempt.handle]
    assert len(await asyncio.to_thread(bed.pods, run.id)) == 1
    lab.write("go", "")
    assert (await ended(lab, run)).state == "succeeded"


async def test_the_api_server_goes_away_and_comes_back(
    lab: Any, bed: Any, refusals: list[Exception]
) -> None:
    if bed.testbed is None:
        pytest.skip("Not on a cluster of others.")
    lab.write("a.py", WAIT)
    lab.write("b.py", QUICK)
    nodes = {**script("a.py"), "next": {"kind": "script", "path": "b.py", "after": ["step"]}}
    run = await lab.start(nodes)
    await started(lab, run)
    await asyncio.to_thread(bed.testbed.kill, "apiserver")
    lab.write("go", "")
    try:
        # The step ends, and the next one is to be started, while nobody answers.
        await reached(lab, run, lambda attempt: attempt.state == "succeeded")
        await asyncio.to_thread(until, lambda: refusals, "a try to start the next one")
    finally:
        await asyncio.to_thread(bed.testbed.restart, "apiserver")
    state = await lab.engine.wait(run.id, 90)
    assert state.state == "succeeded", state.reason
    assert [len(step.attempts) for step in state.steps.values()] == [1, 1]


async def test_a_node_that_does_not_answer_for_a_while(lab: Any, bed: Any) -> None:
    if bed.testbed is None:
        pytest.skip("Not on a cluster of others.")
    lab.write("a.py", WAIT)
    run = await lab.start(script("a.py"))
    await started(lab, run)
    await asyncio.to_thread(bed.testbed.kill, "kubelet")
    try:
        seen = await reached(lab, run, lambda a: "does not respond" in (a.reason or ""))
        assert seen.state == "running"
    finally:
        await asyncio.to_thread(bed.testbed.restart, "kubelet")
    lab.write("go", "")
    assert (await ended(lab, run, 90)).state == "succeeded"
