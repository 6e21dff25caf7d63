"""A Dask cluster for a step: there before it, gone after it, however it ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from waiting import eventually

from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.pipeline.plan import Plan
from jupyterlab_convect.pipeline.problems import Problem
from jupyterlab_convect.runner.dask_versions import differences_of_step
from jupyterlab_convect.runs.model import ENDED, Request, RunState, StepState
from jupyterlab_convect.runtimes.base import Feature, Runtime
from jupyterlab_convect.services import dask_gateways
from jupyterlab_convect.services.dask_clusters import DaskClusters, id_of
from jupyterlab_convect.services.dask_steps import ClusterNotes, DaskForSteps
from jupyterlab_convect.services.store import ServiceStore
from jupyterlab_convect.settings import Settings
from jupyterlab_convect.workspace import Workspace

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not dask_gateways.is_installed(), reason="Dask is not installed"),
]

SUM = """
import os
from distributed import Client
from dask_gateway import Gateway
client = Client()
assert client.submit(sum, range(10)).result() == 45
assert len(client.scheduler_info()["workers"]) == 1
name = os.environ["CONVECT_DASK_CLUSTER"]
with Gateway() as gateway, gateway.connect(name) as cluster:
    assert cluster.get_client().submit(max, [1, 2]).result() == 2
print("the name is", name)
print(os.environ["DASK_SCHEDULER_ADDRESS"])
print(os.environ["DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY"])
"""
FOREVER = """
import os, pathlib, time
pathlib.Path(os.environ["THERE"]).touch()
while pathlib.Path(os.environ["THERE"]).exists():
    time.sleep(0.05)
"""
FAILS_ONCE = """
import hashlib, os, pathlib
seen = pathlib.Path(os.environ["THERE"])
with seen.open("a") as file:
    file.write(hashlib.sha256(os.environ["CONVECT_DASK_CLUSTER"].encode()).hexdigest()[:16] + "\\n")
