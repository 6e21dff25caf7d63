"""The contract between the engine and the places where steps run."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, ABCMeta, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Literal

from traitlets import Instance, MetaHasTraits
from traitlets.config import LoggingConfigurable

from ..background import Health
from ..errors import Refused
from ..pipeline.plan import Json, Plan, Step
from ..pipeline.problems import Problem
from ..pipeline.profiles import Profile
from ..runs.model import Progress, State
from ..safe_files import read_regular, write_whole
from .capacity import Overview

GRAPH = "graph.json"
"""The file of a run that says where its graph was handed to."""


class Feature(str, Enum):
    """What a runtime can do beyond running steps; the forms hide what is missing."""

    IMAGE = "image"
    CPU = "cpu"
    MEMORY = "memory"
    GPU = "gpu"
    SHARED_MEMORY = "shared_memory"
    STORAGE = "ephemeral_storage"
    VOLUMES = "volumes"
    SECRETS = "secrets"
    KUBERNETES = "kubernetes"
    ISOLATION = "isolation"
    DISTRIBUTED = "distributed"
    DASK = "dask"
    SHELL = "shell"
    CONNECTION = "connection"
    OTHERS_RUNS = "others_runs"
    PUBLISH = "publish"
    """Its server keeps pipelines that people start there."""
    CLOCK = "clock"
    WORKERS = "workers"
    RECURRING = "recurring"
    """It makes the runs by its own clock, of what it was given."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at one step, as the engine hands it to a runtime.

    `folder` holds `step.json`, complete; the runner fills the rest. `handle` is the
    last checkpoint that `start` gave, None before there was one.
    """

    run: str
    step: Step
    number: int
    folder: Path
    handle: Json = None
    root: Path = field(kw_only=True)
    """The folder that every path of the plan starts from."""
    plan: Plan = field(kw_only=True, compare=False, repr=False)
    runs: Path = field(kw_only=True)
    """The folder of all runs: a runtime keeps there what more than one of them needs."""
    options: Mapping[str, Json] = field(default_factory=dict, kw_only=True, compare=False)
    """What was chosen for the run of those that `options_schema` describes."""
    variables: Mapping[str, str] = field(
        default_factory=dict, kw_only=True, compare=False, repr=False
    )
    """Of its environment, beside those of the step: what lets it use what was made for it. They
    are secrets, and are written down nowhere."""

    @property
    def key(self) -> tuple[str, str, int]:
        return (self.run, self.step.id, self.number)


@dataclass(frozen=True, slots=True)
class StepStatus:
    """What a runtime knows of an attempt now; `reason` is for people, `detail` its raw words."""

    key: tuple[str, str, int]
    state: State
    reason: str | None = None
    detail: str | None = None
    progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class ConnectionStep:
    """One step of the way to a server, and what became of it."""

    step: str
    """`address`, `sign-in` or `namespace`."""
    ok: bool
    message: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class KeptClock:
    """The clock of a schedule that a cluster keeps: when to start a process that looks at it."""

    id: str
    """Of the schedule."""
    name: str
    cron: str
    """Five fields of numbers."""
    zone: str
    deadline: float
    """Seconds after which it is too late to start."""
    paths: tuple[str, ...]
    """What the process has to see: the folder of the runs, and the project."""
    runs: Path
    config: Path
    """The folder for its configuration."""
    paused: bool = False


@dataclass(frozen=True, slots=True)
class WorkerOrder:
    """A process that answers HTTP requests, for a runtime to keep up: the worker of an endpoint."""

    name: str
    """What the runtime calls it: a DNS label, and no other worker's."""
    endpoint: str
    step: Step
    """Its image, its resources and all that the pods of steps have."""
    project: Path
    folder: Path
    """Where it works, in the project."""
    declared: tuple[Path, ...]
    """Files of the project without which it cannot do."""
    runs: Path
    """The folder of the runs, which is no part of the project."""
    program: bytes
    """What the Python of its image executes, with the port, its inbox and its folder."""
    inbox: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    state: Literal["starting", "ready", "failed"]
    reason: str | None = None


class RemoteWorker(ABC):
    """A worker where a runtime keeps it. Everything here blocks."""

    @abstractmethod
    def start(self) -> None:
        """ConvectError when it cannot, with the reason."""

    @abstractmethod
    def look(self) -> WorkerStatus:
        """How it is now; what does not mend by itself has failed after a while."""

    @abstractmethod
    def send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> tuple[int, str, bytes]:
        """Have it answer: the status, the type and the content. ConvectError when it does not."""

    @abstractmethod
    def follow_log(self, write: Callable[[bytes], None]) -> None:
        """Tell what it prints, for ever."""


