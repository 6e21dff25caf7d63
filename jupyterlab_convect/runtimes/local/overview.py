"""What this machine has, what of it is free, and who holds the rest."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import Any

from ...pipeline.plan import Json
from .ledger import Capacity
from .machine import GpuDevice

GPU = "gpu"


def overview(
    capacity: Capacity, devices: Sequence[GpuDevice], entries: Sequence[Any]
) -> dict[str, Json]:
    """`Overview` of the REST API: this machine is the only node."""
    name = platform.node()
    resources = _resources(capacity, entries)
    types = sorted({device.name for device in devices if device.name})
    return {
        "namespace": None,
        "nodes": [
            {
                "name": name,
                "ready": True,
                "type": types[0] if types else None,
                "resources": resources,
            }
        ],
        "gpus": [_gpus(resource, types, name) for resource in resources if resource["name"] == GPU],
        "quotas": [],
        "queues": [],
        "holders": [_holder(entry, name) for entry in entries if entry.get("about")],
        "unknown": [],
    }


def _resources(capacity: Capacity, entries: Sequence[Any]) -> list[dict[str, Json]]:
    totals = {"cpu": capacity.cpu, "memory": capacity.memory, GPU: float(len(capacity.gpus))}
    return [
        {"name": name, "total": total, "free": max(total - sum(map(_amounts(name), entries)), 0.0)}
        for name, total in totals.items()
        if total
    ]


def _gpus(resource: dict[str, Json], types: list[str], node: str) -> dict[str, Json]:
    return {
        "resource": GPU,
        "type": ", ".join(types) or None,
        "total": resource["total"],
        "free": resource["free"],
        "largest_free": resource["free"],
        "largest_node": node,
    }


def _holder(entry: Any, node: str) -> dict[str, Json]:
    amounts = {name: _amounts(name)(entry) for name in ("cpu", "memory", GPU)}
    return {
        "namespace": "",
        "pod": entry["about"]["name"],
        "node": node,
        "run": entry["about"]["run"],
        "step": entry["about"]["step"],
        "resources": [
            {"name": name, "amount": amount} for name, amount in amounts.items() if amount
        ],
    }


def _amounts(name: str) -> Any:
    return lambda entry: float(sum(entry["gpus"].values()) if name == GPU else entry[name])
