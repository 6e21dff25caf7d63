"""Volumes that tasks of Kubeflow share with the server that runs in the same cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jupyterlab_convect.pipeline.plan import Plan, Volume
from jupyterlab_convect.runtimes.kfp.compile import examine
from jupyterlab_convect.runtimes.kfp.executor import TaskDefaults
from jupyterlab_convect.runtimes.kfp.payload import ProjectFiles, RunPayload
from jupyterlab_convect.runtimes.kfp.volume_files import VolumeFiles, shareable
from jupyterlab_convect.transfer.base import SharedVolume


def claim(name: str) -> dict[str, Any]:
    return {"persistentVolumeClaim": {"claimName": name}}


def test_whole_claims_of_our_own_pod_are_shared_and_nothing_else() -> None:
    volumes, node = shareable(
        (
            SharedVolume("/home/ana", claim("ana"), node="n7"),
            SharedVolume("/data", claim("data")),
            SharedVolume("/other", claim("data")),
            SharedVolume("/team", claim("team"), sub_path="ana"),
            SharedVolume("/read", claim("read"), read_only=True),
            SharedVolume("/nfs", {"nfs": {"server": "s", "path": "/"}}),
        )
    )
    assert volumes == (Volume("ana", "/home/ana"), Volume("data", "/data"))
    assert node == "n7"


def test_tasks_run_where_they_can_have_the_volume(
    plan_of: Callable[..., Plan], project: Path, tmp_path: Path
) -> None:
    gpu = {"gpu": {"count": 1, "type": "A100"}}
    nodes = {
        "one": {"kind": "notebook", "path": "one.ipynb", "resources": gpu},
        "two": {"kind": "notebook", "path": "two.ipynb", "after": ["one"]},
    }
    files = VolumeFiles(tmp_path, "r1")
    files.open()
    home = RunPayload({"id": "r1", "name": "a"}, store=files, keep=str(files.folder))
    defaults = TaskDefaults(volumes=(Volume("ana", str(tmp_path)),), node="n7")
    compiled, problems = examine(plan_of(nodes), ProjectFiles(project), defaults, home)
    assert (compiled is not None, problems) == (True, [])
    executors = compiled.platform_spec["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    for settings in executors.values():
        (mount,) = settings["pvcMount"]
        assert (mount["constant"], mount["mountPath"]) == ("ana", str(tmp_path))
        (term,) = settings["nodeAffinity"]
        only = {"key": "metadata.name", "operator": "In", "values": ["n7"]}
        assert term["matchFields"] == [only]
    (wanted,) = executors["exec-one"]["nodeAffinity"][0]["matchExpressions"]
    assert wanted["values"] == ["A100"]
