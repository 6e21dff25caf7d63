"""Jobs of attempts: their names and labels; made, found and deleted in a cluster."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection

from ...errors import Conflict
from ...transfer.base import Way
from ..base import Attempt
from .api import Api, ApiError
from .objects import Object

DOMAIN = "jupyterlab-convect.dev"
MANAGED_BY = "app.kubernetes.io/managed-by"
US = "jupyterlab-convect"
RUN, STEP, ATTEMPT = f"{DOMAIN}/run", f"{DOMAIN}/step", f"{DOMAIN}/attempt"
NAME = f"{DOMAIN}/name"
OURS = f"{MANAGED_BY}={US}"
"""Selects all that we made."""
JOB = "batch.kubernetes.io/job-name"
"""The label by which Kubernetes ties a pod to its Job."""
INDEX = "batch.kubernetes.io/job-completion-index"
"""The label by which it counts the pods of an indexed Job."""

LONGEST = 63
_LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


def job_name(run: str, step: str, attempt: int) -> str:
    """The same for the same attempt, from every process, and different for every other.

    That makes starting idempotent: a Job that is there already is the one that was meant.
    """
    tail = f"{run}-{attempt}"
    return f"{slug(step, LONGEST - len(tail) - 1)}-{tail}"


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


def claim_name(run: str, claim: str) -> str:
    """The name of a volume claim that a run makes for itself."""
    return f"{slug(claim, LONGEST - len(run) - 1)}-{run}"


def job_of(attempt: Attempt) -> str:
    return job_name(attempt.run, attempt.step.id, attempt.number)


def way_of(attempt: Attempt) -> Way:
    """How its files reached its pod."""
    way: Way = (attempt.handle or {}).get("way", "shared")
    return way


def without_shared_volume(attempt: Attempt) -> bool:
    """Whether its files were sent, and its results have to be fetched."""
    return way_of(attempt) != "shared"


def make_job(api: Api, manifest: Object) -> Object:
    """Make it, or find the one that is there from an earlier try."""
    try:
        made: Object = api.create(api.path("jobs"), manifest)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
        made = api.get(api.path("jobs", manifest["metadata"]["name"]))
    return made


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


def delete_claims(api: Api, run: str, names: Collection[str]) -> None:
    """Delete claims that a run made, and the Jobs that hold them: a claim outlasts its pods.

    Idempotent.
    """
    for name in names:
        api.delete(api.path("persistentvolumeclaims", name))
    for job in api.list(api.path("jobs"), labelSelector=f"{OURS},{RUN}={label_value(run)}"):
        volumes = job["spec"]["template"]["spec"].get("volumes") or ()
        claims = {each.get("persistentVolumeClaim", {}).get("claimName") for each in volumes}
        if not claims.isdisjoint(names):
            delete_job(api, job["metadata"]["name"])


def delete_job(api: Api, name: str) -> None:
    """And with it its pod and what else belongs to it. Idempotent."""
    api.delete(api.path("jobs", name), propagationPolicy="Background")


def running_pod(api: Api, job: str) -> str:
    """The first of its pods, if that is running."""
    pods = api.list(api.path("pods"), labelSelector=f"{JOB}={job}")
    for pod in sorted(pods, key=lambda pod: int(pod["metadata"]["labels"].get(INDEX, 0))):
        if pod["status"].get("phase") == "Running":
            return str(pod["metadata"]["name"])
    raise Conflict("The step is not running in the cluster now.", code="not-running")
