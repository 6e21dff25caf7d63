"""Plans of small documents, and Kubeflow's own SDK in an environment of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_convect.catalog.expand import expand
from jupyterlab_convect.pipeline.plan import Plan
from jupyterlab_convect.pipeline.resolve import resolve

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "testbed")]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "jupyterlab-convect"
SDK = ("kfp==2.14.3", "kfp-kubernetes==2.14.3", "kfp-pipeline-spec==2.14.0")


@pytest.fixture
def project(tmp_path: Path, write_notebook: Callable[..., Path]) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    for name in ("one", "two", "three"):
        write_notebook(folder / f"{name}.ipynb", ("outputs", "x = 1"))
    return folder


@pytest.fixture
def plan_of(project: Path) -> Callable[..., Plan]:
    def make(nodes: dict[str, Any], **document: Any) -> Plan:
        whole = {"convect": 1, "name": "churn", "defaults": {"image": "ds:1"}, "nodes": nodes}
        return expand(resolve({**whole, **document}, root=project))  # type: ignore[typeddict-item]

    return make


@pytest.fixture(scope="session")
def sdk_python() -> str:
    """An interpreter that has Kubeflow's SDK, which does not get along with what we test with."""
    folder = CACHE / "kfp-sdk-2.14.3"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        install = [str(python), "-m", "pip", "install", "-q", *SDK]
        done = subprocess.run(install, capture_output=True, text=True)
        if done.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            pytest.skip(f"the SDK of Kubeflow cannot be had here: {done.stderr[-200:]}")
        (folder / "ready").touch()
    assert sys.version_info[:2] >= (3, 10)
    return str(python)


@pytest.fixture(scope="session")
def nginx_program() -> str:
    import nginx

    found = nginx.program(CACHE)
    if found is None:
        pytest.skip("nginx cannot be had here")
    return found
