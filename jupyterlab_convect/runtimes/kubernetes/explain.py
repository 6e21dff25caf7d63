"""What a Job, its pod and the warnings about them mean, in words of a data scientist.

Pure: the cluster's own JSON in, a diagnosis out. The raw words stay beneath as `detail`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from ...errors import ConvectError
from ...pipeline.plan import Json
from ...pipeline.quantities import quantity
from ...runner.outcome import CANCELLED, TAKEN, UNWRITABLE
from ...text import listing
from .objects import (
    Diagnosis,
    Object,
    amount,
    bare,
    condition,
    is_running,
    last_words,
    plain_resource,
    seconds_of,
    statuses,
    step_container,
    step_status,
    terminated,
    waiting,
    words_of,
)
from .operators import is_ignored
from .queues import QueuePosition, explain_queue, queue_of

UNCONFIRMED = 15.0
"""Seconds after which a pod that should be gone counts as gone."""


def explain(
    job: Object | None,
    pod: Object | None,
    events: Sequence[Object] = (),
    why_it_does_not_fit: str | None = None,
    now: float = 0.0,
    position: QueuePosition | None = None,
) -> Diagnosis:
    """The state of an attempt whose Job and pod are these, `now` in seconds since 1970.

    `why_it_does_not_fit` is what our own look at the nodes found, for a pod that no
    node takes; without it the scheduler's words are translated. `position` is where in its
    queue the Job is.
    """
    if pod is None:
        return _without_pod(job, events, position, now)
    phase = pod.get("status", {}).get("phase")
    if phase in ("Succeeded", "Failed") or terminated(pod):
        return ended(pod)
    going = pod["metadata"].get("deletionTimestamp")
    if going and now > seconds_of(going) + UNCONFIRMED:
        node = pod["spec"].get("nodeName")
        reason = disruption(pod) or f"The node {node} does not confirm that the pod has terminated."
        return Diagnosis("failed", reason, disruption_words(pod))
    if going or disruption(pod):
        reason = f"{disruption(pod) or ''} It is being stopped.".strip()
        return Diagnosis("running", reason, disruption_words(pod) or None)
    if is_running(pod):
        return _running_there(pod)
    return pending(pod, events, why_it_does_not_fit)


def explain_gone(job: Object | None, pod: Object | None) -> Diagnosis:
    """An attempt whose Job is not in the cluster any more, as it was when it was last seen."""
    if pod is not None and (terminated(pod) or disruption(pod)):
        return ended(pod)
    if job is None and pod is None:
        return Diagnosis("lost", "Its Job is no longer in the cluster, so how it ended is unknown.")
    return Diagnosis("failed", "Its Job was deleted from the cluster before it finished.")


def _without_pod(
    job: Object | None, events: Sequence[Object], position: QueuePosition | None, now: float
) -> Diagnosis:
    if job is None:
        return Diagnosis("starting")
    failed = condition(job, "Failed")
    if failed:
        kind = job.get("kind", "Job")
        return Diagnosis("failed", f"Kubernetes marked the {kind} as failed.", words_of(failed))
    if job.get("spec", {}).get("suspend"):
        queue = queue_of(job)
        if queue:
            return Diagnosis(
                "queued", explain_queue(queue, position), position.words if position else None
            )
        words = last_words(events, "Suspended")
        return Diagnosis("queued", "Waiting because its Job is suspended.", words)
    refusal = last_words(events, "FailedCreate") or last_words(events, "FailedCreatePod")
    if refusal:
        return refused_pod(refusal)
    if is_ignored(job, now):
        reason = f"Waiting: the operator has not begun to work on its {job['kind']}."
        return Diagnosis("starting", reason)
    return Diagnosis("starting", "Waiting for the cluster to create its pod.")


def _running_there(pod: Object) -> Diagnosis:
    ready = condition(pod, "Ready", "False")
    if ready and step_status(pod).get("ready"):
        node = pod["spec"].get("nodeName")
        return Diagnosis(
            "running",
            f"The node {node} does not respond; the step may still be running there.",
            words_of(ready),
        )
    return Diagnosis("running")


def refused_pod(message: str) -> Diagnosis:
    """The Job is there, but its pod may not be."""
    if quota := re.search(
        r"exceeded quota: (?P<name>[^,]+), requested: (?P<asked>\S+?), used: (?P<used>\S+?), "
        r"limited: (?P<hard>\S+)",
        message,
    ):
        return _quota(quota["name"], quota["asked"], quota["used"], quota["hard"], message)
    if found := re.search(r"failed quota: ([^:]+): must specify ([^:;]+)", message):
        missing = listing(sorted({_part(key) for key in re.split(r"[,\s]+", found[2]) if key}))
        return Diagnosis(
            "queued",
            f"The quota {found[1]} requires every pod to set a {missing}; set it.",
            message,
            permanent=True,
        )
    if "violates PodSecurity" in message:
        rule = re.search(r'violates PodSecurity "([^":]+)', message)
        level = f" “{rule[1]}”" if rule else ""
        return Diagnosis(
            "queued",
            f"The namespace's security rules{level} do not allow this pod.",
            message,
            permanent=True,
        )
    if found := re.search(r'serviceaccount "?([^"\s]+)"? not found', message):
        reason = f"There is no service account {found[1].rpartition('/')[2]} in the namespace."
        return Diagnosis("queued", reason, message, permanent=True)
    if found := re.search(r"no PriorityClass with name (\S+) was found", message):
        reason = f"The cluster has no priority class {found[1]}."
        return Diagnosis("queued", reason, message, permanent=True)
    if found := re.search(r"(maximum|minimum) (\S+) usage per (\w+) is (\S+?),", message):
        reason = (
            f"The namespace allows a {found[1]} of {found[4]} {found[2]} for a {found[3].lower()}."
        )
        return Diagnosis("queued", reason, message, permanent=True)
    return Diagnosis(
        "queued", "The cluster does not allow its pod to be created.", message, permanent=True
    )


def _quota(name: str, asked: str, used: str, hard: str, message: str) -> Diagnosis:
    wanted, taken, limit = (_pairs(text) for text in (asked, used, hard))
    parts, permanent = [], False
    for key, need in wanted.items():
        most = limit.get(key, Decimal(0))
        left = max(most - taken.get(key, Decimal(0)), Decimal(0))
        permanent = permanent or need > most
        if need > most:
            parts.append(f"needs {amount(key, need)}, but {bare(key, most)} is all that it allows")
        elif need > left:
            parts.append(
                f"needs {amount(key, need)}, and {bare(key, left)} of {bare(key, most)} "
                f"{'is' if left == 1 else 'are'} left"
            )
    return Diagnosis(
        "queued",
        f"Waiting for the quota {name}: it {listing(parts)}.",
        message,
        permanent=permanent,
    )


def pending(pod: Object, events: Sequence[Object], why_it_does_not_fit: str | None) -> Diagnosis:
    scheduled = condition(pod, "PodScheduled", "False")
    if scheduled:
        words = words_of(scheduled)
        if scheduled.get("reason") == "SchedulingGated":
            return Diagnosis("queued", "Waiting to be admitted by the cluster's queue.", words)
        return _unschedulable(words, why_it_does_not_fit)
    if held_up := waiting(pod):
        return _waiting_container(pod, held_up)
    mount = last_words(events, "FailedMount") or last_words(events, "FailedAttachVolume")
    if mount:
        return _failed_mount(mount)
    sandbox = last_words(events, "FailedCreatePodSandBox")
    if sandbox:
        node = pod["spec"].get("nodeName", "")
        return Diagnosis("starting", f"The node {node} cannot start the pod yet.", sandbox)
    if pod["spec"].get("nodeName"):
        return Diagnosis("starting", f"Starting on {pod['spec']['nodeName']}.")
    return Diagnosis("queued", "Waiting for a node.")


def _unschedulable(words: str, why_it_does_not_fit: str | None) -> Diagnosis:
    if claim := re.search(r'persistentvolumeclaim "([^"]+)" not found', words):
        reason = f"There is no volume claim {claim[1]} in the namespace."
        return Diagnosis("queued", reason, words, permanent=True)
    if claim := re.search(r'persistentvolumeclaim "([^"]+)" is being deleted', words):
        return Diagnosis("queued", f"The volume claim {claim[1]} is being deleted.", words, True)
    if "unbound immediate PersistentVolumeClaims" in words:
        return Diagnosis("queued", "Waiting: a volume claim is not bound to a volume yet.", words)
    if why_it_does_not_fit:
        first = why_it_does_not_fit.removeprefix("It ")
        sentence = first if first != why_it_does_not_fit else why_it_does_not_fit
        return Diagnosis("queued", f"Waiting: {sentence[0].lower()}{sentence[1:]}", words)
    return Diagnosis("queued", _scheduler_words(words), words)


def _scheduler_words(words: str) -> str:
    """The scheduler's count of why each node will not do, without its vocabulary."""
    head = re.match(r"0/(\d+) nodes are available: (.*?)(?:\. .*)?$", words, re.DOTALL)
    if head is None:
        return "Waiting for a node that can take it."
    parts = []
    for part in re.split(r", (?=\d+ )", head[2].rstrip(". ")):
        found = re.match(r"(\d+) (.*)", part)
        if found is None:
            continue
        count, why = int(found[1]), found[2]
        has, does = ("has", "does") if count == 1 else ("have", "do")
        if short := re.match(r"Insufficient (\S+)", why):
            thing = {"cpu": "cores", "memory": "memory", "nvidia.com/gpu": "GPUs"}.get(
                short[1], short[1]
            )
            parts.append(
                f"{count} {has} too few free {thing}".replace(
                    "few free memory", "little free memory"
                )
            )
        elif taint := re.search(r"untolerated taint\(?s?\)? \{([^:}]+)", why):
            parts.append(f"{count} {'keeps' if count == 1 else 'keep'} pods away ({taint[1]})")
        elif "affinity/selector" in why or "node selector" in why:
            parts.append(f"{count} {does} not have the labels that it asks for")
        elif "unschedulable" in why:
            parts.append(f"{count} {'takes' if count == 1 else 'take'} no pods at the moment")
        elif "volume" in why:
            parts.append(f"{count} cannot have its volume")
        else:
            parts.append(f"{count}: {why}")
    total = "the node" if head[1] == "1" else f"one of {head[1]} nodes"
    return f"Waiting for room on {total}: {listing(parts)}."


