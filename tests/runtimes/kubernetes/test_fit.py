from __future__ import annotations

from decimal import Decimal
from typing import Any

from jupyterlab_convect.runtimes.kubernetes.fit import (
    Needs,
    judge_gang,
    judge_nodes,
    match_types,
    needs_of,
    nodes_of,
)
from jupyterlab_convect.runtimes.kubernetes.quotas import judge_quotas, quotas_of

A100 = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}


def node(name: str, labels: Any = None, taints: Any = (), ready: str = "True", **total: Any) -> Any:
    allocatable = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    allocatable |= {
        key.replace("gpu", "nvidia.com/gpu"): str(value) for key, value in total.items()
    }
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"taints": list(taints)},
        "status": {
            "allocatable": allocatable,
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def pod(place: str, phase: str = "Running", **requests: Any) -> Any:
    wanted = {key.replace("gpu", "nvidia.com/gpu"): str(value) for key, value in requests.items()}
    containers = [{"resources": {"requests": wanted}}]
    return {
        "metadata": {"name": "p"},
        "spec": {"nodeName": place, "containers": containers},
        "status": {"phase": phase},
    }


def needs(**requests: Any) -> Needs:
    wanted = {
        key.replace("gpu", "nvidia.com/gpu"): Decimal(value) for key, value in requests.items()
    }
    return Needs({**wanted, "pods": Decimal(1)})


def test_the_largest_free_count_on_one_node_is_what_matters() -> None:
    nodes = nodes_of(
        [node("gpu-1", gpu=4), node("gpu-7", gpu=4)],
        [pod("gpu-1", gpu=3), pod("gpu-7", gpu=2), pod("gpu-7", "Succeeded", gpu=2)],
    )
    found = judge_nodes(needs(gpu=4), nodes)
    assert (found.now, found.ever) == (False, True)
    assert found.sentence == "It needs 4 GPUs on one node; the largest free is 2 on gpu-7."
    assert judge_nodes(needs(gpu=2), nodes).now is True


def test_what_no_node_has() -> None:
    nodes = nodes_of([node("a", gpu=4), node("b")], [])
    found = judge_nodes(needs(gpu=8), nodes)
    assert (found.now, found.ever) == (False, False)
    assert found.sentence == "It needs 8 GPUs on one node, but the largest node (a) has 4."
    none = judge_nodes(needs(gpu=1), nodes_of([node("b")], []))
    assert none.sentence == "It needs 1 GPU on one node, but no node has any."


def test_what_is_there_but_not_together() -> None:
    nodes = nodes_of([node("a", gpu=1), node("b", gpu=1)], [pod("a", gpu=1), pod("b", cpu=8)])
    found = judge_nodes(needs(gpu=1, cpu=4), nodes)
    assert found.sentence == "At the moment no single node has 1 GPU and 4 cores free together."


def test_nodes_that_do_not_suit() -> None:
    taint = {"key": "team", "value": "b", "effect": "NoSchedule"}
    nodes = nodes_of([node("a", A100, [taint], gpu=1), node("b"), node("c")], [])
    spec = {
        "containers": [],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {
                                    "key": "nvidia.com/gpu.product",
                                    "operator": "In",
                                    "values": list(A100.values()),
                                }
                            ]
                        }
                    ]
                }
            }
        },
    }
    found = judge_nodes(needs_of(spec, "A100"), nodes)
    assert not found.ever
    assert found.sentence == (
        "None of the 3 nodes suits it: 2 do not have GPUs of type A100 and "
        "1 does not accept pods without a toleration for team=b."
    )
    spec["tolerations"] = [{"key": "team", "operator": "Equal", "value": "b"}]
    assert judge_nodes(needs_of(spec, "A100"), nodes).now is True


def test_unknown_is_not_free() -> None:
    assert judge_nodes(needs(cpu=1), nodes_of([node("a")], None)).now is None


def test_a_node_that_is_not_ready() -> None:
    found = judge_nodes(needs(cpu=1), nodes_of([node("a", ready="Unknown")], []))
    assert (found.now, found.ever) == (False, True)
    assert found.sentence == "None of the nodes that suit it is ready (a)."


def test_quotas() -> None:
    quota = {
        "metadata": {"name": "team"},
        "spec": {},
        "status": {
            "hard": {"requests.nvidia.com/gpu": "4", "limits.memory": "8Gi", "pods": "10"},
            "used": {"requests.nvidia.com/gpu": "3", "limits.memory": "0", "pods": "2"},
        },
    }
    scoped = {"metadata": {"name": "x"}, "spec": {"scopes": ["BestEffort"]}, "status": {}}
    found = judge_quotas(needs(gpu=2), quotas_of([quota, scoped]))
    assert [(item.ever, item.sentence) for item in found] == [
        (True, "It needs 2 GPUs; of the 4 that the quota team allows, 1 is left."),
        (False, "The quota team requires every pod to set a memory limit."),
    ]
    more = judge_quotas(needs(gpu=5), quotas_of([quota]))[0]
    assert more.sentence == "It needs 5 GPUs, but the quota team allows 4 in total."


def test_names_of_gpus() -> None:
    known = ["NVIDIA-A100-SXM4-40GB", "NVIDIA-A100-SXM4-80GB", "Tesla-T4", "Tesla-T4-MIG"]
    assert match_types("Tesla-T4", known) == ["Tesla-T4"]
    assert match_types("a100", known) == known[:2]
    assert match_types("NVIDIA A100", known) == known[:2]
    assert match_types("H100", known) == []


def test_a_gang_needs_room_for_all_of_its_pods_at_the_same_time() -> None:
    nodes = nodes_of([node("a", gpu=4), node("b", gpu=2)], [pod("a", gpu=2)])
    assert judge_gang(needs(gpu=2), nodes, 1) == judge_nodes(needs(gpu=2), nodes)
    assert judge_gang(needs(gpu=2), nodes, 2).now is True
    later = judge_gang(needs(gpu=2), nodes, 3)
    assert (later.now, later.ever) == (False, True)
    assert later.sentence == (
        "It needs 3 pods with 2 GPUs each at the same time; at the moment there is room for 2."
    )
    never = judge_gang(needs(gpu=2), nodes, 4)
    assert (never.now, never.ever) == (False, False)
    assert never.sentence == (
        "It needs 4 pods with 2 GPUs each at the same time, but the nodes have room for 3."
    )


def test_a_quota_counts_all_pods_of_a_gang() -> None:
    quota = {"metadata": {"name": "team"}, "spec": {"hard": {"pods": "3", "requests.cpu": "4"}}}
    found = judge_quotas(needs(cpu=1).times(4), quotas_of([quota]))
    assert [each.sentence for each in found] == [
        "It needs 4 pods, but the quota team allows 3 in total."
    ]
