"""What `convect run` says while a run or a sweep goes on, where there is no terminal."""

from __future__ import annotations

import re

import pytest

from jupyterlab_convect.cli.following import Lines, Row


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [re.sub(r"^\S+ ", "", line) for line in capsys.readouterr().err.splitlines()]


def test_a_line_for_each_change(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines()
    lines.update([Row("a", "running"), Row("b", "waiting")])
    lines.update([Row("a", "running"), Row("b", "queued", "Waiting for its turn.")])
    lines.update(
        [Row("a", "running", attempt=2), Row("b", "skipped", "Skipped because “a” failed.")]
    )
    assert said(capsys) == [
        "a: running",
        "b: queued: Waiting for its turn.",
        "a: running (attempt 2)",
        "b: skipped because “a” failed.",
    ]


def test_one_line_for_many_that_begin_to_wait(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines()
    waiting = [Row(f"x={n}", "queued", "Waiting for its turn.") for n in range(1, 64)]
    lines.update([Row("x=0", "running"), *waiting])
    lines.update([Row("x=0", "succeeded"), Row("x=1", "running"), *waiting[1:]])
    assert said(capsys) == [
        "x=0: running",
        "63 others: queued: Waiting for its turn.",
        "x=0: succeeded",
        "x=1: running",
    ]
