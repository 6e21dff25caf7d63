"""What Kubeflow tells of a run, read as the states of steps."""

from __future__ import annotations

from typing import Any

import pytest

from jupyterlab_convect.runtimes.kfp.argo_nodes import EACH, SeenRun, node_id, node_name

WORKFLOW = "pipeline-t2mxm"


def node(name: str, state: str | None, *children: str, second: int = 0) -> dict[str, Any]:
    """A node of Argo as the server lists it."""
    ids = [{"pod_name": node_id(WORKFLOW, f"{WORKFLOW}.{child}")} for child in children]
    started = f"2026-11-17T08:27:{second:02}Z"
    return {"display_name": name, "state": state, "child_tasks": ids, "start_time": started}


def seen(*nodes: dict[str, Any], state: str = "RUNNING", **told: Any) -> SeenRun:
    return SeenRun({"state": state, "run_details": {"task_details": [*nodes]}, **told})


def test_an_id_is_the_one_that_argo_makes():
    """As a server gave them."""
    assert node_id(WORKFLOW, f"{WORKFLOW}.root-driver") == "pipeline-t2mxm-3268195299"
    assert node_id(WORKFLOW, f"{WORKFLOW}.root.use.executor") == "pipeline-t2mxm-1461350818"
    assert node_id(WORKFLOW, WORKFLOW) == WORKFLOW


def test_an_item_of_a_loop_is_in_the_name():
    place = ("exit-handler-1", "regions", EACH, "score")
    assert node_name(place, (3,)) == (
        "root.exit-handler-1.regions.iteration-iterations(3:3).iteration-item.score"
    )


def test_a_run_that_has_not_begun():
    found = seen(state="PENDING")
    assert not found.workflow
    assert not found.has_ended
    assert found.task(("a",), (), 1, retried=False).state == "absent"


@pytest.mark.parametrize(
    ("nodes", "state"),
    [
        ([node("root", "RUNNING", "root.b-driver")], "absent"),
        ([node("a-driver", "RUNNING", "root.b")], "preparing"),
        ([node("a-driver", "SUCCEEDED", "root.a"), node("a", "RUNNING")], "preparing"),
        (
            [
                node("a", "RUNNING", "root.a.executor", second=1),
                node("executor", "PENDING", second=2),
            ],
            "pending",
        ),
        (
            [
                node("a", "RUNNING", "root.a.executor", second=1),
                node("executor", "RUNNING", second=1),
                node("executor", "PENDING", second=9),
            ],
            "running",
        ),
        ([node("a", "SUCCEEDED", "root.a.executor")], "succeeded"),
        ([node("a", "FAILED", "root.a.executor")], "failed"),
    ],
)
def test_the_states_of_a_task(nodes, state):
    task = seen(*nodes).task(("a",), (), 1, retried=False)
    assert task.state == state
    if state in ("running", "succeeded", "failed"):
        assert task.node == node_id(WORKFLOW, f"{WORKFLOW}.root.a.executor")


def test_a_task_that_could_not_be_prepared():
    task = seen(node("a-driver", "FAILED", "root.a"), node("a", None)).task(("a",), (), 1, False)
    assert (task.state, task.by_driver) == ("failed", True)
    assert task.node == node_id(WORKFLOW, f"{WORKFLOW}.root.a-driver")


def test_tasks_of_one_name_in_a_loop_are_told_apart():
    place = ("g", EACH, "a")
    names = [node_name(place, (number,)) for number in range(2)]
    run = seen(
        node("a", "RUNNING", f"{names[1]}.executor"),
        node("a", "SUCCEEDED", f"{names[0]}.executor"),
    )
    assert [run.task(place, (number,), 1, False).state for number in range(3)] == [
        "succeeded",
        "running",
        "absent",
    ]


def test_each_try_of_a_task():
    executor = node("executor", "RUNNING", "root.a.executor(0)", "root.a.executor(1)")
    run = seen(node("a", "RUNNING", "root.a.executor"), executor)
    found = [run.task(("a",), (), number, retried=True) for number in (1, 2, 3)]
    assert [task.state for task in found] == ["failed", "running", "absent"]
    assert found[1].node == node_id(WORKFLOW, f"{WORKFLOW}.root.a.executor(1)")


def test_a_stop_is_remembered_after_the_end():
    history = [{"state": "RUNNING"}, {"state": "CANCELING"}, {"state": "FAILED"}]
    assert seen(state="FAILED", state_history=history).is_stopped
    assert not seen(state="FAILED", state_history=history[:1]).is_stopped
