"""Reading the cluster's own JSON of pods, Jobs and events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ...pipeline.plan import Json
from ...runs.model import State

Object = dict[str, Any]

STEP = "step"
"""The name of the container that executes the step."""


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


def step_container(pod_spec: Json) -> Json:
    """The container that executes the step; others carry files for it."""
    containers = [*pod_spec.get("initContainers", ()), *pod_spec["containers"]]
    return next((item for item in containers if item.get("name") == STEP), containers[-1])


def statuses(pod: Object) -> list[Json]:
    """Of all its containers, in the order in which they come."""
    status = pod.get("status", {})
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def step_status(pod: Object) -> Json:
    """Of the container that executes the step; the others only carry files."""
    found = statuses(pod)
    return next((item for item in found if item.get("name") == STEP), found[-1] if found else {})


def terminated(pod: Object) -> Json | None:
    """How the step's container ended, or one without which it cannot even begin."""
    for status in (step_status(pod), *statuses(pod)):
        end = status.get("state", {}).get("terminated")
        if end and (end.get("exitCode") or status is step_status(pod)):
            return end
    return None


def is_running(pod: Object) -> bool:
    return "running" in step_status(pod).get("state", {})


def waiting(pod: Object) -> Json | None:
    """What holds a container up, other than that it is not its turn yet."""
    for status in statuses(pod):
        waiting = status.get("state", {}).get("waiting")
        if waiting and waiting.get("reason") not in ("ContainerCreating", "PodInitializing"):
            return waiting
    return None


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


def record_of(pod: Object, events: Iterable[Object]) -> Json:
    """What is worth keeping of a pod when it is gone."""
    return {
        "pod": pod["metadata"]["name"],
        "node": pod["spec"].get("nodeName"),
        "image": step_status(pod).get("imageID") or None,
        "status": pod.get("status"),
        "events": [
            {
                "time": event_time(event),
                "type": event.get("type"),
                "reason": event.get("reason"),
                "words": event.get("message"),
                "count": event.get("count") or 1,
            }
            for event in sorted(events, key=event_time)
        ],
    }
