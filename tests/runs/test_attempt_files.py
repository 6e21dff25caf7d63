from __future__ import annotations

import json
from pathlib import Path

import pytest

from jupyterlab_convect.pipeline.plan import Plan, Step
from jupyterlab_convect.routes.base import encode
from jupyterlab_convect.runs.attempt_files import AttemptFiles, list_files, read_events, read_log
from jupyterlab_convect.runtimes.base import Attempt


@pytest.fixture
def results(tmp_path: Path) -> AttemptFiles:
    step = Step("a", "script", "a")
    about = {"root": tmp_path, "plan": Plan("p", (step,)), "runs": tmp_path}
    attempt = Attempt("run", step, 1, tmp_path, **about)
    return AttemptFiles(attempt, tmp_path, ended=True)


def test_a_log_is_read_piece_by_piece_and_never_inside_a_character(results: AttemptFiles) -> None:
    text = "naïve 你好 🚀\n" * 50
    (results.folder / "log.txt").write_text(text, encoding="utf-8")
    for limit in (4, 5, 7, 64, 10_000):
        read, offset, complete = "", 0, False
        while not complete:
            chunk = read_log(results, offset, limit)
            assert chunk.offset > offset or chunk.complete
            read, offset, complete = read + chunk.text, chunk.offset, chunk.complete
        assert read == text
        assert offset == len(text.encode())


def test_half_a_character_waits_for_its_other_half(results: AttemptFiles) -> None:
    going = AttemptFiles(results.attempt, results.folder, ended=False)
    log = results.folder / "log.txt"
    log.write_bytes("好".encode()[:2])
    assert read_log(going) == read_log(going)
    assert (read_log(going).text, read_log(going).offset, read_log(going).complete) == (
        "",
        0,
        False,
    )
    assert read_log(results).text == "\ufffd", "unless it never comes"
    log.write_bytes(b"\xff\xfe binary \x00")
    assert "binary" in read_log(going).text


def test_nothing_yet_is_nothing(results: AttemptFiles) -> None:
    going = AttemptFiles(results.attempt, results.folder, ended=False)
    assert (read_log(going).text, read_log(going).complete) == ("", False)
    assert (read_events(going).events, read_events(going).complete) == ([], False)
    assert list_files(going) == []


def test_events_are_whole_and_damaged_ones_passed_over(results: AttemptFiles) -> None:
    lines = [{"time": 1.0, "type": "beat", "n": n, "text": "x" * 100} for n in range(20)]
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    file = results.folder / "events.ndjson"
    file.write_bytes(data + b'{"half": \n[1]\n{"time": 2, "type": "step.end"}\n{"time": 3, "ty')
    read, offset, complete = [], 0, False
    while not complete:
        chunk = read_events(results, offset, limit=50)
        read, offset, complete = read + chunk.events, chunk.offset, chunk.complete
    assert read == [*lines, {"time": 2, "type": "step.end"}]


def test_files_are_listed_also_before_the_end(results: AttemptFiles) -> None:
    (results.folder / "files" / "data").mkdir(parents=True)
    (results.folder / "files" / "data" / "x.csv").write_text("1,2")
    assert list_files(results) == [{"path": "data/x.csv", "size": 3, "digest": None}]


@pytest.mark.parametrize("depth", [300, 900, 5000, 200_000])
def test_an_event_that_is_nested_without_end_is_passed_over(
    results: AttemptFiles, depth: int
) -> None:
    deep = b'{"type": "x", "time": 1, "value": ' + b"[" * depth + b"]" * depth + b"}\n"
    (results.folder / "events.ndjson").write_bytes(deep + b'{"type": "good", "time": 2}\n')
    events = read_events(results).events
    assert encode(events)
    assert events[-1] == {"type": "good", "time": 2}
