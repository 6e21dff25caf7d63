"""Workers of endpoints: a Deployment each, behind a Service."""

from __future__ import annotations

import contextlib
import json
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

from ...errors import ConvectError
from ...runner.layers import is_ignored
from ...runner.notebook_worker import FILES, UNPACKED
from ...runs.scan import scan_folder
from ...runs.snapshots import CODE
from ...text import some_of
from ...transfer import pack
from ...transfer.base import INBOX, PYTHON, Mounts, first_uncovered
from ...transfer.bundle import LARGEST, ROOMS, load, too_large
from ...transfer.pack import Package
from ..base import RemoteWorker, WorkerOrder, WorkerStatus
from . import jobs
from .api import Api, ApiError, ClusterUnreachable, as_convect_error, read_pieces
from .explain import explain_exit, pending, refused_pod
from .manifests import Manifest, PodContent, pod_spec
from .objects import STEP, Diagnosis, Object, condition, is_running, step_status, words_of
from .pod_defaults import PodDefaults, find_own_pod
from .prepare import as_secret

ENDPOINT = f"{jobs.DOMAIN}/endpoint"
PORT, PROGRAM, READY_PATH = 8080, "worker.py", "/v2/health/ready"
MOST_RESTARTS = 5
"""How often it may end by itself once it was ready."""
PATIENCE = 600.0
"""Seconds that a function has to answer."""
LOG_SILENCE, LOG_PAUSE = 3600.0, 1.0


def deployment(order: WorkerOrder, defaults: PodDefaults, mounts: Mounts, folder: str) -> Manifest:
    """`folder` is where it works, as its pod sees it."""
    step, name = order.step, order.name
    command = (PYTHON, f"{INBOX}/{PROGRAM}", str(PORT), INBOX, folder)
    env = {"IPYTHONDIR": "/tmp/ipython", **step.env}  # noqa: S108
    spec = pod_spec(step, defaults, PodContent(command, env=env, mounts=mounts, secret=name))
    (container,) = spec["containers"]
    container["ports"] = [{"name": "http", "containerPort": PORT}]
    container["readinessProbe"] = {
        "httpGet": {"path": READY_PATH, "port": "http"},
        "periodSeconds": 1,
        # A function that keeps the interpreter to itself is busy, not gone.
        "timeoutSeconds": 10,
        "failureThreshold": 30,
    }
    own = {jobs.MANAGED_BY: jobs.US, ENDPOINT: jobs.label_value(order.endpoint), jobs.WORKER: name}
    metadata = {
        "labels": {**defaults.labels, **step.kubernetes.labels, **own},
        "annotations": {
            **defaults.annotations,
            **step.kubernetes.annotations,
            jobs.NAME: order.endpoint,
        },
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, **metadata},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {jobs.WORKER: name}},
            "template": {"metadata": metadata, "spec": {**spec, "restartPolicy": "Always"}},
        },
    }


def service(made: Object) -> Manifest:
    """What leads to the pod of a Deployment, as that was made."""
    name = made["metadata"]["name"]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, **_belonging_to(made)},
        "spec": {
            "selector": {jobs.WORKER: name},
            "ports": [{"name": "http", "port": 80, "targetPort": "http"}],
        },
    }


def secret(made: Object, inbox: Mapping[str, bytes]) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": made["metadata"]["name"], **_belonging_to(made)},
        "immutable": True,
        "data": as_secret(inbox),
    }


def _belonging_to(made: Object) -> Manifest:
    metadata = made["metadata"]
    owner = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    return {"labels": {jobs.MANAGED_BY: jobs.US}, "ownerReferences": [owner]}


