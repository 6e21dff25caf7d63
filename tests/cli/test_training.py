"""`convect training`: faults with their file and line, mended and converted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jupyterlab_convect.cli import main

from ..pipeline.training.jobs import GOOD


def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    broken = GOOD.replace("              image", "        image", 1)
    Path("job.yaml").write_text(broken)
    assert main(["training", "check", "job.yaml"]) == 1
    assert "job.yaml:14: “image” is indented by 8 spaces" in capsys.readouterr().out
    assert Path("job.yaml").read_text() == broken
    assert main(["training", "check", "job.yaml", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["faults"][0]["line"] == 14
    assert main(["training", "check", "job.yaml", "--fix"]) == 0
    assert Path("job.yaml").read_text() == GOOD
    assert main(["training", "check", "none.yaml"]) == 2
