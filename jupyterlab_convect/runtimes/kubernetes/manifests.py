"""The Job of one attempt, as data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from ...errors import Refused
from ...pipeline.plan import (
    Amount,
    Distributed,
    Json,
    Resources,
    Secret,
    Step,
    Toleration,
    Volume,
)
from ...transfer.base import INBOX, Mounts
from . import jobs, operators
from .objects import STEP
from .pod_defaults import PodDefaults, gpu_requests
from .secret_digests import DIGESTS, KEY

UNPACK, SEND = "unpack", "send"
MASTER, MASTER_PORT = "master", operators.PORT
"""The file of the inbox that says where the first pod is reached, and the port there."""
WITHOUT_SIDECAR = {"sidecar.istio.io/inject": "false"}
"""A sidecar outlives the step, and stands between nodes that talk to each other."""
Manifest = dict[str, Any]

NOBODY_SPECIAL = 1000
SPARE_DEADLINE = 900
"""Seconds beyond its timeout after which the cluster ends a component that nobody watches."""


@dataclass(frozen=True)
class PodContent:
    """How the files of an attempt get to its pod, and what executes them there."""

    command: tuple[str, ...]
    """Empty for what the image itself starts."""
    args: tuple[str, ...] = ()
    image: str | None = None
    """The component's own, for a step that names none."""
    env: Mapping[str, str] = field(default_factory=dict)
    mounts: Mounts = field(default_factory=Mounts)
    binds: Mapping[str, str] = field(default_factory=dict)
    """Paths that only the image knows, and the files of a volume (or scratch) behind them."""
    secret: str | None = None
    """The name of the Secret that is its inbox."""
    ttl: int | None = None
    file_containers: FileContainers | None = None
    digest_container: DigestContainer | None = None


@dataclass(frozen=True)
class DigestContainer:
    """What has the step's secrets, in our image, and tells how to hide them."""

    program: str
    secret: str
    """The name of the Secret that holds its key."""


@dataclass(frozen=True)
class FileContainers:
    """What comes before and after a component that shares no volume with us, in our image."""

    before: tuple[str, ...]
    after: tuple[str, ...]


def job(
    run: str,
    step: Step,
    attempt: int,
    defaults: PodDefaults,
    content: PodContent,
    gpu_types: Sequence[str] = (),
    *,
    suspended: bool = False,
) -> Manifest:
    """`gpu_types` are the values of the nodes' type label that are as good as the one asked for.

    `suspended`: a queue decides when it starts.
    """
    step = replace(step, volumes=tuple(_own(run, volume) for volume in step.volumes))
    nodes = step.distributed.nodes if step.distributed else 1
    ours = jobs.labels_of(run, step.id, attempt)
    labels = {**defaults.labels, **step.kubernetes.labels, **ours}
    annotations = {
        **(WITHOUT_SIDECAR if step.distributed else {}),
        **defaults.annotations,
        **step.kubernetes.annotations,
        jobs.NAME: f"{run} {step.id} {attempt}",
    }
    metadata = {"labels": labels, "annotations": annotations}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": jobs.name_of(run, step, attempt), **metadata},
        "spec": {
            **_failures(step.distributed),
            **({"suspend": True} if suspended else {}),
            "completions": nodes,
            "parallelism": nodes,
            **({"completionMode": "Indexed"} if step.distributed else {}),
            "ttlSecondsAfterFinished": defaults.ttl if content.ttl is None else content.ttl,
            "template": {
                "metadata": metadata,
                "spec": pod_spec(step, defaults, content, gpu_types),
            },
        },
    }


def _failures(how: Distributed | None) -> Manifest:
    """Trying again is the engine's affair: one Job is one attempt."""
    if how is None or not how.is_elastic:
        return {"backoffLimit": 0}
    return {"backoffLimitPerIndex": 0, "maxFailedIndexes": how.nodes - how.least}