def _waiting_container(pod: Object, held_up: Json) -> Diagnosis:
    kind = held_up.get("reason", "")
    words = held_up.get("message") or kind
    image = _held_up_image(pod, held_up)
    if kind in ("ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ImageInspectError"):
        return Diagnosis("starting", _image_trouble(image, words), words, permanent=True)
    if kind == "ErrImageNeverPull":
        reason = (
            f"The image {image} is not on the node, and the pull policy does not allow pulling it."
        )
        return Diagnosis("failed", reason, words)
    if kind == "InvalidImageName":
        return Diagnosis("failed", f"{image} is not the name of an image.", words)
    if kind == "CreateContainerConfigError":
        return Diagnosis("starting", _config_trouble(words), words, permanent=True)
    if kind in ("CreateContainerError", "RunContainerError"):
        return Diagnosis(
            "starting", f"The container does not start: {words}", words, permanent=True
        )
    node = pod["spec"].get("nodeName")
    return Diagnosis("starting", f"Starting on {node}." if node else None)


def _held_up_image(pod: Object, held_up: Json) -> str:
    names = [
        item.get("name")
        for item in statuses(pod)
        if item.get("state", {}).get("waiting") == held_up
    ]
    spec = pod["spec"]
    for container in (*spec.get("initContainers", ()), *spec["containers"]):
        if container.get("name") in names:
            return str(container["image"])
    return str(step_container(spec)["image"])


