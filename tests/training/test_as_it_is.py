"""Training jobs in YAML that are run as they are, on the real operators."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType
from typing import Any

import images
import pytest
import yaml
from conformance_lab import Lab
from operated import clean_up
from waiting import PATIENCE, eventually

from jupyterlab_convect.runtimes.local.runtime import LocalRuntime

RING = """
import os, socket, sys, time
e = os.environ
rank = int(e.get("RANK") or e.get("PET_NODE_RANK") or 0)
print("训练", rank, flush=True)
if "RANK" in e and rank == 0:
    socket.create_server(("", int(e["MASTER_PORT"]))).accept()
elif "RANK" in e:
    while True:
        try:
            socket.create_connection((e["MASTER_ADDR"], int(e["MASTER_PORT"])), 60)
            break
        except OSError:
            time.sleep(0.1)
if e.get("FAIL") == str(rank):
    time.sleep(float(e.get("LATE", "0")))
    sys.exit(3)
time.sleep(float(e.get("STAY", "0")))
"""
"""The first rank of a PyTorchJob goes on when it has met the other."""
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}


def pod(container: str, **env: str) -> dict[str, Any]:
    step = {
        "name": container,
        "image": images.BARE,
        "imagePullPolicy": "Never",
        "command": ["python3", "-u", "-c", RING],
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "securityContext": RESTRICTED,
    }
    context = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    return {
        "containers": [step],
        "securityContext": context,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 1,
    }


def pytorch_job(name: str, **env: str) -> dict[str, Any]:
    role = {"replicas": 1, "restartPolicy": "Never", "template": {"spec": pod("pytorch", **env)}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {"pytorchReplicaSpecs": {"Master": role, "Worker": role}},
    }


def train_job(name: str, runtime: str) -> dict[str, Any]:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {
            "runtimeRef": {"name": runtime, "kind": "TrainingRuntime"},
            "trainer": {"numNodes": 2},
        },
    }


def training_runtime(name: str) -> dict[str, Any]:
    job = {
        "name": "node",
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {
                "backoffLimit": 0,
                "template": {"spec": {**pod("node"), "restartPolicy": "Never"}},
            },
        },
    }
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": name, "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {}},
            "template": {"spec": {"replicatedJobs": [job]}},
        },
    }


@pytest.fixture
async def lab(
    tmp_path: Path, bed: Any, operators: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Lab]:
    """Runs on this machine, with the rights of `deploy/role.yaml` in the cluster."""
    monkeypatch.setenv("KUBECONFIG", str(bed.account("convect")))
    lab = Lab(tmp_path, LocalRuntime)
    yield lab
    await lab.close()
    await clean_up(bed)


async def start(lab: Lab, job: dict[str, Any]) -> Any:
    lab.write("任务.yaml", yaml.safe_dump(job))
    command = [str(Path(sys.executable).with_name("convect")), "training", "run", "任务.yaml"]
    return await lab.start({"train": {"kind": "command", "command": command}})


def ranks_of(lab: Lab, run: Any) -> list[tuple[int, str, int | None]]:
    path = lab.result(run, "train") / "replicas.json"
    told = json.loads(path.read_text())["replicas"]
    return [(each["rank"], each["state"], each.get("exit_code")) for each in told]


async def test_a_pytorchjob_is_followed_rank_by_rank(lab: Lab, bed: Any) -> None:
    run = await start(lab, pytorch_job("as-it-is"))
    state = await lab.engine.wait(run.id, PATIENCE)
    assert state.state == "succeeded", state.steps["train"].reason
    assert ranks_of(lab, run) == [(0, "succeeded", 0), (1, "succeeded", 0)]
    folder = lab.result(run, "train")
    for rank in range(2):
        assert (folder / "replicas" / f"{rank}.log").read_text() == f"训练 {rank}\n"
        assert f"[{rank}] 训练 {rank}\n" in (folder / "log.txt").read_text()


async def test_a_rank_that_fails_is_named_and_nothing_runs_on(lab: Lab, bed: Any) -> None:
    """The operator itself leaves the master running."""
    run = await start(lab, pytorch_job("fails", FAIL="1", STAY="600"))
    state = await lab.engine.wait(run.id, PATIENCE)
    assert state.state == "failed"
    assert "Rank 1 exited with code 3" in (state.steps["train"].reason or "")
    await no_pods(bed)


async def test_a_job_is_not_green_because_its_operator_says_so(lab: Lab, bed: Any) -> None:
    """The master ends well, which is success for the operator, and then the worker fails."""
    run = await start(lab, pytorch_job("lies", FAIL="1", LATE="3"))
    state = await lab.engine.wait(run.id, PATIENCE)
    assert state.state == "failed"
    assert "ank 1 exited with code 3" in (state.steps["train"].reason or "")
    assert ranks_of(lab, run) == [(0, "succeeded", 0), (1, "failed", 3)]


async def test_a_trainjob_is_followed_rank_by_rank(lab: Lab, bed: Any) -> None:
    bed.admin.create(bed.admin.path("trainingruntimes"), training_runtime("plain"))
    run = await start(lab, train_job("as-it-is", "plain"))
    state = await lab.engine.wait(run.id, PATIENCE)
    assert state.state == "succeeded", state.steps["train"].reason
    assert ranks_of(lab, run) == [(0, "succeeded", 0), (1, "succeeded", 0)]


def mpi_job(name: str, launcher: str) -> dict[str, Any]:
    def role(code: str, count: int) -> dict[str, Any]:
        spec = pod("mpi")
        spec["containers"][0]["command"] = ["python3", "-u", "-c", code]
        return {"replicas": count, "restartPolicy": "Never", "template": {"spec": spec}}

    wait = "import signal, sys; signal.signal(15, lambda *_: sys.exit(0)); signal.pause()"
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {
            "slotsPerWorker": 1,
            "sshAuthMountPath": "/tmp/ssh",
            "runPolicy": {"cleanPodPolicy": "Running", "backoffLimit": 0},
            "mpiReplicaSpecs": {"Launcher": role(launcher, 1), "Worker": role(wait, 2)},
        },
    }


async def test_an_mpijob_has_the_lines_of_its_ranks(lab: Lab, bed: Any) -> None:
    """What mpirun prints with `--tag-output`, and the workers that end with its launcher."""
    say = "[print(f'[1,{rank}]<stdout>:训练 {rank}', flush=True) for rank in range(2)]"
    run = await start(lab, mpi_job("as-it-is", say))
    state = await lab.engine.wait(run.id, PATIENCE)
    assert state.state == "succeeded", state.steps["train"].reason
    folder = lab.result(run, "train")
    for rank in range(2):
        assert (folder / "replicas" / f"{rank}.log").read_text() == f"训练 {rank}\n"
    again = await start(lab, mpi_job("as-it-fails", "raise SystemExit(3)"))
    state = await lab.engine.wait(again.id, PATIENCE)
    assert state.state == "failed"
    assert "exited with code 3" in (state.steps["train"].reason or "")


async def test_a_killed_server_is_survived_and_stopping_deletes(lab: Lab, bed: Any) -> None:
    run = await start(lab, pytorch_job("long", STAY="600"))

    def is_up() -> bool:
        logs = lab.store.folder.glob(f"{run.id}/**/replicas/*.log")
        return sorted(log.read_text() for log in logs) == ["训练 0\n", "训练 1\n"]

    await eventually(is_up, "both ranks are up")
    await lab.close()
    host = lab.start_host()
    await eventually(lambda: host.poll() is None and lab_is_driven(lab, run), "it is driven")
    host.kill()
    host.wait()
    lab.open()
    assert await lab.engine.resume() == [run.id]
    await lab.engine.stop(run.id)
    assert (await lab.engine.wait(run.id, PATIENCE)).state == "cancelled"
    await no_pods(bed)
    assert not bed.admin.list(bed.admin.path("pytorchjobs"))


def lab_is_driven(lab: Lab, run: Any) -> bool:
    return len(list((lab.store.folder / run.id).glob("lease-*.json"))) > 0


async def no_pods(bed: Any) -> None:
    async def is_gone() -> bool:
        return not await asyncio.to_thread(bed.pods)

    await eventually(is_gone, "all pods are gone")
