from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_convect.runs.events import RunEnd, RunStart
from jupyterlab_convect.runs.index import Index
from jupyterlab_convect.runs.model import new_id
from jupyterlab_convect.runs.store import Store

Write = Callable[..., Path]

TRAIN = (
    ("parameters", "lr = 0.1"),
    "print('learning with', lr)",
    "open('model.txt', 'w').write('weights')",
    ("outputs", "accuracy = 1 - lr"),
)


@pytest.fixture
def train(jp_root_dir: Path, write_notebook: Write) -> str:
    write_notebook(jp_root_dir / "work" / "train.ipynb", *TRAIN)
    return "work/train.ipynb"


async def test_the_processes_of_a_distributed_script(api: Any, jp_root_dir: Path) -> None:
    (jp_root_dir / "train.py").write_text(
        "import os\nprint('rank', os.environ['RANK'])\n"
        "raise SystemExit(int(os.environ['RANK']) * 7)\n"
    )
    settings = {"distributed": {"processes": 2}}
    status, run = await api("POST", "runs", {"path": "train.py", "settings": settings})
    assert status == 201
    run = await api.ended(run["id"])
    assert run["reason"].endswith("Rank 1 of train.py exited with code 7: rank 1")
    place = f"runs/{run['id']}/steps/train/1"
    _, found = await api("GET", f"{place}/replicas")
    assert found["complete"]
    assert [each["rank"] for each in found["replicas"]] == [0, 1]
    failed = found["replicas"][1]
    assert (failed["state"], failed["exit_code"], failed["line"]) == ("failed", 7, "rank 1")
    _, log = await api("GET", f"{place}/log", replica=1)
    assert log["text"] == "rank 1\n"
    status, error = await api("GET", f"{place}/log", replica=2)
    assert (status, error["code"]) == (404, "no-such-replica")
    _, told = await api("GET", f"{place}/events", replica=1)
    assert [event["state"] for event in told["events"]] == ["running", "failed"]
    assert told["events"][1]["exit_code"] == 7
    status, error = await api("GET", f"{place}/events", replica=2)
    assert (status, error["code"]) == (404, "no-such-replica")


async def test_a_notebook_runs_and_comes_home(api: Any, train: str, jp_root_dir: Path) -> None:
    before = (jp_root_dir / train).read_bytes()
    request = {
        "path": train,
        "parameters": {"lr": 0.25},
        "labels": {"team": "a"},
        "settings": {"outputs": ["model.txt"]},
    }
    status, run = await api("POST", "runs", request)
    assert status == 201
    run = await api.ended(run["id"])
    assert (run["state"], run["metrics"]["accuracy"]) == ("succeeded", 0.75)
    assert run["request"]["path"] == train
    assert (jp_root_dir / train).read_bytes() == before

    (step,) = run["steps"]
    place = f"runs/{run['id']}/steps/{step}/1"
    _, log = await api("GET", f"{place}/log")
    assert log["text"] == "learning with 0.25\n"
    assert log["complete"]
    _, rest = await api("GET", f"{place}/log", offset=log["offset"])
    assert rest == {"text": "", "offset": log["offset"], "complete": True}
    _, end = await api("GET", f"{place}/log", last=5)
    assert end == {"text": "0.25\n", "offset": log["offset"], "complete": True}
    assert await api("GET", f"{place}/log", last=9999) == (200, log)

    _, events = await api("GET", f"{place}/events")
    kinds = [event["type"] for event in events["events"]]
    assert kinds[0] == "step.start"
    assert kinds[-1] == "step.end"
    assert events["complete"]

    _, notebook = await api("GET", f"{place}/notebook")
    assert any("lr = 0.25" in "".join(cell["source"]) for cell in notebook["cells"])
    _, source = await api("GET", f"{place}/notebook", source=1)
    assert source == json.loads(before)

    _, files = await api("GET", f"{place}/files")
    assert [file["path"] for file in files["files"]] == ["model.txt"]
    file = await api.response("GET", f"{place}/files/model.txt")
    assert file.body == b"weights"


async def test_the_source_is_known_even_when_the_file_has_changed(
    api: Any, train: str, jp_root_dir: Path, write_notebook: Write
) -> None:
    _, run = await api("POST", "runs", {"path": train, "parameters": {"lr": 0.5}})
    await api.ended(run["id"])
    write_notebook(jp_root_dir / train, "print('something else')")
    _, source = await api("GET", f"runs/{run['id']}/steps/train/1/notebook", source=1)
    assert ["".join(cell["source"]) for cell in source["cells"]] == [
        cell if isinstance(cell, str) else cell[1] for cell in TRAIN
    ]
    assert not any(cell["outputs"] for cell in source["cells"])


