from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder to be in, with runs of its own."""
    monkeypatch.setenv("CONVECT_RUNS_DIR", str(tmp_path / "runs"))
    monkeypatch.setenv("CONVECT_INDEX_DIR", str(tmp_path / "index"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder
