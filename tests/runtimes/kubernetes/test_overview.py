from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from jupyterlab_convect.pipeline.profiles import Profile, read_offering
from jupyterlab_convect.routes import requests
from jupyterlab_convect.runtimes.capacity import as_json
from jupyterlab_convect.runtimes.kubernetes.cluster import Capacity
from jupyterlab_convect.runtimes.kubernetes.fit import nodes_of
from jupyterlab_convect.runtimes.kubernetes.gpu_metrics import GpuUse
from jupyterlab_convect.runtimes.kubernetes.gpu_sharing import sharing_of
from jupyterlab_convect.runtimes.kubernetes.offers import offers
from jupyterlab_convect.runtimes.kubernetes.overview import OverviewFacts, gpus_of, overview
from jupyterlab_convect.runtimes.kubernetes.pod_defaults import PodDefaults, profile_from_config
from jupyterlab_convect.runtimes.kubernetes.pod_facts import pod_facts, pod_requests
from jupyterlab_convect.runtimes.kubernetes.queues import (
    Queue,
    Queues,
    Workload,
    estimate_wait,
    group_of,
    head_times,
    positions_of,
    queues_of,
    workload_of,
)
from jupyterlab_convect.runtimes.kubernetes.quotas import quotas_of
from jupyterlab_convect.transfer.base import Mounts

PROFILES = {
    "nvidia.com/gpu": profile_from_config(
        "nvidia.com/gpu", {"type_label": "nvidia.com/gpu.product"}
    )
}
OURS = {"app.kubernetes.io/managed-by": "jupyterlab-convect", "jupyterlab-convect.dev/run": "r"}
DEFAULTS = PodDefaults("team", gpus=PROFILES)


def node(name: str, gpus: int, kind: str, **more: Any) -> Any:
    device = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return {
        "metadata": {
            "name": name,
            "labels": {"nvidia.com/gpu.product": kind, **more.get("labels", {})},
            "annotations": more.get("annotations", {}),
        },
        "spec": {"taints": more.get("taints", [])},
        "status": {
            "allocatable": {
                "cpu": "8",
                "memory": "16Gi",
                "pods": "9",
                **device,
                **more.get("devices", {}),
            },
            "conditions": [{"type": "Ready", "status": more.get("ready", "True")}],
        },
    }


def pod(name: str, place: str, gpus: int = 0, labels: Any = None, **requests: str) -> Any:
    limits = {**({"nvidia.com/gpu": str(gpus)} if gpus else {}), **requests}
    return {
        "metadata": {"name": name, "namespace": "team", "labels": labels or {}},
        "spec": {"nodeName": place, "containers": [{"resources": {"limits": limits}}]},
        "status": {"phase": "Running"},
    }


def capacity_of(
    nodes: Any = (), pods: Any = (), quotas: Any = (), queues: Queues | None = None
) -> Capacity:
    facts = [pod_facts(each) for each in pods]
    return Capacity(nodes_of(nodes, facts), quotas_of(quotas), facts, queues or Queues(), 0.0)


def quota(name: str, used: Any = None, **hard: str) -> Any:
    return {"metadata": {"name": name}, "spec": {}, "status": {"hard": hard, "used": used or {}}}


def answer(capacity: Capacity, own: Any = (), profiles: Any = (), **more: Any) -> Any:
    """The overview, which has to be as the REST description has it."""
    defaults = more.pop("defaults", DEFAULTS)
    facts = OverviewFacts("team", capacity, PROFILES, [pod_facts(each) for each in own], **more)
    found = offers(profiles, capacity, defaults, Mounts(), gpus_of(facts))
    shown = as_json(overview(facts, found))
    requests.check_body(shown, "Overview")
    return shown


