"""The page of the cluster in JupyterLab, with a real cluster behind it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import PROJECT, container_of
from waiting import until

PATIENCE = 1200


def test_each_account_sees_as_much_as_its_rights_allow(bed: Any, tmp_path: Path) -> None:
    chromium = os.environ.get("PLAYWRIGHT_CHROMIUM_EXECUTABLE_PATH") or shutil.which("chromium")
    if chromium is None:
        pytest.skip("There is no Chromium here.")
    if not (PROJECT / "ui-tests" / "node_modules").is_dir():
        pytest.skip("The browser tests are not installed: `make test` does that.")
    bed.create("ServiceAccount", "no-rights")
    accounts = {
        "viewer": bed.account("viewer", capacity=True),
        "member": bed.account("convect"),
        "stranger": bed._kubeconfig("no-rights"),
    }
    quota = {"requests.nvidia.com/gpu": "2"}
    bed.create("ResourceQuota", "gpus", spec={"hard": quota})
    used = bed.admin.path("resourcequotas", "gpus")
    until(lambda: "used" in bed.admin.get(used).get("status", {}), "the quota counts")
    container = container_of(bed, "sleep", "infinity", cpu="10m", memory="16Mi", gpu="1")
    bed.create("Pod", "holder", spec={"containers": [container]})
    holder = bed.admin.path("pods", "holder")
    until(lambda: bed.admin.get(holder)["spec"].get("nodeName"), "it has a node")
    groups = bed.admin.get("/apis")["groups"]
    try:
        done = subprocess.run(
            ["jlpm", "playwright", "test", "cluster.spec", "-g", "each account"],
            cwd=PROJECT / "ui-tests",
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                "PLAYWRIGHT_CHROMIUM_EXECUTABLE_PATH": chromium,
                "PLAYWRIGHT_JSON_OUTPUT_NAME": str(tmp_path / "report.json"),
                "CONVECT_UI_CLUSTERS": json.dumps({k: str(v) for k, v in accounts.items()}),
                "CONVECT_UI_QUEUES": "1"
                if any(each["name"] == "kueue.x-k8s.io" for each in groups)
                else "",
            },
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    finally:
        bed.admin.delete(holder, gracePeriodSeconds=0)
        bed.admin.delete(used)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "1 passed" in done.stdout