def _image_trouble(image: str, words: str) -> str:
    lower = words.lower()
    if "not found" in lower or "manifest unknown" in lower:
        return f"There is no image {image}."
    if any(word in lower for word in ("unauthorized", "denied", "authentication", "forbidden")):
        return f"The image {image} cannot be pulled: it needs a pull secret or does not exist."
    if any(word in lower for word in ("no such host", "timeout", "refused", "unreachable", "dial")):
        return f"The registry of the image {image} cannot be reached."
    return f"The image {image} cannot be pulled."


def missing_secret(name: str) -> str:
    return f"There is no secret {name} in the namespace."


def _config_trouble(words: str) -> str:
    if found := re.search(r'secret "([^"]+)" not found', words):
        return missing_secret(found[1])
    if found := re.search(r"couldn't find key (\S+) in Secret \S*?/?([^/\s]+)$", words):
        return f"The secret {found[2]} has no key {found[1]}."
    if "runAsNonRoot" in words:
        return "The image runs as root, which is not allowed here; use one with a user of its own."
    return f"The container cannot be set up: {words}"


def _failed_mount(words: str) -> Diagnosis:
    if found := re.search(r'secret "([^"]+)" not found', words):
        return Diagnosis("starting", missing_secret(found[1]), words, True)
    if found := re.search(r'configmap "([^"]+)" not found', words):
        return Diagnosis("starting", f"There is no ConfigMap {found[1]}.", words, True)
    return Diagnosis("starting", "A volume cannot be mounted yet.", words)


def _pairs(text: str) -> dict[str, Decimal]:
    found = {}
    for part in text.split(","):
        key, _, value = part.partition("=")
        try:
            found[key] = quantity(value)
        except ConvectError:
            continue
    return found