def project_archive(order: WorkerOrder) -> tuple[bytes, list[str]]:
    """The project for a pod that does not see it, and what is too large to be sent."""
    project = order.project
    declared = {each.relative_to(project).as_posix(): each for each in order.declared}
    others = [
        (path, project / path, key.size)
        for path, key in scan_folder(project, order.runs, frozenset(declared)).files.items()
        if path not in declared and stat.S_ISREG(key.mode) and not is_ignored(path)
    ]
    others.sort(key=lambda each: (PurePosixPath(each[0]).suffix.lower() not in CODE, each[2]))
    package = Package({}, declared, optional=tuple(others))
    packed = b""
    for room in (*ROOMS, 0):
        contents = package.within(room)
        packed = pack.archive(load(contents, order.step))
        if len(packed) <= LARGEST:
            return packed, [path for path, *_ in others if path not in contents.files]
    raise too_large(order.step, len(packed))


class DeployedWorker(RemoteWorker):
    def __init__(
        self, api: Api, defaults: PodDefaults, order: WorkerOrder, patience: float
    ) -> None:
        self._api = api
        self._defaults = defaults
        self._order = order
        self._patience = patience
        """Seconds for which something is waited for that does not mend by itself."""
        self._permanent: float | None = None
        self._was_ready = False
        self._pod: Object | None = None
        self._address = ""
        self._notices: list[bytes] = []

    def start(self) -> None:
        order, api = self._order, self._api
        inbox = {PROGRAM: order.program, **order.inbox}
        volumes = self._defaults.shared_volumes
        paths = [str(path) for path in (order.folder, *order.declared)]
        if volumes and first_uncovered(volumes, paths) is None:
            mounts, folder = Mounts(volumes, inbox=True), str(order.folder)
        else:
            mounts = Mounts(volumes, (UNPACKED,), inbox=True)
            folder = str(
                PurePosixPath(UNPACKED, order.folder.relative_to(order.project).as_posix())
            )
            inbox[FILES], left = project_archive(order)
            if left:
                said = f"Too large to be sent to the pod: {some_of(left)}.\n"
                self._notices.append(said.encode())
        doing = "create deployments"
        try:
            manifest = deployment(order, self._defaults, mounts, folder)
            if (own := find_own_pod(api)) is not None:  # Nobody could call it without us.
                owner = {"apiVersion": "v1", "kind": "Pod"}
                owner |= {key: own["metadata"][key] for key in ("name", "uid")}
                manifest["metadata"]["ownerReferences"] = [owner]
            made = api.create(api.path("deployments"), manifest)
            doing = "create secrets"
            api.create(api.path("secrets"), secret(made, inbox))
            doing = "create services"
            found = api.create(api.path("services"), service(made))
        except (ApiError, ClusterUnreachable) as error:
            raise as_convect_error(error, doing, api.namespace) from None
        if api.in_cluster:
            self._address = f"http://{found['spec']['clusterIP']}"
        else:
            path = f"{api.path('services', order.name)}:http/proxy"
            self._address = api.url(path)

    def look(self) -> WorkerStatus:
        try:
            found = self._diagnose()
        except ApiError as error:
            if error.status == 404:
                return WorkerStatus("failed", "Its Deployment was deleted from the cluster.")
            refusal = as_convect_error(error, "watch pods", self._api.namespace)
            return WorkerStatus(self._kept(), refusal.sentence)
        except ClusterUnreachable as error:
            return WorkerStatus(self._kept(), f"The cluster cannot be reached: {error}.")
        if found.state == "succeeded":
            self._was_ready, self._permanent = True, None
            return WorkerStatus("ready")
        if found.state == "failed":
            return WorkerStatus("failed", found.reason)
        if not found.permanent:
            self._permanent = None
        elif self._permanent is None:
            self._permanent = time.monotonic()
        elif time.monotonic() - self._permanent > self._patience:
            return WorkerStatus("failed", found.reason)
        return WorkerStatus("starting", found.reason)

    def _kept(self) -> Any:
        return "ready" if self._was_ready else "starting"

    def _diagnose(self) -> Diagnosis:
        """`succeeded` is ready, here."""
        api, name = self._api, self._order.name
        made = api.get(api.path("deployments", name))
        pods = api.list(api.path("pods"), labelSelector=f"{jobs.WORKER}={name}")
        pods = [each for each in pods if "deletionTimestamp" not in each["metadata"]]
        pods.sort(key=lambda each: (_is_over(each), each["metadata"]["creationTimestamp"]))
        self._pod = pod = next(
            iter(reversed([each for each in pods if not _is_over(each)] or pods)), None
        )
        if pod is None:
            refusal = condition(made, "ReplicaFailure")
            if refusal:
                return refused_pod(words_of(refusal))
            return Diagnosis("starting", "Waiting for the cluster to create its pod.")
        if condition(pod, "Ready"):
            return self._reachable()
        status = step_status(pod)
        ended = (
            status.get("state", {}).get("terminated") or status.get("lastState", {})["terminated"]
            if status.get("restartCount") or "terminated" in status.get("state", {})
            else None
        )
        if ended:
            reason = explain_exit(pod, ended).reason or "It ended by itself."
            if not self._was_ready or status.get("restartCount", 0) > MOST_RESTARTS:
                return Diagnosis("failed", reason)
            return Diagnosis("starting", f"{reason} It is being started again.")
        if is_running(pod):
            return Diagnosis("starting", "The cells of the notebook are being executed.")
        uid = pod["metadata"]["uid"]
        events: list[Object] = []
        with contextlib.suppress(ApiError):
            events = api.list(api.path("events"), fieldSelector=f"involvedObject.uid={uid}")
        return pending(pod, events, None)

    def _reachable(self) -> Diagnosis:
        """A Service leads to a pod a moment after that is ready; and somebody may be in the way."""
        if not self._was_ready:
            try:
                self.send("GET", READY_PATH, {}, None)
            except ConvectError as error:
                return Diagnosis("starting", f"Its Service cannot be reached yet: {error.sentence}")
        return Diagnosis("succeeded")

    def send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> tuple[int, str, bytes]:
        api = self._api
        signed = {} if api.in_cluster else api.headers()
        try:
            answer = api.forward(
                method, f"{self._address}{path}", {**headers, **signed}, body, PATIENCE
            )
        except ClusterUnreachable as error:
            raise ConvectError(f"The worker does not answer: {error}.", code="no-worker") from None
        if not api.in_cluster and (refusal := _of_cluster(answer)) is not None:
            said = as_convect_error(refusal, "reach services", api.namespace)
            raise ConvectError(said.sentence, code=said.code, hint=said.hint)
        return answer

    def follow_log(self, write: Callable[[bytes], None]) -> None:
        for notice in self._notices:
            write(notice)
        told: dict[tuple[str, int], int] = {}
        while True:
            pod = self._pod
            if pod is not None and step_status(pod).get("containerID"):
                key = (pod["metadata"]["uid"], step_status(pod).get("restartCount", 0))
                with contextlib.suppress(ApiError, ClusterUnreachable):
                    self._tell_log(pod["metadata"]["name"], told, key, write)
            time.sleep(LOG_PAUSE)

    def _tell_log(
        self,
        pod: str,
        told: dict[tuple[str, int], int],
        key: tuple[str, int],
        write: Callable[[bytes], None],
    ) -> None:
        path = f"{self._api.path('pods', pod)}/log"
        skip = told.get(key, 0)
        with self._api.stream(path, LOG_SILENCE, container=STEP, follow=True) as response:
            for data in read_pieces(response):
                new = data[skip:]
                skip = max(0, skip - len(data))
                told[key] = told.get(key, 0) + len(new)
                write(new)


def forget(api: Api, name: str) -> None:
    """Delete the Deployment, and with it its pod and what else belongs to it. Idempotent."""
    api.delete(api.path("deployments", name), propagationPolicy="Background")


def _is_over(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def _of_cluster(answer: tuple[int, str, bytes]) -> ApiError | None:
    """What the cluster itself says, instead of the worker."""
    status, kind, data = answer
    if status < 400 or "json" not in kind:
        return None
    with contextlib.suppress(ValueError):
        said = json.loads(data)
        if isinstance(said, dict) and said.get("kind") == "Status":
            return ApiError(status, str(said.get("message") or "").rstrip("."))
    return None
