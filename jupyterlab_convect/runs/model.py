"""What a run is: a folder of facts, folded into the state that everybody sees.

`run.json` says what was asked and never changes. `events.ndjson` says what
happened and only grows. `RunState` is the fold of both.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ..pipeline.file_facts import FileFacts
from ..pipeline.plan import Json, Plan, Step
from .graph import Graph, Item, Key

State = Literal[
    "waiting",  # for a step upstream, or for the clock of a retry
    "queued",  # ready, waiting for room on the runtime
    "starting",
    "running",
    "succeeded",
    "failed",
    "cancelled",
    "skipped",  # by a rule, because something upstream failed, or it was not asked for
    "cached",  # an earlier result was taken over
    "lost",  # the truth cannot be known
]

ENDED: frozenset[State] = frozenset(
    ("succeeded", "failed", "cancelled", "skipped", "cached", "lost")
)
GOOD: frozenset[State] = frozenset(("succeeded", "cached"))


@dataclass(frozen=True, slots=True)
class Git:
    commit: str
    branch: str | None = None
    dirty: bool | None = False
    """None where it would have taken too long to tell."""
    difference: str | None = None
    """Under which digest it is kept how the files differ from the commit."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which part of a plan to run: all of it, or one of the partial ways, seen from `node`."""

    mode: Literal["all", "only", "from", "upto", "failed"] = "all"
    node: str | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked, enough to ask for it again: a clone starts from here."""

    path: str | None = None
    """Notebook, script or pipeline, relative to `root`."""
    root: str = "."
    """The absolute folder that every path of the plan starts from."""
    document: Json = None
    """The pipeline itself, when it is not (or not only) what lies at `path`."""
    runtime: str = "local"
    options: Mapping[str, Json] = field(default_factory=dict)
    """The runtime's own options, as its `options_schema` describes them."""
    name: str | None = None
    parameters: Mapping[str, Json] = field(default_factory=dict)
    settings: Mapping[str, Json] = field(default_factory=dict)
    """Settings of the document's vocabulary that override its defaults for this run."""
    labels: Mapping[str, str] = field(default_factory=dict)
    select: Selection = Selection()
    use_cache: bool = True
    of: str | None = None
    """The run whose results a partial run or a re-run takes over."""
    sweep: str | None = None
    endpoint: str | None = None
    """The endpoint that was called."""
    version: str | None = None
    """The run whose sources are executed again; None means the files as they are now."""


@dataclass(frozen=True, slots=True)
class SweepSources:
    """What all runs of a sweep are made from, as it was when the sweep was submitted."""

    files: FileFacts
    """What its plans looked up."""
    document: Json = None
    """The pipeline; None when it is a single file."""
    snapshot: str | None = None
    git: Git | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """The content of `run.json`."""

    id: str
    name: str
    created: float
    runtime: str
    plan: Plan
    request: Request
    user: str | None = None
    git: Git | None = None
    snapshot: str | None = None
    """The digest of the project as it was at submit; None when no step has a view of it."""


@dataclass(slots=True)
class Progress:
    cell: int = 0
    """Cells done."""
    cells: int = 0
    elapsed: float = 0.0
    expected: float | None = None
    """How long the last successful execution took."""


@dataclass(slots=True)
class AttemptState:
    attempt: int
    state: State = "queued"
    reason: str | None = None
    detail: str | None = None
    """The runtime's own words behind `reason`."""
    started: float | None = None
    ended: float | None = None
    handle: Json = None
    """The runtime's last checkpoint: enough to find or stop the attempt again."""
    parts: dict[str, str] = field(default_factory=dict)
    """Digests of all that the result depends on, by what they are digests of."""
    stopping: Literal["asked", "timeout"] | None = None
    """Why it is being stopped, once it is."""
    running: float | None = None
    """Since when it runs: the time it was queued and started does not count as running time."""


@dataclass(slots=True)
class StepState:
    id: str
    state: State = "waiting"
    reason: str | None = None
    started: float | None = None
    ended: float | None = None
    attempts: list[AttemptState] = field(default_factory=list)
    progress: Progress | None = None
    outputs: dict[str, Json] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    parameters: dict[str, Json] = field(default_factory=dict)
    """Values that its source computed for parameters that it was not given."""
    cache: str | None = None
    """Why an earlier result was or was not taken over."""
    source: str | None = None
    """`<run id>/<attempt>` where the result lies when it was taken over from another run, and
    `<run id>/<step>/<attempt>` when it is that of another item of a loop."""
    stopping: bool = False
    """Somebody asked to stop it."""
    notices: list[str] = field(default_factory=list)
    """What a reader of the result should know."""
    made: int = 0
    """How many files it created, changed or deleted."""
    node: str = ""
    """The step of the plan that it is; the same as `id` unless it is in a loop."""
    item: Item = ()
    """Which item of each loop around it."""
    by_rule: bool = False
    """It was skipped because of a rule of the pipeline, not because of a failure."""


