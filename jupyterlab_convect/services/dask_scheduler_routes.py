"""A page of the schedulers of one's own gateway: who its workers are, also while they compute.

That of `distributed` fails then, because it writes all metrics, whose names are not all texts.
"""

from __future__ import annotations

from typing import Any

from distributed.http.utils import RequestHandler

METRICS = ("cpu", "memory", "task_counts")


class WorkerIdentities(RequestHandler):
    def get(self) -> None:
        told: dict[str, Any] = self.server.identity()
        workers = {
            address: {**worker, "metrics": _plain(worker.get("metrics") or {})}
            for address, worker in told["workers"].items()
        }
        self.write({**told, "workers": workers})


def _plain(metrics: dict[str, Any]) -> dict[str, Any]:
    return {name: metrics[name] for name in METRICS if name in metrics}


routes: list[tuple[str, type, dict[str, Any]]] = [(r"json/identity.json", WorkerIdentities, {})]
