"""A real Dask gateway of others, for tests."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.services.dask_gateway_api import ask, configured_gateway

GATEWAY = """
c.DaskGateway.backend_class = "dask_gateway_server.backends.local.UnsafeLocalBackend"
c.DaskGateway.log_level = "ERROR"
c.Proxy.address = "{host}:{port}"
c.SimpleAuthenticator.password = "open sesame"
c.LocalClusterConfig.scheduler_cmd = {scheduler}
c.LocalClusterConfig.worker_cmd = {worker}
from dask_gateway_server import options
c.Backend.cluster_options = options.Options(
    options.Select("image", ["small", "large"]), options.Bool("gpu"), options.String("tag", "x"),
    handler=lambda options: {{}},
)
"""


@contextlib.contextmanager
def running_gateway(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    auth: dict[str, Any],
    more: str = "",
    host: str = "127.0.0.1",
) -> Iterator[str]:
    """A real gateway, named in Dask's configuration with this way of signing in."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        port = probe.getsockname()[1]
    scheduler = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    worker = json.loads(os.environ.get("CONVECT_TEST_WORKER", "null"))
    worker = worker or [sys.executable, "-m", "distributed.cli.dask_worker"]
    config = tmp_path / "gateway_config.py"
    config.write_text(
        GATEWAY.format(host=host, port=port, scheduler=scheduler, worker=worker) + more
    )
    folder = tmp_path / "config"
    folder.mkdir()
    told = {"address": f"http://{host}:{port}/", "auth": auth}
    (folder / "gateway.yaml").write_text(json.dumps({"gateway": told}))
    monkeypatch.setenv("DASK_CONFIG", str(folder))
    monkeypatch.setenv("NO_PROXY", host)
    import dask.config

    monkeypatch.setattr(dask.config, "paths", [str(folder)])
    command = [sys.executable, "-m", "dask_gateway_server", "-f", str(config)]
    with subprocess.Popen(command, cwd=tmp_path) as process:
        other = configured_gateway()
        assert other is not None

        def answers() -> bool:
            with contextlib.suppress(ConvectError):
                return "cluster_options" in ask(other, "/api/v1/options")
            return False

        until(answers, "the gateway answers")
        yield f"http://{host}:{port}"
        process.terminate()
        process.wait(120)
