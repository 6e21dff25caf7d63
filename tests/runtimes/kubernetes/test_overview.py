from __future__ import annotations

from typing import Any

from jupyterlab_convect.routes import requests
from jupyterlab_convect.runtimes.kubernetes.cluster import Capacity
from jupyterlab_convect.runtimes.kubernetes.fit import Queue, Queues, nodes_of, quotas_of
from jupyterlab_convect.runtimes.kubernetes.overview import overview
from jupyterlab_convect.runtimes.kubernetes.pod_defaults import profile_from_config

PROFILES = {
    "nvidia.com/gpu": profile_from_config(
        "nvidia.com/gpu", {"type_label": "nvidia.com/gpu.product"}
    )
}
OURS = {"app.kubernetes.io/managed-by": "jupyterlab-convect", "jupyterlab-convect.dev/run": "r"}


def node(name: str, gpus: int, kind: str) -> Any:
    return {
        "metadata": {"name": name, "labels": {"nvidia.com/gpu.product": kind}},
        "spec": {},
        "status": {
            "allocatable": {"cpu": "8", "memory": "1Gi", "pods": "9", "nvidia.com/gpu": str(gpus)},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(name: str, place: str, gpus: int, labels: Any = None) -> Any:
    limits = {"nvidia.com/gpu": str(gpus)}
    return {
        "metadata": {"name": name, "namespace": "team", "labels": labels or {}},
        "spec": {"nodeName": place, "containers": [{"resources": {"limits": limits}}]},
        "status": {"phase": "Running"},
    }


def answer(capacity: Capacity, own: Any = ()) -> Any:
    """The overview, which has to be as the REST description has it."""
    found = overview("team", capacity, PROFILES, own)
    requests.check_body(found, "Overview")
    return found


def test_what_there_is_what_is_free_and_who_holds_it() -> None:
    pods = [pod("mine", "n1", 3, OURS), pod("theirs", "n2", 1)]
    nodes = [node("n1", 4, "A100"), node("n2", 4, "A100"), node("n3", 2, "T4")]
    quota = {
        "metadata": {"name": "gpus"},
        "spec": {},
        "status": {"hard": {"requests.nvidia.com/gpu": "8"}, "used": {}},
    }
    queues = Queues((Queue("team-a", 2, 1),), {})
    found = answer(Capacity(nodes_of(nodes, pods), quotas_of([quota]), pods, queues, 0.0))
    assert found["gpus"][0] == {
        "resource": "nvidia.com/gpu",
        "type": "A100",
        "total": 8.0,
        "free": 4.0,
        "largest_free": 3.0,
        "largest_node": "n2",
    }
    assert [(item["pod"], item["run"]) for item in found["holders"]] == [
        ("mine", "r"),
        ("theirs", None),
    ]
    assert found["quotas"][0]["total"] == 8.0
    assert found["queues"] == [{"name": "team-a", "waiting": 2, "admitted": 1, "closed": None}]
    assert found["unknown"] == []


def test_what_may_not_be_seen_is_unknown() -> None:
    found = answer(Capacity(None, None, None, None, 0.0), [pod("mine", "n1", 1, OURS)])
    assert (found["nodes"], found["gpus"], found["quotas"], found["queues"]) == (None,) * 4
    assert len(found["unknown"]) == 4
    assert [item["pod"] for item in found["holders"]] == ["mine"]
