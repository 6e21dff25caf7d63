"""How busy GPUs are, by what NVIDIA's DCGM exporter says: to us, or to a Prometheus server."""

from __future__ import annotations

import json
import math
import socket
import time
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...errors import ConvectError
from ...pipeline.plan import Json
from ...pools import Threads

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
GAP = 60.0
"""Seconds between two looks at an exporter after which nobody knows what was between them."""
PAGE = "/metrics"
"""How the address of an exporter ends; any other is that of a Prometheus server."""
PARALLEL = 16


@dataclass(frozen=True, slots=True)
class GpuUse:
    use: float
    """From 0 to 1, on average over the GPUs of a pod."""
    idle: float | None
    """Seconds since one of them was in use; if none ever was, since they are measured."""


class GpuMetrics:
    """Asks a server of metrics, or the exporters themselves, seldom. Blocks."""

    def __init__(self, address: str) -> None:
        self._address = address.rstrip("/")
        self._history = History()
        self._known: tuple[dict[tuple[str, str], GpuUse], str | None, float] | None = None

    def read(self) -> tuple[dict[tuple[str, str], GpuUse], str | None]:
        """By namespace and pod; and why it is not known, if it is not."""
        if not self._address:
            return {}, None
        if self._known is None or time.monotonic() - self._known[2] > FRESH:
            try:
                self._known = self._look(), None, time.monotonic()
            except ConvectError as error:
                self._known = {}, error.sentence, time.monotonic()
        return self._known[0], self._known[1]

    def _look(self) -> dict[tuple[str, str], GpuUse]:
        now = time.time()
        try:
            if self._address.endswith(PAGE):
                series = [each for page in _pages(self._address) for each in series_of(page)]
                return self._history.use(series, now)
            return gpu_use(self._ask(USE_QUERY), self._ask(IDLE_QUERY), self._ask(SEEN_QUERY), now)
        except (OSError, ValueError, KeyError, TypeError) as error:
            words = getattr(error, "reason", None) or error
            raise ConvectError(
                f"The metrics of GPUs cannot be read: {words}.", code="no-metrics"
            ) from None

    def _ask(self, query: str) -> list[Json]:
        given = urllib.parse.urlencode({"query": query})
        content = json.loads(_read(f"{self._address}/api/v1/query?{given}"))
        result: list[Json] = content["data"]["result"]
        return result


class History:
    """What a server of metrics would remember, for as long as somebody looks."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, str], float] = {}
        self._busy: dict[tuple[str, str], float] = {}
        self._last = 0.0

    def use(self, series: Iterable[Json], now: float) -> dict[tuple[str, str], GpuUse]:
        """By namespace and pod, of what exporters say now."""
        seen = _by_pod(series)
        if now - self._last > GAP:
            self._since, self._busy = {}, {}
        self._last = now
        self._since = {key: self._since.get(key, now) for key in seen}
        busy = {key: now for key, values in seen.items() if max(values) >= BUSY}
        self._busy = {key: at for key, at in {**self._busy, **busy}.items() if key in seen}
        return {
            key: GpuUse(
                sum(values) / len(values) / 100, now - self._busy.get(key, self._since[key])
            )
            for key, values in seen.items()
        }


def _pages(address: str) -> list[str]:
    """What the exporters behind a name say: there is one on each node with GPUs, and a Service
    without an address of its own (`clusterIP: None`) names them all."""
    parts = urllib.parse.urlsplit(address)
    if parts.scheme != "http":
        return [_read(address).decode()]
    port = parts.port or 80
    found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    hosts = {str(each[4][0]) for each in found}
    urls = [
        parts._replace(netloc=f"[{host}]:{port}" if ":" in host else f"{host}:{port}").geturl()
        for host in sorted(hosts)
    ]
    with Threads(min(PARALLEL, len(urls)), "convect-metrics") as threads:
        return [page.decode() for page in threads.map(_read, urls)]


def _read(url: str) -> bytes:
    # An administrator has configured the address.
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:  # noqa: S310
        data: bytes = answer.read(LARGEST)
    return data


def series_of(page: str) -> list[Json]:
    """The metric on the page of an exporter, as a Prometheus server answers. Pure."""
    from prometheus_client.parser import text_string_to_metric_families

    return [
        {"metric": sample.labels, "value": [0, sample.value]}
        for family in text_string_to_metric_families(page)
        if family.name == METRIC
        for sample in family.samples
    ]


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
