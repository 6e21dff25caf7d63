"""What an operator says of a training job, and which rank a pod is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from jupyterlab_convect.runtimes.kubernetes import job_file
from jupyterlab_convect.runtimes.kubernetes.api import Api, ApiError, ClusterUnreachable
from jupyterlab_convect.runtimes.kubernetes.job_file import (
    JobRun,
    ending,
    failed_end,
    first_end,
    rank_of,
    replica_of,
)

from ...pipeline.training.jobs import GOOD, MPI_JOB, TRAIN_JOB


def labelled(**labels: str) -> dict[str, Any]:
    prefix = {f"training.kubeflow.org/{key.replace('_', '-')}": labels[key] for key in labels}
    return {"metadata": {"name": "p", "labels": prefix}}


@pytest.mark.parametrize(
    ("conditions", "end"),
    [
        ([], None),
        ([("Running", "True", "")], None),
        ([("Running", "False", ""), ("Succeeded", "True", "done")], (True, "done")),
        ([("Complete", "True", "jobset completed")], (True, "jobset completed")),
        (
            [("Running", "False", ""), ("Failed", "True", "1 Worker failed")],
            (False, "1 Worker failed"),
        ),
        ([("Failed", "False", "no")], None),
    ],
)
def test_how_it_ended(conditions: list[tuple[str, str, str]], end: tuple[bool, str] | None) -> None:
    told = [
        {"type": kind, "status": status, "message": words} for kind, status, words in conditions
    ]
    assert ending({"status": {"conditions": told}}) == end


def test_ranks() -> None:
    torch, mpi, train = (yaml.safe_load(text) for text in (GOOD, MPI_JOB, TRAIN_JOB))
    assert rank_of(torch, labelled(replica_type="master", replica_index="0")) == 0
    assert rank_of(torch, labelled(replica_type="worker", replica_index="1")) == 2
    assert rank_of(mpi, labelled(job_role="launcher")) is None
    assert rank_of(mpi, labelled(job_role="worker", replica_index="1")) == 1
    labels = {
        "jobset.sigs.k8s.io/replicatedjob-name": "node",
        "batch.kubernetes.io/job-completion-index": "1",
    }
    assert rank_of(train, {"metadata": {"name": "p", "labels": labels}}) == 1


def test_the_first_that_failed_is_the_first_by_time() -> None:
    def pod(name: str, code: int, at: str) -> dict[str, Any]:
        end = {"exitCode": code, "finishedAt": at}
        status = {"containerStatuses": [{"state": {"terminated": end}}]}
        return {"metadata": {"name": name}, "status": status}

    pods = [
        pod("a", 143, "2026-11-17T10:00:09Z"),
        pod("b", 3, "2026-11-17T10:00:05Z"),
        pod("c", 0, "2026-11-17T10:00:01Z"),
    ]
    found = first_end(pods)
    assert found is not None
    assert (found[0]["metadata"]["name"], found[1]) == ("b", 3)
    assert first_end([{"metadata": {}, "status": {}}]) is None


class Cluster:
    """Has one job, and answers each question about it with the next of its answers."""

    namespace = "default"

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.deleted: list[str] = []

    def path(self, kind: str, name: str = "", *, namespace: str | None = None) -> str:
        return f"/{kind}/{name}"

    def create(self, path: str, body: Any) -> Any:
        body["metadata"]["namespace"] = self.namespace
        return body

    def get(self, path: str) -> Any:
        return self._next(lambda each: not isinstance(each, list))

    def list(self, path: str, **query: Any) -> Any:
        return self._next(lambda each: isinstance(each, list | ApiError))

    def delete(self, path: str, **options: Any) -> None:
        self.deleted.append(path)

    def _next(self, fits: Callable[[Any], bool]) -> Any:
        answer = self.answers.pop(0)
        assert fits(answer)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def job_with(kind: str | None = None) -> dict[str, Any]:
    job: dict[str, Any] = yaml.safe_load(GOOD)
    job["metadata"]["namespace"] = "default"
    conditions = [{"type": kind, "status": "True", "message": "done"}] if kind else []
    return {**job, "status": {"conditions": conditions}}


def follow(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> tuple[int, list[str]]:
    monkeypatch.setattr(job_file, "PAUSE", 0)
    said: list[str] = []
    code = JobRun(cast(Api, cluster), yaml.safe_load(GOOD), said.append).run()
    return code, said


def test_trouble_of_the_cluster_ends_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    trouble = ApiError(500, "etcdserver: leader changed")
    cluster = Cluster(
        job_with(), [], trouble, trouble, ClusterUnreachable("no route"),
        job_with(), ApiError(403, "pods is forbidden"),
        job_with("Succeeded"), [], [],
    )  # fmt: skip
    code, said = follow(cluster, monkeypatch)
    assert (code, cluster.deleted) == (0, [])
    assert said[0].endswith("was created.")
    assert said[-1].endswith("succeeded.")
    assert [words for words in said if "leader changed" in words] == [
        "The cluster refused to read training jobs: etcdserver: leader changed."
    ]
    assert "The cluster cannot be reached: no route." in said
    assert "You are not allowed to read pods in namespace default: pods is forbidden." in said


def test_whoever_stops_following_has_the_job_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(job_with(), [], SystemExit(143))
    with pytest.raises(SystemExit):
        follow(cluster, monkeypatch)
    assert len(cluster.deleted) == 1


def test_a_job_that_somebody_else_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    code, said = follow(Cluster(ApiError(404, "not found")), monkeypatch)
    assert code == 1
    assert said[-1].endswith("was deleted.")


def pod_of(number: int, phase: str, code: int | None = None, **metadata: str) -> dict[str, Any]:
    labels = {
        "training.kubeflow.org/replica-type": "worker",
        "training.kubeflow.org/replica-index": str(number),
    }
    at = "2026-11-17T10:00:05Z"
    end = {"exitCode": code, "startedAt": at, "finishedAt": at}
    state = {"running": {"startedAt": at}} if code is None else {"terminated": end}
    return {
        "metadata": {"name": f"w{number}", "labels": labels, "namespace": "default", **metadata},
        "spec": {"nodeName": "n1", "containers": [{"name": "pytorch", "image": "i"}]},
        "status": {"phase": phase, "containerStatuses": [{"name": "pytorch", "state": state}]},
    }


def test_a_job_with_a_pod_that_failed_has_not_succeeded(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = [pod_of(0, "Failed", 3)]
    cluster = Cluster(job_with("Succeeded"), pods, pods)
    monkeypatch.setattr(JobRun, "_read", lambda self, name: None)
    code, said = follow(cluster, monkeypatch)
    assert (code, said[-1].endswith("succeeded, but rank 1 exited with code 3.")) == (1, True)
    stopped = pod_of(0, "Failed", 143, deletionTimestamp="2026-11-17T10:00:04Z")
    assert failed_end([stopped, pod_of(1, "Succeeded", 0)]) is None


def test_the_ranks_of_a_job_are_kept_for_the_page_of_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pods = [pod_of(0, "Succeeded", 0)]
    cluster = Cluster(job_with("Succeeded"), pods, pods)
    monkeypatch.setattr(job_file, "PAUSE", 0)
    monkeypatch.setattr(JobRun, "_read", lambda self, name: self._hear(1, "epoch 1"))
    said: list[str] = []
    assert JobRun(cast(Api, cluster), yaml.safe_load(GOOD), said.append, tmp_path).run() == 0
    assert "[1] epoch 1" in said
    assert (tmp_path / "replicas" / "1.log").read_text() == "epoch 1\n"
    (told,) = json.loads((tmp_path / "replicas.json").read_text())["replicas"]
    assert (told["rank"], told["state"], told["node"], told["exit_code"]) == (
        1,
        "succeeded",
        "n1",
        0,
    )
    assert replica_of(0, pod_of(0, "Running"), 0.0)["state"] == "running"


def test_lines_of_mpirun_are_those_of_their_ranks(tmp_path: Path) -> None:
    run = JobRun(cast(Api, Cluster()), {"kind": "MPIJob"}, lambda line: None, tmp_path)
    run._hear(None, "[1,2]<stdout>:sum 3")
    run._hear(None, "mpirun noticed that a process exited")
    assert (tmp_path / "replicas" / "2.log").read_text() == "sum 3\n"
    assert [path.name for path in (tmp_path / "replicas").iterdir()] == ["2.log"]
