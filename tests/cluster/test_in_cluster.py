"""The server itself in a pod with a volume: it finds its volume, and steps see the same files."""

from __future__ import annotations

import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import datetime, timezone
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import PROJECT, RBAC, USER
from waiting import until

from jupyterlab_convect.routes import requests
from jupyterlab_convect.runtimes.kubernetes.api import ApiError

HOME = "/home/ana"
TOKEN = "a-token-for-the-test"
SECURITY = {
    "runAsUser": USER,
    "runAsGroup": USER,
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}

UNPRIVILEGED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


class Server:
    def __init__(self, address: str) -> None:
        self._address = f"http://{address}:8888/jupyterlab-convect/api/v1/"

    def __call__(self, verb: str, path: str, body: Any = None, token: str = TOKEN) -> Any:
        request = urllib.request.Request(
            self._address + path,
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"token {token}", "Content-Type": "application/json"},
            method=verb,
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=120) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from None

    def answers(self) -> bool:
        try:
            return bool(self("GET", "about"))
        except (OSError, AssertionError):
            return False


def _copy_package(target: Path) -> None:
    """The package as an installation has it, where the pod can import it."""
    own = Path(str(distribution("jupyterlab-convect").locate_file("")))
    facts = next(own.glob("jupyterlab_convect-*.dist-info"))
    shutil.copytree(facts, target / facts.name)
    skip = shutil.ignore_patterns("labextension", "__pycache__")
    for needed in ("cronsim", "tzdata"):
        shutil.copytree(own / needed, target / needed, ignore=skip)
    shutil.copytree(PROJECT / "jupyterlab_convect", target / "jupyterlab_convect", ignore=skip)


@pytest.fixture(scope="module")
def site(bed: Any) -> None:
    """What every server needs: the package, and the rights of `deploy/`."""
    if bed.testbed is None:
        pytest.skip("It needs the image of the test bed.")
    _copy_package(bed.shared / "site")
    (bed.shared / "home").mkdir()
    binding = yaml.safe_load((PROJECT / "deploy" / "binding.yaml").read_text())
    bed.admin.create(f"{RBAC}/namespaces/{bed.namespace}/rolebindings", binding)
    one_node = {"hostPath": {"path": str(bed.testbed.SHARED)}}
    bed.make_claim("one-node", one_node, ["ReadWriteOnce"])


