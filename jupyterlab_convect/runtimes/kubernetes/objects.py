"""Reading the cluster's own JSON of pods, Jobs and events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ...pipeline.plan import Json
from ...runs.model import State

Object = dict[str, Any]


@dataclass(frozen=True)
class Finding:
    state: State
    reason: str | None = None
    detail: str | None = None
    hopeless: bool = False
    """It will not mend by itself: somebody has to change something."""


def condition(item: Object, kind: str, status: str = "True") -> Json | None:
    for condition in item.get("status", {}).get("conditions") or ():
        if condition["type"] == kind and condition["status"] == status:
            return condition
    return None


def words_of(condition: Json) -> str:
    return condition.get("message") or condition.get("reason") or ""


def _container_state(pod: Object) -> Json:
    statuses = pod.get("status", {}).get("containerStatuses") or ()
    return statuses[0].get("state", {}) if statuses else {}


def terminated(pod: Object) -> Json | None:
    return _container_state(pod).get("terminated")


def is_running(pod: Object) -> bool:
    return "running" in _container_state(pod)


def waiting(pod: Object) -> Json | None:
    waiting = _container_state(pod).get("waiting")
    return waiting if waiting and waiting.get("reason") != "ContainerCreating" else None


def last_words(events: Iterable[Object], reason: str) -> str | None:
    """The words of the newest event of that sort."""
    found = [event for event in events if event.get("reason") == reason]
    return max(found, key=event_time).get("message") if found else None


def event_time(event: Object) -> str:
    """ISO times compare as text."""
    series = event.get("series") or {}
    return str(
        series.get("lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or event["metadata"].get("creationTimestamp")
        or ""
    )


def seconds_of(stamp: str) -> float:
    """An ISO time of the cluster as seconds since 1970."""
    return datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()
