"""Clocks that a runtime keeps in a time zone of its own: exactly, or refused."""

from __future__ import annotations

import itertools
from datetime import datetime, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyterlab_convect.errors import Refused
from jupyterlab_convect.schedules.recurring_times import RecurringTimes, recurring_times
from jupyterlab_convect.schedules.times import Clock, due_after, due_between

NOW = datetime(2026, 5, 1, 10, 0, tzinfo=timezone.utc).timestamp()
DAY = 86400
EVEN = ["UTC", "Asia/Shanghai", "Asia/Kolkata", "America/Phoenix", "Pacific/Kiritimati"]


def times_of(kept: RecurringTimes, zone: str, until: float) -> list[float]:
    """When a runtime would make runs."""
    if kept.every is not None:
        clock = Clock(every=float(kept.every), anchor=float(kept.after))
        return list(due_between(clock, kept.after, min(until, kept.until or until)))
    assert kept.cron is not None
    seconds, *fields = kept.cron.split()
    assert len(fields) == 5
    found = due_between(Clock(" ".join(fields), zone), kept.after - 60, until)
    each = sorted(due + int(second) for due in found for second in seconds.split(","))
    return [due for due in each if kept.after < due <= min(until, kept.until or until)]


def field(first: int, last: int) -> st.SearchStrategy[str]:
    numbers = st.sets(st.integers(first, last), min_size=1, max_size=3)
    return st.one_of(st.just("*"), numbers.map(lambda found: ",".join(map(str, sorted(found)))))


CRON = st.tuples(field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6))


@settings(deadline=None, max_examples=60)
@given(CRON.map(" ".join), st.sampled_from(EVEN), st.sampled_from(EVEN))
def test_what_is_kept_elsewhere_is_due_when_it_is_here(cron: str, zone: str, kept_in: str):
    clock = Clock(cron, zone)
    try:
        kept = recurring_times(clock, kept_in, NOW, catch_up=True)
    except Refused:
        return
    assert kept is not None
    known = list(itertools.islice(due_after(clock, NOW), 60))
    assert times_of(kept, kept_in, known[-1]) == known


@pytest.mark.parametrize("catch_up", [True, False])
@settings(deadline=None, max_examples=30)
@given(st.sampled_from([60, 300, 900, 600, 3600, 7200, DAY]), st.integers(0, 10**6))
def test_intervals_stay_in_step(catch_up: bool, every: int, back: int):
    clock = Clock(every=float(every), anchor=float(int(NOW) - back))
    kept = recurring_times(clock, "Asia/Kolkata", NOW, catch_up=catch_up)
    assert kept is not None
    until = NOW + 60 * every
    assert times_of(kept, "Asia/Kolkata", until) == list(due_between(clock, NOW, until))


@pytest.mark.parametrize(
    ("cron", "zone", "kept"),
    [
        ("30 9 * * 1-5", "Asia/Shanghai", "0 30 1 * * 1,2,3,4,5"),
        ("30 3 * * 1", "Asia/Shanghai", "0 30 19 * * 0"),
        ("0 3 15 * *", "Asia/Shanghai", "0 0 19 14 * *"),
        ("*/15 * * * *", "Asia/Kolkata", "0 0,15,30,45 * * * *"),
        ("@daily", "UTC", "0 0 0 * * *"),
    ],
)
def test_hours_and_days_move_with_the_zone(cron: str, zone: str, kept: str):
    assert recurring_times(Clock(cron, zone), "UTC", NOW, catch_up=False) == RecurringTimes(
        kept, None, int(NOW), None
    )


def test_it_begins_and_ends_as_the_schedule_does():
    clock = Clock("@daily", start=NOW + DAY, end=NOW + 5 * DAY)
    kept = recurring_times(clock, "UTC", NOW, catch_up=True)
    assert kept == RecurringTimes("0 0 0 * * *", None, int(NOW) + DAY - 1, int(NOW) + 5 * DAY)
    assert recurring_times(Clock("@daily", end=NOW - 1), "UTC", NOW, catch_up=True) is None


@pytest.mark.parametrize(
    ("clock", "zone", "words"),
    [
        (Clock("0 9 * * *", "Europe/Berlin"), "UTC", "in summer than in winter"),
        (Clock("0 9 * * *"), "Europe/Berlin", "in summer than in winter"),
        (Clock("30 2 * * *", "Europe/Berlin"), "Europe/Berlin", "nights when the clocks change"),
        (Clock("0 3 1 * *", "Asia/Shanghai"), "UTC", "not one cron expression"),
        (Clock("0 3 31 * *", "Asia/Shanghai"), "UTC", "not one cron expression"),
        (Clock("0 3,12 * * 1", "Asia/Shanghai"), "UTC", "not one cron expression"),
        (Clock("0 9 * * 5L"), "UTC", "not one cron expression"),
        (Clock("0 9 * * *", jitter=5.0), "UTC", "at random"),
        (Clock(every=7000.0), "UTC", "made up for"),
        (Clock(every=1.5), "UTC", "whole seconds"),
        (Clock(every=3600.0), "Europe/Berlin", "does not stay even"),
    ],
)
def test_what_cannot_be_kept_exactly_is_refused(clock: Clock, zone: str, words: str):
    with pytest.raises(Refused, match=words) as refused:
        recurring_times(clock, zone, NOW, catch_up=False)
    assert refused.value.code == "not-for-clusters"
    assert refused.value.hint


def test_the_same_zone_on_both_sides_may_change_its_clocks():
    clock = Clock("0 9 * * *", "Europe/Berlin")
    kept = recurring_times(clock, "Europe/Berlin", NOW, catch_up=True)
    assert kept is not None
    assert kept.cron == "0 0 9 * * *"
