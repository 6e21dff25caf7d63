"""How an attempt ended: what it left (`outputs.json`), and what to make of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ..errors import ConvectError
from ..json_text import is_number, number
from ..pipeline.plan import Json
from ..runner.outcome import INTERRUPTED
from ..runtimes.base import StepStatus
from .json_files import read_json
from .model import State

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
        state, reason = "failed", reason or "It reported an error."
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
        reason = status.reason or _DEFAULT_REASONS.get(state, "It ended without giving a reason.")
    elif outcome.reason == INTERRUPTED and status.state in ("failed", "cancelled"):
        state, reason = status.state, status.reason or INTERRUPTED
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
    "lost": "It can no longer be found, so how it ended is unknown.",
}
