from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from waiting import until

Convect = Callable[..., tuple[int, str, str]]


@pytest.fixture
def train(work: Path, write_notebook: Callable[..., Path]) -> str:
    write_notebook(work / "train.ipynb", ("parameters", "day = ''\nn = 1"), "print(day, n)")
    return "train.ipynb"


def test_a_schedule_is_made_shown_edited_and_removed(train: str, convect: Convect):
    code, out, err = convect(
        *("schedule", "add", train, "--cron", "30 2 * * *", "--zone", "Europe/Berlin"),
        *("--name", "nightly", "-p", "day=${{ schedule.date }}", "-p", "n=3", "--overlap", "queue"),
        *("-p", "m=1"),
    )
    assert code == 0
    assert "has no parameter “m”" in err
    assert "next: " in out
    assert "comes twice that night; it runs once, the first time." in out
    assert "Nobody keeps the clock now" in err
    code, out, _ = convect("schedule", "list")
    assert "nightly" in out
    assert "30 2 * * * Europe/Berlin" in out
    assert convect("schedule", "edit", "nightly", "--every", "6h", "--missed", "none")[0] == 0
    code, out, _ = convect("schedule", "show", "nightly", "--json")
    shown = json.loads(out)
    assert (shown["clock"]["every"], shown["missed"], shown["overlap"]) == (21600, "none", "queue")
    assert shown["request"]["parameters"] == {"day": "${{ schedule.date }}", "n": 3, "m": 1}
    assert convect("schedule", "pause", "nightly")[0] == 0
    assert "paused" in convect("schedule", "list")[1]
    assert convect("schedule", "resume", "nightly")[0] == 0
    assert convect("schedule", "remove", "nightly")[0] == 0
    assert "There are no schedules yet" in convect("schedule", "list")[2]


def test_a_sweep_is_scheduled_told_and_taken_back(train: str, convect: Convect):
    command = ("schedule", "add", train, "--cron", "@daily", "--zone", "UTC", "--name", "tuning")
    assert convect(*command, "--sweep", "n=1,2", "-p", "day=${{ schedule.date }}")[0] == 0
    code, out, _ = convect("schedule", "show", "tuning")
    assert 'parameters: day = "${{ schedule.date }}"' in out
    assert "sweep over: n = [1,2]" in out
    code, _, err = convect("schedule", "edit", "tuning", "--sweep", "n=3,4", "--no-sweep")
    assert (code, "exclude each other" in err) == (2, True)
    assert convect("schedule", "edit", "tuning", "--no-sweep")[0] == 0
    assert "sweep over" not in convect("schedule", "show", "tuning")[1]


def test_it_is_run_now_as_at_a_due_time_and_for_earlier_ones(train: str, convect: Convect):
    command = ("schedule", "add", train, "--cron", "0 2 * * *", "--zone", "UTC")
    assert convect(*command, "--name", "s", "-p", "day=${{ schedule.date }}")[0] == 0
    code, out, _ = convect("schedule", "run", "s", "--due", "2026-05-01T02:00", "--json")
    assert code == 0
    run = json.loads(out)["run"]

    def log() -> str:
        return convect("runs", "logs", run)[1]

    until(lambda: "2026-05-01 1" in log(), "it printed its due date")
    line = ("--from", "2026-05-01", "--to", "2026-05-03", "--json")
    code, out, _ = convect("schedule", "backfill", "s", *line)
    sweep = json.loads(out)["sweep"]
    code, out, _ = convect("runs", "list", "--sweep", sweep, "--json")
    days = sorted(each["parameters"]["day"] for each in json.loads(out)["runs"])
    assert days == ["2026-05-02", "2026-05-03"]


