"""The journey of a person in JupyterLab, with a real Kubeflow Pipelines behind it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PATIENCE = 1200


def test_a_person_runs_a_notebook_on_it(endpoint: str, tmp_path: Path) -> None:
    import images

    chromium = os.environ.get("PLAYWRIGHT_CHROMIUM_EXECUTABLE_PATH") or shutil.which("chromium")
    programs = Path(sys.executable).parent
    if chromium is None:
        pytest.skip("There is no Chromium here.")
    if not (PROJECT / "ui-tests" / "node_modules").is_dir():
        pytest.skip("The browser tests are not installed: `make test` does that.")
    done = subprocess.run(
        ["jlpm", "playwright", "test", "kfp.spec"],
        cwd=PROJECT / "ui-tests",
        env={
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PLAYWRIGHT_CHROMIUM_EXECUTABLE_PATH": chromium,
            "PLAYWRIGHT_JSON_OUTPUT_NAME": str(tmp_path / "report.json"),
            "CONVECT_UI_KFP": endpoint,
            "CONVECT_UI_KFP_IMAGE": images.NOTEBOOK,
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "1 passed" in done.stdout
