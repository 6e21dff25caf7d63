"""What one task asks of the cluster: its resources, and what only Kubernetes knows.

Everything that a step can ask for is either in what is made here, or in `refusals`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ...pipeline.plan import Amount, Gpu, Json, Step, Toleration, Volume
from ...pipeline.problems import Problem
from ...pipeline.quantities import quantity

DEFAULT_GPU = "nvidia.com/gpu"
GIGA = 1_000_000_000
DEFAULT_CLASS = "standard"
"""The storage class of claims that name none, which Kubeflow does not leave to the cluster."""
LONGEST_CLAIM = 26
LONGEST_TRIES = 30 * 86400
"""Seconds from the first try after which there is no other."""


@dataclass(frozen=True)
class TaskDefaults:
    """What tasks get that do not say otherwise."""

    image: str = ""
    gpu_type_labels: Mapping[str, str] = field(
        default_factory=lambda: {DEFAULT_GPU: "nvidia.com/gpu.product"}
    )
    """The label of nodes that says of which type their GPUs are, by the GPU's resource."""
    volumes: tuple[Volume, ...] = ()
    """Those that tasks of ours share with us, where files go over one."""
    node: str = ""
    """The only node where tasks can have these volumes, if there is but one."""


def refusals(step: Step, defaults: TaskDefaults) -> Iterator[Problem]:
    """What Kubeflow cannot do for a step."""

    def no(path: tuple[str | int, ...], sentence: str, hint: str | None = None) -> Problem:
        return Problem("error", "not-on-kfp", sentence, step.id, path, hint)

    wanted, resources = step.kubernetes, step.resources
    if resources.ephemeral_storage is not None:
        yield no(
            ("resources", "ephemeral_storage"),
            "Kubeflow Pipelines cannot set an amount of temporary disk.",
        )
    gpu = resources.gpu
    if gpu is not None and gpu.count != int(gpu.count):
        yield no(("resources", "gpu"), "Kubeflow Pipelines gives whole GPUs only.")
    if gpu is not None and gpu.count and gpu.type and not _type_label(gpu, defaults):
        yield no(
            ("resources", "gpu", "type"),
            f"No setting names the node label that holds the type of its {gpu.resource}.",
        )
    for index, volume in enumerate(step.volumes):
        if volume.sub_path:
            yield no(
                ("volumes", index, "sub_path"),
                "Kubeflow Pipelines mounts whole volumes only.",
            )
        if volume.read_only:
            yield no(
                ("volumes", index, "read_only"),
                "Kubeflow Pipelines cannot mount a volume as read-only.",
            )
        if volume.claim in {other.claim for other in step.volumes[:index]}:
            yield no(
                ("volumes", index, "claim"),
                f"Kubeflow Pipelines mounts a volume once per node, and “{volume.claim}” is there "
                "already.",
            )
        if volume.size is not None and volume.storage_class is None:
            yield Problem(
                "warning",
                "approximated-on-kfp",
                f"Kubeflow Pipelines makes the claim “{volume.claim}” with the storage class "
                f"“{DEFAULT_CLASS}”.",
                step.id,
                ("volumes", index, "storage_class"),
                "Write the storage class that it should have.",
            )
    if step.retries.count and step.retries.factor != int(step.retries.factor):
        yield no(
            ("retries", "factor"),
            "Kubeflow Pipelines takes only a whole number as the factor between tries.",
        )
    if wanted.priority:
        yield no(("kubernetes", "priority"), "Kubeflow Pipelines cannot set a priority class.")
    if wanted.service_account:
        yield no(
            ("kubernetes", "service_account"),
            "Kubeflow Pipelines has one service account per run, not per node.",
        )
    if wanted.resources:
        yield no(
            ("kubernetes", "resources"),
            "Kubeflow Pipelines asks for CPUs, memory, disk and one kind of accelerator only.",
        )
    if step.distributed is not None:
        yield no(
            ("distributed",),
            "A node cannot be distributed on Kubeflow Pipelines, which gives it one pod.",
        )
    if step.dask is not None:
        yield no(
            ("dask",),
            "A node cannot have a Dask cluster on Kubeflow Pipelines, which starts it by itself.",
        )
    if step.working_folder == "shared":
        yield no(
            ("working_folder",),
            "A node cannot work in the folder itself on Kubeflow Pipelines, which does not see it.",
        )


def resources(step: Step) -> dict[str, Json]:
    """In the words of new servers, and of those before 2.4."""
    found: dict[str, Json] = {}
    wanted = step.resources
    for name, amount, unit in (("Cpu", wanted.cpu, 1), ("Memory", wanted.memory, GIGA)):
        for kind, text in _amounts(amount):
            found[f"resource{name}{kind}"] = text
            found[f"{name.lower()}{kind}"] = float(quantity(text)) / unit
    gpu = wanted.gpu
    if gpu is not None and gpu.count:
        resource, count = gpu.resource or DEFAULT_GPU, str(int(gpu.count))
        found["accelerator"] = {
            "type": resource,
            "count": count,
            "resourceType": resource,
            "resourceCount": count,
        }
    return found


