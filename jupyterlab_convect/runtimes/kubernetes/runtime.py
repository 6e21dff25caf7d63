"""Steps as pods: one Job for an attempt."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from traitlets import Dict, Enum, Int, List, Unicode

from ...errors import Conflict, ConvectError
from ...pipeline.plan import Json, Plan
from ...pipeline.problems import Problem
from ...runner.saving import write_whole
from ..base import Attempt, Feature, LogChunk, StepRuntime, StepStatus
from ..local.progress import Progresses
from . import fit, manifests, names
from .api import Api, ApiError, Unreachable, as_convect_error, connect, patiently
from .checks import check_plan, gpu_types
from .cluster import Cluster, Seen
from .delivery import INTERRUPTED, Parcel, choose_way, make_parcel, write_stop
from .explain import Finding, explain, explain_gone
from .follower import Follower
from .overview import overview
from .shares import OwnPod, access_modes, find_own_pod, share_from_config, take_over
from .shell import run_in_pod
from .site import (
    RESTRICTED_CONTAINER,
    RESTRICTED_POD,
    GpuProfile,
    Site,
    profile_from_config,
)

T = TypeVar("T")
Key = tuple[str, str, int]

THREADS = 8
START_PATIENCE, STOP_PATIENCE = 300.0, 20.0
SILENT = 10.0
"""Seconds after which a cluster that does not answer is worth a word."""


class KubernetesRuntime(StepRuntime):
    name = "kubernetes"
    display_name = Unicode("Kubernetes", help="What the front end calls it.").tag(config=True)
    features = frozenset(Feature)

    context = Unicode("", help="The context of the kubeconfig; the current one if empty.").tag(
        config=True
    )
    config_file = Unicode("", help="The kubeconfig; KUBECONFIG or ~/.kube/config if empty.").tag(
        config=True
    )
    namespace = Unicode(
        "", help="Where Jobs are made; our own pod's or the context's namespace if empty."
    ).tag(config=True)
    image = Unicode(
        "", help="The image of steps that name none; our own pod's image if empty."
    ).tag(config=True)
    pull_policy = Enum(["", "Always", "IfNotPresent", "Never"], "").tag(config=True)
    pull_secrets = List(Unicode(), help="Secrets that open the images' registry.").tag(config=True)
    volumes = List(
        Dict(),
        help="""Volumes that this machine and pods share, at the same path:
        {"path": "/home/ana", "claim": "homes", "sub_path": "ana"}.""",
    ).tag(config=True)
    files = Enum(
        ["auto", "shared", "bundle"],
        "auto",
        help="""How files reach a pod: over a shared volume, or in a bundle with the results
        coming home through the log. `auto` takes the volume wherever there is one.""",
    ).tag(config=True)
    node_selector = Dict(help="Labels that every node must have.").tag(config=True)
    tolerations = List(Dict(), help="Tolerations of every pod, as in a manifest.").tag(config=True)
    labels = Dict(help="Labels of every Job and pod, such as a queue's.").tag(config=True)
    annotations = Dict(help="Annotations of every Job and pod.").tag(config=True)
    pod_security = Dict(
        help="Replaces parts of the pods' security context, which is a restricted one."
    ).tag(config=True)
    container_security = Dict(
        help="Replaces parts of the containers' security context, which is a restricted one."
    ).tag(config=True)
    gpu_profiles = Dict(
        {"nvidia.com/gpu": {"type_label": "nvidia.com/gpu.product"}},
        help="""How this cluster counts GPUs, by the resource name that documents use:
        {"type_label": label of nodes, "requests": {resource: amount for one GPU},
        "shareable": whether fractions can be had}.""",
    ).tag(config=True)
    grace = Int(30, min=1, help="Seconds a step has to end after it is asked to.").tag(config=True)
    ttl = Int(3600, min=0, help="Seconds for which an ended Job stays in the cluster.").tag(
        config=True
    )
    patience = Int(
        120,
        min=0,
        help="""Seconds that a step waits for something that does not mend by itself, such as
        an image that does not exist, before it fails.""",
    ).tag(config=True)
    carry_limit = Int(
        8_000_000,
        min=100_000,
        help="Bytes that may come home through a log; the nodes keep about 10 MB of each.",
    ).tag(config=True)
    max_pods = Int(100, min=1, help="Steps that are in the cluster at the same time.").tag(
        config=True
    )

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="kubernetes")
        self._opening = threading.Lock()
        self._opened: Cluster | None = None
        self._held: set[Key] = set()
        self._stopped: set[Key] = set()
        self._progresses = Progresses()
        self._followers: dict[Key, Follower] = {}
        self._hopeless: dict[Key, float] = {}

    async def check(self, plan: Plan) -> list[Problem]:
        try:
            cluster = await self._aside(self._cluster)
            return await self._aside(check_plan, cluster, plan)
        except ConvectError as error:
            return [Problem("error", error.code, error.sentence, hint=error.hint)]
        except (ApiError, Unreachable) as error:
            said = as_convect_error(error, "look at it", self.namespace)
            return [Problem("error", said.code, said.sentence, hint=said.hint)]

    def admit(self, attempt: Attempt) -> str | None:
        if attempt.key not in self._held and len(self._held) >= self.max_pods:
            return f"Waits: {self.max_pods} steps are in the cluster already."
        self._held.add(attempt.key)
        return None

    def release(self, attempt: Attempt) -> None:
        self._held.discard(attempt.key)
        self._forget(attempt.key)
        if _travelled(attempt) and (attempt.folder / "outputs.json").exists():
            # All is home: nobody has to fetch anything from its log any more.
            with contextlib.suppress(RuntimeError):
                self._pool.submit(self._clean_up, attempt)

    async def start(self, attempt: Attempt) -> AsyncIterator[Json]:
        cluster = await self._aside(self._cluster)
        yield await self._aside(self._create, cluster, attempt)

    async def poll(self, attempts: Sequence[Attempt]) -> list[StepStatus]:
        cluster = await self._aside(self._cluster)
        if not cluster.is_synced() and not await self._aside(cluster.is_synced, 5.0):
            return []
        return await self._aside(self._poll, cluster, attempts)

    async def stop(self, attempt: Attempt) -> None:
        self._stopped.add(attempt.key)
        await self._aside(self._stop, await self._aside(self._cluster), attempt)

    async def logs(self, attempt: Attempt, offset: int = 0, limit: int = 1 << 20) -> LogChunk:
        try:
            with (attempt.folder / "log.txt").open("rb") as file:
                file.seek(offset)
                data = file.read(limit)
        except OSError:
            return LogChunk("", offset, complete=False)
        text = data.decode(errors="ignore")
        return LogChunk(text, offset + len(text.encode()), complete=False)

    async def top(self) -> dict[str, Json] | None:
        try:
            return await self._aside(self._overview)
        except (ApiError, Unreachable) as error:
            raise as_convect_error(error, "be looked at", self.namespace) from None

    def shell(self, attempt: Attempt, command: Sequence[str] = ()) -> int:
        api = Api(connect(self.context, self.config_file, self.namespace))
        try:
            pod = _running_pod(api, _name(attempt))
        except (ApiError, Unreachable) as error:
            raise as_convect_error(error, "look at pods", api.namespace) from None
        return run_in_pod(api, pod, command)

    async def close(self) -> None:
        for follower in self._followers.values():
            follower.close()
        if self._opened is not None:
            self._opened.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _aside(self, work: Callable[..., T], *arguments: Any) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, work, *arguments)

    def _cluster(self) -> Cluster:
        with self._opening:
            if self._opened is None:
                api = Api(connect(self.context, self.config_file, self.namespace))
                try:
                    site = self._site(api)
                except (ApiError, Unreachable) as error:
                    raise as_convect_error(error, "be looked at", api.namespace) from error
                self._opened = Cluster(api, site, lambda: self.changed())
            return self._opened

    def _site(self, api: Api) -> Site:
        pod = find_own_pod(api)
        own = None if pod is None else take_over(pod, access_modes(api, pod))
        shares = (*map(share_from_config, self.volumes), *(own.shares if own else ()))
        notes = list(own.notes) if own else []
        if self.files == "bundle" or not shares:
            shares = ()
            notes.append(
                "No volume is shared with the cluster: files that are declared travel with the "
                f"run, up to 0.9 MB, and up to {self.carry_limit / 1e6:g} MB come home."
            )
        return Site(
            namespace=api.namespace,
            image=self.image or (own.image if own else ""),
            pull_policy=self.pull_policy or None,
            pull_secrets=(*self.pull_secrets, *(own.pull_secrets if own else ())),
            shares=shares,
            tolerations=(*self.tolerations, *(own.tolerations if own else ())),
            node_selector=self.node_selector,
            labels=self.labels,
            annotations=self.annotations,
            pod_security={**_user(bool(shares), own), **self.pod_security},
            container_security={**RESTRICTED_CONTAINER, **self.container_security},
            gpus=self._gpus(),
            grace=self.grace,
            ttl=self.ttl,
            notes=tuple(notes),
        )

    def _gpus(self) -> dict[str, GpuProfile]:
        return {name: profile_from_config(name, item) for name, item in self.gpu_profiles.items()}

    def _create(self, cluster: Cluster, attempt: Attempt) -> Json:
        """Make the Job, or find the one that is there from an earlier try."""
        step, name = attempt.step, _name(attempt)
        way = choose_way(attempt, cluster.site, self.files)
        parcel = make_parcel(attempt, cluster.site, way, name, self.carry_limit)
        types = gpu_types(step, cluster.site, cluster.capacity()) if step.resources.gpu else []
        manifest = manifests.job(
            attempt.run, step, attempt.number, cluster.site, parcel.delivery, types
        )
        try:
            job = patiently(
                lambda: self._make(cluster.api, parcel, manifest),
                START_PATIENCE,
                lambda: attempt.key in self._stopped,
            )
        except (ApiError, Unreachable) as error:
            raise as_convect_error(error, "create jobs", cluster.api.namespace) from error
        cluster.jobs.put(job)
        return {
            "job": name,
            "namespace": cluster.api.namespace,
            "uid": job["metadata"]["uid"],
            "way": way,
        }

    @staticmethod
    def _make(api: Api, parcel: Parcel, manifest: manifests.Manifest) -> manifests.Manifest:
        job = _create_or_find(api, "jobs", manifest)
        if parcel.secret is not None:
            # After the Job, so that it can belong to it; its pod waits until it is there.
            _create_or_find(api, "secrets", manifests.secret(job, parcel.secret))
        return job

    def _poll(self, cluster: Cluster, attempts: Sequence[Attempt]) -> list[StepStatus]:
        seen = cluster.look(_name(attempt) for attempt in attempts)
        trouble = cluster.trouble()
        statuses = []
        for attempt in attempts:
            finding = self._find(cluster, attempt, seen[_name(attempt)])
            if finding.hopeless:
                finding = self._lose_patience(attempt, finding)
            else:
                self._hopeless.pop(attempt.key, None)
            if trouble and finding.state == "running" and time.time() - trouble[1] > SILENT:
                since = time.strftime("%H:%M:%S", time.localtime(trouble[1]))
                sentence = f"The cluster has not answered since {since}; the step may go on there."
                finding = replace(finding, reason=sentence, detail=trouble[0])
            statuses.append(
                StepStatus(
                    attempt.key,
                    finding.state,
                    finding.reason,
                    finding.detail,
                    self._progresses.read(attempt) if finding.state == "running" else None,
                )
            )
        return statuses

    def _find(self, cluster: Cluster, attempt: Attempt, seen: Seen) -> Finding:
        ended = self._outcome(attempt, seen)
        if ended is not None:
            return ended
        if attempt.handle is None:
            return Finding("lost")  # Starting it again finds what is there.
        if seen.job is None and seen.pod is None:
            finding = explain_gone(seen.was_job, seen.was_pod)
        else:
            finding = explain(
                seen.job, seen.pod, seen.events, self._fit(cluster, attempt, seen), time.time()
            )
        return self._with_log(cluster, attempt, seen, finding)

    def _outcome(self, attempt: Attempt, seen: Seen) -> Finding | None:
        """What the runner left is the truth, and there before the cluster knows."""
        path = attempt.folder / "outputs.json"
        try:
            outcome = json.loads(path.read_bytes())
            state, reason = outcome["state"], outcome.get("reason")
        except (OSError, ValueError, KeyError, TypeError):
            return None
        if reason == INTERRUPTED:
            _tell_why(path, outcome, attempt, seen)
        return Finding(state, reason)

    def _fit(self, cluster: Cluster, attempt: Attempt, seen: Seen) -> str | None:
        """Our own words for a pod that finds no node."""
        pod = seen.pod
        if pod is None or pod["spec"].get("nodeName"):
            return None
        try:
            nodes = cluster.capacity().nodes
        except (ApiError, Unreachable):
            return None
        if nodes is None:
            return None
        gpu = attempt.step.resources.gpu
        needs = fit.needs_of(pod["spec"], gpu.type if gpu else None)
        return fit.judge_nodes(needs, nodes).sentence

    def _with_log(
        self, cluster: Cluster, attempt: Attempt, seen: Seen, finding: Finding
    ) -> Finding:
        """Without a shared volume, nothing has ended before its results are home."""
        if not _travelled(attempt):
            return finding
        pod = seen.pod
        over = finding.state in ("succeeded", "failed", "cancelled", "lost")
        follower = self._followers.get(attempt.key)
        if follower is None and pod is not None and (over or finding.state == "running"):
            name, pods = pod["metadata"]["name"], cluster.pods
            follower = Follower(
                cluster.api,
                name,
                attempt.folder,
                lambda: _is_over(pods.now()[0].get(name)),
                self._tell,
            )
            self._followers[attempt.key] = follower
            follower.start()
        if over and follower is not None:
            if not follower.done:
                return Finding("running", "Its results are coming home.")
            said = "\n".join(follower.home.noise) or follower.trouble
            return replace(finding, detail=finding.detail or said)
        return finding

    def _lose_patience(self, attempt: Attempt, finding: Finding) -> Finding:
        since = self._hopeless.setdefault(attempt.key, time.monotonic())
        if time.monotonic() - since < self.patience:
            return finding
        self._clean_up(attempt)
        return replace(finding, state="failed", hopeless=False)

    def _stop(self, cluster: Cluster, attempt: Attempt) -> None:
        if not (attempt.folder / "outputs.json").exists():
            with contextlib.suppress(OSError):
                write_stop(attempt.folder, "cancelled", "Stopped.")
        patiently(lambda: _delete(cluster.api, _name(attempt)), STOP_PATIENCE, lambda: False)

    def _clean_up(self, attempt: Attempt) -> None:
        with contextlib.suppress(ApiError, Unreachable):
            _delete(self._cluster().api, _name(attempt))

    def _tell(self) -> None:
        self.changed()

    def _overview(self) -> dict[str, Json]:
        cluster = self._cluster()
        own = cluster.pods.now()[0].values() if cluster.is_synced(5.0) else ()
        return overview(cluster.api.namespace, cluster.capacity(), cluster.site.gpus, own)

    def _forget(self, key: Key) -> None:
        self._progresses.forget(key)
        self._hopeless.pop(key, None)
        self._stopped.discard(key)
        follower = self._followers.pop(key, None)
        if follower is not None:
            follower.close()


def _travelled(attempt: Attempt) -> bool:
    """Whether its files went without a shared volume."""
    return bool(attempt.handle) and attempt.handle.get("way") == "bundle"


def _name(attempt: Attempt) -> str:
    return names.job_name(attempt.run, attempt.step.id, attempt.number)


def _create_or_find(api: Api, kind: str, manifest: manifests.Manifest) -> manifests.Manifest:
    try:
        made: manifests.Manifest = api.create(api.place(kind), manifest)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
        if kind == "secrets":  # Which we may not read, and need not.
            return manifest
        made = api.get(api.place(kind, manifest["metadata"]["name"]))
    return made


def _running_pod(api: Api, job: str) -> str:
    for pod in api.list(api.place("pods"), labelSelector=f"{names.JOB}={job}"):
        if pod["status"].get("phase") == "Running":
            return str(pod["metadata"]["name"])
    raise Conflict("The step is not running in the cluster now.", code="not-running")


def _delete(api: Api, name: str) -> None:
    api.delete(api.place("jobs", name), propagationPolicy="Background")


def _is_over(pod: dict[str, Any] | None) -> bool:
    return pod is None or pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def _user(shared: bool, own: OwnPod | None) -> dict[str, Json]:
    """Restricted; and where files are shared, as the user whose files they are."""
    context: dict[str, Json] = {**RESTRICTED_POD, **(own.pod_security if own else {})}
    user = os.geteuid()
    if shared and (user != 0 or own is not None):
        context |= {"runAsUser": user, "runAsGroup": os.getegid()}
    if context.get("runAsUser") == 0:
        context["runAsNonRoot"] = False
    return context


def _tell_why(path: Path, outcome: Json, attempt: Attempt, seen: Seen) -> None:
    """The runner only knows that it was stopped; who asked, or the cluster, knows why."""
    try:
        stop = json.loads((attempt.folder / "stop.json").read_bytes())
    except (OSError, ValueError):
        stop = {}
    pod = seen.pod or seen.was_pod
    if stop.get("state") == "cancelled":
        outcome |= {"state": "cancelled", "reason": stop.get("reason")}
    elif pod is not None and (reason := explain_gone(None, pod)).detail:
        outcome["reason"] = reason.reason
    else:
        return
    with contextlib.suppress(OSError):
        write_whole(path, json.dumps(outcome, ensure_ascii=False).encode())
