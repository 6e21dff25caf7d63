"""Steps as pods: one Job for an attempt."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, TypeVar

from ...errors import ConvectError
from ...pipeline.plan import Json, Plan
from ...pipeline.problems import Problem
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
from .delivery import choose_way, folder_in_pod, make_parcel, write_manifest, write_stop
from .jobs import delete_job, has_travelled, job_of, make_job, running_pod
from .observer import Key, Observer
from .overview import overview
from .shell import run_in_pod

T = TypeVar("T")

THREADS = 8
START_PATIENCE, STOP_PATIENCE = 300.0, 20.0


@dataclass(frozen=True)
class Opened:
    """What there is once the cluster has been reached for."""

    cluster: Cluster
    observer: Observer


class KubernetesRuntime(ConfiguredRuntime):
    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        require_configuration(self.config_file)
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="kubernetes")
        self._opening = threading.Lock()
        self._opened: Opened | None = None
        self._held: set[Key] = set()
        self._stopped: set[Key] = set()
        self._cleaning: list[Future[None]] = []

    async def check(self, plan: Plan) -> list[Problem]:
        try:
            opened = await self._aside(self._open)
            return await self._aside(check_plan, opened.cluster, plan)
        except ConvectError as error:
            said = error
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
        self._stopped.discard(attempt.key)
        if self._opened is None:
            return
        observer = self._opened.observer
        observer.forget(attempt.key)
        self._cleaning = [future for future in self._cleaning if not future.done()]
        if has_travelled(attempt) and (attempt.folder / "outputs.json").exists():
            # All is home: nobody has to fetch anything from its log any more.
            with contextlib.suppress(RuntimeError):
                self._cleaning.append(self._pool.submit(observer.clean_up, attempt))

    async def start(self, attempt: Attempt) -> AsyncIterator[Json]:
        opened = await self._aside(self._open)
        yield await self._aside(self._start, opened.cluster, attempt)

    async def poll(self, attempts: Sequence[Attempt]) -> list[StepStatus]:
        opened = await self._aside(self._open)
        cluster = opened.cluster
        if not cluster.is_synced() and not await self._aside(cluster.is_synced, 5.0):
            return []
        return await self._aside(opened.observer.observe, attempts)

    async def stop(self, attempt: Attempt) -> None:
        self._stopped.add(attempt.key)
        opened = await self._aside(self._open)
        await self._aside(self._stop, opened.cluster, attempt)

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
            pod = running_pod(api, job_of(attempt))
        except (ApiError, Unreachable) as error:
            raise as_convect_error(error, "look at pods", api.namespace) from None
        return run_in_pod(api, pod, folder_in_pod(attempt), command)

    async def close(self) -> None:
        await asyncio.to_thread(wait, self._cleaning, timeout=5)
        if self._opened is not None:
            self._opened.observer.close()
            self._opened.cluster.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _aside(self, work: Callable[..., T], *arguments: Any) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, work, *arguments)

    def _open(self) -> Opened:
        with self._opening:
            if self._opened is None:
                api = Api(connect(self.context, self.config_file, self.namespace))
                try:
                    site = self.make_site(api)
                except (ApiError, Unreachable) as error:
                    raise as_convect_error(error, "be looked at", api.namespace) from error
                cluster = Cluster(api, site, self._tell)
                self._opened = Opened(cluster, Observer(cluster, self.patience, self._tell))
            return self._opened

    def _tell(self) -> None:
        self.changed()

    def _start(self, cluster: Cluster, attempt: Attempt) -> Json:
        step, name = attempt.step, job_of(attempt)
        way = choose_way(attempt, cluster.site, self.files)
        make = components.make_parcel if step.kind == "component" else make_parcel
        parcel = make(attempt, cluster.site, way, name, self.carry_limit)
        try:
            types = gpu_types(step, cluster.site, cluster.capacity()) if step.resources.gpu else []
            manifest = manifests.job(
                attempt.run,
                step,
                attempt.number,
                cluster.site,
                parcel.delivery,
                types,
                suspended=cluster.has_queue({**cluster.site.labels, **step.kubernetes.labels}),
            )
            job = patiently(
                lambda: make_job(cluster.api, parcel, manifest),
                START_PATIENCE,
                lambda: attempt.key in self._stopped,
            )
        except (ApiError, Unreachable) as error:
            raise as_convect_error(error, "create jobs", cluster.api.namespace) from error
        cluster.jobs.put(job)
        with contextlib.suppress(OSError):
            write_manifest(attempt.folder, manifest)
        return {
            "job": name,
            "namespace": cluster.api.namespace,
            "uid": job["metadata"]["uid"],
            "way": way,
            **({"results": parcel.results} if parcel.results else {}),
        }

    @staticmethod
    def _stop(cluster: Cluster, attempt: Attempt) -> None:
        if not (attempt.folder / "outputs.json").exists():
            with contextlib.suppress(OSError):
                write_stop(attempt.folder, "cancelled", "Stopped.")
        patiently(lambda: delete_job(cluster.api, job_of(attempt)), STOP_PATIENCE, lambda: False)

    def _overview(self) -> dict[str, Json]:
        cluster = self._open().cluster
        own = cluster.pods.now()[0].values() if cluster.is_synced(5.0) else ()
        return overview(cluster.api.namespace, cluster.capacity(), cluster.site.gpus, own)