@dataclass(frozen=True, slots=True)
class RecurringRuns:
    """Runs that a runtime makes by a clock of its own, of the graph that it is given."""

    id: str
    """Of the schedule."""
    name: str
    plan: Plan
    root: Path
    runs: Path
    view: Json
    """The project as it was pinned, as `step.json` has it; None if no step sees it."""
    cron: str | None
    """Six fields of numbers, seconds first; None where `every` is given."""
    every: int | None
    """Seconds, counted from `after`."""
    after: int
    """Nothing is due up to this moment."""
    until: int | None
    concurrency: int
    catch_up: bool
    """Whether every due time that was left out is made up for, or only the last of them."""


@dataclass(frozen=True, slots=True)
class MadeRun:
    """A run that a runtime made by a clock of its own."""

    clock: str
    """The id there of what made it."""
    due: float
    created: float
    graph: Json
    """Where it is, as the last checkpoint of `GraphRuntime.submit` would tell."""


class RuntimeMeta(ABCMeta, MetaHasTraits):
    """Lets abstract methods bind on a configurable class."""


class Runtime(LoggingConfigurable, metaclass=RuntimeMeta):
    """A place where runs run. Found by the entry point group `jupyterlab_convect.runtimes`."""

    features: frozenset[Feature] = frozenset()

    health = Instance(Health, ())
    """Where it says what of it does not work; shared by all of a workspace."""

    name: str
    """What documents, the CLI and the front end call it."""

    display_name: str

    def options_schema(self) -> dict[str, Any]:
        """JSON Schema of the run options that only this runtime has; it becomes the form."""
        return {"type": "object", "properties": {}}

    @abstractmethod
    async def check(self, plan: Plan) -> list[Problem]:
        """Would it run here? Every property is honoured or refused aloud."""

    async def capacity(self, profiles: Sequence[Profile] = ()) -> Overview | None:
        """What there is, what of it is free, who holds the rest, and what of the profiles could
        start now; None when it cannot tell. What must not be known is said to be hidden."""
        return None

    def place(self) -> str | None:
        """The namespace where it runs steps, where there are any. Reads configuration only."""
        return None

    async def test_connection(self) -> list[ConnectionStep]:
        """Every step up to the first that fails. For runtimes with `Feature.CONNECTION`."""
        raise Refused(f"{self.display_name} has no connection to test.", code="no-connection")

    async def others_runs(self, limit: int, after: str = "") -> dict[str, Json]:
        """A page of the runs there that were made elsewhere, `{runs, next}`, newest first.

        For runtimes with `Feature.OTHERS_RUNS`; `after` is what the page before called `next`.
        """
        raise Refused(
            f"{self.display_name} cannot list runs that were created elsewhere.",
            code="no-others-runs",
        )

    async def others_run(self, run_id: str) -> dict[str, Json]:
        """One of them, with its graph."""
        raise Refused(
            f"{self.display_name} cannot list runs that were created elsewhere.",
            code="no-others-runs",
        )

    async def publish(self, plan: Plan, root: Path, name: str, version: str) -> dict[str, Json]:
        """Make a version of a pipeline there: `{pipeline, version, page, problems}`.

        For runtimes with `Feature.PUBLISH`; the pipeline is made if there is none of that name.
        """
        raise Refused(f"{self.display_name} keeps no pipelines.", code="no-pipelines")

    async def keep_clock(self, clock: KeptClock) -> None:
        """Have the cluster start `keep_process` by this clock from now on, and no other for this
        schedule. Idempotent. For runtimes with `Feature.CLOCK`."""
        raise Refused(f"{self.display_name} keeps no clocks.", code="not-for-clusters")

    async def forget_clock(self, schedule_id: str) -> None:
        """Have the cluster start it no more. Idempotent."""

    def worker(self, order: WorkerOrder) -> RemoteWorker:
        """The worker that it would keep up. For runtimes with `Feature.WORKERS`. Blocks."""
        raise Refused(f"{self.display_name} keeps no functions loaded.", code="no-workers")

    def forget_worker(self, name: str) -> None:
        """Remove it with all that belongs to it. Idempotent. Blocks."""

    async def close(self) -> None:
        """Let go of connections and helpers; running steps continue."""


