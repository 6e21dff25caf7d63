"""Volume claims that a run makes for itself: its steps share them, and they go with the run."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE, eventually

from jupyterlab_convect.pipeline.resolve import resolve

WRITE = "open('/scratch/word', 'w').write('from the first step')"
READ = "print(open('/scratch/word').read())"
WAIT = "import time\nprint('on', flush=True)\nwhile True: time.sleep(0.1)"

SCRATCH = {"claim": "scratch", "path": "/scratch", "size": "1Gi"}

Volume = Callable[[], dict[str, str]]


@pytest.fixture
def volume(bed: Any) -> Volume:
    """Makes a volume that a claim can have, and says how the document asks for it."""
    if bed.testbed is None:
        pytest.skip("The nodes of another cluster do not have a folder of this machine.")

    def make() -> dict[str, str]:
        name = f"{bed.namespace}-{secrets.token_hex(3)}"
        folder = Path(bed.shared, name)
        folder.mkdir()
        folder.chmod(0o777)
        manifest = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1Gi"},
                "storageClassName": name,
                "hostPath": {"path": str(folder)},
            },
        }
        bed.admin.create("/api/v1/persistentvolumes", manifest)
        bed.volumes.append(name)
        return {**SCRATCH, "storage_class": name}

    return make


def claims(bed: Any, run: Any) -> list[str]:
    selector = f"jupyterlab-convect.dev/run={run.id}"
    found = bed.admin.list(bed.admin.path("persistentvolumeclaims"), labelSelector=selector)
    return [item["metadata"]["name"] for item in found]


def script(path: str, **settings: Any) -> dict[str, Any]:
    return {"kind": "script", "path": path, **settings}


async def test_steps_share_it_and_it_is_gone_after_the_run(
    lab: Any, bed: Any, volume: Volume
) -> None:
    lab.write("write.py", WRITE)
    lab.write("read.py", READ)
    mounted = {"claim": "scratch", "path": "/scratch"}
    nodes = {
        "write": script("write.py", volumes=[volume()]),
        "read": script("read.py", volumes=[mounted], after=["write"]),
    }
    run, _ = await lab.succeed(nodes)
    assert (lab.result(run, "read") / "log.txt").read_text() == "from the first step\n"
    await eventually(lambda: not claims(bed, run), "the claim is gone", PATIENCE)
    assert bed.pods(run.id) == []


async def test_it_is_gone_after_a_failure_and_after_a_stop(
    lab: Any, bed: Any, volume: Volume
) -> None:
    lab.write("fail.py", "raise SystemExit(1)")
    lab.write("wait.py", WAIT)
    failed, state = await lab.finish({"step": script("fail.py", volumes=[volume()])})
    assert state.state == "failed"
    stopped = await lab.start({"step": script("wait.py", volumes=[volume()])})
    await eventually(
        lambda: lab.store.read(stopped.id).state.steps["step"].state == "running", "it runs"
    )
    assert claims(bed, stopped) == [f"scratch-{stopped.id}"]
    await lab.engine.stop(stopped.id)
    assert (await lab.engine.wait(stopped.id, PATIENCE)).state == "cancelled"
    for run in (failed, stopped):
        await eventually(lambda run=run: not claims(bed, run), "the claim is gone", PATIENCE)


async def test_it_is_said_before_the_run_what_would_keep_the_claim_waiting(make_lab: Any) -> None:
    lab = make_lab("viewer")

    async def told(**volume: Any) -> list[str]:
        node = {"kind": "command", "command": ["true"], "volumes": [{**SCRATCH, **volume}]}
        plan = resolve({"convect": 1, "nodes": {"a": node}}, root=lab.root)  # type: ignore[typeddict-item]
        return [problem.message for problem in await lab.runtime.check(plan)]

    assert "The cluster has no storage class none." in await told(storage_class="none")
    no_default = "The cluster has no default storage class for the volume claim scratch."
    assert no_default in await told()
