"""What the cluster has, what of it is free, and who holds the rest: pure, over what was listed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from ..capacity import (
    GpuOverview,
    GpuSharing,
    HeldAmount,
    HiddenPart,
    Holder,
    HolderKind,
    NodeOverview,
    Offer,
    Overview,
    QueueLimit,
    QueueOverview,
    QuotaOverview,
    ResourceAmount,
    WaitingWorkload,
    WaitRange,
)
from .cluster import Capacity
from .fit import CORDONED, Node, unsuited_taint
from .gpu_metrics import GpuUse
from .gpu_sharing import sharing_of
from .pod_defaults import GpuProfile
from .pod_facts import ZERO, Amounts, PodFacts, add_amounts
from .queues import Queue, Queues, estimate_wait, head_times

PLAIN = ("cpu", "memory")
MOST_PODS = 200
"""Beyond so many, the pods of others that hold GPUs are told by namespace and owner."""
MOST_GROUPS = 200
"""Beyond so many, the pods of others that hold least are told as one."""
MOST_WORKLOADS = 50


@dataclass(frozen=True)
class OverviewFacts:
    """All that an overview of a cluster is made of."""

    namespace: str
    capacity: Capacity
    profiles: Mapping[str, GpuProfile]
    """How the cluster counts GPUs."""
    own_pods: Collection[PodFacts] | None = ()
    """Those of our own steps, all that is known where others are hidden; None where not even
    these are known."""
    own_jobs: Mapping[str, str] = field(default_factory=dict)
    """The run of each of our Jobs, by its uid."""
    use: Mapping[tuple[str, str], GpuUse] = field(default_factory=dict)
    """How busy the GPUs of pods are, by namespace and name; empty where nobody measures it."""
    notes: tuple[str, ...] = ()


def gpus_of(facts: OverviewFacts) -> tuple[GpuOverview, ...]:
    nodes = facts.capacity.nodes or ()
    return tuple(_by_type(nodes, _gpu_resources(nodes, facts.profiles), _labels(facts.profiles)))


def overview(facts: OverviewFacts, offers: Iterable[Offer] = ()) -> Overview:
    capacity, namespace = facts.capacity, facts.namespace
    nodes = capacity.nodes
    names = _gpu_resources(nodes or (), facts.profiles)
    labels = _labels(facts.profiles)
    pods = capacity.pods if capacity.pods is not None else capacity.near
    if pods is None:
        pods = list(facts.own_pods or ())
    holders = tuple(_holders(pods, names, facts.use))
    gpus = None if nodes is None else gpus_of(facts)
    return Overview(
        namespace=namespace,
        nodes=None if nodes is None else tuple(_node(n, names, labels) for n in nodes),
        gpus=None if gpus is None else tuple(_with_use(gpus, pods, nodes or (), labels, facts.use)),
        quotas=None
        if capacity.quotas is None
        else tuple(
            QuotaOverview(quota.name, key, float(quota.used.get(key, ZERO)), float(hard))
            for quota in capacity.quotas
            for key, hard in sorted(quota.hard.items())
        ),
        queues=None
        if capacity.queues is None
        else tuple(
            _queue(queue, capacity.queues, facts.own_jobs) for queue in capacity.queues.queues
        ),
        holders=holders,
        offers=tuple(offers),
        hidden=tuple(_hidden(facts)),
        notes=facts.notes,
        reading=capacity.reading,
    )


def _hidden(facts: OverviewFacts) -> Iterator[HiddenPart]:
    """What this account must not see, from the whole cluster down to its own pods."""
    capacity, namespace = facts.capacity, facts.namespace
    if capacity.nodes is None and not capacity.reading:
        sentence = "You are not allowed to list the cluster's nodes."
        yield HiddenPart("nodes", sentence, rule("", "nodes", "list, watch"), "cluster")
    if capacity.pods is None and not capacity.reading:
        sentence = (
            "You are not allowed to list the pods of other users, so what is free is unknown."
        )
        yield HiddenPart("pods", sentence, rule("", "pods", "list, watch"), "cluster")
        if capacity.near is None:
            sentence = f"You are not allowed to list the pods of namespace {namespace}."
            yield HiddenPart("own-pods", sentence, rule("", "pods", "list, watch"), "namespace")
    if capacity.quotas is None:
        sentence = f"You are not allowed to list the quotas of namespace {namespace}."
        yield HiddenPart("quotas", sentence, rule("", "resourcequotas", "list"), "namespace")
    queues = capacity.queues
    if queues is None:
        sentence = f"You are not allowed to list the queues of namespace {namespace}."
        yield HiddenPart(
            "queues", sentence, rule("kueue.x-k8s.io", "localqueues", "list"), "namespace"
        )
    elif queues.queues:
        if queues.workloads is None:
            sentence = f"You are not allowed to list the workloads of namespace {namespace}."
            yield HiddenPart(
                "workloads", sentence, rule("kueue.x-k8s.io", "workloads", "list"), "namespace"
            )
        if any(queue.group not in (queues.groups or {}) for queue in queues.queues if queue.group):
            sentence = (
                "You are not allowed to see the limits of the queues, which their group shares."
            )
            yield HiddenPart(
                "limits", sentence, rule("kueue.x-k8s.io", "clusterqueues", "get"), "cluster"
            )


def rule(group: str, resource: str, verbs: str) -> str:
    """A rule of a Role or a ClusterRole, to be copied."""
    return f'- apiGroups: ["{group}"]\n  resources: [{resource}]\n  verbs: [{verbs}]\n'


def _labels(profiles: Mapping[str, GpuProfile]) -> dict[str, str]:
    """By resource: the label that says of which type it is on a node."""
    return {
        name: profile.type_label
        for profile in profiles.values()
        for name in profile.requests
        if profile.type_label
    }


def _gpu_resources(nodes: Iterable[Node], profiles: Mapping[str, GpuProfile]) -> set[str]:
    """What is configured, and every other resource of a device that some node has."""
    configured = {name for profile in profiles.values() for name in profile.requests}
    devices = {
        name
        for node in nodes
        for name, total in node.total.items()
        if "/" in name and total > 0 and not name.startswith(("kubernetes.io/", "attachable-"))
    }
    return configured | devices


def _node(node: Node, gpus: Collection[str], labels: Mapping[str, str]) -> NodeOverview:
    closed = unsuited_taint(node)
    return NodeOverview(
        node.name,
        node.ready and closed != CORDONED,
        next((node.labels[label] for label in labels.values() if label in node.labels), None),
        tuple(
            ResourceAmount(
                name,
                float(node.total[name]),
                None if node.free is None else float(max(node.free[name], ZERO)),
            )
            for name in (*PLAIN, *sorted(gpus))
            if node.total.get(name)
        ),
        None if node.ready and not closed else closed or "The node is not ready.",
    )


def _type_of(node: Node, resource: str, labels: Mapping[str, str]) -> str | None:
    """MIG slices and other names of NVIDIA's have the type of the node's GPUs, too."""
    label = labels.get(resource)
    if label is None and resource.startswith("nvidia.com/"):
        label = "nvidia.com/gpu.product"
    return node.labels.get(label or "")


def _by_type(
    nodes: Iterable[Node], gpus: Collection[str], labels: Mapping[str, str]
) -> list[GpuOverview]:
    found: dict[tuple[str, str, str], GpuOverview] = {}
    for node in nodes:
        for name in gpus:
            total = node.total.get(name)
            if not total:
                continue
            kind = _type_of(node, name, labels)
            sharing = sharing_of(name, total, node.labels, node.annotations)
            free = None
            if node.free is not None:
                usable = node.ready and unsuited_taint(node) != CORDONED
                free = float(max(node.free[name], ZERO)) if usable else 0.0
            new = GpuOverview(name, kind, float(total), free, free, node.name, sharing)
            key = (name, kind or "", sharing.kind if sharing else "")
            known = found.get(key)
            found[key] = new if known is None else _together(known, new)
    return [found[key] for key in sorted(found)]


def _together(known: GpuOverview, new: GpuOverview) -> GpuOverview:
    largest = known
    if known.largest_free is not None and new.largest_free is not None:
        largest = max(known, new, key=lambda each: each.largest_free or 0.0)
    return GpuOverview(
        known.resource,
        known.type,
        known.total + new.total,
        None if known.free is None or new.free is None else known.free + new.free,
        largest.largest_free,
        largest.largest_node,
        _shared_together(known.sharing, new.sharing),
    )


def _shared_together(known: GpuSharing | None, new: GpuSharing | None) -> GpuSharing | None:
    if known is None or new is None:
        return known
    both = known.cards is not None and new.cards is not None
    return replace(known, cards=(known.cards or 0.0) + (new.cards or 0.0) if both else None)


def _with_use(
    gpus: Iterable[GpuOverview],
    pods: Iterable[PodFacts],
    nodes: Iterable[Node],
    labels: Mapping[str, str],
    use: Mapping[tuple[str, str], GpuUse],
) -> Iterator[GpuOverview]:
    """How busy those are that pods hold, as far as it is measured."""
    busy: dict[tuple[str, str | None], list[tuple[float, float]]] = {}
    if use:
        by_name = {node.name: node for node in nodes}
        for pod in pods:
            seen = use.get((pod.namespace, pod.name))
            node = by_name.get(pod.node or "")
            if seen is None or node is None:
                continue
            for name, held in pod.requests.items():
                if "/" in name and held:
                    key = (name, _type_of(node, name, labels))
                    busy.setdefault(key, []).append((seen.use, float(held)))
    for gpu in gpus:
        seen_here = busy.get((gpu.resource, gpu.type))
        if seen_here is None:
            yield gpu
            continue
        in_use = sum(use * held for use, held in seen_here)
        yield replace(gpu, use=in_use / sum(held for _, held in seen_here))


def _holders(
    pods: Iterable[PodFacts],
    gpus: Collection[str],
    use: Mapping[tuple[str, str], GpuUse],
) -> list[Holder]:
    """Ours and those that hold GPUs one by one, the rest by namespace, owner and kind."""
    there = [pod for pod in pods if pod.node and not pod.is_over]
    ours = [pod for pod in there if pod.run is not None or pod.service is not None]
    others = [pod for pod in there if pod.run is None and pod.service is None]
    with_gpus = [pod for pod in others if any(map(pod.requests.get, gpus & pod.requests.keys()))]
    alone = ours
    if len(with_gpus) <= MOST_PODS:
        alone = ours + with_gpus
        shown = {id(pod) for pod in with_gpus}
        others = [pod for pod in others if id(pod) not in shown]
    together: dict[tuple[str, str | None, HolderKind], list[PodFacts]] = {}
    for pod in others:
        if pod.requests:
            together.setdefault((pod.namespace, pod.owner, pod.kind), []).append(pod)
    summed = [found for each in together.values() if (found := _sum(each, gpus, use)).resources]
    summed.sort(key=lambda each: _weight(each, gpus), reverse=True)
    summed[MOST_GROUPS:] = _rest(summed[MOST_GROUPS:])
    held = [*(_sum([pod], gpus, use) for pod in alone), *summed]
    return sorted(held, key=lambda each: _weight(each, gpus), reverse=True)


def _rest(holders: Sequence[Holder]) -> list[Holder]:
    """One for all that hold too little to be told by themselves."""
    if not holders:
        return []
    totals: dict[str, float] = {}
    for holder in holders:
        for each in holder.resources:
            totals[each.name] = totals.get(each.name, 0.0) + each.amount
    amounts = tuple(HeldAmount(name, amount) for name, amount in totals.items())
    return [Holder("other", "", "", None, amounts, count=sum(each.count for each in holders))]


def _sum(
    pods: Sequence[PodFacts], gpus: Collection[str], use: Mapping[tuple[str, str], GpuUse]
) -> Holder:
    """Several as one; of a single pod all is told."""
    totals: Amounts = {}
    for pod in pods:
        add_amounts(totals, pod.requests)
    seen = [found for pod in pods if (found := use.get((pod.namespace, pod.name)))]
    first = pods[0]
    holder = Holder(
        first.kind,
        first.title,
        first.namespace,
        first.node,
        tuple(
            HeldAmount(name, float(totals[name]))
            for name in (*PLAIN, *sorted(gpus & totals.keys()))
            if totals.get(name)
        ),
        owner=first.owner,
        run=first.run,
        step=first.step,
        id=first.service,
        idle=seen[0].idle if seen else None,
        gpu_use=sum(each.use for each in seen) / len(seen) if seen else None,
    )
    if len(pods) == 1:
        return holder
    return replace(holder, name="", node=None, count=len(pods), idle=None)


def _weight(holder: Holder, gpus: Collection[str]) -> tuple[float, float, float]:
    held = {each.name: each.amount for each in holder.resources}
    devices = sum(amount for name, amount in held.items() if name in gpus)
    return devices, held.get("cpu", 0.0), held.get("memory", 0.0)


def _queue(queue: Queue, queues: Queues, own_jobs: Mapping[str, str]) -> QueueOverview:
    group = (queues.groups or {}).get(queue.group or "")
    times = head_times(queues.workloads or (), queue.name)

    def wait(position: int) -> WaitRange | None:
        found = estimate_wait(times, position)
        return None if found is None else WaitRange(*found, len(times))

    workloads = None
    if queues.workloads is not None:
        waiting = [w for w in queues.workloads if w.queue == queue.name and w.is_waiting]
        placed = []
        for each in waiting:
            position = (
                next(
                    (
                        queues.positions[uid]
                        for uid in each.owners
                        if uid in (queues.positions or {})
                    ),
                    None,
                )
                if queues.positions
                else None
            )
            run = next((own_jobs[uid] for uid in each.owners if uid in own_jobs), None)
            if position is not None:
                placed.append(
                    WaitingWorkload(
                        each.name, run, position.number, each.words, wait(position.number)
                    )
                )
        placed.sort(key=lambda each: each.position)
        ours = [each for each in placed if each.run is not None]
        others = [each for each in placed if each.run is None]
        shown = [*ours, *others][:MOST_WORKLOADS]
        workloads = tuple(sorted(shown, key=lambda each: each.position))
    limits = None
    if group is not None:
        limits = tuple(
            QueueLimit(
                flavor,
                resource,
                float(group.used.get((flavor, resource), ZERO)),
                float(nominal),
                float(queue.usage.get((flavor, resource), ZERO)),
                _optional(group.borrowing.get((flavor, resource))) if group.cohort else 0.0,
            )
            for (flavor, resource), nominal in group.nominal.items()
        )
    return QueueOverview(
        queue.name,
        queue.waiting,
        queue.admitted,
        queue.closed,
        queue.group,
        group.cohort if group else None,
        limits,
        workloads,
        wait(queue.waiting + 1) if queue.waiting else None,
    )


def _optional(value: Decimal | None) -> float | None:
    return None if value is None else float(value)