def test_next_needs_no_schedule(work: Path, convect: Convect):
    code, out, _ = convect("schedule", "next", "--cron", "30 2 * * *", "--zone", "Europe/Berlin")
    assert code == 0
    assert out.count("02:30:00") >= 4


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["add", "train.ipynb"], "Say when: --cron, --every, --on-file, --on-run or --on-call."),
        (["add", "train.ipynb", "--cron", "x"], "is not a cron expression"),
        (["add", "train.ipynb", "--every", "soon"], "“soon” is not a duration."),
        (["add", "train.ipynb", "--every", "1h", "--cron", "@daily"], "exclude each other"),
        (["add", "train.ipynb", "--every", "1h", "--zone", "Mars"], "“Mars” is not a time zone."),
        (["add", "train.ipynb", "--every", "1h", "--start", "x"], "“x” is not a date or a time."),
        (["add", "none.ipynb", "--every", "1h"], "none.ipynb"),
        (["add", "train.ipynb", "--every", "1h", "--samples", "2"], "--samples needs --sweep."),
        (["show", "none"], "There is no schedule “none”."),
        (["keep", "--install"], "systemd"),
    ],
)
def test_bad_input_is_one_sentence(
    train: str, convect: Convect, words: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("shutil.which", lambda _: None)
    code, _, err = convect("schedule", *words)
    assert code == 2
    assert sentence in err
    assert "Traceback" not in err


def test_definitions_of_jupyter_scheduler_are_taken_over_once(
    train: str, work: Path, convect: Convect
):
    database = work / "scheduler.sqlite"
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute(
            "CREATE TABLE job_definitions (job_definition_id, name, input_filename, schedule,"
            " timezone, parameters, active)"
        )
        rows = [
            ("1", "nightly", "train.ipynb", "0 2 * * *", "Asia/Shanghai", '{"n": "3"}', 1),
            ("2", "off", "train.ipynb", "0 3 * * *", None, None, 0),
            ("3", "lost", "gone.ipynb", "0 3 * * *", "UTC", "no JSON", 1),
            ("4", "odd", "train.ipynb", "x", "UTC", None, 1),
        ]
        connection.executemany("INSERT INTO job_definitions VALUES (?,?,?,?,?,?,?)", rows)
        connection.commit()
    code, out, _ = convect("schedule", "import", str(database), "--json")
    found = {each["name"]: each for each in json.loads(out)["definitions"]}
    assert code == 1
    assert "There is no file gone.ipynb" in found["lost"]["reason"]
    assert "is not a cron expression" in found["odd"]["reason"]
    listed = json.loads(convect("schedule", "list", "--json")[1])["schedules"]
    by_name = {each["name"]: each for each in listed}
    assert by_name["nightly"]["clock"]["zone"] == "Asia/Shanghai"
    assert by_name["nightly"]["paused"] is None
    shown = json.loads(convect("schedule", "show", "nightly", "--json")[1])
    assert shown["request"]["parameters"] == {"n": 3}
    assert by_name["off"]["paused"] is not None
    code, out, _ = convect("schedule", "import", str(database))
    assert out.count("It was imported before.") == 2
    assert len(json.loads(convect("schedule", "list", "--json")[1])["schedules"]) == 2
    assert "There is no database" in convect("schedule", "import", "none.sqlite")[2]
    assert "is not a database" in convect("schedule", "import", "train.ipynb")[2]


def test_triggers_are_made_shown_and_called(train: str, work: Path, convect: Convect):
    command = ("schedule", "add", train, "--on-file", "data/*.csv", "--settle", "0", "--name", "f")
    code, out, _ = convect(*command, "-p", "day=${{ schedule.file }}")
    assert code == 0
    assert "not due any more" not in out
    assert "file data/*.csv" in convect("schedule", "list")[1]
    shown = json.loads(convect("schedule", "show", "f", "--json")[1])
    assert shown["trigger"] == {"file": {"pattern": "data/*.csv", "settle": 0}}
    command = ("schedule", "add", train, "--on-run", "prepare.ipynb", "--on-state", "failed")
    assert "There is no file “prepare.ipynb” whose runs" in convect(*command, "--name", "r")[2]
    shutil.copy(work / train, work / "prepare.ipynb")
    assert convect(*command, "--name", "r")[0] == 0
    shown = json.loads(convect("schedule", "show", "r", "--json")[1])
    assert shown["trigger"] == {"run": {"path": "prepare.ipynb", "states": ["failed"]}}
    assert convect("schedule", "edit", "r", "--on-call")[0] == 0
    hook = json.loads(convect("schedule", "hook", "r", "--json")[1])
    again = json.loads(convect("schedule", "hook", "r", "--new-token", "--json")[1])
    assert hook["address"] == again["address"]
    assert hook["token"] != again["token"]
    assert convect("schedule", "edit", "r", "--no-trigger", "--cron", "@daily")[0] == 0
    assert "cannot be called" in convect("schedule", "hook", "r")[2]
    for words in (["--settle", "3s"], ["--once"], ["--on-state", "failed"]):
        code, _, err = convect("schedule", "add", train, "--cron", "@daily", *words)
        assert (code, "needs --on-" in err) == (2, True)


def test_what_has_changed_since_a_file_was_pinned_is_shown(
    train: str, work: Path, convect: Convect, write_notebook: Callable[..., Path]
):
    command = ("schedule", "add", train, "--cron", "@daily", "--pinned", "--name", "p")
    assert convect(*command)[0] == 0
    assert "No pinned file differs" in convect("schedule", "diff", "p")[2]
    write_notebook(work / train, ("parameters", "day = ''\nn = 2"), "print(day, n)")
    out = convect("schedule", "diff", "p")[1]
    assert "--- pinned/train.ipynb\n+++ today/train.ipynb\n" in out
    assert "-n = 1\n+n = 2\n" in out
    (change,) = json.loads(convect("schedule", "diff", "p", "--json")[1])["changes"]
    assert (change["path"], "n = 2" in change["after"]) == (train, True)
