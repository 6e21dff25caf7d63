"""The Dask clusters of this user: those of the gateway that Dask is configured with, else of a
gateway of one's own, which is started when it is needed.

Nothing that lets others into a cluster leaves this module: not its TLS key, and its name only as
what its owner connects with. Outside of that a cluster has an `id`, which is no secret.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ..errors import Conflict, ConvectError, Missing, Refused
from ..json_text import dumps
from ..pipeline.plan import Json
from ..pools import pool
from ..runner.dask_versions import Versions, differences
from ..text import duration_text
from .dask_gateway_api import DaskGateway, ask, configured_gateway, parsed, send
from .dask_gateways import (
    NEEDED_BY_CLIENTS,
    gateway_variables,
    make_password,
    own_options,
    require_installed,
    user_name,
)
from .dask_pages import read_workers
from .dask_steps import MADE_FOR, ClusterNotes
from .store import ServiceRecord, ServiceStore

KIND = "dask"
START_PATIENCE = 300.0
TEST_PATIENCE = 120.0
ORPHAN_AGE = 300.0
"""Seconds that a cluster may be without anybody who uses it, after its start."""
MOST_WORKERS = 100_000
MOST_WORKERS_SHOWN = 200
OF_SCHEDULER = 1
"""Clients that every scheduler counts and that nobody is."""
WORKER_PATIENCE = 120.0
"""Seconds after which it is said that workers have not come."""
_idle_since: dict[str, float] = {}
"""Since when each cluster was seen to do nothing, by this process's clock."""
_wanted: dict[str, tuple[int, float]] = {}
"""How many workers each cluster was last told to have by this process, and when."""


