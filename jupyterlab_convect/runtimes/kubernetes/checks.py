"""What would keep a plan from running here: said before it runs, in the same words as later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ...errors import ConvectError, Refused
from ...pipeline.claims import run_claims
from ...pipeline.plan import Json, Plan, Step, Volume
from ...pipeline.problems import Problem
from ...text import some_of
from ...transfer.base import PYTHON, Mounts, Transfer
from ...transfer.ways import Transfers
from . import fit, jobs
from .api import ApiError
from .cluster import Capacity, Cluster, operator_for
from .components import planned_content
from .manifests import Manifest, PodContent, claim, job
from .objects import step_container
from .operators import JOB, Operator
from .pod_defaults import PodDefaults
from .queues import Queues, queue_of
from .quotas import judge_quotas

Where = tuple[str | int, ...]
NEEDED = ("create jobs", "delete jobs", "watch jobs", "watch pods")
LOOKING = "Waiting: looking for room for all of its pods."
DRY_RUN = "00000000-000000000-000000"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def check_plan(cluster: Cluster, transfers: Transfers, plan: Plan) -> list[Problem]:
    """Every step; those that ask for the same are looked at once. Blocks: call it in a thread."""
    capacity = cluster.capacity()
    transfer, note = transfers.choose(), transfers.note()
    needed = [*NEEDED, *(["create secrets"] if transfer.way != "shared" else [])]
    operators = {step.id: _operator(cluster, step) for step in plan.steps}
    if any(_needs_service(step, operators[step.id]) for step in plan.steps):
        needed += ["create services", "get services"]
        needed += [] if "create secrets" in needed else ["create secrets"]
    claims = run_claims(plan.steps)
    needed += ["create volume claims", "delete volume claims"] if claims else []
    if transfer.way == "bundle" or any(step.kind == "component" for step in plan.steps):
        needed.append("read logs")
    notes = (*cluster.defaults.notes, *([note] if note else []))
    problems = [
        *_rights(cluster, needed),
        *transfer.check(),
        *(Problem("info", "files", each) for each in notes),
        *(problem for volume in claims.values() for problem in _new_claim(cluster, volume)),
    ]
    judged: dict[str, list[Problem]] = {}
    for step in plan.steps:
        operator = operators[step.id]
        problems += distributed(step)
        problems += by_operator(step, operator)
        try:
            manifest = planned_job(step, cluster.defaults, transfer, capacity, plan.components)
        except ConvectError as error:
            problems.append(Problem("error", error.code, error.sentence, step.id, hint=error.hint))
            continue
        spec = manifest["spec"]
        twin = str({**spec["template"]["spec"], "count": spec["completions"], "by": str(operator)})
        if twin not in judged:
            judged[twin] = [
                *_dry_run(cluster, manifest, operator),
                *judge(manifest, step, capacity),
            ]
        problems += [
            Problem(p.severity, p.code, p.message, step.id, p.path, p.hint) for p in judged[twin]
        ]
        if transfer.way != "shared":
            problems += outside_the_folder(step)
    return problems


def _operator(cluster: Cluster, step: Step) -> Operator | Refused:
    """What would run it, or why nothing does."""
    try:
        return operator_for(cluster, step)
    except Refused as refused:
        return refused


def _needs_service(step: Step, operator: Operator | Refused) -> bool:
    return operator is JOB and step.distributed is not None and step.distributed.nodes > 1


def by_operator(step: Step, operator: Operator | Refused) -> Iterator[Problem]:
    """Who would run several nodes. Pure."""
    where: Where = ("distributed", "operator")
    if isinstance(operator, Refused):
        text = operator.sentence
        yield Problem("error", operator.code, text, step.id, where, operator.hint)
    elif operator is not JOB:
        text = f"“{step.name}” would run as a {operator.kind} of {operator.version}."
        yield Problem("info", "operator", text, step.id, where)
    elif _needs_service(step, operator):
        text = f"“{step.name}” would run as a Job, without an operator."
        yield Problem("info", "operator", text, step.id, where)


def outside_the_folder(step: Step) -> list[Problem]:
    """Paths that a step is given and that only a shared volume is sure to have. Pure."""
    parameters = {**step.defaults, **step.parameters}
    given = (*parameters.values(), *step.env.values(), *step.command)
    paths = [word for word in given if isinstance(word, str) and word.startswith(("../", "~/"))]
    if not paths:
        return []
    text = (
        f"{some_of(paths)} leads out of the folder of “{step.name}”: without a shared volume a pod "
        "has only what belongs to the project."
    )
    hint = "Move it into the project, or share a volume with the cluster."
    return [Problem("warning", "outside-project", text, step.id, ("parameters",), hint)]


def distributed(step: Step) -> Iterator[Problem]:
    """What several nodes cannot do. Pure."""
    how = step.distributed
    if how is None or how.nodes == 1:
        return

    def refusal(name: str, text: str, hint: str) -> Problem:
        where: Where = ("distributed", name)
        return Problem("error", "not-distributable", text, step.id, where, hint)

    if how.processes == "cpu":
        text = f"How many processes each node of “{step.name}” runs is not known before they start."
        yield refusal("processes", text, "Write a number of processes, or request CPUs.")


def planned_job(
    step: Step,
    defaults: PodDefaults,
    transfer: Transfer,
    capacity: Capacity,
    components: Mapping[str, Json],
) -> Manifest:
    """The Job as it would be, but for its name and its command."""
    if step.kind == "component":
        content = planned_content(step, components[step.component or ""], transfer)
    else:
        content = PodContent((PYTHON,), mounts=Mounts(transfer.mounts().volumes))
    return job(DRY_RUN, step, 1, defaults, content, gpu_types(step, defaults, capacity))


def why_gang_waits(cluster: Cluster, transfers: Transfers, step: Step) -> str | None:
    """That there is no room for all pods of a step, by what was known of the cluster last."""
    if queue_of({"metadata": {"labels": {**cluster.defaults.labels, **step.kubernetes.labels}}}):
        return None  # It lets in all or none.
    capacity = cluster.latest_capacity()
    if capacity is None:
        return LOOKING
    if capacity.nodes is None:
        return None
    manifest = planned_job(step, cluster.defaults, transfers.choose(), capacity, {})
    gpu = step.resources.gpu
    needs = fit.needs_of(manifest["spec"]["template"]["spec"], gpu.type if gpu else None)
    verdict = fit.judge_gang(needs, capacity.nodes, _least(step))
    if verdict.now is not False or not verdict.sentence:
        return None
    return f"Waiting: {_lower(verdict.sentence)}"


def _least(step: Step) -> int:
    """How many pods have to be there at the same time."""
    return step.distributed.least if step.distributed else 1


def gpu_types(step: Step, defaults: PodDefaults, capacity: Capacity) -> list[str]:
    """The labels that the GPU type of the step stands for; none when nobody knows."""
    gpu = step.resources.gpu
    if gpu is None or not gpu.type or capacity.nodes is None:
        return []
    label = defaults.profile(gpu).type_label
    known = [node.labels[label] for node in capacity.nodes if label in node.labels]
    return fit.match_types(gpu.type, known)


def judge(manifest: Manifest, step: Step, capacity: Capacity) -> Iterator[Problem]:
    """Pure: room on the nodes, and quotas."""
    gpu = step.resources.gpu
    needs = fit.needs_of(manifest["spec"]["template"]["spec"], gpu.type if gpu else None)
    where: Where = ("resources", "gpu") if gpu and gpu.count else ("resources",)
    count = manifest["spec"]["completions"]
    if capacity.nodes is not None:
        verdict = fit.judge_gang(needs, capacity.nodes, _least(step))
        if verdict.sentence and not verdict.ever:
            hint = "It would wait until such a node is added."
            yield Problem("warning", "no-such-node", verdict.sentence, None, where, hint)
        elif verdict.now is False and verdict.sentence:
            yield Problem(
                "info", "would-wait", f"It would wait: {_lower(verdict.sentence)}", None, where
            )
        elif verdict.now is None:
            text = (
                "When it would start is unknown: you are not allowed to list the pods of other "
                "users."
            )
            yield Problem("info", "unknown", text, None, where)
    else:
        text = "Whether it fits is unknown: you are not allowed to list the cluster's nodes."
        in_full = "Write the type in full, as it is in the label of the nodes."
        yield Problem("info", "unknown", text, None, where, in_full if needs.gpu_type else None)
    yield from _judge_queue(manifest, capacity.queues)
    for verdict in judge_quotas(needs.times(count), capacity.quotas or ()):
        sentence = verdict.sentence or ""
        if verdict.ever:
            yield Problem("info", "would-wait", f"It would wait: {_lower(sentence)}", None, where)
        else:
            yield Problem("error", "quota", sentence, None, where)


def _judge_queue(manifest: Manifest, queues: Queues | None) -> Iterator[Problem]:
    name, where = queue_of(manifest), ("kubernetes", "labels")
    if name is None:
        return
    if queues is None:
        text = f"Whether queue {name} admits it is unknown: you are not allowed to list queues."
        yield Problem("info", "unknown", text, None, where)
        return
    queue = next((item for item in queues.queues if item.name == name), None)
    if queue is None:
        hint = (
            f"Available queues: {', '.join(item.name for item in queues.queues)}."
            if queues.queues
            else None
        )
        text = f"There is no queue {name} in the namespace, so it would wait forever."
        if not queues.queues:
            text = f"It names the queue {name}, but the namespace has no queues."
        yield Problem("warning", "no-queue", text, None, where, hint)
    elif queue.closed:
        text = f"The queue {name} admits no workloads at the moment: {queue.closed}."
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
                hint="Ask your administrator for the permissions in deploy/role.yaml.",
            )


def _new_claim(cluster: Cluster, volume: Volume) -> Iterator[Problem]:
    """Whether the cluster would make a claim for the run, and a volume for the claim."""
    where: Where = ("volumes",)
    try:
        path = cluster.api.path("persistentvolumeclaims")
        cluster.api.create(path, claim(DRY_RUN, volume), dryRun="All")
    except ApiError as error:
        if error.status == 403 and "cannot create" in error.message:
            return  # Said already, in better words.
        text = f"The cluster refuses the volume claim {volume.claim}: {error.message}."
        yield Problem("error", "refused", text, None, where)
    try:
        classes = cluster.api.list("/apis/storage.k8s.io/v1/storageclasses")
    except ApiError:
        return  # Not everybody may look at them.
    if volume.storage_class is not None:
        if volume.storage_class not in {item["metadata"]["name"] for item in classes}:
            text = f"The cluster has no storage class {volume.storage_class}."
            hint = "Steps wait until there is a volume for the claim."
            yield Problem("warning", "no-storage-class", text, None, where, hint)
    elif not any(
        item["metadata"].get("annotations", {}).get(DEFAULT_CLASS) == "true" for item in classes
    ):
        text = f"The cluster has no default storage class for the volume claim {volume.claim}."
        names = some_of([item["metadata"]["name"] for item in classes])
        write = f"Write a storage class: {names}." if classes else None
        yield Problem("warning", "no-storage-class", text, None, where, write)


def _dry_run(
    cluster: Cluster, manifest: Manifest, operator: Operator | Refused
) -> Iterator[Problem]:
    """Have the cluster itself look at the Job, without making it."""
    try:
        cluster.api.create(cluster.api.path("jobs"), manifest, dryRun="All")
        if isinstance(operator, Operator) and operator is not JOB:
            # What comes after the first needs it to be there.
            first = operator.wrap(manifest)[0]
            cluster.api.create(cluster.api.path(operator.plurals[0]), first, dryRun="All")
    except ApiError as error:
        if error.status == 403 and error.reason == "Forbidden" and "cannot create" in error.message:
            return  # Said already, in better words.
        prefix = f'{manifest["kind"]}.batch "{manifest["metadata"]["name"]}" is invalid: '
        words = error.message.replace(prefix, "").replace("spec.template.", "")
        yield Problem("error", "refused", f"The cluster rejected it: {words}.")
    secrets = [
        entry["valueFrom"]["secretKeyRef"]
        for entry in step_container(manifest["spec"]["template"]["spec"])["env"]
        if "secretKeyRef" in entry.get("valueFrom", {})
    ]
    claims = {
        volume["persistentVolumeClaim"]["claimName"]
        for volume in manifest["spec"]["template"]["spec"]["volumes"]
        if "persistentVolumeClaim" in volume
    }
    for name in sorted(claims):
        if name.endswith(DRY_RUN):
            continue  # The run makes it.
        if _is_missing(cluster, "persistentvolumeclaims", name):
            text = f"There is no volume claim {name} in namespace {cluster.api.namespace}."
            yield Problem("error", "no-claim", text, None, ("volumes",))
    for name in sorted({item["name"] for item in secrets}):
        if _is_missing(cluster, "secrets", name):
            text = f"There is no secret {name} in namespace {cluster.api.namespace}."
            yield Problem("error", "no-secret", text, None, ("secrets",))


def _is_missing(cluster: Cluster, kind: str, name: str) -> bool:
    """Only when the cluster says so; mostly we are not allowed to look at secrets, and need not."""
    if jobs.label_value(name) != name:
        return True
    try:
        cluster.api.get(cluster.api.path(kind, name))
    except ApiError as error:
        return error.status == 404
    return False


def _lower(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]