@pytest.fixture(params=["shared", "one-node"])
def claim(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(bed: Any, site: None, claim: str) -> Iterator[Server]:
    import images

    own = bed.namespace

    extensions = "--ServerApp.jpserver_extensions={'jupyterlab_convect': True}"
    bed.create(
        "Pod",
        "jupyter-ana",
        spec={
            "securityContext": SECURITY,
            "containers": [
                # A mesh puts its proxy before what was there.
                {"name": "proxy", "image": images.PAUSE, "securityContext": UNPRIVILEGED},
                {
                    "name": "notebook",
                    "image": images.SERVER,
                    "command": [
                        *("python3", "-m", "jupyter_server", "--ServerApp.ip=0.0.0.0"),
                        f"--IdentityProvider.token={TOKEN}",
                        f"--ServerApp.root_dir={HOME}",
                        extensions,
                    ],
                    "env": [
                        {"name": "PYTHONPATH", "value": "/site"},
                        {"name": "CONVECT_RUNS_DIR", "value": f"{HOME}/.convect"},
                        {"name": "HOME", "value": "/tmp"},
                    ],
                    "volumeMounts": [
                        {"name": "volume", "mountPath": HOME, "subPath": f"{own}/home"},
                        {
                            "name": "volume",
                            "mountPath": "/site",
                            "subPath": f"{bed.namespace}/site",
                        },
                    ],
                    "securityContext": UNPRIVILEGED,
                },
            ],
            "volumes": [{"name": "volume", "persistentVolumeClaim": {"claimName": claim}}],
        },
    )
    place = bed.admin.path("pods", "jupyter-ana")
    address = until(lambda: bed.admin.get(place)["status"].get("podIP"), "an address")
    server = Server(address)
    until(server.answers, "an answer of the server")
    yield server
    bed.admin.delete(place, gracePeriodSeconds=0)
    until(lambda: _is_gone(bed, place), "the end of the server")


def _is_gone(bed: Any, place: str) -> bool:
    try:
        bed.admin.get(place)
    except ApiError as error:
        return error.status == 404
    return False


def test_a_notebook_runs_through_a_server_in_a_pod(
    bed: Any, server: Server, claim: str, write_notebook: Any
) -> None:
    home = bed.shared / "home"
    (home / "data.txt").write_text("a neighbour")
    write_notebook(
        home / "项目" / "a.ipynb",
        ("parameters", "n = 1"),
        "import os, pathlib",
        "print(open('../data.txt').read(), pathlib.Path.cwd().name, os.getuid())",
        ("outputs", "twice = n * 2"),
    )
    body = {"path": "项目/a.ipynb", "runtime": "kubernetes", "parameters": {"n": 21}}
    problems = server("POST", "runtimes/kubernetes/check", body)["problems"]
    assert problems[-1]["code"] == "unknown"
    said = [item["message"] for item in problems if item["code"] == "files"]
    if claim == "one-node":
        assert said[0] == (
            f"The volume at {HOME} can be used on one node at a time: "
            "steps run on n1, where this server is."
        )
    else:
        assert said == []
    run = server("POST", "runs", body)
    until(lambda: server("GET", f"runs/{run['id']}")["ended"], "the run ended")
    seen = server("GET", f"runs/{run['id']}")
    assert seen["state"] == "succeeded", seen
    (step,) = seen["steps"].values()
    assert step["outputs"] == {"twice": 42}
    log = server("GET", f"runs/{run['id']}/steps/{step['id']}/1/log")["text"]
    assert log == f"a neighbour 项目 {USER}\n"
    pod = bed.pods(run["id"])[0]["spec"]
    own = bed.admin.get(bed.admin.path("pods", "jupyter-ana"))["spec"]
    assert pod["containers"][0]["image"] == own["containers"][1]["image"]
    assert ("affinity" in pod) == (claim == "one-node")
    top = server("GET", "runtimes/kubernetes/top")
    assert top["namespace"] == bed.namespace
    requests.check_body(top, "Overview")


@pytest.fixture
def no_proxy(bed: Any) -> Iterator[None]:
    """Without the right to reach Services through the API server."""
    place = f"{RBAC}/namespaces/{bed.namespace}/roles/jupyterlab-convect"
    given = bed.admin.get(place)
    rules = [each for each in given["rules"] if each["resources"] != ["services/proxy"]]
    assert len(rules) == len(given["rules"]) - 1
    bed.admin.replace(place, {**given, "rules": rules})
    yield
    bed.admin.replace(place, {**bed.admin.get(place), "rules": given["rules"]})


@pytest.mark.parametrize("claim", ["shared"], indirect=True)
def test_a_server_in_a_pod_reaches_a_function_by_its_service(
    bed: Any, no_proxy: None, server: Server, write_notebook: Any
) -> None:
    home = bed.shared / "home" / "served"
    write_notebook(
        home / "model.ipynb",
        ("parameters", "factor = 2"),
        "import os\nprint('loaded with', factor)",
        ("serve", "def predict(x):\n    return {'y': [factor * each for each in x]}"),
    )
    body = {"path": "served/model.ipynb", "runtime": "kubernetes", "parameters": {"factor": 3}}
    endpoint = server("POST", "endpoints", body)
    call = f"call/{endpoint['id']}"

    def predict(x: list[int]) -> Any:
        return server("POST", f"{call}/predict", {"x": x}, endpoint["token"])

    assert predict([1, 2]) == {"y": [3, 6]}
    assert predict([5]) == {"y": [15]}
    ready = server("GET", f"{call}/v2/health/ready", token=endpoint["token"])
    assert ready is not None
    (worker,) = server("GET", "services")["services"]
    assert (worker["kind"], worker["state"]) == ("endpoint", "ready")
    log = server("GET", f"services/{worker['id']}/log")["text"]
    assert log.count("loaded with 3") == 1

    def made(kind: str) -> list[Any]:
        label = f"jupyterlab-convect.dev/endpoint={endpoint['id']}"
        found: list[Any] = bed.admin.list(bed.admin.path(kind), labelSelector=label)
        return found

    (deployment,) = made("deployments")
    (pod,) = made("pods")
    own = bed.admin.get(bed.admin.path("pods", "jupyter-ana"))
    assert pod["status"]["podIP"] != own["status"]["podIP"]
    # Nobody could call it once the server's pod is gone: it goes with that.
    (owner,) = deployment["metadata"]["ownerReferences"]
    assert owner["uid"] == own["metadata"]["uid"]
    bed.admin.delete(bed.admin.path("pods", "jupyter-ana"), gracePeriodSeconds=0)
    until(lambda: not made("deployments") and not made("pods"), "the end of the Deployment")


def _engine_pods(bed: Any) -> list[Any]:
    label = "jupyterlab-convect.dev/schedule"
    found: list[Any] = bed.admin.list(bed.admin.path("pods"), labelSelector=label)
    return found


def test_a_cron_job_runs_a_notebook_while_the_server_is_off(
    bed: Any, server: Server, claim: str, write_notebook: Any
) -> None:
    """With the rights of `deploy/`, for the server and for what the CronJob starts."""
    write_notebook(
        bed.shared / "home" / "timed" / "a.ipynb",
        ("parameters", "due = ''"),
        ("outputs", "seen = due"),
    )
    body = {
        "request": {
            "path": "timed/a.ipynb",
            "runtime": "kubernetes",
            "parameters": {"due": "${{ schedule.utc }}"},
        },
        "clock": {"cron": "* * * * *", "zone": "Asia/Shanghai"},
        "name": "every minute",
        "kept_by": "runtime",
        "overlap": "queue",
        "missed": "none",
    }
    made = server("POST", "schedules", body)
    (cron_job,) = bed.admin.list(bed.admin.path("cronjobs"))
    assert cron_job["spec"]["timeZone"] == "Asia/Shanghai"
    bed.admin.delete(bed.admin.path("pods", "jupyter-ana"), gracePeriodSeconds=0)
    ledger = bed.shared / "home" / ".convect" / "schedules" / made["id"] / "ledger.ndjson"

    def submitted() -> list[Any]:
        lines = ledger.read_text().splitlines() if ledger.exists() else []
        return [each for each in map(json.loads, lines) if each["type"] == "submitted"]

    until(submitted, "a run of the CronJob")
    until(
        lambda: any(pod["status"]["phase"] == "Succeeded" for pod in _engine_pods(bed)),
        "the end of what the CronJob started",
    )
    place = bed.admin.path("cronjobs")
    bed.admin.delete(f"{place}/{cron_job['metadata']['name']}")
    until(lambda: bed.admin.list(place) == [], "the end of the CronJob")
    (first, *_) = submitted()
    events = [json.loads(line) for line in ledger.read_text().splitlines()]
    run_id = next(
        each["run"] for each in events if each["type"] == "run" and each["due"] == first["due"]
    )
    dues = [each["due"] for each in events if each["type"] == "run"]
    assert len(dues) == len(set(dues))
    run = bed.shared / "home" / ".convect" / run_id
    outputs = json.loads(next(run.glob("steps/*/1/outputs.json")).read_text())
    told = datetime.fromtimestamp(first["due"], timezone.utc)
    assert outputs["values"]["seen"] == told.strftime("%Y-%m-%dT%H:%M:%SZ")


def test_a_clock_that_a_cron_job_keeps_is_paused_edited_and_removed(
    bed: Any, server: Server, claim: str, write_notebook: Any
) -> None:
    write_notebook(bed.shared / "home" / "b.ipynb", "print(1)")
    body = {
        "request": {"path": "b.ipynb", "runtime": "kubernetes"},
        "clock": {"cron": "30 2 * * 1-5", "zone": "Europe/Berlin"},
        "kept_by": "runtime",
    }
    made = server("POST", "schedules", body)
    place = bed.admin.path("cronjobs")

    def spec() -> Any:
        (found,) = bed.admin.list(place)
        return found["spec"]

    assert (spec()["schedule"], spec()["suspend"]) == ("30 2 * * 1,2,3,4,5", False)
    server("PATCH", f"schedules/{made['id']}", {"paused": True})
    assert spec()["suspend"] is True
    change = {"clock": {"every": 21600, "anchor": 3600}, "paused": False}
    server("PATCH", f"schedules/{made['id']}", change)
    assert (spec()["schedule"], spec()["timeZone"]) == ("0 1,7,13,19 * * *", "UTC")
    assert spec()["suspend"] is False
    server("PATCH", f"schedules/{made['id']}", {"kept_by": "here"})
    server("PATCH", f"schedules/{made['id']}", {"kept_by": "runtime"})
    assert spec()["schedule"] == "0 1,7,13,19 * * *"
    server("DELETE", f"schedules/{made['id']}")
    until(lambda: bed.admin.list(place) == [], "the end of the CronJob")