def pod_spec(
    step: Step, defaults: PodDefaults, content: PodContent, gpu_types: Sequence[str] = ()
) -> Manifest:
    wanted = step.kubernetes
    volumes, mounts = _volumes(step, content)
    image = step.image or content.image or defaults.image
    if not image:
        raise _without_image(step)
    container = {
        **_container(STEP, image, content.command, _seen(mounts, content), step, defaults),
        **({"args": _words(content.args)} if content.args else {}),
        "env": [*_environment(content.env, step.secrets), *_node_environment(step)],
        "resources": resources(step.resources, defaults, wanted.resources),
    }
    pull_secrets = _unique((*wanted.pull_secrets, *defaults.pull_secrets))
    selector = {**defaults.node_selector, **wanted.node_selector}
    affinity = _affinity(step, defaults, content, gpu_types)
    tolerations = [
        *defaults.tolerations,
        *(_toleration(item) for item in wanted.tolerations),
        *_gpu_tolerations(step, defaults),
    ]
    return {
        "restartPolicy": "Never",
        **_containers(container, step, defaults, content, mounts),
        "volumes": volumes,
        "securityContext": pod_security(step, defaults),
        "automountServiceAccountToken": bool(wanted.service_account),
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": defaults.grace,
        **_deadline(step),
        **({"serviceAccountName": wanted.service_account} if wanted.service_account else {}),
        **({"priorityClassName": wanted.priority} if wanted.priority else {}),
        **({"imagePullSecrets": [{"name": name} for name in pull_secrets]} if pull_secrets else {}),
        **({"nodeSelector": selector} if selector else {}),
        **({"tolerations": tolerations} if tolerations else {}),
        **({"affinity": affinity} if affinity else {}),
    }


def pod_security(step: Step, defaults: PodDefaults) -> Manifest:
    """Images of components seldom have a user of their own, and must not run as root here."""
    context = dict(defaults.pod_security)
    if step.kind == "component" and context.get("runAsNonRoot"):
        context.setdefault("runAsUser", NOBODY_SPECIAL)
    return context


def resources(
    wanted: Resources, defaults: PodDefaults, others: Mapping[str, str] = MappingProxyType({})
) -> Manifest:
    """`others` are amounts of what only this cluster has."""
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    amounts: tuple[tuple[str, Amount | None], ...] = (
        ("cpu", wanted.cpu),
        ("memory", wanted.memory),
        ("ephemeral-storage", wanted.ephemeral_storage),
    )
    for name, amount in amounts:
        if amount is not None and amount.request is not None:
            requests[name] = amount.request
        if amount is not None and amount.limit is not None:
            limits[name] = amount.limit
    if wanted.gpu is not None and wanted.gpu.count:
        gpus = gpu_requests(wanted.gpu, defaults.profile(wanted.gpu))
        requests |= gpus
        limits |= gpus
    requests |= others
    limits |= others
    return {
        **({"requests": requests} if requests else {}),
        **({"limits": limits} if limits else {}),
    }


def secret(job: Manifest, data: Mapping[str, str]) -> Manifest:
    """A Secret of base64 `data`: it has the name of the Job (as it was made), and goes with it."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": job["metadata"]["name"], **_belonging_to(job)},
        "immutable": True,
        "data": dict(data),
    }


def claim(run: str, volume: Volume) -> Manifest:
    """The volume claim that a run makes for itself."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": jobs.claim_name(run, volume.claim),
            "labels": {jobs.MANAGED_BY: jobs.US, jobs.RUN: jobs.label_value(run)},
            "annotations": {jobs.NAME: f"{run} {volume.claim}"},
        },
        "spec": {
            "accessModes": [volume.mode],
            "resources": {"requests": {"storage": volume.size}},
            **({"storageClassName": volume.storage_class} if volume.storage_class else {}),
        },
    }


def _own(run: str, volume: Volume) -> Volume:
    return replace(volume, claim=jobs.claim_name(run, volume.claim)) if volume.size else volume


def service(job: Manifest) -> Manifest:
    """How the pods of a Job (as it was made) reach the first of them, without any DNS."""
    name = job["metadata"]["name"]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        # A Service has to have a name that begins with a letter.
        "metadata": {"name": f"r0-{jobs.slug(name, jobs.LONGEST - 3)}", **_belonging_to(job)},
        "spec": {
            "selector": {jobs.JOB: name, jobs.INDEX: "0"},
            "ports": [
                {"name": name, "port": port, "targetPort": port}
                for name, port in (("rank-0", MASTER_PORT), ("nodes", MASTER_PORT - 1))
            ],
            "publishNotReadyAddresses": True,
        },
    }


