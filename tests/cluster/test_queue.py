"""A queue of the real Kueue: what is said before, while a step waits, and when it is let in."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Iterator
from typing import Any

import pytest
from support import container_of
from waiting import PATIENCE, eventually, until

from jupyterlab_convect.pipeline.resolve import plan_for_file
from jupyterlab_convect.runtimes.capacity import as_json
from jupyterlab_convect.runtimes.kubernetes.queues import LABEL, Workload, workload_of

API = "/apis/kueue.x-k8s.io/v1beta2"
WAIT = "import pathlib, time\nwhile not pathlib.Path('go').exists(): time.sleep(0.05)\n"


@pytest.fixture(scope="module")
def queue(bed: Any, request: pytest.FixtureRequest) -> Iterator[str]:
    """One that lets two GPUs in, with one that is closed beside it. A module names the kinds of
    objects beside Jobs that it lets in."""
    if bed.testbed is None or shutil.which("go") is None:
        pytest.skip("It needs a cluster of our own, and Go for Kueue.")
    import kueue

    kueue.up(*getattr(request.module, "FRAMEWORKS", ()))
    name = bed.namespace
    everywhere: dict[str, Any] = {}

    def make(kind: str, name: str, place: str, spec: Any) -> None:
        version = API.removeprefix("/apis/")
        manifest = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
        bed.admin.create(place, manifest)

    flavors = [{"name": name, "resources": [
        {"name": "cpu", "nominalQuota": "100"},
        {"name": "memory", "nominalQuota": "100Gi"},
        {"name": "nvidia.com/gpu", "nominalQuota": "2"},
    ]}]  # fmt: skip
    covered = ["cpu", "memory", "nvidia.com/gpu"]
    groups = [{"coveredResources": covered, "flavors": flavors}]
    make("ResourceFlavor", name, f"{API}/resourceflavors", everywhere)
    make(
        "ClusterQueue",
        name,
        f"{API}/clusterqueues",
        {"namespaceSelector": everywhere, "resourceGroups": groups},
    )
    own = f"{API}/namespaces/{bed.namespace}/localqueues"
    make("LocalQueue", "team", own, {"clusterQueue": name})
    make("LocalQueue", "closed", own, {"clusterQueue": "no-such"})
    until(
        lambda: [c for c in _conditions(bed, f"{own}/team") if c["status"] == "True"],
        "an open queue",
    )
    until(lambda: _conditions(bed, f"{own}/closed"), "a closed queue")
    yield "team"
    for kind in ("clusterqueues", "resourceflavors"):
        bed.admin.delete(f"{API}/{kind}/{name}")
    kueue.down()


def _conditions(bed: Any, path: str) -> list[Any]:
    return bed.admin.get(path).get("status", {}).get("conditions") or []


def settings(queue: str, gpus: int = 2) -> dict[str, Any]:
    return {"resources": {"gpu": gpus}, "kubernetes": {"labels": {LABEL: queue}}}


async def problems(lab: Any, queue: str) -> dict[str, str]:
    plan = plan_for_file("a.py", lab.root, {}, settings(queue))
    return {item.code: item.message for item in await lab.runtime.check(plan)}


async def waiting(lab: Any, run: Any, words: str) -> Any:
    def look() -> Any:
        attempts = lab.store.read(run.id).state.steps["a"].attempts
        return attempts[-1] if attempts and words in (attempts[-1].reason or "") else None

    return await eventually(look, f"“{words}” was said")


async def test_a_step_waits_in_a_queue(make_lab: Any, queue: str, bed: Any) -> None:
    labs = [make_lab("viewer") for _ in range(3)]
    for lab in labs:
        lab.write("a.py", WAIT)
    assert not {"no-queue", "queue-closed", "would-wait"} & (await problems(labs[0], queue)).keys()
    assert "no-queue" in await problems(labs[0], "other")
    assert "admits no workloads" in (await problems(labs[0], "closed"))["queue-closed"]
    first = await labs[0].start("a.py", settings=settings(queue))
    await asyncio.to_thread(
        until, lambda: [p for p in bed.pods(first.id) if p["status"]["phase"] == "Running"], "a pod"
    )
    second = await labs[1].start("a.py", settings=settings(queue))
    seen = await waiting(labs[1], second, "it is next")
    assert seen.state == "queued"
    assert seen.reason == "Waiting in the queue team: it is next, and the queue lacks 2 GPUs."
    assert "insufficient unused quota" in seen.detail
    third = await labs[2].start("a.py", settings=settings(queue))
    await waiting(labs[2], third, "1 before it")

    async def both_wait() -> bool:
        queues = as_json(await labs[2].runtime.capacity())["queues"]
        return bool({each["name"]: each["waiting"] for each in queues}["team"] == 2)

    await eventually(both_wait, "two wait")
    said = (await problems(labs[2], queue))["would-wait"]
    assert said == "It would wait: 2 wait in the queue team already."
    for lab in labs:
        lab.write("go", "")
    for lab, run in zip(labs, (first, second, third), strict=True):
        assert (await lab.engine.wait(run.id, PATIENCE)).state == "succeeded"


def make_job(bed: Any, name: str, queue: str) -> None:
    """Of somebody else, which holds all GPUs of the queue for two seconds."""
    container = container_of(bed, "sleep", "2", cpu="10m", memory="16Mi", gpu="2")
    spec = {"restartPolicy": "Never", "containers": [container]}
    bed.admin.create(
        bed.admin.path("jobs"),
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "labels": {LABEL: queue}},
            "spec": {"suspend": True, "backoffLimit": 0, "template": {"spec": spec}},
        },
    )


async def test_positions_and_waits_are_those_of_the_queue(
    make_lab: Any, queue: str, bed: Any
) -> None:
    """Seven of others and then a run of ours: the order that is told is that in which Kueue admits
    them, and how long it takes is told once five of them have waited."""
    lab = make_lab("viewer")
    lab.write("a.py", "print(1)")
    workloads = f"{API}/namespaces/{bed.namespace}/workloads"

    def listed() -> list[Workload]:
        return [workload_of(item) for item in bed.admin.list(workloads)]

    def others(count: int) -> None:
        """Each a second later than the one before: Kueue's clock knows no smaller part."""
        for number in range(count):
            before = len(listed())
            make_job(bed, f"other-{number}", queue)
            until(lambda before=before: len(listed()) > before, "a workload")
            newest = max(each.created for each in listed())
            until(lambda newest=newest: time.time() >= newest + 1, "a second has passed")

    await eventually(lambda: not listed(), "nothing is left of others")
    await asyncio.to_thread(others, 7)
    run = await lab.start("a.py", settings=settings(queue))
    told: list[list[str]] = []
    samples: list[int | None] = []
    ours: set[str] = set()

    async def ended() -> bool:
        queues = (await lab.runtime.capacity()).queues
        now = next(each for each in queues if each.name == queue)
        assert [each.position for each in now.workloads] == [*range(1, len(now.workloads) + 1)]
        told.append([each.name for each in now.workloads])
        ours.update(each.name for each in now.workloads if each.run == run.id)
        for each in now.workloads:
            assert (each.wait is None) is (now.workloads[0].wait is None)
            if each.wait is not None:
                first = now.workloads[0].wait
                assert 0 < each.wait.shortest <= each.wait.longest
                assert each.wait.shortest == first.shortest * each.position
        if now.workloads:
            wait = now.workloads[0].wait
            samples.append(wait.samples if wait else None)
        return bool(lab.store.read(run.id).state.state == "succeeded")

    await eventually(ended, "all have been admitted")
    admitted = sorted(listed(), key=lambda each: each.admitted or 0.0)
    order = [each.name for each in admitted]
    assert {order[-1]} == ours, "ours was the last, and was known as ours"
    for names in told:
        assert names == [name for name in order if name in names]
    assert samples[0] is None, "nobody has waited yet"
    estimated = [each for each in samples if each is not None]
    assert estimated, "how long it takes was told"
    assert min(estimated) >= 5
