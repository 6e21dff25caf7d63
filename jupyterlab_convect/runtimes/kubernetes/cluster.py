"""One cluster as it is now: what we made there, what there is room for, what we may do."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...background import Health
from ...pipeline.plan import Json, Step
from .api import Api, ApiError, ClusterUnreachable
from .fit import Node, nodes_of
from .jobs import OURS
from .operators import JOB, OPERATORS, Operator, as_job, choose, place_of
from .pod_defaults import PodDefaults
from .pod_facts import PodFacts, pod_facts
from .queues import (
    GROUP,
    LABEL,
    Queue,
    QueueGroup,
    QueuePosition,
    Queues,
    group_of,
    positions_of,
    queues_of,
    workload_of,
)
from .quotas import Quota, quotas_of
from .reflector import Reflector

Object = dict[str, Any]

FRESH = 5.0
"""Seconds for which a look at nodes, pods and quotas is good, at least."""
SHARE = 20
"""A look that takes long is good for so many times as long."""
RIGHTS_FRESH = 300.0
GROUPS_FRESH = 30.0

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
EVERYWHERE = {
    "watch all nodes": ("watch", "", "nodes", ""),
    "watch all pods": ("watch", "", "pods", ""),
}
"""Rights in the whole cluster."""
READING_CAPACITY = "Reading the capacity of the cluster"
ACTIVE = "status.phase!=Succeeded,status.phase!=Failed"
UNASKED = 600.0
"""Seconds after which the nodes and pods of the whole cluster are not watched any more, if nobody
asks for them."""
LIVE_FRESH = 1.0
"""Seconds for which a look at quotas and queues is good while nodes and pods are watched."""
VISIBILITY = "visibility.kueue.x-k8s.io"


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
    pods: list[PodFacts] | None
    """Of the whole cluster, those that have not ended."""
    queues: Queues | None
    good_until: float
    near: list[PodFacts] | None = None
    """Those of our own namespace, where the others must not be seen."""
    reading: bool = False
    """All pods are being read for the first time: `pods` is None meanwhile."""


class WholeCluster:
    """All nodes and pods, watched while somebody asks for them."""

    def __init__(self, api: Api, health: Health) -> None:
        self.nodes = Reflector(api, "nodes", self._hear, health, everywhere=True)
        self.pods = Reflector(
            api, "pods", self._hear, health, everywhere=True, keep=pod_facts, fieldSelector=ACTIVE
        )
        self._asked = time.monotonic()
        self.is_closed = False
        for reflector in (self.nodes, self.pods):
            reflector.start()

    def ask(self, seconds: float) -> tuple[list[Object] | None, list[PodFacts] | None]:
        """Those that are known within so many seconds; None of what is not known yet."""
        self._asked = time.monotonic()
        nodes = self.nodes.there() if self.nodes.synced.wait(seconds) else None
        left = max(0.0, self._asked + seconds - time.monotonic())
        return nodes, self.pods.there() if self.pods.synced.wait(left) else None

    def trouble(self) -> str | None:
        """Why it does not hear of changes at the moment."""
        found = self.nodes.trouble or self.pods.trouble
        return found[0] if found else None

    def _hear(self) -> None:
        if time.monotonic() - self._asked > UNASKED:
            self.close()

    def close(self) -> None:
        self.is_closed = True
        self.nodes.close()
        self.pods.close()


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
        self._whole: WholeCluster | None = None
        self._groups: tuple[dict[str, str], float] | None = None
        self._rights: dict[str, tuple[bool | None, float]] = {}
        self._lock = threading.Lock()
        self._renewing = threading.Lock()
        self._asking = threading.Lock()
        self._own: tuple[list[Quota] | None, Queues | None, float] | None = None
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
                self._capacity = known = self._look(*self._list_all())
            return known

    def live_capacity(self, patience: float) -> Capacity:
        """The same as it is now: all nodes and pods are watched from the first time on, where that
        is allowed. Pods that are not read within so many seconds are unknown for now."""
        allowed = all(self.may(right) is not False for right in EVERYWHERE)
        if not allowed:
            return self.capacity()
        with self._lock:
            if self._whole is None or self._whole.is_closed:
                self._whole = WholeCluster(self.api, self._health)
            whole = self._whole
        nodes, pods = whole.ask(patience)
        why = whole.trouble()
        if why is not None:
            # What was heard last may be wrong by now: asking says what is the matter.
            return self.capacity()
        return self._look(nodes, pods, LIVE_FRESH, reading=nodes is None or pods is None)

    def _list_all(self) -> tuple[list[Object] | None, list[PodFacts] | None]:
        whole = self._whole
        if whole is not None and not whole.is_closed and whole.trouble() is None:
            nodes, pods = whole.nodes, whole.pods
            if nodes.synced.is_set() and pods.synced.is_set():
                return nodes.there(), pods.there()
        api = self.api
        listed = self._try(lambda: api.list("/api/v1/nodes"))
        running = self._try(lambda: api.list("/api/v1/pods", fieldSelector=ACTIVE))
        return listed, None if running is None else [pod_facts(pod) for pod in running]

    def _look(
        self,
        nodes: list[Object] | None,
        pods: list[PodFacts] | None,
        fresh: float = FRESH,
        *,
        reading: bool = False,
    ) -> Capacity:
        """`nodes` and `pods`, and what there is in our own namespace."""
        api, began = self.api, time.monotonic()
        near = None
        if pods is None and not reading:
            listed = self._try(lambda: api.list(api.path("pods"), fieldSelector=ACTIVE))
            near = None if listed is None else [pod_facts(pod) for pod in listed]
        quotas, queues = self._namespace(fresh)
        now = time.monotonic()
        return Capacity(
            None if nodes is None else nodes_of(nodes, pods),
            quotas,
            pods,
            queues,
            now + max(fresh, SHARE * (now - began)),
            near,
            reading,
        )

    def _namespace(self, fresh: float) -> tuple[list[Quota] | None, Queues | None]:
        """Quotas and queues of our namespace; a look that is so many seconds old will do."""
        with self._asking:
            now = time.monotonic()
            if self._own is None or now - self._own[2] > fresh:
                api = self.api
                quotas = self._try(lambda: api.list(api.path("resourcequotas")))
                queues = self._queues()
                self._own = None if quotas is None else quotas_of(quotas), queues, now
            return self._own[0], self._own[1]

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
        versions = self._versions()
        if versions is None:
            return None
        if GROUP not in versions:
            return Queues()
        root = f"/apis/{versions[GROUP]}"
        path = f"{root}/namespaces/{self.api.namespace}"
        listed = self._try(lambda: self.api.list(f"{path}/localqueues"))
        items = self._try(lambda: self.api.list(f"{path}/workloads"))
        if listed is None:
            return None
        queues = queues_of(listed)
        groups: dict[str, QueueGroup] = {}
        for name in {queue.group for queue in queues if queue.group}:
            found = self._try(functools.partial(self.api.get, f"{root}/clusterqueues/{name}"))
            if found is not None:
                groups[name] = group_of(found)
        workloads = None if items is None else tuple(map(workload_of, items))
        positions = None if items is None else positions_of(items)
        for uid, number in self._told_positions(queues, versions.get(VISIBILITY)).items():
            positions = positions or {}
            known = positions.get(uid)
            positions[uid] = QueuePosition(number, known.words if known else None)
        return Queues(queues, positions, workloads, groups)

    def _told_positions(self, queues: Iterable[Queue], version: str | None) -> dict[str, int]:
        """Where the queue itself says that each is, which knows of fair shares and of others."""
        found: dict[str, int] = {}
        for queue in queues if version else ():
            if not queue.waiting:
                continue
            path = f"/apis/{version}/namespaces/{self.api.namespace}/localqueues/{queue.name}"
            try:
                pending = self.api.get(f"{path}/pendingworkloads", limit=1000)
            except (ApiError, ClusterUnreachable):
                continue  # It is an extension of the cluster that may be down.
            for item in pending.get("items") or ():
                number = int(item.get("positionInLocalQueue") or 0) + 1
                for owner in item["metadata"].get("ownerReferences") or ():
                    found[owner["uid"]] = number
        return found

    def _versions(self) -> dict[str, str] | None:
        """The preferred version of each group of resources that the cluster has."""
        if self._groups is None or time.monotonic() > self._groups[1]:
            groups = self._try(lambda: self.api.get("/apis"))
            if groups is None:
                return None
            found = {
                group["name"]: group["preferredVersion"]["groupVersion"]
                for group in groups.get("groups", ())
            }
            self._groups = found, time.monotonic() + GROUPS_FRESH
        return self._groups[0]

    def may(self, right: str) -> bool | None:
        """Whether we are allowed to; None when the cluster does not say."""
        known = self._rights.get(right)
        if known is None or time.monotonic() - known[1] > RIGHTS_FRESH:
            verb, group, resource, part = RIGHTS.get(right) or EVERYWHERE[right]
            review = {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {
                    "resourceAttributes": {
                        "namespace": "" if right in EVERYWHERE else self.api.namespace,
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
        if self._whole is not None:
            self._whole.close()
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
