"""What the runner is asked to do: the content of `step.json`, checked; what whoever starts it
can set by environment variables; and what the step then sees."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ConvectError
from ..json_text import loads
from ..safe_files import read_regular
from .view_spec import ViewSpec

KINDS = ("notebook", "script", "command", "component")
LAUNCHERS = ("plain", "torchrun", "mpi")
_PREFIX = "CONVECT_"
VALUES = "values.ndjson"
"""The file in the attempt folder that steps report to."""
REPLICA_STATES, REPLICA_LOGS = "replicas.json", "replicas"
REPLICA_USE = ("cpu", "memory", "gpu_load", "gpu_memory")
"""What a replica uses of the machine: cores, bytes, percent of its GPU, bytes there."""
"""The file that says what became of each replica so far, and the folder with one log of each."""
NODES = "nodes"
"""Where nodes share a volume, the folder in which each of them has one of its own."""


@dataclass(frozen=True, slots=True)
class PlacedInput:
    """A file or folder to place into the working folder before the start."""

    source: Path
    to: str


@dataclass(frozen=True, slots=True)
class DistributedSpec:
    """How the processes of a step are started that work together."""

    processes: int | None = 1
    """On each node. None: one per processor that the step may use."""
    launcher: str = "plain"
    restarts: int = 0
    outputs_from: int = 0
    """The rank whose values and metrics are those of the step."""
    nodes: int = 1
    hang_after: float | None = None
    """Seconds without output and use of processors after which it hangs."""
    on_hang: str = "report"
    min_nodes: int | None = None
    """So many are enough; None if all are needed."""
    key: str = ""
    """By which several nodes know each other."""

    @property
    def least(self) -> int:
        return self.nodes if self.min_nodes is None else self.min_nodes

    @property
    def outputs_node(self) -> int:
        """The node with that rank: its files are those of the step."""
        return self.outputs_from // self.processes if self.processes else 0


@dataclass(frozen=True, slots=True)
class StepSpec:
    step: str
    kind: str
    folder: Path
    run: str = ""
    attempt: int = 1
    source: Path | None = None
    inputs: tuple[PlacedInput, ...] = ()
    kernel: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    metrics: Mapping[str, str] = field(default_factory=dict)
    timeout: float | None = None
    expected: float | None = None
    copy: Path | None = None
    """The source as it was at submit, wherever that is kept."""
    digest: str | None = None
    """Of the source as it was at submit."""
    notices: tuple[str, ...] = ()
    view: ViewSpec | None = None
    """The step's own version of the project folder; None when it shares the folder."""
    computed: tuple[str, ...] = ()
    """Parameters that it is not given, and whose defaults its source computes."""
    distributed: DistributedSpec | None = None

    @property
    def title(self) -> str:
        """What a sentence calls it."""
        if self.source is not None:
            return self.source.name
        if self.kind == "component":
            return self.step
        return self.command[0] if self.command else self.step


