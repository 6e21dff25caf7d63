"""What steps say when the server of their run is away, does not know us, or is somebody else."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_convect.background import Health
from jupyterlab_convect.pipeline.plan import Plan
from jupyterlab_convect.runtimes.base import GRAPH, Attempt, GraphRuntime, StepStatus
from jupyterlab_convect.runtimes.kfp import watch
from jupyterlab_convect.runtimes.kfp.api import Client
from jupyterlab_convect.runtimes.kfp.argo_nodes import node_id
from jupyterlab_convect.runtimes.kfp.credentials import Nobody
from jupyterlab_convect.runtimes.kfp.watch import Watcher
from jupyterlab_convect.transfer.agent import Sender

WORKFLOW = "churn-abcde"


class Answers(ThreadingHTTPServer):
    """Answers as it is told to, by the end of the path."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.answers: dict[str, tuple[int, object]] = {}


class Answering(BaseHTTPRequestHandler):
    server: Answers

    def log_message(self, *_: object) -> None:
        """The test's output is for what matters."""

    def do_GET(self) -> None:
        ends = (end for end in self.server.answers if self.path.endswith(end))
        status, body = self.server.answers.get(next(ends, ""), (404, {"message": "not found"}))
        is_page = isinstance(body, str)
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html" if is_page else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def server() -> Iterator[Answers]:
    server = Answers()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def run(state: str, task: str) -> dict[str, Any]:
    child = {"pod_name": node_id(WORKFLOW, f"{WORKFLOW}.root.a.executor")}
    node = {"display_name": "a", "state": task, "child_tasks": [child]}
    return {"state": state, "run_details": {"task_details": [node]}}


@pytest.fixture
def look(server: Answers, tmp_path: Path, plan_of: Callable[..., Plan]) -> Callable[[], StepStatus]:
    plan = plan_of({"a": {"kind": "notebook", "path": "one.ipynb"}})
    folder = tmp_path / "run" / "steps" / "a" / "1"
    folder.mkdir(parents=True)
    (folder / "step.json").write_text(json.dumps({"folder": str(folder / "work")}))
    graph = {"id": "r1", "done": True, "places": {"a": ["a"]}}
    (tmp_path / "run" / GRAPH).write_text(json.dumps(graph))
    attempt = Attempt("run", plan.step("a"), 1, folder, root=tmp_path, plan=plan, runs=tmp_path)
    watcher = Watcher(Health(), GraphRuntime.graph_of, None)
    client = Client(f"http://127.0.0.1:{server.server_port}", Nobody())
    return lambda: watcher.observe(client, [attempt])[0]


def test_what_was_known_stays_while_nobody_can_be_asked(
    server: Answers, look: Callable[[], StepStatus]
) -> None:
    server.answers["/runs/r1"] = (200, run("RUNNING", "RUNNING"))
    assert (look().state, look().reason) == ("running", None)
    for answer, words in (
        ((401, {"error": "who are you"}), "asks to sign in. This is the last known state."),
        ((403, {"message": "no"}), "You are not allowed to use this Kubeflow Pipelines. This is"),
        ((200, "<!doctype html>"), "returned a web page instead of data. This is"),
        ((503, "away"), "Kubeflow Pipelines has been unreachable since"),
    ):
        server.answers["/runs/r1"] = answer
        status = look()
        assert status.state == "running"
        assert words in (status.reason or "")
    server.answers["/runs/r1"] = (200, run("RUNNING", "RUNNING"))
    assert look().reason is None
    del server.answers["/runs/r1"]
    status = look()
    assert (status.state, status.reason) == ("lost", "The run was deleted in Kubeflow Pipelines.")


def test_a_run_that_has_ended_is_not_believed_before_its_tasks_are_told(
    server: Answers, look: Callable[[], StepStatus], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kubeflow writes down that a run has ended, and a moment later what became of its tasks."""
    untold = {"state": "SUCCEEDED", "run_details": {"task_details": []}}
    server.answers["/runs/r1"] = (200, untold)
    assert look().state == "queued"
    server.answers["/runs/r1"] = (200, run("SUCCEEDED", "SUCCEEDED"))
    assert look().reason == "Its results are being copied back."
    server.answers["/runs/r1"] = (200, untold)
    monkeypatch.setattr(watch, "SETTLING", -1.0)
    ended = look()
    assert ended.state == "failed"
    assert ended.reason == "Kubeflow Pipelines ended the run before it began."


def test_results_are_waited_for_and_taken_from_the_log(
    server: Answers, look: Callable[[], StepStatus], tmp_path: Path
) -> None:
    server.answers["/runs/r1"] = (200, run("SUCCEEDED", "SUCCEEDED"))
    assert look().reason == "Its results are being copied back."
    left = tmp_path / "left"
    left.mkdir()
    (left / "outputs.json").write_text(json.dumps({"state": "succeeded", "values": {"x": 1}}))
    lines: list[str] = ["I1117 launcher\n"]
    sender = Sender(left, 100_000, lines.append)
    sender.whole("outputs.json")
    sender.end(0)
    data = base64.b64encode("".join(lines).encode()).decode()
    server.answers["/artifacts/main-logs:read"] = (200, {"data": data})
    assert look().state == "succeeded"
    found = json.loads((tmp_path / "run/steps/a/1/outputs.json").read_text())
    assert found["values"] == {"x": 1}


def test_what_has_succeeded_in_a_run_that_was_stopped_is_waited_for(
    server: Answers, look: Callable[[], StepStatus], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What runs always ends after the stop, and its log may come late."""
    monkeypatch.setattr(watch, "STOPPED_PATIENCE", -1.0)
    stopped = {"state_history": [{"state": "CANCELING"}, {"state": "FAILED"}]}
    server.answers["/runs/r1"] = (200, {**run("FAILED", "SUCCEEDED"), **stopped})
    assert (look().state, look().reason) == ("running", "Its results are being copied back.")
    server.answers["/runs/r1"] = (200, {**run("FAILED", "FAILED"), **stopped})
    assert look().state == "cancelled"


def test_a_container_that_left_no_result_is_quoted(
    server: Answers, look: Callable[[], StepStatus]
) -> None:
    server.answers["/runs/r1"] = (200, run("FAILED", "FAILED"))
    said = b'time="x" level=info msg="y"\npython3: not found\nI1117 09:00:00.1 7 main.go:1] bye\n'
    log = {"data": base64.b64encode(said).decode()}
    server.answers["/artifacts/main-logs:read"] = (200, log)
    status = look()
    assert status.state == "failed"
    assert status.reason == "Its container ended without a result: python3: not found."
