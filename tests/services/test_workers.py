"""A function in a cell tagged `serve` answers in a worker that stays up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from jupyterlab_convect.errors import Refused
from jupyterlab_convect.runner.notebook_worker import RefusedCall, Worker, plain_value
from jupyterlab_convect.services.workers import work_of

LOADS = """
with open("loads.txt", "a") as file:
    file.write("loaded\\n")
scale = factor
"""
PREDICT = """
def predict(x, add: float = 0):
    if isinstance(x, str):
        raise ValueError("as asked")
    return {"y": [scale * each + add for each in x]}
"""


@pytest.fixture
def notebook(tmp_path: Path, write_notebook: Callable[..., Path]) -> Path:
    return write_notebook(
        tmp_path / "model.ipynb",
        ("parameters", "factor = 2"),
        LOADS,
        ("serve", PREDICT),
        "raise SystemError('cells after it are not executed')",
    )


def test_the_cells_up_to_the_function_are_taken(notebook: Path) -> None:
    work = work_of(notebook)
    assert (work.function, len(work.cells)) == ("predict", 3)


@pytest.mark.parametrize("cells", [["x = 1"], [("serve", "x = 1")], [("serve", "def (")]])
def test_without_a_function_there_is_no_worker(
    tmp_path: Path, write_notebook: Callable[..., Path], cells: list[Any]
) -> None:
    with pytest.raises(Refused) as refused:
        work_of(write_notebook(tmp_path / "a.ipynb", *cells))
    assert refused.value.code == "no-function"


def test_bodies_become_what_the_function_takes() -> None:
    def echo(x: Any, y: Any = None) -> Any:
        return [x, y]

    worker = Worker("m", echo)
    assert worker.predict("application/json", b'{"x": 1, "y": 2}') == [1, 2]
    assert worker.predict("", b'{"other": 1}') == [{"other": 1}, None]
    assert worker.predict("", b"[1, 2]") == [[1, 2], None]
    assert worker.predict("image/png", b"\x89PNG") == [b"\x89PNG", None]
    for kind, body in (("", b"{"), ("", b"NaN")):
        with pytest.raises(RefusedCall) as refused:
            worker.predict(kind, body)
        assert refused.value.status == 400
    tensors = {"inputs": [{"name": "x", "shape": [2], "datatype": "INT64", "data": [1, 2]}]}
    (output,) = Worker("m", lambda x: [2 * each for each in x]).infer(
        json.dumps({**tensors, "id": "7"}).encode()
    )["outputs"]
    assert output == {"name": "output", "shape": [2], "datatype": "INT64", "data": [2, 4]}
    for wrong in ({}, {"inputs": [{"name": "x", "shape": [3], "data": [1]}]}, []):
        with pytest.raises(RefusedCall) as refused:
            worker.infer(json.dumps(wrong).encode())
        assert refused.value.status == 400


def test_pictures_and_tables(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    import io

    file = io.BytesIO()
    image.new("RGB", (3, 2)).save(file, "PNG")

    def size(picture: image.Image) -> Any:  # type: ignore[valid-type]
        return picture.size  # type: ignore[attr-defined]

    size.__annotations__["picture"] = image.Image
    assert Worker("m", size).predict("image/png", file.getvalue()) == (3, 2)
    with pytest.raises(RefusedCall):
        Worker("m", size).predict("image/png", b"no picture")
    rows = plain_value(Worker("m", lambda table: table).predict("text/csv", b"a,b\n1,x\n"))
    assert [str(rows[0][key]) for key in ("a", "b")] == ["1", "x"]


def test_answers_are_json() -> None:
    numpy = pytest.importorskip("numpy")
    assert plain_value({"a": numpy.arange(2), "b": numpy.float32(0.5), 1: (None, True)}) == {
        "a": [0, 1],
        "b": 0.5,
        "1": [None, True],
    }
    assert plain_value([float("nan"), -float("inf")]) == ["NaN", "-Infinity"]
    with pytest.raises(RefusedCall):
        plain_value(object())


@pytest.fixture
def ask(notebook: Path, tmp_path: Path) -> Iterator[Callable[..., tuple[int, Any]]]:
    """`convect serve` of the notebook; a function that calls it."""
    command = [sys.executable, "-c", "from jupyterlab_convect.cli import program; program()"]
    command += ["serve", notebook.name, "--port", "0", "--token-file", str(tmp_path / "token")]
    command += ["--concurrency", "1", "--queue", "0", "-p", "factor=3"]
    environment = {**os.environ, "CONVECT_RUNS_DIR": str(tmp_path / "runs")}
    out = tmp_path / "out.txt"
    with out.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=file, stderr=subprocess.STDOUT
        )
    try:
        until(lambda: "Ctrl-C" in out.read_text(), "an address")
        address = out.read_text().split()[0]

        def call(path: str, body: bytes | None = None, **headers: str) -> tuple[int, Any]:
            signed = {"Authorization": f"Bearer {(tmp_path / 'token').read_text().strip()}"}
            request = urllib.request.Request(
                f"{address}/{path}", data=body, headers={**signed, **headers}
            )
            try:
                with urllib.request.urlopen(request, timeout=300) as answer:
                    return answer.status, json.loads(answer.read())
            except urllib.error.HTTPError as error:
                return error.code, json.loads(error.read())

        yield call
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0
        assert not any((tmp_path / "runs" / "services").iterdir()), "the worker is stopped"
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_a_model_is_loaded_once(
    ask: Callable[..., tuple[int, Any]], tmp_path: Path, notebook: Path
) -> None:
    json_ = {"Content-Type": "application/json"}
    for number in range(3):
        assert ask("predict", json.dumps({"x": [1, number]}).encode(), **json_) == (
            200,
            {"y": [3, 3 * number]},
        )
    assert (tmp_path / "loads.txt").read_text() == "loaded\n"
    assert ask("v2/health/ready")[0] == 200
    assert ask("v2/models/model")[1]["inputs"] == [{"name": "x"}, {"name": "add"}]
    tensor = {"name": "x", "shape": [2], "datatype": "INT64", "data": [1, 2]}
    _, told = ask("v2/models/model/infer", json.dumps({"inputs": [tensor]}).encode())
    assert told["outputs"] == [{"name": "y", "shape": [2], "datatype": "INT64", "data": [3, 6]}]
    status, told = ask("predict", b'{"x": "fail"}')
    assert (status, told["message"]) == (500, "ValueError: as asked")
    for path, body, wanted in (
        ("predict", b"{", 400),
        ("predict", b'{"add": 1}', 422),
        ("v2/none", None, 404),
        ("v2/models/model/infer", b"{}", 400),
    ):
        status, told = ask(path, body)
        assert status == wanted, told
        assert told["message"].endswith(".")
    assert ask("predict", b"[]", Authorization="Bearer wrong")[0] == 401
    assert "/predict" in ask("openapi.json")[1]["paths"]
    notebook.write_text(notebook.read_text().replace("scale * each", "100 * each"))
    assert ask("predict", b'{"x": [1]}') == (200, {"y": [100]}), "changed code is loaded"
    assert (tmp_path / "loads.txt").read_text() == "loaded\n" * 2
