"""Files that are too large for the pipeline reach its tasks through a real object store."""

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

from jupyterlab_convect.errors import Refused
from jupyterlab_convect.pipeline.plan import Plan
from jupyterlab_convect.runtimes.kfp.compile import Compiled, examine
from jupyterlab_convect.runtimes.kfp.executor import TaskDefaults
from jupyterlab_convect.runtimes.kfp.payload import FETCH, HAND_ON, ProjectFiles, RunPayload
from jupyterlab_convect.runtimes.kfp.runtime import KfpRuntime
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
    assert KfpRuntime(endpoint=endpoint, config=config)._by_store()["always_store"] is False
    assert KfpRuntime(endpoint=endpoint, files="s3", config=config)._by_store()["always_store"]
    assert KfpRuntime(endpoint=endpoint, files="bundle", config=config)._by_store() == {}
