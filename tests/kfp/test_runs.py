"""Runs on a real Kubeflow Pipelines, from submit to results, and what can go wrong with them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import eventually

from jupyterlab_convect.catalog.expand import expand
from jupyterlab_convect.catalog.read import read
from jupyterlab_convect.cli import main
from jupyterlab_convect.pipeline.plan import to_json
from jupyterlab_convect.pipeline.resolve import resolve
from jupyterlab_convect.runs.model import Request, Run, Selection, new_id
from jupyterlab_convect.runs.project import take_snapshot
from jupyterlab_convect.runtimes.kfp import others
from jupyterlab_convect.runtimes.kfp.check import Way, connect
from jupyterlab_convect.runtimes.kfp.runtime import KfpRuntime
from jupyterlab_convect.runtimes.kubernetes.api import Api
from jupyterlab_convect.runtimes.kubernetes.api import connect as connect_to_cluster

PATIENCE = 600.0
PROJECT = Path(__file__).parents[2]
FOREVER = "import time\nprint('on', flush=True)\nwhile True: time.sleep(0.1)"


def script(path: str, **settings: Any) -> dict[str, Any]:
    return {"kind": "script", "path": path, **settings}


async def started(lab: Any, run: Any, step: str) -> None:
    def runs() -> bool:
        state = lab.store.read(run.id).state.steps[step]
        assert state.reason is None or "unreachable" not in state.reason
        return bool(state.state == "running")

    await eventually(runs, f"{step} runs", PATIENCE)


async def retries_loops_conditions_and_always(lab: Any) -> None:
    """One pipeline with all of them: a part of it fails, and what always runs runs."""
    lab.notebook("prepare.ipynb", ("outputs", "words = ['eu', '华东', 'bad']\nauc = 0.7"))
    lab.notebook(
        "score.ipynb",
        ("parameters", "word = ''"),
        "assert word != 'bad', 'a bad word'",
        ("outputs", "n = len(word)"),
    )
    lab.notebook("sum.ipynb", ("parameters", "ns = []"), ("outputs", "got = ns"))
    lab.write("ok.py", "print('ok')")
    words = "${{ nodes.prepare.outputs.words }}"
    run, state = await lab.finish(
        {
            "prepare": {"kind": "notebook", "path": "prepare.ipynb"},
            "score": {
                "kind": "notebook",
                "path": "score.ipynb",
                "for_each": {"name": "word", "in": words, "parallel": 2},
                "parameters": {"word": "${{ each.word }}"},
                "retries": {"count": 1, "delay": 1},
            },
            "sum": {
                "kind": "notebook",
                "path": "sum.ipynb",
                "parameters": {"ns": "${{ nodes.score.outputs.n }}"},
            },
            "good": script("ok.py", when="${{ nodes.prepare.outputs.auc >= 0.8 }}"),
            "clean": script("ok.py", after=["sum", "good"], run_if="always"),
        }
    )
    steps = state.steps
    assert {name: step.state for name, step in steps.items()} == {
        "prepare": "succeeded",
        "score.0": "succeeded",
        "score.1": "succeeded",
        "score.2": "failed",
        "sum": "skipped",
        "good": "skipped",
        "clean": "succeeded",
    }, {name: step.reason for name, step in steps.items()}
    assert [len(steps[f"score.{n}"].attempts) for n in range(3)] == [1, 1, 2]
    assert "a bad word" in steps["score.2"].reason
    assert steps["score.1"].outputs == {"n": 2}
    assert steps["good"].reason == "Skipped: auc >= 0.8 was false, auc was 0.7."
    assert (lab.result(run, "clean") / "log.txt").read_text() == "ok\n"


MAKE = """name: Make
inputs: [{{name: N, type: Integer}}]
outputs: [{{name: Data, type: Dataset}}, {{name: Count, type: Integer}}]
implementation:
  container:
    image: {image}
    command:
    - python3
    - -c
    - |
      import os, sys
      for path in sys.argv[2:4]: os.makedirs(os.path.dirname(path), exist_ok=True)
      open(sys.argv[2], "w").write("row" * int(sys.argv[1]))
      open(sys.argv[3], "w").write(sys.argv[1])
      print("made", sys.argv[1])
    - {{inputValue: N}}
    - {{outputPath: Data}}
    - {{outputPath: Count}}