async def test_the_source_of_a_script_is_kept(api: Any, jp_root_dir: Path) -> None:
    path = jp_root_dir / "talk.py"
    path.write_text("print('ça va')\n")
    _, run = await api("POST", "runs", {"path": "talk.py"})
    await api.ended(run["id"])
    path.write_text("print('another')\n")
    assert await api("GET", f"runs/{run['id']}/steps/talk/1/source") == (
        200,
        {"text": "print('ça va')\n"},
    )


async def test_what_the_runtime_was_asked_for_is_shown(
    api: Any, train: str, tmp_path: Path
) -> None:
    _, run = await api("POST", "runs", {"path": train})
    await api.ended(run["id"])
    place = f"runs/{run['id']}/steps/train/1"
    assert await api("GET", f"{place}/manifest") == (200, {"manifest": None, "cluster": None})
    folder = tmp_path / place
    (folder / "manifest.json").write_text('{"kind": "Job"}')
    record = {"pod": "p", "node": None, "status": None, "events": []}
    (folder / "cluster.json").write_text(json.dumps(record))
    assert await api("GET", f"{place}/manifest") == (
        200,
        {"manifest": {"kind": "Job"}, "cluster": record},
    )


async def test_a_failure_has_a_reason(api: Any, jp_root_dir: Path, write_notebook: Write) -> None:
    write_notebook(jp_root_dir / "bad.ipynb", "raise ValueError('no such column')")
    _, run = await api("POST", "runs", {"path": "bad.ipynb"})
    run = await api.ended(run["id"])
    assert run["state"] == "failed"
    assert "no such column" in run["steps"]["bad"]["reason"]


async def test_runs_are_found_by_what_they_are(api: Any, train: str) -> None:
    for team in ("a", "b"):
        _, run = await api(
            "POST", "runs", {"path": train, "name": f"run {team}", "labels": {"team": team}}
        )
        await api.ended(run["id"])
    _, page = await api("GET", "runs", label="team=b", state="succeeded")
    assert [found["name"] for found in page["runs"]] == ["run b"]
    assert page["total"] == 1
    _, page = await api("GET", "runs", limit=1, sort="created")
    assert ([found["name"] for found in page["runs"]], page["total"]) == (["run a"], 2)
    assert page["counts"] == {"succeeded": 2}


async def test_a_run_is_renamed_labelled_annotated_and_deleted(api: Any, train: str) -> None:
    _, run = await api("POST", "runs", {"path": train})
    await api.ended(run["id"])
    change = {"name": "基线", "labels": {"kept": "yes"}, "note": "the one to beat"}
    status, changed = await api("PATCH", f"runs/{run['id']}", change)
    assert status == 200
    assert {key: changed[key] for key in change} == change
    assert changed["seq"] > run["seq"]
    assert (await api("DELETE", f"runs/{run['id']}")) == (204, None)
    status, error = await api("GET", f"runs/{run['id']}")
    assert (status, error["code"]) == (404, "missing")


async def test_the_oldest_runs_are_pruned_unless_they_are_pinned(api: Any, train: str) -> None:
    runs = []
    for _ in range(4):
        _, run = await api("POST", "runs", {"path": train})
        runs.append((await api.ended(run["id"]))["id"])
    await api("PATCH", f"runs/{runs[0]}", {"labels": {"pinned": ""}})
    assert await api("POST", "runs/prune", {}) == (200, {"runs": []})
    would = {"keep_runs": 1, "dry_run": True}
    assert await api("POST", "runs/prune", would) == (200, {"runs": runs[1:3]})
    assert await api("POST", "runs/prune", {"keep_runs": 1}) == (200, {"runs": runs[1:3]})
    _, page = await api("GET", "runs")
    assert sorted(run["id"] for run in page["runs"]) == [runs[0], runs[3]]
    status, _ = await api("POST", "runs/prune", {"keep_days": -1})
    assert status == 400


async def test_a_running_run_is_stopped_and_not_deleted(
    api: Any, jp_root_dir: Path, write_notebook: Write
) -> None:
    write_notebook(jp_root_dir / "long.ipynb", "import time; time.sleep(600)")
    _, run = await api("POST", "runs", {"path": "long.ipynb"})
    status, error = await api("DELETE", f"runs/{run['id']}")
    assert (status, error["hint"]) == (409, "Stop it first.")
    status, _ = await api("POST", f"runs/{run['id']}/stop")
    assert status == 200
    assert (await api.ended(run["id"]))["state"] == "cancelled"


