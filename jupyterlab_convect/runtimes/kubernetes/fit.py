"""Would a pod fit on one of the nodes, and if not, why not.

Pure, over what was listed from the cluster. What must not be listed is None, and what
follows from it is said to be unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from ...pipeline.plan import Json
from ...text import listing
from .objects import amount, bare
from .pod_facts import ZERO, Amounts, PodFacts, add_amounts, amounts_of, pod_facts, pod_requests

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


def nodes_of(nodes: Iterable[Json], pods: Iterable[Json | PodFacts] | None) -> list[Node]:
    taken: dict[str, Amounts] = {}
    for item in pods or ():
        pod = item if isinstance(item, PodFacts) else pod_facts(item)
        if pod.node and not pod.is_over:
            held = taken.setdefault(pod.node, {})
            add_amounts(held, pod.requests)
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
        limits |= amounts_of(container.get("resources", {}).get("limits", {}))
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
    total = amounts_of(status.get("allocatable", {}))
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
