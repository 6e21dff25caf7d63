"""Functions of notebooks that stay loaded in the cluster: a Deployment behind a Service."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from traitlets.config import Config
from waiting import until

from jupyterlab_convect.client.endpoint_handle import EndpointHandle, create_endpoint
from jupyterlab_convect.client.session import ClientSession
from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.runs.model import Request
from jupyterlab_convect.services.store import ServiceRecord, ServiceStore
from jupyterlab_convect.services.workers import worker_id
from jupyterlab_convect.settings import Settings
from jupyterlab_convect.workspace import Workspace

LOADS = """
import os, pathlib
from beside import scale
print("loaded with", factor, pathlib.Path("data.txt").read_text())
"""
PREDICT = """
def predict(x, add: float = 0):
    if x == "fail":
        raise ValueError("as asked")
    if x == "end":
        os._exit(3)
    return {"y": [scale * factor * each + add for each in x], "user": os.getuid()}
"""


class Desk:
    """A runs folder and a project, with a runtime that has the rights of `deploy/role.yaml`."""

    def __init__(self, bed: Any, home: Path, write_notebook: Any, **traits: Any) -> None:
        self.bed = bed
        self.project = home / "project"
        self.project.mkdir()
        self.write = write_notebook
        given: dict[str, Any] = {"config_file": str(bed.account("convect")), "image": bed.image}
        self.config = Config({"KubernetesRuntime": {**given, "patience": 2, "grace": 1, **traits}})
        self.runs = home / "runs"
        self.session = self.open()

    def open(self) -> ClientSession:
        settings = Settings(config=self.config, runs_dir=str(self.runs))
        return ClientSession(Workspace(settings))

    def model(self, *cells: Any) -> None:
        (self.project / "beside.py").write_text("scale = 10\n")
        (self.project / "data.txt").write_text("a neighbour")
        used = cells or (("parameters", "factor = 2"), LOADS, ("serve", PREDICT))
        self.write(self.project / "model.ipynb", *used)
        for path in (self.project, *self.project.iterdir()):
            path.chmod(0o777)

    def callable(self, settings: Any = None, **more: Any) -> EndpointHandle:
        request = Request(
            "model.ipynb",
            str(self.project),
            runtime="kubernetes",
            parameters={"factor": 3},
            settings=settings or {},
        )
        return create_endpoint(self.session, request, **more)

    @property
    def services(self) -> ServiceStore:
        return ServiceStore(self.session.workspace.store)

    def record(self, endpoint: EndpointHandle) -> ServiceRecord:
        return self.services.read(worker_id(endpoint.id))

    def made(self, kind: str) -> list[Any]:
        admin = self.bed.admin
        found = admin.list(admin.path(kind), labelSelector="app.kubernetes.io/managed-by")
        return [each for each in found if each["metadata"]["name"].startswith("endpoint-")]

    def is_clean(self) -> bool:
        return not any(self.made(kind) for kind in ("deployments", "services", "secrets", "pods"))


@pytest.fixture(params=["shared", "sent"])
def desk(
    bed: Any, tmp_path: Path, write_notebook: Callable[..., Path], request: Any
) -> Iterator[Desk]:
    home, traits = tmp_path, {}
    if request.param == "shared":
        if bed.shared is None:
            pytest.skip("No volume is shared with this cluster.")
        home = bed.shared / secrets.token_hex(4)
        home.mkdir()
        entry = {"path": str(bed.shared), "claim": bed.claim, "sub_path": bed.namespace}
        traits["volumes"] = [entry]
    desk = Desk(bed, home, write_notebook, **traits)
    yield desk
    for record in desk.services.all():
        desk.services.stop(record.service.id)
        asyncio.run(desk.services.until(record.service.id, up=False, timeout=60))
    until(desk.is_clean, "nothing is left in the cluster")


def test_a_function_stays_loaded_in_a_pod(desk: Desk) -> None:
    desk.model()
    endpoint = desk.callable()
    for number in range(2):
        told = endpoint.predict({"x": [1, number]})
        assert told == {"y": [30, 30 * number], "user": 1000}
    record = desk.record(endpoint)
    assert (record.status.state, record.status.reason) == ("ready", None)
    (pod,) = desk.made("pods")
    assert pod["spec"]["containers"][0]["image"] == desk.bed.image
    assert len(desk.made("deployments")) == len(desk.made("services")) == 1
    until(lambda: "loaded with" in desk.services.log(record.service.id), "its log")
    log = desk.services.log(record.service.id)
    assert log.count("loaded with 2 a neighbour") + log.count("loaded with 3 a neighbour") == 1
    with pytest.raises(ConvectError, match="as asked"):
        endpoint.predict({"x": "fail"})
    with pytest.raises(ConvectError, match="predict"):
        endpoint.predict({"add": 1})
    assert "/predict" in endpoint.description()["paths"]
    endpoint.remove()
    until(desk.is_clean, "the end of the Deployment")


def test_the_key_is_needed_in_the_cluster_too(desk: Desk) -> None:
    """Whoever reaches the Service without it, from any pod, is turned away."""
    import urllib.error
    import urllib.request

    if desk.bed.testbed is None:
        pytest.skip("This machine is not in that cluster.")
    desk.model()
    endpoint = desk.callable()
    endpoint.predict({"x": [1]})
    (service,) = desk.made("services")
    url = f"http://{service['spec']['clusterIP']}/predict"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def is_refused() -> bool:
        try:
            opener.open(urllib.request.Request(url, b'{"x": [1]}'), timeout=30)
        except urllib.error.HTTPError as error:
            # The address may still lead to a Service that had it before.
            return error.code == 403 and b"for its endpoint alone" in error.read()
        except OSError:
            return False  # This machine does not know the Service yet.
        raise AssertionError("It answers everybody.")

    until(is_refused, "an answer of the Service")
    endpoint.remove()


@pytest.mark.parametrize("desk", ["sent"], indirect=True)
@pytest.mark.parametrize(
    ("settings", "cells", "reason"),
    [
        ({"image": "localhost/none:1"}, (), "localhost/none:1"),
        ({}, (("serve", "1 / 0\ndef predict(x):\n    return x"),), "ZeroDivisionError"),
    ],
)
def test_what_cannot_start_says_why_and_leaves_nothing(
    desk: Desk, settings: Any, cells: Any, reason: str
) -> None:
    desk.model(*cells)
    endpoint = desk.callable(settings)
    with pytest.raises(ConvectError) as refused:
        endpoint.predict({"x": [1]})
    assert reason in refused.value.sentence
    assert desk.record(endpoint).status.state == "failed"
    until(desk.is_clean, "the end of the Deployment")


@pytest.mark.parametrize("desk", ["sent"], indirect=True)
def test_a_pod_that_does_not_fit_waits_and_says_why(desk: Desk) -> None:
    from jupyterlab_convect.services.workers import worker_of

    desk.model()
    endpoint = desk.callable({"resources": {"cpu": "900"}})
    workspace = desk.session.workspace
    read = endpoint._read()
    worker_of(desk.services, read, workspace.place_of_worker(read.request))
    reason = until(lambda: (desk.record(endpoint).status.reason or "").startswith("Waiting for r"))
    assert reason
    assert desk.record(endpoint).status.reason == (
        "Waiting for room on the node: 1 has too few free cores."
    )
    endpoint.remove()
    until(desk.is_clean, "the end of the Deployment")


@pytest.mark.parametrize("desk", ["sent"], indirect=True)
def test_a_function_that_ends_its_process_is_started_again(desk: Desk) -> None:
    desk.model()
    endpoint = desk.callable()
    assert endpoint.predict({"x": [1]})["y"] == [30]
    with pytest.raises(ConvectError):
        endpoint.predict({"x": "end"})

    def answers() -> bool:
        try:
            return bool(endpoint.predict({"x": [2]})["y"] == [60])
        except ConvectError:
            return False

    until(answers, "an answer of the container that was started again")
    assert len(desk.made("deployments")) == 1
    endpoint.remove()


@pytest.mark.parametrize("desk", ["shared"], indirect=True)
def test_a_host_that_is_killed_leaves_nothing_in_the_cluster(desk: Desk) -> None:
    desk.model()
    endpoint = desk.callable()
    endpoint.predict({"x": [1]})
    (first,) = desk.made("deployments")
    # Another server finds it where it is.
    desk.session.close()
    desk.session = desk.open()
    endpoint = EndpointHandle(desk.session, endpoint.id)
    assert endpoint.predict({"x": [1]})["y"] == [30]
    assert desk.made("deployments")[0]["metadata"]["uid"] == first["metadata"]["uid"]
    os.kill(desk.record(endpoint).status.process["pid"], signal.SIGKILL)
    until(lambda: desk.record(endpoint).status.state == "lost", "somebody looks")
    assert endpoint.predict({"x": [1]})["y"] == [30], "it is started again"

    def others() -> bool:
        names = {each["metadata"]["name"] for each in desk.made("deployments")}
        return first["metadata"]["name"] not in names and len(names) == 1

    until(others, "the end of the Deployment that nobody keeps")
    endpoint.remove()


@pytest.mark.parametrize("desk", ["sent"], indirect=True)
def test_it_is_stopped_when_nobody_calls_and_started_by_the_next_call(desk: Desk) -> None:
    desk.model()
    endpoint = desk.callable(idle=1)
    assert endpoint.predict({"x": [1]})["y"] == [30]
    until(lambda: not desk.record(endpoint).is_up, "it is stopped")
    assert desk.record(endpoint).status.reason == "Nobody used it for 1 s."
    until(desk.is_clean, "the end of the Deployment")
    assert endpoint.predict({"x": [1]})["y"] == [30]
    endpoint.remove()


@pytest.mark.parametrize("desk", ["sent"], indirect=True)
def test_a_call_is_a_run_in_a_pod(desk: Desk) -> None:
    """Over HTTP, by `convect serve`."""
    import subprocess
    import sys
    import urllib.request

    cells = (("parameters", "n = 1"), ("outputs", "import os\ntwice, user = n * 2, os.getuid()"))
    desk.model(*cells)
    config = desk.project.parent / "config"
    config.mkdir()
    name = "jupyter_jupyterlab_convect_config.json"
    (config / name).write_text(json.dumps(desk.config))
    token, out = desk.project.parent / "token", desk.project.parent / "out.txt"
    command = [sys.executable, "-c", "from jupyterlab_convect.cli import program; program()"]
    command += ["serve", "model.ipynb", "--port", "0", "--token-file", str(token)]
    command += ["--runtime", "kubernetes", "--cpu", "100m", "--image", desk.bed.image]
    variables = {"JUPYTER_CONFIG_DIR": str(config), "CONVECT_RUNS_DIR": str(desk.runs)}
    with out.open("wb") as file:
        process = subprocess.Popen(
            command,
            cwd=desk.project,
            env={**os.environ, **variables},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        until(lambda: "Ctrl-C" in out.read_text() or process.poll() is not None, "an address")
        address = out.read_text().split()[0]
        signed = {"Authorization": f"Bearer {token.read_text().strip()}"}

        def ask(path: str, body: bytes | None = None) -> Any:
            request = urllib.request.Request(f"{address}{path}", data=body, headers=signed)
            with urllib.request.urlopen(request, timeout=300) as answer:
                return json.loads(answer.read())

        told = ask("?wait=60", b'{"n": 21}')
        told = until(lambda: ask(f"/runs/{told['id']}?wait=30") if not told["ended"] else told)
        assert told["state"] == "succeeded", told
        assert told["outputs"] == {"twice": 42, "user": 1000}
        (pod,) = desk.bed.pods(told["id"])
        assert pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "100m"
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0
    finally:
        process.kill()
        process.wait()
