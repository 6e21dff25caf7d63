"""The process of a Dask gateway of one's own; reads `port` and `password` from standard input."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from ..runner.notebook_worker import KEY
from .dask_gateways import GIB, own_options

ROUTES = f"{__package__}.dask_scheduler_routes"
IDLE = 12 * 3600.0
"""Seconds without a computation after which a cluster is stopped."""
PATIENCE = 300.0
"""Seconds that a scheduler or a worker has to start: a busy machine takes long."""
LOOK = 5.0
"""Seconds between two looks at whether schedulers and workers are still there."""


def main() -> None:
    order = json.load(sys.stdin)
    from dask_gateway_server.app import DaskGateway
    from traitlets.config import Config

    # Its own log names the clusters, whose names are all that protects their dashboards.
    config = Config(
        {
            "DaskGateway": {
                "log_level": "ERROR",
                "config_file": "",
                "backend_class": "dask_gateway_server.backends.local.UnsafeLocalBackend",
                "authenticator_class": "dask_gateway_server.auth.SimpleAuthenticator",
            },
            "SimpleAuthenticator": {"password": order["password"]},
            "Proxy": {"address": f"127.0.0.1:{order['port']}", "log_level": "error"},
            "UnsafeLocalBackend": {
                "inherited_environment": _inherited(),
                "cluster_options": _options(),
                "cluster_start_timeout": PATIENCE,
                "worker_start_timeout": PATIENCE,
                "cluster_status_period": LOOK,
                "worker_status_period": LOOK,
                "sigint_timeout": 3,
            },
            "LocalClusterConfig": {
                "scheduler_cmd": [sys.executable, "-m", "distributed.cli.dask_scheduler"],
                "worker_cmd": [sys.executable, "-m", "distributed.cli.dask_worker"],
                "idle_timeout": IDLE,
                "scheduler_memory": "1 G",
            },
        }
    )
    DaskGateway.launch_instance(argv=[], config=config)


def _inherited() -> list[str]:
    """Everything but what lets people in; also what marks the processes of a service."""
    return [name for name in os.environ if name != KEY and not name.startswith("DASK_GATEWAY")]


def _options() -> Any:
    from dask_gateway_server.options import Float, Integer, Mapping, Options

    kinds = {"int": Integer, "float": Float, "mapping": Mapping}
    fields = []
    for told in own_options():
        limits = {name: value for name, value in told["spec"].items() if name != "type"}
        kind = kinds[told["spec"]["type"]]
        fields.append(kind(told["field"], default=told["default"], label=told["label"], **limits))
    return Options(*fields, handler=_configuration)


def _configuration(options: Any) -> dict[str, Any]:
    environment = {str(name): str(value) for name, value in options.environment.items()}
    return {
        "worker_cores": options.worker_cores,
        "worker_memory": int(options.worker_memory * GIB),
        "environment": {**_routes(), **environment},
    }


def _routes() -> dict[str, str]:
    """Has schedulers answer with our page, before they look at those of `distributed`."""
    import dask.config
    import distributed  # noqa: F401

    usual = dask.config.get("distributed.scheduler.http.routes")
    return {"DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES": json.dumps([ROUTES, *usual])}


if __name__ == "__main__":
    main()
