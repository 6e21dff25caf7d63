"""What the cluster has, what of it is free, and who holds the rest: pure, over what was listed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from typing import Any

from ...pipeline.plan import Json
from . import jobs
from .cluster import Capacity
from .fit import Amounts, Node, pod_requests
from .pod_defaults import GpuProfile

PLAIN = ("cpu", "memory")


def overview(
    namespace: str,
    capacity: Capacity,
    profiles: Mapping[str, GpuProfile],
    own_pods: Iterable[Json],
) -> dict[str, Json]:
    """As `Runtime.top` describes it. `own_pods` are all that is known where others are hidden."""
    gpus = _gpu_resources(capacity.nodes or (), profiles)
    labels = {
        name: profile.type_label
        for profile in profiles.values()
        for name in profile.requests
        if profile.type_label
    }
    unknown = []
    if capacity.nodes is None:
        unknown.append("You are not allowed to list the cluster's nodes.")
    if capacity.pods is None:
        unknown.append(
            "You are not allowed to list the pods of other users, so what is free is unknown."
        )
    if capacity.queues is None:
        unknown.append(f"You are not allowed to list the queues of namespace {namespace}.")
    if capacity.quotas is None:
        unknown.append(f"You are not allowed to list the quotas of namespace {namespace}.")
    pods = own_pods if capacity.pods is None else capacity.pods
    return {
        "namespace": namespace,
        "nodes": None
        if capacity.nodes is None
        else [_node(n, gpus, labels) for n in capacity.nodes],
        "gpus": None if capacity.nodes is None else _by_type(capacity.nodes, gpus, labels),
        "quotas": None
        if capacity.quotas is None
        else [
            {
                "name": quota.name,
                "resource": key,
                "used": float(quota.used.get(key, Decimal(0))),
                "total": float(hard),
            }
            for quota in capacity.quotas
            for key, hard in sorted(quota.hard.items())
        ],
        "queues": None
        if capacity.queues is None
        else [
            {
                "name": queue.name,
                "waiting": queue.waiting,
                "admitted": queue.admitted,
                "closed": queue.closed,
            }
            for queue in capacity.queues.queues
        ],
        "holders": _holders(pods, gpus),
        "unknown": unknown,
    }


def _gpu_resources(nodes: Iterable[Node], profiles: Mapping[str, GpuProfile]) -> set[str]:
    """What is configured, and every other resource of a device that some node has."""
    configured = {name for profile in profiles.values() for name in profile.requests}
    devices = {
        name
        for node in nodes
        for name, total in node.total.items()
        if "/" in name and total > 0 and not name.startswith(("kubernetes.io/", "attachable-"))
    }
    return configured | devices


def _node(node: Node, gpus: Collection[str], labels: Mapping[str, str]) -> dict[str, Json]:
    kept = [name for name in (*PLAIN, *sorted(gpus)) if node.total.get(name)]
    unschedulable = any(taint["key"] == "node.kubernetes.io/unschedulable" for taint in node.taints)
    return {
        "name": node.name,
        "ready": node.ready and not unschedulable,
        "type": _type_of(node, labels),
        "resources": [
            {
                "name": name,
                "total": float(node.total[name]),
                "free": None if node.free is None else float(max(node.free[name], Decimal(0))),
            }
            for name in kept
        ],
    }


def _by_type(
    nodes: Iterable[Node], gpus: Collection[str], labels: Mapping[str, str]
) -> list[dict[str, Json]]:
    found: dict[tuple[str, str | None], dict[str, Any]] = {}
    for node in nodes:
        for name in gpus:
            total = node.total.get(name)
            if not total:
                continue
            kind = node.labels.get(labels.get(name, ""))
            entry = found.setdefault(
                (name, kind),
                {
                    "resource": name,
                    "type": kind,
                    "total": 0.0,
                    "free": None if node.free is None else 0.0,
                    "largest_free": None if node.free is None else 0.0,
                    "largest_node": node.name,
                },
            )
            entry["total"] += float(total)
            if node.free is not None:
                free = float(max(node.free[name], Decimal(0))) if node.ready else 0.0
                entry["free"] += free
                if free > entry["largest_free"]:
                    entry["largest_free"], entry["largest_node"] = free, node.name
    return [found[key] for key in sorted(found, key=lambda key: (key[0], key[1] or ""))]


def _holders(pods: Iterable[Json], gpus: Collection[str]) -> list[dict[str, Json]]:
    """Pods that hold GPUs, and every one of ours."""
    found = []
    for pod in pods:
        labels = pod["metadata"].get("labels", {})
        held: Amounts = pod_requests(pod["spec"])
        ours = labels.get(jobs.MANAGED_BY) == jobs.US
        if not pod["spec"].get("nodeName") or not (ours or any(held.get(name) for name in gpus)):
            continue
        if pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            continue
        kept = [name for name in (*PLAIN, *sorted(gpus)) if held.get(name)]
        found.append(
            {
                "namespace": pod["metadata"]["namespace"],
                "pod": pod["metadata"]["name"],
                "node": pod["spec"]["nodeName"],
                "run": labels.get(jobs.RUN) if ours else None,
                "step": labels.get(jobs.STEP) if ours else None,
                "resources": [{"name": name, "amount": float(held[name])} for name in kept],
            }
        )
    return found


def _type_of(node: Node, labels: Mapping[str, str]) -> str | None:
    return next((node.labels[label] for label in labels.values() if label in node.labels), None)