class StepRuntime(Runtime):
    """A runtime that runs single steps; our engine walks the graph."""

    changed: Callable[[], None] = staticmethod(lambda: None)
    """Set by the engine. Calling it makes the engine poll at once instead of at the next beat."""

    def admit(self, attempt: Attempt) -> str | None:
        """Take room for the attempt, held until it ends; or the reason why it has to wait."""
        return None

    def release(self, attempt: Attempt) -> None:
        """Give back what `admit` took. Idempotent."""

    @abstractmethod
    def start(self, attempt: Attempt) -> AsyncIterator[Json]:
        """Start it so that it outlives this process.

        Yields JSON checkpoints, each stored before the next part begins; the last
        one is enough to find or stop the attempt again, from any process. A
        ConvectError means that it cannot start and says why.
        """

    @abstractmethod
    async def poll(self, attempts: Sequence[Attempt]) -> list[StepStatus]:
        """The state of each, in one go. `lost` when the truth cannot be known."""

    @abstractmethod
    async def stop(self, attempt: Attempt) -> None:
        """Stop it, if it is there. Returns when it is gone or sure to go. Idempotent."""

    async def end_run(self, run: str, plan: Plan) -> None:
        """Remove what was made for the run as a whole; all its steps have ended. Idempotent.

        A ConvectError says what is still there.
        """

    def shell(
        self, attempt: Attempt, command: Sequence[str] = (), replica: int | None = None
    ) -> int:
        """Run a command (or a shell) where the attempt runs, tied to this terminal.

        `replica`: where that replica of it runs, with its variables. Blocks; the exit code of the
        command. For runtimes with `Feature.SHELL`.
        """
        raise Refused(f"{self.display_name} has no shell to open.", code="no-shell")


class GraphRuntime(StepRuntime):
    """A runtime that is handed the graph of a run as a whole, with the first of its steps.

    It starts, skips, repeats and retries steps by itself, as the document says. The engine walks
    the same graph beside it: what it starts here is followed from then on, and what became of it
    over there decides what comes next. No step can be stopped alone.
    """

    clock_zone: str = "UTC"
    """The time zone that it keeps clocks in."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self._turns: dict[str, asyncio.Lock] = {}

    @abstractmethod
    def submit(self, attempt: Attempt, known: Json) -> AsyncIterator[Json]:
        """Hand over the graph of the attempt's run.

        Yields JSON checkpoints, each stored before the next part begins. `known` is the last one
        of a process that did not get further, None if there was none. The last one is enough to
        find the run again: its `done` is true, its `id` is that of the run there, and its `page`
        the address where people find it, if there is one.
        """

    async def keep_runs(
        self, wanted: RecurringRuns | None, known: Mapping[str, Json]
    ) -> tuple[str, Json] | None:
        """Make runs by this clock from now on, and none by those that are known; None makes no
        more. Its id there, and what `made_runs` has to know of it.

        If it is refused, those that are known go on. For runtimes with `Feature.CLOCK`.
        """
        raise Refused(f"{self.display_name} keeps no clocks.", code="not-for-clusters")

    async def made_runs(
        self, known: Mapping[str, Json], is_home: Callable[[float], bool]
    ) -> list[MadeRun]:
        """The runs that those clocks made and that are not home yet, by when they were due."""
        return []

    async def forget_runs(self, known: Mapping[str, Json]) -> list[str]:
        """Delete those clocks, which make no runs any more, as far as no run of them goes on; the
        ids of those that are gone."""
        return list(known)

    @staticmethod
    def graph_of(attempt: Attempt) -> Json:
        """The last checkpoint of the attempt's run; None when there is none."""
        try:
            return json.loads(read_regular(attempt.runs / attempt.run / GRAPH))
        except FileNotFoundError:
            return None

    async def start(self, attempt: Attempt) -> AsyncIterator[Json]:
        turn = self._turns.setdefault(attempt.run, asyncio.Lock())
        async with turn:
            graph = self.graph_of(attempt)
            if not (graph or {}).get("done"):
                async for step in self.submit(attempt, graph):
                    graph = step
                    content = json.dumps(graph).encode()
                    write_whole(attempt.runs / attempt.run / GRAPH, content)
        yield {"graph": graph["id"], "page": graph.get("page")}
