from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DOCUMENT = {
    "convect": 1,
    "name": "p",
    "parameters": {"lr": {"type": "number", "default": 0.1}},
    "nodes": {"train": {"kind": "notebook", "path": "train.ipynb"}},
}


@pytest.fixture
def train(jp_root_dir: Path, write_notebook: Callable[..., Path]) -> Path:
    return write_notebook(jp_root_dir / "train.ipynb", ("parameters", "lr: float = 0.1  # speed"))


async def test_a_file_tells_what_it_takes(api: Any, train: Path) -> None:
    status, found = await api("GET", "discover", path="train.ipynb")
    assert status == 200
    assert (found["kind"], found["kernel"]) == ("notebook", "python3")
    (parameter,) = found["parameters"]
    assert (parameter["name"], parameter["type"], parameter["default"]) == ("lr", "number", 0.1)


async def test_what_cannot_be_looked_into_is_refused(
    api: Any, jp_root_dir: Path, tmp_path: Path
) -> None:
    (jp_root_dir / "picture.png").write_bytes(b"\x89PNG")
    (jp_root_dir / "broken.ipynb").write_text("{")
    (tmp_path / "secret.py").write_text("x = 1")
    (jp_root_dir / "link.py").symlink_to(tmp_path / "secret.py")
    (jp_root_dir / "loop.py").symlink_to(jp_root_dir / "loop.py")
    for path, expected in (
        (None, 400),
        ("none.ipynb", 404),
        ("picture.png", 400),
        ("broken.ipynb", 400),
        ("../x.py", 400),
        ("link.py", 400),
        ("loop.py", 404),
        (".", 400),
    ):
        status, error = await api("GET", "discover", **({} if path is None else {"path": path}))
        assert status == expected, f"{path}: {error}"


async def test_many_files_are_asked_about_at_once_and_told_when_they_change(
    api: Any, jp_root_dir: Path, train: Path
) -> None:
    body = {"files": {"train.ipynb": None, "none.ipynb": None, "../x.py": None}}
    status, answer = await api("POST", "discover", body)
    assert status == 200
    files = answer["files"]
    assert files["train.ipynb"]["found"]["parameters"][0]["name"] == "lr"
    assert files["none.ipynb"]["error"]["code"] == "missing"
    assert files["../x.py"]["error"]["code"] == "path-outside"

    known = {path: file["stamp"] for path, file in files.items()}
    assert await api("POST", "discover", {"files": known}) == (200, {"files": {}})
    train.unlink()
    (jp_root_dir / "none.ipynb").write_text("{")
    _, answer = await api("POST", "discover", {"files": known})
    assert {path: file["error"]["code"] for path, file in answer["files"].items()} == {
        "train.ipynb": "missing",
        "none.ipynb": "bad-notebook",
    }


async def test_a_pipeline_is_checked_as_it_is_being_edited(api: Any, train: Path) -> None:
    status, found = await api("POST", "pipelines/validate", {"document": DOCUMENT})
    assert (status, found) == (200, {"problems": []})
    wrong = {**DOCUMENT, "nodes": {"a": {"kind": "notebook", "path": "none.ipynb"}}}
    _, found = await api("POST", "pipelines/validate", {"document": wrong})
    assert found["problems"][0]["node"] == "a"
    body = {"document": DOCUMENT, "parameters": {"lr": "fast"}}
    _, found = await api("POST", "pipelines/validate", body)
    assert found["problems"][0]["severity"] == "error"


async def test_a_pipeline_says_what_it_needs(api: Any, train: Path) -> None:
    status, found = await api("POST", "pipelines/describe", {"document": DOCUMENT})
    assert status == 200
    assert found["files"][0]["path"] == "train.ipynb"