def _belonging_to(job: Manifest) -> Manifest:
    made = job["metadata"]
    owner = {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "name": made["name"],
        "uid": made["uid"],
    }
    return {"labels": {jobs.MANAGED_BY: jobs.US}, "ownerReferences": [owner]}


def _without_image(step: Step) -> Refused:
    return Refused(
        f"“{step.name}” has no image.",
        code="no-image",
        hint="Set `image`, for the step, in the pipeline's defaults, or as "
        "c.KubernetesRuntime.image for all.",
    )


def _container(
    name: str,
    image: str,
    command: Sequence[str],
    mounts: Sequence[Manifest],
    step: Step,
    defaults: PodDefaults,
) -> Manifest:
    policy = step.pull_policy or defaults.pull_policy
    return {
        "name": name,
        "image": image,
        **({"imagePullPolicy": policy} if policy else {}),
        **({"command": _words(command)} if command else {}),
        "volumeMounts": list(mounts),
        "securityContext": dict(defaults.container_security),
        # The last words of the log are the raw words behind a failure.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _containers(
    container: Manifest,
    step: Step,
    defaults: PodDefaults,
    content: PodContent,
    mounts: Sequence[Manifest],
) -> Manifest:
    """The step alone; or after one that knows its secrets, between two that move its files."""
    if content.file_containers is None and content.digest_container is None:
        return {"containers": [container]}
    if not defaults.image:
        raise Refused(
            f"“{step.name}” needs an image with Python beside its own, for its files and secrets.",
            code="no-image",
            hint="Set c.KubernetesRuntime.image, or share a volume with the cluster.",
        )
    # As much as the step has, so that the pod asks for no more, and every quota is content.
    room = {"resources": resources(replace(step.resources, gpu=None), defaults)}
    first = []
    if content.digest_container is not None:
        command = ("python3", "-c", content.digest_container.program)
        digests = _container(DIGESTS, defaults.image, command, (), step, defaults)
        key = _secret_value("CONVECT_MASK_KEY", content.digest_container.secret, KEY)
        first = [digests | room | {"env": [*_environment({}, step.secrets), key]}]
    if content.file_containers is None:
        return {"initContainers": first, "containers": [container]}
    ours = [item for item in mounts if item not in _seen(mounts, content)]
    before = _container(
        UNPACK, defaults.image, content.file_containers.before, ours, step, defaults
    )
    after = _container(SEND, defaults.image, content.file_containers.after, ours, step, defaults)
    return {
        "initContainers": [*first, before | room, container],
        "containers": [after | room],
    }


def _seen(mounts: Sequence[Manifest], content: PodContent) -> list[Manifest]:
    """What the step itself sees: of what its file_containers has, only what is meant for it."""
    if content.file_containers is None:
        return list(mounts)
    private = (INBOX, *content.mounts.scratch)
    return [item for item in mounts if item["mountPath"] not in private]


def _deadline(step: Step) -> Manifest:
    """The runner keeps to a timeout by itself; a component is stopped by whoever watches it."""
    if step.kind != "component" or not step.timeout:
        return {}
    return {"activeDeadlineSeconds": math.ceil(step.timeout) + SPARE_DEADLINE}


def _words(words: Iterable[str]) -> list[str]:
    """As they are: the cluster would put variables into `$(NAME)`."""
    return [word.replace("$", "$$") for word in words]


def _volumes(step: Step, content: PodContent) -> tuple[list[Manifest], list[Manifest]]:
    volumes: list[Manifest] = []
    mounts: list[Manifest] = []

    def add(
        source: Mapping[str, Json], path: str, sub_path: str = "", read_only: bool = False
    ) -> None:
        name = next(
            (v["name"] for v in volumes if {**v, "name": None} == {"name": None, **source}), None
        )
        if name is None:
            name = f"v{len(volumes)}"
            volumes.append({"name": name, **source})
        mounts.append(
            {
                "name": name,
                "mountPath": path,
                **({"subPath": sub_path} if sub_path else {}),
                **({"readOnly": True} if read_only else {}),
            }
        )

    for shared in content.mounts.volumes:
        add(shared.source, shared.path, shared.sub_path, shared.read_only)
    for volume in step.volumes:
        claim = {"persistentVolumeClaim": {"claimName": volume.claim}}
        add(claim, volume.path, volume.sub_path or "", volume.read_only)
    if content.mounts.inbox:
        volumes.append({"name": "inbox", "secret": {"secretName": content.secret}})
        mounts.append({"name": "inbox", "mountPath": INBOX, "readOnly": True})
    for number, path in enumerate(content.mounts.scratch):
        volumes.append({"name": f"scratch{number}", "emptyDir": {}})
        mounts.append({"name": f"scratch{number}", "mountPath": path})
    for path, real in content.binds.items():
        mounts.append(_bind(path, real, mounts))
    if step.resources.shared_memory:
        size = step.resources.shared_memory
        add({"emptyDir": {"medium": "Memory", "sizeLimit": size}}, "/dev/shm")  # noqa: S108
    return volumes, mounts