class DaskClusters:
    def __init__(self, services: ServiceStore) -> None:
        self._services = services
        self.store = services.store
        self._notes = ClusterNotes(services.store)

    def overview(self) -> dict[str, Json]:
        """The gateway and all clusters. Starts nothing."""
        configured = configured_gateway()
        record = None if configured else self._own_record()
        about: dict[str, Json] = {
            "is_own": configured is None,
            "address": None if configured is None else configured.address,
            "state": "ready" if configured else "stopped",
            "reason": None,
            "service": None if record is None else record.service.id,
        }
        if configured is None:
            require_installed()
            if record is not None:
                about |= {"state": record.status.state, "reason": record.status.reason}
            if record is None or record.status.state != "ready":
                return {"gateway": about, "clusters": []}
        gateway = configured or self._own_gateway(record)
        return {"gateway": about, "clusters": self._views(gateway)}

    def all(self) -> list[dict[str, Json]]:
        clusters: list[dict[str, Json]] = self.overview()["clusters"]
        return clusters

    def here(self) -> list[dict[str, Json]]:
        """The clusters of a gateway of one's own, which are on this machine. To look at them does
        not count as use of the gateway."""
        record = self._own_record()
        if record is None or record.status.state != "ready" or configured_gateway() is not None:
            return []
        return self._views(self._own_gateway(record, uses=False))

    def options(self) -> list[dict[str, Json]]:
        """What the gateway lets one choose, with the defaults of Dask's configuration."""
        gateway = self.gateway()
        fields = self.option_fields(gateway)
        defaults = gateway.defaults
        return [
            {**each, "default": defaults.get(each["field"], each["default"])} for each in fields
        ]

    def option_fields(self, gateway: DaskGateway | None) -> list[dict[str, Json]]:
        """What a gateway lets one choose; None is one's own, which need not be up."""
        if gateway is None or gateway.is_own:
            return own_options()
        fields: list[dict[str, Json]] = ask(gateway, "/api/v1/options")["cluster_options"]
        return fields

    def new(
        self, options: Mapping[str, Json], workers: int = 0, *, wait: bool = True
    ) -> dict[str, Json]:
        """Make a cluster, with so many workers as soon as it runs; `wait` until it does."""
        require_count(workers)
        gateway = self.gateway()
        name = self.make_cluster(gateway, options)
        if workers:
            _wanted[id_of(name)] = (workers, time.monotonic())
            if wait:
                self._scale_once_it_runs(gateway, name, workers)
            else:
                pool("starting").submit(self._scale_once_it_runs, gateway, name, workers)
        return self._view(gateway, report_of(gateway, name))

    def make_cluster(
        self, gateway: DaskGateway, options: Mapping[str, Json], mark: str | None = None
    ) -> str:
        """Have a cluster made; its name. `mark` is found in its options, where they allow it."""
        fields = self.option_fields(gateway)
        wanted = fitted(fields, {**gateway.defaults, **options})
        check_options(fields, wanted)
        kinds = {each["field"]: each["spec"].get("type") for each in fields}
        if mark is not None and kinds.get("environment") == "mapping":
            wanted["environment"] = {**(wanted.get("environment") or {}), MADE_FOR: mark}
        made = ask(gateway, "/api/v1/clusters/", "POST", {"cluster_options": wanted})
        return str(made["name"])

    def read(self, cluster_id: str) -> dict[str, Json]:
        gateway, name = self.find(cluster_id)
        return self._view(gateway, report_of(gateway, name))

    def scale(self, cluster_id: str, workers: int) -> str | None:
        """Have so many workers; says so if the gateway allows fewer."""
        require_count(workers)
        gateway, name = self.find(cluster_id)
        told = scale_to(gateway, name, {"count": workers})
        _wanted[cluster_id] = (workers, time.monotonic())
        return told

    def adapt(self, cluster_id: str, minimum: int, maximum: int) -> str | None:
        """Let the work decide how many workers there are."""
        require_count(minimum)
        require_count(maximum)
        if minimum > maximum:
            raise ConvectError(
                f"The least number of workers, {minimum}, is more than the most, {maximum}.",
                code="bad-workers",
            )
        gateway, name = self.find(cluster_id)
        _wanted.pop(cluster_id, None)
        return scale_to(gateway, name, {"minimum": minimum, "maximum": maximum}, "adapt")

    def stop(self, cluster_id: str) -> None:
        gateway, name = self.find(cluster_id)
        ask(gateway, f"/api/v1/clusters/{name}", "DELETE")

    def stop_all(self) -> int:
        """Stop every cluster of this user; how many there were."""
        found = self.all()
        gateway = self.gateway() if found else None
        for cluster in found:
            assert gateway is not None
            ask(gateway, f"/api/v1/clusters/{cluster['name']}", "DELETE")
        return len(found)

    def plots(self, cluster_id: str) -> list[dict[str, str]]:
        """The panes of the dashboard: what they are called, and where they are in it."""
        gateway, name = self.find(cluster_id)
        found = of_scheduler(gateway, name, "individual-plots.json")
        named = ((title.removeprefix("Individual "), path) for title, path in found.items())
        return [{"title": title, "path": path.lstrip("/")} for title, path in sorted(named)]

    def dashboard(self, cluster_id: str) -> str:
        """Where this machine finds the dashboard; nobody else is to know."""
        gateway, name = self.find(cluster_id)
        return f"{gateway.address}/clusters/{name}"

    def test(self, cluster_id: str, kernel: Versions | None = None) -> dict[str, Json]:
        """Compute something on every worker, and compare what is installed there.

        `kernel` is what a kernel has that wants to use the cluster; else it is this Python.
        """
        gateway, name = self.find(cluster_id)
        view = self._view(gateway, report_of(gateway, name))
        if view["state"] != "running":
            raise Conflict(f"The cluster is {view['state']}.", code="not-running")
        if not view["workers"] and view["is_known"]:
            raise Conflict(
                "The cluster has no workers.", code="no-workers", hint="Scale it, and wait for one."
            )
        told = _run_test(gateway, name)
        found = differences(kernel or told["versions"]["client"], told["versions"])
        return {"workers": told["workers"], "seconds": told["seconds"], "differences": found}

    def find(self, cluster_id: str) -> tuple[DaskGateway, str]:
        """The gateway and the name of a cluster. Missing when it is none of this user."""
        gateway = self.gateway_that_is_up()
        if gateway is None:
            raise _missing(cluster_id)
        for name in ask(gateway, "/api/v1/clusters/"):
            if id_of(name) == cluster_id:
                return gateway, name
        raise _missing(cluster_id)

    def variables(self) -> dict[str, str]:
        """The variables by which `Gateway()` finds the gateway, which is started if need be."""
        gateway = self.gateway()
        return variables_of(gateway)

    def gateway(self) -> DaskGateway:
        """The gateway, once it is up."""
        configured = configured_gateway()
        if configured is not None:
            return configured
        record = self._services.start(KIND, {}, Path.home())
        record = asyncio.run(
            self._services.until(record.service.id, up=True, timeout=START_PATIENCE)
        )
        return self._own_gateway(record)

    def gateway_that_is_up(self) -> DaskGateway | None:
        """The gateway, unless that is one's own and is not up."""
        configured = configured_gateway()
        if configured is not None:
            return configured
        record = self._own_record()
        is_up = record is not None and record.status.state == "ready"
        return self._own_gateway(record) if is_up else None

    def _own_gateway(self, record: ServiceRecord | None, *, uses: bool = True) -> DaskGateway:
        assert record is not None
        address = self._services.address(record)
        if uses:
            self._services.use(record.service.id)
        password = make_password(self._services.store)
        given = {"username": user_name(), "password": password}
        return DaskGateway(address, auth_options=given, proxy=False, is_own=True)

    def _own_record(self) -> ServiceRecord | None:
        own = [each for each in self._services.all() if each.service.kind == KIND]
        up = [each for each in own if each.is_up]
        return next(iter(up or own), None)

    def _scale_once_it_runs(self, gateway: DaskGateway, name: str, workers: int) -> None:
        try:
            self._wait_until_running(gateway, name)
            scale_to(gateway, name, {"count": workers})
        except BaseException:  # A cluster that does not start is of no use to anybody.
            with contextlib.suppress(ConvectError):
                ask(gateway, f"/api/v1/clusters/{name}", "DELETE")
            raise

    def _wait_until_running(self, gateway: DaskGateway, name: str) -> None:
        deadline = time.monotonic() + START_PATIENCE
        while time.monotonic() < deadline:
            # The gateway answers within 20 s, however it is by then.
            state = report_of(gateway, name, "?wait")["status"].lower()
            if state == "running":
                return
            if state != "pending":
                raise Refused(f"The cluster did not start: it is {state}.", code="cluster-failed")
        raise Refused("The cluster did not start in time.", code="cluster-failed")

    def _views(self, gateway: DaskGateway) -> list[dict[str, Json]]:
        reports = list(ask(gateway, "/api/v1/clusters/").values())
        reports.sort(key=lambda report: report["start_time"])
        if not reports:
            return []
        with ThreadPoolExecutor(min(8, len(reports))) as threads:
            return list(threads.map(lambda report: self._view(gateway, report), reports))

    def _view(self, gateway: DaskGateway, report: Mapping[str, Any]) -> dict[str, Json]:
        """A `DaskCluster`: what is said of a cluster, with its numbers if it runs."""
        name = report["name"]
        view = {
            "id": id_of(name),
            "name": name,
            "state": report["status"].lower(),
            "started": report["start_time"] / 1000,
            "options": report["options"],
            "reason": None,
            "is_known": False,
            **_numbers({}, []),
        }
        if view["state"] == "running":
            try:
                counts = of_scheduler(gateway, name, "json/counts.json")
                view |= _numbers(counts, _workers(gateway, name))
                view["is_known"] = True
            except ConvectError as error:
                view["reason"] = error.sentence
        wanted, since = _wanted.get(view["id"], (None, 0.0))
        view["wanted"] = wanted
        is_late = time.monotonic() - since > WORKER_PATIENCE
        if wanted is not None and view["workers"] < wanted and is_late and not view["reason"]:
            waited = duration_text(round(time.monotonic() - since))
            view["reason"] = f"{view['workers']} of {wanted} workers have come within {waited}."
        note = next((each for each in self._notes.all() if each.cluster == view["id"]), None)
        view["step"] = None if note is None else {"run": note.run, "step": note.step}
        view["idle"] = _idle_time(view)
        view["orphan"] = note is None and _is_orphan(view)
        return view


