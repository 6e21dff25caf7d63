"""What looks after a step while it runs goes on whatever it meets."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from waiting import eventually

from jupyterlab_convect.runner import attempt
from jupyterlab_convect.runner.masking import Mask
from jupyterlab_convect.runner.record import StepRecord


class Work:
    """It cannot be looked at for a while."""

    ticks = 0

    def tick(self, used: Mapping[str, float] | None, gpus: object) -> None:
        self.ticks += 1
        if self.ticks < 3:
            raise OverflowError("int too large to convert to float")

    def processes(self) -> list[int]:
        return []


async def test_a_look_that_fails_is_followed_by_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(attempt, "TICK", 0.001)
    monkeypatch.setattr(attempt, "reap_rest", lambda: None)  # Other tests have children too.
    work = Work()
    record = StepRecord(tmp_path, Mask([]), {}, 1 << 20)
    looking = asyncio.create_task(attempt._tick(cast(Any, work), cast(Any, None), record, None))
    await eventually(lambda: work.ticks > 5)
    looking.cancel()
    assert capfd.readouterr().err.count("Traceback") == 1
