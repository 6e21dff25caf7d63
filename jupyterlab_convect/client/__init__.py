"""The Python API: run notebooks, scripts and pipelines from a notebook or a script.

    from jupyterlab_convect.client import run, runs, sweep

    done = run("train.ipynb", parameters={"lr": 0.1})
    print(done.state, done.metrics["accuracy"])

No server is needed: a thread of this process drives the runs, and what is not done
when the process ends continues in a process of its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..errors import ConvectError
from ..pipeline.plan import Json
from ..reporting import metric, output
from ..runs.index import Query
from ..runs.model import Request, State
from .run_handles import RunHandle, RunList, SweepHandle
from .session import current_session

if TYPE_CHECKING:
    from .dask_cluster_handle import DaskClusterHandle
    from .endpoint_handle import EndpointHandle
    from .schedule_handle import ScheduleHandle
    from .service_handle import ServiceHandle

__all__ = [
    "ConvectError",
    "RunFailed",
    "RunHandle",
    "SweepHandle",
    "capacity",
    "dask_clusters",
    "endpoints",
    "import_schedules",
    "make_callable",
    "metric",
    "new_dask_cluster",
    "notifications",
    "notify",
    "output",
    "profiles",
    "run",
    "runs",
    "schedule",
    "schedules",
    "services",
    "start_service",
    "sweep",
]


class RunFailed(ConvectError):
    """A run that was asked to succeed did not; `run` is its handle."""

    def __init__(self, run: RunHandle) -> None:
        super().__init__(f"Run {run.id} {run.state}: {run.reason}", code="run-failed")
        self.run = run


def run(
    what: str | Path | Mapping[str, Json],
    parameters: Mapping[str, Json] | None = None,
    *,
    runtime: str | None = None,
    name: str | None = None,
    labels: Mapping[str, str] | None = None,
    settings: Mapping[str, Json] | None = None,
    profile: str | None = None,
    options: Mapping[str, Json] | None = None,
    use_cache: bool = True,
    root: str | Path | None = None,
    wait: bool = True,
    timeout: float | None = None,
    check: bool = False,
) -> RunHandle:
    """Run a notebook, a script or a pipeline, given by its path or as a document.

    `settings` are those of a pipeline's `defaults` (image, resources, env, …), `profile` is the
    name of one of `profiles`, `options` are the runtime's own. With `wait`, return when it has
    ended; interrupting stops the run. With `check`, raise RunFailed unless it succeeded. `root`
    is the folder that no path leaves: by default the working folder, or the file's own when it
    lies elsewhere.
    """
    session = current_session()
    if profile is not None:
        workspace = session.workspace
        where = runtime or workspace.settings.default_runtime
        settings = workspace.profile_settings(profile, where, settings or {})
    request = _request(what, parameters, runtime, name, labels, settings, options, use_cache, root)
    handle = session.submit(request)
    if wait:
        _wait(handle, timeout)
        if check and not handle.succeeded:
            raise RunFailed(handle)
    return handle


def sweep(
    what: str | Path | Mapping[str, Json],
    space: Mapping[str, Json],
    *,
    mode: Literal["grid", "random", "list"] = "grid",
    samples: int | None = None,
    seed: int = 0,
    concurrency: int | None = None,
    select: str | None = None,
    parameters: Mapping[str, Json] | None = None,
    runtime: str | None = None,
    name: str | None = None,
    labels: Mapping[str, str] | None = None,
    settings: Mapping[str, Json] | None = None,
    options: Mapping[str, Json] | None = None,
    use_cache: bool = True,
    root: str | Path | None = None,
    wait: bool = True,
    timeout: float | None = None,
) -> SweepHandle:
    """Run it once for each point of `space`: `{"lr": [0.1, 0.2], "depth": {"from": 1, "to": 4}}`.

    `select`, such as `max:accuracy`, `min:loss` or `none`, says which run is `best`; without
    it, that is told by itself where the declared metrics make it plain.
    """
    request = _request(what, parameters, runtime, name, labels, settings, options, use_cache, root)
    session = current_session()
    sweep_id = session.do(
        session.workspace.create_sweep(
            request,
            space,
            mode=mode,
            samples=samples,
            seed=seed,
            concurrency=concurrency,
            select=select,
        )
    )
    handle = SweepHandle(session, sweep_id)
    session.sweeps.add(sweep_id)
    if wait:
        _wait(handle, timeout)
    return handle


def schedule(
    what: str | Path | Mapping[str, Json],
    cron: str | None = None,
    *,
    every: float | str | None = None,
    zone: str | None = None,
    anchor: float | None = None,
    start: float | None = None,
    end: float | None = None,
    jitter: float | str = 0.0,
    trigger: Mapping[str, Json] | None = None,
    overlap: Literal["skip", "queue", "stop"] | None = None,
    concurrency: int = 1,
    missed: Literal["none", "last", "all"] = "last",
    deadline: float | str = "1d",
    pinned: bool = False,
    kept_by: Literal["here", "runtime"] = "here",
    sweep: Mapping[str, Json] | None = None,
    parameters: Mapping[str, Json] | None = None,
    runtime: str | None = None,
    name: str | None = None,
    labels: Mapping[str, str] | None = None,
    settings: Mapping[str, Json] | None = None,
    options: Mapping[str, Json] | None = None,
    use_cache: bool = True,
    root: str | Path | None = None,
) -> ScheduleHandle:
    """Run it again and again: at the times of a cron expression, `every` so often, or by a
    `trigger`: `{"file": {"pattern": "data/*.csv"}}`, `{"run": {"path": "prepare.ipynb"}}` or
    `{"call": {}}`.

    The clock is kept by a Jupyter server while it is up, or by `convect schedule keep`; with
    `kept_by="runtime"`, by the cluster of the runtime.
    A parameter may have the value `${{ schedule.due }}` or `${{ schedule.date }}`. `sweep` has
    a `space`, and what else `sweep` takes. Times are seconds since 1970, durations seconds or
    such as `15m`. Without `zone`, the clocks of this machine count.
    """
    from .schedule_handle import make_clock, make_schedule

    request = _request(what, parameters, runtime, None, labels, settings, options, use_cache, root)
    clock = make_clock(cron, every, zone, anchor, start, end, jitter)
    how: dict[str, Any] = {"concurrency": concurrency, "missed": missed, "trigger": trigger}
    how |= {"kept_by": kept_by, **({} if overlap is None else {"overlap": overlap})}
    return make_schedule(
        current_session(),
        request,
        clock,
        name=name,
        sweep=sweep,
        pinned=pinned,
        deadline=deadline,
        **how,
    )


def schedules() -> list[ScheduleHandle]:
    """All schedules, the newest first."""
    from .schedule_handle import ScheduleHandle

    session = current_session()
    found = session.workspace.scheduling.schedules.ids()
    return [ScheduleHandle(session, schedule_id) for schedule_id in found]


def start_service(
    kind: str,
    *,
    name: str | None = None,
    idle: str | float | None = None,
    root: str | Path = ".",
    **options: Json,
) -> ServiceHandle:
    """Start something that stays up, such as an `app`; `options` are those of its kind.

    If one with the same options is up, that one is meant. When nobody has used it for `idle`, it
    is stopped. Paths in the options start from `root`. It outlives this process.
    """
    from ..pipeline.quantities import duration
    from ..services.store import ServiceStore
    from .service_handle import ServiceHandle

    session = current_session()
    record = ServiceStore(session.workspace.store).start(
        kind, options, _normal(root), name=name, idle=None if idle is None else duration(idle)
    )
    return ServiceHandle(session, record.service.id)


def services() -> list[ServiceHandle]:
    """All services, also those that have ended."""
    from ..services.store import ServiceStore
    from .service_handle import ServiceHandle

    session = current_session()
    found = ServiceStore(session.workspace.store).all()
    return [ServiceHandle(session, record.service.id) for record in found]


def new_dask_cluster(workers: int = 1, **options: Json) -> DaskClusterHandle:
    """Make a Dask cluster; `options` are those of the gateway. It outlives this process.

    Without a gateway in Dask's configuration it is made on this machine.
    """
    from .dask_cluster_handle import DaskClusterHandle, clusters_of

    session = current_session()
    return DaskClusterHandle(session, clusters_of(session).new(options, workers)["id"])


def dask_clusters() -> list[DaskClusterHandle]:
    """All Dask clusters of this user, wherever they were made."""
    from .dask_cluster_handle import DaskClusterHandle, clusters_of

    session = current_session()
    return [DaskClusterHandle(session, each["id"]) for each in clusters_of(session).all()]


def make_callable(
    what: str | Path,
    parameters: Mapping[str, Json] | None = None,
    *,
    endpoint_id: str | None = None,
    name: str | None = None,
    runtime: str | None = None,
    settings: Mapping[str, Json] | None = None,
    options: Mapping[str, Json] | None = None,
    concurrency: int | None = None,
    queue: int | None = None,
    rate: int | None = None,
    idle: str | float | None = None,
    root: str | Path | None = None,
) -> EndpointHandle:
    """Make a notebook, a script or a pipeline callable, as Make Callable… in JupyterLab does.

    Each call is a run. Callers cannot choose the `parameters` that are given here. The handle has
    the first `token`; nobody can tell it later. The server answers calls while it is up.
    """
    from ..pipeline.quantities import duration
    from .endpoint_handle import create_endpoint

    request = _request(what, parameters, runtime, None, None, settings, options, True, root)
    return create_endpoint(
        current_session(),
        request,
        endpoint_id=endpoint_id,
        name=name,
        concurrency=concurrency,
        queue=queue,
        rate=rate,
        idle=None if idle is None else duration(idle),
    )


def endpoints() -> list[EndpointHandle]:
    """All endpoints."""
    from ..services.endpoints import EndpointStore
    from .endpoint_handle import EndpointHandle

    session = current_session()
    found = EndpointStore(session.workspace.store).all()
    return [EndpointHandle(session, endpoint.id) for endpoint in found]


def import_schedules(
    database: str | Path | None = None, *, runtime: str | None = None, root: str | Path = "."
) -> list[dict[str, Json]]:
    """Make schedules of the job definitions of jupyter-scheduler, from its database.

    Their files are looked for below `root`, by name. For each definition: `name`, the id of its
    `schedule`, or the `reason` why there is none.
    """
    from jupyter_core.paths import jupyter_data_dir

    session = current_session()
    workspace = session.workspace
    return session.do(
        workspace.scheduling.import_definitions(
            Path(database or Path(jupyter_data_dir(), "scheduler.sqlite")).absolute(),
            _normal(root),
            runtime or workspace.settings.default_runtime,
        )
    )


def notify(
    kind: Literal["mail", "webhook", "slack", "teams", "feishu", "dingtalk", "wecom"],
    *,
    on: Sequence[Literal["success", "failure", "missed", "longer"]] = ("failure",),
    to: Sequence[str] = (),
    url: str | None = None,
    secret: str | None = None,
    sign: str | None = None,
    longer: float | str | None = None,
    schedule: str | None = None,
    path: str | None = None,
    run: str | None = None,
    name: str | None = None,
) -> dict[str, Json]:
    """Be told about runs: all, those of a `schedule`, of a file at `path`, or one `run`.

    `secret` and `sign` name secrets, as `name/key`. Messages are sent by a Jupyter server while
    it is up, or by `convect schedule keep`.
    """
    from ..pipeline.quantities import duration

    notifier = current_session().workspace.notifier
    given = {"kind": kind, "events": list(on), "to": list(to), "url": url, "secret": secret}
    given |= {"sign": sign, "schedule": schedule, "path": path, "run": run, "name": name}
    made = notifier.add({**given, "longer": None if longer is None else duration(longer)})
    return next(view for view in notifier.views() if view["id"] == made)


def notifications() -> list[dict[str, Json]]:
    """All notifications, the newest first, each with what was sent last."""
    return current_session().workspace.notifier.views()


def capacity(runtime: str = "local") -> dict[str, Json]:
    """What a runtime has, what of it is free, who holds the rest, and what could start now: the
    `Overview` of the REST API. What this account must not see is None, and listed in `hidden`."""
    from ..overviews import overview_of
    from ..runtimes.capacity import as_json

    session = current_session()
    found: dict[str, Json] = as_json(session.do(overview_of(session.workspace, runtime)))
    return found


def profiles(runtime: str | None = None) -> list[dict[str, Json]]:
    """The profiles that an administrator offers, each with a name, notes and the `settings` that
    `run` takes; with a runtime, those for its namespace."""
    from ..pipeline.profiles import settings_of

    workspace = current_session().workspace
    place = workspace.runtimes[runtime].place() if runtime else None
    return [
        {"name": each.name, "notes": each.notes, "settings": settings_of(each)}
        for each in workspace.offering.profiles
        if each.is_for(place)
    ]


def runs(
    *,
    state: State | tuple[State, ...] = (),
    name: str | None = None,
    runtime: str | None = None,
    labels: Mapping[str, str] | None = None,
    text: str | None = None,
    path: str | None = None,
    sweep: str | None = None,
    since: float | None = None,
    until: float | None = None,
    sort: str = "-created",
    limit: int = 50,
    offset: int = 0,
) -> RunList:
    """Runs that were made here, in JupyterLab or on the command line; the newest first."""
    session = current_session()
    page = session.workspace.store.find(
        Query(
            states=(state,) if isinstance(state, str) else tuple(state),
            name=name,
            runtime=runtime,
            labels=labels or {},
            text=text,
            path=path,
            sweep=sweep,
            since=since,
            until=until,
            sort=sort,
            limit=limit,
            offset=offset,
        )
    )
    return RunList(RunHandle(session, found["id"]) for found in page.runs)


def _wait(handle: RunHandle | SweepHandle, timeout: float | None) -> None:
    """Until it has ended; an interrupt stops it."""
    try:
        handle.wait(timeout)
    except KeyboardInterrupt:
        handle.stop()
        raise


def _request(
    what: str | Path | Mapping[str, Json],
    parameters: Mapping[str, Json] | None,
    runtime: str | None,
    name: str | None,
    labels: Mapping[str, str] | None,
    settings: Mapping[str, Json] | None,
    options: Mapping[str, Json] | None,
    use_cache: bool,
    root: str | Path | None,
) -> Request:
    base, path, document = _normal(root or "."), None, None
    if isinstance(what, Mapping):
        document = what
    else:
        file = _normal(what)
        if root is None and not file.is_relative_to(base):
            base = file.parent
        if not file.is_relative_to(base):
            raise ConvectError(f"{str(what)!r} is not inside {str(base)!r}.", code="outside-root")
        path = file.relative_to(base).as_posix()
    return Request(
        path=path,
        root=str(base),
        document=document,
        runtime=runtime or current_session().workspace.settings.default_runtime,
        options=options or {},
        name=None if name is None else str(name),
        parameters=parameters or {},
        settings=settings or {},
        labels={str(label): str(value) for label, value in (labels or {}).items()},
        use_cache=use_cache,
    )


def _normal(path: str | Path) -> Path:
    """Absolute and without `..`, links left as they are."""
    return Path(os.path.normpath(Path(path).absolute()))
