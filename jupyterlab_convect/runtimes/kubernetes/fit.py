"""Would a pod fit, and if not, why not; and where in a queue of Kueue it is.

Pure, over what was listed from the cluster. What must not be listed is None, and what
follows from it is said to be unknown. A Job joins a queue by its label; it is suspended
until the queue admits it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from ...errors import ConvectError
from ...pipeline.plan import Json
from ...pipeline.quantities import quantity
from ...text import listing
from .objects import Object, amount, bare, condition, seconds_of, words_of

Amounts = dict[str, Decimal]
ZERO = Decimal(0)
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
CORDONED = "The node does not accept pods at the moment."


@dataclass(frozen=True)
class Node:
    name: str
    total: Amounts
    free: Amounts | None
    """None when nobody told us which pods are there."""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    ready: bool = True
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Those by which GPUs are shared."""


@dataclass(frozen=True)
class Needs:
    """What a pod asks of the one node that it will be on."""

    requests: Amounts
    selector: Mapping[str, str] = field(default_factory=dict)
    labels_in: tuple[tuple[str, tuple[str, ...]], ...] = ()
    nodes: tuple[str, ...] = ()
    tolerations: tuple[Mapping[str, Json], ...] = ()
    gpu_type: str | None = None
    limits: Amounts = field(default_factory=dict)

    def times(self, count: int) -> Needs:
        """What so many pods of this kind ask for in all."""

        def all_of(amounts: Amounts) -> Amounts:
            return {name: value * count for name, value in amounts.items()}

        return replace(self, requests=all_of(self.requests), limits=all_of(self.limits))


@dataclass(frozen=True)
class Fit:
    """`now`: it would start at once (None: unknown); `ever`: some node is large enough."""

    now: bool | None
    ever: bool
    sentence: str | None = None


@dataclass(frozen=True)
class Quota:
    name: str
    hard: Amounts
    used: Amounts


@dataclass(frozen=True, slots=True)
class PodFacts:
    """What counts of a pod, read once: a cluster has tens of thousands of them."""

    name: str
    namespace: str
    node: str | None
    requests: Amounts
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    owner: str | None
    """What made it: `Job/train`."""
    is_over: bool


def pod_facts(pod: Json) -> PodFacts:
    meta = pod["metadata"]
    owners = meta.get("ownerReferences") or ()
    owner = next((each for each in owners if each.get("controller")), None)
    return PodFacts(
        meta["name"],
        meta.get("namespace", ""),
        pod["spec"].get("nodeName"),
        pod_requests(pod["spec"]),
        meta.get("labels") or {},
        {
            key: value
            for key, value in (meta.get("annotations") or {}).items()
            if key.endswith(("/username", "/owner", "/user"))
        },
        f"{owner['kind']}/{owner['name']}" if owner else None,
        pod.get("status", {}).get("phase") in ("Succeeded", "Failed"),
    )


def nodes_of(nodes: Iterable[Json], pods: Iterable[Json | PodFacts] | None) -> list[Node]:
    taken: dict[str, Amounts] = {}
    for item in pods or ():
        pod = item if isinstance(item, PodFacts) else pod_facts(item)
        if pod.node and not pod.is_over:
            held = taken.setdefault(pod.node, {})
            for name, value in pod.requests.items():
                held[name] = held.get(name, ZERO) + value
            held["pods"] = held.get("pods", ZERO) + 1
    return [_node(item, None if pods is None else taken) for item in nodes]


def needs_of(pod_spec: Json, gpu_type: str | None = None) -> Needs:
    affinity = pod_spec.get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    terms = required.get("nodeSelectorTerms", [{}])
    expressions = terms[0].get("matchExpressions", ())
    fields = terms[0].get("matchFields", ())
    limits: Amounts = {}
    for container in pod_spec.get("containers", ()):
        limits |= _amounts(container.get("resources", {}).get("limits", {}))
    return Needs(
        requests={**pod_requests(pod_spec), "pods": Decimal(1)},
        selector=pod_spec.get("nodeSelector", {}),
        labels_in=tuple((item["key"], tuple(item["values"])) for item in expressions),
        nodes=tuple(name for item in fields for name in item["values"]),
        tolerations=tuple(pod_spec.get("tolerations", ())),
        gpu_type=gpu_type,
        limits=limits,
    )


