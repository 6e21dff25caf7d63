"""How a pod ended, in words."""

from __future__ import annotations

import re

from ...errors import ConvectError
from ...pipeline.plan import Json
from ...pipeline.quantities import quantity
from ...runner.outcome import CANCELLED, TAKEN, UNWRITABLE
from .objects import Finding, Object, condition, step_container, terminated
from .words import bare


def ended(pod: Object) -> Finding:
    status = pod.get("status", {})
    if put_out := disruption(pod):
        return Finding("failed", put_out, disruption_words(pod))
    if status.get("reason") == "Evicted":
        return Finding("failed", _evicted(status), status.get("message"))
    if status.get("reason") in (
        "UnexpectedAdmissionError",
        "NodeAffinity",
        "OutOfcpu",
        "OutOfmemory",
    ):
        reason = "The node rejected the pod because the resources it needs were just taken."
        return Finding("failed", reason, status.get("message"))
    if status.get("reason") == "DeadlineExceeded":
        return Finding("failed", "It exceeded its deadline.", status.get("message"))
    end = terminated(pod)
    if end is None:
        if status.get("phase") == "Succeeded":
            return Finding("succeeded")
        return Finding("failed", "The pod failed.", status.get("message") or status.get("reason"))
    return _exit(pod, end)


def _exit(pod: Object, end: Json) -> Finding:
    code, kind, words = end.get("exitCode"), end.get("reason"), end.get("message")
    container = step_container(pod["spec"])
    if code == 0:
        return Finding("succeeded")
    if kind == "OOMKilled":
        limit = container.get("resources", {}).get("limits", {}).get("memory")
        reason = "It ran out of memory: it used more than the node has."
        if limit:
            reason = f"It ran out of memory: it used more than its limit of {_size(limit)}."
        return Finding("failed", reason, words or kind)
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
    if code == 137 and pod["metadata"].get("deletionTimestamp"):
        return Finding("failed", "Its pod was deleted before it finished.", words)
    if code == 137:
        return Finding(
            "failed", "It was killed (SIGKILL), probably because it ran out of memory.", words
        )
    last = (words or "").strip().rpartition("\n")[2]
    reason = f"It ended with exit code {code}" + (f": {last[:300]}" if last else ".")
    return Finding("failed", reason, words)


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