def id_of(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:16]


def fitted(fields: list[dict[str, Json]], options: Mapping[str, Json]) -> dict[str, Json]:
    """Texts, as forms give them, as the values that they stand for."""
    kinds = {each["field"]: each["spec"].get("type") for each in fields}

    def fit(name: str, value: Json) -> Json:
        if isinstance(value, str) and kinds.get(name) in ("int", "float", "bool", "mapping"):
            with contextlib.suppress(ValueError):
                return json.loads(value)
        return value

    return {name: fit(name, value) for name, value in options.items()}


def check_options(fields: list[dict[str, Json]], options: Mapping[str, Json]) -> None:
    """ConvectError when the gateway would not take the options."""
    known = {each["field"]: each["spec"] for each in fields}
    for name, value in options.items():
        if name not in known:
            names = ", ".join(known) or "none"
            raise ConvectError(
                f"The Dask gateway has no option {name[:80]!r}.",
                code="bad-option",
                hint=f"Its options: {names}.",
            )
        if (wanted := _complaint(known[name], value)) is not None:
            raise ConvectError(
                f"The option {name!r} must be {wanted}, not {str(value)[:80]!r}.", code="bad-option"
            )


def _complaint(spec: Mapping[str, Any], value: Json) -> str | None:
    """What a value must be, if it is not."""
    kind = spec.get("type")
    if kind in ("int", "float"):
        is_number = isinstance(value, int if kind == "int" else (int, float))
        least, most = spec.get("min"), spec.get("max")
        noun = "a whole number" if kind == "int" else "a number"
        if least is not None and most is not None:
            noun += f" from {least:g} to {most:g}"
        elif least is not None:
            noun += f" of at least {least:g}"
        elif most is not None:
            noun += f" of at most {most:g}"
        is_inside = is_number and (least is None or value >= least)
        fits = is_inside and (most is None or value <= most) and not isinstance(value, bool)
        return None if fits else noun
    if kind == "bool":
        return None if isinstance(value, bool) else "true or false"
    if kind == "select":
        choices = spec.get("options") or []
        return None if value in choices else f"one of {', '.join(map(str, choices))}"
    if kind == "mapping":
        return None if isinstance(value, dict) else "a mapping"
    return None if isinstance(value, str) or kind != "string" else "a text"