def test_what_there_is_what_is_free_and_who_holds_it() -> None:
    pods = [pod("mine", "n1", 3, OURS), pod("theirs", "n2", 1)]
    nodes = [node("n1", 4, "A100"), node("n2", 4, "A100"), node("n3", 2, "T4")]
    hard = {"requests.nvidia.com/gpu": "8"}
    queues = Queues((Queue("team-a", 2, 1),), {}, ())
    found = answer(capacity_of(nodes, pods, [quota("gpus", **hard)], queues))
    assert found["gpus"][0] == {
        "resource": "nvidia.com/gpu",
        "type": "A100",
        "total": 8.0,
        "free": 4.0,
        "largest_free": 3.0,
        "largest_node": "n2",
        "sharing": None,
        "use": None,
    }
    assert [(item["name"], item["run"]) for item in found["holders"]] == [
        ("mine", "r"),
        ("theirs", None),
    ]
    assert found["quotas"][0]["total"] == 8.0
    assert [(q["name"], q["waiting"], q["admitted"]) for q in found["queues"]] == [("team-a", 2, 1)]
    assert found["hidden"] == []


def test_what_may_not_be_seen_is_hidden_with_the_rule_that_would_open_it() -> None:
    found = answer(Capacity(None, None, None, None, 0.0), [pod("mine", "n1", 1, OURS)])
    assert (found["nodes"], found["gpus"], found["quotas"], found["queues"]) == (None,) * 4
    assert [item["part"] for item in found["hidden"]] == [
        "nodes",
        "pods",
        "own-pods",
        "quotas",
        "queues",
    ]
    first = found["hidden"][0]
    assert first["scope"] == "cluster"
    assert first["rule"] == '- apiGroups: [""]\n  resources: [nodes]\n  verbs: [list, watch]\n'
    assert [item["name"] for item in found["holders"]] == ["mine"]


def test_those_of_the_namespace_are_shown_where_the_rest_is_hidden() -> None:
    near = [pod_facts(pod("other", "n1", 0, cpu="2"))]
    found = answer(Capacity(None, [], None, Queues(), 0.0, near))
    assert [item["part"] for item in found["hidden"]] == ["nodes", "pods"]
    assert [item["name"] for item in found["holders"]] == ["other"]


def test_limits_of_a_queue_that_are_hidden_are_said() -> None:
    queues = Queues((Queue("q", group="all"),), {}, (), {})
    found = answer(capacity_of([node("n1", 0, "")], queues=queues))
    assert [item["part"] for item in found["hidden"]] == ["limits"]
    assert found["queues"][0]["limits"] is None


def test_pods_of_others_are_told_together_by_owner_and_kind() -> None:
    dask = {"gateway.dask.org/cluster": "c1", "hub.jupyter.org/username": "ana"}
    pods = [pod(f"w{number}", "n1", 0, dask, cpu="1") for number in range(3)]
    found = answer(capacity_of([node("n1", 0, "")], pods))
    (holder,) = found["holders"]
    assert (holder["kind"], holder["owner"], holder["count"]) == ("dask", "ana", 3)
    assert holder["resources"] == [{"name": "cpu", "amount": 3.0}]


def test_those_who_hold_least_of_a_large_cluster_are_told_as_one() -> None:
    pods = [
        pod(f"p{number}", "n1", 0, {"owner": f"person-{number}"}, cpu=f"{number + 1}m")
        for number in range(250)
    ]
    found = answer(capacity_of([node("n1", 0, "")], pods))
    assert len(found["holders"]) == 201
    (rest,) = (each for each in found["holders"] if each["count"] > 1)
    assert (rest["count"], rest["owner"], rest["namespace"]) == (50, None, "")
    held = sum(each["resources"][0]["amount"] for each in found["holders"])
    assert round(held, 3) == sum(range(1, 251)) / 1000, "nothing is left out"


def test_sidecars_count_with_the_containers_and_before_them() -> None:
    def container(cpu: str, **more: str) -> Any:
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    spec = {
        "containers": [container("1")],
        "initContainers": [container("2", restartPolicy="Always"), container("3")],
    }
    assert pod_requests(spec) == {"cpu": Decimal(5)}
    assert pod_requests({"containers": [container("1")], "resources": {"requests": {"cpu": "4"}}})[
        "cpu"
    ] == Decimal(4)


