"""What a runtime has, with what only the workspace knows: which of the holders are ours, what they
are called, for how long nobody has used them, and how to give it back."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from .errors import ConvectError, Missing, Refused
from .pipeline.plan import Json
from .runner.processes import is_here
from .runs.model import ENDED
from .runtimes.base import Runtime
from .runtimes.capacity import HeldAmount, Holder, Overview
from .services.host import LEFT
from .services.store import ServiceRecord, ServiceStore
from .workspace import Workspace

LOCAL, DASK = "local", "dask"
DASK_FRESH = 3.0
_dask_seen: dict[Path, tuple[list[dict[str, Json]], float]] = {}
"""By the folder of runs: the Dask clusters of this machine as they were last seen, and when."""


@dataclass(frozen=True, slots=True)
class OwnKernel:
    """A kernel of a Jupyter server that is asked, which knows more of it than a process tells."""

    name: str
    idle: float | None


async def overview_of(
    workspace: Workspace, runtime: str, kernels: Mapping[str, OwnKernel] | None = None
) -> Overview:
    """Missing when it cannot tell. Call it where the runtimes live.

    `kernels` are those that can be given back here, by id.
    """
    found = await telling(workspace, runtime).capacity(workspace.offering.profiles)
    if found is None:
        raise _cannot_tell(runtime)
    return await asyncio.to_thread(_with_names, workspace, runtime, found, kernels or {})


def telling(workspace: Workspace, name: str) -> Runtime:
    """The runtime. Missing if it is of a kind that never tells, be it configured or not. Blocks."""
    if workspace.runtimes.kind(name).capacity is Runtime.capacity:
        raise _cannot_tell(name)
    return workspace.runtimes[name]


def _cannot_tell(name: str) -> Missing:
    return Missing(f"The runtime {name} cannot report its capacity.", code="no-capacity")


async def give_back(workspace: Workspace, kind: str, item: str) -> None:
    """Stop a run or a service of this user, by its id. Call it where the engine lives."""
    if kind == "run":
        state = (await asyncio.to_thread(workspace.store.read, item)).state
        if state.state in ENDED:
            raise Refused("The run has ended already.", code="ended")
        await workspace.engine.stop(item)
    elif kind == "service":
        await asyncio.to_thread(ServiceStore(workspace.store).stop, item)
    elif kind == "dask":
        from .services.dask_clusters import DaskClusters

        await asyncio.to_thread(DaskClusters(ServiceStore(workspace.store)).stop, item)
        _dask_seen.clear()
    else:
        raise Refused(f"Nothing of the kind {kind[:40]!r} can be given back.", code="bad-kind")


def _with_names(
    workspace: Workspace, runtime: str, found: Overview, kernels: Mapping[str, OwnKernel]
) -> Overview:
    services = ServiceStore(workspace.store).all()
    workers = _workers(workspace, services)
    names = _RunNames(workspace)
    holders = [_named(each, names, workers, kernels) for each in found.holders]
    if runtime == LOCAL and found.nodes:
        node = found.nodes[0].name
        clusters = list(_local_dask(workspace, services, node))
        if clusters:
            # All that their gateway holds is theirs.
            services = [each for each in services if each.service.kind != DASK]
        holders += [*_local_services(services, workers, node), *clusters]
    return replace(found, holders=tuple(holders))


class _RunNames:
    """Names of runs of this user; None of those that are not."""

    def __init__(self, workspace: Workspace) -> None:
        self._store = workspace.store
        self._known: dict[str, str | None] = {}

    def of(self, run: str) -> str | None:
        if run not in self._known:
            try:
                self._known[run] = self._store.read(run).run.name
            except ConvectError:
                self._known[run] = None
        return self._known[run]


def _named(
    holder: Holder,
    names: _RunNames,
    workers: Mapping[str, ServiceRecord],
    kernels: Mapping[str, OwnKernel],
) -> Holder:
    if holder.kind == "run" and holder.run:
        name = names.of(holder.run)
        if name is None:
            return replace(holder, mine=False)
        step = holder.step if holder.step and holder.step != name else None
        return replace(holder, name=f"{name} › {step}" if step else name, mine=True)
    if holder.kind == "service":
        record = workers.get(holder.id or "")
        if record is None:
            return replace(holder, id=None, mine=False)
        return _service(record, holder)
    if holder.kind == "kernel":
        known = kernels.get(holder.id or "")
        if known is None:
            # Of another server, which alone can end it properly.
            return replace(holder, mine=False)
        return replace(holder, name=known.name, idle=known.idle)
    return holder


def _service(record: ServiceRecord, holder: Holder) -> Holder:
    service = record.service
    idle = max(time.time() - record.used, 0.0)
    return replace(holder, name=service.name, id=service.id, mine=True, idle=idle)


def _workers(workspace: Workspace, services: list[ServiceRecord]) -> dict[str, ServiceRecord]:
    """Services that are in a cluster, by the name of what was made for them there."""
    folder = Path(workspace.store.folder, "services")
    found = {}
    for record in services:
        try:
            left = json.loads((folder / record.service.id / LEFT).read_bytes())
            found[str(left["name"])] = record
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def _local_dask(workspace: Workspace, services: list[ServiceRecord], node: str) -> Iterator[Holder]:
    """The Dask clusters of this machine, asked seldom: each is several questions."""
    if not any(each.service.kind == DASK and each.is_up for each in services):
        return
    known = _dask_seen.get(workspace.store.folder)
    if known is None or time.monotonic() - known[1] > DASK_FRESH:
        from .services.dask_clusters import DaskClusters

        try:
            seen = DaskClusters(ServiceStore(workspace.store)).here()
        except ConvectError:
            seen = []  # Their page says what is the matter.
        known = _dask_seen[workspace.store.folder] = seen, time.monotonic()
    for each in known[0]:
        held = (HeldAmount("memory", each["memory"]),) if each["memory"] else ()
        own = {"mine": True, "id": each["id"], "idle": each["idle"]}
        yield Holder("dask", each["id"][:8], "", node, held, **own)


def _local_services(
    services: list[ServiceRecord], workers: Mapping[str, ServiceRecord], node: str
) -> Iterator[Holder]:
    from .runtimes.local.kernel_processes import family_memory

    remote = {record.service.id for record in workers.values()}
    for record in services:
        process = record.status.process
        if not record.is_up or record.service.id in remote or not is_here(process):
            continue
        memory = family_memory(int(process.get("pid", 0)))
        amounts = (HeldAmount("memory", memory),) if memory else ()
        yield _service(record, Holder("service", "", "", node, amounts))
