"""A Dask cluster for a step that is a pod, on a real gateway that pods reach."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from dask_gateway_bed import running_gateway
from waiting import eventually

from jupyterlab_convect.runs.provisions import Provisions
from jupyterlab_convect.services import dask_gateways
from jupyterlab_convect.services.dask_clusters import DaskClusters
from jupyterlab_convect.services.dask_steps import DaskForSteps
from jupyterlab_convect.services.store import ServiceStore

CONNECT = """
import os, pathlib, socket, ssl, tempfile
from urllib.parse import urlsplit
tls = "DASK_DISTRIBUTED__COMM__TLS__"
address = urlsplit(os.environ["DASK_SCHEDULER_ADDRESS"])
name = os.environ["CONVECT_DASK_CLUSTER"]
assert address.path == "/" + name
context = ssl.create_default_context(cadata=os.environ[tls + "CA_FILE"])
context.check_hostname = False
with tempfile.TemporaryDirectory() as folder:
    key = pathlib.Path(folder, "key")
    key.write_text(os.environ[tls + "CLIENT__KEY"] + os.environ[tls + "CLIENT__CERT"])
    context.load_cert_chain(key)
plain = socket.create_connection((address.hostname, address.port), 60)
with context.wrap_socket(plain, server_hostname="daskgateway-" + name) as stream:
    print("the scheduler speaks", stream.version(), "and is", name)
"""


@pytest.mark.skipif(not dask_gateways.is_installed(), reason="Dask is not installed")
async def test_a_pod_reaches_the_cluster_that_was_made_for_it(
    lab: Any, bed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its image has no Dask: it does what `Client()` does first."""
    if bed.testbed is None:
        pytest.skip("Pods of another cluster would not reach a gateway here.")
    import places

    lab.engine.provisions = Provisions([DaskForSteps(lab.store)])
    lab.write("work.py", CONNECT)
    clusters = DaskClusters(ServiceStore(lab.store))
    auth = {"kwargs": {"password": "open sesame"}}
    with running_gateway(tmp_path, monkeypatch, auth, host=places.ADDRESS):
        run, _ = await lab.succeed({"a": {"kind": "script", "path": "work.py", "dask": {}}})
        log = (lab.result(run, "a") / "log.txt").read_text()
        assert "the scheduler speaks TLSv1." in log
        assert "and is ***" in log
        manifest = (lab.result(run, "a") / "manifest.json").read_text()
        assert "PRIVATE KEY" not in manifest
        await eventually(
            lambda: asyncio.to_thread(lambda: not clusters.all()), "no cluster is left"
        )
