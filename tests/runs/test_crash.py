"""The host is killed with SIGKILL at any moment, many times: no step is lost or run twice."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from jupyterlab_convect.pipeline.plan import Plan, Retries, Step
from jupyterlab_convect.pipeline.resolve import resolve
from jupyterlab_convect.runs.index import Index
from jupyterlab_convect.runs.model import Request, Run, new_id
from jupyterlab_convect.runs.store import Store

pytestmark = pytest.mark.slow


def pipeline(ledger: Path) -> Plan:
    """A chain, a fan and a step that succeeds at the second attempt; each writes down its name."""

    def step(step_id: str, *after: str, also: str = "true", **fields) -> Step:
        script = f'echo {step_id}.$CONVECT_ATTEMPT >> "{ledger}"; sleep 0.05; {also}'
        command = ("sh", "-c", script)
        return Step(step_id, "command", step_id, after=after, command=command, **fields)

    flaky = Retries(2, delay=0.05)
    return Plan(
        "crash",
        (
            step("a"),
            *(step(f"fan{n}", "a") for n in range(4)),
            step("join", *(f"fan{n}" for n in range(4))),
            step("flaky", "join", also='test "$CONVECT_ATTEMPT" = 2', retries=flaky),
            step("last", "flaky"),
        ),
    )


def loops(ledger: Path) -> Plan:
    """A loop over a group, two items at a time, one of them skipped by a condition, and an end."""

    def node(name: str, **more) -> dict:
        script = f'echo {name}.$CONVECT_ATTEMPT >> "{ledger}"; sleep 0.05'
        return {"kind": "command", "command": ["sh", "-c", script], **more}

    nodes = {
        "g": {
            "kind": "group",
            "members": ["a", "b"],
            "for_each": {"name": "n", "in": [*range(5)], "parallel": 2},
        },
        "a": node("g.${{ each.n }}.a"),
        "b": node("g.${{ each.n }}.b", after=["a"], when="${{ each.n != 3 }}"),
        "end": node("end", after=["g"], run_if="always"),
    }
    return resolve({"convect": 1, "nodes": nodes}, root=ledger.parent)


@pytest.mark.parametrize("shape", [pipeline, loops])
@pytest.mark.parametrize(("spare_kernels", "rounds"), [(0, 4), (1, 1)], ids=["cold", "warm"])
def test_no_step_is_lost_or_run_twice(tmp_path, spare_kernels, rounds, shape):
    store = Store(tmp_path / "runs", Index(tmp_path / "index.sqlite"))
    kills = 0
    for seed in range(rounds):
        ledger = tmp_path / f"ledger-{seed}"
        plan = shape(ledger)
        request = Request(root=str(tmp_path), runtime="local")
        run = Run(new_id(), "crash", time.time(), "local", plan, request)
        store.create(run)
        done = subprocess.run(
            [
                *(sys.executable, Path(__file__).with_name("crash_host.py")),
                *(str(spare_kernels), tmp_path, run.id, str(seed)),
            ],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        kills += int(done.stdout)
        state = store.read(run.id).state
        assert state.state == "succeeded", [step for step in state.steps.values() if step.reason]
        tried = {
            f"{step.id}.{attempt.attempt}"
            for step in state.steps.values()
            for attempt in step.attempts
        }
        if shape is pipeline:
            assert tried == {*(f"{step.id}.1" for step in plan.steps), "flaky.2"}
        else:
            assert len(tried) == 10
            assert state.steps["g.3.b"].reason == "Skipped: n != 3 was false, n was 3."
        assert Counter(ledger.read_text().split()) == Counter(tried)
    assert kills >= rounds
    store.close()
