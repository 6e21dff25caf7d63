"""Jobs of attempts: their names and labels; made, found and deleted in a cluster."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Collection, Iterable

from ...errors import Conflict
from ...pipeline.plan import Step
from ...transfer.base import Way
from ..base import Attempt
from .api import Api, ApiError
from .objects import Object

DOMAIN = "jupyterlab-convect.dev"
MANAGED_BY = "app.kubernetes.io/managed-by"
US = "jupyterlab-convect"
RUN, STEP, ATTEMPT = f"{DOMAIN}/run", f"{DOMAIN}/step", f"{DOMAIN}/attempt"
NAME = f"{DOMAIN}/name"
WORKER = f"{DOMAIN}/worker"
"""On what was made for a service: its name."""
OURS = f"{MANAGED_BY}={US}"
"""Selects all that we made."""
JOB = "batch.kubernetes.io/job-name"
"""The label by which Kubernetes ties a pod to its Job."""
INDEX = "batch.kubernetes.io/job-completion-index"
"""The label by which it counts the pods of an indexed Job, and the annotation."""
INDEX_PATH = f"metadata.annotations['{INDEX}']"

MADE_BEFORE = "must be created before"
"""What an operator says that has not seen yet what was made for its object."""
UNSEEN = 30.0
"""Seconds until it has."""
LONGEST = 63
LONGEST_OF_MANY = 46
"""Operators make names of pods and Services by adding words to that of their object."""
_LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


def job_name(run: str, step: str, attempt: int, *, of_many: bool = False) -> str:
    """The same for the same attempt, from every process, and different for every other.

    That makes starting idempotent: a Job that is there already is the one that was meant.
    `of_many`: it has several pods, which may be those of an operator.
    """
    tail = f"{run}-{attempt}"
    if not of_many:
        return f"{slug(step, LONGEST - len(tail) - 1)}-{tail}"
    room = LONGEST_OF_MANY - len(tail) - 1
    name = slug(step, room)
    # The name of a Service begins with a letter.
    return f"{name if name[0].isalpha() else slug(f's-{step}', room)}-{tail}"


def slug(text: str, longest: int = LONGEST) -> str:
    """A DNS label; with a digest in it whenever two texts could become the same."""
    plain = _NOT_IN_NAMES.sub("-", text.lower()).strip("-")
    if plain == text and len(text) <= longest:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    head = plain[: longest - len(digest) - 1].strip("-")
    return f"{head}-{digest}" if head else digest


def label_value(text: str) -> str:
    """The text itself where a label can hold it."""
    if len(text) <= LONGEST and _LABEL.fullmatch(text):
        return text
    return slug(text)


def labels_of(run: str, step: str, attempt: int) -> dict[str, str]:
    return {
        MANAGED_BY: US,
        RUN: label_value(run),
        STEP: label_value(step),
        ATTEMPT: str(attempt),
    }


def run_of(item: Object) -> str:
    """The run that something of ours was made for."""
    return str((item["metadata"].get("labels") or {}).get(RUN, ""))


def claim_name(run: str, claim: str) -> str:
    """The name of a volume claim that a run makes for itself."""
    return f"{slug(claim, LONGEST - len(run) - 1)}-{run}"


def job_of(attempt: Attempt) -> str:
    """The name of what was made for it, or will be."""
    known = (attempt.handle or {}).get("job")
    return str(known) if known else name_of(attempt.run, attempt.step, attempt.number)


def name_of(run: str, step: Step, attempt: int) -> str:
    return job_name(run, step.id, attempt, of_many=step.distributed is not None)


def kind_of(attempt: Attempt) -> str | None:
    """The kind of what was made for it; None before that."""
    kind: str | None = (attempt.handle or {}).get("kind", "Job" if attempt.handle else None)
    return kind


def way_of(attempt: Attempt) -> Way:
    """How its files reached its pod."""
    way: Way = (attempt.handle or {}).get("way", "shared")
    return way


def without_shared_volume(attempt: Attempt) -> bool:
    """Whether its files were sent, and its results have to be fetched."""
    return way_of(attempt) != "shared"


def make(api: Api, plural: str, manifest: Object) -> Object:
    """Make it, or find the one that is there from an earlier try."""
    deadline = time.monotonic() + UNSEEN
    while True:
        try:
            made: Object = api.create(api.path(plural), manifest)
            return made
        except ApiError as error:
            if error.reason == "AlreadyExists":
                found: Object = api.get(api.path(plural, manifest["metadata"]["name"]))
                return found
            if MADE_BEFORE not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.2)


def make_secret(api: Api, secret: Object) -> None:
    """After the Job, so that it can belong to it; the pod waits until it is there."""
    try:
        api.create(api.path("secrets"), secret)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise


def make_service(api: Api, service: Object) -> str:
    """Make it after the Job, to which it belongs; its address."""
    try:
        made: Object = api.create(api.path("services"), service)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
        made = api.get(api.path("services", service["metadata"]["name"]))
    return str(made["spec"]["clusterIP"])


def make_claim(api: Api, claim: Object) -> None:
    """Make it, unless another step of the run has."""
    try:
        api.create(api.path("persistentvolumeclaims"), claim)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise


def delete_claims(
    api: Api, run: str, names: Collection[str], plurals: Collection[str] = ()
) -> None:
    """Delete claims that a run made, and the Jobs that hold them: a claim outlasts its pods.

    `plurals`: what else of the run may hold them. Idempotent.
    """
    for name in names:
        api.delete(api.path("persistentvolumeclaims", name))
    ours = f"{OURS},{RUN}={label_value(run)}"
    for job in api.list(api.path("jobs"), labelSelector=ours):
        volumes = job["spec"]["template"]["spec"].get("volumes") or ()
        claims = {each.get("persistentVolumeClaim", {}).get("claimName") for each in volumes}
        if not claims.isdisjoint(names):
            delete(api, ("jobs",), job["metadata"]["name"])
    for plural in plurals:
        for item in api.list(api.path(plural), labelSelector=ours):
            delete(api, (plural,), item["metadata"]["name"])


def delete(api: Api, plurals: Iterable[str], name: str) -> None:
    """And with it its pods and what else belongs to it. Idempotent."""
    for plural in plurals:
        api.delete(api.path(plural, name), propagationPolicy="Background")


def running_pods(api: Api, attempt: Attempt) -> list[Object]:
    """Those of an attempt."""
    labels = labels_of(attempt.run, attempt.step.id, attempt.number)
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    pods = api.list(api.path("pods"), labelSelector=selector)
    running = [pod for pod in pods if pod["status"].get("phase") == "Running"]
    if not running:
        raise Conflict("The step is not running in the cluster now.", code="not-running")
    return running