async def test_a_pipeline_runs_and_is_run_again_in_part(
    api: Any, jp_root_dir: Path, write_notebook: Write
) -> None:
    write_notebook(jp_root_dir / "one.ipynb", ("outputs", "rows = 3"))
    write_notebook(jp_root_dir / "two.ipynb", ("parameters", "rows = 0"), ("outputs", "n = rows"))
    document = {
        "convect": 1,
        "name": "both",
        "nodes": {
            "one": {"kind": "notebook", "path": "one.ipynb"},
            "two": {
                "kind": "notebook",
                "path": "two.ipynb",
                "after": ["one"],
                "parameters": {"rows": "${{ nodes.one.outputs.rows }}"},
            },
        },
    }
    _, run = await api("POST", "runs", {"document": document})
    run = await api.ended(run["id"])
    assert run["state"] == "succeeded"
    assert run["steps"]["two"]["outputs"] == {"n": 3}

    body = {"mode": "from", "node": "two"}
    status, again = await api("POST", f"runs/{run['id']}/rerun", body)
    assert status == 201
    again = await api.ended(again["id"])
    assert again["steps"]["two"]["state"] == "succeeded"
    assert again["steps"]["one"]["state"] == "cached"
    assert again["steps"]["two"]["outputs"] == {"n": 3}
    status, _ = await api("GET", f"runs/{again['id']}/steps/one/1/notebook")
    assert status == 200, "what was taken over is there to be seen"


async def test_a_clone_and_a_re_run_of_a_run_from_the_command_line(
    api: Any, server: Any, jp_root_dir: Path, write_notebook: Write
) -> None:
    """Its root is another folder, here one inside the server's."""
    from jupyterlab_convect.runs.model import Request

    write_notebook(jp_root_dir / "sub" / "a.ipynb", ("outputs", "x = 1"))
    app = server.web_app.settings["jupyterlab_convect"]
    made = app.workspace.make(Request(path="a.ipynb", root=str(jp_root_dir / "sub")))
    await app.engine_thread.run(app.workspace.submit(made))
    run = await api.ended(made.id)
    assert run["request"]["path"] == "sub/a.ipynb"
    status, clone = await api("POST", "runs", run["request"])
    assert status == 201, clone
    status, again = await api("POST", f"runs/{made.id}/rerun")
    assert status == 201, again
    for run_id in (clone["id"], again["id"]):
        assert (await api.ended(run_id))["state"] == "succeeded"


async def test_everything_comes_as_a_zip(api: Any, train: str) -> None:
    _, run = await api("POST", "runs", {"path": train})
    await api.ended(run["id"])
    response = await api.response("GET", f"runs/{run['id']}/archive")
    with zipfile.ZipFile(io.BytesIO(response.body)) as archive:
        assert archive.testzip() is None
        names = set(archive.namelist())
    assert {f"{run['id']}/run.json", f"{run['id']}/steps/train/1/executed.ipynb"} <= names


async def test_what_a_notebook_wrote_never_runs_as_a_page_of_the_server(
    api: Any, jp_root_dir: Path, write_notebook: Write
) -> None:
    page = "<script>alert(1)</script>"
    write_notebook(jp_root_dir / "page.ipynb", f"open('报告.html', 'w').write({page!r})")
    request = {"path": "page.ipynb", "settings": {"outputs": ["*.html"]}}
    _, run = await api("POST", "runs", request)
    await api.ended(run["id"])
    for path in ("files/报告.html", "log?download", "notebook?download"):
        path, _, query = path.partition("?")
        response = await api.response(
            "GET", f"runs/{run['id']}/steps/page/1/{path}", params={query: ""} if query else {}
        )
        assert response.code == 200
        assert response.headers["Content-Type"] == "application/octet-stream"
        assert response.headers["Content-Disposition"].startswith("attachment")
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert "sandbox" in response.headers["Content-Security-Policy"]


