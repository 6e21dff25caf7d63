"""Nodes that are objects of the API and nothing else: the scheduler counts on them all the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from typing import Any

from waiting import until

from jupyterlab_convect.runtimes.kubernetes.api import Api

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
BEAT = 3.0


@contextmanager
def fake_node(api: Api, name: str, labels: Mapping[str, str], **devices: int) -> Iterator[None]:
    """A ready node; `devices` are amounts by resource, `gpu` for NVIDIA's."""
    path = f"/api/v1/nodes/{name}"
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110"}
    amounts |= {
        {"gpu": "nvidia.com/gpu"}.get(key, key): str(value) for key, value in devices.items()
    }
    condition = {"type": "Ready", "status": "True", "reason": "Fake", "message": "",
                 "lastHeartbeatTime": _now(), "lastTransitionTime": _now()}  # fmt: skip
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [condition]}
    meta = {"name": name, "labels": dict(labels)}
    _drop(api, path, f"{LEASES}/{name}")
    node = {"apiVersion": "v1", "kind": "Node", "metadata": meta}
    api.create("/api/v1/nodes", node)
    api._send("PUT", f"{path}/status", {}, {**node, "status": status})
    ended = threading.Event()
    heart = threading.Thread(target=_beat, args=(api, name, ended))
    heart.start()
    try:
        until(lambda: not api.get(path)["spec"].get("taints"), "a node that is ready")
        yield
    finally:
        ended.set()
        heart.join()
        _drop(api, path, f"{LEASES}/{name}")


@contextmanager
def held(api: Api, node: str, count: int, image: str) -> Iterator[str]:
    """So many GPUs of a node are somebody else's."""
    security = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
                "runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}  # fmt: skip
    container = {
        "name": "holder",
        "image": image,
        "resources": {"limits": {"nvidia.com/gpu": str(count)}},
        "securityContext": security,
    }
    name = f"holder-{node}"
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"nodeName": node, "containers": [container]},
    }
    api.create(api.path("pods"), manifest)
    try:
        yield name
    finally:
        api.delete(api.path("pods", name), gracePeriodSeconds=0)


def _beat(api: Api, name: str, ended: threading.Event) -> None:
    """What a kubelet does so that its node counts as alive."""
    while True:
        spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": _now(micro=True)}
        lease: Any = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name},
            "spec": spec,
        }
        with suppress(Exception):
            try:
                there = api.get(f"{LEASES}/{name}")
                api._send("PUT", f"{LEASES}/{name}", {}, {**there, "spec": spec})
            except Exception:
                api.create(LEASES, lease)
        if ended.wait(BEAT):
            return


def _drop(api: Api, *paths: str) -> None:
    for path in paths:
        api.delete(path)


def _now(*, micro: bool = False) -> str:
    shape = "%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ"
    return datetime.now(timezone.utc).strftime(shape)
