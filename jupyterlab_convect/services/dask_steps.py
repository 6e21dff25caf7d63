"""A Dask cluster for a step: made before each attempt, and removed after it.

What lets anybody into the cluster is in the environment of the attempt alone. On disk there is a
note for each cluster, without any secret, by which whoever looks next finds what was left.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..errors import ConvectError, Missing, Refused
from ..pipeline.plan import DaskNeeds, Json, Plan, Step
from ..pipeline.problems import Problem
from ..pools import run_in
from ..runner import dask_versions
from ..runs.model import ENDED
from ..runs.provisions import Provision
from ..runs.store import Store
from ..runtimes.base import Attempt, Feature, GraphRuntime, Runtime
from ..safe_files import PRIVATE, make_folder, owner_of, read_regular, write_whole
from ..text import duration_text

if TYPE_CHECKING:
    from .dask_clusters import DaskClusters
    from .dask_gateway_api import DaskGateway

CLUSTER = "CONVECT_DASK_CLUSTER"
"""Holds the name of the step's cluster: `Gateway().connect` takes it."""
MADE_FOR = "CONVECT_MADE_FOR"
"""Marks a cluster, where the gateway lets one choose variables of its processes."""
SECRET = (
    CLUSTER,
    "DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY",
    "DASK_GATEWAY__AUTH__KWARGS__PASSWORD",
)
PAUSE = 1.0


@dataclass(frozen=True, slots=True)
class ClusterNote:
    """For which attempt a cluster is, or is about to be made."""

    run: str
    step: str
    attempt: int
    cluster: str | None = None
    """Its id, which is no secret."""

    @property
    def mark(self) -> str:
        key = json.dumps([self.run, self.step, self.attempt])
        return hashlib.sha256(key.encode()).hexdigest()[:32]


class ClusterNotes:
    """One file for each cluster of a step of this user."""

    def __init__(self, store: Store) -> None:
        self._folder = store.folder / "services" / f".dask-steps-{os.getuid()}"

    def all(self) -> Iterator[ClusterNote]:
        for file in sorted(self._folder.glob("*.json")):
            with contextlib.suppress(OSError, ValueError, TypeError):
                if owner_of(file) == os.getuid():
                    yield ClusterNote(**json.loads(read_regular(file)))

    def read(self, note: ClusterNote) -> ClusterNote | None:
        return next((each for each in self.all() if each.mark == note.mark), None)

    def write(self, note: ClusterNote) -> None:
        make_folder(self._folder.parent)
        make_folder(self._folder, PRIVATE)
        write_whole(self._file(note), json.dumps(asdict(note)).encode())

    def remove(self, note: ClusterNote) -> None:
        self._file(note).unlink(missing_ok=True)

    def _file(self, note: ClusterNote) -> Path:
        return self._folder / f"{note.mark}.json"


class DaskForSteps(Provision):
    def __init__(self, store: Store) -> None:
        self._store = store
        self._notes = ClusterNotes(store)
        self._turns: dict[str, threading.Lock] = {}

    def is_for(self, step: Step) -> bool:
        return step.dask is not None

    def check(self, plan: Plan, runtime: Runtime) -> list[Problem]:
        steps = [step for step in plan.steps if step.dask is not None]
        if not steps or (isinstance(runtime, GraphRuntime) and not _can(runtime)):
            return []  # Such a runtime refuses it by itself.
        sentence, hint, fields = self._obstacle(runtime)
        problems = [
            Problem("error", "no-dask-cluster", sentence, step.id, ("dask",), hint)
            for step in steps
            if sentence is not None
        ]
        if fields is not None:
            problems += [each for step in steps for each in _wrong_options(step, fields)]
        return problems

    async def make(self, attempt: Attempt, tell: Callable[[str], None]) -> Mapping[str, str]:
        needs = attempt.step.dask
        assert needs is not None
        deadline = time.monotonic() + needs.wait
        beginning = asyncio.ensure_future(run_in("dask", self._begin, attempt))
        while not beginning.done():
            tell("Waiting for the Dask gateway.")
            await asyncio.wait({beginning}, timeout=PAUSE)
        gateway, name = await beginning
        there, is_scaled = 0, False
        while there < needs.workers or not is_scaled:
            tell(f"Waiting for the Dask cluster: {there} of {needs.workers} workers.")
            if time.monotonic() > deadline:
                raise Refused(
                    f"{there} of {needs.workers} workers of the Dask cluster have come within "
                    f"{duration_text(round(needs.wait))}.",
                    code="no-workers",
                )
            if not is_scaled:
                is_scaled = await run_in("dask", _scaled, gateway, name, needs)
            if is_scaled:
                there = await run_in("dask", _workers_of, gateway, name)
            if there < needs.workers:
                await asyncio.sleep(PAUSE)
        return await run_in("dask", _variables_of, gateway, name)

    async def remove(self, attempt: Attempt) -> None:
        await run_in("dask", self._remove, _note_of(attempt))

    async def remove_left(self) -> None:
        await run_in("dask", self._remove_left)

    @functools.cached_property
    def _clusters(self) -> DaskClusters:
        from .dask_clusters import DaskClusters
        from .store import ServiceStore

        return DaskClusters(ServiceStore(self._store))

    def _begin(self, attempt: Attempt) -> tuple[DaskGateway, str]:
        """The gateway, and the name of the attempt's cluster there, which is made if need be."""
        from .dask_clusters import id_of

        assert attempt.step.dask is not None
        with self._turn(note := _note_of(attempt)):
            gateway = self._clusters.gateway()
            name = self._find(gateway, note)
            if name is None:
                self._notes.write(note)
                options = dict(attempt.step.dask.options)
                name = self._clusters.make_cluster(gateway, options, note.mark)
            self._notes.write(replace(note, cluster=id_of(name)))
            return gateway, name

    def _find(self, gateway: DaskGateway, note: ClusterNote) -> str | None:
        """What was made for this attempt, by whatever process."""
        from .dask_clusters import id_of
        from .dask_gateway_api import ask

        known = self._notes.read(note)
        if known is None:
            return None
        for name, report in ask(gateway, "/api/v1/clusters/").items():
            environment = (report.get("options") or {}).get("environment")
            marked = isinstance(environment, dict) and environment.get(MADE_FOR) == note.mark
            if marked or id_of(name) == known.cluster:
                return str(name)
        return None

    def _remove(self, note: ClusterNote) -> None:
        from .dask_gateway_api import ask

        with self._turn(note):
            if self._notes.read(note) is None:
                return
            gateway = self._clusters.gateway_that_is_up()
            name = None if gateway is None else self._find(gateway, note)
            if gateway is not None and name is not None:
                with contextlib.suppress(Missing):
                    ask(gateway, f"/api/v1/clusters/{name}", "DELETE")
            self._notes.remove(note)
        self._turns.pop(note.mark, None)

    def _remove_left(self) -> None:
        for note in self._notes.all():
            if _has_ended(self._store, note):
                with contextlib.suppress(ConvectError):  # The gateway is down: the next time.
                    self._remove(note)

    def _turn(self, note: ClusterNote) -> threading.Lock:
        return self._turns.setdefault(note.mark, threading.Lock())

    def _obstacle(self, runtime: Runtime) -> tuple[str | None, str | None, Json]:
        """Why there can be no clusters, and what to do; else the options of the gateway."""
        from .dask_gateway_api import configured_gateway
        from .dask_gateways import require_installed

        if not _can(runtime):
            return f"{runtime.display_name} gives no Dask clusters to steps.", None, None
        try:
            gateway = configured_gateway()
            if Feature.IMAGE in runtime.features and (gateway is None or _is_here(gateway.address)):
                where = "your own Dask gateway"
                if gateway is not None:
                    where = f"the Dask gateway {gateway.address}"
                hint = "Name a gateway that pods reach in Dask's configuration (gateway.address)."
                return f"Pods cannot reach {where}, which is on this machine only.", hint, None
            if gateway is None:
                require_installed()
            return None, None, self._clusters.option_fields(gateway)
        except ConvectError as error:
            return error.sentence, error.hint, None


