"""Files that are too large for the pipeline, and results that are too large for the log, go through
a real object store."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import s3
from launcher import Launcher
from traitlets.config import Config

from jupyterlab_convect.errors import Missing, Refused
from jupyterlab_convect.pipeline.plan import Plan
from jupyterlab_convect.runtimes.base import Attempt
from jupyterlab_convect.runtimes.kfp.compile import Compiled, examine
from jupyterlab_convect.runtimes.kfp.executor import TaskDefaults
from jupyterlab_convect.runtimes.kfp.payload import FETCH, HAND_ON, ProjectFiles, RunPayload
from jupyterlab_convect.runtimes.kfp.runtime import KfpRuntime
from jupyterlab_convect.runtimes.kfp.task_results import TaskReceiver
from jupyterlab_convect.transfer import agent
from jupyterlab_convect.transfer.s3 import ObjectStore, S3Transfer

NOTEBOOK = {"kind": "notebook", "path": "one.ipynb"}
PREFIX = "team/ana"


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[s3.Server]:
    if not s3.program().exists():
        pytest.skip("There is no S3 server here: `python tests/testbed/s3.py` builds one.")
    with s3.serving(tmp_path_factory.mktemp("s3") / "buckets") as server:
        server.make_bucket("kfp")
        yield server


@pytest.fixture
def settings(s3_server: s3.Server, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.ACCESS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.SECRET)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    return {"endpoint": s3_server.endpoint, "bucket": "kfp", "prefix": PREFIX}


@pytest.fixture
def compiled(
    project: Path, plan_of: Callable[..., Plan], settings: dict[str, Any]
) -> Callable[..., Compiled]:
    store = S3Transfer(ObjectStore(**settings))

    def make(files: dict[str, Path] | None = None, **how: Any) -> Compiled:
        plan = plan_of({"a": {**NOTEBOOK, "dependencies": ["large.bin"]}})
        home = RunPayload({"id": "r1", "name": "a"}, "", ".", files or {}, store=store, **how)
        found, problems = examine(plan, ProjectFiles(project), TaskDefaults(), home)
        assert problems == []
        assert found is not None
        return found

    return make


def words(compiled: Compiled) -> list[str]:
    executors = compiled.pipeline_spec["deploymentSpec"]["executors"]
    container = executors.get("exec-files", executors["exec-a"])["container"]
    return [*container["command"], *container["args"]]


def test_what_is_too_large_goes_through_the_store(
    compiled: Callable[..., Compiled],
    project: Path,
    tmp_path: Path,
    s3_server: s3.Server,
    write_notebook: Callable[..., Path],
) -> None:
    write_notebook(project / "one.ipynb", ("outputs", "size = len(open('large.bin', 'rb').read())"))
    (project / "large.bin").write_bytes(os.urandom(3_000_000))
    found = compiled()
    assert words(found)[2] == FETCH
    assert len(json.dumps(found.pipeline_spec)) < 30_000
    launcher = Launcher(found, tmp_path / "store")
    done = launcher.execute("a")
    assert done.returncode == 0, done.stdout + done.stderr
    notebook = json.loads(launcher.text("a", "notebook"))
    assert notebook["cells"][0]["execution_count"] == 1
    kept = [path for path in (s3_server.folder / "kfp" / PREFIX).rglob("*") if path.is_file()]
    assert any(path.stat().st_size > 3_000_000 for path in kept)
    # Nobody who reads the pipeline gets the keys of the store.
    assert s3.SECRET not in json.dumps(found.pipeline_spec)


def test_what_fits_stays_in_the_pipeline_unless_the_store_is_insisted_on(
    compiled: Callable[..., Compiled], project: Path, tmp_path: Path
) -> None:
    (project / "large.bin").write_bytes(b"small")
    assert words(compiled())[2].startswith(HAND_ON)
    assert words(compiled(always_store=True))[2] == FETCH
    # What nobody names goes along as a whole, or through the store.
    around = tmp_path / "around.csv"
    around.write_bytes(os.urandom(2_000_000))
    found = compiled({"around.csv": around})
    assert words(found)[2] == FETCH
    assert compiled({"around.csv": around}, room=1_000).pipeline_spec != found.pipeline_spec


def test_a_store_that_refuses_is_named_and_its_address_is_not_told(
    compiled: Callable[..., Compiled], project: Path, tmp_path: Path, s3_server: s3.Server
) -> None:
    (project / "large.bin").write_bytes(os.urandom(500_000))
    found = compiled()
    container = found.pipeline_spec["deploymentSpec"]["executors"]["exec-files"]["container"]
    address = next(word for word in words(found) if word.startswith("http"))
    wrong = address[:-4] + "0000"
    container["args"] = [wrong if word == address else word for word in container["args"]]
    container["command"][2] = FETCH.replace("(1,2,4,8,None)", "(None,)")
    done = Launcher(found, tmp_path / "store", begins=False).execute("files")
    assert done.returncode != 0
    host = urlsplit(s3_server.endpoint).netloc
    assert f"The object store at {host} cannot be used" in done.stderr
    assert "X-Amz" not in done.stderr


def test_the_settings_say_which_way(settings: dict[str, Any]) -> None:
    endpoint = "http://127.0.0.1:1"
    with pytest.raises(Refused, match="No object store is configured"):
        KfpRuntime(endpoint=endpoint, files="s3")
    config = Config({"ObjectStore": settings})

    def way(files: str) -> dict[str, Any]:
        return KfpRuntime(endpoint=endpoint, files=files, config=config)._by_store("r1")

    assert way("auto")["always_store"] is False
    assert way("s3")["always_store"]
    assert way("bundle") == {}


MAKE = (
    "import os, pathlib\n"
    "pathlib.Path('made.bin').write_bytes(os.urandom(3_000_000))\n"
    "pathlib.Path('模型').mkdir()\n"
    "pathlib.Path('模型/declared.bin').write_bytes(b'd' * 5)\n"
)
LIMIT = 200_000


@pytest.fixture
def home(
    project: Path,
    tmp_path: Path,
    plan_of: Callable[..., Plan],
    settings: dict[str, Any],
    write_notebook: Callable[..., Path],
) -> Callable[..., tuple[str, Attempt]]:
    """Executes a step on this machine that makes files: what it said, and its attempt at home."""

    def execute(source: str, **how: Any) -> tuple[str, Attempt]:
        write_notebook(project / "one.ipynb", source, ("outputs", "x = 7"))
        declared = {"outputs": ["模型/*.bin"]} if "模型" in source else {}
        plan = plan_of({"a": {**NOTEBOOK, **declared}})
        store = S3Transfer(ObjectStore(**settings))
        told = {"id": "r1", "name": "a"}
        form = {**store.form("r1"), **how.pop("form", {})}
        payload = RunPayload(told, "", ".", {}, limit=LIMIT, store=store, form=form, **how)
        found, _ = examine(plan, ProjectFiles(project), TaskDefaults(), payload)
        assert found is not None
        is_first = "exec-files" not in found.pipeline_spec["deploymentSpec"]["executors"]
        done = Launcher(found, tmp_path / "store", begins=not is_first).execute("a")
        folder = tmp_path / "run" / "steps" / "a" / "1"
        folder.mkdir(parents=True)
        (folder / "step.json").write_text(json.dumps({"folder": str(folder / "work")}))
        step = plan.step("a")
        attempt = Attempt("r1", step, 1, folder, root=tmp_path, plan=plan, runs=tmp_path)
        return done.stdout, attempt

    return execute


def received(said: str, attempt: Attempt) -> TaskReceiver:
    receiver = TaskReceiver(attempt)
    receiver.take(said.encode() + b"\n")
    return receiver


@pytest.mark.parametrize(("source", "always"), [(MAKE, False), ("", True)])
def test_results_that_do_not_fit_into_the_log_come_through_the_store(
    home: Callable[..., tuple[str, Attempt]],
    settings: dict[str, Any],
    s3_server: s3.Server,
    source: str,
    always: bool,
) -> None:
    said, attempt = home(source, always_store=always)
    assert len(said) < LIMIT
    assert s3.SECRET not in said
    receiver = received(said, attempt)
    assert receiver.is_stored
    receiver.take_stored(S3Transfer(ObjectStore(**settings)))
    assert not receiver.is_stored
    outcome = json.loads((attempt.folder / "outputs.json").read_text())
    assert (outcome["state"], outcome["values"]) == ("succeeded", {"x": 7})
    assert json.loads((attempt.folder / "executed.ipynb").read_text())["cells"]
    if source:
        assert (attempt.folder / "files/模型/declared.bin").read_bytes() == b"d" * 5
        (made,) = (attempt.folder / "made").rglob("made.bin")
        assert made.stat().st_size == 3_000_000
    left = s3_server.folder / "kfp" / PREFIX / "attempts"
    assert [path for path in left.rglob("*") if path.is_file()] == []


def test_small_results_stay_in_the_log(home: Callable[..., tuple[str, Attempt]]) -> None:
    said, attempt = home("print('small')")
    assert not received(said, attempt).is_stored
    assert json.loads((attempt.folder / "outputs.json").read_text())["state"] == "succeeded"


def test_a_store_that_takes_nothing_is_named_by_the_step(
    home: Callable[..., tuple[str, Attempt]], s3_server: s3.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fits into the log comes home all the same, and the step says what did not."""
    monkeypatch.setattr(agent, "PAUSES", ())
    made = MAKE.replace("b'd' * 5", "os.urandom(1_000_000)")
    said, attempt = home(made, form={"fields": {}})
    assert not received(said, attempt).is_stored
    outcome = json.loads((attempt.folder / "outputs.json").read_text())
    host = urlsplit(s3_server.endpoint).netloc
    assert outcome["state"] == "failed"
    assert outcome["reason"].startswith(f"The pod cannot use the object store at {host}: ")
    assert (attempt.folder / "executed.ipynb").exists()


def test_what_a_stranger_has_put_there_is_not_taken(
    home: Callable[..., tuple[str, Attempt]], settings: dict[str, Any], s3_server: s3.Server
) -> None:
    said, attempt = home(MAKE)
    left = s3_server.folder / "kfp" / PREFIX / "attempts" / "r1"
    (listed,) = left.glob("*/0")
    content = json.loads(listed.read_bytes())
    content["parts"][0]["spans"][0][0] = "../../escaped"
    listed.write_text(json.dumps(content))
    store = S3Transfer(ObjectStore(**settings))
    received(said, attempt).take_stored(store)
    outcome = json.loads((attempt.folder / "outputs.json").read_text())
    assert outcome["state"] == "failed"
    assert "cannot be used" in outcome["reason"]
    (attempt.folder / "outputs.json").unlink()
    with pytest.raises(Missing, match="no longer in the object store"):
        received(said, attempt).take_stored(store)
