"""What an attempt is told (`step.json`), what it tells (`outputs.json`), and what to make of it."""

from __future__ import annotations

import contextlib
import posixpath
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ..errors import ConvectError
from ..json_text import is_number, number
from ..pipeline.plan import Json, Step
from ..runtimes.base import StepStatus
from .files import read_json
from .model import Run, State
from .project import working_folder
from .snapshots import Snapshots

SOURCE = "source.txt"

LAST_TIME = 1e11
"""Seconds; a moment that no calendar knows is damage."""

FileFact = dict[str, Json]
"""`path`, `size` and `digest` of a file that a step left."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The content of `outputs.json`."""

    state: Literal["succeeded", "failed", "cancelled"]
    reason: str | None = None
    started: float | None = None
    ended: float | None = None
    values: dict[str, Json] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    parameters: dict[str, Json] = field(default_factory=dict)
    """Values that the source computed for parameters that it was not given."""
    files: list[FileFact] = field(default_factory=list)
    made: int = 0
    """How many files `made.json` lists."""
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """How an attempt ended, once everything that is known of it is put together."""

    state: State
    reason: str | None = None
    detail: str | None = None
    outcome: Outcome | None = None


def describe(
    run: Run,
    step: Step,
    attempt: int,
    folder: Path,
    upstream: Mapping[str, tuple[Step, Path, list[FileFact]]],
    expected: float | None,
    snapshots: Snapshots,
) -> dict[str, Json]:
    """The content of `step.json` for a bound step whose attempt lives in `folder`.

    `upstream` has each result it builds on: the step, the folder of its attempt, its files.
    Where the step has a view of the project, that is still missing.
    """
    root = Path(run.request.root)
    source = None if step.path is None else root / step.path
    described: dict[str, Json] = {
        "run": {"id": run.id, "name": run.name},
        "step": step.id,
        "attempt": attempt,
        "kind": step.kind,
        "source": None if source is None else str(source),
        "copy": _copy(snapshots, step),
        "digest": step.digest,
        "folder": str(working_folder(run.plan, step, root, folder)),
        "inputs": [
            {"from": str(origin), "to": target}
            for target, origin in _inputs(run, step, upstream, snapshots).items()
        ],
        "kernel": step.kernel,
        "parameters": dict(step.parameters),
        "computed": list(step.computed),
        "command": list(step.command),
        "env": dict(step.env),
        "outputs": list(step.outputs),
        "metrics": dict(step.metrics),
        "timeout": step.timeout,
        "expected": expected,
    }
    return described | _component(run, step, folder) if step.kind == "component" else described


def _copy(snapshots: Snapshots, step: Step) -> str | None:
    """Where the source is kept as it was at submit."""
    kept = None if step.digest is None else snapshots.object(step.digest)
    return str(kept) if kept is not None and kept.exists() else None


def keep_source(snapshots: Snapshots, step: Step, folder: Path) -> None:
    """Show a script as it is executed: unlike a notebook, it leaves no copy of itself."""
    if step.kind == "script" and step.digest is not None:
        with contextlib.suppress(OSError):  # whoever runs it says what is wrong with it
            shutil.copyfile(snapshots.object(step.digest), folder / SOURCE)


def _component(run: Run, step: Step, folder: Path) -> dict[str, Json]:
    """A component renders its own command, from what it is given, when it starts."""
    definition = run.plan.components[step.component or ""]
    given = {
        "definition": definition,
        "arguments": dict(step.parameters),
        "image": step.image,
        "secrets": [secret.env for secret in step.secrets],
        "root": run.request.root,
    }
    return {
        "parameters": {},
        "command": [sys.executable, "-m", "jupyterlab_convect.catalog.execute", str(folder)],
        "outputs": [*step.outputs, *(["outputs"] if definition.get("outputs") else [])],
        "component": given,
    }


