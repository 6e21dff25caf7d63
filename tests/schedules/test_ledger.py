"""Every due time has exactly one line, whatever happens to who keeps the clock."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.pipeline.plan import Json, to_json
from jupyterlab_convect.runs.model import Request
from jupyterlab_convect.schedules.decide import GRACE, Situation, decide
from jupyterlab_convect.schedules.ledger import Ledger, apply, newest
from jupyterlab_convect.schedules.schedule import Schedule, at_due, check_schedule
from jupyterlab_convect.schedules.times import Clock, due_between

HOUR, DAY = 3600.0, 86400.0


def at(text: str, zone: str = "UTC") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


BEGIN = at("2026-05-01")


def schedule(cron: str = "0 * * * *", zone: str = "UTC", **how: Json) -> Schedule:
    clock = Clock(cron=cron, zone=zone, jitter=how.pop("jitter", 0.0))
    return Schedule("s", "s", how.pop("created", BEGIN), Request("a.ipynb"), clock, **how)


class Host:
    """Keeps the clock of one schedule, as the keeper does, with a clock of its own."""

    def __init__(self, kept: Schedule) -> None:
        self.kept = kept
        self.now = kept.created
        self.present = kept.created
        self.events: list[dict[str, Json]] = []
        self.asked: list[dict[str, Json]] = []
        self.running: list[str] = []
        self.stopped: list[str] = []

    @property
    def ledger(self) -> Ledger:
        found = Ledger(self.kept, self.kept.created)
        apply(found, self.events, self.asked)
        return found

    def look(self, *, kill: str | None = None) -> None:
        ledger = self.ledger
        if ledger.paused is not None:
            return
        known = Situation(
            ledger.cursor,
            self.present,
            tuple(self.running),
            ledger.queued(),
            ledger.decided_ahead(),
        )
        found = decide(ledger.schedule, known, self.now)
        if kill == "before":
            return
        for each in found:
            if each.kind == "stop":
                self.stopped.append(str(each.run))
                self.running.remove(str(each.run))
                continue
            run = {"run": f"run of {each.due}"} if each.kind == "run" else {}
            why = {"reason": each.reason} if each.reason else {}
            gone = {"gone": [known.cursor, self.present]} if each.kind == "missed" else {}
            event = {"type": each.kind, "due": each.due, **run, **why, **gone}
            self.events.append({"time": self.now, **event})
            if each.kind == "run":
                self.running.append(run["run"])
        if kill != "after":
            for line in self.ledger.unsure():
                self.events.append({"time": self.now, "type": "submitted", "due": line.due})

    def pass_time(self, until: float, step: float = 30.0) -> None:
        while self.now < until:
            self.now = min(self.now + step, until)
            self.look()

    def come_back(self, at_time: float) -> None:
        self.now = self.present = at_time
        self.look()

    def ask(self, **event: Json) -> None:
        self.asked.append({"time": self.now, **event})

    def outcomes(self) -> dict[float, str]:
        lines = [line for line, _ in self.ledger.latest(self.now)]
        dues = [line.due for line in lines]
        assert len(dues) == len(set(dues)), "a due time has two lines"
        assert dues == sorted(dues, reverse=True)
        return {line.due: line.outcome for line in lines}

    def end_runs(self) -> None:
        self.running.clear()


def count(host: Host) -> dict[str, int]:
    found = list(host.outcomes().values())
    assert {each: found.count(each) for each in set(found)} == host.ledger.counts(host.now)
    return host.ledger.counts(host.now)


def test_each_due_time_runs_when_somebody_is_there():
    host = Host(schedule())
    for hour in range(1, 6):
        host.pass_time(BEGIN + hour * HOUR)
        host.end_runs()
    assert host.outcomes() == {BEGIN + hour * HOUR: "ran" for hour in range(1, 6)}


@pytest.mark.parametrize(
    ("zone", "nights"),
    [
        ("America/New_York", ("2026-03-08", "2026-11-01")),
        ("Europe/Berlin", ("2026-03-29", "2026-10-25")),
        ("Australia/Lord_Howe", ("2026-04-05", "2026-10-04")),
    ],
)
@pytest.mark.parametrize("cron", ["30 1 * * *", "15 2 * * *", "*/30 * * * *"])
def test_on_both_nights_of_a_clock_change_nothing_is_lost_or_doubled(
    zone: str, nights: tuple[str, str], cron: str
):
    for night in nights:
        begin = at(night, zone) - DAY
        host = Host(schedule(cron, zone, created=begin))
        end = begin + 3 * DAY
        while host.now < end:
            host.pass_time(host.now + 300, 100.0)
            host.end_runs()
        assert set(host.outcomes()) == set(due_between(host.kept.clock, begin, end))
        assert set(host.outcomes().values()) == {"ran"}


@pytest.mark.parametrize(
    ("missed", "deadline", "expected"),
    [
        ("none", DAY, {"missed": 10}),
        ("last", DAY, {"missed": 9, "ran": 1}),
        ("last", 60.0, {"missed": 10}),
        ("all", DAY, {"ran": 1, "queued": 9}),
        ("all", 3 * HOUR + 1, {"missed": 7, "ran": 1, "queued": 2}),
    ],
)
def test_what_was_missed_is_made_up_for_as_the_schedule_says(
    missed: str, deadline: float, expected: dict[str, int]
):
    host = Host(schedule(missed=missed, deadline=deadline))
    host.come_back(BEGIN + 10 * HOUR + 600)
    assert count(host) == expected
    assert len(host.outcomes()) == 10


def test_a_missed_line_says_from_when_to_when_nobody_was_there():
    host = Host(schedule(missed="none"))
    host.pass_time(BEGIN + HOUR + 60)
    host.come_back(BEGIN + 3 * HOUR + 600)
    missed = [line for line in newest(host.ledger, host.now, 10) if line["outcome"] == "missed"]
    assert [line["due"] for line in missed] == [BEGIN + 3 * HOUR, BEGIN + 2 * HOUR]
    assert missed[0]["gone"] == [BEGIN + HOUR, BEGIN + 3 * HOUR + 600]


def test_a_short_absence_is_no_reason_to_miss_anything():
    host = Host(schedule(missed="none"))
    host.come_back(BEGIN + HOUR + GRACE - 1)
    assert count(host) == {"ran": 1}


def test_what_was_due_while_somebody_was_there_is_run_however_slow_the_look_was():
    host = Host(schedule(missed="none"))
    host.now = BEGIN + HOUR + 10 * GRACE
    host.look()
    assert count(host) == {"ran": 1}


def test_a_month_off_is_one_line_per_due_time_and_few_bytes():
    host = Host(schedule("* * * * *", missed="all", deadline=90 * DAY))
    host.come_back(BEGIN + 31 * DAY)
    counts = host.ledger.counts(host.now)
    assert counts == {"missed": 31 * 1440 - 1001, "ran": 1, "queued": 999, "skipped": 1}
    assert len(host.events) < 1010
    first = newest(host.ledger, host.now, 50)
    page = newest(host.ledger, host.now, 50, first[-1]["due"])
    assert [line["due"] for line in (*first, *page)] == [
        host.now - 60 * number for number in range(100)
    ]


@pytest.mark.parametrize("rule", ["skip", "queue", "stop"])
def test_overlap(rule: str):
    host = Host(schedule(overlap=rule))
    host.pass_time(BEGIN + 2 * HOUR)
    first, second = BEGIN + HOUR, BEGIN + 2 * HOUR
    if rule == "skip":
        assert host.outcomes() == {first: "ran", second: "skipped"}
        assert host.ledger.lines[second].reason == "An earlier run had not ended."
    elif rule == "queue":
        assert host.outcomes() == {first: "ran", second: "queued"}
        host.end_runs()
        host.look()
        assert host.outcomes() == {first: "ran", second: "ran"}
    else:
        assert host.stopped == [f"run of {first}"]
        host.look()
        assert host.outcomes() == {first: "ran", second: "ran"}


def test_as_many_runs_go_on_at_once_as_may():
    host = Host(schedule(concurrency=3))
    host.pass_time(BEGIN + 4 * HOUR)
    assert count(host) == {"ran": 3, "skipped": 1}


def test_due_times_of_a_pause_say_so():
    host = Host(schedule())
    host.pass_time(BEGIN + HOUR)
    host.end_runs()
    host.ask(type="pause")
    host.pass_time(BEGIN + 3 * HOUR)
    assert count(host) == {"ran": 1, "paused": 2}
    host.ask(type="resume")
    host.pass_time(BEGIN + 4 * HOUR)
    assert count(host) == {"ran": 2, "paused": 2}


def test_an_edit_of_the_clock_keeps_the_lines_of_the_old_one():
    host = Host(schedule())
    host.pass_time(BEGIN + 2 * HOUR)
    host.end_runs()
    edited = replace(host.kept, clock=Clock(cron="30 * * * *"))
    host.ask(type="edit", schedule=to_json(edited))
    host.pass_time(BEGIN + 4 * HOUR)
    assert sorted(host.outcomes()) == [BEGIN + hour * HOUR for hour in (1, 2, 2.5, 3.5)]


def test_a_clock_that_jumps_ahead_and_back_again_loses_nothing():
    host = Host(schedule(missed="none"))
    host.pass_time(BEGIN + HOUR)
    host.end_runs()
    host.come_back(BEGIN + 10 * HOUR)  # It shows a time that has not come.
    assert count(host)["missed"] == 8
    host.end_runs()
    host.come_back(BEGIN + HOUR + 120)
    host.pass_time(BEGIN + 2 * HOUR)
    assert host.outcomes() == {BEGIN + hour * HOUR: "ran" for hour in (1, 2, 10)}
    host.end_runs()
    while host.now < BEGIN + 12 * HOUR:
        host.pass_time(host.now + 600)
        host.end_runs()
    assert count(host) == {"ran": 12}


@pytest.mark.parametrize("seed", range(40))
def test_kills_absences_pauses_and_jumps_leave_one_line_per_due_time(seed: int):
    chance = random.Random(seed)
    how = {
        "overlap": chance.choice(["skip", "queue", "stop"]),
        "missed": chance.choice(["none", "last", "all"]),
        "deadline": chance.choice([600.0, HOUR, DAY]),
        "concurrency": chance.choice([1, 2]),
        "jitter": chance.choice([0.0, 120.0]),
    }
    zone, night = chance.choice(
        [("Europe/Berlin", "2026-10-25"), ("America/New_York", "2026-03-08"), ("UTC", "2028-02-29")]
    )
    cron = chance.choice(["*/10 * * * *", "0 * * * *", "30 1,2 * * *"])
    host = Host(schedule(cron, zone, created=at(night, zone) - HOUR, **how))
    for _ in range(60):
        match chance.randrange(7):
            case 0:
                host.come_back(host.now + chance.uniform(0, 6 * HOUR))
            case 1:
                host.now += 45.0
                host.look(kill=chance.choice(["before", "after"]))
                host.come_back(host.now + chance.uniform(0, 200))
            case 2:
                host.ask(type=chance.choice(["pause", "resume", "resume"]))
            case 3:
                host.end_runs()
            case _:
                host.pass_time(host.now + chance.uniform(60, HOUR), 45.0)
    host.ask(type="resume")
    host.pass_time(host.now + 300)
    expected = set(due_between(host.kept.clock, host.kept.created, host.now - GRACE - 120))
    found = {due for due in host.outcomes() if due <= host.now - GRACE - 120}
    assert found == expected
    assert "waiting" not in {host.outcomes()[due] for due in found}


def test_the_due_time_is_a_value_that_parameters_can_have():
    given = Request(
        "a.ipynb",
        parameters={"day": "${{ schedule.date }}", "all": ["at ${{schedule.due}}", 3]},
        name="of ${{ schedule.utc }}",
    )
    kept = replace(schedule(zone="Asia/Shanghai"), request=given)
    request, _ = at_due(kept, at("2026-05-01T20:00"))
    assert request.parameters == {"day": "2026-05-02", "all": ["at 2026-05-02T04:00:00+08:00", 3]}
    assert request.name == "of 2026-05-01T20:00:00Z"
    assert request.labels == {"schedule": "s"}
    wrong = replace(kept, request=replace(given, parameters={"x": "${{ schedule.when }}"}))
    with pytest.raises(ConvectError, match=r"There is no “schedule\.when”"):
        check_schedule(wrong, BEGIN)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": " "}, "name of a schedule"),
        ({"concurrency": 0}, "`concurrency` of a schedule"),
        ({"deadline": -1.0}, "deadline must not be negative"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(change: dict[str, Json], words: str):
    with pytest.raises(ConvectError, match=words):
        check_schedule(replace(schedule(), **change), BEGIN)