def _can(runtime: Runtime) -> bool:
    return Feature.DASK in runtime.features


def _is_here(address: str) -> bool:
    import ipaddress  # A millisecond of every start, for few.

    host = urlsplit(address).hostname or ""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def _wrong_options(step: Step, fields: Json) -> Iterator[Problem]:
    from .dask_clusters import check_options, fitted

    assert step.dask is not None
    for name, value in fitted(fields, step.dask.options).items():
        try:
            check_options(fields, {name: value})
        except ConvectError as error:
            where = ("dask", "options", name)
            yield Problem("error", error.code, error.sentence, step.id, where, error.hint)


def _note_of(attempt: Attempt) -> ClusterNote:
    return ClusterNote(attempt.run, attempt.step.id, attempt.number)


def _has_ended(store: Store, note: ClusterNote) -> bool:
    try:
        state = store.read(note.run).state
        return state.steps[note.step].attempts[note.attempt - 1].state in ENDED
    except (Missing, KeyError, IndexError):
        return True
    except ConvectError:
        return False  # Nobody knows; it can be stopped by hand.


def _scaled(gateway: DaskGateway, name: str, needs: DaskNeeds) -> bool:
    """Whether the cluster runs, and knows how many workers it is to have."""
    from .dask_clusters import report_of, scale_to

    state = report_of(gateway, name)["status"].lower()
    if state == "pending":
        return False
    if state != "running":
        raise Refused(f"The Dask cluster did not start: it is {state}.", code="cluster-failed")
    if told := scale_to(gateway, name, {"count": needs.workers}):
        raise Refused(f"The Dask gateway refused: {told.rstrip('.')}.", code="gateway-refused")
    return True


def _workers_of(gateway: DaskGateway, name: str) -> int:
    """How many are there; none while the scheduler is too busy to say, unless it is gone."""
    from .dask_clusters import of_scheduler, report_of

    try:
        return int(of_scheduler(gateway, name, "json/counts.json").get("workers", 0))
    except ConvectError:
        state = report_of(gateway, name)["status"].lower()
        if state != "running":
            raise Refused(
                f"The Dask cluster ended before its workers came: it is {state}.",
                code="cluster-failed",
            ) from None
        return 0


def _variables_of(gateway: DaskGateway, name: str) -> dict[str, str]:
    """What has `Client()` and `Gateway()` find the cluster, with no argument."""
    from .dask_clusters import report_of, variables_of, versions_of
    from .dask_gateway_api import scheduler_address

    report: dict[str, Any] = report_of(gateway, name)
    certificate = report["tls_cert"]
    variables = {
        **variables_of(gateway),
        CLUSTER: name,
        dask_versions.VARIABLE: json.dumps(versions_of(gateway, name)),
        "DASK_SCHEDULER_ADDRESS": scheduler_address(gateway, name),
        "DASK_DISTRIBUTED__CLIENT__PRELOAD": '["dask_gateway"]',
        "DASK_DISTRIBUTED__COMM__TLS__CA_FILE": certificate,
        "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT": certificate,
        "DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY": report["tls_key"],
    }
    return {**variables, "CONVECT_SECRETS": ",".join(each for each in SECRET if each in variables)}
