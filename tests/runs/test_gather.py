"""What the nodes of an attempt leave becomes the folder of one attempt."""

import json

import pytest

from jupyterlab_convect.pipeline.plan import Distributed
from jupyterlab_convect.runs.attempts import INTERRUPTED, read_outcome
from jupyterlab_convect.runs.gather import Gathering, NodeStatus, make_node_folders

RUNNING, DONE = NodeStatus("running", node="alpha"), NodeStatus("succeeded", node="beta")
HOW = Distributed(nodes=2, processes=1)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "step.json").write_text("{}")
    make_node_folders(tmp_path, 2)
    return tmp_path


def say(folder, node, text, name="log.txt"):
    with (folder / "nodes" / str(node) / name).open("a") as file:
        file.write(text)


def end(folder, node, state="succeeded", replica=None, **facts):
    told = {"rank": node, "state": state, "exit_code": 0, "ended": 10.0 + node, **(replica or {})}
    content = {"state": state, "replicas": [told], "started": 1.0, "ended": 10.0 + node, **facts}
    (folder / "nodes" / str(node) / "outputs.json").write_text(json.dumps(content))


def replicas(folder):
    return json.loads((folder / "replicas.json").read_text())["replicas"]


def test_lines_of_all_nodes_become_one_log_and_one_for_each_rank(folder):
    gathering = Gathering(folder, HOW)
    say(folder, 0, "[0] epoch 1\n[0] epo")
    say(folder, 1, "[1] epoch 1\n[the launcher]\n")
    gathering.update([RUNNING, RUNNING])
    assert (folder / "log.txt").read_text() == "[0] epoch 1\n[1] epoch 1\n[the launcher]\n"
    say(folder, 0, "ch 2\n")
    gathering.update([RUNNING, RUNNING])
    assert (folder / "log.txt").read_text().endswith("[0] epoch 2\n")
    assert (folder / "replicas" / "0.log").read_text() == "epoch 1\nepoch 2\n"
    assert (folder / "replicas" / "1.log").read_text() == "epoch 1\n"


def test_whoever_goes_on_writes_nothing_twice(folder):
    say(folder, 0, "[0] a\n")
    Gathering(folder, HOW).update([RUNNING, RUNNING])
    # The process died after it had written, and before it could say so.
    for name, text in (("log.txt", "[0] b\n"), ("replicas/0.log", "b\n")):
        with (folder / name).open("a") as file:
            file.write(text)
    say(folder, 0, "[0] b\n")
    Gathering(folder, HOW).update([RUNNING, RUNNING])
    assert (folder / "log.txt").read_text() == "[0] a\n[0] b\n"
    assert (folder / "replicas" / "0.log").read_text() == "a\nb\n"


def test_events_are_those_of_the_node_that_counts_with_marks_of_the_common_log(folder):
    gathering = Gathering(folder, Distributed(nodes=2, outputs_from=1))
    for node in range(2):
        say(folder, node, f"[{node}] x\n")
        metric = {"time": 1.0, "type": "metric", "name": "loss", "value": node}
        mark = {"time": 1.0, "type": "log", "offset": 0, "stream": None}
        say(folder, node, f"{json.dumps(mark)}\n{json.dumps(metric)}\n", "events.ndjson")
    gathering.update([RUNNING, RUNNING])
    events = [json.loads(line) for line in (folder / "events.ndjson").read_text().splitlines()]
    assert [each["value"] for each in events if each["type"] == "metric"] == [1]
    assert [each["offset"] for each in events if each["type"] == "log"] == [0, 6]


def test_each_change_of_a_rank_is_an_event_once(folder):
    waiting = NodeStatus("queued", "Waiting for a node.")
    Gathering(folder, HOW).update([RUNNING, waiting])
    Gathering(folder, HOW).update([RUNNING, waiting])
    told = {"rank": 1, "state": "running", "cpu": 0.5, "memory": 1e9}
    say(folder, 1, json.dumps({"replicas": [told]}), "replicas.json")
    gathering = Gathering(folder, HOW)
    gathering.update([RUNNING, RUNNING])
    assert replicas(folder)[1]["memory"] == 1e9
    end(folder, 1, "failed", {"exit_code": 3, "reason": "The process exited with code 3."})
    gathering.update([RUNNING, NodeStatus("failed", INTERRUPTED)])
    events = [json.loads(line) for line in (folder / "events.ndjson").read_text().splitlines()]
    assert [(each["rank"], each["state"], each.get("reason")) for each in events] == [
        (0, "starting", None),
        (1, "queued", "Waiting for a node."),
        (1, "running", None),
        (1, "failed", "The process exited with code 3."),
    ]
    assert events[-1]["exit_code"] == 3


