"""What every pod gets, whatever the step: from the settings, and from the server's own pod."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from ...errors import Refused
from ...pipeline.plan import Gpu, Json
from ...transfer.base import SharedVolume
from .api import Api, ApiError

DEFAULT_GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class GpuProfile:
    """How a cluster counts a sort of GPU."""

    requests: Mapping[str, Decimal]
    """Amounts of the cluster's resources for one GPU."""
    type_label: str = ""
    """The label of nodes that says of which type their GPUs are."""
    shareable: bool = False
    """A fraction of a GPU can be had."""


@dataclass(frozen=True)
class PodDefaults:
    namespace: str
    image: str = ""
    pull_policy: str | None = None
    pull_secrets: tuple[str, ...] = ()
    shared_volumes: tuple[SharedVolume, ...] = ()
    tolerations: tuple[Mapping[str, Json], ...] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    pod_security: Mapping[str, Json] = field(default_factory=dict)
    container_security: Mapping[str, Json] = field(default_factory=dict)
    gpus: Mapping[str, GpuProfile] = field(default_factory=dict)
    grace: int = 30
    ttl: int = 3600
    notes: tuple[str, ...] = ()
    """What a user should know before a run, in sentences."""

    def profile(self, gpu: Gpu) -> GpuProfile:
        name = gpu.resource or DEFAULT_GPU
        return self.gpus.get(name) or GpuProfile({name: Decimal(1)})


RESTRICTED_POD: Mapping[str, Json] = {
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
RESTRICTED_CONTAINER: Mapping[str, Json] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}


def profile_from_config(name: str, config: Mapping[str, Json]) -> GpuProfile:
    """`{"requests": {resource: amount}, "type_label": label, "shareable": bool}`."""
    unknown = set(config) - {"requests", "type_label", "shareable"}
    if unknown:
        raise Refused(f"The GPU profile {name} has an unknown key {min(unknown)!r}.")
    requests = {key: Decimal(str(value)) for key, value in config.get("requests", {}).items()}
    return GpuProfile(
        requests or {name: Decimal(1)},
        str(config.get("type_label", "")),
        bool(config.get("shareable", False)),
    )


