"""What an operator says of a training job, and which rank a pod is."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from jupyterlab_convect.runtimes.kubernetes.job_file import ending, first_end, rank_of

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