def _part(key: str) -> str:
    """`limits.memory` as `memory limit`."""
    side = key.partition(".")[0]
    what = {"cpu": "CPU"}.get(plain_resource(key), plain_resource(key))
    return f"{what} {side[:-1]}" if side in ("limits", "requests") else what


def ended(pod: Object) -> Diagnosis:
    status = pod.get("status", {})
    if put_out := disruption(pod):
        return Diagnosis("failed", put_out, disruption_words(pod))
    if status.get("reason") == "Evicted":
        return Diagnosis("failed", _evicted(status), status.get("message"))
    if status.get("reason") in (
        "UnexpectedAdmissionError",
        "NodeAffinity",
        "OutOfcpu",
        "OutOfmemory",
    ):
        reason = "The node rejected the pod because the resources it needs were just taken."
        return Diagnosis("failed", reason, status.get("message"))
    if status.get("reason") == "DeadlineExceeded":
        return Diagnosis("failed", "It exceeded its deadline.", status.get("message"))
    end = terminated(pod)
    if end is None:
        if status.get("phase") == "Succeeded":
            return Diagnosis("succeeded")
        return Diagnosis("failed", "The pod failed.", status.get("message") or status.get("reason"))
    return explain_exit(pod, end)


def explain_exit(pod: Object, end: Json) -> Diagnosis:
    """How the container of the step has ended, by its state."""
    code, kind, words = end.get("exitCode"), end.get("reason"), end.get("message")
    container = step_container(pod["spec"])
    if code == 0:
        return Diagnosis("succeeded")
    if kind == "OOMKilled":
        limit = container.get("resources", {}).get("limits", {}).get("memory")
        reason = "It ran out of memory: it used more than the node has."
        if limit:
            reason = f"It ran out of memory: it used more than its limit of {_size(limit)}."
        return Diagnosis("failed", reason, words or kind)
    if kind in ("StartError", "ContainerCannotRun") or code in (126, 127, 128):
        return Diagnosis("failed", _start_trouble(container, words or ""), words)
    if kind == "ContainerStatusUnknown":
        node = pod["spec"].get("nodeName")
        return Diagnosis("failed", f"The node {node} lost track of the pod.", words)
    if code == CANCELLED:
        return Diagnosis("cancelled", None, words)
    if code == UNWRITABLE:
        reason = "The pod cannot write into the folder of the run."
        return Diagnosis("failed", reason, words)
    if code == TAKEN:
        return Diagnosis("lost", "Another runner is executing this attempt.", words)
    if code == 137 and pod["metadata"].get("deletionTimestamp"):
        return Diagnosis("failed", "Its pod was deleted before it finished.", words)
    if code == 137:
        return Diagnosis(
            "failed", "It was killed (SIGKILL), probably because it ran out of memory.", words
        )
    last = (words or "").strip().rpartition("\n")[2]
    reason = f"It ended with exit code {code}" + (f": {last[:300]}" if last else ".")
    return Diagnosis("failed", reason, words)


def _start_trouble(container: Object, words: str) -> str:
    program = container.get("command", ["the program that it starts"])[0]
    if "executable file not found" in words or "no such file" in words:
        why = ", which runs the steps" if program == "python3" else ""
        return f"The image {container['image']} has no {program}{why}."
    return f"The image {container['image']} cannot run {program}."


def _evicted(status: Json) -> str:
    words = status.get("message") or ""
    if found := re.search(r"low on resource: (\S+?)\.", words):
        return f"The node evicted the pod because it was low on {found[1]}."
    return f"The node evicted the pod: {words}" if words else "The node evicted the pod."


_DISRUPTIONS = {
    "PreemptionByScheduler": "It was preempted by a pod with a higher priority.",
    "DeletionByTaintManager": "Its node stopped responding, so the cluster deleted the pod.",
    "EvictionByEvictionAPI": "Its node is being drained.",
    "DeletionByPodGC": "Its node no longer exists.",
    "TerminationByKubelet": "Its node stopped it because it is low on resources or shutting down.",
}


def disruption(pod: Object) -> str | None:
    found = condition(pod, "DisruptionTarget")
    if found is None:
        return None
    return _DISRUPTIONS.get(found.get("reason", ""), "The cluster evicted the pod.")


def disruption_words(pod: Object) -> str:
    found = condition(pod, "DisruptionTarget") or {}
    status = pod.get("status", {})
    return status.get("message") or found.get("message") or found.get("reason") or ""


def _size(text: str) -> str:
    try:
        return bare("memory", quantity(text))
    except ConvectError:
        return text
