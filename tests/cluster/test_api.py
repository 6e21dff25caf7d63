"""A cluster that forgets, is busy, or has trouble of its own; several servers, several places."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import Iterator
from http.client import HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

import pytest
from support import RBAC
from waiting import PATIENCE, until

from jupyterlab_convect.background import Health
from jupyterlab_convect.runs.engine import Engine
from jupyterlab_convect.runs.index import Index
from jupyterlab_convect.runs.store import Store
from jupyterlab_convect.runtimes.kubernetes.api import Api, ApiError, ClusterUnreachable, connect
from jupyterlab_convect.runtimes.kubernetes.reflector import Reflector

FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1"
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "none"},
    "spec": {
        "template": {
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
        }
    },
}


class Forgetful(Reflector):
    """Goes on from a version that the cluster has forgotten, twice."""

    left = 2

    def _list(self) -> str:
        version = super()._list()
        self.left -= 1
        return "1" if self.left >= 0 else version


def test_a_version_that_is_too_old(bed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if bed.testbed is None:
        pytest.skip("Not on a cluster of others.")
    bed.testbed.kill("apiserver")
    bed.testbed.restart("apiserver")  # It remembers nothing of what was before.
    until(lambda: _answers(bed), "an answer of the API server")
    monkeypatch.setattr("jupyterlab_convect.runtimes.kubernetes.reflector.ROUND", 5)
    with pytest.raises(ApiError) as refusal:
        Reflector(bed.admin, "configmaps", lambda: None, Health())._follow("1")
    assert refusal.value.status == 410
    watch = Forgetful(bed.admin, "configmaps", lambda: None, Health())
    watch.start()
    try:
        until(lambda: watch.left < 0, "a list of everything")
        bed.create("ConfigMap", "late", data={"a": "b"})
        until(lambda: "late" in watch.now()[0], "news of what is new")
        assert watch.trouble is None
    finally:
        watch.close()


def _answers(bed: Any) -> bool:
    try:
        return bool(bed.admin.get(bed.admin.path("configmaps")))
    except (ApiError, ClusterUnreachable):
        return False


@pytest.fixture
def throttle(bed: Any) -> Iterator[Any]:
    """Has the API server refuse every Job of one account as too many; called, it stops that."""
    bed.account("throttled")
    name = f"{bed.namespace}-none"
    limit = {
        "nominalConcurrencyShares": 0,
        "borrowingLimitPercent": 0,
        "limitResponse": {"type": "Reject"},
    }
    account = {"name": "throttled", "namespace": bed.namespace}
    rule = {
        "subjects": [{"kind": "ServiceAccount", "serviceAccount": account}],
        "resourceRules": [
            {
                "verbs": ["create"],
                "apiGroups": ["batch"],
                "resources": ["jobs"],
                "namespaces": [bed.namespace],
            }
        ],
    }
    specs = {
        "PriorityLevelConfiguration": {"type": "Limited", "limited": limit},
        "FlowSchema": {
            "matchingPrecedence": 100,
            "priorityLevelConfiguration": {"name": name},
            "rules": [rule],
        },
    }
    version = FLOWS.removeprefix("/apis/")
    for kind, spec in specs.items():
        manifest = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
        made = bed.admin.create(f"{FLOWS}/{kind.lower()}s", manifest)

    api = Api(connect(config_file=str(bed.account("throttled"))))

    def is_in_force() -> bool:
        with contextlib.closing(
            api._open("POST", api.path("jobs"), {"dryRun": "All"}, JOB, 10)
        ) as answer:
            told = answer.headers.get("X-Kubernetes-PF-FlowSchema-UID")
        return bool(told == made["metadata"]["uid"])

    until(is_in_force, "a limit in force")
    # There is always room for one; this one never says what it wants.
    address = urlsplit(api.url(api.path("jobs")))
    trusted = ssl.create_default_context(cafile=api.client.configuration.ssl_ca_cert)
    connection = HTTPSConnection(str(address.hostname), address.port, context=trusted)
    connection.putrequest("POST", address.path)
    for key, value in (*api.headers().items(), ("Content-Length", "9")):
        connection.putheader(key, value)
    connection.endheaders()
    yield connection.close
    connection.close()
    for kind in reversed(specs):
        bed.admin.delete(f"{FLOWS}/{kind.lower()}s/{name}")


async def test_a_cluster_that_is_too_busy(
    bed: Any, make_lab: Any, throttle: Any, refusals: list[Exception]
) -> None:
    account = Api(connect(config_file=str(bed.account("throttled"))))

    def refusal() -> ApiError | None:
        try:
            account.create(account.path("jobs"), JOB, dryRun="All")
        except ApiError as error:
            return error if error.status == 429 else None
        return None

    refused = await asyncio.to_thread(until, refusal, "a busy cluster")
    assert refused.retry_after is not None
    lab = make_lab("throttled")
    lab.write("a.py", "print(1)")
    run = await lab.start("a.py")
    await asyncio.to_thread(until, lambda: len(refusals) > 1, "a second refusal")
    assert lab.store.read(run.id).state.state == "running"
    assert not await asyncio.to_thread(bed.pods, run.id)
    await asyncio.to_thread(throttle)
    state = await lab.engine.wait(run.id, PATIENCE)
    assert (state.state, len(state.steps["a"].attempts)) == ("succeeded", 1)


async def test_a_cluster_with_trouble_of_its_own(
    bed: Any, lab: Any, refusals: list[Exception]
) -> None:
    """Its database is away, so that it answers with 5xx or not at all."""
    if bed.testbed is None:
        pytest.skip("Not on a cluster of others.")
    lab.write("a.py", "print(1)")
    await lab.succeed("a.py")  # The connection and the watches are there.
    await asyncio.to_thread(bed.testbed.kill, "etcd")
    try:
        run = await lab.start("a.py")
        await asyncio.to_thread(until, lambda: refusals, "an answer with an error", 90)
        assert lab.store.read(run.id).state.state == "running"
    finally:
        await asyncio.to_thread(bed.testbed.restart, "etcd")
    state = await lab.engine.wait(run.id, 90)
    assert state.state == "succeeded", state.reason
    assert len(await asyncio.to_thread(bed.pods, run.id)) == 1


async def test_two_servers(bed: Any, lab: Any) -> None:
    """Of two that see the same runs one drives; the other goes on when that one is gone."""
    lab.write(
        "a.py", "import pathlib, time\nwhile not pathlib.Path('go').exists(): time.sleep(0.05)\n"
    )
    run = await lab.start("a.py")
    await asyncio.to_thread(
        until, lambda: [p for p in bed.pods(run.id) if p["status"]["phase"] == "Running"], "a pod"
    )
    store = Store(lab.store.folder, Index(lab.root.parent / "other.sqlite"))
    runtime = bed.runtime()
    other = Engine(store, {runtime.name: runtime})
    assert await other.resume() == []
    await lab.engine.close()
    assert await other.resume() == [run.id]
    lab.write("go", "")
    state = await other.wait(run.id, PATIENCE)
    assert (state.state, len(state.steps["a"].attempts)) == ("succeeded", 1)
    assert len(await asyncio.to_thread(bed.pods, run.id)) == 1
    await other.close()
    await runtime.close()
    store.close()


async def test_jobs_go_away_by_themselves_and_results_stay(bed: Any, make_lab: Any) -> None:
    lab = make_lab(ttl=0)
    lab.write("a.py", "print('kept')")
    run, _ = await lab.succeed("a.py")
    await asyncio.to_thread(until, lambda: not bed.pods(run.id), "the end of the pod")
    assert (lab.result(run, "a") / "log.txt").read_text() == "kept\n"


async def test_contexts_and_namespaces(bed: Any, make_lab: Any, tmp_path: Any) -> None:
    """Each its own runtime, with the namespace of its context unless another is asked for."""
    bed.account("convect")
    second = f"{bed.namespace}-b"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": second}}
    manifest["metadata"]["labels"] = labels  # type: ignore[index]
    bed.admin.create("/api/v1/namespaces", manifest)
    try:
        for kind in ("roles", "rolebindings"):
            for item in bed.admin.list(f"{RBAC}/namespaces/{bed.namespace}/{kind}"):
                if item["metadata"]["name"] in ("jupyterlab-convect", "convect"):
                    item["metadata"] = {"name": item["metadata"]["name"]}
                    bed.admin.create(f"{RBAC}/namespaces/{second}/{kind}", item)
        config = json.loads(bed.account("convect").read_text())
        (context,) = config["contexts"]
        config["contexts"].append(
            {"name": "b", "context": {**context["context"], "namespace": second}}
        )
        path = tmp_path / "config"
        path.write_text(json.dumps(config))
        by_context = {"context": "b", "config_file": path}
        by_name = {"namespace": second, "config_file": path}
        for traits in (by_context, by_name):
            lab = make_lab(shared=False, **traits)
            lab.write("a.py", "print(1)")
            _, state = await lab.succeed("a.py")
            assert state.steps["a"].attempts[0].handle["namespace"] == second
    finally:
        bed.admin.delete(f"/api/v1/namespaces/{second}")
