from __future__ import annotations

import json
from pathlib import Path

import pytest
from traitlets.config import Config

from jupyterlab_convect.errors import Refused
from jupyterlab_convect.settings import Settings
from jupyterlab_convect.workspace import Workspace


def test_several_clusters_are_several_runtimes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").touch()
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    named = {"team-gpus": {"kind": "kubernetes", "context": "prod", "namespace": "team"}}
    config = Config({"Convect": {"named_runtimes": named}, "KubernetesRuntime": {"image": "ds:1"}})
    runtimes = Workspace(Settings(config=config)).runtimes
    one, other = runtimes["kubernetes"], runtimes["team-gpus"]
    assert "team-gpus" in set(runtimes)
    assert (one.name, one.namespace, one.image) == ("kubernetes", "", "ds:1")
    assert (other.name, other.namespace, other.image) == ("team-gpus", "team", "ds:1")
    assert (one.display_name, other.display_name) == ("Kubernetes", "Kubernetes (team-gpus)")


async def test_a_cluster_that_nobody_configured_is_said_in_a_sentence(tmp_path: Path) -> None:
    from jupyterlab_convect.pipeline.plan import Plan
    from jupyterlab_convect.runtimes.kubernetes import KubernetesRuntime

    with pytest.raises(Refused, match="No Kubernetes cluster is configured"):
        KubernetesRuntime(config_file=str(tmp_path / "none"))
    broken = tmp_path / "config"
    broken.write_text(json.dumps({"contexts": []}))
    runtime = KubernetesRuntime(config_file=str(broken))
    (problem,) = await runtime.check(Plan("p", ()))
    assert (problem.severity, problem.code) == ("error", "no-cluster")
    assert problem.message.startswith("No Kubernetes cluster is configured")
    await runtime.close()
