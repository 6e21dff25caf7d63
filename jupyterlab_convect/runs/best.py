"""Which run of a sweep is the best: said as `max:accuracy` or `min:loss`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from ..errors import ConvectError
from ..json_text import is_finite
from ..pipeline.metrics import Reported, require, suggest
from ..pipeline.plan import Json
from .model import GOOD

NONE = "none"
"""What to ask for when no run is to be marked."""


def parse_select(select: str) -> tuple[bool, str]:
    """Whether the best is the largest, and by which metric."""
    match = re.fullmatch(r"(max|min):(.+)", select.strip())
    if match is None:
        raise ConvectError(
            f"{select!r} does not say which run is best.",
            hint="For example max:accuracy, min:loss, or none.",
        )
    return match[1] == "max", match[2].strip()


def settle(select: str | None, reported: Reported) -> str | None:
    """How the best run of a sweep is told: as asked, or by itself where that is plain.

    `none` asks for none. Refused when there cannot be such a metric.
    """
    if select is None:
        return suggest(reported)
    if select.strip() == NONE:
        return None
    largest, metric = parse_select(select)
    require(metric, reported)
    return f"{'max' if largest else 'min'}:{metric}"


def best_of(select: str | None, runs: Mapping[str, Mapping[str, Json]]) -> str | None:
    """The id of the best of the successful runs; of equals, the first.

    A run whose number is NaN or infinite is never the best.
    """
    if select is None:
        return None
    largest, metric = parse_select(select)
    found = {
        run_id: value
        for run_id, run in runs.items()
        if run["state"] in GOOD and is_finite(value := run["metrics"].get(metric, math.nan))
    }
    if not found:
        return None
    return max(found, key=lambda run_id: found[run_id] if largest else -found[run_id])
