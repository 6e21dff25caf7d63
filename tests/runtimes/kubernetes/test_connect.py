"""Which cluster is meant."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from jupyterlab_convect.runtimes.kubernetes.api import connect

pytest.importorskip("kubernetes.config")


def test_kubeconfig_counts_as_it_is_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = {"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "mine"}}
    content = {
        "clusters": [cluster],
        "contexts": [context],
        "current-context": "c",
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    (tmp_path / "config").write_text(yaml.safe_dump(content))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    assert connect().namespace == "mine"