async def test_a_runtime_says_what_it_would_not_do(api: Any, train: Path) -> None:
    body = {"path": "train.ipynb", "settings": {"image": "ubuntu"}}
    status, found = await api("POST", "runtimes/local/check", body)
    assert status == 200
    assert isinstance(found["problems"], list)
    status, found = await api("POST", "runtimes/local/check", {"document": {"convect": 1}})
    assert (status, found["problems"][0]["severity"]) == (200, "error")
    for name, body in (("moon", {"path": "train.ipynb"}), ("local", {"path": "none.ipynb"})):
        status, _ = await api("POST", f"runtimes/{name}/check", body)
        assert status == 404


async def test_runtimes_tell_what_they_can_do(api: Any) -> None:
    _, found = await api("GET", "runtimes")
    local = next(runtime for runtime in found["runtimes"] if runtime["name"] == "local")
    assert "cpu" in local["features"]
    assert local["options_schema"]["type"] == "object"


async def test_an_elyra_pipeline_is_converted_and_nothing_written(
    api: Any, jp_root_dir: Path
) -> None:
    (jp_root_dir / "old.pipeline").write_text(
        '{"doc_type": "pipeline", "version": "3.0", "id": "x", "primary_pipeline": "p",'
        ' "schemas": [], "pipelines": [{"id": "p", "nodes": [], "app_data": {"version": 8,'
        ' "ui_data": {"comments": []}, "properties": {"name": "old"}}, "runtime_ref": ""}]}'
    )
    before = sorted(jp_root_dir.iterdir())
    status, found = await api("POST", "pipelines/import", {"path": "old.pipeline"})
    assert status == 200, found
    assert found["document"]["convect"] == 1
    assert sorted(jp_root_dir.iterdir()) == before
    for body in ({}, {"path": 1}, {"path": "old.pipeline", "to": "x"}):
        assert (await api("POST", "pipelines/import", body))[0] == 400


async def test_names_that_are_too_long_are_refused(api: Any) -> None:
    path = "z" * 300 + ".ipynb"
    answers = [await api("GET", "discover", path=path)]
    for place in ("validate", "describe", "import"):
        answers.append(await api("POST", f"pipelines/{place}", {"path": path}))
    assert {(status, error["code"]) for status, error in answers} == {(400, "path-too-long")}


async def test_a_pipeline_says_what_it_takes_and_gives(api: Any, jp_root_dir: Path) -> None:
    document = {
        "convect": 1,
        "parameters": {
            "region": {"type": "string", "required": True},
            "lr": {"type": "number", "default": 0.1, "description": "speed", "choices": [0.1, 1]},
        },
        "nodes": {"a": {"kind": "command", "command": ["true"]}},
        "outputs": {"auc": "${{ nodes.a.outputs.auc }}"},
    }
    (jp_root_dir / "inner.pipeline").write_text(json.dumps(document))
    (jp_root_dir / "odd.pipeline").write_text('{"convect": 1, "parameters": [1], "outputs": 3}')
    known = {"inner.pipeline": None, "odd.pipeline": None}
    status, answer = await api("POST", "discover", {"files": known})
    found = answer["files"]["inner.pipeline"]["found"]
    assert (status, found["kind"], found["outputs"]) == (200, "pipeline", ["auc"])
    region, rate = found["parameters"]
    assert (region["name"], region["required"]) == ("region", True)
    assert (rate["default"], rate["help"], rate["choices"]) == (0.1, "speed", [0.1, 1])
    assert not rate["required"]
    assert answer["files"]["odd.pipeline"]["found"]["parameters"] == []


async def test_a_pipeline_is_exported_for_kubeflow(api: Any, train: Path) -> None:
    body = {"to": "kfp", "document": DOCUMENT, "path": "p.pipeline", "image": "ds:1"}
    status, answer = await api("POST", "pipelines/export", body)
    assert status == 200
    assert "schemaVersion: 2.1.0" in answer["text"]
    assert answer["problems"] == []
    status, error = await api("POST", "pipelines/export", {**body, "image": ""})
    assert (status, error["code"]) == (422, "no-image")
    status, _ = await api("POST", "pipelines/export", {**body, "to": "airflow"})
    assert status == 400
