"""Dask clusters: on a gateway of one's own, which is started when it is needed, and on others."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest
from waiting import eventually, until

from jupyterlab_convect.cli import main as convect
from jupyterlab_convect.cli.arguments import open_workspace
from jupyterlab_convect.errors import ConvectError, Missing, Refused
from jupyterlab_convect.overviews import give_back, overview_of
from jupyterlab_convect.runner.dask_versions import differences
from jupyterlab_convect.services import dask_clusters, dask_gateways
from jupyterlab_convect.services.dask_clusters import DaskClusters, check_options, id_of
from jupyterlab_convect.services.dask_gateway_api import DaskGateway, ask
from jupyterlab_convect.services.dask_pages import read_workers
from jupyterlab_convect.services.on_demand import OnDemandServices
from jupyterlab_convect.services.store import ServiceStore

needs_dask = pytest.mark.skipif(
    not dask_gateways.is_installed(), reason="Dask and dask-gateway-server are not installed"
)

CHAPTER = (
    "from dask_gateway import Gateway\ngateway = Gateway()",
    "options = gateway.cluster_options()\noptions",
    "cluster = gateway.new_cluster(options)\ncluster",
    "cluster.scale(1)",
    "client = cluster.get_client()",
    "import dask.array as da\n"
    "x = da.random.random((10000, 10000), chunks=(1000, 1000))\n"
    "y = x + x.T\n"
    "z = y[::2, 5000:].mean(axis=1)\n"
    "z.compute()",
)


@pytest.fixture
def services(dask_services: ServiceStore) -> ServiceStore:
    return dask_services


def with_workers(clusters: DaskClusters, cluster_id: str, count: int = 1) -> dict[str, Any]:
    until(lambda: clusters.read(cluster_id)["workers"] >= count, f"there are {count} workers")
    return clusters.read(cluster_id)


@needs_dask
@pytest.mark.slow
async def test_the_chapter_on_dask_runs_cell_by_cell_with_no_arguments(
    services: ServiceStore, clusters: DaskClusters, found_by_all: dict[str, str]
) -> None:
    """In an ordinary kernel; the first cell that asks for the gateway has it started."""
    assert clusters.overview()["clusters"] == []
    cells = [nbformat.v4.new_code_cell(source) for source in CHAPTER]
    book = nbformat.v4.new_notebook(cells=cells)
    client = nbclient.NotebookClient(book, timeout=600, kernel_name="python3")
    async with client.async_setup_kernel():
        for index, cell in enumerate(cells):
            await client.async_execute_cell(cell, index)
            if index == 2:
                [seen] = await asyncio.to_thread(clusters.all)
                assert (seen["state"], seen["options"]["worker_cores"]) == ("running", 1)
        [seen] = await asyncio.to_thread(clusters.all)
        assert (seen["workers"], seen["clients"], seen["erred"]) == (1, 1, 0), seen["reason"]
        assert seen["each_worker"][0]["memory"] > 0
        assert not seen["orphan"]
    values = cells[-1].outputs[0]["data"]["text/plain"]
    assert values.startswith("array([")
    [record] = services.all()
    log = services.log(record.service.id)
    assert seen["name"] not in log, "the name is all that protects the dashboard"
    until(lambda: not clusters.all(), "the cluster went with its kernel")


@needs_dask
@pytest.mark.slow
def test_a_cluster_is_made_scaled_tested_and_stopped(
    services: ServiceStore, clusters: DaskClusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {each["field"]: each for each in clusters.options()}
    assert fields["worker_cores"]["spec"]["type"] == "int"
    for wrong, words in (
        ({"worker_cores": 10_000}, "a whole number from 1 to"),
        ({"worker_memory": "much"}, "a number from"),
        ({"colour": 1}, "no option"),
    ):
        with pytest.raises(ConvectError, match=words):
            clusters.new(wrong)
    made = clusters.new({"environment": {"WHO": "me"}}, 1)
    assert (made["state"], made["wanted"]) == ("running", 1)
    with_workers(clusters, made["id"])
    assert clusters.test(made["id"])["differences"] == []
    old = {"python": "3.9.1", "dask": "2020.1", "distributed": "2020.1"}
    told = clusters.test(made["id"], old)
    assert told["workers"] == 1
    assert any("3.9.1" in each for each in told["differences"])
    titles = [each["title"] for each in clusters.plots(made["id"])]
    assert {"Task Stream", "Progress"} <= set(titles)
    for count in (-1, 10**9, True):
        with pytest.raises(ConvectError):
            clusters.scale(made["id"], count)
    with pytest.raises(ConvectError, match="more than the most"):
        clusters.adapt(made["id"], 2, 1)
    assert clusters.scale(made["id"], 2) is None
    assert with_workers(clusters, made["id"], 2)["wanted"] == 2
    clusters.adapt(made["id"], 0, 2)
    until(lambda: clusters.read(made["id"])["workers"] == 0, "idle workers have gone")
    with pytest.raises(ConvectError, match="no workers"):
        clusters.test(made["id"])
    monkeypatch.setattr(dask_clusters, "ORPHAN_AGE", 0.0)
    assert clusters.read(made["id"])["orphan"], "nobody is connected and it does nothing"
    monkeypatch.setattr(dask_clusters, "WORKER_PATIENCE", -1.0)
    dask_clusters._wanted[made["id"]] = (3, 0.0)
    assert "0 of 3 workers" in clusters.read(made["id"])["reason"]
    assert "PRIVATE KEY" not in json.dumps(clusters.overview())
    clusters.stop(made["id"])
    until(lambda: not clusters.all(), "it has gone")
    with pytest.raises(Missing):
        clusters.read(made["id"])
    [record] = services.all()
    password = dask_gateways.read_password(record.service)
    folder = services.store.folder / "services" / record.service.id
    for file in folder.iterdir():
        assert password not in file.read_text(), file
        assert made["name"] not in file.read_text(), file


@needs_dask
@pytest.mark.slow
async def test_the_page_of_the_cluster_says_what_it_holds_and_gives_it_back(
    services: ServiceStore, clusters: DaskClusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONVECT_RUNS_DIR", str(services.store.folder))
    made = await asyncio.to_thread(clusters.new, {}, 1)
    await asyncio.to_thread(with_workers, clusters, made["id"])
    workspace = open_workspace()
    try:
        found = await overview_of(workspace, "local")
        [held] = [each for each in found.holders if each.kind == "dask"]
        assert (held.id, held.mine) == (made["id"], True)
        assert [each.name for each in held.resources if each.amount > 0] == ["memory"]
        assert not [each for each in found.holders if each.kind == "service"], "counted once"
        await give_back(workspace, "dask", made["id"])
        await eventually(lambda: not clusters.all(), "it has gone")
        found = await overview_of(workspace, "local")
        assert not [each for each in found.holders if each.kind == "dask"]
    finally:
        await workspace.close()


@needs_dask
@pytest.mark.slow
def test_a_cluster_whose_kernel_was_killed_is_found_again(
    clusters: DaskClusters, found_by_all: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        "from dask_gateway import Gateway\n"
        "cluster = Gateway().new_cluster()\ncluster.scale(1)\nclient = cluster.get_client()\n"
        "client.wait_for_workers(1)\nprint('ready', flush=True)\nimport time\ntime.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as kernel:
        assert kernel.stdout is not None
        assert kernel.stdout.readline() == "ready\n"
        monkeypatch.setattr(dask_clusters, "ORPHAN_AGE", 0.0)
        assert not clusters.all()[0]["orphan"]
        kernel.kill()
    until(lambda: clusters.all()[0]["orphan"], "nobody is connected any more")
    [left] = clusters.all()
    assert (left["workers"], left["threads"]) == (1, 1), "what it holds"
    assert clusters.stop_all() == 1
    until(lambda: not clusters.all(), "it has gone")


@needs_dask
@pytest.mark.slow
def test_a_scheduler_that_dies_is_told(clusters: DaskClusters) -> None:
    made = clusters.new({}, 1)
    with_workers(clusters, made["id"])
    import psutil

    for process in psutil.process_iter(["cmdline"]):
        words = " ".join(process.info["cmdline"] or ())
        mark = made["name"] in (process.environ() if "dask_scheduler" in words else {}).values()
        if mark:
            process.kill()
    until(
        lambda: (
            not clusters.all()
            or clusters.all()[0]["state"] in ("failed", "stopped")
            or clusters.all()[0]["reason"] == "The scheduler does not answer."
        ),
        "it is said that the scheduler is gone",
    )


@needs_dask
@pytest.mark.slow
def test_the_command_line_makes_lists_and_stops_clusters(
    services: ServiceStore,
    clusters: DaskClusters,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CONVECT_RUNS_DIR", str(services.store.folder))
    assert convect(["dask", "options"]) == 0
    assert "worker_cores" in capsys.readouterr().out
    assert convect(["dask", "new", "--workers", "1", "-o", "worker_cores=1", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert convect(["dask", "list"]) == 0
    assert made["id"] in capsys.readouterr().out
    assert convect(["dask", "test", made["id"]]) == 0
    assert "1 worker computed a sum" in capsys.readouterr().out
    assert convect(["dask", "env"]) == 0
    assert "export DASK_GATEWAY__ADDRESS=http://127.0.0.1:" in capsys.readouterr().out
    assert convect(["dask", "scale", made["id"], "0"]) == 0
    assert convect(["dask", "adapt", made["id"], "0", "1"]) == 0
    for wrong in (
        ["stop"],
        ["stop", "none"],
        ["new", "-o", "worker_cores=many"],
        ["new", "-o", "x"],
    ):
        assert convect(["dask", *wrong]) == 2
    assert convect(["dask", "stop", made["id"]]) == 0
    until(lambda: not clusters.all(), "it has gone")
    assert convect(["dask", "stop", "--all"]) == 0


@needs_dask
@pytest.mark.slow
def test_a_gateway_of_others_is_used_as_configured(
    services: ServiceStore, gateway: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clusters = DaskClusters(services)
    before = [record.status for record in services.all()]
    seen = clusters.overview()
    assert (seen["gateway"]["is_own"], seen["gateway"]["address"]) == (False, gateway)
    kinds = {each["field"]: each["spec"]["type"] for each in clusters.options()}
    assert kinds == {"image": "select", "gpu": "bool", "tag": "string"}
    made = clusters.new({"image": "large", "gpu": True})
    assert made["options"] == {"image": "large", "gpu": True, "tag": "x"}
    other = DaskGateway(
        gateway, auth_options={"username": "bob", "password": "open sesame"}, proxy=False
    )
    theirs = ask(other, "/api/v1/clusters/", "POST", {"cluster_options": {}})["name"]
    assert [each["id"] for each in clusters.all()] == [made["id"]]
    for act in (clusters.read, clusters.stop, clusters.dashboard, clusters.plots, clusters.test):
        with pytest.raises(Missing):
            act(id_of(theirs))
        with pytest.raises(Missing):
            act(theirs)
    ask(other, f"/api/v1/clusters/{theirs}", "DELETE")
    assert [record.status for record in services.all()] == before, "none of one's own was started"
    assert OnDemandServices(services).begin() == {}
    clusters.stop(made["id"])
    monkeypatch.setenv("SESAME", "wrong")
    with pytest.raises(Refused, match="does not let you in"):
        clusters.overview()
    monkeypatch.delenv("SESAME")
    with pytest.raises(Refused, match="names a variable that is not set"):
        clusters.overview()


@needs_dask
@pytest.mark.slow
def test_the_token_of_a_hub_lets_one_in(
    services: ServiceStore, hub_gateway: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the gateway's own authenticator; what answers it stands in for a hub."""
    clusters = DaskClusters(services)
    assert clusters.overview() == {
        "gateway": {
            "is_own": False,
            "address": hub_gateway,
            "state": "ready",
            "reason": None,
            "service": None,
        },
        "clusters": [],
    }
    made = clusters.new({}, 1)
    with_workers(clusters, made["id"])
    clusters.stop(made["id"])
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "old")
    with pytest.raises(Refused, match=r"does not let you in|the status 500"):
        clusters.overview()


