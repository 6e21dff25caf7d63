"""Steps as pods: one Job per attempt."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from traitlets import Dict, Enum, Int, List, Unicode

from ...errors import Conflict, ConvectError
from ...pipeline.claims import run_claims
from ...pipeline.plan import Distributed, Json, Plan
from ...pipeline.problems import Problem
from ...pipeline.profiles import Profile
from ...pools import Threads
from ...transfer.base import Mounts, Wanted
from ...transfer.s3 import ObjectStore
from ...transfer.shared_volume import write_stop
from ...transfer.ways import Transfers
from ..base import Attempt, Feature, KeptClock, StepRuntime, StepStatus, WorkerOrder
from ..capacity import Overview
from ..engine_pods import engine_command, engine_environment, require_image, require_shared
from . import components, deployments, jobs, manifests
from .api import (
    Api,
    ApiError,
    ClusterUnreachable,
    as_convect_error,
    connect,
    patiently,
    require_configuration,
)
from .checks import LOOKING, check_plan, gpu_types, why_gang_waits
from .cluster import Cluster, operator_for
from .cron_jobs import cron_job, delete_cron_job, put_cron_job
from .deployments import DeployedWorker
from .gang import nodes_of, stop_nodes
from .gpu_metrics import GpuMetrics
from .job_file import JobRun
from .jobs import (
    claim_name,
    delete,
    delete_claims,
    job_of,
    kind_of,
    make,
    make_claim,
    make_secret,
    make_service,
    running_pods,
    way_of,
    without_shared_volume,
)
from .manifests import Manifest
from .observer import Key, Observer, unknown, unreachable
from .offers import offers
from .operators import JOB, Operator, operator_of, place_of
from .overview import OverviewFacts, gpus_of, overview
from .pod_defaults import (
    RESTRICTED_CONTAINER,
    RESTRICTED_POD,
    GpuProfile,
    OwnPod,
    PodDefaults,
    find_own_pod,
    inherited,
    profile_from_config,
    volume_from_config,
)
from .pod_facts import pod_facts
from .prepare import (
    Prepared,
    as_secret,
    folder_in_pod,
    paths_of,
    prepare,
    with_variables,
    write_manifest,
)
from .shell import run_in_pod

T = TypeVar("T")

Pool = Literal["starting", "watching", "stopping", "looking"]
THREADS: dict[Pool, int] = {"starting": 8, "watching": 2, "stopping": 4, "looking": 4}
"""Each end has threads of its own, so that what waits for one does not hold up another."""
START_PATIENCE, STOP_PATIENCE = 300.0, 20.0
SETTLING = 12.0
"""Seconds until the pods of a gang that was let in are seen on the nodes that they got."""
FIRST_LOOK = 0.5
"""Seconds that an overview waits for the first look at all nodes and pods."""
SYNC = 5.0
"""Seconds that the first poll waits for the first look at the cluster."""


@dataclass(frozen=True)
class Opened:
    """What there is once the cluster has been reached for."""

    cluster: Cluster
    transfers: Transfers
    observer: Observer


class KubernetesRuntime(StepRuntime):
    name = "kubernetes"
    display_name = Unicode("Kubernetes", help="What the front end calls it.").tag(config=True)
    features = frozenset(Feature) - {
        Feature.CONNECTION,
        Feature.OTHERS_RUNS,
        Feature.PUBLISH,
        Feature.RECURRING,
    }

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
        ["auto", "shared", "s3", "bundle"],
        "auto",
        help="""How files reach a pod: over a shared volume, through an object store
        (`c.ObjectStore`), or in a bundle with the results copied back through the log. `auto`
        takes the first of these that there is.""",
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
        help="Bytes that may be copied back through a log; the nodes keep about 10 MB of each.",
    ).tag(config=True)
    max_pods = Int(100, min=1, help="Steps that are in the cluster at the same time.").tag(
        config=True
    )

    gpu_metrics = Unicode(
        "",
        help="""Where to read how busy GPUs are: from a Prometheus server that has the metrics of
        NVIDIA's DCGM exporter (http://prometheus.monitoring:9090), or from the exporters
        themselves (http://dcgm-exporter.gpu-operator:9400/metrics). Nothing is asked if empty.""",
    ).tag(config=True)

    engine_image = Unicode(
        "",
        help="""The image of the pods that CronJobs start for schedules whose clock this cluster
        keeps; jupyterlab-convect[kubernetes] is installed there. Our own pod's image if empty.""",
    ).tag(config=True)
    engine_account = Unicode(
        "",
        help="""The service account of these pods, with the rights in `deploy/`; our own pod's, or
        `default`, if empty.""",
    ).tag(config=True)

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        require_configuration(self.config_file)
        self._pools = {
            name: Threads(count, f"kubernetes-{name}") for name, count in THREADS.items()
        }
        self._opening = threading.Lock()
        self._opened: Opened | None = None
        self._held: set[Key] = set()
        self._stopped: dict[Key, asyncio.Event] = {}
        self._unreachable_since: float | None = None
        self._cleaning: list[Future[None]] = []
        self._next_gang = 0.0
        self._gpu_metrics = GpuMetrics(self.gpu_metrics)

    async def check(self, plan: Plan) -> list[Problem]:
        try:
            opened = await self._aside("looking", self._open)
            return await self._aside("looking", check_plan, opened.cluster, opened.transfers, plan)
        except ConvectError as error:
            said = error
        except (ApiError, ClusterUnreachable) as error:
            said = self._refusal(error, "look at it")
        return [Problem("error", said.code, said.sentence, hint=said.hint)]

    def admit(self, attempt: Attempt) -> str | None:
        if attempt.key not in self._held and len(self._held) >= self.max_pods:
            return f"Waiting: {self.max_pods} steps are already in the cluster."
        if attempt.key not in self._held and (reason := self._why_gang_waits(attempt)):
            return reason
        self._held.add(attempt.key)
        return None

    def _why_gang_waits(self, attempt: Attempt) -> str | None:
        """Of a step whose pods have to begin together: that there is no room for all of them."""
        how = attempt.step.distributed
        if how is None or not how.gang or attempt.handle is not None:
            return None
        if self._opened is None:
            self._pools["looking"].submit(self._open)
            return LOOKING
        reason = why_gang_waits(self._opened.cluster, self._opened.transfers, attempt.step)
        if reason is None and time.monotonic() < self._next_gang:
            return LOOKING  # The pods of the one before may not count yet.
        if reason is None:
            self._next_gang = time.monotonic() + SETTLING
        return reason

    def release(self, attempt: Attempt) -> None:
        self._held.discard(attempt.key)
        self._stopped.pop(attempt.key, None)
        if self._opened is None:
            return
        self._opened.observer.forget(attempt.key)
        self._cleaning = [future for future in self._cleaning if not future.done()]
        keeps = operator_of(kind_of(attempt)).keeps and not without_shared_volume(attempt)
        if not keeps and (attempt.folder / "outputs.json").exists():
            # All is here: nobody has to fetch anything any more.
            with contextlib.suppress(RuntimeError):
                done = self._pools["stopping"].submit(_clean_up, self._opened, attempt)
                self._cleaning.append(done)

    async def start(self, attempt: Attempt) -> AsyncIterator[Json]:
        attempt = with_variables(attempt)
        given_up = self._stopped.setdefault(attempt.key, asyncio.Event())

        async def patiently_do(work: Callable[..., T], *arguments: Any) -> T:
            return await patiently(
                lambda: self._aside("starting", work, *arguments), START_PATIENCE, given_up
            )

        doing = "create jobs"
        try:
            opened = await patiently_do(self._open)
            cluster = opened.cluster
            operator = await patiently_do(operator_for, cluster, attempt.step)
            has_service = operator is JOB and nodes_of(attempt) > 1
            prepared, objects = await patiently_do(self._prepare, opened, attempt, operator)
            doing = "create volume claims"
            for volume in run_claims([attempt.step]).values():
                claim = manifests.claim(attempt.run, volume)
                await patiently_do(make_claim, cluster.api, claim)
            doing = f"create {operator.plural}"
            for plural, manifest in zip(operator.plurals, objects, strict=True):
                job = await patiently_do(make, cluster.api, plural, manifest)
            inbox = dict(prepared.secret or {})
            inbox |= as_secret({name: text.encode() for name, text in attempt.variables.items()})
            if inbox or has_service:
                try:
                    if has_service:
                        service = manifests.service(job)
                        address = await patiently_do(make_service, cluster.api, service)
                        master = f"{address} {manifests.MASTER_PORT}\n"
                        inbox |= as_secret({manifests.MASTER: master.encode()})
                    secret = manifests.secret(job, inbox)
                    await patiently_do(make_secret, cluster.api, secret)
                except (ApiError, ClusterUnreachable):
                    # Its pods would wait for the Secret for ever.
                    with contextlib.suppress(ApiError, ClusterUnreachable):
                        await self._delete(cluster, attempt, [operator])
                    raise
        except (ApiError, ClusterUnreachable) as error:
            raise self._refusal(error, doing) from error
        cluster.made(operator).put(job)
        yield {
            "job": job["metadata"]["name"],
            **({"kind": operator.kind} if operator is not JOB else {}),
            "namespace": cluster.api.namespace,
            "uid": job["metadata"]["uid"],
            "way": prepared.way,
            **({"results": prepared.results} if prepared.results else {}),
        }

    async def poll(self, attempts: Sequence[Attempt]) -> list[StepStatus]:
        return await self._aside("watching", self._poll, attempts)

    def _poll(self, attempts: Sequence[Attempt]) -> list[StepStatus]:
        trouble: tuple[str, float] | None = None
        try:
            opened = self._open()
            if opened.cluster.is_synced(SYNC):
                self._unreachable_since = None
                return opened.observer.observe(attempts)
            trouble = opened.cluster.trouble()
        except (ApiError, ClusterUnreachable, ConvectError) as error:
            trouble = (str(error), time.time())
        # It could not be looked at even once.
        why, now = trouble or ("", time.time())
        self._unreachable_since = self._unreachable_since or now
        reason = unreachable(self._unreachable_since)
        return [replace(unknown(attempt), reason=reason, detail=why) for attempt in attempts]

    async def stop(self, attempt: Attempt) -> None:
        self._stopped.setdefault(attempt.key, asyncio.Event()).set()
        try:
            cluster = (await self._aside("stopping", self._open)).cluster
            if not (attempt.folder / "outputs.json").exists():
                with contextlib.suppress(OSError):
                    write_stop(attempt.folder, "cancelled", "Stopped.")
                if attempt.step.distributed is not None:
                    stop_nodes(attempt, "cancelled", "Stopped.")
            known = [operator_of(kind_of(attempt))]
            if attempt.handle is None and attempt.step.distributed is not None:
                known += await self._aside("stopping", cluster.operators)
            await self._delete(cluster, attempt, known)
        except (ApiError, ClusterUnreachable) as error:
            raise self._refusal(error, "delete jobs") from error

    async def end_run(self, run: str, plan: Plan) -> None:
        names = [claim_name(run, claim) for claim in run_claims(plan.steps)]
        if not names:
            return
        try:
            cluster = (await self._aside("stopping", self._open)).cluster
            plurals = (
                [each.plural for each in await self._aside("stopping", cluster.operators)]
                if any(step.distributed for step in plan.steps)
                else []
            )
            await patiently(
                lambda: self._aside("stopping", delete_claims, cluster.api, run, names, plurals),
                STOP_PATIENCE,
            )
        except (ApiError, ClusterUnreachable) as error:
            raise self._refusal(error, "delete volume claims") from error

    async def capacity(self, profiles: Sequence[Profile] = ()) -> Overview | None:
        try:
            return await self._aside("looking", self._overview, profiles)
        except (ApiError, ClusterUnreachable) as error:
            raise self._refusal(error, "be looked at") from None

    def place(self) -> str | None:
        opened = self._opened
        return opened.cluster.api.namespace if opened else self._connect().namespace

    async def keep_clock(self, clock: KeptClock) -> None:
        try:
            await self._aside("looking", self._keep_clock, clock)
        except (ApiError, ClusterUnreachable) as error:
            raise self._refusal(error, "create cron jobs") from None

    async def forget_clock(self, schedule_id: str) -> None:
        try:
            await self._aside(
                "looking", lambda: delete_cron_job(self._open().cluster.api, schedule_id)
            )
        except (ApiError, ClusterUnreachable) as error:
            raise self._refusal(error, "delete cron jobs") from None

    def _keep_clock(self, clock: KeptClock) -> None:
        cluster = self._open().cluster
        api, defaults = cluster.api, cluster.defaults
        require_shared(clock, defaults.shared_volumes)
        pod = find_own_pod(api)
        own = None if pod is None else inherited(api, pod)
        image = self.engine_image or (own.image if own else "")
        require_image(image, "KubernetesRuntime.engine_image")
        account = self.engine_account or (pod or {"spec": {}})["spec"].get("serviceAccountName")
        is_own_image = own is not None and image == own.image
        # It finds the cluster by its account, and the volumes by its own pod.
        elsewhere = {
            "context": "",
            "config_file": "",
            "volumes": [],
            "namespace": api.namespace,
            "image": defaults.image,
            "engine_image": image,
        }
        manifest = cron_job(
            clock,
            defaults,
            image=image,
            account=account or "default",
            command=engine_command(clock, is_own_image=is_own_image),
            env=engine_environment(clock, self, is_own_image=is_own_image, **elsewhere),
        )
        put_cron_job(api, manifest)

    def worker(self, order: WorkerOrder) -> DeployedWorker:
        api = self._connect()
        return DeployedWorker(api, self._pod_defaults(api), order, self.patience)

    def forget_worker(self, name: str) -> None:
        try:
            deployments.forget(self._connect(), name)
        except (ApiError, ClusterUnreachable) as error:
            raise self._refusal(error, "delete deployments") from None

    def shell(
        self, attempt: Attempt, command: Sequence[str] = (), replica: int | None = None
    ) -> int:
        api = self._connect()
        try:
            pods = sorted(running_pods(api, attempt), key=place_of)
        except (ApiError, ClusterUnreachable) as error:
            raise as_convect_error(error, "look at pods", api.namespace) from None
        local_rank = None
        if replica is not None:
            how = attempt.step.distributed or Distributed()
            count = 1 if how.processes == "cpu" else how.processes
            node, local_rank = (0, replica) if how.nodes == 1 else divmod(replica, count)
            pods = [pod for pod in pods if place_of(pod)[1] == node]
            if not pods:
                raise Conflict(f"Rank {replica} is not running.", code="not-running")
        return run_in_pod(api, pods[0], folder_in_pod(attempt), command, local_rank)

    def run_job(self, job: Json, say: Callable[[str], None], folder: Path | None = None) -> int:
        """Make a training job as it is, tell its logs until it has ended; its exit code.

        `folder` is that of the attempt that it is, if it is one.
        """
        return JobRun(self._connect(), job, say, folder).run()

    async def close(self) -> None:
        await asyncio.to_thread(wait, self._cleaning, timeout=5)
        if self._opened is not None:
            self._opened.observer.close()
            self._opened.cluster.close()
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)

    async def _aside(self, pool: Pool, work: Callable[..., T], *arguments: Any) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pools[pool], work, *arguments)

    def _connect(self) -> Api:
        return Api(connect(self.context, self.config_file, self.namespace))

    def _open(self) -> Opened:
        """Reach for the cluster; once it was there it stays open, whatever happens to it."""
        with self._opening:
            if self._opened is None:
                api = self._connect()
                cluster = Cluster(api, self._pod_defaults(api), self._tell, self.health)
                store = ObjectStore(parent=self)
                shared = cluster.defaults.shared_volumes
                transfers = Transfers(cast("Wanted", self.files), shared, store, self.carry_limit)
                observer = Observer(cluster, transfers, self.patience, self._tell, self.health)
                self._opened = Opened(cluster, transfers, observer)
            return self._opened

    def _refusal(self, error: ApiError | ClusterUnreachable, doing: str) -> ConvectError:
        namespace = self._opened.cluster.api.namespace if self._opened else self.namespace
        return as_convect_error(error, doing, namespace or "default")

    def _tell(self) -> None:
        self.changed()

    def _prepare(
        self, opened: Opened, attempt: Attempt, operator: Operator
    ) -> tuple[Prepared, list[Manifest]]:
        """What goes to the cluster, and the objects that are made there."""
        step, cluster = attempt.step, opened.cluster
        defaults = cluster.defaults
        transfer = opened.transfers.choose(paths_of(attempt))
        if step.kind == "component":
            prepared = components.prepare(attempt, defaults, transfer, job_of(attempt))
        else:
            has_service = operator is JOB and nodes_of(attempt) > 1
            prepared = prepare(
                attempt, defaults, transfer, job_of(attempt), has_service=has_service
            )
        manifest = manifests.job(
            attempt.run,
            step,
            attempt.number,
            defaults,
            prepared.content,
            gpu_types(step, defaults, cluster.capacity()) if step.resources.gpu else [],
            suspended=cluster.has_queue({**defaults.labels, **step.kubernetes.labels}),
        )
        objects = operator.wrap(manifest)
        with contextlib.suppress(OSError):
            write_manifest(attempt.folder, objects[0] if len(objects) == 1 else objects)
        return prepared, objects

    async def _delete(
        self, cluster: Cluster, attempt: Attempt, operators: Sequence[Operator]
    ) -> None:
        name = job_of(attempt)
        plurals = [plural for each in operators for plural in reversed(each.plurals)]
        await patiently(
            lambda: self._aside("stopping", delete, cluster.api, plurals, name), STOP_PATIENCE
        )

    def _overview(self, profiles: Sequence[Profile]) -> Overview:
        opened = self._open()
        cluster = opened.cluster
        defaults = cluster.defaults
        capacity = cluster.live_capacity(FIRST_LOOK)
        own = cluster.pods.there() if cluster.pods.synced.is_set() else None
        made = cluster.jobs.there() if cluster.jobs.synced.is_set() else []
        use, trouble = self._gpu_metrics.read()
        facts = OverviewFacts(
            defaults.namespace,
            capacity,
            defaults.gpus,
            None if own is None else [pod_facts(pod) for pod in own],
            {job["metadata"]["uid"]: jobs.run_of(job) for job in made},
            use,
            () if trouble is None else (trouble,),
        )
        try:
            mounts = opened.transfers.choose().mounts()
        except ConvectError:
            mounts = Mounts()  # The check says what is wrong with the way of the files.
        found = offers(profiles, capacity, defaults, mounts, gpus_of(facts))
        return overview(facts, found)

    def _pod_defaults(self, api: Api) -> PodDefaults:
        """Look at our own pod, if we are in one, and put together what every pod gets."""
        pod = find_own_pod(api)
        own = None if pod is None else inherited(api, pod)
        shared = (*map(volume_from_config, self.volumes), *(own.shared_volumes if own else ()))
        if self.files in ("s3", "bundle"):
            shared = ()
        return PodDefaults(
            namespace=api.namespace,
            image=self.image or (own.image if own else ""),
            pull_policy=self.pull_policy or None,
            pull_secrets=(*self.pull_secrets, *(own.pull_secrets if own else ())),
            shared_volumes=shared,
            tolerations=(*self.tolerations, *(own.tolerations if own else ())),
            node_selector=self.node_selector,
            labels=self.labels,
            annotations=self.annotations,
            pod_security={**_user(bool(shared), own), **self.pod_security},
            container_security={**RESTRICTED_CONTAINER, **self.container_security},
            gpus=self._gpus(),
            grace=self.grace,
            ttl=self.ttl,
            notes=own.notes if own else (),
        )

    def _gpus(self) -> dict[str, GpuProfile]:
        return {name: profile_from_config(name, item) for name, item in self.gpu_profiles.items()}


def _clean_up(opened: Opened, attempt: Attempt) -> None:
    opened.observer.clean_up(attempt)
    with contextlib.suppress(ConvectError):
        opened.transfers.of(way_of(attempt)).forget(attempt)


def _user(shared: bool, own: OwnPod | None) -> dict[str, Json]:
    """Restricted; and where files are shared, as the user whose files they are."""
    context: dict[str, Json] = {**RESTRICTED_POD, **(own.pod_security if own else {})}
    user = os.geteuid()
    if shared and (user != 0 or own is not None):
        context |= {"runAsUser": user, "runAsGroup": os.getegid()}
    if context.get("runAsUser") == 0:
        context["runAsNonRoot"] = False
    return context