@dataclass(slots=True)
class GroupState:
    """A group of the plan, a loop, or one item of a loop over a group."""

    id: str
    node: str
    item: Item = ()
    state: State = "waiting"
    reason: str | None = None
    started: float | None = None
    ended: float | None = None
    by_rule: bool = False
    values: list[Json] | None = None
    """The items of a loop, once they are known."""
    counts: dict[State, int] = field(default_factory=dict)
    """How many items of a loop are in each state."""
    stopping: bool = False


def _no_graph() -> Graph:
    return Graph(Plan("", ()))


@dataclass(slots=True)
class RunState:
    """What happened so far, seen from the front."""

    seq: int = 0
    """Number of events folded; grows with every change."""
    state: State = "queued"
    reason: str | None = None
    started: float | None = None
    ended: float | None = None
    name: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    note: str = ""
    stopping: bool = False
    """Somebody asked to stop all of it."""
    stop_asked: float | None = None
    """When."""
    execute: frozenset[str] | None = None
    """The steps that it was decided to execute when it began; None when that is all of them."""
    reuse: dict[str, str] = field(default_factory=dict)
    """Where the results lie that it was decided to take over, `<run id>/<attempt>`."""
    steps: dict[str, StepState] = field(default_factory=dict)
    """Those that there are so far: the steps of a loop are added when its list is known."""
    groups: dict[str, GroupState] = field(default_factory=dict)
    graph: Graph = field(default_factory=_no_graph, compare=False, repr=False)
    files: Json = None
    """What came of putting the files it made into the project: `put` and `kept`."""


def step_of(state: RunState, step_id: str) -> Step:
    """What a step of a run executes, before its expressions are bound."""
    step = state.steps[step_id]
    return state.graph.step(step.node or step.id, step.item)


def steps_of(state: RunState) -> list[StepState]:
    """The steps of a run so far, in an order in which they could run one after the other."""
    if not state.graph.has_rules:
        return list(state.steps.values())
    order = state.graph.order
    return sorted(state.steps.values(), key=lambda step: (order[step.node], step.item))


def steps_in(state: RunState, unit: str, item: Item) -> list[StepState]:
    """The steps of a unit that there are so far, in an order in which they could run."""
    found: list[StepState] = []
    left: list[Key] = [(unit, item)]
    graph = state.graph
    while left:
        unit, item = left.pop()
        name = graph.name(unit, item)
        if step := state.steps.get(name):
            found.append(step)
        elif graph.is_loop(unit) and not graph.is_iteration(unit, item):
            count = len(state.groups[name].values or ())
            left += [(unit, (*item, number)) for number in reversed(range(count))]
        else:
            left += reversed(graph.members(unit, item))
    return found


def ids_of(state: RunState, node: str) -> list[str]:
    """The steps and groups of a run that a node has become so far: its own, its items, its parts.

    `node` may be one item of a loop as well.
    """
    graph = state.graph
    inside = {node} | {
        each
        for each in graph.units
        if any(unit == node or unit.startswith(f"{node}.") for unit, _ in graph.ancestors(each, ()))
    }
    units: list[StepState | GroupState] = [*state.groups.values(), *state.steps.values()]
    return [
        unit.id
        for unit in units
        if unit.id == node or unit.id.startswith(f"{node}.") or unit.node in inside
    ]


def source_of(run_id: str, step_id: str, attempt: int, own_id: str) -> str:
    """Where a result lies that a step takes over, as `StepState.source` has it."""
    return f"{run_id}/{attempt}" if step_id == own_id else f"{run_id}/{step_id}/{attempt}"


def read_source(source: str, own_id: str) -> tuple[str, str, int]:
    """The run, the step and the attempt that `source_of` was given."""
    run_id, _, rest = source.partition("/")
    step_id, _, attempt = rest.rpartition("/")
    return run_id, step_id or own_id, int(attempt)


_lock = threading.Lock()
_last = 0


def new_id(now: float | None = None) -> str:
    """An id that sorts by time and is safe in a file name, a URL and a Kubernetes name.

    Those of one process sort in the order in which they were made.
    """
    global _last
    if now is None:
        with _lock:
            _last = milliseconds = max(int(time.time() * 1000), _last + 1)
    else:
        milliseconds = int(now * 1000)
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(milliseconds // 1000))
    return f"{stamp}{milliseconds % 1000:03d}-{secrets.token_hex(3)}"