async def test_changes_are_told_as_events(
    api: Any, server: Any, train: str, eventually: Callable[..., Any]
) -> None:
    told: list[dict[str, Any]] = []

    async def listen(logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        told.append(data)

    server.event_logger.add_listener(
        schema_id="https://events.jupyterlab-convect.dev/run/v1", listener=listen
    )
    _, run = await api("POST", "runs", {"path": train})
    await eventually(lambda: told and told[-1]["state"] == "succeeded")
    assert {event["run"] for event in told} == {run["id"]}
    assert [event["seq"] for event in told] == sorted(event["seq"] for event in told)


async def test_what_another_process_does_to_runs_is_told_too(
    api: Any, server: Any, train: str, tmp_path: Path, eventually: Callable[..., Any]
) -> None:
    told: dict[str, str] = {}

    async def listen(logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        told[data["run"]] = data["state"]

    server.event_logger.add_listener(
        schema_id="https://events.jupyterlab-convect.dev/run/v1", listener=listen
    )
    _, first = await api("POST", "runs", {"path": train})
    await api.ended(first["id"])
    ours = server.web_app.settings["jupyterlab_convect"].workspace.store
    record = ours.read(first["id"])
    elsewhere = Store(ours.folder, Index(ours.index.path))
    run = replace(record.run, id=new_id(), created=time.time())
    elsewhere.create(run)
    now = time.time()
    elsewhere.append(run.id, RunStart(now), RunEnd(now, "failed", "Cell 1 raised Exception: no"))
    elsewhere.close()
    await eventually(lambda: told.get(run.id) == "failed")

    _, page = await api("GET", "runs", id=run.id)
    assert [each["reason"] for each in page["runs"]] == ["Cell 1 raised Exception: no"]
    assert page["counts"] == {"succeeded": 1, "failed": 1}


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"{", "JSON"),
        (b"[1]", "object"),
        (b'{"path": 5}', "path"),
        (b'{"path": "a.ipynb", "colour": "red"}', "colour"),
        (b'{"path": "a.ipynb", "labels": {"a": 1}}', "labels.a"),
        (b'{"path": "a.ipynb", "parameters": {"a": NaN}}', "NaN"),
        (b'{"path": "a.ipynb", "name": "\\ud800"}', "JSON"),
        (b'{"path": "\xff.ipynb"}', "JSON"),
        (b'{"path": ' + b"[" * 100_000, "JSON"),
        (b"{}", "path"),
        (b'{"path": "../a.ipynb"}', "root"),
        (b'{"path": "/etc/passwd"}', "root"),
        (b'{"path": "a\\u0000.ipynb"}', "root"),
        (b'{"document": {"nodes": {}}}', "convect"),
    ],
)
async def test_a_malformed_request_gets_one_clear_sentence(
    api: Any, body: bytes, word: str
) -> None:
    status, error = await api("POST", "runs", raw=body)
    assert status == 400
    assert word in error["message"]
    assert "Traceback" not in error["message"]
    assert (await api("GET", "runs"))[1]["total"] == 0


async def test_a_parameter_of_the_wrong_type_is_refused(
    api: Any, jp_root_dir: Path, write_notebook: Write
) -> None:
    write_notebook(jp_root_dir / "typed.ipynb", ("parameters", "lr: float = 0.1"))
    body = {"path": "typed.ipynb", "parameters": {"lr": "fast"}}
    status, error = await api("POST", "runs", body)
    assert (status, error["code"]) == (400, "wrong-type")
    assert "lr" in error["message"]
    _, found = await api("POST", "runtimes/local/check", body)
    assert found["problems"][0]["severity"] == "error"
    body = {"path": "typed.ipynb", "parameters": {"speed": 1}}
    _, found = await api("POST", "runtimes/local/check", body)
    assert [problem["severity"] for problem in found["problems"]] == ["warning"]


async def test_what_is_not_there_is_missing(api: Any, train: str) -> None:
    _, run = await api("POST", "runs", {"path": train})
    await api.ended(run["id"])
    for verb, path, body in (
        ("POST", "runs", {"path": "none.ipynb"}),
        ("POST", "runs", {"path": train, "runtime": "moon"}),
        ("GET", "runs/none", None),
        ("GET", "runs/20260101-000000000-abcdef", None),
        ("POST", f"runs/{run['id']}/stop", {"step": "none"}),
        ("POST", f"runs/{run['id']}/rerun", {"mode": "only", "node": "none"}),
        ("GET", f"runs/{run['id']}/steps/none/1/log", None),
        ("GET", f"runs/{run['id']}/steps/train/2/log", None),
        ("GET", f"runs/{run['id']}/steps/train/1/files/none", None),
    ):
        status, error = await api(verb, path, body)
        assert status == 404, f"{verb} {path}: {error}"
        assert error["message"]


