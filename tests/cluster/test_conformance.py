"""The suite of every runtime, as pods, with the rights of `deploy/role.yaml` alone."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "conformance"))

import test_conformance as suite
from waiting import PATIENCE, eventually

globals().update({name: item for name, item in vars(suite).items() if name.startswith("test_")})


@pytest.mark.parametrize("kind", ["script", "notebook"])
async def test_cancel(lab: Any, bed: Any, kind: str) -> None:
    """As in the suite, but the process that has to be gone lives in a pod."""
    source = "import pathlib, time\npathlib.Path('up').touch()\nwhile True: time.sleep(0.1)"
    path = "slow.py" if kind == "script" else "slow.ipynb"
    lab.write(path, source) if kind == "script" else lab.notebook(path, source)
    lab.write("n.py", "pass")
    run = await lab.start(
        {
            "slow": {"kind": kind, "path": path},
            "next": {"kind": "script", "path": "n.py", "after": ["slow"]},
        }
    )
    await suite.until((lab.root / "up").exists)
    await lab.engine.stop(run.id)
    state = await lab.engine.wait(run.id, PATIENCE)
    assert state.state == "cancelled"
    assert {step.state for step in state.steps.values()} == {"cancelled"}
    assert (lab.result(run, "slow") / "outputs.json").exists()

    async def is_gone() -> bool:
        return not await asyncio.to_thread(bed.pods, run.id)

    await eventually(is_gone, "its pods are gone")


async def test_a_loop_goes_on_after_the_host_is_gone(make_lab: Any) -> None:
    """As in the suite, without the volume, whose rights are opened in this process alone."""
    await suite.killed_in_a_loop(make_lab(shared=False))
