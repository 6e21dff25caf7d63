"""What could start now: the largest request of each profile, by nodes, quotas and queues. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

from ...errors import ConvectError
from ...pipeline.plan import Amount, Gpu, Resources, Step
from ...pipeline.profiles import Profile, floor_to, memory_text, settings_times, whole
from ...pipeline.quantities import canonical
from ...transfer.base import PYTHON, Mounts
from ..capacity import GpuOverview, Offer
from . import fit
from .cluster import Capacity
from .fit import Needs, Node
from .gpu_sharing import PARTS
from .manifests import PodContent, pod_spec
from .objects import bare
from .pod_defaults import PodDefaults
from .pod_facts import ZERO
from .queues import LABEL, Queue
from .quotas import judge_quotas

MOST = 1000
"""So many times a profile is enough to be told."""
_GPU_NAME = re.compile(r"gpu|mig-|vcuda|npu|tpu|neuron|hpu", re.IGNORECASE)
_ANY_IMAGE = "image"
CPU_ONLY = "CPU only"


def offers(
    profiles: Sequence[Profile],
    capacity: Capacity,
    defaults: PodDefaults,
    mounts: Mounts,
    gpus: Sequence[GpuOverview],
) -> Iterator[Offer]:
    """One of each profile of this namespace; without profiles, what each sort of GPU leaves."""
    needs = _Needed(defaults, mounts, capacity)
    own = [each for each in profiles if each.is_for(defaults.namespace)]
    for profile in own:
        yield _offer(profile, profile.name, profile.name, needs, capacity, defaults, MOST)
    if profiles:
        return
    if capacity.nodes is None:
        return
    for title, wanted in _largest(capacity, defaults, gpus, needs):
        yield _offer(wanted, None, title, needs, capacity, defaults, 1)


class _Needed:
    """What a pod with the resources of a profile would ask for, as steps' pods are made."""

    def __init__(self, defaults: PodDefaults, mounts: Mounts, capacity: Capacity) -> None:
        self._defaults = defaults
        self._mounts = mounts
        self._capacity = capacity

    def of(self, profile: Profile) -> Needs:
        resources = Resources(
            cpu=_amount(profile.cpu), memory=_amount(profile.memory), gpu=profile.gpu
        )
        step = Step("offer", "script", "offer", image=_ANY_IMAGE, resources=resources)
        defaults = replace(self._defaults, image=self._defaults.image or _ANY_IMAGE)
        content = PodContent((PYTHON,), mounts=Mounts(self._mounts.volumes))
        types: list[str] = []
        gpu = profile.gpu
        if gpu is not None and gpu.type and self._capacity.nodes is not None:
            label = defaults.profile(gpu).type_label
            known = [n.labels[label] for n in self._capacity.nodes if label in n.labels]
            types = fit.match_types(gpu.type, known)
        return fit.needs_of(pod_spec(step, defaults, content, types), gpu.type if gpu else None)


def _offer(
    profile: Profile,
    name: str | None,
    title: str,
    needed: _Needed,
    capacity: Capacity,
    defaults: PodDefaults,
    most: int,
) -> Offer:
    try:
        unit = needed.of(profile)
    except ConvectError as error:
        # A part of a GPU where there are whole ones only, for example.
        return Offer(name, title, {}, False, 0, None, error.sentence, profile.notes)
    made: Callable[..., Offer] = lambda **given: Offer(  # noqa: E731
        profile=name, title=title, notes=profile.notes, **given
    )
    verdicts = judge_quotas(unit, capacity.quotas or ())
    if verdicts:
        return made(settings={}, now=False, count=0, node=None, sentence=verdicts[0].sentence)
    blocked, doubt = _queue_verdict(unit, capacity, defaults)
    if blocked:
        return made(settings={}, now=False, count=0, node=None, sentence=blocked)
    if capacity.nodes is None or any(node.free is None for node in capacity.nodes):
        sentence = "What is free on the nodes is not known to this account."
        if capacity.reading:
            sentence = "The pods of the cluster are being read."
        return made(settings=settings_times(profile, 1), now=None, count=1, node=None,
                    sentence=sentence)  # fmt: skip
    verdict = fit.judge_nodes(unit, capacity.nodes)
    if not verdict.now:
        return made(settings={}, now=False, count=0, node=None, sentence=verdict.sentence)
    count, node = _how_many(unit, capacity.nodes)
    count = min(count, most)
    while count > 1 and (
        judge_quotas(_scaled(unit, count), capacity.quotas or ())
        or _queue_verdict(_scaled(unit, count), capacity, defaults)[0]
    ):
        count -= 1
    return made(
        settings=settings_times(profile, count),
        now=None if doubt else True,
        count=count,
        node=node,
        sentence=doubt,
    )


def _scaled(needs: Needs, count: int) -> Needs:
    """One pod that asks for so many times as much."""
    larger = needs.times(count)
    return replace(larger, requests={**larger.requests, "pods": Decimal(1)})