@needs_dask
def test_a_gateway_that_is_down_or_is_none_is_told(
    services: ServiceStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        closed = f"http://me:secret@127.0.0.1:{probe.getsockname()[1]}"
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("DASK_GATEWAY__ADDRESS", closed)
    with pytest.raises(Refused, match="does not answer: connection refused") as refused:
        DaskClusters(services).overview()
    assert "secret" not in refused.value.sentence
    monkeypatch.setenv("DASK_GATEWAY__ADDRESS", closed.replace("me:secret@", ""))
    monkeypatch.setenv("DASK_GATEWAY__AUTH__TYPE", "jupyterhub")
    monkeypatch.delenv("JUPYTERHUB_API_TOKEN", raising=False)
    with pytest.raises(Refused, match="wants a token of JupyterHub"):
        DaskClusters(services).overview()
    monkeypatch.setenv("DASK_GATEWAY__AUTH__TYPE", "basic")
    monkeypatch.setenv("DASK_GATEWAY__ADDRESS", "file:///etc/passwd")
    with pytest.raises(Refused, match="is no URL"):
        DaskClusters(services).overview()


def test_a_gateway_that_leads_elsewhere_takes_no_credentials_there() -> None:
    sent: dict[str, str | None] = {}

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sent[self.path] = self.headers.get("Authorization")
            targets = {"/here": "/there", "/away": f"http://127.0.0.1:{elsewhere.server_port}/"}
            if target := targets.get(self.path):
                self.send_response(302)
                self.send_header("Location", target)
            else:
                self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

    with (
        ThreadingHTTPServer(("127.0.0.1", 0), Page) as first,
        ThreadingHTTPServer(("127.0.0.1", 0), Page) as elsewhere,
    ):
        for each in (first, elsewhere):
            threading.Thread(target=each.serve_forever, daemon=True).start()
        gateway = DaskGateway(f"http://127.0.0.1:{first.server_port}", proxy=False)
        for path in ("/here", "/away"):
            assert ask(gateway, path) == {}
        for each in (first, elsewhere):
            each.shutdown()
    assert sent["/here"]
    assert sent["/here"] == sent["/there"] == sent["/away"]
    assert sent["/"] is None


def test_without_dask_it_is_said_how_to_install_it(
    services: ServiceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_gateways, "NEEDED", ("no_such_package",))
    with pytest.raises(Refused, match="Dask is not installed") as refused:
        services.start("dask", {}, Path.home())
    assert "jupyterlab-convect[dask]" in str(refused.value.hint)
    assert OnDemandServices(services).begin() == {}


@needs_dask
def test_who_connects_is_told_why_there_is_no_gateway(
    services: ServiceStore, found_by_all: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise Refused("The machine is full.")

    monkeypatch.setattr(services, "start", fail)
    own = DaskGateway(found_by_all["DASK_GATEWAY__ADDRESS"], proxy=False)
    with pytest.raises(Refused, match="status 500"):
        ask(own, "/api/v1/options")


def test_every_type_of_option_is_checked() -> None:
    fields = [
        {"field": "cores", "spec": {"type": "int", "min": 1, "max": 4}},
        {"field": "memory", "spec": {"type": "float", "min": 0.5, "max": None}},
        {"field": "tag", "spec": {"type": "string"}},
        {"field": "gpu", "spec": {"type": "bool"}},
        {"field": "image", "spec": {"type": "select", "options": ["a", "b"]}},
        {"field": "env", "spec": {"type": "mapping"}},
    ]
    good = {"cores": 4, "memory": 1, "tag": "x", "gpu": True, "image": "b", "env": {"A": "1"}}
    check_options(fields, good)
    for name, wrong, words in (
        ("cores", 5, "a whole number from 1 to 4"),
        ("cores", True, "a whole number"),
        ("cores", 1.5, "a whole number"),
        ("memory", 0.1, "a number of at least 0.5"),
        ("tag", 1, "a text"),
        ("gpu", "yes", "true or false"),
        ("image", "c", "one of a, b"),
        ("env", [1], "a mapping"),
        ("other", 1, "no option"),
    ):
        with pytest.raises(ConvectError, match=words):
            check_options(fields, {**good, name: wrong})


def test_the_page_of_a_scheduler_is_read_where_its_json_fails() -> None:
    page = """
      <table><thead><tr><th>Worker</th></tr></thead><tbody>
      <tr ><td><a href="x">tls://10.0.0.7:4000</a></td> <td> 1f2e3d4c5b </td> <td> 4 </td>
      <td data-sort="2147483648"> 2.00 GiB </td>
      <td> <progress class="progress" value="91602944" max="2147483648"></progress></td>
      <td data-sort="0.5"> 0.50 s </td> <td> 12 </td> <td> 3 </td></tr></tbody></table>
    """
    assert read_workers(page) == [
        {
            "name": "1f2e3d4c",
            "host": "10.0.0.7",
            "state": "",
            "threads": 4,
            "cpu": None,
            "memory": 91602944,
            "memory_limit": 2147483648,
            "processing": 12,
        }
    ]


def test_versions_are_compared_in_words() -> None:
    kernel = {"python": "3.11.7.final.0", "dask": "2026.8.0", "numpy": "2.4.6", "pandas": "2.2"}
    worker = {"python": "3.11.2.final.0", "dask": "2026.8.0", "numpy": "2.4.6", "pandas": "2.2"}
    cluster = {"workers": {"a": worker, "b": worker}, "scheduler": {"": worker}}
    assert differences(kernel, cluster) == []
    other = {**worker, "python": "3.12.1.final.0", "numpy": None, "msgpack": "1.0"}
    cluster = {"workers": {"a": other, "b": other}, "scheduler": {"": {**worker, "dask": "2025.1"}}}
    assert differences(kernel, cluster) == [
        "The kernel has Python 3.11.7.final.0, and the workers have 3.12.1.final.0.",
        "The workers have msgpack 1.0, and the kernel lacks it.",
        "The kernel has numpy 2.4.6, and the workers lack it.",
        "The kernel has dask 2026.8.0, and the scheduler has 2025.1.",
    ]
