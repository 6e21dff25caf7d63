"""What the cluster says, and what people read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_convect.pipeline.plan import Plan, Step
from jupyterlab_convect.runtimes.base import Attempt
from jupyterlab_convect.runtimes.kubernetes.explain import explain, explain_gone, missing_secret
from jupyterlab_convect.runtimes.kubernetes.jobs import job_of
from jupyterlab_convect.runtimes.kubernetes.objects import Diagnosis
from jupyterlab_convect.runtimes.kubernetes.observer import patience_with
from jupyterlab_convect.runtimes.kubernetes.queues import QueuePosition, positions_of

JOB: Any = {"metadata": {"name": "j", "uid": "1", "labels": {}}, "spec": {}, "status": {}}


def pod(phase: str = "Pending", *conditions: Any, state: Any = None, **more: Any) -> Any:
    statuses = [{"state": state, "ready": "running" in state}] if state else []
    status = {"phase": phase, "conditions": list(conditions), "containerStatuses": statuses}
    return {
        "metadata": {"name": "p", "uid": "2", **more.pop("metadata", {})},
        "spec": {
            "nodeName": more.pop("node", "n1"),
            "containers": [
                {
                    "image": "ds:1",
                    "command": ["python3"],
                    "resources": {"limits": {"memory": "2Gi"}},
                }
            ],
        },
        "status": {**status, **more},
    }


def condition(kind: str, status: str = "True", reason: str = "", message: str = "") -> Any:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def unschedulable(words: str) -> Any:
    return pod("Pending", condition("PodScheduled", "False", "Unschedulable", words), node=None)


def waiting(reason: str, message: str = "") -> Any:
    return pod("Pending", state={"waiting": {"reason": reason, "message": message}})


def ended(code: int, reason: str = "Error", message: str | None = None) -> Any:
    end = {"exitCode": code, "reason": reason, "message": message}
    return pod("Succeeded" if code == 0 else "Failed", state={"terminated": end})


def event(reason: str, message: str, when: str = "2026-11-16T08:00:00Z") -> Any:
    return {"reason": reason, "message": message, "lastTimestamp": when, "metadata": {}}


RUNNING = {"running": {"startedAt": "2026-11-16T08:00:00Z"}}


@pytest.mark.parametrize(
    ("seen", "state", "words"),
    [
        (pod("Running", state=RUNNING), "running", None),
        (pod(), "starting", "Starting on n1."),
        (pod(node=None), "queued", "Waiting for a node."),
        (waiting("ContainerCreating"), "starting", "Starting on n1."),
        (waiting("ErrImagePull", "ds:1: not found"), "starting", "There is no image ds:1."),
        (waiting("ImagePullBackOff", "401 Unauthorized"), "starting", "pull secret"),
        (waiting("ImagePullBackOff", "dial tcp: no such host"), "starting", "cannot be reached"),
        (waiting("InvalidImageName", "bad"), "failed", "not the name of an image"),
        (waiting("ErrImageNeverPull"), "failed", "pull policy does not allow pulling it"),
        (
            waiting("CreateContainerConfigError", 'secret "s3" not found'),
            "starting",
            "There is no secret s3 in the namespace.",
        ),
        (
            waiting("CreateContainerConfigError", "couldn't find key k in Secret team/s3"),
            "starting",
            "The secret s3 has no key k.",
        ),
        (
            waiting("CreateContainerConfigError", "container has runAsNonRoot and image …"),
            "starting",
            "The image runs as root",
        ),
        (
            unschedulable('persistentvolumeclaim "data" not found. preemption: …'),
            "queued",
            "There is no volume claim data in the namespace.",
        ),
        (
            unschedulable(
                "0/3 nodes are available: 1 node(s) had untolerated taint {team: a}, "
                "2 Insufficient nvidia.com/gpu. preemption: 0/3 nodes are available: 3 …"
            ),
            "queued",
            "Waiting for room on one of 3 nodes: 1 keeps pods away (team) and "
            "2 have too few free GPUs.",
        ),
        (
            unschedulable(
                "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
            ),
            "queued",
            "Waiting for room on the node: 1 does not have the labels that it asks for.",
        ),
        (ended(0, "Completed"), "succeeded", None),
        (ended(137, "OOMKilled"), "failed", "ran out of memory: it used more than its limit of 2"),
        (ended(1, message="a\nb: no space"), "failed", "It ended with exit code 1: b: no space"),
        (ended(143), "cancelled", None),
        (ended(74), "failed", "cannot write into the folder of the run"),
        (
            ended(128, "StartError", 'exec: "python3": executable file not found in $PATH'),
            "failed",
            "The image ds:1 has no python3",
        ),
        (
            pod("Failed", reason="Evicted", message="The node was low on resource: memory. …"),
            "failed",
            "The node evicted the pod because it was low on memory.",
        ),
        (
            pod(
                "Failed",
                condition("DisruptionTarget", reason="PreemptionByScheduler", message="by x"),
            ),
            "failed",
            "It was preempted by a pod with a higher priority.",
        ),
        (
            pod("Running", condition("Ready", "False"), state=RUNNING),
            "running",
            "The node n1 does not respond; the step may still be running there.",
        ),
        (
            pod("Running", state=RUNNING, metadata={"deletionTimestamp": "2026-11-16T08:00:00Z"}),
            "failed",
            "does not confirm",
        ),
    ],
)
def test_a_pod_in_words(seen: Any, state: str, words: str | None) -> None:
    found = explain(JOB, seen, now=1_900_000_000.0)
    assert found.state == state
    assert found.reason is None if words is None else words in str(found.reason)


@pytest.mark.parametrize(
    ("words", "reason", "permanent"),
    [
        (
            'pods "x" is forbidden: exceeded quota: team, requested: requests.nvidia.com/gpu=2, '
            "used: requests.nvidia.com/gpu=3, limited: requests.nvidia.com/gpu=4",
            "Waiting for the quota team: it needs 2 GPUs, and 1 of 4 is left.",
            False,
        ),
        (
            "exceeded quota: team, requested: requests.memory=8Gi,requests.cpu=1, "
            "used: requests.memory=0,requests.cpu=0, limited: requests.memory=4Gi,requests.cpu=4",
            "it needs 8 GiB of memory, but 4 GiB is all that it allows.",
            True,
        ),
        (
            "failed quota: team: must specify limits.cpu for: step; limits.memory for: step",
            "The quota team requires every pod to set a CPU limit",
            True,
        ),
        (
            'pods "x" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true',
            "security rules “restricted” do not allow",
            True,
        ),
        (
            'error looking up service account team/me: serviceaccount "me" not found',
            "There is no service account me in the namespace.",
            True,
        ),
        (
            "no PriorityClass with name high was found",
            "The cluster has no priority class high.",
            True,
        ),
    ],
)
def test_a_pod_that_may_not_be_made(words: str, reason: str, permanent: bool) -> None:
    old = event("FailedCreate", "something else", "2026-11-16T07:00:00Z")
    found = explain(JOB, None, [old, event("FailedCreate", words)])
    assert found.state == "queued"
    assert reason in str(found.reason)
    assert found.permanent is permanent
    assert found.detail == words


def test_our_own_look_at_the_nodes_is_said_first() -> None:
    words = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    found = explain(
        JOB, unschedulable(words), why_it_does_not_fit="It needs 4 GPUs on one node; the …"
    )
    assert found.reason == "Waiting: needs 4 GPUs on one node; the …"
    assert found.detail == words


def test_a_queue_that_holds_the_job_back() -> None:
    job = {
        "metadata": {"labels": {"kueue.x-k8s.io/queue-name": "gpus"}, "uid": "1"},
        "spec": {"suspend": True},
    }
    assert explain(job, None).reason == "Waiting in the queue gpus."


def test_a_pod_that_was_deleted_is_not_said_to_have_run_out_of_memory() -> None:
    killed = ended(137)
    assert "memory" in str(explain(JOB, killed).reason)
    killed["metadata"]["deletionTimestamp"] = "2026-11-16T08:00:00Z"
    assert explain(JOB, killed).reason == "Its pod was deleted before it finished."


def test_what_is_gone() -> None:
    assert explain_gone(None, None).state == "lost"
    assert explain_gone(JOB, None).state == "failed"
    assert "deleted" in str(explain_gone(JOB, pod("Running", state=RUNNING)).reason)
    assert "memory" in str(explain_gone(JOB, ended(137, "OOMKilled")).reason)


def workload(name: str, job: str, priority: int = 0, **conditions: str) -> Any:
    return {
        "metadata": {
            "name": name,
            "creationTimestamp": f"2026-11-16T00:00:0{name[-1]}Z",
            "ownerReferences": [{"uid": job}],
        },
        "spec": {"queueName": "team", "priority": priority},
        "status": {
            "conditions": [
                {"type": kind, "status": "False" if words else "True", "message": words}
                for kind, words in conditions.items()
            ]
        },
    }


LACK = (
    "couldn't assign flavors to pod set main: "
    "insufficient unused quota for nvidia.com/gpu in flavor a100, 2 more needed"
)


def test_a_place_in_a_queue() -> None:
    positions = positions_of(
        [
            workload("w3", "third", QuotaReserved=LACK),
            workload("w1", "first", QuotaReserved=LACK),
            workload("w2", "runs", QuotaReserved="", Admitted=""),
            workload("w4", "urgent", 9),
        ]
    )
    assert {job: place.number for job, place in positions.items()} == {
        "urgent": 1,
        "first": 2,
        "third": 3,
    }
    job = {
        "metadata": {"labels": {"kueue.x-k8s.io/queue-name": "team"}, "uid": "third"},
        "spec": {"suspend": True},
    }
    found = explain(job, None, position=positions["third"])
    assert (found.state, found.detail) == ("queued", LACK)
    assert found.reason == "Waiting in the queue team: 2 before it, and the queue lacks 2 GPUs."
    assert (
        explain(job, None, position=QueuePosition(1)).reason
        == "Waiting in the queue team: it is next."
    )
    assert explain(job, None).reason == "Waiting in the queue team."


def test_a_pod_may_be_quicker_than_the_secret_that_is_made_for_it(tmp_path: Path) -> None:
    step, run = Step("a", "script", "a"), "20261117-050000000-abcdef"
    plan = Plan("p", (step,))
    attempt = Attempt(run, step, 1, tmp_path, root=tmp_path, plan=plan, runs=tmp_path)
    own, other = (
        Diagnosis("starting", missing_secret(name), None, permanent=True)
        for name in (job_of(attempt), "s3")
    )
    assert patience_with(attempt, own, 2.0) == 300.0
    of_several = replace(own, reason=f"1 pod of 2: {own.reason}")
    assert patience_with(attempt, of_several, 2.0) == 300.0
    assert patience_with(attempt, own, 600.0) == 600.0
    assert patience_with(attempt, other, 2.0) == 2.0
