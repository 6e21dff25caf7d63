"""What counts of a pod, read once: what it asks for, where it is, what it is and whose. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from ...errors import ConvectError
from ...pipeline.plan import Json
from ...pipeline.quantities import quantity
from ..capacity import HolderKind
from . import jobs

Amounts = dict[str, Decimal]
ZERO = Decimal(0)
USERS = ("hub.jupyter.org/username", "app.kubernetes.io/owner", "owner", "user", "username")
"""Labels and annotations that say whose a pod is."""
KINDS: tuple[tuple[str, HolderKind], ...] = (
    ("gateway.dask.org/cluster", "dask"),
    ("dask.org/cluster-name", "dask"),
    ("training.kubeflow.org/job-name", "training"),
    ("trainer.kubeflow.org/trainjob-ancestor-step", "training"),
    ("jobset.sigs.k8s.io/jobset-name", "training"),
    ("ray.io/cluster", "training"),
    ("pipeline/runid", "pipeline"),
    ("workflows.argoproj.io/workflow", "pipeline"),
    ("notebook-name", "server"),
    ("hub.jupyter.org/servername", "server"),
)
"""What pods with a label are; its value is what they are called."""


@dataclass(frozen=True, slots=True)
class PodFacts:
    """A cluster has tens of thousands of them, so no more is kept."""

    name: str
    namespace: str
    node: str | None
    requests: Amounts
    is_over: bool
    kind: HolderKind
    title: str
    """What people call it."""
    owner: str | None
    """Whom it belongs to, where something says so."""
    run: str | None
    """Of a step of ours."""
    step: str | None
    service: str | None
    """What was made for a service of ours."""


def pod_facts(pod: Json) -> PodFacts:
    meta = pod["metadata"]
    name, labels = meta["name"], meta.get("labels") or {}
    ours = labels.get(jobs.MANAGED_BY) == jobs.US
    service = labels.get(jobs.WORKER) if ours else None
    run = labels.get(jobs.RUN) if ours else None
    kind, title = _kind_of(name, labels)
    if service or run:
        kind, title = "service" if service else "run", name
    return PodFacts(
        name,
        meta.get("namespace", ""),
        pod["spec"].get("nodeName"),
        pod_requests(pod["spec"]),
        pod.get("status", {}).get("phase") in ("Succeeded", "Failed"),
        kind,
        title,
        _owner_of(labels, meta.get("annotations") or {}),
        run,
        labels.get(jobs.STEP) if ours else None,
        service,
    )


def _kind_of(name: str, labels: Mapping[str, str]) -> tuple[HolderKind, str]:
    for label, kind in KINDS:
        if labels.get(label):
            return kind, labels[label]
    if labels.get("component") == "singleuser-server":
        return "server", name
    return "other", name


def _owner_of(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str | None:
    for name in USERS:
        value = annotations.get(name) or labels.get(name)
        if value:
            return value
    return None


def pod_requests(spec: Json) -> Amounts:
    """As the scheduler counts: containers and sidecars together, or the largest of those that
    come before with the sidecars that run by then; what the pod asks for as a whole goes first."""
    total: Amounts = {}
    for container in spec.get("containers", ()):
        add_amounts(total, _container_requests(container))
    before: Amounts = {}
    sidecars: Amounts = {}
    for container in spec.get("initContainers", ()):
        asked = _container_requests(container)
        if container.get("restartPolicy") == "Always":
            add_amounts(sidecars, asked)
            asked = dict(sidecars)
        else:
            add_amounts(asked, sidecars)
        for name, value in asked.items():
            before[name] = max(before.get(name, ZERO), value)
    add_amounts(total, sidecars)
    for name, value in before.items():
        total[name] = max(total.get(name, ZERO), value)
    total |= _container_requests(spec)
    add_amounts(total, amounts_of(spec.get("overhead") or {}))
    return total


def add_amounts(total: Amounts, more: Amounts) -> None:
    for name, value in more.items():
        total[name] = total.get(name, ZERO) + value


def _container_requests(container: Json) -> Amounts:
    resources = container.get("resources") or {}
    return amounts_of({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def amounts_of(values: Mapping[str, Json]) -> Amounts:
    found = {}
    for name, value in values.items():
        try:
            found[name] = quantity(value)
        except ConvectError:
            continue
    return found
