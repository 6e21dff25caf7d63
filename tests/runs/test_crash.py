"""The host is killed with SIGKILL at any moment, many times: no step is lost or run twice."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_convect.pipeline.resolve import resolve
from jupyterlab_convect.runs.index import Index
from jupyterlab_convect.runs.model import Request, Run, new_id
from jupyterlab_convect.runs.store import Store

pytestmark = pytest.mark.slow


def node(*after: str, also: str = "true", **more: Any) -> dict[str, Any]:
    """A step that writes down its name, and does something `also`."""
    script = f'echo "$CONVECT_STEP.$CONVECT_ATTEMPT" >> ledger; sleep 0.05; {also}'
    command = ["sh", "-c", script]
    return {"kind": "command", "command": command, "after": [*after], "retries": 0, **more}


def group(*members: str, **rule: Any) -> dict[str, Any]:
    return {"kind": "group", "members": [*members], **rule}


def each(name: str, count: int, parallel: int = 2) -> dict[str, Any]:
    return {"name": name, "in": [*range(count)], "parallel": parallel}


@dataclass
class Shape:
    """A pipeline, the attempts that it takes, and how it ends."""

    nodes: dict[str, dict[str, Any]]
    attempts: set[str]
    skipped: dict[str, str] = field(default_factory=dict)
    state: str = "succeeded"


FAILED_ITEM = 'test "$n" != 1'

INNER = {
    "fit": node(),
    "tune": node("fit", for_each=each("m", 2), when="${{ parameters.n != 1 }}"),
    "tell": node("tune", run_if="always"),
}
"""The pipeline in the loop of `pipeline in a loop`."""

SHAPES = {
    "chain, fan and retry": Shape(
        {
            "a": node(),
            **{f"fan{n}": node("a") for n in range(4)},
            "join": node(*(f"fan{n}" for n in range(4))),
            "flaky": node(
                "join", also='test "$CONVECT_ATTEMPT" = 2', retries={"count": 2, "delay": 0.05}
            ),
            "last": node("flaky"),
        },
        {*(f"{name}.1" for name in "a fan0 fan1 fan2 fan3 join flaky last".split()), "flaky.2"},
    ),
    "branch in a loop": Shape(
        {
            "g": group("a", "b", for_each=each("n", 5)),
            "a": node(),
            "b": node("a", when="${{ each.n != 3 }}"),
            "end": node("g", run_if="always"),
        },
        {*(f"g.{n}.a.1" for n in range(5)), *(f"g.{n}.b.1" for n in (0, 1, 2, 4)), "end.1"},
        {"g.3.b": "Skipped: n != 3 was false, n was 3."},
    ),
    "loop in a branch": Shape(
        {
            "taken": group("work", when="${{ 1 < 2 }}"),
            "work": node(for_each=each("n", 4)),
            "other": group("idle", when="${{ 1 > 2 }}"),
            "idle": node(for_each=each("n", 4)),
            "end": node("taken"),
            "never": node("other"),
        },
        {*(f"work.{n}.1" for n in range(4)), "end.1"},
        {"never": "Skipped because “other” was skipped."},
    ),
    "loop in a loop": Shape(
        {
            "outer": group("a", "inner", for_each=each("n", 3)),
            "a": node(),
            "inner": group("b", "c", after=["a"], for_each=each("m", 2)),
            "b": node(),
            "c": node("b"),
            "end": node("outer"),
        },
        {
            *(f"outer.{n}.a.1" for n in range(3)),
            *(f"outer.{n}.inner.{m}.{x}.1" for n in range(3) for m in range(2) for x in "bc"),
            "end.1",
        },
    ),
    "pipeline in a loop": Shape(
        {
            "sub": {
                "kind": "pipeline",
                "path": "inner.pipeline",
                "parameters": {"n": "${{ each.n }}"},
                "for_each": each("n", 3),
            },
            "end": node("sub"),
        },
        {
            *(f"sub.{n}.{x}.1" for n in range(3) for x in ("fit", "tell")),
            *(f"sub.{n}.tune.{m}.1" for n in (0, 2) for m in range(2)),
            "end.1",
        },
    ),
    "always after a failed item": Shape(
        {
            "g": group("a", "b", "clean", for_each=each("n", 3)),
            "a": node(also=FAILED_ITEM, parameters={"n": "${{ each.n }}"}),
            "b": node("a"),
            "clean": node("b", run_if="always"),
            "last": node("g", run_if="always"),
            "tell": node("last", "g", run_if="failed", for_each=each("m", 2)),
            "never": node("g"),
        },
        {
            *(f"g.{n}.{x}.1" for n in range(3) for x in ("a", "clean")),
            *("g.0.b.1", "g.2.b.1", "last.1", "tell.0.1", "tell.1.1"),
        },
        {
            "g.1.b": "Skipped because “g.1.a” failed.",
            "never": "Skipped because “g” failed.",
        },
        "failed",
    ),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(("spare_kernels", "rounds"), [(0, 2), (1, 1)], ids=["cold", "warm"])
def test_no_step_is_lost_or_run_twice(tmp_path, spare_kernels, rounds, name):
    shape = SHAPES[name]
    store = Store(tmp_path / "runs", Index(tmp_path / "index.sqlite"))
    kills = 0
    for seed in range(rounds):
        root = tmp_path / f"root-{seed}"
        root.mkdir()
        declared = {"n": {"type": "integer"}}
        inner = {"convect": 1, "parameters": declared, "nodes": INNER}
        (root / "inner.pipeline").write_text(json.dumps(inner))
        plan = resolve({"convect": 1, "nodes": shape.nodes}, root=root)
        request = Request(root=str(root), runtime="local")
        run = Run(new_id(), "crash", time.time(), "local", plan, request)
        store.create(run)
        done = subprocess.run(
            [
                *(sys.executable, Path(__file__).with_name("crash_host.py")),
                *(str(spare_kernels), tmp_path, run.id, str(seed)),
            ],
            capture_output=True,
            text=True,
            timeout=1200,  # ends only what would never end
        )
        assert done.returncode == 0, done.stderr
        kills += int(done.stdout)
        state = store.read(run.id).state
        assert state.state == shape.state, [step for step in state.steps.values() if step.reason]
        tried = {
            f"{step.id}.{attempt.attempt}"
            for step in state.steps.values()
            for attempt in step.attempts
        }
        assert tried == shape.attempts
        assert Counter((root / "ledger").read_text().split()) == Counter(shape.attempts)
        assert {step: state.steps[step].reason for step in shape.skipped} == shape.skipped
    assert kills >= rounds
    store.close()
