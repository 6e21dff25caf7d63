"""Without a shared volume, through an object store: a real S3 server that pods can reach."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import s3
from traitlets.config import Config

sys.path.insert(0, str(Path(__file__).parent.parent / "conformance"))

import test_conformance as suite
from support import end_while_nobody_listens
from waiting import PATIENCE, eventually

for name in (
    "test_parameters_keep_their_types",
    "test_values_between_steps",
    "test_files",
    "test_a_file_that_was_promised_and_not_made",
    "test_scripts",
    "test_timeout",
    "test_failure_isolation",
    "test_any_path",
    "test_big_outputs",
    "test_what_a_run_made_is_known_and_put_in_place",
    "test_replicas_on_several_nodes_work_together",
    "test_the_rank_that_fails_first_ends_those_of_other_nodes",
):
    globals()[name] = getattr(suite, name)

LARGE = 64 * 1024 * 1024


@pytest.fixture
async def lab(make_lab: Callable[..., Any], s3_store: dict[str, Any]) -> Any:
    return make_lab(shared=False, config=Config({"ObjectStore": s3_store}))


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def kept(s3_server: s3.Server, store: dict[str, Any], kind: str) -> list[Path]:
    folder = s3_server.folder / store["bucket"] / store["prefix"] / kind
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_all_of_a_notebook_comes_back(lab: Any, s3_server: s3.Server) -> None:
    """Inputs go, and outputs, the executed notebook, the log and files that it made come back."""
    lab.write("data/数.csv", "1\n2\n")
    lab.write("helper.py", "def total(path): return sum(map(int, open(path)))\n")
    lab.notebook(
        "n.ipynb",
        "import helper; print('sum', helper.total('data/数.csv'))",
        "open('out.txt', 'w').write('kept'); open('beside.txt', 'w').write('made')",
    )
    run, _ = await lab.succeed(
        {"n": {"kind": "notebook", "path": "n.ipynb", "outputs": ["out.txt"]}}, own_view=True
    )
    folder = lab.result(run, "n")
    assert "sum 3" in read(folder / "log.txt")
    assert "sum 3" in read(folder / "executed.ipynb")
    assert '"step.end"' in read(folder / "events.ndjson")
    assert read(folder / "files" / "out.txt") == "kept"
    made = {item["path"] for item in json.loads(read(folder / "made.json"))["files"]}
    assert {Path(name).name for name in made} == {"out.txt", "beside.txt"}
    assert read(lab.root / "beside.txt") == "made"
    assert json.loads(read(folder / "environment.json"))["digest"]
    assert not (folder / ".incoming").exists()
    manifest = read(folder / "manifest.json")
    assert "X-Amz-Signature" not in manifest
    assert s3.SECRET not in "".join(read(path) for path in folder.glob("*.*"))


LARGE_STEP = """
import hashlib, pathlib
data = pathlib.Path('large.bin').read_bytes()
print(hashlib.sha256(data).hexdigest(), flush=True)
pathlib.Path('out.bin').write_bytes(data[::-1])
"""


async def test_a_large_file_goes_there_and_back(
    lab: Any, s3_server: s3.Server, s3_store: dict[str, Any]
) -> None:
    """And on to the next step, to which it is not sent again."""
    content = os.urandom(LARGE)
    (lab.root / "large.bin").write_bytes(content)
    lab.write("a.py", LARGE_STEP)
    lab.write("b.py", LARGE_STEP.replace("large.bin", "out.bin", 1))
    run, _ = await lab.succeed(
        {
            "a": {"kind": "script", "path": "a.py", "outputs": ["out.bin"]},
            "b": {"kind": "script", "path": "b.py", "after": ["a"]},
        },
        own_view=True,
    )
    assert hashlib.sha256(content).hexdigest() in read(lab.result(run, "a") / "log.txt")
    back = hashlib.sha256(content[::-1]).hexdigest()
    assert (
        hashlib.sha256((lab.result(run, "a") / "files" / "out.bin").read_bytes()).hexdigest()
        == back
    )
    assert back in read(lab.result(run, "b") / "log.txt")
    await eventually(lambda: not kept(s3_server, s3_store, "attempts"))


async def test_eight_runs_at_once(lab: Any) -> None:
    lab.write("a.py", "import os\nopen('x.txt', 'w').write(os.environ['n'])\n")
    document = {"a": {"kind": "script", "path": "a.py", "outputs": ["x.txt"]}}
    runs = [
        await lab.start({"a": {**document["a"], "parameters": {"n": str(number)}}})
        for number in range(8)
    ]
    for number, run in enumerate(runs):
        state = await lab.engine.wait(run.id, 300)
        assert state.state == "succeeded", state.reason
        assert read(lab.result(run, "a") / "files" / "x.txt") == str(number)


async def test_the_next_server_fetches_what_ended_meanwhile(lab: Any, bed: Any) -> None:
    run = await end_while_nobody_listens(lab, bed)
    assert await lab.engine.resume() == [run.id]
    state = await lab.engine.wait(run.id, PATIENCE)
    assert state.state == "succeeded", state.reason
    assert read(lab.result(run, "a") / "files" / "x.txt") == "1"


async def test_what_is_said_can_be_followed(lab: Any) -> None:
    lab.notebook("a.ipynb", "print('hello')", "import time\nfor n in range(600): time.sleep(0.1)")
    run = await lab.start("a.ipynb")
    folder = lab.store.attempt_folder(run.id, "a", 1)
    await eventually(lambda: "hello" in read(folder / "log.txt"))
    await eventually(lambda: "hello" in read(folder / "executed.ipynb"))
    await lab.engine.stop(run.id)
    state = await lab.engine.wait(run.id, PATIENCE)
    assert state.steps["a"].state == "cancelled"


async def test_a_store_that_pods_cannot_reach_is_named(
    make_lab: Callable[..., Any], s3_store: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {**s3_store, "pod_endpoint": "http://10.88.77.1:1"}
    lab = make_lab(shared=False, config=Config({"ObjectStore": told}))
    monkeypatch.setattr("jupyterlab_convect.transfer.bundle.agent_program", _impatient)
    lab.write("a.py", "print(1)")
    run = await lab.start("a.py")
    state = await lab.engine.wait(run.id, 120)
    assert state.state == "failed"
    assert "The pod cannot use the object store at 10.88.77.1:1" in state.steps["a"].reason


def _impatient() -> bytes:
    from jupyterlab_convect.transfer import agent

    source = Path(agent.__file__).read_bytes()
    return source.replace(b"PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)", b"PAUSES = ()")