def _how_many(needs: Needs, nodes: Iterable[Node]) -> tuple[int, str | None]:
    """How many times as much one node has free, and which one."""
    wanted = {name: value for name, value in needs.requests.items() if name != "pods"}
    best, where = 0, None
    for node in nodes:
        if not node.ready or fit.unsuited(needs, node) or not node.free:
            continue
        if node.free.get("pods", ZERO) < 1:
            continue
        count = fit.how_often(node.free, wanted) if wanted else 1
        if count > best:
            best, where = count, node.name
    return best, where


def _queue_verdict(
    needs: Needs, capacity: Capacity, defaults: PodDefaults
) -> tuple[str | None, str | None]:
    """Why the queue of every step would not let it in now; and why that is not certain."""
    name = defaults.labels.get(LABEL)
    if not name:
        return None, None
    queues = capacity.queues
    if queues is None:
        return None, f"What the queue {name} admits is not known to this account."
    queue = next((each for each in queues.queues if each.name == name), None)
    if queue is None:
        return f"There is no queue {name} in the namespace.", None
    if queue.closed:
        return f"The queue {name} admits no workloads at the moment.", None
    return _group_verdict(needs, queue, capacity)


def _group_verdict(needs: Needs, queue: Queue, capacity: Capacity) -> tuple[str | None, str | None]:
    queues = capacity.queues
    group = (queues.groups or {}).get(queue.group or "") if queues else None
    if group is None:
        return None, f"The limits of the queue {queue.name} are not known to this account."
    for resource, wanted in needs.requests.items():
        left = group.left(resource)
        if left is None or resource == "pods" or wanted <= left:
            continue
        if group.cohort:
            return None, f"It starts only if the queue {queue.name} may borrow from its cohort."
        have = bare(resource, max(left, ZERO))
        return f"The queue {queue.name} has {have} of {resource} left.", None
    if queue.waiting == 1:
        return None, f"1 workload waits in the queue {queue.name} already."
    if queue.waiting:
        return None, f"{queue.waiting} workloads wait in the queue {queue.name} already."
    return None, None


def _largest(
    capacity: Capacity, defaults: PodDefaults, gpus: Sequence[GpuOverview], needed: _Needed
) -> Iterator[tuple[str, Profile]]:
    """Requests as large as nodes, quotas and the queue leave room for."""
    nodes = [node for node in capacity.nodes or () if node.ready and node.free is not None]
    least = needed.of(Profile(CPU_ONLY))
    plain = [node for node in nodes if not fit.unsuited(least, node)]
    best = max(plain, key=lambda n: (n.free or {}).get("cpu", ZERO), default=None)
    if best is not None:
        cpu, memory = _share(best, Decimal(1), capacity, defaults)
        yield CPU_ONLY, Profile(CPU_ONLY, cpu=cpu, memory=memory)
    for row in gpus:
        _, _, name = row.resource.partition("/")
        if name in PARTS or not _GPU_NAME.search(row.resource):
            continue
        resource, each = _as_documents_say(row.resource, defaults)
        title = row.type or row.resource
        count = int(_left(row.resource, row.largest_free or 0.0, capacity, defaults) // each)
        gpu = Gpu(float(max(count, 1)), type=row.type, resource=resource)
        node = next((n for n in nodes if n.name == row.largest_node), None)
        total = (node.total.get(row.resource, ZERO) if node else ZERO) / each
        part = Decimal(max(count, 1)) / total if total else Decimal(0)
        cpu, memory = None, None
        if node and part:
            cpu, memory = _share(node, min(part, Decimal(1)), capacity, defaults)
        yield title, Profile(title, gpu=gpu, cpu=cpu, memory=memory)


def _as_documents_say(resource: str, defaults: PodDefaults) -> tuple[str | None, Decimal]:
    """What documents call a resource of the cluster, and how much of it is one GPU."""
    for name, profile in defaults.gpus.items():
        if profile.requests.get(resource):
            return name, profile.requests[resource]
    return resource, Decimal(1)


def _share(
    node: Node, part: Decimal, capacity: Capacity, defaults: PodDefaults
) -> tuple[float | None, str | None]:
    """As much CPU and memory as goes with a part of a node's GPUs, and is free."""

    def most(name: str) -> float:
        have = min((node.free or {}).get(name, ZERO), node.total.get(name, ZERO) * part)
        return float(_left(name, float(max(have, ZERO)), capacity, defaults))

    cpu, memory = floor_to(most("cpu"), 0.25), int(most("memory")) >> 20
    return whole(cpu) if cpu >= 0.25 else None, memory_text(memory) if memory >= 64 else None


def _left(resource: str, amount: float, capacity: Capacity, defaults: PodDefaults) -> Decimal:
    """Not more than quotas and the queue leave of it."""
    left = [Decimal(str(amount))]
    for quota in capacity.quotas or ():
        for key in (resource, f"requests.{resource}"):
            if key in quota.hard:
                left.append(quota.hard[key] - quota.used.get(key, ZERO))
    name = defaults.labels.get(LABEL)
    if name and capacity.queues is not None:
        queue = next((each for each in capacity.queues.queues if each.name == name), None)
        group = (capacity.queues.groups or {}).get((queue.group if queue else "") or "")
        own = group.left(resource) if group else None
        if own is not None and group is not None and not group.cohort:
            left.append(own)
    return max(min(left), ZERO)


def _amount(value: str | float | None) -> Amount | None:
    return None if value is None else Amount(request=canonical(value))
