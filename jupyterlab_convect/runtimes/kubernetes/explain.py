"""What a Job, its pod and the warnings about them mean, in words of a data scientist.

Pure: the cluster's own JSON in, a finding out. The raw words stay beneath as `detail`.
"""

from __future__ import annotations

from collections.abc import Sequence

from .endings import disruption, disruption_words, ended
from .objects import (
    Finding,
    Object,
    condition,
    is_running,
    last_words,
    seconds_of,
    step_status,
    terminated,
    words_of,
)
from .pending import pending, refused_pod
from .queues import Place, explain_queue, queue_of

UNCONFIRMED = 15.0
"""Seconds after which a pod that should be gone counts as gone."""


def explain(
    job: Object | None,
    pod: Object | None,
    events: Sequence[Object] = (),
    why_it_does_not_fit: str | None = None,
    now: float = 0.0,
    place: Place | None = None,
) -> Finding:
    """The state of an attempt whose Job and pod are these, `now` in seconds since 1970.

    `why_it_does_not_fit` is what our own look at the nodes found, for a pod that no
    node takes; without it the scheduler's words are translated. `place` is where in its
    queue the Job is.
    """
    if pod is None:
        return _without_pod(job, events, place)
    phase = pod.get("status", {}).get("phase")
    if phase in ("Succeeded", "Failed") or terminated(pod):
        return ended(pod)
    going = pod["metadata"].get("deletionTimestamp")
    if going and now > seconds_of(going) + UNCONFIRMED:
        node = pod["spec"].get("nodeName")
        reason = disruption(pod) or f"The node {node} does not confirm that the pod has terminated."
        return Finding("failed", reason, disruption_words(pod))
    if going or disruption(pod):
        reason = f"{disruption(pod) or ''} It is being stopped.".strip()
        return Finding("running", reason, disruption_words(pod) or None)
    if is_running(pod):
        return _running_there(pod)
    return pending(pod, events, why_it_does_not_fit)


def explain_gone(job: Object | None, pod: Object | None) -> Finding:
    """An attempt whose Job is not in the cluster any more, as it was when it was last seen."""
    if pod is not None and (terminated(pod) or disruption(pod)):
        return ended(pod)
    if job is None and pod is None:
        return Finding("lost", "Its Job is no longer in the cluster, so how it ended is unknown.")
    return Finding("failed", "Its Job was deleted from the cluster before it finished.")


def _without_pod(job: Object | None, events: Sequence[Object], place: Place | None) -> Finding:
    if job is None:
        return Finding("starting")
    failed = condition(job, "Failed")
    if failed:
        return Finding("failed", "Kubernetes marked the Job as failed.", words_of(failed))
    if job.get("spec", {}).get("suspend"):
        queue = queue_of(job)
        if queue:
            return Finding("queued", explain_queue(queue, place), place.words if place else None)
        words = last_words(events, "Suspended")
        return Finding("queued", "Waiting because its Job is suspended.", words)
    refusal = last_words(events, "FailedCreate")
    if refusal:
        return refused_pod(refusal)
    return Finding("starting", "Waiting for the cluster to create its pod.")


def _running_there(pod: Object) -> Finding:
    ready = condition(pod, "Ready", "False")
    if ready and step_status(pod).get("ready"):
        node = pod["spec"].get("nodeName")
        return Finding(
            "running",
            f"The node {node} does not respond; the step may still be running there.",
            words_of(ready),
        )
    return Finding("running")