def _bind(path: str, real: str, mounts: Sequence[Manifest]) -> Manifest:
    """A file that one mount has, seen at another path as well."""
    holders = [item for item in mounts if real.startswith(item["mountPath"].rstrip("/") + "/")]
    holder = max(holders, key=lambda item: len(item["mountPath"]))
    inner = real[len(holder["mountPath"].rstrip("/")) + 1 :]
    sub_path = "/".join(filter(None, (holder.get("subPath"), inner)))
    return {"name": holder["name"], "mountPath": path, "subPath": sub_path}


def _environment(env: Mapping[str, str], secrets: Sequence[Secret]) -> list[Manifest]:
    """Secrets by reference: their values are never in our hands."""
    entries = [{"name": name, "value": value.replace("$", "$$")} for name, value in env.items()]
    hidden = [_secret_value(item.env, item.name, item.key) for item in secrets]
    if hidden:
        named = ",".join(item.env for item in secrets)
        entries.append({"name": "CONVECT_SECRETS", "value": named})
    return [*entries, *hidden]


def _node_environment(step: Step) -> list[Manifest]:
    """What tells the pods of a distributed step apart."""
    how = step.distributed
    if how is None:
        return []
    index = {"fieldRef": {"fieldPath": jobs.INDEX_PATH}}
    return [
        {"name": operators.NODE, "valueFrom": index},
        {"name": "CONVECT_OUTPUTS_NODE", "value": str(how.outputs_node)},
        {"name": operators.MASTER, "value": f"{INBOX}/{MASTER}"},
    ]


def _secret_value(variable: str, secret: str, key: str) -> Manifest:
    return {"name": variable, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}


def _toleration(item: Toleration) -> Manifest:
    return {
        **({"key": item.key} if item.key else {}),
        "operator": item.operator if item.key else "Exists",
        **({"value": item.value} if item.value and item.operator == "Equal" else {}),
        **({"effect": item.effect} if item.effect else {}),
        **({"tolerationSeconds": item.seconds} if item.seconds is not None else {}),
    }


def _gpu_tolerations(step: Step, defaults: PodDefaults) -> list[Manifest]:
    """Nodes with GPUs are kept free by a taint of the resource's name; who asks for one may in."""
    gpu = step.resources.gpu
    if gpu is None or not gpu.count:
        return []
    return [{"key": name, "operator": "Exists"} for name in defaults.profile(gpu).requests]


def _affinity(
    step: Step, defaults: PodDefaults, content: PodContent, gpu_types: Sequence[str]
) -> Manifest | None:
    """On a node with the right GPUs, and on the one to which a volume is bound."""
    expressions: list[Manifest] = []
    fields: list[Manifest] = []
    gpu = step.resources.gpu
    if gpu is not None and gpu.count and gpu.type:
        label = defaults.profile(gpu).type_label
        if not label:
            raise Refused(
                f"“{step.name}” asks for a GPU of type {gpu.type}, but no setting names the "
                f"node label that holds the type of its {gpu.resource}.",
                code="no-gpu-types",
                hint="Set `type_label` in c.KubernetesRuntime.gpu_profiles.",
            )
        values = list(gpu_types) or [gpu.type]
        expressions.append({"key": label, "operator": "In", "values": values})
    nodes = {volume.node for volume in content.mounts.volumes if volume.node}
    fields += [
        {"key": "metadata.name", "operator": "In", "values": [node]} for node in sorted(nodes)
    ]
    if not (expressions or fields):
        return None
    term = {
        **({"matchExpressions": expressions} if expressions else {}),
        **({"matchFields": fields} if fields else {}),
    }
    required = {"nodeSelectorTerms": [term]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def _unique(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(items))
