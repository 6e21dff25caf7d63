"""The Job of one attempt, as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...errors import Refused
from ...pipeline.plan import Amount, Json, Resources, Secret, Step, Toleration
from . import names
from .site import Share, Site, gpu_requests

CONTAINER = "step"
Manifest = dict[str, Any]


@dataclass(frozen=True)
class Delivery:
    """How the files of an attempt get to its pod, and what executes them there."""

    command: tuple[str, ...]
    working_dir: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    shares: tuple[Share, ...] = ()
    secret: str | None = None
    """The name of a Secret that is mounted at `inbox`."""
    inbox: str = "/convect-in"
    scratch: tuple[str, ...] = ()
    """Paths of empty folders that end with the pod."""
    ttl: int | None = None


def job(
    run: str,
    step: Step,
    attempt: int,
    site: Site,
    delivery: Delivery,
    gpu_types: Sequence[str] = (),
) -> Manifest:
    """`gpu_types` are the values of the nodes' type label that are as good as the one asked for."""
    ours = names.labels_of(run, step.id, attempt)
    labels = {**site.labels, **step.kubernetes.labels, **ours}
    annotations = {
        **site.annotations,
        **step.kubernetes.annotations,
        names.NAME: f"{run} {step.id} {attempt}",
    }
    metadata = {"labels": labels, "annotations": annotations}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": names.job_name(run, step.id, attempt), **metadata},
        "spec": {
            # Trying again is the engine's affair: one Job is one attempt.
            "backoffLimit": 0,
            "completions": 1,
            "parallelism": 1,
            "ttlSecondsAfterFinished": site.ttl if delivery.ttl is None else delivery.ttl,
            "template": {
                "metadata": metadata,
                "spec": pod_spec(step, site, delivery, gpu_types),
            },
        },
    }


def pod_spec(step: Step, site: Site, delivery: Delivery, gpu_types: Sequence[str] = ()) -> Manifest:
    wanted = step.kubernetes
    volumes, mounts = _volumes(step, delivery)
    policy = step.pull_policy or site.pull_policy
    container: Manifest = {
        "name": CONTAINER,
        "image": image_of(step, site),
        **({"imagePullPolicy": policy} if policy else {}),
        "command": list(delivery.command),
        **({"workingDir": delivery.working_dir} if delivery.working_dir else {}),
        "env": _environment(delivery.env, step.secrets),
        "resources": resources(step.resources, site),
        "volumeMounts": mounts,
        "securityContext": dict(site.container_security),
        # The last words of the log are the raw words behind a failure.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    pull_secrets = _unique((*wanted.pull_secrets, *site.pull_secrets))
    selector = {**site.node_selector, **wanted.node_selector}
    affinity = _affinity(step, site, delivery, gpu_types)
    tolerations = [
        *site.tolerations,
        *(_toleration(item) for item in wanted.tolerations),
        *_gpu_tolerations(step, site),
    ]
    return {
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": volumes,
        "securityContext": dict(site.pod_security),
        "automountServiceAccountToken": bool(wanted.service_account),
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": site.grace,
        **({"serviceAccountName": wanted.service_account} if wanted.service_account else {}),
        **({"priorityClassName": wanted.priority} if wanted.priority else {}),
        **({"imagePullSecrets": [{"name": name} for name in pull_secrets]} if pull_secrets else {}),
        **({"nodeSelector": selector} if selector else {}),
        **({"tolerations": tolerations} if tolerations else {}),
        **({"affinity": affinity} if affinity else {}),
    }


def image_of(step: Step, site: Site) -> str:
    image = step.image or site.image
    if not image:
        raise Refused(
            f"{step.name} has no image.",
            code="no-image",
            hint="Set `image`, for the step, in the pipeline's defaults, or as "
            "c.KubernetesRuntime.image for all.",
        )
    return image


def resources(wanted: Resources, site: Site) -> Manifest:
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
        gpus = gpu_requests(wanted.gpu, site.profile(wanted.gpu))
        requests |= gpus
        limits |= gpus
    return {
        **({"requests": requests} if requests else {}),
        **({"limits": limits} if limits else {}),
    }


def secret(job: Manifest, data: Mapping[str, str]) -> Manifest:
    """A Secret of base64 `data`: it has the name of the Job (as it was made), and goes with it."""
    made = job["metadata"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": made["name"], "uid": made["uid"]}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": made["name"],
            "labels": {names.MANAGED_BY: names.US},
            "ownerReferences": [owner],
        },
        "immutable": True,
        "data": dict(data),
    }


def _volumes(step: Step, delivery: Delivery) -> tuple[list[Manifest], list[Manifest]]:
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

    for share in delivery.shares:
        add(share.volume, share.path, share.sub_path, share.read_only)
    for volume in step.volumes:
        claim = {"persistentVolumeClaim": {"claimName": volume.claim}}
        add(claim, volume.path, volume.sub_path or "", volume.read_only)
    if delivery.secret:
        add({"secret": {"secretName": delivery.secret}}, delivery.inbox, read_only=True)
    for number, path in enumerate(delivery.scratch):
        volumes.append({"name": f"scratch{number}", "emptyDir": {}})
        mounts.append({"name": f"scratch{number}", "mountPath": path})
    if step.resources.shared_memory:
        size = step.resources.shared_memory
        add({"emptyDir": {"medium": "Memory", "sizeLimit": size}}, "/dev/shm")  # noqa: S108
    return volumes, mounts


def _environment(env: Mapping[str, str], secrets: Sequence[Secret]) -> list[Manifest]:
    """Secrets by reference: their values are never in our hands."""
    entries = [{"name": name, "value": value} for name, value in env.items()]
    hidden = [
        {
            "name": item.env,
            "valueFrom": {"secretKeyRef": {"name": item.name, "key": item.key}},
        }
        for item in secrets
    ]
    if hidden:
        named = ",".join(item.env for item in secrets)
        entries.append({"name": "CONVECT_SECRETS", "value": named})
    return [*entries, *hidden]


def _toleration(item: Toleration) -> Manifest:
    return {
        **({"key": item.key} if item.key else {}),
        "operator": item.operator if item.key else "Exists",
        **({"value": item.value} if item.value and item.operator == "Equal" else {}),
        **({"effect": item.effect} if item.effect else {}),
        **({"tolerationSeconds": item.seconds} if item.seconds is not None else {}),
    }


def _gpu_tolerations(step: Step, site: Site) -> list[Manifest]:
    """Nodes with GPUs are kept free by a taint of the resource's name; who asks for one may in."""
    gpu = step.resources.gpu
    if gpu is None or not gpu.count:
        return []
    return [{"key": name, "operator": "Exists"} for name in site.profile(gpu).requests]


def _affinity(
    step: Step, site: Site, delivery: Delivery, gpu_types: Sequence[str]
) -> Manifest | None:
    """On a node with the right GPUs, and on the one to which a volume is bound."""
    expressions: list[Manifest] = []
    fields: list[Manifest] = []
    gpu = step.resources.gpu
    if gpu is not None and gpu.count and gpu.type:
        label = site.profile(gpu).type_label
        if not label:
            raise Refused(
                f"{step.name} asks for a GPU of type {gpu.type}, but nothing says which label "
                f"of a node holds the type of its {gpu.resource}.",
                code="no-gpu-types",
                hint="Set `type_label` in c.KubernetesRuntime.gpu_profiles.",
            )
        values = list(gpu_types) or [gpu.type]
        expressions.append({"key": label, "operator": "In", "values": values})
    nodes = {share.node for share in delivery.shares if share.node}
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
