"""What a Job, its pod and the warnings about them mean, in words of a data scientist.

Pure: the cluster's own JSON in, a finding out. The raw words stay beneath as `detail`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from ...errors import ConvectError
from ...pipeline.plan import Json
from ...pipeline.quantities import quantity
from ...runner.outcome import CANCELLED, TAKEN, UNWRITABLE
from ...runs.model import State
from .words import amount, bare, listing, plain_resource

Object = dict[str, Any]

UNCONFIRMED = 15.0
"""Seconds after which a pod that should be gone counts as gone."""


@dataclass(frozen=True)
class Finding:
    state: State
    reason: str | None = None
    detail: str | None = None
    hopeless: bool = False
    """It will not mend by itself: somebody has to change something."""


def explain(
    job: Object | None,
    pod: Object | None,
    events: Sequence[Object] = (),
    why_it_does_not_fit: str | None = None,
    now: float = 0.0,
) -> Finding:
    """The state of an attempt whose Job and pod are these, `now` in seconds since 1970.

    `why_it_does_not_fit` is what our own look at the nodes found, for a pod that no
    node takes; without it the scheduler's words are translated.
    """
    if pod is None:
        return _without_pod(job, events)
    phase = pod.get("status", {}).get("phase")
    if phase in ("Succeeded", "Failed") or _terminated(pod):
        return _ended(pod)
    going = pod["metadata"].get("deletionTimestamp")
    if going and now > seconds_of(going) + UNCONFIRMED:
        node = pod["spec"].get("nodeName")
        reason = _disruption(pod) or f"The node {node} does not confirm that the pod has ended."
        return Finding("failed", reason, _disruption_words(pod))
    if going or _disruption(pod):
        reason = f"{_disruption(pod) or ''} It is being stopped.".strip()
        return Finding("running", reason, _disruption_words(pod) or None)
    if phase == "Running" and _running(pod):
        return _running_there(pod)
    return _pending(pod, events, why_it_does_not_fit)


def explain_gone(job: Object | None, pod: Object | None) -> Finding:
    """An attempt whose Job is not in the cluster any more, as it was when it was last seen."""
    if pod is not None and (_terminated(pod) or _disruption(pod)):
        return _ended(pod)
    if job is None and pod is None:
        return Finding(
            "lost", "Its Job is not in the cluster any more, so nobody knows how it ended."
        )
    return Finding("failed", "Its Job was deleted in the cluster before it had ended.")


def _without_pod(job: Object | None, events: Sequence[Object]) -> Finding:
    if job is None:
        return Finding("starting")
    failed = _condition(job, "Failed")
    if failed:
        return Finding("failed", "The cluster gave the Job up.", _words(failed))
    if job.get("spec", {}).get("suspend"):
        queue = job["metadata"].get("labels", {}).get("kueue.x-k8s.io/queue-name")
        where = f"in the queue {queue}" if queue else "because its Job is suspended"
        return Finding("queued", f"Waiting {where}.", _last(events, "Suspended"))
    refusal = _last(events, "FailedCreate")
    if refusal:
        return _refused_pod(refusal)
    return Finding("starting", "The cluster has not made its pod yet.")


def _refused_pod(message: str) -> Finding:
    """The Job is there, but its pod may not be."""
    if quota := re.search(
        r"exceeded quota: (?P<name>[^,]+), requested: (?P<asked>\S+?), used: (?P<used>\S+?), "
        r"limited: (?P<hard>\S+)",
        message,
    ):
        return _quota(quota["name"], quota["asked"], quota["used"], quota["hard"], message)
    if found := re.search(r"failed quota: ([^:]+): must specify ([^:;]+)", message):
        missing = listing(sorted({_part(key) for key in re.split(r"[,\s]+", found[2]) if key}))
        return Finding(
            "queued",
            f"The quota {found[1]} wants every pod to have a {missing}; set it.",
            message,
            hopeless=True,
        )
    if "violates PodSecurity" in message:
        rule = re.search(r'violates PodSecurity "([^":]+)', message)
        level = f" “{rule[1]}”" if rule else ""
        return Finding(
            "queued",
            f"The namespace's security rules{level} do not allow this pod.",
            message,
            hopeless=True,
        )
    if found := re.search(r'serviceaccount "?([^"\s]+)"? not found', message):
        reason = f"There is no service account {found[1].rpartition('/')[2]} in the namespace."
        return Finding("queued", reason, message, hopeless=True)
    if found := re.search(r"no PriorityClass with name (\S+) was found", message):
        reason = f"The cluster has no priority class {found[1]}."
        return Finding("queued", reason, message, hopeless=True)
    if found := re.search(r"(maximum|minimum) (\S+) usage per (\w+) is (\S+?),", message):
        reason = (
            f"The namespace allows a {found[1]} of {found[4]} {found[2]} for a {found[3].lower()}."
        )
        return Finding("queued", reason, message, hopeless=True)
    return Finding("queued", "The cluster does not allow its pod.", message, hopeless=True)


def _quota(name: str, asked: str, used: str, hard: str, message: str) -> Finding:
    wanted, taken, limit = (_pairs(text) for text in (asked, used, hard))
    parts, hopeless = [], False
    for key, need in wanted.items():
        most = limit.get(key, Decimal(0))
        left = max(most - taken.get(key, Decimal(0)), Decimal(0))
        hopeless = hopeless or need > most
        if need > most:
            parts.append(f"needs {amount(key, need)}, but {bare(key, most)} is all that it allows")
        elif need > left:
            parts.append(
                f"needs {amount(key, need)}, and {bare(key, left)} of {bare(key, most)} "
                f"{'is' if left == 1 else 'are'} left"
            )
    return Finding(
        "queued",
        f"Waiting for the quota {name}: it {listing(parts)}.",
        message,
        hopeless=hopeless,
    )


def _pending(pod: Object, events: Sequence[Object], why_it_does_not_fit: str | None) -> Finding:
    scheduled = _condition(pod, "PodScheduled", "False")
    if scheduled:
        words = _words(scheduled)
        if scheduled.get("reason") == "SchedulingGated":
            return Finding("queued", "Waiting to be let in by the cluster's queue.", words)
        return _unschedulable(words, why_it_does_not_fit)
    waiting = _waiting(pod)
    if waiting:
        return _waiting_container(pod, waiting)
    mount = _last(events, "FailedMount") or _last(events, "FailedAttachVolume")
    if mount:
        return _failed_mount(mount)
    sandbox = _last(events, "FailedCreatePodSandBox")
    if sandbox:
        node = pod["spec"].get("nodeName", "")
        return Finding("starting", f"The node {node} has trouble starting the pod.", sandbox)
    if pod["spec"].get("nodeName"):
        return Finding("starting", f"Starting on {pod['spec']['nodeName']}.")
    return Finding("queued", "Waiting for a node.")


def _unschedulable(words: str, why_it_does_not_fit: str | None) -> Finding:
    if claim := re.search(r'persistentvolumeclaim "([^"]+)" not found', words):
        reason = f"There is no volume claim {claim[1]} in the namespace."
        return Finding("queued", reason, words, hopeless=True)
    if claim := re.search(r'persistentvolumeclaim "([^"]+)" is being deleted', words):
        return Finding("queued", f"The volume claim {claim[1]} is being deleted.", words, True)
    if "unbound immediate PersistentVolumeClaims" in words:
        return Finding("queued", "Waiting: a volume claim is not bound to a volume yet.", words)
    if why_it_does_not_fit:
        first = why_it_does_not_fit.removeprefix("It ")
        sentence = first if first != why_it_does_not_fit else why_it_does_not_fit
        return Finding("queued", f"Waiting: {sentence[0].lower()}{sentence[1:]}", words)
    return Finding("queued", _scheduler_words(words), words)


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


def _waiting_container(pod: Object, waiting: Json) -> Finding:
    kind, words = waiting.get("reason", ""), waiting.get("message") or waiting.get("reason", "")
    image = pod["spec"]["containers"][0]["image"]
    if kind in ("ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ImageInspectError"):
        return Finding("starting", _image_trouble(image, words), words, hopeless=True)
    if kind == "ErrImageNeverPull":
        reason = f"The image {image} is not on the node, and the pull policy forbids to fetch it."
        return Finding("failed", reason, words)
    if kind == "InvalidImageName":
        return Finding("failed", f"{image} is not the name of an image.", words)
    if kind == "CreateContainerConfigError":
        return Finding("starting", _config_trouble(words), words, hopeless=True)
    if kind in ("CreateContainerError", "RunContainerError"):
        return Finding("starting", f"The container does not start: {words}", words, hopeless=True)
    node = pod["spec"].get("nodeName")
    return Finding("starting", f"Starting on {node}." if node else None)


def _image_trouble(image: str, words: str) -> str:
    lower = words.lower()
    if "not found" in lower or "manifest unknown" in lower:
        return f"There is no image {image}."
    if any(word in lower for word in ("unauthorized", "denied", "authentication", "forbidden")):
        return f"The image {image} may not be fetched: it needs a pull secret, or does not exist."
    if any(word in lower for word in ("no such host", "timeout", "refused", "unreachable", "dial")):
        return f"The registry of the image {image} cannot be reached."
    return f"The image {image} cannot be fetched."


def _config_trouble(words: str) -> str:
    if found := re.search(r'secret "([^"]+)" not found', words):
        return f"There is no secret {found[1]} in the namespace."
    if found := re.search(r"couldn't find key (\S+) in Secret \S*?/?([^/\s]+)$", words):
        return f"The secret {found[2]} has no key {found[1]}."
    if "runAsNonRoot" in words:
        return "The image runs as root, which is not allowed here; use one with a user of its own."
    return f"The container cannot be set up: {words}"


def _failed_mount(words: str) -> Finding:
    if found := re.search(r'secret "([^"]+)" not found', words):
        return Finding("starting", f"There is no secret {found[1]} in the namespace.", words, True)
    if found := re.search(r'configmap "([^"]+)" not found', words):
        return Finding("starting", f"There is no configmap {found[1]}.", words, True)
    return Finding("starting", "A volume cannot be mounted yet.", words)


def _running_there(pod: Object) -> Finding:
    ready = _condition(pod, "Ready", "False")
    statuses = pod["status"].get("containerStatuses") or [{}]
    if ready and statuses[0].get("ready"):
        node = pod["spec"].get("nodeName")
        return Finding(
            "running",
            f"The node {node} does not answer; the step may still be running there.",
            _words(ready),
        )
    return Finding("running")


def _ended(pod: Object) -> Finding:
    status = pod.get("status", {})
    disruption = _disruption(pod)
    if disruption:
        return Finding("failed", disruption, _disruption_words(pod))
    if status.get("reason") == "Evicted":
        return Finding(
            "failed", f"The node put the pod out: {_why_evicted(status)}", status.get("message")
        )
    if status.get("reason") in (
        "UnexpectedAdmissionError",
        "NodeAffinity",
        "OutOfcpu",
        "OutOfmemory",
    ):
        reason = "The node refused the pod, because what it needs was just taken."
        return Finding("failed", reason, status.get("message"))
    end = _terminated(pod)
    if end is None:
        if status.get("phase") == "Succeeded":
            return Finding("succeeded")
        return Finding("failed", "The pod failed.", status.get("message") or status.get("reason"))
    return _exit(pod, end)


def _exit(pod: Object, end: Json) -> Finding:
    code, kind, words = end.get("exitCode"), end.get("reason"), end.get("message")
    container = pod["spec"]["containers"][0]
    if code == 0:
        return Finding("succeeded")
    if kind == "OOMKilled":
        limit = container.get("resources", {}).get("limits", {}).get("memory")
        allowed = f"more than its limit of {_size(limit)}" if limit else "more than the node has"
        return Finding("failed", f"It ran out of memory: it used {allowed}.", words or kind)
    if kind in ("StartError", "ContainerCannotRun") or code in (126, 127, 128):
        return Finding("failed", _start_trouble(container, words or ""), words)
    if kind == "ContainerStatusUnknown":
        node = pod["spec"].get("nodeName")
        return Finding("failed", f"The node {node} lost track of the pod.", words)
    if code == CANCELLED:
        return Finding("cancelled", None, words)
    if code == UNWRITABLE:
        reason = "The pod cannot write into the folder of the run."
        return Finding("failed", reason, words)
    if code == TAKEN:
        return Finding("lost", "Another runner has this attempt.", words)
    if code == 137:
        return Finding("failed", "It was killed (SIGKILL), probably for want of memory.", words)
    last = (words or "").strip().rpartition("\n")[2]
    reason = f"It ended with exit code {code}" + (f": {last[:300]}" if last else ".")
    return Finding("failed", reason, words)


def _start_trouble(container: Object, words: str) -> str:
    program = container.get("command", ["python3"])[0]
    if "executable file not found" in words or "no such file" in words:
        return f"The image {container['image']} has no {program}, which runs the steps."
    return f"The image {container['image']} cannot run {program}."


def _why_evicted(status: Json) -> str:
    words = status.get("message") or ""
    if found := re.search(r"low on resource: (\S+?)\.", words):
        return f"it was low on {found[1]}."
    return words or "it gave no reason."


_DISRUPTIONS = {
    "PreemptionByScheduler": "Something more important took its place.",
    "DeletionByTaintManager": "Its node stopped answering, and the cluster gave the pod up.",
    "EvictionByEvictionAPI": "Its node is being emptied.",
    "DeletionByPodGC": "Its node is gone.",
    "TerminationByKubelet": "Its node stopped it, because it is short of something or shuts down.",
}


def _disruption(pod: Object) -> str | None:
    found = _condition(pod, "DisruptionTarget")
    if found is None:
        return None
    return _DISRUPTIONS.get(found.get("reason", ""), "The cluster put the pod out.")


def _disruption_words(pod: Object) -> str:
    found = _condition(pod, "DisruptionTarget") or {}
    status = pod.get("status", {})
    return status.get("message") or found.get("message") or found.get("reason") or ""


def _condition(item: Object, kind: str, status: str = "True") -> Json | None:
    for condition in item.get("status", {}).get("conditions") or ():
        if condition["type"] == kind and condition["status"] == status:
            return condition
    return None


def _words(condition: Json) -> str:
    return condition.get("message") or condition.get("reason") or ""


def _container_state(pod: Object) -> Json:
    statuses = pod.get("status", {}).get("containerStatuses") or ()
    return statuses[0].get("state", {}) if statuses else {}


def _terminated(pod: Object) -> Json | None:
    return _container_state(pod).get("terminated")


def _running(pod: Object) -> bool:
    return "running" in _container_state(pod)


def _waiting(pod: Object) -> Json | None:
    waiting = _container_state(pod).get("waiting")
    return waiting if waiting and waiting.get("reason") != "ContainerCreating" else None


def _last(events: Iterable[Object], reason: str) -> str | None:
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


def _size(text: str) -> str:
    try:
        return bare("memory", quantity(text))
    except ConvectError:
        return text
