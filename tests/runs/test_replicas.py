"""What is known of the replicas of an attempt, and their logs as one."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_convect.errors import Missing
from jupyterlab_convect.pipeline.plan import Plan, Step
from jupyterlab_convect.runs.attempt_files import AttemptFiles, read_log
from jupyterlab_convect.runs.replicas import fold, last_rate, list_replicas, log_of, ranks_text
from jupyterlab_convect.runtimes.base import Attempt


@pytest.fixture
def files(tmp_path: Path) -> AttemptFiles:
    step = Step("a", "script", "a")
    about: Any = {"root": tmp_path, "plan": Plan("p", (step,)), "runs": tmp_path}
    return AttemptFiles(Attempt("run", step, 1, tmp_path, **about), tmp_path, ended=False)


def write(files: AttemptFiles, *replicas: dict[str, Any], name: str = "replicas.json") -> None:
    (files.folder / name).write_text(json.dumps({"replicas": replicas}))


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("epoch 1 12.5 it/s\nepoch 2 13.5 it/s, loss 0.2", "13.5 it/s"),
        (" 40%|████ | 4/10 [00:02<00:03, 1.97it/s]", "1.97 it/s"),
        ("[00:02<00:03, 2.31s/it]", "2.31 s/it"),
        ("throughput: 1,024 tokens/sec", "1,024 tokens/s"),
        ("8 images/second", "8 images/s"),
        ("read /data/set 3 in 4 s", None),
        ("", None),
    ],
)
def test_the_last_rate(text: str, rate: str | None) -> None:
    assert last_rate(text) == rate


def test_state_and_last_line_of_each(files: AttemptFiles) -> None:
    failed = {"rank": 1, "state": "failed", "reason": "The process exited with code 3."}
    write(
        files,
        {**failed, "exit_code": 3, "node": "gpu-7", "memory": "a lot"},
        {"rank": 0, "state": "running", "started": 5.5, "cpu": 0.5, "memory": 2e9},
    )
    (files.folder / "replicas").mkdir()
    (files.folder / "replicas" / "0.log").write_text("epoch 1\n 10%\r 20%\r 30%\n\n")
    first, second = list_replicas(files)
    assert (first["rank"], first["state"], first["line"]) == (0, "running", "30%")
    assert (first["started"], first["ended"], first["exit_code"]) == (5.5, None, None)
    assert (second["rank"], second["state"], second["exit_code"]) == (1, "failed", 3)
    assert (first["node"], second["node"]) == (None, "gpu-7")
    assert (first["cpu"], first["memory"], first["gpu_load"]) == (0.5, 2e9, None)
    assert second["memory"] is None
    assert (second["reason"], second["line"]) == ("The process exited with code 3.", "")


def test_one_that_nobody_saw_ending_is_lost(files: AttemptFiles) -> None:
    write(files, {"rank": 0, "state": "running"}, {"rank": 1, "state": "succeeded"})
    ended = AttemptFiles(files.attempt, files.folder, ended=True)
    assert [each["state"] for each in list_replicas(ended)] == ["lost", "succeeded"]
    assert [each["state"] for each in list_replicas(files)] == ["running", "succeeded"]


def test_the_outcome_tells_where_the_file_is_missing(files: AttemptFiles) -> None:
    write(files, {"rank": 0, "state": "succeeded"}, name="outputs.json")
    assert [each["state"] for each in list_replicas(files)] == ["succeeded"]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"replicas": 7}', '{"replicas": [1]}'])
def test_what_is_damaged_tells_nothing(files: AttemptFiles, content: str) -> None:
    (files.folder / "replicas.json").write_text(content)
    assert list_replicas(files) == []
    with pytest.raises(Missing, match="has no replica 0"):
        log_of(files, 0)


def test_the_log_of_one(files: AttemptFiles) -> None:
    write(files, {"rank": 0, "state": "running"})
    (files.folder / "replicas").mkdir()
    (files.folder / "replicas" / "0.log").write_text("你好\n")
    assert read_log(files, log=log_of(files, 0)).text == "你好\n"
    with pytest.raises(Missing, match="has no replica 1"):
        log_of(files, 1)


def test_equal_lines_of_several_are_one() -> None:
    lines = ["[0] start", "[1] start", "[0] loss 1", "[2] start", "[1] loss 1", "[2] loss 2"]
    assert fold("\n".join(lines) + "\n").splitlines() == [
        "[0-2] start",
        "[0-1] loss 1",
        "[2] loss 2",
    ]


def test_the_lines_of_each_stay_in_their_order() -> None:
    lines = ["[0] a", "[0] b", "[1] b", "[1] a", "[0] a"]
    folded = fold("\n".join(lines) + "\n").splitlines()
    for rank in (0, 1):
        said = [line.partition("] ")[2] for line in folded if str(rank) in line.partition("]")[0]]
        assert said == [line[4:] for line in lines if line.startswith(f"[{rank}]")]


def test_nothing_is_folded_over_a_restart() -> None:
    lines = ["[0] start", "[Restart 1 of 2: Rank 0 of s.py exited with code 3.]", "[1] start"]
    assert fold("\n".join(lines)).splitlines() == lines


def test_a_log_of_many_is_folded() -> None:
    lines = "".join(f"[{rank}] step {n}\n" for n in range(100) for rank in range(64))
    assert fold(lines) == "".join(f"[0-63] step {n}\n" for n in range(100))


def test_ranks_in_short() -> None:
    assert ranks_text([5]) == "5"
    assert ranks_text([3, 0, 1, 2, 5, 7, 8]) == "0-3,5,7-8"


def test_lines_of_one_replica_do_not_keep_others_apart() -> None:
    """What a process prints often comes as one block."""
    lines = [f"[{rank}] {text}" for rank in range(3) for text in (f"rank {rank}", "epoch", "end")]
    assert fold("\n".join(lines) + "\n").splitlines() == [
        "[0] rank 0",
        "[1] rank 1",
        "[2] rank 2",
        "[0-2] epoch",
        "[0-2] end",
    ]


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_lost_or_turned_round(seed: int) -> None:
    choose = random.Random(seed)
    lines = [
        (choose.randrange(4), choose.choice([*"aabbcde", str(number)])) for number in range(200)
    ]
    folded = fold("".join(f"[{rank}] {said}\n" for rank, said in lines)).splitlines()
    for rank in range(4):
        own = [line.partition("] ")[2] for line in folded if rank in ranks_in(line)]
        assert own == [said for other, said in lines if other == rank]
    assert len(folded) < len(lines)


def ranks_in(line: str) -> set[int]:
    spans = [span.split("-") for span in line[1:].partition("]")[0].split(",")]
    return {rank for span in spans for rank in range(int(span[0]), int(span[-1]) + 1)}
