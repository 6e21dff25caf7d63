"""How busy GPUs are, as exporters and servers of metrics say it over HTTP.

NVIDIA's DCGM exporter needs its GPUs, so its pages are served here in its format.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from jupyterlab_convect.runtimes.kubernetes import gpu_metrics
from jupyterlab_convect.runtimes.kubernetes.gpu_metrics import (
    METRIC,
    GpuMetrics,
    GpuUse,
    History,
    gpu_use,
    series_of,
)

HEADER = """# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz).
# TYPE DCGM_FI_DEV_SM_CLOCK gauge
DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-1",pci_bus_id="00000000:01:00.0",device="nvidia0"} 139
# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
"""


def line(gpu: int, pod: str, value: object) -> str:
    labels = {
        "gpu": str(gpu),
        "UUID": f"GPU-{gpu}",
        "device": f"nvidia{gpu}",
        "modelName": "NVIDIA A100-SXM4-40GB",
        "Hostname": "n1",
        "container": "main" if pod else "",
        "namespace": "team" if pod else "",
        "pod": pod,
    }
    words = ",".join(f'{name}="{text}"' for name, text in labels.items())
    return f"{METRIC}{{{words}}} {value}\n"


PAGE = HEADER + line(0, "train", 90) + line(1, "train", 70) + line(2, "idle", 0) + line(3, "", 0)


class Site(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        self.page = PAGE
        self.answers: dict[str, list[object]] = {}
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def address(self) -> str:
        return f"http://localhost:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/metrics":
            kind, text = "text/plain; version=0.0.4", self.server.page
        else:
            (query,) = parse_qs(parts.query)["query"]
            kind = "application/json"
            text = json.dumps({"data": {"result": self.server.answers.get(query, [])}})
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(gpu_metrics, "FRESH", -1.0)
    with Site() as site:
        thread = threading.Thread(target=site.serve_forever)
        thread.start()
        yield site
        site.shutdown()
        thread.join()


def test_the_page_of_an_exporter_is_read(site: Site) -> None:
    metrics = GpuMetrics(f"{site.address}/metrics")
    found, trouble = metrics.read()
    assert trouble is None
    assert found.keys() == {("team", "train"), ("team", "idle")}
    assert found["team", "train"] == GpuUse(0.8, 0.0)
    assert found["team", "idle"].use == 0
    site.page = "<html>"
    assert metrics.read()[0] == {}


def test_what_is_no_page_of_metrics_is_a_sentence(site: Site) -> None:
    site.page = f'{METRIC}{{pod="a" 7'
    found, trouble = GpuMetrics(f"{site.address}/metrics").read()
    assert found == {}
    assert trouble is not None
    assert trouble.startswith("The metrics of GPUs cannot be read: ")
    _, trouble = GpuMetrics("http://127.0.0.1:1/metrics").read()
    assert trouble is not None
    assert "Connection refused" in trouble


def test_a_server_of_metrics_is_asked(site: Site) -> None:
    series = {"metric": {"exported_pod": "a", "exported_namespace": "x"}, "value": [0, "50"]}
    site.answers = {METRIC: [series]}
    assert GpuMetrics(site.address).read() == ({("x", "a"): GpuUse(0.5, None)}, None)


def test_idle_time_is_what_was_seen_and_no_more() -> None:
    history = History()

    def look(now: float, *lines: str) -> dict[str, float | None]:
        seen = history.use(series_of(HEADER + "".join(lines)), now)
        return {pod: use.idle for (_, pod), use in seen.items()}

    assert look(1000, line(0, "a", 50), line(1, "b", 0)) == {"a": 0, "b": 0}
    assert look(1030, line(0, "a", 0), line(1, "b", 0)) == {"a": 30, "b": 30}
    assert look(1060, line(0, "a", 0), line(1, "b", 99)) == {"a": 60, "b": 0}
    # Nobody looked for a while: it may have been busy meanwhile.
    assert look(2000, line(0, "a", 0), line(1, "b", 0)) == {"a": 0, "b": 0}


def test_gpu_use_is_that_of_pods_by_either_label() -> None:
    now = [
        {"metric": {"exported_pod": "a", "exported_namespace": "x"}, "value": [0, "50"]},
        {"metric": {"exported_pod": "a", "exported_namespace": "x"}, "value": [0, "100"]},
        {"metric": {"pod": "b", "namespace": "y"}, "value": [0, "0"]},
        {"metric": {"gpu": "0"}, "value": [0, "7"]},
        {"metric": {"pod": "c", "namespace": "y"}, "value": [0, "NaN"]},
    ]
    busy = [{"metric": {"exported_pod": "a", "exported_namespace": "x"}, "value": [0, "940"]}]
    seen = [{"metric": {"pod": "b", "namespace": "y"}, "value": [0, "600"]}]
    assert gpu_use(now, busy, seen, 1000.0) == {
        ("x", "a"): GpuUse(0.75, 60.0),
        ("y", "b"): GpuUse(0.0, 600.0),
    }
