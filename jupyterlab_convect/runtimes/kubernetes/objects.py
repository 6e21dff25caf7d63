"""Reading the cluster's own JSON of pods, Jobs and events, and its amounts as people say them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from ...pipeline.plan import Json
from ...runs.model import State
from ...text import size_text

Object = dict[str, Any]

STEP = "step"
"""The name of the container that executes the step."""


@dataclass(frozen=True)
class Diagnosis:
    state: State
    reason: str | None = None
    detail: str | None = None
    permanent: bool = False
    """It will not mend by itself: somebody has to change something."""


def condition(item: Object, kind: str, status: str = "True") -> Json | None:
    for condition in item.get("status", {}).get("conditions") or ():
        if condition["type"] == kind and condition["status"] == status:
            return condition
    return None


def words_of(condition: Json) -> str:
    return condition.get("message") or condition.get("reason") or ""


def step_container(pod_spec: Json) -> Json:
    """The container that executes the step; others move files for it."""
    containers = [*pod_spec.get("initContainers", ()), *pod_spec["containers"]]
    return next((item for item in containers if item.get("name") == STEP), containers[-1])


def statuses(pod: Object) -> list[Json]:
    """Of all its containers, in the order in which they come."""
    status = pod.get("status", {})
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def step_status(pod: Object) -> Json:
    """Of the container that executes the step; the others only move files."""
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


def is_over(pod: Object | None, container: str) -> bool:
    """Whether a container has said all that it will ever say."""
    if pod is None or pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return True
    states = {item.get("name"): item.get("state", {}) for item in statuses(pod)}
    return "terminated" in states.get(container, {})


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


def plain_resource(name: str) -> str:
    """The resource itself: quotas speak of `requests.cpu` and `limits.memory`."""
    for prefix in ("requests.", "limits."):
        name = name.removeprefix(prefix)
    return name


def amount(name: str, value: Decimal, kind: str | None = None) -> str:
    """`4 GPUs of type A100`, `0.5 cores`, `2 GiB of memory`, `3 example.com/npu`."""
    name = plain_resource(name)
    if name == "cpu":
        return f"{_number(value)} {'core' if value == 1 else 'cores'}"
    if name == "memory":
        return f"{_bytes(value)} of memory"
    if name in ("ephemeral-storage", "storage"):
        return f"{_bytes(value)} of disk"
    if name.endswith("/gpu"):
        return f"{_number(value)} {'GPU' if value == 1 else 'GPUs'}" + (
            f" of type {kind}" if kind else ""
        )
    if name == "pods":
        return f"{_number(value)} {'pod' if value == 1 else 'pods'}"
    return f"{_number(value)} {name}" + (f" of type {kind}" if kind else "")


def bare(name: str, value: Decimal) -> str:
    """The number alone, where the thing has been named already."""
    name = plain_resource(name)
    in_bytes = ("memory", "ephemeral-storage", "storage", "gpu-memory")
    return _bytes(value) if name in in_bytes else _number(value)


def _number(value: Decimal) -> str:
    return f"{value.normalize():f}" if value == value.to_integral_value() else f"{float(value):.3g}"


def _bytes(value: Decimal) -> str:
    return size_text(float(value), binary=True)
