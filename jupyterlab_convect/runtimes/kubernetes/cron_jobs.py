"""Clocks of schedules that the cluster keeps: a CronJob each, whose pods drive the runs."""

from __future__ import annotations

import time
from collections.abc import Mapping

from ...pipeline.plan import Json, Kubernetes, Step
from ...transfer.base import Mounts
from ..base import KeptClock
from . import jobs
from .api import Api, ApiError
from .manifests import Manifest, PodContent, pod_spec
from .objects import Object
from .pod_defaults import PodDefaults

SCHEDULE = f"{jobs.DOMAIN}/schedule"
SHORTEST_DEADLINE = 60
"""Seconds; the cluster looks at its clocks every ten."""
TRIES = 3
PATIENCE, PAUSE = 20.0, 0.5


def cron_job_name(schedule_id: str) -> str:
    """Its Jobs have names of their own, which are longer by eleven characters."""
    return f"schedule-{jobs.slug(schedule_id, 40)}"


def cron_job(
    clock: KeptClock,
    defaults: PodDefaults,
    *,
    image: str,
    account: str,
    command: tuple[str, ...],
    env: Mapping[str, str],
) -> Manifest:
    """Whether something is due, and what becomes of it when an earlier run goes on, is decided by
    what it starts: it may start at any time, and beside itself."""
    step = Step(
        "engine", "command", clock.name, image=image, kubernetes=Kubernetes(service_account=account)
    )
    content = PodContent(command, env=env, mounts=Mounts(defaults.shared_volumes))
    labels = {
        **defaults.labels,
        jobs.MANAGED_BY: jobs.US,
        SCHEDULE: jobs.label_value(clock.id),
    }
    metadata = {"labels": labels, "annotations": {**defaults.annotations, jobs.NAME: clock.name}}
    pod: Manifest = {"metadata": metadata, "spec": pod_spec(step, defaults, content)}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": cron_job_name(clock.id), **metadata},
        "spec": {
            "schedule": clock.cron,
            "timeZone": clock.zone,
            "suspend": clock.paused,
            "concurrencyPolicy": "Allow",
            "startingDeadlineSeconds": max(SHORTEST_DEADLINE, int(clock.deadline)),
            "jobTemplate": {
                "metadata": metadata,
                "spec": {
                    "backoffLimit": TRIES,
                    "ttlSecondsAfterFinished": defaults.ttl,
                    "template": pod,
                },
            },
        },
    }


def put_cron_job(api: Api, manifest: Manifest) -> None:
    """Make it, or put it in the place of the one that is there. Blocks while that is being
    deleted."""
    path = api.path("cronjobs", manifest["metadata"]["name"])
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            api.create(api.path("cronjobs"), manifest)
            return
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
        known = _known(api, path)
        if known is None:
            continue
        if "deletionTimestamp" in known["metadata"] and time.monotonic() < deadline:
            time.sleep(PAUSE)
            continue
        if not _has(known, manifest):
            version: Json = known["metadata"]["resourceVersion"]
            metadata = {**manifest["metadata"], "resourceVersion": version}
            api.replace(path, {**manifest, "metadata": metadata})
        return


def _known(api: Api, path: str) -> Object | None:
    try:
        found: Object = api.get(path)
    except ApiError as error:
        if error.status != 404:
            raise
        return None
    return found


def _has(known: Json, wanted: Json) -> bool:
    """Whether all that is wanted is there; the cluster adds what nobody has asked for."""
    if isinstance(wanted, dict):
        return isinstance(known, dict) and all(
            _has(known.get(key), value) for key, value in wanted.items()
        )
    if isinstance(wanted, list | tuple):
        return (
            isinstance(known, list) and len(known) == len(wanted) and all(map(_has, known, wanted))
        )
    return bool(known == wanted)


def delete_cron_job(api: Api, schedule_id: str) -> None:
    """Runs that it has started go on: what drives them ends with them. Idempotent."""
    api.delete(api.path("cronjobs", cron_job_name(schedule_id)), propagationPolicy="Orphan")
