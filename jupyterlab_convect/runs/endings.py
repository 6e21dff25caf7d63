"""How a run ends, and what to say of steps that never began."""

from __future__ import annotations

from .events import RunEnd
from .model import Run, RunState, State, StepState, some_of

_ENDINGS: dict[State, str] = {
    "failed": "failed",
    "cancelled": "was stopped",
    "skipped": "was skipped",
    "lost": "was lost",
}


def skipped_because(culprit: StepState) -> str:
    return f"Skipped because {culprit.id} {_ENDINGS.get(culprit.state, 'did not succeed')}."


def conclusion(run: Run, state: RunState, now: float) -> RunEnd:
    """The end of a run whose steps have all ended."""
    by_state: dict[State, list[str]] = {}
    for step in run.plan.steps:
        by_state.setdefault(state.steps[step.id].state, []).append(step.id)
    bad = [*by_state.get("failed", []), *by_state.get("lost", [])]
    if bad:
        first = state.steps[bad[0]]
        if len(bad) == 1:
            return RunEnd(now, "failed", f"{first.id} {_ENDINGS[first.state]}: {first.reason}")
        return RunEnd(now, "failed", f"{some_of(bad)} failed. {first.id}: {first.reason}")
    if state.stopping or "cancelled" in by_state:
        return RunEnd(now, "cancelled", "Stopped.")
    return RunEnd(now, "succeeded")
