"""Volumes that both we and pods see: our own pod's, or those that an administrator names."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import Refused
from ...pipeline.plan import Json
from .api import Api, ApiError
from .site import Share

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
    shares: tuple[Share, ...]
    pod_security: Mapping[str, Json]
    pull_secrets: tuple[str, ...]
    tolerations: tuple[Mapping[str, Json], ...]
    notes: tuple[str, ...]


def find_own_pod(api: Api) -> Object | None:
    """The pod we run in, found by its host name; None outside, or where we may not look."""
    if not api.in_cluster:
        return None
    name = os.environ.get("HOSTNAME") or socket.gethostname()
    return _look(api, api.place("pods", name))


def access_modes(api: Api, pod: Object) -> dict[str, list[str]]:
    """Of each claim that the pod mounts; claims that we may not look at are left out."""
    modes = {}
    for volume in pod["spec"].get("volumes", ()):
        claim = volume.get("persistentVolumeClaim", {}).get("claimName")
        if claim:
            found = _look(api, api.place("persistentvolumeclaims", claim))
            if found is not None:
                modes[claim] = found.get("status", {}).get("accessModes") or []
    return modes


def _look(api: Api, path: str) -> Object | None:
    """None where we may not look; a cluster that is busy or away is asked again later."""
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


def take_over(pod: Object, container: Object, modes: Mapping[str, Sequence[str]]) -> OwnPod:
    """Pure: what there is to share, and under which conditions."""
    spec = pod["spec"]
    sources = {
        volume["name"]: {key: value for key, value in volume.items() if key != "name"}
        for volume in spec.get("volumes", ())
    }
    node = spec.get("nodeName")
    shares, notes = [], []
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
        shares.append(
            Share(
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
        shares=tuple(shares),
        pod_security=security,
        pull_secrets=tuple(item["name"] for item in spec.get("imagePullSecrets", ())),
        tolerations=tuple(
            item
            for item in spec.get("tolerations", ())
            if not str(item.get("key", "")).startswith("node.kubernetes.io/")
        ),
        notes=tuple(notes),
    )


def share_from_config(entry: Mapping[str, Json]) -> Share:
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
            f"An entry of c.KubernetesRuntime.volumes is wrong: {dict(entry)}.",
            code="bad-configuration",
            hint="It has an absolute `path`, a `claim` (or a `volume`), and perhaps `sub_path` "
            "and `read_only`.",
        )
    source = volume or {"persistentVolumeClaim": {"claimName": claim}}
    return Share(
        path.rstrip("/") or "/",
        source,
        str(entry.get("sub_path", "")),
        bool(entry.get("read_only", False)),
    )


def covering(shares: Sequence[Share], paths: Sequence[str]) -> str | None:
    """The first of the paths that no pod would see; None when all is well."""
    for path in paths:
        if not any(share.covers(path) for share in shares):
            return path
    return None


def _is_bound_to_node(source: Mapping[str, Json], modes: Sequence[str]) -> bool:
    if "hostPath" in source:
        return True
    return bool(modes) and "ReadWriteMany" not in modes and "ReadOnlyMany" not in modes


def _user(security: Mapping[str, Json]) -> dict[str, Json]:
    names = ("runAsUser", "runAsGroup", "runAsNonRoot", "seccompProfile")
    return {name: security[name] for name in names if name in security}
