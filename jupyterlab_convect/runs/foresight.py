"""What a run would take over from earlier ones, told before it starts."""

from __future__ import annotations

from ..errors import ConvectError
from .model import Run, RunState, StepState
from .results import Results
from .store import Store


def foresee(store: Store, run: Run) -> dict[str, str]:
    """The steps whose earlier result would be taken over, each with the place it lies at.

    A step can be told only when all that it builds on would be taken over too: what the
    others will give is not known yet.
    """
    results, state = Results(store, run, frozenset()), RunState()
    reused: dict[str, str] = {}
    if not run.request.use_cache:
        return reused
    for step in run.plan.steps:
        if not step.cache or any(other not in reused for other in step.after):
            continue
        try:
            bound = results.bind(step, state)
            place, _ = results.earlier(bound, results.parts(bound, state))
            found = results.at(place, step.id) if place else None
        except ConvectError:
            continue
        if place is None or found is None:
            continue
        folder, outcome = found
        results.remember(step.id, folder, outcome)
        outputs = dict(outcome.values)
        state.steps[step.id] = StepState(step.id, "cached", outputs=outputs, source=place)
        reused[step.id] = place
    return reused