def gpu_requests(gpu: Gpu, profile: GpuProfile) -> dict[str, str]:
    """The resources to ask for. Refused when GPUs there come whole only."""
    count = Decimal(str(gpu.count))
    if count != int(count) and not profile.shareable:
        raise Refused(
            f"It asks for {gpu.count:g} GPUs, but {gpu.resource or DEFAULT_GPU} can only be "
            "requested in whole numbers.",
            code="whole-gpus",
            hint="Ask for a whole number, or for a resource that is shared.",
        )
    amounts = {name: amount * count for name, amount in profile.requests.items()}
    return {name: str(int(-(-amount // 1))) for name, amount in amounts.items() if amount}


Object = dict[str, Any]

PRIVATE = frozenset(
    ("emptyDir", "secret", "configMap", "projected", "downwardAPI", "ephemeral", "image")
)
"""Volumes that belong to one pod and make no sense in another."""
PRIVATE_PATHS = ("/var/run/secrets", "/dev/", "/etc/", "/proc", "/sys")


@dataclass(frozen=True)
class OwnPod:
    """What a step's pod takes over from the pod that the server runs in."""

    image: str
    shared_volumes: tuple[SharedVolume, ...]
    pod_security: Mapping[str, Json]
    pull_secrets: tuple[str, ...]
    tolerations: tuple[Mapping[str, Json], ...]
    notes: tuple[str, ...]


def find_own_pod(api: Api) -> Object | None:
    """The pod we run in, by its host name; None outside, or where we are not allowed to look."""
    if not api.in_cluster:
        return None
    name = os.environ.get("HOSTNAME") or socket.gethostname()
    return _look(api, api.path("pods", name))


def access_modes(api: Api, pod: Object) -> dict[str, list[str]]:
    """Of each claim that the pod mounts; those that we are not allowed to see are left out."""
    modes = {}
    for volume in pod["spec"].get("volumes", ()):
        claim = volume.get("persistentVolumeClaim", {}).get("claimName")
        if claim:
            found = _look(api, api.path("persistentvolumeclaims", claim))
            if found is not None:
                modes[claim] = found.get("status", {}).get("accessModes") or []
    return modes


def _look(api: Api, path: str) -> Object | None:
    """None where we are not allowed to look; a cluster that is busy or away is asked again."""
    try:
        found: Object = api.get(path)
    except ApiError as error:
        if error.status not in (401, 403, 404):
            raise
        return None
    return found


def own_container(pod: Object, mounts: str) -> Object:
    """Ours among the containers of our own pod; `mounts` is `/proc/self/mountinfo`.

    Kubelet mounts a file into each container whose path holds the container's name. A
    service mesh may have put its proxy before ours.
    """
    containers: list[Object] = pod["spec"]["containers"]
    told = re.search(r"/containers/([^/\s]+)/\S+ /dev/termination-log ", mounts)
    meant = pod["metadata"].get("annotations", {}).get("kubectl.kubernetes.io/default-container")
    for name in (told[1] if told else None, meant):
        for container in containers:
            if container.get("name") == name:
                return container
    return containers[0]


def inherited(api: Api, pod: Object) -> OwnPod:
    """What there is to take over from the pod that we run in."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text()
    except OSError:
        mounts = ""
    return inherit_from(pod, own_container(pod, mounts), access_modes(api, pod))


def inherit_from(pod: Object, container: Object, modes: Mapping[str, Sequence[str]]) -> OwnPod:
    """Pure: what there is to share, and under which conditions."""
    spec = pod["spec"]
    sources = {
        volume["name"]: {key: value for key, value in volume.items() if key != "name"}
        for volume in spec.get("volumes", ())
    }
    node = spec.get("nodeName")
    shared, notes = [], []
    for mount in container.get("volumeMounts", ()):
        source = sources.get(mount["name"], {})
        path = mount["mountPath"]
        if not source or PRIVATE & source.keys() or path.startswith(PRIVATE_PATHS):
            continue
        claim = source.get("persistentVolumeClaim", {}).get("claimName")
        allowed = modes.get(claim, ()) if claim else ()
        if "ReadWriteOncePod" in allowed:
            notes.append(f"The volume at {path} is for one pod only, so it is not shared.")
            continue
        if mount.get("subPathExpr"):
            notes.append(f"The volume at {path} has a computed sub-path, so it is not shared.")
            continue
        bound = _is_bound_to_node(source, allowed)
        if bound:
            notes.append(
                f"The volume at {path} can be used on one node at a time: "
                f"steps run on {node}, where this server is."
            )
        shared.append(
            SharedVolume(
                path,
                source,
                mount.get("subPath", ""),
                bool(mount.get("readOnly")),
                node if bound else None,
            )
        )
    security = {**spec.get("securityContext", {}), **_user(container.get("securityContext", {}))}
    return OwnPod(
        image=container["image"],
        shared_volumes=tuple(shared),
        pod_security=security,
        pull_secrets=tuple(item["name"] for item in spec.get("imagePullSecrets", ())),
        tolerations=tuple(
            item
            for item in spec.get("tolerations", ())
            if not str(item.get("key", "")).startswith("node.kubernetes.io/")
        ),
        notes=tuple(notes),
    )


def volume_from_config(entry: Mapping[str, Json]) -> SharedVolume:
    """`{"path", "claim", "sub_path"?, "read_only"?}`, or `volume` (a pod's source) for `claim`."""
    unknown = set(entry) - {"path", "claim", "volume", "sub_path", "read_only"}
    path, claim, volume = entry.get("path"), entry.get("claim"), entry.get("volume")
    if (
        unknown
        or not isinstance(path, str)
        or not path.startswith("/")
        or bool(claim) == bool(volume)
    ):
        raise Refused(
            f"An entry of c.KubernetesRuntime.volumes is invalid: {dict(entry)}.",
            code="bad-configuration",
            hint="It has an absolute `path`, a `claim` (or a `volume`), and perhaps `sub_path` "
            "and `read_only`.",
        )
    source = volume or {"persistentVolumeClaim": {"claimName": claim}}
    return SharedVolume(
        path.rstrip("/") or "/",
        source,
        str(entry.get("sub_path", "")),
        bool(entry.get("read_only", False)),
    )


def _is_bound_to_node(source: Mapping[str, Json], modes: Sequence[str]) -> bool:
    if "hostPath" in source:
        return True
    return bool(modes) and "ReadWriteMany" not in modes and "ReadOnlyMany" not in modes


def _user(security: Mapping[str, Json]) -> dict[str, Json]:
    names = ("runAsUser", "runAsGroup", "runAsNonRoot", "seccompProfile")
    return {name: security[name] for name in names if name in security}
