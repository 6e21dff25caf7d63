"""The Job of an attempt in the cluster: made, found, deleted."""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import Conflict
from ..base import Attempt
from . import manifests, names
from .api import Api, ApiError
from .manifests import Manifest


def job_of(attempt: Attempt) -> str:
    return names.job_name(attempt.run, attempt.step.id, attempt.number)


def has_travelled(attempt: Attempt) -> bool:
    """Whether its files went without a shared volume."""
    return bool(attempt.handle) and attempt.handle.get("way") == "bundle"


def make_job(api: Api, manifest: Manifest) -> Manifest:
    """Make it, or find the one that is there from an earlier try."""
    try:
        made: Manifest = api.create(api.place("jobs"), manifest)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
        made = api.get(api.place("jobs", manifest["metadata"]["name"]))
    return made


def make_secret(api: Api, job: Manifest, content: Mapping[str, str]) -> None:
    """After the Job, so that it can belong to it; the pod waits until it is there."""
    try:
        api.create(api.place("secrets"), manifests.secret(job, content))
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise


def delete_job(api: Api, name: str) -> None:
    """And with it its pod and what else belongs to it. Idempotent."""
    api.delete(api.place("jobs", name), propagationPolicy="Background")


def running_pod(api: Api, job: str) -> str:
    for pod in api.list(api.place("pods"), labelSelector=f"{names.JOB}={job}"):
        if pod["status"].get("phase") == "Running":
            return str(pod["metadata"]["name"])
    raise Conflict("The step is not running in the cluster now.", code="not-running")
