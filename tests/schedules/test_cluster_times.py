"""What is asked of a cluster covers every due time."""

from __future__ import annotations

from datetime import datetime
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest

from jupyterlab_convect.errors import Refused
from jupyterlab_convect.schedules.cluster_times import ClusterTimes, cluster_times
from jupyterlab_convect.schedules.times import Clock, due_between

UTC = ZoneInfo("UTC")
NOW = datetime(2026, 1, 10, tzinfo=UTC).timestamp()
DAY = 86400
DAYS = [(1, 10), (3, 1), (3, 28), (3, 29), (4, 1), (10, 20), (10, 31)]


def fires(cron: str, zone: str, moment: float) -> bool:
    """Whether a cluster fires in this minute: days of either field count."""
    at = datetime.fromtimestamp(moment, ZoneInfo(zone))
    fields = [None if each == "*" else set(map(int, each.split(","))) for each in cron.split()]
    minute, hour, day, month, weekday = fields
    days = [
        wanted is None or value in wanted
        for wanted, value in ((day, at.day), (weekday, at.isoweekday() % 7))
    ]
    is_day = all(days) if day is None or weekday is None else any(days)
    return (
        (minute is None or at.minute in minute)
        and (hour is None or at.hour in hour)
        and (month is None or at.month in month)
        and is_day
    )


CRONS = [
    *("30 2 * * *", "*/15 * * * *", "0 9 * * MON-FRI", "@daily", "5 4 1,15 * 7"),
    *("0 0 L * *", "0 12 * * FRI#2", "10 1-3 */2 * 1", "59 23 29 2 *", "0 */6 * 1-6 ?"),
]
ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]
WEEKS = [datetime(2026, month, day, tzinfo=UTC).timestamp() for month, day in DAYS]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("cron", CRONS)
def test_a_cluster_fires_at_every_due_time(cron: str, zone: str) -> None:
    """Told anew after each of them, as whatever it starts does."""
    clock = Clock(cron, zone)
    for begin in WEEKS:
        dues = [begin, *islice(due_between(clock, begin, begin + 40 * DAY), 200)]
        for before, due in list(pairwise(dues))[:: len(dues) // 8 + 1]:
            times = cluster_times(clock, before)
            assert times is not None
            assert fires(*times, due), (times, due)


@pytest.mark.parametrize(
    ("every", "anchor", "cron"),
    [
        (60.0, 7.0, "* * * * *"),
        (900.0, 420.0, "7,22,37,52 * * * *"),
        (6 * 3600.0, 3600.0 + 300, "5 1,7,13,19 * * *"),
        (2 * 86400.0, 9 * 3600.0, "0 9 * * *"),
    ],
)
def test_intervals_are_cron(every: float, anchor: float, cron: str) -> None:
    clock = Clock(every=every, anchor=anchor)
    assert cluster_times(clock, NOW) == ClusterTimes(cron, "UTC")
    for due in list(due_between(clock, NOW, NOW + 10 * 86400))[:500]:
        assert fires(cron, "UTC", due)


@pytest.mark.parametrize("every", [1.0, 90.0, 7 * 60.0, 5 * 3600.0, 5400.0])
def test_other_intervals_are_refused(every: float) -> None:
    with pytest.raises(Refused, match="whole minutes"):
        cluster_times(Clock(every=every, anchor=0.0), NOW)


def test_what_is_over_is_not_asked_for() -> None:
    assert cluster_times(Clock("@daily", end=NOW - 1), NOW) is None


def test_a_moved_time_is_asked_for_alone() -> None:
    clock = Clock("30 2 * * *", "Europe/Berlin")
    eve = datetime(2026, 3, 28, 12, tzinfo=UTC).timestamp()
    assert cluster_times(clock, eve) == ClusterTimes("0 1 29 3 *", "UTC")
    assert cluster_times(clock, eve + 86400) == ClusterTimes("30 2 * * *", "Europe/Berlin")
