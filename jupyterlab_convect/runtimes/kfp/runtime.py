"""Runs on Kubeflow Pipelines: the plan is compiled, handed over as a whole, and watched."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

from traitlets import Dict, Enum, Int, List, Unicode

from ...errors import ConvectError, Missing, Refused
from ...pipeline.plan import Json, Plan, Volume, to_json
from ...pipeline.problems import Problem
from ...pipeline.resolve import raise_first_error
from ...pools import Threads
from ...runner.layers import is_ignored
from ...runner.view_spec import ViewSpec
from ...safe_files import read_regular
from ...transfer.base import SharedVolume, choose
from ...transfer.pack import merged
from ...transfer.s3 import TROUBLE, ObjectStore, S3Transfer
from ..base import (
    Attempt,
    ConnectionStep,
    Feature,
    GraphRuntime,
    MadeRun,
    RecurringRuns,
    StepStatus,
)
from ..kubernetes.api import ApiError, ClusterUnreachable, require_configuration
from . import others
from .api import Client, Unreachable, page_of_version
from .check import Method, Way, check, connect, way_from_environment
from .compile import Compiled, examine
from .credentials import TokenFile
from .executor import DEFAULT_GPU, TaskDefaults
from .export import export_plan
from .payload import RunPayload
from .pods import Pods
from .recurring import RecurringClient
from .volume_files import VolumeFiles, own_volumes
from .watch import Watcher

T = TypeVar("T")

IN_CLUSTER = "http://ml-pipeline.kubeflow.svc.cluster.local:8888"
CODE = (".py", ".ipynb", ".r", ".sh", ".sql", ".json", ".yaml", ".toml")
LARGEST_STORED = 100_000_000
"""Bytes of undeclared files that go through the object store, which are in memory at once."""
PATIENCE, PAUSE = 300.0, 5.0
"""Seconds for which a server that does not answer is asked again, and between two tries."""


class KfpRuntime(GraphRuntime):
    name = "kfp"
    display_name = Unicode("Kubeflow Pipelines", help="What the front end calls it.").tag(
        config=True
    )
    features = frozenset(Feature) - {
        Feature.SHELL,
        Feature.STORAGE,
        Feature.ISOLATION,
        Feature.DISTRIBUTED,
        Feature.DASK,
        Feature.WORKERS,
    }

    endpoint = Unicode(
        "",
        help="""The address of the server; KF_PIPELINES_ENDPOINT if empty, and in a cluster that
        gives us a token for it, that of its own.""",
    ).tag(config=True)
    namespace = Unicode("", help="Ours, on a server with several users.").tag(config=True)
    sign_in = Enum(
        ["auto", "none", "token-file", "token", "password", "cookie", "kubeconfig"],
        "auto",
        help="""How to sign in. The token, password or cookie itself is in the keyring, in a
        Kubernetes Secret, or in CONVECT_KFP_SECRET.""",
    ).tag(config=True)
    user = Unicode("", help="The name that belongs to the password.").tag(config=True)
    secret = Unicode(
        "",
        help="""A Kubernetes Secret with the token, password or cookie, as name/key; read with the
        kubeconfig or the account of our own pod.""",
    ).tag(config=True)
    ca_file = Unicode("", help="A file with the authority of its certificate.").tag(config=True)
    token_file = Unicode("", help="Where the cluster keeps a token.").tag(config=True)
    server_namespace = Unicode("", help="Where the server runs, for kubeconfig.").tag(config=True)
    page = Unicode("", help="The address of Kubeflow's page, if it is not that of the server.").tag(
        config=True
    )
    image = Unicode("", help="The image of steps that name none.").tag(config=True)
    clock_zone = Unicode(
        "UTC",
        help="""The time zone of the server's recurring runs: its CRON_SCHEDULE_TIMEZONE.""",
    ).tag(config=True)
    service_account = Unicode("", help="Of the pods; the server's own choice if empty.").tag(
        config=True
    )
    gpu_type_labels = Dict(
        {DEFAULT_GPU: "nvidia.com/gpu.product"},
        help="The label of nodes that says of which type their GPUs are, by the GPU's resource.",
    ).tag(config=True)
    cluster = Enum(
        ["auto", "never"],
        "auto",
        help="""Whether to look at the pods of a run as well, with the kubeconfig or the account of
        our own pod, where that is allowed: steps then say why they wait, and can be followed
        while they run.""",
    ).tag(config=True)
    volumes = List(
        Dict(),
        help="""Volumes that this machine and tasks share, at the same path:
        {"path": "/home/ana", "claim": "ana"}; the claims of our own pod if empty, where tasks are
        made in its namespace.""",
    ).tag(config=True)
    files = Enum(
        ["auto", "shared", "s3", "bundle"],
        "auto",
        help="""How the files of a run reach its tasks and come back: in the pipeline and the log
        (`bundle`), over the volume that has the runs folder (`shared`), through the object store
        of c.ObjectStore (`s3`), or, as far as they do not all fit, in whichever way there is.""",
    ).tag(config=True)
    carry_limit = Int(
        8_000_000, min=100_000, help="Bytes that a step may send back through its log."
    ).tag(config=True)

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self._way = self._find_way()
        self._threads = Threads(4, "kfp")
        self._watching = threading.Lock()
        self._connecting = threading.Lock()
        self._client: Client | None = None
        self._own: tuple[tuple[Volume, ...], str] | None = None
        self._pods = self._find_pods()
        self._stopped: set[str] = set()
        store = ObjectStore(parent=self)
        is_used = store.is_configured and self.files in ("auto", "s3")
        self._store = S3Transfer(store) if is_used else None
        if self.files == "s3" and self._store is None:
            choose("s3", (), (), has_store=False)
        self._watcher = Watcher(self.health, self.graph_of, self._pods, self._store)

    def _find_way(self) -> Way:
        known = way_from_environment()
        endpoint = self.endpoint or known.get("endpoint", "")
        if not endpoint and Path(TokenFile(self.token_file).path).is_file():
            endpoint = IN_CLUSTER
        if not endpoint and self.sign_in != "kubeconfig":
            raise Refused(
                "No Kubeflow Pipelines server is configured.",
                code="no-server",
                hint="Set KF_PIPELINES_ENDPOINT, or c.KfpRuntime.endpoint.",
            )
        return Way(
            endpoint,
            cast("Method", self.sign_in),
            self.namespace,
            self.user,
            self.ca_file or known.get("ca_file", ""),
            self.token_file,
            self.server_namespace,
            self.secret,
        )

    def _find_pods(self) -> Pods | None:
        """None where nothing says which cluster it would be."""
        try:
            if self.cluster == "never":
                return None
            require_configuration()
        except ConvectError:
            return None
        return Pods(self._place, lambda: self.changed(), self.health)

    @property
    def _place(self) -> str:
        """The namespace of the pods."""
        return self.namespace or self.server_namespace or "kubeflow"

    @property
    def _defaults(self) -> TaskDefaults:
        try:
            shared = tuple(Volume(each["claim"], each["path"]) for each in self.volumes)
        except (KeyError, TypeError):
            raise ConvectError(
                "Each of c.KfpRuntime.volumes must have a path and a claim.", code="bad-config"
            ) from None
        return TaskDefaults(self.image, self.gpu_type_labels, shared)

    def _with_own_volumes(self) -> TaskDefaults:
        """The settings; if they name no volumes, with those of our own pod."""
        defaults = self._defaults
        if self._pods is None or defaults.volumes:
            return defaults
        if self._own is None:
            try:
                self._own = own_volumes(self._place)
            except (ApiError, ClusterUnreachable, ConvectError):
                return defaults  # The next run asks again.
        volumes, node = self._own
        return replace(defaults, volumes=volumes, node=node)

    async def check(self, plan: Plan) -> list[Problem]:
        home = RunPayload({"id": "", "name": plan.name}, limit=self.carry_limit)
        _, problems = await self._aside(examine, plan, _NoFiles(), self._defaults, home)
        if any(problem.severity == "error" for problem in problems):
            return problems
        try:
            await self._aside(lambda: self._connected().health())
            if self._store is not None:
                problems = [*await self._aside(self._store.check), *problems]
        except ConvectError as error:
            problem = Problem("error", error.code, error.sentence, hint=error.hint)
            return [problem, *problems]
        return problems

    async def test_connection(self) -> list[ConnectionStep]:
        return await self._aside(check, self._way)

    async def others_runs(self, limit: int, after: str = "") -> dict[str, Json]:
        return await self._aside(lambda: others.page(self._connected(), limit, after))

    async def others_run(self, run_id: str) -> dict[str, Json]:
        found = await self._aside(lambda: others.detail(self._connected(), run_id))
        return {**found, "page": self._page_of(run_id)}

    async def publish(self, plan: Plan, root: Path, name: str, version: str) -> dict[str, Json]:
        text, problems = await self._aside(export_plan, plan, root, self._defaults)
        found = await self._aside(lambda: self._connected().publish(name, version, text))
        page = page_of_version(self._page_base, found)
        return {**found, "page": page, "problems": [to_json(problem) for problem in problems]}

    async def submit(self, attempt: Attempt, known: Json) -> AsyncIterator[Json]:
        name = f"{attempt.plan.name} {attempt.run}"
        compiled = await self._aside(self._compile, attempt)
        graph: dict[str, Json] = {"name": name, "places": dict(compiled.places)}
        run_id = None
        if known is None:
            yield graph
        else:  # Whoever asked before us may not have heard the answer.
            run_id = await self._patiently(lambda client: client.run_named(name))
        if run_id is None:
            run_id = await self._patiently(lambda client: self._create(client, name, compiled))
        yield {**graph, "id": run_id, "page": self._page_of(run_id), "done": True}

    async def keep_runs(
        self, wanted: RecurringRuns | None, known: Mapping[str, Json]
    ) -> tuple[str, Json] | None:
        return await self._aside(lambda: self._recurring().keep(wanted, known))

    async def made_runs(
        self, known: Mapping[str, Json], is_home: Callable[[float], bool]
    ) -> list[MadeRun]:
        return await self._aside(lambda: self._recurring().made(known, is_home))

    async def forget_runs(self, known: Mapping[str, Json]) -> list[str]:
        return await self._aside(lambda: self._recurring().forget(known))

    async def poll(self, attempts: Sequence[Attempt]) -> list[StepStatus]:
        return await self._aside(self._poll, attempts)

    async def stop(self, attempt: Attempt) -> None:
        """The run as a whole; its other steps are stopped just the same."""
        graph = self.graph_of(attempt) or {}
        if graph.get("done") and attempt.run not in self._stopped:
            await self._aside(self._terminate, graph["id"])
            self._stopped.add(attempt.run)
        self.changed()

    def release(self, attempt: Attempt) -> None:
        self._watcher.forget(attempt.key)

    async def close(self) -> None:
        if self._pods is not None:
            self._pods.close()
        self._watcher.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _poll(self, attempts: Sequence[Attempt]) -> list[StepStatus]:
        with self._watching:
            try:
                client = self._connected()
            except ConvectError as error:
                return self._watcher.unreachable(attempts, error)
            return self._watcher.observe(client, attempts)

    def _terminate(self, run_id: str) -> None:
        client = self._connected()
        try:
            client.terminate(run_id)
        except Missing:
            return
        except ConvectError:
            if str(client.run(run_id).get("state")) not in ("SUCCEEDED", "FAILED", "CANCELED"):
                raise

    def _connected(self) -> Client:
        with self._connecting:
            if self._client is None:
                self._client = connect(self._way)
            return self._client

    def _recurring(self) -> RecurringClient:
        return RecurringClient(
            self._connected(), self._compile_recurring, self._page_of, self.service_account
        )

    def _compile_recurring(self, wanted: RecurringRuns) -> Compiled:
        """Files are a part of it: what is in the object store is not kept for ever."""
        project = _project(wanted.view, wanted.root)
        home = RunPayload({}, *project, limit=self.carry_limit)
        sources = _Sources(wanted.root, wanted.runs)
        compiled, problems = examine(wanted.plan, sources, self._defaults, home)
        raise_first_error(problems)
        assert compiled is not None
        return compiled

    def _compile(self, attempt: Attempt) -> Compiled:
        told = {"id": attempt.run, "name": attempt.plan.name}
        project = _project(_view_of(attempt), attempt.root)
        defaults = self._with_own_volumes() if self.files in ("auto", "shared") else self._defaults
        ways = self._by_volume(attempt, defaults.volumes) or self._by_store(attempt.run)
        home = RunPayload(told, *project, limit=self.carry_limit, **ways)
        sources = _Sources(attempt.root, attempt.runs)
        compiled, problems = examine(attempt.plan, sources, defaults, home)
        raise_first_error(problems)
        assert compiled is not None
        if self._store is not None:
            with contextlib.suppress(ConvectError, *TROUBLE):
                self._store.clean()
        return compiled

    def _by_volume(self, attempt: Attempt, volumes: Sequence[Volume]) -> dict[str, Any]:
        """How files go over a volume, if one has the folder of the runs."""
        if self.files not in ("auto", "shared"):
            return {}
        shared = (SharedVolume(each.path, {}) for each in volumes)
        if not any(volume.covers(str(attempt.runs)) for volume in shared):
            if self.files == "shared":
                raise Refused(
                    f"No volume of Kubeflow Pipelines holds {attempt.runs}.",
                    code="not-shared",
                    hint="Name it in c.KfpRuntime.volumes, or allow files to be sent with the run.",
                )
            return {}
        files = VolumeFiles(attempt.runs, attempt.run)
        files.open()
        return {
            "store": files,
            "room": LARGEST_STORED,
            "always_store": self.files == "shared",
            "keep": str(files.folder),
        }

    def _by_store(self, run: str) -> dict[str, Any]:
        """How files go through the object store, if there is one."""
        if self._store is None:
            return {}
        authority = self._store.store.ca_file
        return {
            "store": self._store,
            "authority": Path(authority).read_text() if authority else "",
            "room": min(LARGEST_STORED, self._store.store.project_limit),
            "always_store": self.files == "s3",
            "form": self._store.form(run),
        }

    def _create(self, client: Client, name: str, compiled: Compiled) -> str:
        told = client.create_run(name, compiled.spec, service_account=self.service_account)
        return str(told["run_id"])

    def _page_of(self, run_id: str) -> str:
        """Where Kubeflow shows a run."""
        return f"{self._page_base}/#/runs/details/{run_id}" if self._page_base else ""

    @property
    def _page_base(self) -> str:
        told = self.page or os.environ.get("KF_PIPELINES_UI_ENDPOINT") or self._way.endpoint
        return told.rstrip("/")

    async def _patiently(self, work: Callable[[Client], T]) -> T:
        """Ask again while the server cannot be reached; what it refuses is refused."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return await self._aside(lambda: work(self._connected()))
            except Unreachable:
                if time.monotonic() > deadline:
                    raise
            await asyncio.sleep(PAUSE)

    async def _aside(self, work: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)


class _NoFiles:
    """Before a run is made: whether its files are too large is said when they are known."""

    def read(self, path: str, digest: str) -> bytes:
        return b""


class _Sources:
    """The files of a run as they were when it was submitted."""

    def __init__(self, root: Path, runs: Path) -> None:
        self._root = root
        self._objects = runs / "objects"

    def read(self, path: str, digest: str) -> bytes:
        name = digest.removeprefix("sha256:")
        for place in (self._objects / name[:2] / name[2:], self._root / path):
            if digest or place == self._root / path:
                try:
                    return read_regular(place)
                except FileNotFoundError:
                    continue
                except OSError as error:
                    raise ConvectError(f"{path} cannot be read: {error.strerror}.") from None
        raise ConvectError(f"{path} cannot be read: it is no longer there.")


def _view_of(attempt: Attempt) -> Json:
    spec = json.loads(read_regular(attempt.folder / "step.json"))
    return spec.get("view") or (spec.get("component") or {}).get("view")


def _project(told: Json, start: Path) -> tuple[str, str | None, dict[str, Path]]:
    """The root and the project folder, below the higher of the two, and the files of the project
    as they were at submit, those of code first."""
    if not told:
        return "", None, {}
    view = ViewSpec.read(told)
    top = start if view.root.is_relative_to(start) else view.root
    if not start.is_relative_to(top):
        return "", None, {}
    files = {path: file for path, file in merged(view.layers).items() if not is_ignored(path)}

    def rank(item: tuple[str, Path]) -> tuple[bool, int]:
        return (not item[0].lower().endswith(CODE), item[1].stat().st_size)

    root, project = (str(folder.relative_to(top)) for folder in (start, view.root))
    return root, project, dict(sorted(files.items(), key=rank))