def require_count(workers: Json) -> None:
    is_count = isinstance(workers, int) and not isinstance(workers, bool)
    if not is_count or not 0 <= workers <= MOST_WORKERS:
        raise ConvectError(
            f"The number of workers is a whole number from 0 to {MOST_WORKERS}.", code="bad-workers"
        )


def _numbers(counts: Mapping[str, Any], workers: list[dict[str, Json]]) -> dict[str, Json]:
    """What its scheduler says of a cluster."""
    cpus = [row["cpu"] for row in workers]
    return {
        "workers": counts.get("workers", 0),
        "threads": counts.get("cores", 0),
        "memory_limit": sum(row["memory_limit"] for row in workers),
        "memory": sum(row["memory"] for row in workers),
        "cpu": None if None in cpus else round(sum(cpus), 1),
        "clients": max(0, counts.get("clients", 0) - OF_SCHEDULER),
        "processing": counts.get("processing", 0),
        "waiting": counts.get("waiting", 0) + counts.get("unrunnable", 0),
        "in_memory": counts.get("memory", 0),
        "erred": counts.get("erred", 0),
        "each_worker": workers[:MOST_WORKERS_SHOWN],
    }


def _workers(gateway: DaskGateway, name: str) -> list[dict[str, Json]]:
    """Each worker, as its scheduler tells it.

    The JSON of `distributed` 2026.8 fails while workers compute; then there is its page.
    """
    answer = send(gateway, f"/clusters/{name}/json/identity.json", "GET", None, {})
    if answer.status < 400:
        told = parsed(gateway, answer.body)
        return [_worker(each) for each in (told.get("workers") or {}).values()]
    answer = send(gateway, f"/clusters/{name}/info/main/workers.html", "GET", None, {})
    if answer.status >= 400:
        raise _silent()
    return read_workers(answer.body.decode("utf-8", "replace"))