@pytest.mark.parametrize(
    ("resource", "total", "labels", "annotations", "kind", "cards"),
    [
        ("nvidia.com/gpu", 4, {}, {}, None, None),
        (
            "nvidia.com/gpu",
            8,
            {
                "nvidia.com/gpu.sharing-strategy": "time-slicing",
                "nvidia.com/gpu.replicas": "4",
                "nvidia.com/gpu.count": "2",
            },
            {},
            "time-slicing",
            2.0,
        ),
        ("nvidia.com/gpu", 8, {"nvidia.com/gpu.replicas": "4"}, {}, "time-slicing", 2.0),
        ("nvidia.com/gpu", 4, {"nvidia.com/gpu.sharing-strategy": "mps"}, {}, "mps", None),
        ("nvidia.com/mig-1g.5gb", 7, {}, {}, "mig", None),
        ("tencent.com/vcuda-core", 200, {}, {}, "vcuda", 2.0),
        ("aliyun.com/gpu-mem", 30, {}, {}, "memory", None),
        (
            "nvidia.com/gpu",
            20,
            {},
            {"hami.io/node-nvidia-register": "GPU-a,10,16384,100,T4,0,true:GPU-b,10,16384,9,T4,0:"},
            "hami",
            2.0,
        ),
        (
            "nvidia.com/gpu",
            10,
            {},
            {"hami.io/node-nvidia-register": '[{"id": "GPU-a", "count": 10}]'},
            "hami",
            1.0,
        ),
        ("rdma/hca", 1, {}, {}, None, None),
    ],
)  # fmt: skip
def test_shared_gpus_are_told_as_what_they_are(
    resource: str, total: int, labels: Any, annotations: Any, kind: str | None, cards: float | None
) -> None:
    found = sharing_of(resource, Decimal(total), labels, annotations)
    assert (found and found.kind, found and found.cards) == (kind, cards)


def test_shared_and_whole_gpus_of_one_type_are_told_apart() -> None:
    sliced = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.count": "1"}
    nodes = [node("n1", 2, "T4"), node("n2", 4, "T4", labels=sliced)]
    found = answer(capacity_of(nodes))
    assert [(g["total"], g["sharing"] and g["sharing"]["cards"]) for g in found["gpus"]] == [
        (2.0, None),
        (4.0, 1.0),
    ]


def test_without_profiles_it_offers_what_each_sort_of_gpu_leaves() -> None:
    pods = [pod("theirs", "n1", 3, cpu="6", memory="8Gi")]
    found = answer(capacity_of([node("n1", 4, "A100"), node("n2", 0, "")], pods))
    plain, gpu = found["offers"]
    assert (plain["title"], plain["node"]) == ("CPU only", "n2")
    assert plain["settings"] == {"resources": {"cpu": 8, "memory": "16Gi"}}
    assert (gpu["title"], gpu["now"], gpu["node"]) == ("A100", True, "n1")
    assert gpu["settings"]["resources"] == {
        "cpu": 2,
        "memory": "4Gi",
        "gpu": {"count": 1, "type": "A100", "resource": "nvidia.com/gpu"},
    }


def offer(found: Any, name: str) -> Any:
    return next(each for each in found["offers"] if each["profile"] == name)


def profiles(*entries: Any) -> tuple[Profile, ...]:
    return read_offering(entries, (), ()).profiles


SMALL = {"name": "Small", "cpu": 2, "memory": "4Gi", "notes": "For tests."}
GPU = {"name": "GPU", "cpu": 1, "memory": "2Gi", "gpu": {"count": 1, "type": "a100"}}