"""


async def a_component_runs_as_itself_and_its_outputs_come_home(lab: Any) -> None:
    text = MAKE.format(image=lab.runtime.image)
    (component,) = read(text.encode(), "make.yaml").components
    lab.notebook("use.ipynb", ("parameters", "n = 0"), ("outputs", "twice = 2 * n"))
    document = {
        "convect": 1,
        "name": "with a component",
        "components": {component.digest: to_json(component)},
        "nodes": {
            "make": {"kind": "component", "component": component.digest, "inputs": {"N": 4}},
            "use": {
                "kind": "notebook",
                "path": "use.ipynb",
                "parameters": {"n": "${{ nodes.make.outputs.Count }}"},
                "when": "${{ nodes.make.outputs.Count == 4 }}",
            },
        },
    }
    plan = expand(resolve(document, root=lab.root))  # type: ignore[arg-type]
    asked = Request(root=str(lab.root), runtime="kfp")
    snapshot = take_snapshot(lab.store.snapshots, plan, lab.root)
    run = Run(new_id(), plan.name, 0.0, "kfp", plan, asked, snapshot=snapshot)
    await lab.engine.submit(run)
    state = await lab.engine.wait(run.id, PATIENCE)
    assert state.state == "succeeded", {step.id: step.reason for step in state.steps.values()}
    made = state.steps["make"].outputs
    assert made["Count"] == 4
    assert Path(made["Data"]["file"]).read_text() == "row" * 4
    assert "made 4" in (lab.result(run, "make") / "log.txt").read_text()
    assert state.steps["use"].outputs == {"twice": 8}


async def kubeflow_keeps_what_a_notebook_leaves(lab: Any) -> None:
    """For its own page, its lineage, and whoever looks at the run from elsewhere."""
    import pipelines

    lab.notebook(
        "train.ipynb",
        "import jupyterlab_convect\njupyterlab_convect.metric('auc', 0.9)",
        ("outputs", "words = ['eu', '华东']\nbest = float('nan')"),
    )
    lab.write("use.py", "print('used')")
    train = {"kind": "notebook", "path": "train.ipynb"}
    run, _ = await lab.succeed({"train": train, "use": script("use.py", after=["train"])})
    there = lab.graph(run)["id"]
    known = {each["task"]: each for each in pipelines.lineage(there)}
    assert known["train"]["outputs"]["values"] == {"words": ["eu", "华东"], "best": "NaN"}
    left = known["train"]["left"]
    assert left["metrics"]["facts"]["auc"] == 0.9
    page = (pipelines.objects() / left["html"]["uri"].removeprefix("minio://")).read_text()
    assert "jupyterlab_convect.metric" in page
    notebook = pipelines.objects() / left["notebook"]["uri"].removeprefix("minio://")
    assert json.loads(notebook.read_text())["cells"][0]["execution_count"] == 1
    assert left["files"] in known["use"]["given"].values()
    seen = others.detail(connect(Way(lab.runtime.endpoint)), there)
    states = {step["name"]: (step["state"], step["after"]) for step in seen["steps"]}
    assert states == {"train": ("succeeded", []), "use": ("succeeded", ["train"])}


async def a_restart_in_the_middle_and_what_failed_once_more(lab: Any) -> None:
    lab.write("make.py", "open('made.txt', 'w').write('from the first run')")
    lab.write("use.py", "raise SystemExit('not yet')")
    nodes = {"make": script("make.py"), "use": script("use.py", after=["make"])}
    run = await lab.start(nodes)
    await eventually(
        lambda: (lab.store.run_folder(run.id) / "graph.json").exists(), "it is handed over"
    )
    await lab.close()
    lab.open()
    await lab.engine.resume()
    state = await lab.engine.wait(run.id, PATIENCE)
    assert {step.id: step.state for step in state.steps.values()} == {
        "make": "succeeded",
        "use": "failed",
    }
    client = connect(Way(lab.runtime.endpoint))
    graph = lab.graph(run)
    assert client.run_named(graph["name"]) == graph["id"]
    assert graph["page"].endswith(f"/#/runs/details/{graph['id']}")
    lab.write("use.py", "print(open('made.txt').read())")
    again, state = await lab.succeed(nodes, select=Selection("failed"), of=run.id)
    assert state.steps["make"].state == "cached"
    assert (lab.result(again, "use") / "log.txt").read_text() == "from the first run\n"
    tasks = client.run(lab.graph(again)["id"])["pipeline_spec"]["root"]["dag"]["tasks"]
    assert sorted(tasks) == ["use"]


async def the_beginning_is_reused(lab: Any) -> None:
    lab.write("make.py", "open('made.txt', 'w').write('once')")
    lab.write("use.py", "print(open('made.txt').read())")
    nodes = {
        "make": script("make.py", cache=True),
        "use": script("use.py", after=["make"], cache=True),
    }
    await lab.succeed(nodes)
    lab.write("use.py", "print('again:', open('made.txt').read())")
    run, state = await lab.succeed(nodes)
    assert {step.id: step.state for step in state.steps.values()} == {
        "make": "cached",
        "use": "succeeded",
    }
    assert (lab.result(run, "use") / "log.txt").read_text() == "again: once\n"


async def a_stop(lab: Any) -> None:
    lab.write("slow.py", FOREVER)
    lab.write("next.py", "pass")
    run = await lab.start({"slow": script("slow.py"), "next": script("next.py", after=["slow"])})
    await started(lab, run, "slow")
    await lab.engine.stop(run.id)
    state = await lab.engine.wait(run.id, PATIENCE)
    assert state.state == "cancelled"
    assert {step.state for step in state.steps.values()} == {"cancelled"}
    assert connect(Way(lab.runtime.endpoint)).run(lab.graph(run)["id"])["state"] == "FAILED"


async def test_a_server_that_is_away_and_a_run_that_is_deleted(lab: Any) -> None:
    import pipelines

    lab.write("slow.py", FOREVER)
    run = await lab.start({"slow": script("slow.py")})
    await started(lab, run, "slow")

    def reason() -> str:
        return lab.store.read(run.id).state.steps["slow"].reason or ""

    pipelines.scale(0)
    await eventually(lambda: "has been unreachable since" in reason(), "it is said", PATIENCE)
    assert lab.store.read(run.id).state.steps["slow"].state == "running"
    pipelines.scale(1)
    await eventually(lambda: "unreachable" not in reason(), "it is back", PATIENCE)
    connect(Way(lab.runtime.endpoint)).delete(lab.graph(run)["id"])
    state = await lab.engine.wait(run.id, PATIENCE)
    assert state.steps["slow"].state == "lost"
    assert state.steps["slow"].reason == "The run was deleted in Kubeflow Pipelines."


async def an_image_that_is_not_there(lab: Any) -> None:
    lab.write("a.py", "pass")
    run = await lab.start({"a": script("a.py", image="local/none:1", pull_policy="Never")})

    def waits() -> bool:
        step = lab.store.read(run.id).state.steps["a"]
        return bool(step.reason == "Waiting for its pod to start.")

    await eventually(waits, "it says what it waits for", PATIENCE)
    await lab.engine.stop(run.id)
    assert (await lab.engine.wait(run.id, PATIENCE)).state == "cancelled"


GPU = "example.com/none"
"""Of which nobody has any, and only one test asks for."""


@pytest.fixture
def no_gpus(endpoint: str) -> Iterator[str]:
    """A quota that leaves no room for what asks for a certain accelerator; its name."""
    import places

    api = Api(connect_to_cluster(config_file=str(places.KUBECONFIG)))
    path, name = api.path("resourcequotas", namespace="kubeflow"), f"no-gpus-{new_id()}"
    spec = {"hard": {f"requests.{GPU}": "0"}}
    metadata = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}}
    api.create(path, {**metadata, "spec": spec})
    yield name
    api.delete(f"{path}/{name}")


async def test_who_sees_the_pods_can_follow_and_is_told_why_they_wait(
    make_lab: Callable[[Path], Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    no_gpus: str,
) -> None:
    import places

    monkeypatch.setenv("KUBECONFIG", str(places.KUBECONFIG))
    lab = make_lab(tmp_path)
    lab.notebook("talk.ipynb", "print('first', flush=True)", FOREVER)
    lab.write("a.py", "pass")
    run = await lab.start(
        {
            "talk": {"kind": "notebook", "path": "talk.ipynb", "image": lab.runtime.image},
            "none": script("a.py", image="local/none:1", pull_policy="Never"),
            "large": script("a.py", resources={"gpu": {"count": 1, "resource": GPU}}),
        }
    )
    steps = lab.store.read(run.id).state.steps
    folder = lab.store.attempt_folder(run.id, "talk", 1)

    def log() -> str:
        path = folder / "log.txt"
        return path.read_text() if path.exists() else ""

    await eventually(lambda: "first" in log() and "on" in log(), "its log is read", PATIENCE)
    await eventually(lambda: steps["talk"].progress, "its cells are counted", PATIENCE)
    await eventually(
        lambda: "local/none:1" in (steps["none"].reason or ""), "the image is named", PATIENCE
    )
    await eventually(
        lambda: no_gpus in (steps["large"].reason or ""), "the quota is named", PATIENCE
    )
    await eventually(lambda: (folder / "executed.ipynb").exists(), "so is its notebook", PATIENCE)
    await lab.engine.stop(run.id)
    state = await lab.engine.wait(run.id, PATIENCE)
    assert {step.state for step in state.steps.values()} == {"cancelled"}
    assert state.steps["talk"].reason == "The run was stopped in Kubeflow Pipelines."
    await lab.close()


async def a_claim_is_made_for_the_run_and_deleted_after_it(lab: Any) -> None:
    import cluster
    import places

    name = f"scratch-{new_id()}"
    folder = Path(cluster.SHARED, name)
    folder.mkdir()
    folder.chmod(0o777)
    api = Api(connect_to_cluster(config_file=str(places.KUBECONFIG)))
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "storageClassName": name,
        "hostPath": {"path": str(folder)},
    }
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}}
    api.create("/api/v1/persistentvolumes", {**volume, "spec": spec})
    lab.write("write.py", "open('/scratch/word', 'w').write('from the first step')")
    lab.write("read.py", "print(open('/scratch/word').read())\nraise SystemExit(1)")
    mounted = {"claim": "scratch", "path": "/scratch"}
    made = {**mounted, "size": "1Gi", "storage_class": name}
    try:
        run, state = await lab.finish(
            {
                "write": script("write.py", volumes=[made]),
                "read": script("read.py", volumes=[mounted], after=["write"]),
            }
        )
        steps = {step.id: step.state for step in state.steps.values()}
        reasons = {step.id: step.reason for step in state.steps.values()}
        assert steps == {"write": "succeeded", "read": "failed"}, reasons
        assert "from the first step" in (lab.result(run, "read") / "log.txt").read_text()
        path = api.path("persistentvolumeclaims", namespace="kubeflow")

        def is_going() -> bool:
            claims = [item for item in api.list(path) if item["spec"]["storageClassName"] == name]
            return all("deletionTimestamp" in item["metadata"] for item in claims)

        await eventually(is_going, "the claim is deleted", PATIENCE)
    finally:
        api.delete(f"/api/v1/persistentvolumes/{name}")
        shutil.rmtree(folder, ignore_errors=True)


async def what_is_too_large_is_refused_and_nothing_is_submitted(lab: Any) -> None:
    import random

    noise = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=200_000))
    lab.write("large.py", f"x = '{noise}'")
    run, state = await lab.finish({"large": script("large.py")})
    assert state.state == "failed"
    assert "too large to be a part of the pipeline" in state.steps["large"].reason
    name = f"{run.plan.name} {run.id}"
    assert connect(Way(lab.runtime.endpoint)).run_named(name) is None


async def the_example(lab: Any) -> None:
    import images

    lab.runtime.image = images.EXAMPLE
    shutil.copytree(PROJECT / "examples" / "churn", lab.root, dirs_exist_ok=True)
    document = json.loads((lab.root / "churn.pipeline").read_text())
    plan = resolve(document, root=lab.root, path="churn.pipeline")
    problems = await lab.runtime.check(plan)
    assert [problem.message for problem in problems if problem.severity == "error"] == []
    asked = Request(path="churn.pipeline", root=str(lab.root), runtime="kfp")
    snapshot = take_snapshot(lab.store.snapshots, plan, lab.root)
    run = Run(new_id(), plan.name, 0.0, "kfp", plan, asked, snapshot=snapshot)
    await lab.engine.submit(run)
    state = await lab.engine.wait(run.id, PATIENCE)
    assert state.state == "succeeded", {step.id: step.reason for step in state.steps.values()}


async def test_runs_and_what_can_go_wrong_with_them(at_once: Any) -> None:
    cases = (
        retries_loops_conditions_and_always,
        kubeflow_keeps_what_a_notebook_leaves,
        a_restart_in_the_middle_and_what_failed_once_more,
        the_example,
        a_component_runs_as_itself_and_its_outputs_come_home,
        a_stop,
        an_image_that_is_not_there,
        a_claim_is_made_for_the_run_and_deleted_after_it,
        the_beginning_is_reused,
        what_is_too_large_is_refused_and_nothing_is_submitted,
    )
    await at_once({case.__name__: case for case in cases})


def test_two_versions_of_a_pipeline_are_published(
    endpoint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.py").write_text("print('a')")
    name = f"published {new_id()}"
    told = []
    for version in ("one", "two"):
        where = ["--endpoint", endpoint, "--name", name, "--version", version, "--json"]
        path = str(tmp_path / "a.py")
        assert main(["kfp", "publish", path, "--image", "ds:1", *where]) == 0
        told.append(json.loads(capsys.readouterr().out))
    assert told[0]["pipeline"] == told[1]["pipeline"]
    assert told[0]["version"] != told[1]["version"]
    assert connect(Way(endpoint)).pipeline_named(name) == told[0]["pipeline"]


@pytest.mark.parametrize(
    ("traits", "words"),
    [
        ({"endpoint": "http://127.0.0.1:9"}, "refused the connection"),
        ({"endpoint": "http://no-such-host.invalid"}, "There is no host"),
    ],
)
async def test_a_wrong_address_is_said_before_the_run(
    make_runtime: Callable[..., KfpRuntime], lab: Any, traits: Any, words: str
) -> None:
    lab.write("a.py", "pass")
    plan = resolve({"convect": 1, "nodes": {"a": script("a.py")}}, root=lab.root)  # type: ignore[typeddict-item]
    (problem,) = await make_runtime(**traits).check(plan)
    assert words in problem.message