def read_step(path: Path) -> StepSpec:
    """Read `step.json`; a ConvectError says what is wrong with it."""
    try:
        data = loads(read_regular(path))
    except OSError as error:
        raise ConvectError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise ConvectError(f"{path} is not JSON: {error}.") from error
    try:
        return _parse(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConvectError(
            f"{path} does not describe a step: {type(error).__name__} {error}."
        ) from error


def _parse(data: Any) -> StepSpec:
    kind = data["kind"]
    if kind not in KINDS:
        raise ValueError(f"kind {kind!r} is none of {', '.join(KINDS)}")
    source = data.get("source")
    command = tuple(str(part) for part in data.get("command") or ())
    if kind in ("notebook", "script") and not source:
        raise ValueError(f"a {kind} needs a source")
    if kind in ("command", "component") and not command:
        raise ValueError(f"a {kind} needs a command")
    timeout = data.get("timeout")
    return StepSpec(
        step=str(data.get("step") or "step"),
        kind=kind,
        folder=Path(data.get("folder") or (Path(source).parent if source else ".")),
        run=str((data.get("run") or {}).get("id") or ""),
        attempt=int(data.get("attempt") or 1),
        source=Path(source) if source else None,
        inputs=tuple(PlacedInput(Path(i["from"]), str(i["to"])) for i in data.get("inputs") or ()),
        kernel=data.get("kernel") or None,
        parameters=dict(data.get("parameters") or {}),
        command=command,
        env={str(name): str(value) for name, value in (data.get("env") or {}).items()},
        outputs=tuple(str(pattern) for pattern in data.get("outputs") or ()),
        metrics=dict(data.get("metrics") or {}),
        timeout=float(timeout) if timeout else None,
        expected=data.get("expected"),
        copy=Path(data["copy"]) if data.get("copy") else None,
        digest=data.get("digest") or None,
        notices=tuple(data.get("notices") or ()),
        view=ViewSpec.read(data["view"]) if data.get("view") else None,
        computed=tuple(str(name) for name in data.get("computed") or ()),
        distributed=_distributed(data["distributed"]) if data.get("distributed") else None,
    )


def _distributed(data: Mapping[str, Any]) -> DistributedSpec:
    launcher = data.get("launcher", "plain")
    if launcher not in LAUNCHERS:
        raise ValueError(f"launcher {launcher!r} is none of {', '.join(LAUNCHERS)}")
    count = data.get("processes", 1)
    if data.get("nodes", 1) > 1 and not data.get("key"):
        raise ValueError("several nodes need a key")
    return DistributedSpec(
        None if count == "cpu" else int(count),
        launcher,
        int(data.get("restarts", 0)),
        int(data.get("outputs_from", 0)),
        int(data.get("nodes", 1)),
        float(data["hang_after"]) if data.get("hang_after") else None,
        str(data.get("on_hang", "report")),
        int(data["min_nodes"]) if data.get("min_nodes") else None,
        str(data.get("key") or ""),
    )


@dataclass(frozen=True, slots=True)
class RunnerSettings:
    """Each field is set by the variable of its name in capitals, after `CONVECT_`."""

    output_limit: int = 10_000_000
    """Bytes of output kept in the notebook for one cell."""
    log_limit: int = 100_000_000
    """Bytes of `log.txt`."""
    memory_limit: int = 0
    """Bytes of memory that the step may have; 0 means no limit."""
    cpu_limit: float = 0.0
    """Processors that the step may keep busy, where that can be limited; 0 means no limit."""
    grace: float = 5.0
    """Seconds a step has to end by itself once it is asked to stop."""
    start_timeout: float = 60.0
    """Seconds a kernel has to start."""

    overlays: int = 1
    """Whether a step may see its folder through an overlay; 0 means that it is copied."""

    copied_files: int = 5000
    """Files of a project that are copied for a step, where there can be no overlay."""

    node: int = 0
    """Which of the nodes of a distributed step this is."""

    join_wait: float = 30.0
    """Seconds that as many nodes as are needed wait for the others."""

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> RunnerSettings:
        def number(name: str, default: float) -> float:
            try:
                return float(environment[_PREFIX + name.upper()])
            except (KeyError, ValueError):
                return default

        base = cls()
        return cls(
            output_limit=int(number("output_limit", base.output_limit)),
            log_limit=int(number("log_limit", base.log_limit)),
            memory_limit=int(number("memory_limit", base.memory_limit)),
            cpu_limit=number("cpu_limit", base.cpu_limit),
            grace=number("grace", base.grace),
            start_timeout=number("start_timeout", base.start_timeout),
            overlays=int(number("overlays", base.overlays)),
            copied_files=int(number("copied_files", base.copied_files)),
            node=int(number("node", base.node)),
            join_wait=number("join_wait", base.join_wait),
        )


def child_environment(step: StepSpec, values: Path) -> dict[str, str]:
    """The environment of what the step executes: ours, less what is meant for us, and its own.

    The limits stay: who starts containers has to pass them on.
    """
    names = set(RunnerSettings.__slots__) - {"memory_limit", "cpu_limit"}
    private = {_PREFIX + name.upper() for name in names} | {
        "CONVECT_SECRETS",
        "CONVECT_DASK_VERSIONS",
        "CONVECT_SCRATCH",
        "CONVECT_MASTER",
        "CONVECT_OUTPUTS_NODE",
    }
    ours = {name: value for name, value in os.environ.items() if name not in private}
    return {
        **ours,
        **step.env,
        "CONVECT_RUN": step.run,
        "CONVECT_STEP": step.step,
        "CONVECT_ATTEMPT": str(step.attempt),
        "CONVECT_VALUES": str(values),
    }


def mark_of(values: Path) -> str:
    """What the environment of everything that a step starts has, and of nothing else."""
    return f"CONVECT_VALUES={values}"
