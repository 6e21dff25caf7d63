"""Queues of Kueue, where a cluster has them: who waits there, and where in the line we are.

Pure, over what was listed. A Job joins a queue by its label; it is suspended until the
queue lets it in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from ...pipeline.plan import Json
from .objects import Object, condition, words_of
from .words import amount

GROUP = "kueue.x-k8s.io"
LABEL = f"{GROUP}/queue-name"


@dataclass(frozen=True)
class Queue:
    name: str
    waiting: int = 0
    admitted: int = 0
    closed: str | None = None
    """Why it lets nobody in at the moment, in the cluster's words."""


@dataclass(frozen=True)
class Place:
    """Where in its queue a Job is, from 1; and what keeps it there, in the queue's words."""

    number: int
    words: str | None = None


@dataclass(frozen=True)
class Line:
    """`queues` is empty where the cluster has none; places are by the Job's uid."""

    queues: tuple[Queue, ...] = ()
    places: Mapping[str, Place] | None = None


def queues_of(items: Iterable[Json]) -> tuple[Queue, ...]:
    return tuple(_queue(item) for item in items)


def places_of(workloads: Iterable[Json]) -> dict[str, Place]:
    """Of each Job that is not let in yet; the more important first, then the older."""
    lines: dict[str, list[Json]] = {}
    for item in workloads:
        if not any(condition(item, kind) for kind in ("QuotaReserved", "Admitted", "Finished")):
            lines.setdefault(item["spec"].get("queueName", ""), []).append(item)
    found: dict[str, Place] = {}
    for line in lines.values():
        for number, item in enumerate(sorted(line, key=_order), 1):
            held_up = condition(item, "QuotaReserved", "False")
            place = Place(number, words_of(held_up) if held_up else None)
            for owner in item["metadata"].get("ownerReferences") or ():
                found[owner["uid"]] = place
    return found


def queue_of(job: Object) -> str | None:
    name: str | None = job["metadata"].get("labels", {}).get(LABEL)
    return name


def explain_queue(name: str, place: Place | None) -> str:
    """`Waiting in the queue team: it is next, and needs 2 more GPUs.`"""
    if place is None:
        return f"Waiting in the queue {name}."
    where = "it is next" if place.number == 1 else f"{place.number - 1} before it"
    missing = re.search(
        r"insufficient unused quota for (\S+) in .*?, (\S+) more needed", place.words or ""
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
    )


def _order(item: Json) -> tuple[int, str, str]:
    meta = item["metadata"]
    return -int(item["spec"].get("priority") or 0), meta.get("creationTimestamp", ""), meta["name"]
