"""What a runtime has, what of it is free, who holds the rest, and what could start now.

Typed facts that every runtime fills in as far as it may know them; pages, REST and the command
line only show them. What must not be known is None, and `HiddenPart` says which rule would open it.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..pipeline.plan import Json

HolderKind = Literal["run", "service", "kernel", "server", "dask", "training", "pipeline", "other"]
SharingKind = Literal["time-slicing", "mps", "mig", "hami", "vcuda", "memory"]
GPU_MEMORY = "gpu-memory"
"""What a process holds of the memory of GPUs, in bytes."""


@dataclass(frozen=True, slots=True)
class ResourceAmount:
    name: str
    """`cpu`, `memory` in bytes, or a device."""
    total: float
    free: float | None
    """Not held by anybody; whoever holds something need not use it."""
    used: float | None = None
    """In use, as it was measured; None where nobody measures it."""


@dataclass(frozen=True, slots=True)
class NodeOverview:
    name: str
    ready: bool
    type: str | None
    """Of its GPUs."""
    resources: tuple[ResourceAmount, ...]
    closed: str | None = None
    """Why pods do not start on it although it is ready, or why it is not ready."""


@dataclass(frozen=True, slots=True)
class GpuSharing:
    """How one GPU becomes several things to ask for, and what that means."""

    kind: SharingKind
    cards: float | None
    """How many GPUs there are in fact; None where that is not known."""
    sentence: str


@dataclass(frozen=True, slots=True)
class GpuOverview:
    resource: str
    type: str | None
    total: float
    free: float | None
    largest_free: float | None
    """The most that one node has free."""
    largest_node: str
    sharing: GpuSharing | None = None
    use: float | None = None
    """How busy they are on average, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class QuotaOverview:
    name: str
    resource: str
    used: float
    total: float


@dataclass(frozen=True, slots=True)
class QueueLimit:
    """What a queue shares with the others of its group, of one resource in one flavor."""

    flavor: str
    resource: str
    used: float
    total: float
    mine: float
    """What is admitted through this queue."""
    borrowing: float | None = None
    """How much more may be borrowed from the cohort; None is as much as there is."""


@dataclass(frozen=True, slots=True)
class WaitRange:
    """An estimate in seconds, from so many admissions that were seen."""

    shortest: float
    longest: float
    samples: int


@dataclass(frozen=True, slots=True)
class WaitingWorkload:
    name: str
    run: str | None
    position: int
    """From 1."""
    reason: str | None
    wait: WaitRange | None


@dataclass(frozen=True, slots=True)
class QueueOverview:
    name: str
    waiting: int
    admitted: int
    closed: str | None
    group: str | None = None
    """The ClusterQueue that it draws from."""
    cohort: str | None = None
    limits: tuple[QueueLimit, ...] | None = None
    """None where they must not be seen."""
    workloads: tuple[WaitingWorkload, ...] | None = None
    """Ours that wait there; None where they must not be seen."""
    wait: WaitRange | None = None
    """How long what is submitted now would wait; None with too few admissions."""


@dataclass(frozen=True, slots=True)
class HeldAmount:
    name: str
    amount: float


@dataclass(frozen=True, slots=True)
class Holder:
    kind: HolderKind
    name: str
    namespace: str
    node: str | None
    resources: tuple[HeldAmount, ...]
    owner: str | None = None
    """Whom it belongs to, where something says so."""
    mine: bool = False
    """Of this user, who can give it back."""
    run: str | None = None
    step: str | None = None
    id: str | None = None
    """Of the service or the kernel."""
    count: int = 1
    """How many pods, where several are told as one."""
    idle: float | None = None
    """Seconds since it was used; None where nobody knows."""
    gpu_use: float | None = None
    """How busy its GPUs are, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class HiddenPart:
    """What this account must not see, and the rule that would let it."""

    part: Literal["nodes", "pods", "quotas", "queues", "limits", "workloads", "own-pods"]
    sentence: str
    rule: str
    scope: Literal["cluster", "namespace"]


@dataclass(frozen=True, slots=True)
class Offer:
    """The largest request of a profile that would start now, as a document says it."""

    profile: str | None
    """Its name; None where an administrator has configured none."""
    title: str
    settings: Mapping[str, Json]
    """Image and resources, for the settings of a run; empty when nothing of it would start."""
    now: bool | None
    """Whether it would start at once; None where that is not known."""
    count: int
    """How many times what the profile asks for, on one node."""
    node: str | None
    sentence: str | None
    """Why not more of it, or none."""
    notes: str = ""


@dataclass(frozen=True, slots=True)
class Overview:
    namespace: str | None
    nodes: tuple[NodeOverview, ...] | None
    gpus: tuple[GpuOverview, ...] | None
    quotas: tuple[QuotaOverview, ...] | None
    queues: tuple[QueueOverview, ...] | None
    holders: tuple[Holder, ...]
    offers: tuple[Offer, ...]
    hidden: tuple[HiddenPart, ...] = ()
    notes: tuple[str, ...] = ()
    """What else there is to say, in sentences."""
    reading: bool = False
    """The first look at all pods has not ended: what is free is not known yet."""


def as_json(value: Any) -> Json:
    """Every field, also those that have their default."""
    if dataclasses.is_dataclass(value):
        kind: Any = type(value)
        return {name: as_json(getattr(value, name)) for name in _fields(kind)}
    if isinstance(value, tuple):
        return [as_json(item) for item in value]
    return dict(value) if isinstance(value, Mapping) else value


@functools.cache
def _fields(kind: Any) -> tuple[str, ...]:
    return tuple(each.name for each in dataclasses.fields(kind))
