"""What would keep a plan from running here: said before it runs, in the same words as later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ...errors import ConvectError
from ...pipeline.plan import Json, Plan, Step
from ...pipeline.problems import Problem
from . import fit, names
from .api import ApiError
from .cluster import Capacity, Cluster
from .components import rehearsed
from .delivery import PYTHON
from .manifests import Delivery, Manifest, job
from .objects import step_container
from .queues import Line, queue_of
from .site import Site

Where = tuple[str | int, ...]
NEEDED = ("create jobs", "delete jobs", "watch jobs", "watch pods")
REHEARSAL = "00000000-000000000-000000"


def check_plan(cluster: Cluster, plan: Plan) -> list[Problem]:
    """Every step, with its twins looked at once. Blocks: call it in a thread."""
    capacity = cluster.capacity()
    carried = not cluster.site.shares
    needed = [*NEEDED, *(["create secrets"] if carried else [])]
    if carried or any(step.kind == "component" for step in plan.steps):
        needed.append("read logs")
    problems = [
        *_rights(cluster, needed),
        *(Problem("info", "files", note) for note in cluster.site.notes),
    ]
    rehearsed: dict[str, list[Problem]] = {}
    for step in plan.steps:
        try:
            manifest = rehearsal(step, cluster.site, capacity, plan.components)
        except ConvectError as error:
            problems.append(Problem("error", error.code, error.sentence, step.id, hint=error.hint))
            continue
        twin = str({**manifest["spec"]["template"]["spec"]})
        if twin not in rehearsed:
            rehearsed[twin] = [
                *_rehearse(cluster, manifest),
                *judge(manifest, step, capacity),
            ]
        problems += [
            Problem(p.severity, p.code, p.message, step.id, p.path, p.hint) for p in rehearsed[twin]
        ]
    return problems


def rehearsal(
    step: Step, site: Site, capacity: Capacity, components: Mapping[str, Json]
) -> Manifest:
    """The Job as it would be, but for its name and its command."""
    if step.kind == "component":
        delivery = rehearsed(step, components[step.component or ""], site)
    else:
        delivery = Delivery((PYTHON,), shares=site.shares)
    return job(REHEARSAL, step, 1, site, delivery, gpu_types(step, site, capacity))


def gpu_types(step: Step, site: Site, capacity: Capacity) -> list[str]:
    """The labels that the GPU type of the step stands for; none when nobody knows."""
    gpu = step.resources.gpu
    if gpu is None or not gpu.type or capacity.nodes is None:
        return []
    label = site.profile(gpu).type_label
    known = [node.labels[label] for node in capacity.nodes if label in node.labels]
    return fit.match_types(gpu.type, known)


def judge(manifest: Manifest, step: Step, capacity: Capacity) -> Iterator[Problem]:
    """Pure: room on the nodes, and quotas."""
    gpu = step.resources.gpu
    needs = fit.needs_of(manifest["spec"]["template"]["spec"], gpu.type if gpu else None)
    where: Where = ("resources", "gpu") if gpu and gpu.count else ("resources",)
    if capacity.nodes is not None:
        verdict = fit.judge_nodes(needs, capacity.nodes)
        if verdict.sentence and not verdict.ever:
            hint = "It would wait until such a node is added."
            yield Problem("warning", "no-such-node", verdict.sentence, None, where, hint)
        elif verdict.now is False and verdict.sentence:
            yield Problem(
                "info", "would-wait", f"It would wait: {_lower(verdict.sentence)}", None, where
            )
        elif verdict.now is None:
            text = "When it would start is unknown: you are not allowed to list the pods of others."
            yield Problem("info", "unknown", text, None, where)
    else:
        text = "Whether it fits is unknown: you are not allowed to list the cluster's nodes."
        in_full = "The type has to be as the label of the nodes has it, in full."
        yield Problem("info", "unknown", text, None, where, in_full if needs.gpu_type else None)
    yield from _judge_queue(manifest, capacity.line)
    for verdict in fit.judge_quotas(needs, capacity.quotas or ()):
        sentence = verdict.sentence or ""
        if verdict.ever:
            yield Problem("info", "would-wait", f"It would wait: {_lower(sentence)}", None, where)
        else:
            yield Problem("error", "quota", sentence, None, where)


def _judge_queue(manifest: Manifest, line: Line | None) -> Iterator[Problem]:
    name, where = queue_of(manifest), ("kubernetes", "labels")
    if name is None:
        return
    if line is None:
        text = f"Whether queue {name} admits it is unknown: you are not allowed to list queues."
        yield Problem("info", "unknown", text, None, where)
        return
    queue = next((item for item in line.queues if item.name == name), None)
    if queue is None:
        hint = (
            f"There are: {', '.join(item.name for item in line.queues)}." if line.queues else None
        )
        text = f"There is no queue {name} in the namespace, so that it would wait for ever."
        if not line.queues:
            text = f"It names the queue {name}, but the namespace has no queues."
        yield Problem("warning", "no-queue", text, None, where, hint)
    elif queue.closed:
        text = f"The queue {name} lets nobody in at the moment: {queue.closed}."
        yield Problem("warning", "queue-closed", text.replace("..", "."), None, where)
    elif queue.waiting:
        waits = "1 waits" if queue.waiting == 1 else f"{queue.waiting} wait"
        text = f"It would wait: {waits} in the queue {name} already."
        yield Problem("info", "would-wait", text, None, where)


def _rights(cluster: Cluster, needed: Iterable[str]) -> Iterator[Problem]:
    for right in needed:
        if cluster.may(right) is False:
            yield Problem(
                "error",
                "not-allowed",
                f"You are not allowed to {right} in namespace {cluster.api.namespace}.",
                hint="Ask for the rights in deploy/role.yaml.",
            )


def _rehearse(cluster: Cluster, manifest: Manifest) -> Iterator[Problem]:
    """Have the cluster itself look at the Job, without making it."""
    try:
        cluster.api.create(cluster.api.place("jobs"), manifest, dryRun="All")
    except ApiError as error:
        if error.status == 403 and error.reason == "Forbidden" and "cannot create" in error.message:
            return  # Said already, in better words.
        prefix = f'{manifest["kind"]}.batch "{manifest["metadata"]["name"]}" is invalid: '
        words = error.message.replace(prefix, "").replace("spec.template.", "")
        yield Problem("error", "refused", f"The cluster refuses it: {words}.")
    secrets = [
        entry["valueFrom"]["secretKeyRef"]
        for entry in step_container(manifest["spec"]["template"]["spec"])["env"]
        if "valueFrom" in entry
    ]
    claims = {
        volume["persistentVolumeClaim"]["claimName"]
        for volume in manifest["spec"]["template"]["spec"]["volumes"]
        if "persistentVolumeClaim" in volume
    }
    for claim in sorted(claims):
        if _is_missing(cluster, "persistentvolumeclaims", claim):
            text = f"There is no volume claim {claim} in namespace {cluster.api.namespace}."
            yield Problem("error", "no-claim", text, None, ("volumes",))
    for name in sorted({item["name"] for item in secrets}):
        if _is_missing(cluster, "secrets", name):
            text = f"There is no secret {name} in namespace {cluster.api.namespace}."
            yield Problem("error", "no-secret", text, None, ("secrets",))


def _is_missing(cluster: Cluster, kind: str, name: str) -> bool:
    """Only when the cluster says so; mostly we may not look at secrets, and need not."""
    if names.label_value(name) != name:
        return True
    try:
        cluster.api.get(cluster.api.place(kind, name))
    except ApiError as error:
        return error.status == 404
    return False


def _lower(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]