def test_the_largest_of_a_profile_that_one_node_has_free() -> None:
    pods = [pod("theirs", "n1", 2, cpu="1")]
    nodes = [node("n1", 4, "A100"), node("n2", 8, "T4")]
    found = answer(capacity_of(nodes, pods), profiles=profiles(SMALL, GPU))
    small, gpu = offer(found, "Small"), offer(found, "GPU")
    assert (small["count"], small["node"], small["notes"]) == (4, "n2", "For tests.")
    assert small["settings"]["resources"] == {"cpu": 8, "memory": "16Gi"}
    assert (gpu["count"], gpu["node"], gpu["now"]) == (2, "n1", True)
    assert gpu["settings"]["resources"]["gpu"] == {"count": 2, "type": "a100"}


def test_quotas_and_taints_count() -> None:
    hard = {"requests.cpu": "3", "requests.nvidia.com/gpu": "1"}
    taint = [{"key": "team", "value": "b", "effect": "NoSchedule"}]
    nodes = [node("n1", 4, "A100"), node("n2", 8, "A100", taints=taint)]
    limits = [quota("own", {"requests.cpu": "1"}, **hard)]
    found = answer(capacity_of(nodes, (), limits), profiles=profiles(SMALL, GPU))
    assert offer(found, "Small")["count"] == 1
    assert (offer(found, "GPU")["count"], offer(found, "GPU")["node"]) == (1, "n1")
    closed = {each["name"]: each["closed"] for each in found["nodes"]}
    assert closed == {"n1": None, "n2": "Only pods with a toleration for team=b start on it."}
    full = [quota("own", {"requests.cpu": "3"}, **hard)]
    small = offer(answer(capacity_of(nodes, (), full), profiles=profiles(SMALL)), "Small")
    assert (small["now"], small["settings"]) == (False, {})
    assert small["sentence"] == "It needs 2 cores; of the 3 that the quota own allows, 0 are left."


def test_what_does_not_fit_says_why() -> None:
    pods = [pod("theirs", "n1", 4)]
    found = answer(capacity_of([node("n1", 4, "A100")], pods), profiles=profiles(GPU))
    gpu = offer(found, "GPU")
    assert (gpu["now"], gpu["count"]) == (False, 0)
    assert "at the moment none is free on any node" in gpu["sentence"]


def test_a_part_of_a_gpu_where_they_are_whole_says_so() -> None:
    half = {"name": "Half", "gpu": 0.5}
    found = answer(capacity_of([node("n1", 4, "A100")]), profiles=profiles(half))
    assert "whole numbers" in offer(found, "Half")["sentence"]


def test_profiles_of_other_namespaces_are_not_offered() -> None:
    own = {**SMALL, "name": "Own", "namespaces": ["team"]}
    other = {**SMALL, "name": "Other", "namespaces": ["them"]}
    found = answer(capacity_of([node("n1", 0, "")]), profiles=profiles(own, other))
    assert [each["profile"] for each in found["offers"]] == ["Own"]


def test_without_rights_whether_it_starts_is_unknown() -> None:
    found = answer(Capacity(None, [], None, Queues(), 0.0), profiles=profiles(SMALL))
    assert offer(found, "Small")["now"] is None
    assert offer(found, "Small")["settings"]["resources"]["cpu"] == 2


CLUSTER_QUEUE = {
    "metadata": {"name": "all"},
    "spec": {
        "resourceGroups": [
            {
                "flavors": [
                    {
                        "name": "f",
                        "resources": [
                            {"name": "cpu", "nominalQuota": "10"},
                            {"name": "nvidia.com/gpu", "nominalQuota": "2"},
                        ],
                    }
                ]
            }
        ]
    },
    "status": {
        "flavorsReservation": [
            {"name": "f", "resources": [{"name": "nvidia.com/gpu", "total": "1"}]}
        ]
    },
}
LOCAL_QUEUE = {
    "metadata": {"name": "q"},
    "spec": {"clusterQueue": "all"},
    "status": {
        "pendingWorkloads": 0,
        "flavorsUsage": [{"name": "f", "resources": [{"name": "nvidia.com/gpu", "total": "1"}]}],
    },
}


