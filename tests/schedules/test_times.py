"""When something is due, on every kind of night."""

from __future__ import annotations

import itertools
import math
from datetime import datetime, timezone
from zoneinfo import ZoneInfo

import pytest

from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.schedules.times import (
    Clock,
    check,
    count_between,
    due_after,
    due_before,
    due_between,
    local_time,
    put_off,
    shifts,
)

ZONES = ("America/New_York", "Europe/Berlin", "Australia/Lord_Howe")
DAY = 86400.0


def at(text: str, zone: str = "UTC") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


def walls(clock: Clock, after: str, until: str) -> list[str]:
    found = due_between(clock, at(after, clock.zone), at(until, clock.zone))
    return [local_time(clock, due).isoformat(timespec="minutes") for due in found]


def test_what_is_left_out_in_spring_is_due_at_the_end_of_the_gap():
    new_york = Clock(cron="30 2 * * *", zone="America/New_York")
    assert walls(new_york, "2026-03-07T12:00", "2026-03-09T12:00") == [
        "2026-03-08T03:00-04:00",
        "2026-03-09T02:30-04:00",
    ]
    berlin = Clock(cron="0,30 2 * * *", zone="Europe/Berlin")
    assert walls(berlin, "2026-03-28T12:00", "2026-03-29T12:00") == ["2026-03-29T03:00+02:00"]
    lord_howe = Clock(cron="15 2 * * *", zone="Australia/Lord_Howe")
    assert walls(lord_howe, "2026-10-03T12:00", "2026-10-04T12:00") == ["2026-10-04T02:30+11:00"]


def test_what_comes_twice_in_autumn_is_due_once():
    new_york = Clock(cron="30 1 * * *", zone="America/New_York")
    assert walls(new_york, "2026-10-31T12:00", "2026-11-01T12:00") == ["2026-11-01T01:30-04:00"]
    berlin = Clock(cron="30 2 * * *", zone="Europe/Berlin")
    assert walls(berlin, "2026-10-24T12:00", "2026-10-25T12:00") == ["2026-10-25T02:30+02:00"]
    lord_howe = Clock(cron="45 1 * * *", zone="Australia/Lord_Howe")
    assert walls(lord_howe, "2026-04-04T12:00", "2026-04-05T12:00") == ["2026-04-05T01:45+11:00"]


@pytest.mark.parametrize("zone", ZONES)
def test_what_is_due_every_hour_goes_on_evenly(zone: str):
    clock = Clock(cron="0 * * * *", zone=zone)
    found = list(due_between(clock, at("2026-01-01"), at("2027-01-01")))
    gaps = {later - earlier for earlier, later in itertools.pairwise(found)}
    # The clocks of Lord Howe are put on by half an hour.
    assert gaps <= ({3600.0} if zone != "Australia/Lord_Howe" else {1800.0, 3600.0, 5400.0})


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("cron", ["30 1 * * *", "30 2 * * *", "0 2,3 * * *", "*/20 * * * *"])
def test_wherever_one_begins_to_look_the_due_times_are_the_same(zone: str, cron: str):
    clock = Clock(cron=cron, zone=zone)
    for night in ("2026-03-08", "2026-03-29", "2026-04-05", "2026-10-04", "2026-11-01"):
        begin = at(night) - DAY
        whole = list(due_between(clock, begin, begin + 3 * DAY))
        for after in range(0, int(3 * DAY), 900):
            found = list(due_between(clock, begin + after, begin + 3 * DAY))
            assert found == [due for due in whole if due > begin + after]


def test_leap_days():
    clock = Clock(cron="0 12 29 2 *")
    assert walls(clock, "2026-01-01", "2036-01-01") == [
        "2028-02-29T12:00+00:00",
        "2032-02-29T12:00+00:00",
    ]


def test_an_interval_counts_from_its_anchor_whatever_the_clocks_show():
    anchor = at("2026-03-28T12:00", "Europe/Berlin")
    clock = Clock(every=6 * 3600.0, anchor=anchor, zone="Europe/Berlin")
    assert walls(clock, "2026-03-28T12:00", "2026-03-29T13:00") == [
        "2026-03-28T18:00+01:00",
        "2026-03-29T00:00+01:00",
        "2026-03-29T07:00+02:00",
        "2026-03-29T13:00+02:00",
    ]


