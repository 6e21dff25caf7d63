"""Runs of a Kubeflow Pipelines server that were made elsewhere: listed, shown, never changed."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from traitlets.config import Config

from jupyterlab_convect.cli import main
from jupyterlab_convect.pipeline.plan import Plan
from jupyterlab_convect.runtimes.kfp.compile import compile_plan
from jupyterlab_convect.runtimes.kfp.executor import TaskDefaults
from jupyterlab_convect.runtimes.kfp.payload import ProjectFiles


class Runs(ThreadingHTTPServer):
    """Answers with the runs and the versions that it is given, and notes what it is asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.runs: list[dict[str, Any]] = []
        self.versions: dict[str, dict[str, Any]] = {}
        self.pipelines: list[dict[str, Any]] = []
        self.published: list[dict[str, Any]] = []
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answering(BaseHTTPRequestHandler):
    server: Runs

    def log_message(self, *_: object) -> None:
        """The test's output is for what matters."""

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        name, query = place.path.rpartition("/")[2], parse_qs(place.query)
        self.server.asked.append(self.command)
        told: Any = {"multi_user": False}
        if name == "runs":
            start = int(query.get("page_token", ["0"])[0])
            end = start + int(query["page_size"][0])
            more = {"next_page_token": str(end)} if end < len(self.server.runs) else {}
            told = {"runs": self.server.runs[start:end], **more}
        elif "/runs/" in place.path:
            told = next((run for run in self.server.runs if run["run_id"] == name), None)
        elif "/versions/" in place.path:
            told = self.server.versions.get(name)
        elif name == "pipelines":
            told = {"pipelines": self.server.pipelines}
        self.answer(told)

    def do_POST(self) -> None:
        place = urlsplit(self.path)
        data = self.rfile.read(int(self.headers["Content-Length"]))
        if place.path.endswith("/pipelines"):
            self.server.pipelines = [{"pipeline_id": "p1", **json.loads(data)}]
            self.answer(self.server.pipelines[0])
        else:
            version = {name: values[0] for name, values in parse_qs(place.query).items()}
            self.server.published.append({**version, "file": data})
            self.answer({"pipeline_version_id": f"v{len(self.server.published)}"})

    def answer(self, told: Any) -> None:
        data = json.dumps(told or {"message": "not found"}).encode()
        self.send_response(200 if told is not None else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def kubeflow() -> Iterator[Runs]:
    server = Runs()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def jp_server_config(jp_server_config: Config, kubeflow: Runs) -> Config:
    jp_server_config.KfpRuntime.endpoint = kubeflow.address
    return jp_server_config


@pytest.fixture
def spec(plan_of: Callable[..., Plan], project: Path) -> dict[str, Any]:
    """A pipeline with a loop, a condition and a loop inside, as Kubeflow has it."""
    nodes = {
        "prepare": {"kind": "notebook", "path": "one.ipynb"},
        "regions": {
            "kind": "group",
            "members": ["score"],
            "for_each": {"name": "region", "in": ["north", "south"]},
            "when": "${{ nodes.prepare.outputs.x == 1 }}",
        },
        "score": {"kind": "notebook", "path": "two.ipynb"},
        "report": {"kind": "notebook", "path": "three.ipynb", "after": ["regions"]},
    }
    compiled = compile_plan(plan_of(nodes), ProjectFiles(project), TaskDefaults())
    found = dict(compiled.pipeline_spec, sdkVersion="kfp-2.14.3")
    found["root"]["inputDefinitions"] = {
        "parameters": {
            "lr": {"parameterType": "NUMBER_DOUBLE", "defaultValue": 0.1},
            "epochs": {"parameterType": "NUMBER_INTEGER", "defaultValue": 3.0},
        }
    }
    return found


def a_run(spec: dict[str, Any] | None, name: str = "by hand", **more: Any) -> dict[str, Any]:
    states = (
        ("prepare", "SUCCEEDED"),
        ("regions", "RUNNING"),
        ("score", "SUCCEEDED"),
        ("score", "FAILED"),
        ("prepare-driver", "SUCCEEDED"),
    )
    return {
        "run_id": f"run-{name.replace(' ', '-')}",
        "display_name": name,
        "state": "RUNNING",
        "created_at": "2026-11-17T10:00:00Z",
        "finished_at": "1970-01-01T00:00:00Z",
        **({"pipeline_spec": spec} if spec else {}),
        "runtime_config": {"parameters": {"lr": 0.5}},
        "run_details": {
            "task_details": [{"display_name": key, "state": state} for key, state in states]
        },
        **more,
    }


async def test_they_are_listed_without_our_own(
    api: Any, kubeflow: Runs, spec: dict[str, Any], server: Any
) -> None:
    ours = {**spec, "sdkVersion": "jupyterlab-convect-1"}
    store = server.web_app.settings["jupyterlab_convect"].workspace.store
    known = "20261117-100000-abcdef"
    (store.folder / known).mkdir(parents=True)
    kubeflow.runs = [
        a_run({"pipeline_spec": spec, "platform_spec": {}}),
        a_run(ours, f"churn {known}"),
        a_run(ours, "churn of-a-colleague"),
        a_run(spec, "stopped", state="FAILED", state_history=[{"state": "CANCELING"}]),
    ]
    status, page = await api("GET", "runtimes/kfp/runs", limit=3)
    assert status == 200
    assert [run["name"] for run in page["runs"]] == ["by hand", "churn of-a-colleague"]
    run = page["runs"][0]
    assert (run["state"], run["made_by"], run["pipeline"]) == ("running", "kfp-2.14.3", "churn")
    assert run["created"] == 1794909600.0
    assert run["ended"] is None
    _, page = await api("GET", "runtimes/kfp/runs", limit=3, after=page["next"])
    assert [(run["name"], run["state"]) for run in page["runs"]] == [("stopped", "cancelled")]
    assert page["next"] is None
    assert set(kubeflow.asked) == {"GET"}


async def test_one_has_its_graph_its_parameters_and_the_state_of_each_part(
    api: Any, kubeflow: Runs, spec: dict[str, Any]
) -> None:
    kubeflow.runs = [a_run(spec)]
    status, run = await api("GET", "runtimes/kfp/runs/run-by-hand")
    assert status == 200
    assert run["parameters"] == {"lr": 0.5, "epochs": 3.0}
    assert run["page"] == f"{kubeflow.address}/#/runs/details/run-by-hand"
    steps = {step["id"]: step for step in run["steps"]}
    assert {name: step["state"] for name, step in steps.items()} == {
        "files": "waiting",
        "prepare": "succeeded",
        "regions-if/regions/score": "failed",
        "report": "waiting",
    }
    assert steps["prepare"]["image"] == "ds:1"
    assert steps["regions-if/regions/score"]["group"] == "regions-if/regions"
    assert steps["report"]["after"] == ["files", "prepare", "regions-if"]
    condition, loop = run["groups"]
    assert (loop["id"], loop["state"], loop["loops"]) == ("regions-if/regions", "running", True)
    assert "== 1" in condition["when"]


async def test_the_pipeline_may_be_a_version_on_the_server(
    api: Any, kubeflow: Runs, spec: dict[str, Any]
) -> None:
    reference = {"pipeline_id": "p1", "pipeline_version_id": "v1"}
    kubeflow.runs = [a_run(None, "of a version", pipeline_version_reference=reference)]
    kubeflow.versions["v1"] = {"pipeline_spec": spec}
    _, run = await api("GET", "runtimes/kfp/runs/run-of-a-version")
    assert len(run["steps"]) == 4


@pytest.mark.parametrize(
    "odd",
    [
        {"pipeline_spec": {"kind": "Workflow", "spec": {"templates": []}}},
        {"pipeline_spec": "text", "run_details": None, "state": None, "created_at": "soon"},
        {"pipeline_spec": {"root": {"dag": {"tasks": {"a": {}}}}}, "runtime_config": []},
    ],
)
async def test_what_is_not_as_expected_is_left_out(
    api: Any, kubeflow: Runs, odd: dict[str, Any]
) -> None:
    kubeflow.runs = [{**a_run(None), **odd}]
    status, run = await api("GET", "runtimes/kfp/runs/run-by-hand")
    assert (status, run["name"], run["groups"]) == (200, "by hand", [])


async def test_a_run_that_is_not_there_and_a_server_that_is_away(api: Any, kubeflow: Runs) -> None:
    assert (await api("GET", "runtimes/kfp/runs/none"))[0] == 404
    assert (await api("GET", "runtimes/kfp/runs/..%2Fexperiments"))[0] == 404
    assert (await api("GET", "runtimes/local/runs"))[1]["code"] == "no-others-runs"
    kubeflow.shutdown()
    kubeflow.server_close()
    status, told = await api("GET", "runtimes/kfp/runs")
    assert status == 503
    assert "refused the connection" in told["message"]


async def test_a_pipeline_is_published_as_it_is_in_the_editor(api: Any, kubeflow: Runs) -> None:
    command = {"kind": "command", "command": ["echo", "名"], "image": "ds:1"}
    body: Any = {"name": "流失", "document": {"convect": 1, "nodes": {"say": command}}}
    for version in ("v1", "v2"):
        status, found = await api("POST", "runtimes/kfp/pipelines", body)
        page = f"{kubeflow.address}/#/pipelines/details/p1/version/{version}"
        assert status == 200, found
        assert found == {"pipeline": "p1", "version": version, "page": page, "problems": []}
    assert kubeflow.pipelines[0]["display_name"] == "流失"
    assert [each["pipelineid"] for each in kubeflow.published] == ["p1", "p1"]
    assert b"schemaVersion: 2.1.0" in kubeflow.published[0]["file"]
    assert (await api("POST", "runtimes/local/pipelines", body))[1]["code"] == "no-pipelines"
    command["timeout"] = "soon"
    status, told = await api("POST", "runtimes/kfp/pipelines", body)
    assert 400 <= status < 500, told
    assert len(kubeflow.published) == 2


def test_the_command_lists_and_shows_them(
    kubeflow: Runs, spec: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    kubeflow.runs = [a_run(spec)]
    where = ["--endpoint", kubeflow.address]
    assert main(["kfp", "runs", *where]) == 0
    shown = capsys.readouterr().out
    assert "by hand" in shown
    assert "kfp-2.14.3" in shown
    assert main(["kfp", "runs", "run-by-hand", *where]) == 0
    shown = capsys.readouterr().out
    assert "regions-if/regions/score" in shown
    assert "lr" in shown
    assert main(["kfp", "runs", "none", *where, "--json"]) != 0
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "missing"
