"""The example project as pods, with a shared volume and without."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest
from support import PROJECT, start_document


@pytest.mark.parametrize("way", ["shared", "bundle"])
async def test_the_example_runs_as_pods(make_lab: Any, bed: Any, way: str) -> None:
    if bed.example is None:
        pytest.skip("No such image.")
    lab = make_lab(shared=way == "shared", image=bed.example)
    shutil.copytree(PROJECT / "examples" / "churn", lab.root, dirs_exist_ok=True)
    document = json.loads((lab.root / "churn.pipeline").read_text())
    run = await start_document(lab, document)
    state = await lab.engine.wait(run.id, 180)
    assert state.state == "succeeded", {s.id: s.reason for s in state.steps.values()}
    assert [step.attempts[0].handle["way"] for step in state.steps.values()] == [way] * 3
    assert 0.5 < state.steps["evaluate"].metrics["accuracy"] <= 1
    picture = lab.result(run, "evaluate") / "files" / "data" / "roc.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    executed = json.loads((lab.result(run, "evaluate") / "executed.ipynb").read_text())
    kinds = [
        kind for c in executed["cells"] for o in c.get("outputs", ()) for kind in o.get("data", ())
    ]
    assert "image/png" in kinds