def test_a_rank_whose_runner_says_nothing_is_as_its_pod_is(folder):
    waiting = NodeStatus("queued", "Waiting for a node.")
    Gathering(folder, HOW).update([RUNNING, waiting])
    assert replicas(folder) == [
        {"rank": 0, "node_rank": 0, "node": "alpha", "state": "starting"},
        {"rank": 1, "node_rank": 1, "state": "queued", "reason": "Waiting for a node."},
    ]


def test_all_succeeded(folder):
    end(folder, 0, values={"auc": 0.9}, files=[])
    end(folder, 1, values={"auc": 0.1})
    made = folder / "nodes" / "0" / "made"
    made.mkdir()
    (made / "model.bin").write_text("m")
    Gathering(folder, HOW).conclude([DONE, DONE], stopped=None)
    outcome = read_outcome(folder)
    assert (outcome.state, outcome.values, outcome.ended) == ("succeeded", {"auc": 0.9}, 11.0)
    assert (folder / "made" / "model.bin").read_text() == "m"
    assert not (folder / "nodes").exists()
    assert [each["node"] for each in replicas(folder)] == ["beta", "beta"]


def test_the_first_rank_that_failed_is_named_wherever_it_ran(folder):
    why = "Rank 1 of train.py exited with code 3."
    end(folder, 0, "failed", {"reason": "The process was ended."}, reason="Rank 0 of train.py …")
    end(folder, 1, "failed", {"exit_code": 3, "ended": 5.0}, reason=why, error={"rank": 1})
    failed = NodeStatus("failed", INTERRUPTED)
    Gathering(folder, HOW).conclude([failed, failed], stopped=None)
    outcome = json.loads((folder / "outputs.json").read_text())
    assert (outcome["state"], outcome["reason"]) == ("failed", why)
    assert outcome["error"] == {"rank": 1}


def test_those_that_had_to_stop_say_because_of_whom(folder):
    end(folder, 0, "cancelled", {"reason": "Stopped."}, reason=INTERRUPTED)
    killed = NodeStatus("failed", "The node evicted the pod.", "beta", 137, 4.0)
    Gathering(folder, HOW).conclude([NodeStatus("failed", INTERRUPTED), killed], stopped=None)
    assert read_outcome(folder).reason == "Rank 1 failed: The node evicted the pod."
    first, second = replicas(folder)
    assert first["reason"] == "Stopped because rank 1 failed."
    assert (second["state"], second["exit_code"], second["ended"]) == ("failed", 137, 4.0)


def test_who_is_stopped_by_a_person_has_not_failed(folder):
    for node in range(2):
        end(folder, node, "cancelled", {"reason": "Stopped."}, reason="Stopped.")
    stopped = NodeStatus("cancelled", "Stopped.")
    Gathering(folder, HOW).conclude([stopped, stopped], stopped="Stopped.")
    assert (read_outcome(folder).state, read_outcome(folder).reason) == ("cancelled", "Stopped.")


@pytest.mark.parametrize("content", ["[]", "{", '{"replicas": 3}', '{"replicas": [{"rank": "x"}]}'])
def test_what_a_node_tells_is_not_trusted(folder, content):
    (folder / "nodes" / "1" / "replicas.json").write_text(content)
    Gathering(folder, HOW).update([RUNNING, RUNNING])
    assert [each["state"] for each in replicas(folder)] == ["starting", "starting"]


def test_a_pod_that_was_deleted_because_somebody_stopped_the_step_has_not_failed(folder):
    end(folder, 0, "cancelled", {"reason": "Stopped."}, reason="Stopped.")
    gone = NodeStatus("failed", "Its Job was deleted from the cluster before it finished.")
    Gathering(folder, HOW).conclude([NodeStatus("cancelled"), gone], stopped="Stopped.")
    assert read_outcome(folder).state == "cancelled"
    assert [each["state"] for each in replicas(folder)] == ["cancelled", "cancelled"]


def test_a_node_that_left_nothing_did_not_succeed(folder):
    end(folder, 0)
    Gathering(folder, HOW).conclude([DONE, DONE], stopped=None)
    assert read_outcome(folder).reason == "It ended without leaving a result."


def test_the_notebooks_of_all_ranks_are_kept(folder):
    gathering = Gathering(folder, HOW)
    (folder / "nodes" / "0" / "executed.ipynb").write_text("zero")
    other = folder / "nodes" / "1" / "replicas"
    other.mkdir()
    (other / "1.ipynb").write_text("one")
    for node in range(2):
        end(folder, node)
    gathering.conclude([DONE, DONE], stopped=None)
    assert (folder / "executed.ipynb").read_text() == "zero"
    assert (folder / "replicas" / "1.ipynb").read_text() == "one"
