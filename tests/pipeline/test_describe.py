"""What a run needs, listed before it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.pipeline.describe import describe


def test_everything_a_run_needs_is_listed(churn: dict[str, Any], root: Path) -> None:
    churn["nodes"]["train"] |= {
        "secrets": [{"env": "T", "name": "tokens", "key": "hub"}],
        "volumes": [{"claim": "data", "path": "/data"}],
        "dependencies": ["*.ipynb", "gone.py"],
    }
    found = describe(churn, root=root, path="churn.pipeline")  # type: ignore[arg-type]
    assert found["kinds"] == {"notebook": 2}
    assert found["parameters"] == churn["parameters"]
    assert found["images"] == {"registry/ds:2026.1": ["prepare", "train"]}
    assert found["secrets"] == [{"name": "tokens", "key": "hub", "nodes": ["train"]}]
    assert found["volumes"] == [{"claim": "data", "path": "/data", "nodes": ["train"]}]
    assert found["resources"]["nodes"]["train"] == {"cpu": "500m", "memory": "2Gi", "gpu": "1"}
    assert found["resources"]["total"] == {"cpu": "1", "memory": "4Gi", "gpu": "1"}
    assert found["resources"]["largest"]["memory"] == "2Gi"
    assert found["resources"]["gpu_types"] == {"NVIDIA-A100": ["train"]}
    files = {(item["path"], item["role"]): item["exists"] for item in found["files"]}
    assert files == {
        ("gone.py", "dependency"): False,
        ("prepare.ipynb", "dependency"): True,
        ("prepare.ipynb", "source"): True,
        ("train.ipynb", "dependency"): True,
        ("train.ipynb", "source"): True,
    }


def test_a_wrong_pipeline_is_refused(churn: dict[str, Any]) -> None:
    churn["nodes"]["train"]["after"] = ["nobody"]
    with pytest.raises(ConvectError, match="nobody"):
        describe(churn)  # type: ignore[arg-type]
