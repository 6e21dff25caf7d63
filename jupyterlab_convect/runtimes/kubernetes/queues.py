"""The queues of Kueue: who is where in them, how long that takes, and what they leave. Pure.

A Job joins a queue by its label; it is suspended until the queue admits it. What must not be
listed is None.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ...pipeline.plan import Json
from .objects import Object, amount, condition, seconds_of, words_of
from .pod_facts import ZERO, amounts_of

GROUP = "kueue.x-k8s.io"
LABEL = f"{GROUP}/queue-name"


@dataclass(frozen=True)
class Queue:
    name: str
    waiting: int = 0
    admitted: int = 0
    closed: str | None = None
    """Why it lets nobody in at the moment, in the cluster's words."""
    group: str | None = None
    """The ClusterQueue that it draws from."""
    usage: Mapping[tuple[str, str], Decimal] = field(default_factory=dict)
    """What is admitted through it, by flavor and resource."""


@dataclass(frozen=True)
class QueuePosition:
    """Where in its queue a Job is, from 1; and what keeps it there, in the queue's words."""

    number: int
    words: str | None = None


@dataclass(frozen=True)
class Queues:
    """`queues` is empty where the cluster has none; positions are by the Job's uid."""

    queues: tuple[Queue, ...] = ()
    positions: Mapping[str, QueuePosition] | None = None
    workloads: tuple[Workload, ...] | None = None
    groups: Mapping[str, QueueGroup] | None = None
    """The ClusterQueues that they draw from, by name; those that must not be seen are missing."""


@dataclass(frozen=True)
class QueueGroup:
    """A ClusterQueue: what may be admitted through all of its queues together."""

    cohort: str | None
    nominal: Mapping[tuple[str, str], Decimal]
    """By flavor and resource, in the order in which flavors are tried."""
    borrowing: Mapping[tuple[str, str], Decimal]
    used: Mapping[tuple[str, str], Decimal]

    def left(self, resource: str) -> Decimal | None:
        """The most of a resource that one flavor has left of its own; None where it does not
        count it."""
        return max(
            (
                self.nominal[key] - self.used.get(key, ZERO)
                for key in self.nominal
                if key[1] == resource
            ),
            default=None,
        )


@dataclass(frozen=True)
class Workload:
    name: str
    queue: str
    priority: int
    created: float
    admitted: float | None
    """When its quota was reserved."""
    is_waiting: bool
    owners: tuple[str, ...]
    """Uids."""
    words: str | None = None


def workload_of(item: Json) -> Workload:
    meta = item["metadata"]
    reserved = condition(item, "QuotaReserved")
    held_up = condition(item, "QuotaReserved", "False")
    ended = any(condition(item, kind) for kind in ("Admitted", "Finished"))
    return Workload(
        meta["name"],
        item["spec"].get("queueName", ""),
        int(item["spec"].get("priority") or 0),
        seconds_of(meta["creationTimestamp"]),
        seconds_of(reserved["lastTransitionTime"]) if reserved else None,
        reserved is None and not ended,
        tuple(each["uid"] for each in meta.get("ownerReferences") or ()),
        words_of(held_up) if held_up else None,
    )


def group_of(item: Json) -> QueueGroup:
    spec = item.get("spec") or {}
    nominal: dict[tuple[str, str], Decimal] = {}
    borrowing: dict[tuple[str, str], Decimal] = {}
    for group in spec.get("resourceGroups") or ():
        for flavor in group.get("flavors") or ():
            for each in flavor.get("resources") or ():
                key = (flavor["name"], each["name"])
                given = amounts_of({**each, "name": ""})
                nominal[key] = given.get("nominalQuota", ZERO)
                if "borrowingLimit" in given:
                    borrowing[key] = given["borrowingLimit"]
    status = item.get("status") or {}
    return QueueGroup(
        spec.get("cohortName") or spec.get("cohort") or None,
        nominal,
        borrowing,
        flavors_of(status.get("flavorsReservation") or status.get("flavorsUsage") or ()),
    )