async def test_a_link_out_of_the_root_is_refused(
    api: Any, tmp_path: Path, jp_root_dir: Path, write_notebook: Write
) -> None:
    outside = write_notebook(tmp_path / "outside.ipynb", "1")
    (jp_root_dir / "link.ipynb").symlink_to(outside)
    document = {"convect": 1, "nodes": {"a": {"kind": "notebook", "path": "link.ipynb"}}}
    for body in ({"path": "link.ipynb"}, {"document": document}):
        status, error = await api("POST", "runs", body)
        assert (status, error["code"]) == (400, "path-outside")


async def test_a_file_outside_of_the_attempt_is_not_served(api: Any, train: str) -> None:
    _, run = await api("POST", "runs", {"path": train})
    await api.ended(run["id"])
    for path in ("%2e%2e/step.json", "..%2fstep.json", "%2fetc%2fpasswd"):
        response = await api.response("GET", f"runs/{run['id']}/steps/train/1/files/{path}")
        assert response.code in (400, 404)


@pytest.mark.parametrize(
    "query",
    [{"limit": "many"}, {"offset": "-1"}, {"state": "odd"}, {"label": "x"}, {"sort": "colour"}],
)
async def test_a_query_that_makes_no_sense_is_refused(api: Any, query: dict[str, str]) -> None:
    status, error = await api("GET", "runs", **query)
    assert status == 400
    assert error["message"]


@pytest.mark.parametrize("name", ["since", "until"])
async def test_times_that_are_no_numbers_are_refused(api: Any, name: str) -> None:
    for value in ("nan", "-NaN", "x"):
        status, error = await api("GET", "runs", **{name: value})
        assert (status, error["code"]) == (400, "malformed"), value
    for value in ("inf", "-inf", "1e300"):
        assert (await api("GET", "runs", **{name: value}))[0] == 200


async def test_a_search_out_of_proportion_is_refused(api: Any) -> None:
    status, error = await api("GET", "runs", text="a " * 1000)
    assert (status, error["code"]) == (400, "too-large")
    assert (await api("GET", "runs"))[0] == 200


async def test_parameters_are_values_and_not_data(
    api: Any, jp_root_dir: Path, write_notebook: Callable[..., Path]
) -> None:
    write_notebook(jp_root_dir / "a.ipynb", ("parameters", "text = ''\nitems = []"), "1")
    body = {"path": "a.ipynb", "parameters": {"text": "x" * 2_000_000}}
    status, error = await api("POST", "runs", body)
    assert (status, error["code"]) == (400, "too-large")
    status, error = await api("POST", "runs", raw=b'{"path": "' + b"x" * (33 << 20) + b'"}')
    assert (status, error["code"]) == (400, "too-large")
    long = {"text": "x" * 100_000, "items": list(range(10_000))}
    status, run = await api("POST", "runs", {"path": "a.ipynb", "parameters": long})
    assert status == 201
    assert (await api.ended(run["id"]))["parameters"] == long
    _, page = await api("GET", "runs")
    (summary,) = page["runs"]
    assert {name: len(value) for name, value in summary["parameters"].items()} == {
        "text": 1001,
        "items": 1001,
    }


@pytest.mark.parametrize("level", [".", "steps", "steps/a", "steps/a/1"])
async def test_no_folder_of_a_run_is_followed_that_is_a_link(
    api: Any,
    jp_root_dir: Path,
    write_notebook: Callable[..., Path],
    server: Any,
    tmp_path: Path,
    level: str,
) -> None:
    write_notebook(jp_root_dir / "a.ipynb", "print('private')")
    _, run = await api("POST", "runs", {"path": "a.ipynb"})
    assert (await api.ended(run["id"]))["state"] == "succeeded"
    one = f"runs/{run['id']}"
    step = f"{one}/steps/a/1"
    assert "private" in (await api("GET", f"{step}/log"))[1]["text"]
    store = server.web_app.settings["jupyterlab_convect"].workspace.store
    folder = store.folder / run["id"] / level
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    store._open.clear()  # As after a restart of the server.
    for what in ("log", "events", "notebook", "source", "manifest", "files", "files/x"):
        status, answer = await api("GET", f"{step}/{what}")
        assert status == 404, (what, answer)
    status, shown = await api("GET", one)
    assert status == (404 if level == "." else 200)
    assert "private" not in json.dumps(shown)
    response = await api.response("GET", f"{one}/archive")
    assert b"log.txt" not in response.body