assert os.environ["CONVECT_ATTEMPT"] == "2"
"""


@pytest.fixture
async def workspace(
    dask_services: ServiceStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> AsyncIterator[Workspace]:
    runs = dask_services.store.folder
    monkeypatch.setenv("CONVECT_RUNS_DIR", str(runs))
    monkeypatch.setenv("CONVECT_INDEX_DIR", str(tmp_path / "index"))
    (tmp_path / "project").mkdir()
    made = Workspace(Settings(runs_dir=str(runs), index_dir=str(tmp_path / "index")))
    yield made
    await made.close()


def write(folder: Path, code: str, **more: Any) -> str:
    (folder / "project" / "work.py").write_text(code)
    node = {"kind": "script", "path": "work.py", "dask": {"workers": 1}, **more}
    node |= {"env": {"THERE": str(folder / "there")}, "working_folder": "shared"}
    document = {"convect": 1, "nodes": {"work": node}}
    (folder / "project" / "a.pipeline").write_text(json.dumps(document))
    return "a.pipeline"


async def submit(workspace: Workspace, folder: Path, path: str = "a.pipeline") -> str:
    request = Request(root=str(folder / "project"), path=path)
    run = await asyncio.to_thread(workspace.make, request)
    await workspace.submit(run)
    return run.id


def step_of(workspace: Workspace, run_id: str) -> StepState:
    return workspace.store.read(run_id).state.steps["work"]


async def ended(workspace: Workspace, run_id: str) -> RunState:
    return await workspace.engine.wait(run_id, 600)


async def begun(workspace: Workspace, run_id: str, there: Path) -> None:
    def has_begun() -> bool:
        state = step_of(workspace, run_id)
        assert state.state not in ENDED, state
        return there.exists()

    await eventually(has_begun, "the step runs")


async def gone(clusters: DaskClusters) -> None:
    await eventually(lambda: asyncio.to_thread(lambda: not clusters.all()), "no cluster is left")
    assert list(ClusterNotes(clusters.store).all()) == []


async def test_it_is_there_before_the_step_and_gone_after_it(
    workspace: Workspace, clusters: DaskClusters, tmp_path: Path
) -> None:
    write(tmp_path, SUM)
    heard: list[str | None] = []
    run_id = await submit(workspace, tmp_path)
    workspace.engine.on_change(lambda *_: heard.append(step_of(workspace, run_id).reason))
    assert (await ended(workspace, run_id)).state == "succeeded", step_of(workspace, run_id)
    assert "Waiting for the Dask cluster: 0 of 1 workers." in heard
    await gone(clusters)
    folder = workspace.store.run_folder(run_id)
    texts = [file.read_text(errors="replace") for file in folder.rglob("*") if file.is_file()]
    log = next(folder.rglob("log.txt")).read_text()
    assert "the name is ***" in log
    assert not any("PRIVATE KEY" in text for text in texts)
    for text in texts:
        assert not any(id_of(word) in log for word in text.split())


async def test_a_notebook_has_one_and_the_list_says_whose_it_is(
    workspace: Workspace, clusters: DaskClusters, tmp_path: Path
) -> None:
    import nbformat

    path = tmp_path / "project" / "work.ipynb"
    cells = [nbformat.v4.new_code_cell(FOREVER), nbformat.v4.new_code_cell(SUM)]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), path)
    there = tmp_path / "there"
    request = Request(
        root=str(path.parent),
        path="work.ipynb",
        settings={
            "dask": {"options": {"worker_cores": "1"}},
            "env": {"THERE": str(there)},
            "working_folder": "shared",
        },
    )
    run = await asyncio.to_thread(workspace.make, request)
    await workspace.submit(run)
    await begun(workspace, run.id, there)
    [seen] = await asyncio.to_thread(clusters.all)
    assert seen["step"] == {"run": run.id, "step": "work"}
    assert not seen["orphan"]
    there.unlink()
    state = await ended(workspace, run.id)
    assert state.state == "succeeded", state.steps["work"].reason
    await gone(clusters)
    executed = next(workspace.store.run_folder(run.id).rglob("executed.ipynb")).read_text()
    assert seen["name"] not in executed


async def test_each_attempt_has_its_own(
    workspace: Workspace, clusters: DaskClusters, tmp_path: Path
) -> None:
    write(tmp_path, FAILS_ONCE, retries={"count": 1, "delay": 0})
    run_id = await submit(workspace, tmp_path)
    assert (await ended(workspace, run_id)).state == "succeeded", step_of(workspace, run_id)
    first, second = (tmp_path / "there").read_text().split()
    assert first != second
    await gone(clusters)


@pytest.mark.parametrize("how", ["failure", "stop", "timeout", "killed runner"])
async def test_it_is_gone_however_the_step_ends(
    workspace: Workspace, clusters: DaskClusters, tmp_path: Path, how: str
) -> None:
    more = {"timeout": 1} if how == "timeout" else {}
    write(tmp_path, "raise SystemExit(3)" if how == "failure" else FOREVER, **more)
    run_id = await submit(workspace, tmp_path)
    if how not in ("failure", "timeout"):
        await begun(workspace, run_id, tmp_path / "there")
    if how == "stop":
        await workspace.engine.stop(run_id)
    if how == "killed runner":
        runner = next(workspace.store.run_folder(run_id).rglob("runner.json"))
        os.kill(json.loads(runner.read_text())["pid"], signal.SIGKILL)
    state = await ended(workspace, run_id)
    assert state.state == ("cancelled" if how == "stop" else "failed"), state
    await gone(clusters)


async def test_a_step_that_is_stopped_while_it_waits_for_workers_leaves_nothing(
    workspace: Workspace, clusters: DaskClusters, tmp_path: Path
) -> None:
    write(tmp_path, SUM, dask={"workers": 1000})
    run_id = await submit(workspace, tmp_path)
    await eventually(
        lambda: "of 1000 workers" in (step_of(workspace, run_id).reason or ""), "it waits"
    )
    await workspace.engine.stop(run_id)
    state = await ended(workspace, run_id)
    assert (state.state, state.steps["work"].reason) == ("cancelled", "Stopped.")
    await gone(clusters)


def convect_run(folder: Path) -> subprocess.Popen[bytes]:
    code = "import sys; from jupyterlab_convect.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "run", "a.pipeline"]
    return subprocess.Popen(command, cwd=folder / "project")


@pytest.mark.parametrize("when", ["while it waits", "while the step runs", "after the step"])
async def test_it_is_gone_after_its_host_was_killed(
    workspace: Workspace, clusters: DaskClusters, tmp_path: Path, when: str
) -> None:
    there = tmp_path / "there"
    write(tmp_path, FOREVER, dask={"workers": 1})
    with convect_run(tmp_path) as host:
        if when == "while it waits":
            made = await eventually(
                lambda: asyncio.to_thread(lambda: list(ClusterNotes(clusters.store).all())),
                "a cluster is about to be made",
            )
            assert len(made) == 1
        else:
            await eventually(there.exists, "the step runs")
        host.kill()
    [run_id] = workspace.store.live_runs()
    if when == "after the step":
        there.unlink()
        await eventually(
            lambda: list(workspace.store.run_folder(run_id).rglob("outputs.json")), "it has ended"
        )
    await workspace.resume()
    if when != "after the step":
        await eventually(there.exists, "the step runs")
        assert len(await asyncio.to_thread(clusters.all)) == 1, "no second one was made"
        there.unlink()
    assert (await ended(workspace, run_id)).state == "succeeded"
    await gone(clusters)


async def test_what_could_not_be_removed_is_removed_by_whoever_looks_next(
    workspace: Workspace, clusters: DaskClusters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jupyterlab_convect.runs import active_attempt

    def fail(*_: Any) -> None:
        raise ConvectError("The gateway is down.")

    monkeypatch.setattr(active_attempt, "AGAIN", 0.0)
    monkeypatch.setattr(DaskForSteps, "_remove", fail)
    write(tmp_path, "pass")
    run_id = await submit(workspace, tmp_path)
    assert (await ended(workspace, run_id)).state == "succeeded"
    assert len(await asyncio.to_thread(clusters.all)) == 1
    monkeypatch.undo()
    await workspace.provisions.remove_left()
    await gone(clusters)


class Pods(Runtime):
    name = display_name = "pods"
    features = frozenset((Feature.IMAGE, Feature.DASK))

    async def check(self, plan: Plan) -> list[Problem]:
        return []


async def test_what_cannot_be_is_refused_before_the_run(
    workspace: Workspace, tmp_path: Path
) -> None:
    write(tmp_path, SUM, dask={"workers": 1, "options": {"worker_cores": 10_000, "colour": 1}})
    with pytest.raises(ConvectError, match="no option 'colour'"):
        await submit(workspace, tmp_path)
    checked = await workspace.check(Request(root=str(tmp_path / "project"), path="a.pipeline"))
    assert checked.plan is not None
    assert [problem.path for problem in checked.problems if problem.severity == "error"] == [
        ("dask", "options", "colour"),
        ("dask", "options", "worker_cores"),
    ]
    [problem] = workspace.provisions.check(checked.plan, Pods())
    assert (problem.node, problem.path) == ("work", ("dask",))
    assert "Pods cannot reach your own Dask gateway" in problem.message
    write(tmp_path, SUM, dask={"workers": 0})
    with pytest.raises(ConvectError, match="workers"):
        await submit(workspace, tmp_path)
    document = {"kind": "group", "members": [], "dask": {}}
    (tmp_path / "project" / "a.pipeline").write_text(
        json.dumps({"convect": 1, "nodes": {"all": document}})
    )
    with pytest.raises(ConvectError):
        await submit(workspace, tmp_path)


@pytest.fixture
def without_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONVECT_TEST_WORKER", json.dumps(["sleep", "3600"]))


@pytest.mark.usefixtures("without_workers")
async def test_a_cluster_that_never_gets_workers_fails_the_step_with_a_sentence(
    workspace: Workspace, gateway: str, tmp_path: Path, clusters: DaskClusters
) -> None:
    """On a gateway of others, whose options know of no variables."""
    write(tmp_path, SUM, dask={"workers": 2, "wait": 3})
    run_id = await submit(workspace, tmp_path)
    state = await ended(workspace, run_id)
    assert state.state == "failed"
    assert state.steps["work"].reason == "0 of 2 workers of the Dask cluster have come within 3 s."
    await gone(clusters)


async def test_a_gateway_of_others_makes_it_as_well(
    workspace: Workspace, gateway: str, tmp_path: Path, clusters: DaskClusters
) -> None:
    write(tmp_path, SUM, dask={"workers": 1, "options": {"image": "large"}})
    run_id = await submit(workspace, tmp_path)
    state = await ended(workspace, run_id)
    assert state.state == "succeeded", state.steps["work"].reason
    await gone(clusters)


def test_versions_of_a_step_are_compared_in_words() -> None:
    mine = {"python": "3.11.7", "packages": {"dask": "2026.8.0", "numpy": "2.4.6"}}
    worker = {"python": "3.11.2.final.0", "dask": "2026.8.0", "numpy": "1.26.0"}
    told = json.dumps({"workers": {"a": worker}, "scheduler": {"": worker}})
    assert differences_of_step(mine, told) == [
        "The step has numpy 2.4.6, and the workers have 1.26.0.",
        "The step has numpy 2.4.6, and the scheduler has 1.26.0.",
    ]
    for damaged in ("", "[1]", "{}", json.dumps({"workers": 3})):
        assert differences_of_step(mine, damaged) == []
