"""A small pipeline with its notebooks, as a user would have them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def churn() -> dict[str, Any]:
    return {
        "convect": 1,
        "name": "churn",
        "parameters": {"lr": {"type": "number", "default": 0.1}},
        "defaults": {"image": "registry/ds:2026.1", "resources": {"cpu": "500m", "memory": "2Gi"}},
        "nodes": {
            "prepare": {"kind": "notebook", "path": "prepare.ipynb", "outputs": ["data/*.csv"]},
            "train": {
                "kind": "notebook",
                "path": "train.ipynb",
                "after": ["prepare"],
                "parameters": {
                    "lr": "${{ parameters.lr }}",
                    "rows": "${{ nodes.prepare.outputs.rows }}",
                },
                "resources": {"gpu": {"count": 1, "type": "NVIDIA-A100"}},
                "retries": 2,
                "timeout": "2h",
            },
        },
        "layout": {"prepare": [0, 0], "train": [240, 0]},
    }


@pytest.fixture
def root(tmp_path: Path, write_notebook: Callable[..., Path]) -> Path:
    """A folder with the notebooks of `churn`."""
    write_notebook(tmp_path / "prepare.ipynb", ("outputs", "rows = 100"))
    write_notebook(tmp_path / "train.ipynb", ("parameters", "lr = 0.5\nrows = 1"))
    return tmp_path