def test_nothing_is_due_before_the_start_or_after_the_end():
    clock = Clock(cron="0 0 * * *", start=at("2026-05-02"), end=at("2026-05-04"))
    assert walls(clock, "2026-01-01", "2026-12-31") == [
        f"2026-05-0{day}T00:00+00:00" for day in (2, 3, 4)
    ]
    assert list(due_after(clock, at("2026-05-04"))) == []


@pytest.mark.parametrize(
    "clock",
    [
        Clock(cron="*/7 * * * *", zone="Europe/Berlin"),
        Clock(cron="30 2 * * *", zone="America/New_York"),
        Clock(cron="*/25 1-3 1-15 * 1", zone="Australia/Lord_Howe"),
        Clock(every=5000.0, anchor=at("2026-01-05"), end=at("2026-11-03")),
    ],
)
def test_counting_and_going_back_agree_with_going_forward(clock: Clock):
    begin, end = at("2026-02-20") + 1234, at("2026-11-05") + 4321
    found = list(due_between(clock, begin, end))
    assert count_between(clock, begin, end) == len(found)
    assert list(due_before(clock, begin, end)) == found[::-1]


def test_nights_of_clock_changes_are_told_ahead():
    clock = Clock(cron="30 2 * * *", zone="Europe/Berlin")
    found = shifts(clock, at("2026-01-01"))
    assert [(each.kind, each.wall) for each in found] == [
        ("moved", "2026-03-29T02:30"),
        ("twice", "2026-10-25T02:30"),
    ]
    for each in found:
        assert each.due in due_between(clock, each.due - 60, each.due + 60)
    assert shifts(Clock(cron="30 * * * *", zone="Europe/Berlin"), at("2026-01-01")) == []
    assert shifts(Clock(cron="30 2 * * *", zone="Asia/Shanghai"), at("2026-01-01")) == []


def test_jitter_is_the_same_for_whoever_asks_and_spreads_schedules():
    clock = Clock(cron="0 2 * * *", jitter=600.0)
    due = at("2026-05-02T02:00")
    offsets = {put_off(clock, f"schedule-{number}", due) - due for number in range(200)}
    assert len(offsets) == 200
    assert all(0 <= each < 600 for each in offsets)
    assert put_off(clock, "a", due) == put_off(clock, "a", due)


@pytest.mark.parametrize(
    ("clock", "sentence"),
    [
        (Clock(), "Specify when it is due"),
        (Clock(cron="0 0 30 2 *"), "“0 0 30 2 *” is never due: its months have no such day."),
        (Clock(cron="0 0 31 4,6 *"), "is never due: its months have no such day."),
        (Clock(cron="0 0 32 1 *"), "is not a cron expression: the day of the month is wrong."),
        (Clock(cron="0 0 29 2 MON#6"), "the day of the week is wrong"),
        (Clock(cron="* * * *"), "“* * * *” is not a cron expression of five fields."),
        (Clock(cron="0 0 2 * * *"), "is not a cron expression of five fields."),
        (Clock(cron="61 * * * *"), "“61 * * * *” is not a cron expression: the minute is wrong."),
        (Clock(cron="L/2-1 * * * *"), "is not a cron expression"),
        (Clock(cron="0 0 * * *", zone="Mars/Olympus"), "“Mars/Olympus” is not a time zone."),
        (Clock(cron="0 0 * * *", zone="../etc/passwd"), "is not a time zone."),
        (Clock(cron="0 0 * * *", zone=""), "“” is not a time zone."),
        (Clock(every=0.5), "The interval must be at least a second."),
        (Clock(every=math.nan), "A time of the schedule is too far away."),
        (Clock(cron="0 0 * * *", jitter=-1.0), "The jitter must not be negative."),
        (Clock(cron="0 0 * * *", start=5.0, end=4.0), "end of the schedule is before its start"),
        (Clock(cron="0 0 1 1 *", start=at("2026-05-01"), end=at("2026-06-01")), "never due"),
    ],
)
def test_a_clock_that_makes_no_sense_is_refused_with_a_sentence(clock: Clock, sentence: str):
    with pytest.raises(ConvectError) as refused:
        check(clock, datetime(2026, 4, 1, tzinfo=timezone.utc).timestamp())
    assert sentence in refused.value.sentence


@pytest.mark.parametrize(
    "cron", ["@daily", "@Hourly", "0 0 ? * MON-FRI", "0 0 L * *", "0 9 * * 1#2"]
)
def test_macros_and_the_words_of_other_schedulers_are_understood(cron: str):
    check(Clock(cron=cron), at("2026-04-01"))