async def test_declared_files_behind_a_link_are_not_followed(
    api: Any,
    jp_root_dir: Path,
    write_notebook: Callable[..., Path],
    server: Any,
    tmp_path: Path,
) -> None:
    write_notebook(jp_root_dir / "a.ipynb", "open('x.txt', 'w').write('kept')")
    node = {"kind": "notebook", "path": "a.ipynb", "outputs": ["x.txt"]}
    _, run = await api("POST", "runs", {"document": {"convect": 1, "nodes": {"a": node}}})
    assert (await api.ended(run["id"]))["state"] == "succeeded"
    file = f"runs/{run['id']}/steps/a/1/files/x.txt"
    assert (await api.response("GET", file)).body == b"kept"
    store = server.web_app.settings["jupyterlab_convect"].workspace.store
    files = store.attempt_folder(run["id"], "a", 1) / "files"
    files.rename(tmp_path / "elsewhere")
    files.symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    assert (await api.response("GET", file)).code == 404


async def test_an_expression_is_evaluated_with_the_values_of_a_run(
    api: Any, jp_root_dir: Path, write_notebook: Write
) -> None:
    write_notebook(jp_root_dir / "a.ipynb", ("parameters", "lr = 0.1"), ("outputs", "auc = 0.71"))
    document = {
        "convect": 1,
        "parameters": {"least": {"type": "number", "default": 0.8}},
        "nodes": {"a": {"kind": "notebook", "path": "a.ipynb"}},
    }
    _, run = await api("POST", "runs", {"document": document})
    run = await api.ended(run["id"])
    place = f"runs/{run['id']}/evaluate"

    async def evaluate(text: str) -> Any:
        return await api("GET", place, expression=f"${{{{ {text} }}}}")

    assert await evaluate("nodes.a.outputs.auc >= parameters.least") == (
        200,
        {"value": False, "values": {"auc": 0.71, "least": 0.8}},
    )
    assert await evaluate("nodes.a.outputs.auc < 1 && nodes.a.state == 'succeeded'") == (
        200,
        {"value": True, "values": {"auc": 0.71, "a.state": "succeeded"}},
    )
    for text, sentence in (
        ("nodes.b.outputs.auc > 1", "The run had no node “b”."),
        ("nodes.a.outputs.loss > 1", "Node “a” produced no output “loss”."),
        ("each.region == 'eu'", "The items of the loop around it are not known beforehand."),
        ("nodes.a.outputs.auc > 'x'", None),
    ):
        status, answer = await evaluate(text)
        assert status == 422
        assert sentence in (None, answer["message"])
    status, answer = await api("GET", place, expression="auc")
    assert (status, answer["message"]) == (400, "It must be one expression, but it is a string.")


async def test_the_items_of_a_loop_are_given_by_page_and_state(api: Any, jp_root_dir: Path) -> None:
    code = "import sys; sys.exit(int(sys.argv[1] == '中'))"
    score = {
        "kind": "command",
        "command": ["python", "-c", code, "${{ each.region }}"],
        "for_each": {"name": "region", "in": ["eu", "中", "us"]},
    }
    clean = {"kind": "command", "command": ["true"], "after": ["score"], "run_if": "always"}
    document = {"convect": 1, "nodes": {"score": score, "clean": clean}}
    status, run = await api("POST", "runs", {"document": document})
    assert status == 201
    run = await api.ended(run["id"])
    assert (run["state"], run["steps"]["clean"]["state"]) == ("failed", "succeeded")
    loop = run["groups"]["score"]
    assert (loop["items"], loop["counts"]) == (3, {"succeeded": 2, "failed": 1})
    status, page = await api("GET", f"runs/{run['id']}/items/score", state="failed")
    assert (status, page["matched"]) == (200, 1)
    (item,) = page["page"]
    assert (item["index"], item["value"], item["id"]) == (1, "中", "score.1")
    _, log = await api("GET", f"runs/{run['id']}/steps/score.1/1/log")
    assert log["complete"]
    status, page = await api("GET", f"runs/{run['id']}/items/score", offset=2, limit=5)
    assert [item["value"] for item in page["page"]] == ["us"]
    _, run = await api("GET", f"runs/{run['id']}", loop="score", worst_first="true", limit=2)
    assert [item["value"] for item in run["loop"]["page"]] == ["中", "eu"]
    assert "loop" not in (await api("GET", f"runs/{run['id']}", loop="other"))[1]
    status, answer = await api("GET", f"runs/{run['id']}/items/clean")
    assert status == 404, answer
    status, answer = await api("GET", f"runs/{run['id']}/items/score", state="odd")
    assert status == 400, answer