def _worker(told: Mapping[str, Any]) -> dict[str, Json]:
    metrics = told.get("metrics") or {}
    return {
        "name": str(told.get("name") or told.get("id") or "")[:8],
        "host": told.get("host") or "",
        "state": told.get("status") or "",
        "threads": told.get("nthreads") or 0,
        "cpu": metrics.get("cpu"),
        "memory": metrics.get("memory") or 0,
        "memory_limit": told.get("memory_limit") or 0,
        "processing": (metrics.get("task_counts") or {}).get("executing", 0),
    }


def _does_nothing(view: Mapping[str, Any]) -> bool:
    return (
        view["state"] == "running"
        and view["is_known"]
        and not view["processing"]
        and not view["waiting"]
    )


def _idle_time(view: Mapping[str, Any]) -> float | None:
    """Seconds for which it was seen to do nothing; None when it does something."""
    if not _does_nothing(view):
        _idle_since.pop(view["id"], None)
        return None
    now = time.monotonic()
    return round(now - _idle_since.setdefault(view["id"], now), 1)


def _is_orphan(view: Mapping[str, Any]) -> bool:
    """Whether nobody is connected and nothing is computed, some time after its start."""
    is_old = time.time() - view["started"] > ORPHAN_AGE
    return is_old and not view["clients"] and _does_nothing(view)


def scale_to(
    gateway: DaskGateway, name: str, how: dict[str, Json], verb: str = "scale"
) -> str | None:
    answer = ask(gateway, f"/api/v1/clusters/{name}/{verb}", "POST", how)
    message: str | None = answer.get("msg")
    return message


def report_of(gateway: DaskGateway, name: str, query: str = "") -> dict[str, Any]:
    report: dict[str, Any] = ask(gateway, f"/api/v1/clusters/{name}{query}")
    return report


def of_scheduler(gateway: DaskGateway, name: str, path: str) -> dict[str, Any]:
    """What the web server of a scheduler says, which asks nobody who he is."""
    answer = send(gateway, f"/clusters/{name}/{path}", "GET", None, {})
    if answer.status >= 400:
        raise _silent()
    return parsed(gateway, answer.body)


def variables_of(gateway: DaskGateway) -> dict[str, str]:
    if not gateway.is_own:
        return {}  # A program reads the same configuration.
    return gateway_variables(gateway.address, str(gateway.auth_options["password"]))


def versions_of(gateway: DaskGateway, name: str) -> dict[str, Any]:
    """What is installed in the processes of a cluster; nothing where that cannot be found out."""
    try:
        versions: dict[str, Any] = _run_test(gateway, name, compute=False)["versions"]
    except ConvectError:
        return {}
    return versions


def _run_test(gateway: DaskGateway, name: str, *, compute: bool = True) -> dict[str, Any]:
    """What `dask_test.py` prints; it has a process of its own because it imports a lot."""
    require_installed(NEEDED_BY_CLIENTS)
    try:
        done = subprocess.run(
            [sys.executable, "-m", f"{__package__}.dask_test"],
            input=dumps({"cluster": name, "compute": compute}).encode(),
            env={**os.environ, **variables_of(gateway)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=TEST_PATIENCE,
            check=False,
        )
        told: dict[str, Any] = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise Refused(
            f"The cluster computed nothing within {TEST_PATIENCE:g} s.", code="test-failed"
        ) from None
    except ValueError:
        told = {"error": "its process ended early"}
    if "error" in told:
        raise Refused(f"The test failed: {told['error']}.", code="test-failed")
    return told


def _silent() -> Refused:
    return Refused("The scheduler does not answer.", code="scheduler-silent")


def _missing(cluster_id: str) -> Missing:
    return Missing(f"There is no Dask cluster {cluster_id[:40]!r}.", code="no-such-cluster")