def judge_gang(needs: Needs, nodes: Sequence[Node], count: int) -> Fit:
    """Is there room for so many pods of the same kind at the same time, now or ever?"""
    one = judge_nodes(needs, nodes)
    if count == 1 or not one.ever:
        return one
    ready = [node for node in nodes if node.ready and not unsuited(needs, node)]
    ever = sum(how_often(node.total, needs.requests) for node in ready)
    each = _all_of(needs)
    all_of_it = f"{count} pods with {each} each" if each else f"{count} pods"
    if ever < count:
        never = f"It needs {all_of_it} at the same time, but the nodes have room for {ever}."
        return Fit(False, False, never)
    if one.now is not True:
        return one
    now = sum(how_often(node.free or {}, needs.requests) for node in ready)
    if now < count:
        later = f"It needs {all_of_it} at the same time; at the moment there is room for {now}."
        return Fit(False, True, later)
    return one


def how_often(have: Amounts, wanted: Amounts) -> int:
    """How many pods of a kind fit into what a node has."""
    fits = [have.get(name, Decimal(0)) // value for name, value in wanted.items() if value]
    return int(max(min(fits, default=Decimal(0)), Decimal(0)))


def judge_nodes(needs: Needs, nodes: Sequence[Node]) -> Fit:
    """Does one of the nodes have all of it, now or ever?"""
    if not nodes:
        return Fit(False, False, "The cluster has no nodes.")
    eligible = [node for node in nodes if not unsuited(needs, node)]
    if not eligible:
        return Fit(False, False, _why_unsuited(needs, nodes))
    large = [node for node in eligible if _covers(node.total, needs.requests)]
    if not large:
        return Fit(False, False, _too_small(needs, eligible))
    ready = [node for node in large if node.ready]
    if not ready:
        names = listing([node.name for node in large[:3]])
        return Fit(False, True, f"None of the nodes that suit it is ready ({names}).")
    if any(node.free is None for node in ready):
        return Fit(None, True)
    if any(_covers(node.free or {}, needs.requests) for node in ready):
        return Fit(True, True)
    return Fit(False, True, _too_full(needs, ready))


def quotas_of(items: Iterable[Json]) -> list[Quota]:
    """Those that count every pod; a quota with a scope may or may not count ours."""
    return [
        Quota(
            item["metadata"]["name"],
            _amounts(item.get("status", {}).get("hard") or item["spec"].get("hard", {})),
            _amounts(item.get("status", {}).get("used", {})),
        )
        for item in items
        if not item["spec"].get("scopes") and not item["spec"].get("scopeSelector")
    ]


def judge_quotas(needs: Needs, quotas: Iterable[Quota]) -> list[Fit]:
    """One verdict for each limit that is in the way."""
    found = []
    for quota in quotas:
        for key, hard in quota.hard.items():
            wanted = _asked(needs, key)
            if wanted is None:
                if key in ("limits.cpu", "limits.memory", "requests.cpu", "requests.memory"):
                    part, _, name = key.partition(".")
                    what = "CPU" if name == "cpu" else "memory"
                    sentence = (
                        f"The quota {quota.name} requires every pod to set a {what} {part[:-1]}."
                    )
                    found.append(Fit(False, False, sentence))
                continue
            left = max(hard - quota.used.get(key, Decimal(0)), Decimal(0))
            if wanted > left:
                found.append(_over_quota(quota.name, key, wanted, left, hard, needs.gpu_type))
    return found


def _over_quota(
    name: str, key: str, wanted: Decimal, left: Decimal, hard: Decimal, kind: str | None
) -> Fit:
    need = amount(key, wanted, kind)
    if wanted > hard:
        return Fit(
            False,
            False,
            f"It needs {need}, but the quota {name} allows {bare(key, hard)} in total.",
        )
    return Fit(
        False,
        True,
        f"It needs {need}; of the {bare(key, hard)} that the quota {name} allows, "
        f"{bare(key, left)} {'is' if left == 1 else 'are'} left.",
    )


def _asked(needs: Needs, key: str) -> Decimal | None:
    """How much of what a quota counts; None when the pod does not say."""
    if key == "count/jobs.batch":
        return Decimal(1)
    if key in ("count/pods", "pods"):
        return needs.requests.get("pods", Decimal(1))
    if key.startswith("limits."):
        return needs.limits.get(key.removeprefix("limits."))
    name = key.removeprefix("requests.")
    if name in ("cpu", "memory", "ephemeral-storage"):
        return needs.requests.get(name)
    return needs.requests.get(name, Decimal(0))


def match_types(wanted: str, known: Iterable[str]) -> list[str]:
    """The types of GPU that a person means by a name: that very one, or all that contain it."""
    present = sorted(set(known))
    if wanted in present:
        return [wanted]
    words = wanted.lower().replace("_", "-").replace(" ", "-")
    return [item for item in present if words in item.lower()]


def unsuited(needs: Needs, node: Node) -> str | None:
    """Why the node would not do even when it is empty."""
    if needs.nodes and node.name not in needs.nodes:
        return f"cannot mount its volume, which is on {listing(list(needs.nodes))}"
    for key, value in needs.selector.items():
        if node.labels.get(key) != value:
            return f"does not have the label {key}={value}"
    for key, values in needs.labels_in:
        if node.labels.get(key) not in values:
            if needs.gpu_type:
                return f"does not have GPUs of type {needs.gpu_type}"
            return f"does not have the label {key}={values[0]}"
    for taint in node.taints:
        if taint.get("effect") != "PreferNoSchedule" and not _tolerated(taint, needs.tolerations):
            if taint["key"] == UNSCHEDULABLE:
                return "does not accept pods at the moment"
            value = f"={taint['value']}" if taint.get("value") else ""
            return f"does not accept pods without a toleration for {taint['key']}{value}"
    return None


def unsuited_taint(node: Node) -> str | None:
    """What keeps pods off the node that do not ask for it, in a sentence."""
    hard = [taint for taint in node.taints if taint.get("effect") != "PreferNoSchedule"]
    if any(taint["key"] == UNSCHEDULABLE for taint in hard):
        return CORDONED
    if not hard:
        return None
    names = [f"{t['key']}={t['value']}" if t.get("value") else t["key"] for t in hard]
    return f"Only pods with a toleration for {listing(names)} start on it."


def _why_unsuited(needs: Needs, nodes: Sequence[Node]) -> str:
    reasons: dict[str, int] = {}
    for node in nodes:
        reason = unsuited(needs, node) or ""
        reasons[reason] = reasons.get(reason, 0) + 1
    if len(nodes) == 1:
        return f"The only node {next(iter(reasons))}."
    if len(reasons) == 1:
        return f"None of the {len(nodes)} nodes suits it: each {next(iter(reasons))}."
    counted = [
        f"{count} {reason.replace('does ', 'do ', 1) if count > 1 else reason}"
        for reason, count in sorted(reasons.items(), key=lambda item: -item[1])
    ]
    return f"None of the {len(nodes)} nodes suits it: {listing(counted)}."


def _too_small(needs: Needs, nodes: Sequence[Node]) -> str:
    short = _short_of(needs, {node.name: node.total for node in nodes})
    if short is None:
        return f"No single node has {_all_of(needs)} together."
    need, most, node = short
    if most is None:
        return f"It needs {need} on one node, but no node has any."
    return f"It needs {need} on one node, but the largest node ({node}) has {most}."


def _too_full(needs: Needs, nodes: Sequence[Node]) -> str:
    short = _short_of(needs, {node.name: node.free or {} for node in nodes})
    if short is None:
        return f"At the moment no single node has {_all_of(needs)} free together."
    need, most, node = short
    if most is None:
        return f"It needs {need} on one node; at the moment none is free on any node."
    return f"It needs {need} on one node; the largest free is {most} on {node}."


def _short_of(
    needs: Needs, nodes: Mapping[str, Mapping[str, Decimal]]
) -> tuple[str, str | None, str] | None:
    """What no node has enough of: how much is needed, the most that one has, and which one."""
    for name, wanted in _scarce_first(needs.requests):
        best = max(nodes, key=lambda node: nodes[node].get(name, Decimal(0)))
        most = max(nodes[best].get(name, Decimal(0)), Decimal(0))
        if most < wanted:
            need = amount(name, wanted, needs.gpu_type if "/" in name else None)
            return need, bare(name, most) if most else None, best
    return None


def _all_of(needs: Needs) -> str:
    return listing(
        [
            amount(name, value, needs.gpu_type if "/" in name else None)
            for name, value in _scarce_first(needs.requests)
            if name != "pods"
        ]
    )


def _scarce_first(requests: Amounts) -> list[tuple[str, Decimal]]:
    """GPUs before memory before cores: what people wait for comes first in a sentence."""
    order = {"memory": 1, "cpu": 2, "ephemeral-storage": 3, "pods": 4}
    return sorted(requests.items(), key=lambda item: (order.get(item[0], 0), item[0]))


def _covers(have: Amounts, wanted: Amounts) -> bool:
    return all(have.get(name, Decimal(0)) >= value for name, value in wanted.items())


def _tolerated(taint: Mapping[str, str], tolerations: Iterable[Mapping[str, Json]]) -> bool:
    return any(
        item.get("effect") in (None, "", taint.get("effect"))
        and (
            item.get("key") in (None, "", taint["key"])
            if item.get("operator") == "Exists"
            else item.get("key") == taint["key"]
            and (item.get("value") or "") == (taint.get("value") or "")
        )
        for item in tolerations
    )


def _node(item: Json, taken: dict[str, Amounts] | None) -> Node:
    name, status, spec = item["metadata"]["name"], item.get("status", {}), item.get("spec", {})
    total = _amounts(status.get("allocatable", {}))
    held = None if taken is None else taken.get(name, {})
    conditions = {c["type"]: c["status"] for c in status.get("conditions", ())}
    return Node(
        name=name,
        total=total,
        free=None
        if held is None
        else {key: value - held.get(key, Decimal(0)) for key, value in total.items()},
        labels=item["metadata"].get("labels", {}),
        taints=tuple(spec.get("taints", ())),
        ready=conditions.get("Ready") == "True",
        annotations={
            key: value
            for key, value in (item["metadata"].get("annotations") or {}).items()
            if key.startswith("hami.io/")
        },
    )


def pod_requests(spec: Json) -> Amounts:
    """As the scheduler counts: containers and sidecars together, or the largest of those that
    come before with the sidecars that run by then; what the pod asks for as a whole goes first."""
    total: Amounts = {}
    for container in spec.get("containers", ()):
        _add(total, _container_requests(container))
    before: Amounts = {}
    sidecars: Amounts = {}
    for container in spec.get("initContainers", ()):
        asked = _container_requests(container)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, asked)
            asked = dict(sidecars)
        else:
            _add(asked, sidecars)
        for name, value in asked.items():
            before[name] = max(before.get(name, ZERO), value)
    _add(total, sidecars)
    for name, value in before.items():
        total[name] = max(total.get(name, ZERO), value)
    total |= _container_requests(spec)
    _add(total, _amounts(spec.get("overhead") or {}))
    return total


def _add(total: Amounts, more: Amounts) -> None:
    for name, value in more.items():
        total[name] = total.get(name, ZERO) + value


def _container_requests(container: Json) -> Amounts:
    resources = container.get("resources") or {}
    return _amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _amounts(values: Mapping[str, Json]) -> Amounts:
    found = {}
    for name, value in values.items():
        try:
            found[name] = quantity(value)
        except ConvectError:
            continue
    return found


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
                given = _amounts({**each, "name": ""})
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
        for found in [_amounts({"total": each.get("total") or 0})]
    }


def _order(item: Json) -> tuple[int, str, str]:
    meta = item["metadata"]
    return -int(item["spec"].get("priority") or 0), meta.get("creationTimestamp", ""), meta["name"]