def _amounts(amount: Amount | None) -> Iterator[tuple[str, str]]:
    if amount is not None and amount.request is not None:
        yield "Request", amount.request
    if amount is not None and amount.limit is not None:
        yield "Limit", amount.limit


def platform(
    step: Step, defaults: TaskDefaults, claims: Mapping[str, dict[str, Json]], node: str = ""
) -> dict[str, Json]:
    """The settings of its pod; `claims` says which task made each volume claim of the run, `node`
    the only one that it can run on."""
    wanted, gpu = step.kubernetes, step.resources.gpu
    tolerations = [_toleration(item) for item in wanted.tolerations]
    found: dict[str, Json] = {
        "imagePullSecret": [
            {"secretName": name, "secretNameParameter": _constant(name)}
            for name in wanted.pull_secrets
        ],
        "imagePullPolicy": step.pull_policy,
        "nodeSelector": {"labels": dict(wanted.node_selector)} if wanted.node_selector else None,
        "secretAsEnv": [
            {
                "secretName": item.name,
                "secretNameParameter": _constant(item.name),
                "keyToEnv": [{"secretKey": item.key, "envVar": item.env}],
            }
            for item in step.secrets
        ],
        "pvcMount": [
            {
                **claims.get(item.claim, {"constant": item.claim}),
                "pvcNameParameter": claims.get(item.claim, _constant(item.claim)),
                "mountPath": item.path,
            }
            for item in step.volumes
        ],
        "podMetadata": {
            **({"labels": dict(wanted.labels)} if wanted.labels else {}),
            **({"annotations": dict(wanted.annotations)} if wanted.annotations else {}),
        },
    }
    if gpu is not None and gpu.count:
        # Nodes with GPUs are kept free by a taint of the resource's name.
        tolerations.append({"key": gpu.resource or DEFAULT_GPU, "operator": "Exists"})
    found["nodeAffinity"] = _node_affinity(gpu, defaults, node)
    found["tolerations"] = tolerations
    if step.resources.shared_memory:
        found["emptyDirMounts"] = [
            {
                "volumeName": "shared-memory",
                "mountPath": "/dev/shm",  # noqa: S108
                "medium": "Memory",
                "sizeLimit": step.resources.shared_memory,
            }
        ]
    if step.kind == "component" and step.timeout:
        found["activeDeadlineSeconds"] = str(math.ceil(step.timeout))
    return {key: value for key, value in found.items() if value}


def _node_affinity(gpu: Gpu | None, defaults: TaskDefaults, node: str) -> list[Json]:
    """One term: of several, Kubernetes would take any."""
    term: dict[str, Json] = {}
    if gpu is not None and gpu.count and gpu.type:
        label = _type_label(gpu, defaults)
        term["matchExpressions"] = [{"key": label, "operator": "In", "values": [gpu.type]}]
    if node:
        term["matchFields"] = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    return [term] if term else []


def task_settings(step: Step) -> dict[str, Json]:
    """What belongs to the task: whether it is cached, and how often it is tried."""
    # What a step leaves on a volume of the run is not there when its result is reused, and
    # Kubeflow's key has the image, the command and the inputs, but no variables.
    variables = step.kind == "component" and (step.env or step.secrets)
    is_cached = step.cache and not variables and not any(item.size for item in step.volumes)
    found: dict[str, Json] = {"cachingOptions": {"enableCache": True} if is_cached else {}}
    if step.retries.count:
        found["retryPolicy"] = {
            "maxRetryCount": step.retries.count,
            "backoffDuration": f"{math.ceil(step.retries.delay)}s",
            "backoffFactor": step.retries.factor,
            # Without it, Argo takes the time for tries to be over after the first.
            "backoffMaxDuration": f"{LONGEST_TRIES}s",
        }
    return found


def new_claim(volume: Volume) -> dict[str, tuple[str, Json]]:
    """What the task is given that makes a claim: types and values, by name."""
    return {
        "access_modes": ("LIST", [volume.mode]),
        "pvc_name_suffix": ("STRING", f"-{claim_slug(volume.claim)}"),
        "size": ("STRING", volume.size),
        "storage_class_name": ("STRING", volume.storage_class or DEFAULT_CLASS),
    }


def claim_slug(claim: str) -> str:
    """Behind the id that Kubeflow puts before it, a name of a volume still has room for it."""
    return re.sub(r"[^a-z0-9]+", "-", claim)[:LONGEST_CLAIM].strip("-")


def _type_label(gpu: Gpu, defaults: TaskDefaults) -> str | None:
    return defaults.gpu_type_labels.get(gpu.resource or DEFAULT_GPU)


def _constant(text: str) -> Json:
    return {"runtimeValue": {"constant": text}}


def _toleration(item: Toleration) -> Json:
    return {
        **({"key": item.key} if item.key else {}),
        "operator": item.operator if item.key else "Exists",
        **({"value": item.value} if item.value and item.operator == "Equal" else {}),
        **({"effect": item.effect} if item.effect else {}),
        **({"tolerationSeconds": str(item.seconds)} if item.seconds is not None else {}),
    }
