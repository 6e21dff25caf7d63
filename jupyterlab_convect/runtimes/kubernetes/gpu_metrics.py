"""How busy GPUs are, by what NVIDIA's DCGM exporter has told a Prometheus server."""

from __future__ import annotations

import json
import math
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...errors import ConvectError
from ...pipeline.plan import Json

METRIC = "DCGM_FI_DEV_GPU_UTIL"
BUSY = 1
"""Per cent from which on a GPU is in use."""
LOOKBACK = "6h"
PATIENCE = 5.0
LARGEST = 8 << 20
USE_QUERY = METRIC
IDLE_QUERY = f"max_over_time(timestamp({METRIC} >= {BUSY})[{LOOKBACK}:1m])"
SEEN_QUERY = f"60 * count_over_time({METRIC}[{LOOKBACK}:1m])"
"""For how many seconds a GPU has been seen, up to as long as we look back."""
FRESH = 15.0


@dataclass(frozen=True, slots=True)
class GpuUse:
    use: float
    """From 0 to 1, on average over the GPUs of a pod."""
    idle: float | None
    """Seconds since one of them was in use; if none ever was, since they are measured."""


class GpuMetrics:
    """Asks a server of metrics, seldom. Blocks."""

    def __init__(self, address: str) -> None:
        self._address = address.rstrip("/")
        self._known: tuple[dict[tuple[str, str], GpuUse], str | None, float] | None = None

    def read(self) -> tuple[dict[tuple[str, str], GpuUse], str | None]:
        """By namespace and pod; and why it is not known, if it is not."""
        if not self._address:
            return {}, None
        if self._known is None or time.monotonic() - self._known[2] > FRESH:
            try:
                now = time.time()
                found = gpu_use(
                    self._ask(USE_QUERY), self._ask(IDLE_QUERY), self._ask(SEEN_QUERY), now
                )
                self._known = found, None, time.monotonic()
            except ConvectError as error:
                self._known = {}, error.sentence, time.monotonic()
        return self._known[0], self._known[1]

    def _ask(self, query: str) -> list[Json]:
        given = urllib.parse.urlencode({"query": query})
        url = f"{self._address}/api/v1/query?{given}"
        try:
            # An administrator has configured the address.
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:  # noqa: S310
                content = json.loads(answer.read(LARGEST))
            result: list[Json] = content["data"]["result"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            words = getattr(error, "reason", None) or error
            raise ConvectError(
                f"The metrics of GPUs cannot be read: {words}.", code="no-metrics"
            ) from None
        return result


def gpu_use(
    now: Iterable[Json], last_busy: Iterable[Json], seen: Iterable[Json], time_now: float
) -> dict[tuple[str, str], GpuUse]:
    """By namespace and pod, of what the three queries answered. Pure."""
    uses, busy, known = _by_pod(now), _by_pod(last_busy), _by_pod(seen)

    def idle(key: tuple[str, str]) -> float | None:
        if key in busy:
            return max(time_now - max(busy[key]), 0.0)
        return max(known[key]) if key in known else None

    return {key: GpuUse(sum(values) / len(values) / 100, idle(key)) for key, values in uses.items()}


def _by_pod(answer: Iterable[Json]) -> dict[tuple[str, str], list[float]]:
    found: dict[tuple[str, str], list[float]] = {}
    for series in answer:
        key, value = _pod_of(series), _value(series)
        if key is not None and value is not None:
            found.setdefault(key, []).append(value)
    return found


def _pod_of(series: Json) -> tuple[str, str] | None:
    """Prometheus renames labels that the target has, too."""
    labels: Mapping[str, str] = series.get("metric") or {}
    pod = labels.get("exported_pod") or labels.get("pod")
    namespace = labels.get("exported_namespace") or labels.get("namespace")
    return (namespace, pod) if pod and namespace else None


def _value(series: Json) -> float | None:
    try:
        number = float(series["value"][1])
    except (KeyError, IndexError, TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
