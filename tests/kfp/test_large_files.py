"""Files that go over a volume which tasks of a real Kubeflow Pipelines and we share, or through an
object store."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from traitlets.config import Config

from jupyterlab_convect import safe_files
from jupyterlab_convect.runs.model import new_id
from jupyterlab_convect.runs.store import Store
from jupyterlab_convect.runtimes.kubernetes.api import Api
from jupyterlab_convect.runtimes.kubernetes.api import connect as connect_to_cluster

LARGE = 3_000_000
"""Bytes: more than there is room for in the pipeline, and than a step may tell in its log."""


@pytest.fixture
def shared(endpoint: str) -> Iterator[tuple[Path, str]]:
    """A folder that tasks may write to as another user, and the claim of its volume."""
    import cluster
    import places

    name = f"home-{new_id()}"
    folder = Path(cluster.SHARED, name)
    # The pods' user is not ours, as it is where people work, and both write there.
    before = os.umask(0)
    open_to_all = pytest.MonkeyPatch()
    open_to_all.setattr(safe_files, "PRIVATE", 0o777)
    open_to_all.setattr(Store.__init__, "__defaults__", (0o777,))
    open_to_all.setattr(safe_files, "_file_mode", lambda _: 0o666)
    folder.mkdir()
    api = Api(connect_to_cluster(config_file=str(places.KUBECONFIG)))
    spec = {
        "accessModes": ["ReadWriteMany"],
        "capacity": {"storage": "1Gi"},
        "storageClassName": name,
    }
    source = {"hostPath": {"path": str(folder)}, "persistentVolumeReclaimPolicy": "Retain"}
    metadata = {"metadata": {"name": name}}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", **metadata}
    api.create("/api/v1/persistentvolumes", {**volume, "spec": {**spec, **source}})
    asked = {**spec, "resources": {"requests": spec.pop("capacity")}}
    asked.pop("capacity")
    claims = api.path("persistentvolumeclaims", namespace="kubeflow")
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **metadata, "spec": asked}
    api.create(claims, claim)
    yield folder, name
    open_to_all.undo()
    os.umask(before)
    api.delete(f"{claims}/{name}")
    api.delete(f"/api/v1/persistentvolumes/{name}")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def stored(
    endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, Any]]:
    """The settings of a bucket that tasks can reach."""
    import places
    import s3

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.ACCESS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.SECRET)
    with s3.serving(tmp_path / "buckets", places.ADDRESS) as server:
        server.make_bucket("kfp")
        yield {"endpoint": server.endpoint, "bucket": "kfp", "prefix": "team"}


async def test_large_files_go_and_come(
    shared: tuple[Path, str], stored: dict[str, Any], make_lab: Callable[..., Any], tmp_path: Path
) -> None:
    """Over a volume, and through an object store, without any right in the cluster."""
    folder, claim = shared
    volumes = [{"path": str(folder), "claim": claim}]
    config = Config(ObjectStore=stored)
    ways: dict[str, tuple[Path, dict[str, Any]]] = {
        "auto": (folder / "1", {"volumes": volumes}),
        "shared": (folder / "2", {"volumes": volumes, "files": "shared"}),
        "store": (tmp_path / "3", {"config": config}),
        "s3": (tmp_path / "4", {"config": config, "files": "s3"}),
    }

    async def go_and_come(place: Path, traits: dict[str, Any]) -> None:
        place.mkdir()
        lab = make_lab(place, carry_limit=200_000, cluster="never", **traits)
        try:
            run = await large_files(lab)
            if "volumes" in traits:
                left = [path.suffix for path in (lab.store.folder / ".kfp" / run.id).iterdir()]
                assert left == [".tar"]
        finally:
            await lab.close()

    await asyncio.gather(*(go_and_come(*way) for way in ways.values()))
    # What has come home is not kept twice.
    left = Path(tmp_path, "buckets", "kfp", "team", "attempts")
    assert [path for path in left.rglob("*") if path.is_file()] == []


async def large_files(lab: Any) -> Any:
    content = os.urandom(LARGE)
    (lab.root / "large.bin").write_bytes(content)
    lab.write("pyproject.toml", "")  # The project begins here.
    lab.write(
        "double.py",
        "from pathlib import Path\n"
        "import jupyterlab_convect as convect, hashlib\n"
        "given = Path('large.bin').read_bytes()\n"
        "Path('made.bin').write_bytes(given[::-1])\n"
        "Path('declared').mkdir()\n"
        "Path('declared/模型.bin').write_bytes(given)\n"
        "convect.output('digest', hashlib.sha256(given).hexdigest())\n",
    )
    lab.notebook(
        "item.ipynb",
        ("parameters", "n = 0"),
        "from pathlib import Path\ngiven = Path('large.bin').read_bytes()",
        "Path('item.bin').write_bytes(given[n:])",
        ("outputs", "size = Path('item.bin').stat().st_size"),
    )
    item = {"kind": "notebook", "path": "item.ipynb", "parameters": {"n": "${{ each.n }}"}}
    run, state = await lab.finish(
        {
            "double": {"kind": "script", "path": "double.py", "outputs": ["declared/*.bin"]},
            "item": {**item, "for_each": {"name": "n", "in": [1, 2]}},
        }
    )
    reasons = {step.id: step.reason for step in state.steps.values()}
    assert state.state == "succeeded", reasons
    digest = hashlib.sha256(content).hexdigest()
    assert state.steps["double"].outputs == {"digest": digest}
    result = lab.result(run, "double")
    assert (result / "files/declared/模型.bin").read_bytes() == content
    (made,) = (result / "made").rglob("made.bin")
    assert made.read_bytes() == content[::-1]
    for n in (1, 2):
        assert state.steps[f"item.{n - 1}"].outputs == {"size": LARGE - n}
        (made,) = (lab.result(run, f"item.{n - 1}") / "made").rglob("item.bin")
        assert made.read_bytes() == content[n:]
        assert (lab.result(run, f"item.{n - 1}") / "executed.ipynb").exists()
    return run


async def test_a_volume_that_does_not_hold_the_runs_is_refused(
    tmp_path: Path, make_lab: Callable[..., Any]
) -> None:
    volumes = [{"path": "/elsewhere", "claim": "home"}]
    lab = make_lab(tmp_path, volumes=volumes, files="shared")
    lab.write("a.py", "print(1)")
    _, state = await lab.finish({"a": {"kind": "script", "path": "a.py"}})
    assert state.state == "failed"
    assert "No volume of Kubeflow Pipelines holds" in str(state.steps["a"].reason)
    await lab.close()
