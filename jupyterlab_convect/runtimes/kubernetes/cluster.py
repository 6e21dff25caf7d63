"""One cluster as it is now: what we made there, what there is room for, what we may do."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...background import Health
from ...pipeline.plan import Json, Step
from .api import Api, ApiError, ClusterUnreachable
from .fit import GROUP, LABEL, Node, Queues, Quota, nodes_of, positions_of, queues_of, quotas_of
from .jobs import OURS
from .operators import JOB, OPERATORS, Operator, as_job, choose, place_of
from .pod_defaults import PodDefaults
from .reflector import Reflector

Object = dict[str, Any]

FRESH = 5.0
"""Seconds for which a look at nodes, pods and quotas is good, at least."""
SHARE = 20
"""A look that takes long is good for so many times as long."""
RIGHTS_FRESH = 300.0

RIGHTS: dict[str, tuple[str, str, str, str]] = {
    "create jobs": ("create", "batch", "jobs", ""),
    "delete jobs": ("delete", "batch", "jobs", ""),
    "watch jobs": ("watch", "batch", "jobs", ""),
    "watch pods": ("watch", "", "pods", ""),
    "watch events": ("watch", "", "events", ""),
    "create secrets": ("create", "", "secrets", ""),
    "create volume claims": ("create", "", "persistentvolumeclaims", ""),
    "delete volume claims": ("delete", "", "persistentvolumeclaims", ""),
    "create services": ("create", "", "services", ""),
    "get services": ("get", "", "services", ""),
    "read logs": ("get", "", "pods", "log"),
    "open a shell": ("create", "", "pods", "exec"),
    **{
        f"{verb} {plural}": (verb, operator.version.partition("/")[0], plural, "")
        for operator in OPERATORS
        for plural in operator.plurals
        for verb in ("create", "delete", "watch")
    },
}
READING_CAPACITY = "Reading the capacity of the cluster"


@dataclass(frozen=True)
class Observed:
    """What is known of one Job and one of its pods: what is there, and what was."""

    job: Object | None
    pod: Object | None
    past_job: Object | None
    past_pod: Object | None
    events: list[Object]


@dataclass(frozen=True)
class Capacity:
    """None where we are not allowed to look."""

    nodes: list[Node] | None
    quotas: list[Quota] | None
    pods: list[Object] | None
    queues: Queues | None
    good_until: float


class Cluster:
    def __init__(
        self, api: Api, defaults: PodDefaults, on_change: Callable[[], None], health: Health
    ) -> None:
        self.api = api
        self.defaults = defaults
        self.jobs = Reflector(api, JOB.plural, on_change, health, labelSelector=OURS)
        self.pods = Reflector(api, "pods", on_change, health, labelSelector=OURS)
        # Reasons are better with them, but nothing depends on them.
        self.events = Reflector(
            api, "events", on_change, health, optional=True, fieldSelector="type!=Normal"
        )
        self._reflectors = [self.jobs, self.pods, self.events]
        self._made = {JOB: self.jobs}
        """What we made, of each kind that has been asked for."""
        self._operators: tuple[list[Operator], float] | None = None
        self._capacity: Capacity | None = None
        self._rights: dict[str, tuple[bool | None, float]] = {}
        self._lock = threading.Lock()
        self._renewing = threading.Lock()
        self._on_change = on_change
        self._health = health
        for reflector in self._reflectors:
            reflector.start()

    def is_synced(self, seconds: float = 0.0) -> bool:
        """Whether all is known that matters, now or within so many seconds."""
        return self.jobs.synced.wait(seconds) and self.pods.synced.wait(seconds)

    def trouble(self) -> tuple[str, float] | None:
        """Why and since when the cluster cannot be observed."""
        troubles = [trouble for trouble in (self.jobs.trouble, self.pods.trouble) if trouble]
        return min(troubles, key=lambda trouble: trouble[1], default=None)

    def made(self, operator: Operator) -> Reflector:
        """All that we made of its kind; they are watched from the first time on."""
        with self._lock:
            if operator not in self._made:
                self._made[operator] = Reflector(
                    self.api, operator.plural, self._on_change, self._health, labelSelector=OURS
                )
                self._made[operator].start()
                self._reflectors.append(self._made[operator])
            return self._made[operator]

    def operators(self) -> list[Operator]:
        """Those that are installed and that we may use, the best first."""
        if self._operators is None or time.monotonic() > self._operators[1]:
            found = [each for each in OPERATORS if self._is_installed(each)]
            usable = [each for each in found if self._may_use(each)]
            self._operators = usable, time.monotonic() + RIGHTS_FRESH
        return self._operators[0]

    def _is_installed(self, operator: Operator) -> bool:
        known = self._try(lambda: self.api.get(f"/apis/{operator.version}"))
        names = {each["name"] for each in (known or {}).get("resources") or ()}
        return names.issuperset(operator.plurals)

    def _may_use(self, operator: Operator) -> bool:
        made = [f"{verb} {plural}" for plural in operator.plurals for verb in ("create", "delete")]
        return all(self.may(right) is not False for right in (*made, f"watch {operator.plural}"))

    def look(self, jobs: Iterable[tuple[str, int, Operator]]) -> dict[str, list[Observed]]:
        """What is known of those of these names, for each pod that they have as a number."""
        pods: dict[tuple[str, int], Object] = {}
        past_pods: dict[tuple[str, int], Object] = {}
        for found, into in zip(self.pods.now(), (pods, past_pods), strict=True):
            for pod in found.values():
                into[place_of(pod)] = pod
        events: dict[str, list[Object]] = {}
        for event in self.events.now()[0].values():
            target = event.get("involvedObject") or {}
            for key in {target.get("uid", ""), target.get("name", "")}:
                events.setdefault(key, []).append(event)

        def observed(name: str, number: int, operator: Operator) -> Observed:
            there, were = known[operator]
            job, pod = there.get(name), pods.get((name, number))
            past_job, past_pod = were.get(name), past_pods.get((name, number))
            keys = [item["metadata"]["uid"] for item in (job, pod) if item]
            keys += [name + ending for ending in operator.children]
            about = [event for key in keys for event in events.get(key, ())]
            return Observed(_told(job), pod, _told(past_job), past_pod, about)

        wanted = list(jobs)
        known = {each: self.made(each).now() for each in {operator for _, _, operator in wanted}}
        return {
            name: [observed(name, each, operator) for each in range(count)]
            for name, count, operator in wanted
        }

    def capacity(self) -> Capacity:
        """Nodes, what is free there, quotas, queues; a look that is a few seconds old will do."""
        with self._lock:
            known = self._capacity
            if known is None or time.monotonic() > known.good_until:
                api, began = self.api, time.monotonic()
                nodes = self._try(lambda: api.list("/api/v1/nodes"))
                pods = self._try(
                    lambda: api.list(
                        "/api/v1/pods", fieldSelector="status.phase!=Succeeded,status.phase!=Failed"
                    )
                )
                quotas = self._try(lambda: api.list(api.path("resourcequotas")))
                queues = self._queues()
                now = time.monotonic()
                self._capacity = known = Capacity(
                    None if nodes is None else nodes_of(nodes, pods),
                    None if quotas is None else quotas_of(quotas),
                    pods,
                    queues,
                    now + max(FRESH, SHARE * (now - began)),
                )
            return known

    def latest_capacity(self) -> Capacity | None:
        """What was known last, at once; what is old is looked at anew meanwhile."""
        known = self._capacity
        if (known is None or time.monotonic() > known.good_until) and self._renewing.acquire(False):
            threading.Thread(target=self._renew_capacity, daemon=True).start()
        return known

    def _renew_capacity(self) -> None:
        try:
            expected = contextlib.suppress(ApiError, ClusterUnreachable)
            with self._health.guard(READING_CAPACITY), expected:
                self.capacity()
                self._on_change()
        finally:
            self._renewing.release()

    def has_queue(self, labels: Mapping[str, str]) -> bool:
        """Whether a Job with these labels waits for a queue to let it in."""
        name = labels.get(LABEL)
        queues = self.capacity().queues if name else None
        return queues is not None and any(queue.name == name for queue in queues.queues)

    def _queues(self) -> Queues | None:
        """The queues of our namespace and who waits there; None when we are not allowed to look."""
        groups = self._try(lambda: self.api.get("/apis"))
        versions = {
            group["name"]: group["preferredVersion"]["groupVersion"]
            for group in (groups or {}).get("groups", ())
        }
        if groups is not None and GROUP not in versions:
            return Queues()
        if groups is None:
            return None
        path = f"/apis/{versions[GROUP]}/namespaces/{self.api.namespace}"
        queues = self._try(lambda: self.api.list(f"{path}/localqueues"))
        workloads = self._try(lambda: self.api.list(f"{path}/workloads"))
        if queues is None:
            return None
        return Queues(queues_of(queues), None if workloads is None else positions_of(workloads))

    def may(self, right: str) -> bool | None:
        """Whether we are allowed to; None when the cluster does not say."""
        known = self._rights.get(right)
        if known is None or time.monotonic() - known[1] > RIGHTS_FRESH:
            verb, group, resource, part = RIGHTS[right]
            review = {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {
                    "resourceAttributes": {
                        "namespace": self.api.namespace,
                        "verb": verb,
                        "group": group,
                        "resource": resource,
                        "subresource": part,
                    }
                },
            }
            path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
            answer = self._try(lambda: self.api.create(path, review))
            allowed = None if answer is None else bool(answer["status"].get("allowed"))
            known = self._rights[right] = (allowed, time.monotonic())
        return known[0]

    def close(self) -> None:
        for reflector in self._reflectors:
            reflector.close()

    @staticmethod
    def _try(ask: Callable[[], Json]) -> Json:
        """The answer, or None when we are not allowed to have it."""
        try:
            return ask()
        except ApiError as error:
            if error.status in (401, 403, 404):
                return None
            raise


def operator_for(cluster: Cluster, step: Step) -> Operator:
    """What runs it here. Refused when that is asked for and cannot be had."""
    labels = {**cluster.defaults.labels, **step.kubernetes.labels}
    there = cluster.operators() if step.distributed else ()
    return choose(step.distributed, there, queued=cluster.has_queue(labels))


def _told(item: Object | None) -> Object | None:
    return None if item is None else as_job(item)
