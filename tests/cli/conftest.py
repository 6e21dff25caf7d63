from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyterlab_convect.cli import main


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


@pytest.fixture
def convect(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Calls the command here; gives back exit code, output and what went to standard error."""

    def call(*words: str) -> tuple[int, str, str]:
        try:
            code = main(words)
        except SystemExit as ended:
            code = int(ended.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call
