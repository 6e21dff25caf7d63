"""Steps as pods: one Job per attempt."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from ...errors import ConvectError
from ...pipeline.plan import Json, Plan
from ...pipeline.problems import Problem
from ...pools import Threads
from ...run_files import open_regular
from ..base import Attempt, LogChunk, StepStatus
from . import components, manifests
from .api import (
    Api,
    ApiError,
    Unreachable,
    as_convect_error,
    connect,
    patiently,
    require_configuration,
)
from .checks import check_plan, gpu_types
from .cluster import Cluster
from .configured import ConfiguredRuntime
from .delivery import (
    Parcel,
    choose_way,
    folder_in_pod,
    make_parcel,
    write_manifest,
    write_stop,
)
from .jobs import delete_job, has_travelled, job_of, make_job, make_secret, running_pod
from .manifests import Manifest
from .observer import Key, Observer, unknown, unreachable
from .overview import overview
from .shell import run_in_pod

T = TypeVar("T")

Pool = Literal["starting", "watching", "stopping", "looking"]
THREADS: dict[Pool, int] = {"starting": 8, "watching": 2, "stopping": 4, "looking": 4}
"""Each end has threads of its own, so that what waits for one does not hold up another."""
START_PATIENCE, STOP_PATIENCE = 300.0, 20.0
SYNC = 5.0
"""Seconds that the first poll waits for the first look at the cluster."""


@dataclass(frozen=True)
class Opened:
    """What there is once the cluster has been reached for."""

    cluster: Cluster
    observer: Observer


class KubernetesRuntime(ConfiguredRuntime):
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

    async def check(self, plan: Plan) -> list[Problem]:
        try:
            opened = await self._aside("looking", self._open)
            return await self._aside("looking", check_plan, opened.cluster, plan)
        except ConvectError as error:
            said = error
        except (ApiError, Unreachable) as error:
            said = self._refusal(error, "look at it")
        return [Problem("error", said.code, said.sentence, hint=said.hint)]

    def admit(self, attempt: Attempt) -> str | None:
        if attempt.key not in self._held and len(self._held) >= self.max_pods:
            return f"Waiting: {self.max_pods} steps are in the cluster already."
        self._held.add(attempt.key)
        return None

    def release(self, attempt: Attempt) -> None:
        self._held.discard(attempt.key)
        self._stopped.pop(attempt.key, None)
        if self._opened is None:
            return
        observer = self._opened.observer
        observer.forget(attempt.key)
        self._cleaning = [future for future in self._cleaning if not future.done()]
        if has_travelled(attempt) and (attempt.folder / "outputs.json").exists():
            # All is home: nobody has to fetch anything from its log any more.
            with contextlib.suppress(RuntimeError):
                self._cleaning.append(self._pools["stopping"].submit(observer.clean_up, attempt))

    async def start(self, attempt: Attempt) -> AsyncIterator[Json]:
        given_up = self._stopped.setdefault(attempt.key, asyncio.Event())

        async def patiently_do(work: Callable[..., T], *arguments: Any) -> T:
            return await patiently(
                lambda: self._aside("starting", work, *arguments), START_PATIENCE, given_up
            )

        try:
            cluster = (await patiently_do(self._open)).cluster
            parcel, manifest = await patiently_do(self._prepare, cluster, attempt)
            job = await patiently_do(make_job, cluster.api, manifest)
            if parcel.secret is not None:
                try:
                    await patiently_do(make_secret, cluster.api, job, parcel.secret)
                except (ApiError, Unreachable):
                    # Its pod would wait for the Secret for ever.
                    with contextlib.suppress(ApiError, Unreachable):
                        await self._delete(cluster, attempt)
                    raise
        except (ApiError, Unreachable) as error:
            raise self._refusal(error, "create jobs") from error
        cluster.jobs.put(job)
        yield {
            "job": job["metadata"]["name"],
            "namespace": cluster.api.namespace,
            "uid": job["metadata"]["uid"],
            "way": parcel.way,
            **({"results": parcel.results} if parcel.results else {}),
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
        except (ApiError, Unreachable, ConvectError) as error:
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
            await self._delete(cluster, attempt)
        except (ApiError, Unreachable) as error:
            raise self._refusal(error, "delete jobs") from error

    async def logs(self, attempt: Attempt, offset: int = 0, limit: int = 1 << 20) -> LogChunk:
        try:
            with open_regular(attempt.folder / "log.txt") as file:
                file.seek(offset)
                data = file.read(limit)
        except OSError:
            return LogChunk("", offset, complete=False)
        text = data.decode(errors="ignore")
        return LogChunk(text, offset + len(text.encode()), complete=False)

    async def top(self) -> dict[str, Json] | None:
        try:
            return await self._aside("looking", self._overview)
        except (ApiError, Unreachable) as error:
            raise self._refusal(error, "be looked at") from None

    def shell(self, attempt: Attempt, command: Sequence[str] = ()) -> int:
        api = Api(connect(self.context, self.config_file, self.namespace))
        try:
            pod = running_pod(api, job_of(attempt))
        except (ApiError, Unreachable) as error:
            raise as_convect_error(error, "look at pods", api.namespace) from None
        return run_in_pod(api, pod, folder_in_pod(attempt), command)

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

    def _open(self) -> Opened:
        """Reach for the cluster; once it was there it stays open, whatever happens to it."""
        with self._opening:
            if self._opened is None:
                api = Api(connect(self.context, self.config_file, self.namespace))
                cluster = Cluster(api, self.make_site(api), self._tell, self.health)
                observer = Observer(cluster, self.patience, self._tell, self.health)
                self._opened = Opened(cluster, observer)
            return self._opened

    def _refusal(self, error: ApiError | Unreachable, doing: str) -> ConvectError:
        namespace = self._opened.cluster.api.namespace if self._opened else self.namespace
        return as_convect_error(error, doing, namespace or "default")

    def _tell(self) -> None:
        self.changed()

    def _prepare(self, cluster: Cluster, attempt: Attempt) -> tuple[Parcel, Manifest]:
        """What goes to the cluster, and the Job that is made there."""
        step, site = attempt.step, cluster.site
        way = choose_way(attempt, site, self.files)
        make = components.make_parcel if step.kind == "component" else make_parcel
        parcel = make(attempt, site, way, job_of(attempt), self.carry_limit)
        manifest = manifests.job(
            attempt.run,
            step,
            attempt.number,
            site,
            parcel.delivery,
            gpu_types(step, site, cluster.capacity()) if step.resources.gpu else [],
            suspended=cluster.has_queue({**site.labels, **step.kubernetes.labels}),
        )
        with contextlib.suppress(OSError):
            write_manifest(attempt.folder, manifest)
        return parcel, manifest

    async def _delete(self, cluster: Cluster, attempt: Attempt) -> None:
        name = job_of(attempt)
        await patiently(
            lambda: self._aside("stopping", delete_job, cluster.api, name), STOP_PATIENCE
        )

    def _overview(self) -> dict[str, Json]:
        cluster = self._open().cluster
        own = cluster.pods.now()[0].values() if cluster.is_synced(SYNC) else ()
        return overview(cluster.api.namespace, cluster.capacity(), cluster.site.gpus, own)
