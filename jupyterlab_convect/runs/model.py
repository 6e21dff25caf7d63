"""What a run is: a folder of facts, folded into the state that everybody sees.

`run.json` says what was asked and never changes. `events.ndjson` says what
happened and only grows. `RunState` is the fold of both.
"""

from __future__ import annotations

import itertools
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ..pipeline.plan import Json, Plan

State = Literal[
    "waiting",  # for a step upstream, or for the clock of a retry
    "queued",  # ready, waiting for room on the runtime
    "starting",
    "running",
    "succeeded",
    "failed",
    "cancelled",
    "skipped",  # something upstream failed or was cancelled, or it was not asked for
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
    version: str | None = None
    """The run whose sources are executed again; None means the files as they are now."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What all runs of a sweep are made from, as it was when the sweep was submitted."""

    document: Json = None
    """The pipeline; None when it is a single file."""
    files: Mapping[str, Json] = field(default_factory=dict)
    """What its plans looked up: see `FileCache.facts`."""
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
    """`<run id>/<attempt>` where the result lies when it was taken over from another run."""
    stopping: bool = False
    """Somebody asked to stop it."""
    notices: list[str] = field(default_factory=list)
    """What a reader of the result should know."""
    made: int = 0
    """How many files it created, changed or deleted."""


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
    execute: frozenset[str] | None = None
    """The steps that it was decided to execute when it began; None when that is all of them."""
    reuse: dict[str, str] = field(default_factory=dict)
    """Where the results lie that it was decided to take over, `<run id>/<attempt>`."""
    steps: dict[str, StepState] = field(default_factory=dict)
    files: Json = None
    """What came of putting the files it made into the project: `put` and `kept`."""


def some_of(names: Mapping[str, None] | list[str]) -> str:
    """A few names, and how many more there are."""
    first = list(itertools.islice(names, 3))
    more = len(names) - len(first)
    if more:
        return f"{', '.join(first)} and {more} more"
    return " and ".join(filter(None, (", ".join(first[:-1]), first[-1])))


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