def workload(name: str, created: int, admitted: int | None = None, owner: str = "") -> Any:
    def stamp(at: int) -> str:
        return f"2026-01-01T00:{at // 60:02}:{at % 60:02}Z"

    status = "False" if admitted is None else "True"
    condition = {
        "type": "QuotaReserved",
        "status": status,
        "lastTransitionTime": stamp(admitted or created),
        "message": "full",
    }
    return {
        "metadata": {
            "name": name,
            "creationTimestamp": stamp(created),
            "ownerReferences": [{"uid": owner or name}],
        },
        "spec": {"queueName": "q"},
        "status": {"conditions": [condition]},
    }


def queues(*workloads: Any, **changes: Any) -> Queues:
    local = {**LOCAL_QUEUE, "status": {**LOCAL_QUEUE["status"], **changes}}  # type: ignore[dict-item]
    return Queues(
        queues_of([local]),
        positions_of(workloads),
        tuple(map(workload_of, workloads)),
        {"all": group_of(CLUSTER_QUEUE)},
    )


def test_a_queue_shows_what_its_group_shares_and_where_ours_are() -> None:
    items = [workload("first", 10), workload("second", 20, owner="uid")]
    capacity = capacity_of([node("n1", 4, "A100")], queues=queues(*items, pendingWorkloads=2))
    found = answer(capacity, own_jobs={"uid": "run-1"})
    (queue,) = found["queues"]
    gpu = next(each for each in queue["limits"] if each["resource"] == "nvidia.com/gpu")
    assert (gpu["used"], gpu["total"], gpu["mine"], gpu["borrowing"]) == (1.0, 2.0, 1.0, 0.0)
    assert [(w["position"], w["run"]) for w in queue["workloads"]] == [(1, None), (2, "run-1")]
    assert queue["wait"] is None


def test_a_queue_bounds_what_could_start() -> None:
    defaults = PodDefaults("team", gpus=PROFILES, labels={"kueue.x-k8s.io/queue-name": "q"})
    nodes = [node("n1", 4, "A100")]
    found = answer(capacity_of(nodes, queues=queues()), profiles=profiles(GPU), defaults=defaults)
    assert (offer(found, "GPU")["count"], offer(found, "GPU")["now"]) == (1, True)
    waiting = capacity_of(nodes, queues=queues(pendingWorkloads=3))
    gpu = offer(answer(waiting, profiles=profiles(GPU), defaults=defaults), "GPU")
    assert gpu["now"] is None
    assert gpu["sentence"] == "3 workloads wait in the queue q already."
    hidden = Queues(queues_of([LOCAL_QUEUE]), {}, (), {})
    gpu = offer(
        answer(capacity_of(nodes, queues=hidden), profiles=profiles(GPU), defaults=defaults), "GPU"
    )
    assert gpu["now"] is None


def test_the_wait_is_a_range_and_only_with_enough_samples() -> None:
    def done(created: float, admitted: float) -> Workload:
        return Workload("w", "q", 0, created, admitted, False, ())

    # Each was the next one from when the one before had been admitted, or from when it came.
    seen = [done(0, 60), done(0, 160), done(0, 360), done(1000, 1000), done(1000, 1030)]
    times = head_times(seen, "q")
    assert times == [60, 100, 200, 30]
    assert estimate_wait(times, 1) is None
    times = head_times([*seen, done(1000, 1120)], "q")
    assert sorted(times) == [30, 60, 90, 100, 200]
    assert estimate_wait(times, 2) == (120, 200)
    assert head_times(seen, "other") == []


def test_gpu_use_is_told_by_type_and_by_holder() -> None:
    found = answer(
        capacity_of([node("n1", 4, "A100")], [pod("a", "n1", 3), pod("b", "n1", 1)]),
        use={("team", "a"): GpuUse(0.25, 120.0), ("team", "b"): GpuUse(1.0, 0.0)},
    )
    assert found["gpus"][0]["use"] == (3 * 0.25 + 1) / 4, "three GPUs count for three"
    assert (found["holders"][0]["gpu_use"], found["holders"][0]["idle"]) == (0.25, 120.0)