def _inputs(
    run: Run,
    step: Step,
    upstream: Mapping[str, tuple[Step, Path, list[FileFact]]],
    snapshots: Snapshots,
) -> dict[str, Path]:
    """What has to be put into the working folder, because it is not there by itself."""
    isolated = step.working_folder == "isolated" and step.kind != "component"
    placed: dict[str, Path] = {}
    if isolated:
        root = Path(run.request.root)
        home = posixpath.dirname(step.path or run.plan.path or "")
        for file in step.dependencies:
            relative = posixpath.relpath(file.path, home or ".")
            target = file.path if relative.startswith("..") else relative
            kept = snapshots.object(file.digest)
            placed[target] = kept if kept.exists() else root / file.path
    for other, folder, files in upstream.values():
        # What a component leaves is handed on by its path, not by its place in a folder.
        if other.kind != "component" and (isolated or other.working_folder == "isolated"):
            for fact in files:
                placed[str(fact["path"])] = folder / "files" / str(fact["path"])
    return placed


def read_outcome(folder: Path) -> Outcome | None:
    """How the attempt in this folder ended; None when it has not; ConvectError when damaged."""
    path = folder / "outputs.json"
    if not path.exists():
        return None
    value = read_json(path)
    try:
        return _outcome(value)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConvectError(
            f"outputs.json is damaged: {type(error).__name__} {error}.", code="damaged"
        ) from None


def _outcome(value: dict[str, Json]) -> Outcome:
    state = value["state"]
    if state not in ("succeeded", "failed", "cancelled"):
        raise ValueError(f"{state!r} is no way to end")
    reason = value.get("reason")
    if state == "succeeded" and value.get("error"):
        state, reason = "failed", reason or "It left an error behind."
    metrics = dict(value.get("metrics") or {})
    files = [dict(fact) for fact in value.get("files") or ()]
    for fact in files:
        _check_inside(str(fact["path"]))
    return Outcome(
        state=state,
        reason=None if reason is None else str(reason),
        started=_time(value.get("started")),
        ended=_time(value.get("ended")),
        values=dict(value.get("values") or {}),
        metrics={name: number(item) for name, item in metrics.items() if is_number(item)},
        parameters=dict(value.get("parameters") or {}),
        files=files,
        made=int(value.get("made") or 0),
        notices=tuple(map(str, value.get("notices") or ())),
    )


def _check_inside(path: str) -> None:
    if path.startswith("/") or ".." in path.split("/"):
        raise ValueError(f"the file {path} lies outside")


def _time(value: Json) -> float | None:
    return value if is_number(value) and abs(value) < LAST_TIME else None


def judge(
    status: StepStatus,
    folder: Path,
    stopping: Literal["asked", "timeout"] | None,
    timeout: float | None,
) -> Verdict:
    """Put together what the runtime says and what the attempt left; the latter is the truth."""
    try:
        outcome = read_outcome(folder)
    except ConvectError as error:
        return Verdict("failed", f"The result cannot be read: {error.sentence}", status.detail)
    if outcome is None:
        if status.state == "succeeded":
            return Verdict("failed", "It ended without leaving a result.", status.detail)
        state: State = status.state
        reason = status.reason or _DEFAULT_REASONS.get(state, "It ended without a reason.")
    else:
        state = outcome.state
        reason = outcome.reason or status.reason or _DEFAULT_REASONS.get(state, "")
    if state == "succeeded":
        return Verdict("succeeded", None, status.detail, outcome)
    if stopping == "timeout" and state == "cancelled":
        state, reason = "failed", f"Timed out after {timeout:g} s."
    if stopping == "asked" and state in ("failed", "lost") and outcome is None:
        state, reason = "cancelled", "Stopped."
    return Verdict(state, reason, status.detail, outcome)


_DEFAULT_REASONS: Mapping[State, str] = {
    "failed": "It failed and gave no reason.",
    "cancelled": "It was stopped from outside.",
    "lost": "It cannot be found any more, so nobody knows how it ended.",
}
