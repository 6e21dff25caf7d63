from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from waiting import PATIENCE, until

from jupyterlab_convect import client
from jupyterlab_convect.errors import ConvectError

Write = Callable[..., Path]

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder, runs of its own, and a session that ends with the test."""
    monkeypatch.setenv("CONVECT_RUNS_DIR", str(tmp_path / "runs"))
    monkeypatch.setenv("CONVECT_INDEX_DIR", str(tmp_path / "index"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    client.session._sessions.clear()
    yield work
    for session in client.session._sessions.values():
        session.close()
    client.session._sessions.clear()


@pytest.fixture
def train(folder: Path, write_notebook: Write) -> str:
    write_notebook(
        folder / "train.ipynb",
        ("parameters", "lr = 0.1"),
        "print('learning with', lr)",
        ("outputs", "accuracy = 1 - lr"),
    )
    return "train.ipynb"


def test_a_notebook_is_run_and_its_results_are_at_hand(train: str) -> None:
    run = client.run(train, parameters={"lr": 0.25}, name="first", labels={"team": "a", "epoch": 3})
    assert (run.state, run.succeeded, run.done) == ("succeeded", True, True)
    assert run.outputs == {"accuracy": 0.75}
    assert run.metrics == {"accuracy": 0.75}
    assert run.parameters == {"lr": 0.25}
    assert run.logs() == "learning with 0.25\n"
    assert json.loads(run.notebook.read_bytes())["cells"]
    assert "succeeded" in run._repr_html_()
    labels = {"team": "a", "epoch": "3"}
    assert [found.id for found in client.runs(labels=labels)] == [run.id]


async def test_it_works_where_an_event_loop_runs_already(train: str) -> None:
    """As in a notebook."""
    assert client.run(train).succeeded


def test_a_failure_is_told_and_raised_when_asked_to(folder: Path, write_notebook: Write) -> None:
    write_notebook(folder / "bad.ipynb", "raise ValueError('no <such> column')")
    run = client.run("bad.ipynb")
    assert run.state == "failed"
    assert "no <such> column" in str(run.reason)
    assert "&lt;such&gt;" in run._repr_html_()
    with pytest.raises(client.RunFailed, match="no <such> column"):
        client.run("bad.ipynb", check=True)


def test_a_pipeline_can_be_given_as_a_document(train: str) -> None:
    document = {
        "convect": 1,
        "nodes": {
            "a": {"kind": "notebook", "path": train},
            "b": {
                "kind": "notebook",
                "path": train,
                "after": ["a"],
                "parameters": {"lr": "${{ nodes.a.outputs.accuracy }}"},
            },
        },
    }
    run = client.run(document)
    assert run.steps["b"].outputs["accuracy"] == pytest.approx(0.1)
    again = run.rerun("from", "b")
    assert again.id != run.id
    assert again.steps["a"].state == "cached"


def test_a_run_is_waited_for_and_stopped(folder: Path, write_notebook: Write) -> None:
    write_notebook(folder / "long.ipynb", "import time; time.sleep(600)")
    run = client.run("long.ipynb", wait=False)
    assert not run.done
    with pytest.raises(TimeoutError):
        run.wait(0.01)
    run.stop()
    assert run.wait(PATIENCE).state == "cancelled"


def test_a_sweep_finds_its_best_run(train: str) -> None:
    sweep = client.sweep(train, {"lr": [0.1, 0.2, 0.4]}, select="max:accuracy")
    assert sweep.state == "succeeded"
    assert [run.parameters["lr"] for run in sweep.runs] == [0.1, 0.2, 0.4]
    assert sweep.best is not None
    assert sweep.best.metrics == {"accuracy": 0.9}
    sweep.add_points({"lr": [0.05]})
    assert sweep.best.metrics == {"accuracy": 0.95}
    assert "0.95" in sweep._repr_html_()


def test_the_files_of_a_run_that_kept_them_are_put_into_the_project(folder: Path) -> None:
    (folder / "a.py").write_text("import os; open('made.txt', 'w').write(os.environ['n'])")
    sweep = client.sweep("a.py", {"n": ["1", "2"]})
    assert not (folder / "made.txt").exists()
    first, second = sweep.runs
    made = first.put_files()
    assert [Path(file["path"]).name for file in made["files"]] == ["made.txt"]
    assert (folder / "made.txt").read_text() == "1"
    second.put_files()
    assert (folder / "made.txt").read_text() == "1"  # It was not there when that was submitted.
    second.put_files(replace=True)
    assert (folder / "made.txt").read_text() == "2"


def test_the_environments_of_two_runs_are_compared(train: str) -> None:
    first, second = client.run(train), client.run(train)
    found = until(lambda: first.compare_environment(second), "the environments were recorded")
    assert found == {"train": []}


def test_bad_input_is_one_sentence(train: str, tmp_path: Path) -> None:
    for wrong in (
        lambda: client.run("none.ipynb"),
        lambda: client.run(train, runtime="moon"),
        lambda: client.run(tmp_path / "elsewhere.ipynb", root="."),
        lambda: client.run({"nodes": {}}),
        lambda: client.sweep(train, {}),
        lambda: client.sweep(train, {"lr": [1]}, select="best"),
        lambda: client.runs(sort="colour"),
    ):
        with pytest.raises(ConvectError) as caught:
            wrong()
        assert caught.value.sentence
    assert client.runs() == []


def test_a_run_outlives_the_script_that_started_it(folder: Path, write_notebook: Write) -> None:
    write_notebook(folder / "one.ipynb", "import time; time.sleep(0.5)")
    nodes = {
        "one": {"kind": "notebook", "path": "one.ipynb"},
        "two": {"kind": "notebook", "path": "one.ipynb", "after": ["one"]},
    }
    code = (
        "from jupyterlab_convect.client import run\n"
        f"print(run({{'convect': 1, 'nodes': {nodes!r}}}, wait=False).id)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    (run,) = client.runs()
    assert run.id == done.stdout.strip()
    assert run.wait(PATIENCE).succeeded
    assert all(len(step.attempts) == 1 for step in run.steps.values())


def test_a_sweep_outlives_it_with_the_runs_that_wait_for_their_turn(train: str) -> None:
    code = (
        "from jupyterlab_convect.client import sweep\n"
        f"sweep({train!r}, {{'lr': [0.1, 0.2, 0.3]}}, concurrency=1, wait=False)"
    )
    # Nobody collects the script, as in a container without an init.
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ):
        until(lambda: [run.succeeded for run in client.runs()] == [True] * 3, "all succeeded")


def test_a_file_beside_the_working_folder(train: str, folder: Path) -> None:
    (folder / "deeper").mkdir()
    os.chdir(folder / "deeper")
    assert client.run(f"../{train}").succeeded


def test_a_sweep_over_a_pipeline_with_a_loop_and_an_inner_pipeline(tmp_path: Path) -> None:
    code = "import os, jupyterlab_convect as c; c.output('y', int(os.environ['x']) * 10)"
    (tmp_path / "times.py").write_text(code)
    times = {"kind": "script", "path": "times.py", "parameters": {"x": "${{ parameters.x }}"}}
    inner = {
        "convect": 1,
        "parameters": {"x": {}},
        "outputs": {"y": "${{ nodes.times.outputs.y }}"},
        "nodes": {"times": times},
    }
    outer = {
        "convect": 1,
        "parameters": {"xs": {"type": "array", "default": [1]}},
        "nodes": {
            "sub": {
                "kind": "pipeline",
                "path": "inner.pipeline",
                "parameters": {"x": "${{ each.x }}"},
                "for_each": {"name": "x", "in": "${{ parameters.xs }}"},
            }
        },
    }
    (tmp_path / "inner.pipeline").write_text(json.dumps(inner))
    (tmp_path / "outer.pipeline").write_text(json.dumps(outer))
    found = client.sweep(tmp_path / "outer.pipeline", {"xs": [[1, 2], [3]]}, root=tmp_path)
    assert found.state == "succeeded"
    assert [run.outputs["y"] for run in found.runs] == [[10, 20], [30]]
    assert "sub.1.times" in found.runs[0].steps
    items = found.runs[0].items("sub", "succeeded")
    assert [(item["index"], item["value"], list(item["steps"])) for item in items] == [
        (0, 1, ["sub.0.times"]),
        (1, 2, ["sub.1.times"]),
    ]
    assert found.runs[0].items("sub", "failed") == []
    inner["nodes"] = {"times": {"kind": "command", "command": ["false"]}}
    (tmp_path / "inner.pipeline").write_text(json.dumps(inner))
    found.add_points({"xs": [[4]]})
    assert found.runs[-1].outputs["y"] == [40], "a point is made from the files of the submit"


def test_a_schedule_is_made_run_and_removed(train: str) -> None:
    made = client.schedule(train, every="6h", name="often", parameters={"lr": 0.25})
    assert [each.id for each in client.schedules()] == [made.id]
    assert (made.name, len(made.next), made.is_paused) == ("often", 5, False)
    run = made.run()
    assert run.wait().state == "succeeded"
    assert made.edit(cron="0 2 * * *", zone="UTC", parameters={"lr": 0.5}).view()[
        "due"
    ] % 86400 == (7200)
    made.pause()
    assert made.is_paused
    made.resume()
    assert made.ledger() == []
    made.remove()
    assert client.schedules() == []
    with pytest.raises(ConvectError, match="is not a time zone"):
        client.schedule(train, "0 2 * * *", zone="Nowhere")


def test_the_processes_of_a_distributed_script(folder: Path) -> None:
    (folder / "train.py").write_text("import os\nprint('rank', os.environ['RANK'])")
    run = client.run("train.py", settings={"distributed": {"processes": 2}})
    assert [(each["rank"], each["state"]) for each in run.replicas()] == [
        (0, "succeeded"),
        (1, "succeeded"),
    ]
    assert run.logs(replica=1) == "rank 1\n"
    assert [each["state"] for each in run.events(replica=1)] == ["running", "succeeded"]
    assert "step.end" in {each["type"] for each in run.events("train")}


def test_a_notebook_is_made_callable_called_and_taken_back(folder: Path, write_notebook: Write):
    write_notebook(
        folder / "model.ipynb",
        ("parameters", "x: int = 1\nscale = 2"),
        ("serve", "def predict(values):\n    return [scale * each for each in values]"),
        ("outputs", "y = scale * x"),
    )
    made = client.make_callable("model.ipynb", {"scale": 3}, concurrency=1, queue=0, idle="1h")
    assert [each.id for each in client.endpoints()] == [made.id] == ["model"]
    assert made.token
    done = made.call(x=7)
    done.wait()
    assert done.outputs == {"y": 21}
    assert [run.id for run in client.runs(labels={"endpoint": "model"})] == [done.id]
    for wrong in ({"scale": 1}, {"z": 1}, {"x": "a"}):
        with pytest.raises(ConvectError):
            made.call(**wrong)
    assert made.predict([1, 2]) == [3, 6]
    assert made.predict(b"[4]") == [12]
    with pytest.raises(ConvectError, match="TypeError"):
        made.predict(1)
    assert "/predict" in made.description()["paths"]
    made.edit(paused=True)
    with pytest.raises(ConvectError, match="paused"):
        made.call()
    assert made.add_token("other") != made.token
    made.remove_token("first")
    assert [each["name"] for each in made.view()["tokens"]] == ["other"]
    made.remove()
    assert client.endpoints() == []
    assert client.services() == []