SAMPLES = 5
"""Admissions that an estimate needs."""
RECENT = 50
WAITED = 1.0
"""Seconds from which on somebody has waited at the head of a queue."""


def head_times(workloads: Iterable[Workload], queue: str) -> list[float]:
    """How long each of those that were admitted lately was the next one, without those that
    were let in at once: by these one who waits now is not told anything."""
    admitted = sorted(
        (each.admitted, each.created)
        for each in workloads
        if each.queue == queue and each.admitted is not None
    )[-RECENT:]
    found = []
    for before, (at, created) in zip([None, *admitted], admitted, strict=False):
        since = created if before is None else max(created, before[0])
        if at - since >= WAITED:
            found.append(at - since)
    return found


def estimate_wait(times: Sequence[float], position: int) -> tuple[float, float] | None:
    """From when to when the one at this position, from 1, will probably be admitted; None with
    too few samples: the middle half of what was seen, once for each that is before it."""
    if len(times) < SAMPLES:
        return None
    ordered = sorted(times)
    low, high = (ordered[round(part * (len(ordered) - 1))] for part in (0.25, 0.75))
    return low * position, high * position


def queues_of(items: Iterable[Json]) -> tuple[Queue, ...]:
    return tuple(_queue(item) for item in items)


def positions_of(workloads: Iterable[Json]) -> dict[str, QueuePosition]:
    """Of each Job that is not let in yet; the more important first, then the older."""
    waiting: dict[str, list[Json]] = {}
    for item in workloads:
        if not any(condition(item, kind) for kind in ("QuotaReserved", "Admitted", "Finished")):
            waiting.setdefault(item["spec"].get("queueName", ""), []).append(item)
    found: dict[str, QueuePosition] = {}
    for queue in waiting.values():
        for number, item in enumerate(sorted(queue, key=_order), 1):
            held_up = condition(item, "QuotaReserved", "False")
            position = QueuePosition(number, words_of(held_up) if held_up else None)
            for owner in item["metadata"].get("ownerReferences") or ():
                found[owner["uid"]] = position
    return found


def queue_of(job: Object) -> str | None:
    name: str | None = job["metadata"].get("labels", {}).get(LABEL)
    return name


def explain_queue(name: str, position: QueuePosition | None) -> str:
    """`Waiting in the queue team: it is next, and needs 2 more GPUs.`"""
    if position is None:
        return f"Waiting in the queue {name}."
    where = "it is next" if position.number == 1 else f"{position.number - 1} before it"
    missing = re.search(
        r"insufficient unused quota for (\S+) in .*?, (\S+) more needed", position.words or ""
    )
    if missing:
        return f"Waiting in the queue {name}: {where}, and {_more(missing[1], missing[2])}."
    return f"Waiting in the queue {name}: {where}."


def _more(resource: str, needed: str) -> str:
    try:
        need = amount(resource, Decimal(needed))
    except ArithmeticError:
        need = f"{needed} of {resource}"
    number, _, what = need.partition(" ")
    return f"the queue lacks {number} {what}"


def _queue(item: Json) -> Queue:
    status: dict[str, Any] = item.get("status") or {}
    closed = condition(item, "Active", "False")
    return Queue(
        item["metadata"]["name"],
        int(status.get("pendingWorkloads") or 0),
        int(status.get("admittedWorkloads") or 0),
        words_of(closed) if closed else None,
        item.get("spec", {}).get("clusterQueue"),
        flavors_of(status.get("flavorsUsage") or ()),
    )


def flavors_of(flavors: Iterable[Json]) -> dict[tuple[str, str], Decimal]:
    """What a status of Kueue says is used, by flavor and resource."""
    return {
        (flavor["name"], each["name"]): found.get("total", ZERO)
        for flavor in flavors
        for each in flavor.get("resources") or ()
        for found in [amounts_of({"total": each.get("total") or 0})]
    }


def _order(item: Json) -> tuple[int, str, str]:
    meta = item["metadata"]
    return -int(item["spec"].get("priority") or 0), meta.get("creationTimestamp", ""), meta["name"]
