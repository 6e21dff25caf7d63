"""A clock as a runtime keeps it that makes the runs itself: exactly, or not at all.

It counts in one time zone, its own. Its cron expressions have six fields, seconds first.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from ..errors import Refused
from .cluster_times import DAY, HOUR, MINUTE, days_of, field_of
from .times import Clock, due_after, parse_cron, shifts, zone_of

YEARS = 10
"""Years ahead in which two time zones must not drift apart."""
SAFE_DAYS = range(1, 29)
"""Days that every month has."""


class RecurringTimes(NamedTuple):
    cron: str | None
    """Six fields of numbers; None where `every` is given."""
    every: int | None
    """Seconds from one due time to the next, the first of which is that long after `after`."""
    after: int
    """Nothing is due up to this moment."""
    until: int | None


def recurring_times(
    clock: Clock, zone: str, now: float, *, catch_up: bool
) -> RecurringTimes | None:
    """What is due from now on; None when nothing is. Refused where it cannot be said exactly.

    `catch_up`: a due time that was left out is made up for, so that intervals stay in step.
    """
    if next(due_after(clock, now), None) is None:
        return None
    if clock.jitter:
        raise _refused(
            "The runtime cannot put off runs at random.", "Remove the jitter, or have it kept here."
        )
    until = None if clock.end is None else math.floor(clock.end)
    after = math.floor(now)
    if clock.start is not None:
        after = max(after, math.ceil(clock.start) - 1)
    if clock.every is not None:
        return _of_interval(clock, zone, after, until, catch_up=catch_up)
    cron = f"0 {_moved(clock.cron or '', _difference(clock, zone, now), zone, now)}"
    return RecurringTimes(cron, None, after, until)


def _of_interval(
    clock: Clock, zone: str, after: int, until: int | None, *, catch_up: bool
) -> RecurringTimes:
    every, anchor = int(clock.every or 0), int(clock.anchor)
    if every != clock.every or anchor != clock.anchor:
        raise _refused(
            "The runtime counts in whole seconds.", "Choose another interval, or have it kept here."
        )
    if catch_up:
        begin = anchor + max((after - anchor) // every, 0) * every
        return RecurringTimes(None, every, begin, until)
    # A periodic schedule that is late goes on from then; a cron expression does not.
    begin = anchor + _ahead_of_utc(zone, after)
    times = range(begin, begin + DAY, every) if DAY % every == 0 else ()
    cron = _daily({time % DAY for time in times})
    if cron is None:
        raise _refused(
            "The runtime keeps this interval only if all missed due times are made up for.",
            "Choose “all” for missed due times, or an interval that divides an hour or a day.",
        )
    return RecurringTimes(cron, None, max(after, anchor), until)


def _daily(times: Collection[int]) -> str | None:
    """Seconds of every day as one expression, if that is possible."""
    seconds = {time % MINUTE for time in times}
    minutes = {time // MINUTE % 60 for time in times}
    hours = {time // HOUR for time in times}
    if not times or len(times) != len(seconds) * len(minutes) * len(hours):
        return None
    fields = (field_of(seconds, range(60)), field_of(minutes, range(60)))
    return f"{' '.join(fields)} {field_of(hours, range(24))} * * *"


def _ahead_of_utc(zone: str, now: float) -> int:
    """Seconds."""
    found = {_difference_at(zone, "UTC", now + day * DAY) for day in range(YEARS * 366)}
    if len(found) > 1:
        raise _refused(
            f"The runtime keeps its clocks in {zone}, where an interval does not stay even.",
            "Use a cron expression, or have it kept here.",
        )
    return found.pop()


def _difference(clock: Clock, zone: str, now: float) -> int:
    """Minutes by which the clocks of the schedule are ahead of those that are kept."""
    end = min(now + YEARS * 366 * DAY, math.inf if clock.end is None else clock.end)
    days = range(int((end - now) // DAY) + 2)
    found = {_difference_at(clock.zone, zone, now + day * DAY) for day in days}
    if len(found) > 1:
        raise _refused(
            f"The runtime keeps its clocks in {zone}, where this is due at another hour in summer "
            "than in winter.",
            "Choose a time zone without daylight saving time, or have it kept here.",
        )
    if shifts(clock, now):
        raise _refused(
            "The runtime would leave out or repeat what is due on nights when the clocks change.",
            "Choose another hour, or have it kept here.",
        )
    difference = found.pop()
    if difference % MINUTE:
        raise _not_one_expression(zone)
    return difference // MINUTE


def _difference_at(zone: str, other: str, moment: float) -> int:
    at = datetime.fromtimestamp(moment, timezone.utc)
    ahead, behind = (at.astimezone(zone_of(each)).utcoffset() for each in (zone, other))
    return int(((ahead or timedelta()) - (behind or timedelta())).total_seconds())


def _moved(cron: str, difference: int, zone: str, now: float) -> str:
    """The five fields of an expression as clocks show them that are so many minutes behind."""
    parsed = parse_cron(cron, datetime.fromtimestamp(now, timezone.utc))
    impossible = _not_one_expression(zone)
    known = days_of(parsed)
    if known is None:  # The last Friday, and the like.
        raise impossible
    days, weekdays = known
    times = [hour * 60 + minute - difference for hour in parsed.hours for minute in parsed.minutes]
    minutes, hours = {time % 60 for time in times}, {time // 60 % 24 for time in times}
    if len(times) != len(minutes) * len(hours):
        raise impossible
    months = set(parsed.months)
    by_day, by_weekday = len(days) < 31, len(weekdays) < 7
    if by_day and by_weekday and parsed.day_and:
        raise impossible
    moves = {time // (24 * 60) for time in times}
    if moves != {0} and (by_day or by_weekday or len(months) < 12):
        (move, *more) = moves
        if more or (by_day and by_weekday):
            raise impossible
        if by_day:
            if not {*days, *(day + move for day in days)} <= set(SAFE_DAYS):
                raise impossible
            days = {day + move for day in days}
        elif len(months) < 12:
            raise impossible
        weekdays = {(day + move) % 7 for day in weekdays}
    return " ".join(
        (
            field_of(minutes, range(60)),
            field_of(hours, range(24)),
            field_of(days, range(1, 32)),
            field_of(months, range(1, 13)),
            field_of(weekdays, range(7)),
        )
    )


def _not_one_expression(zone: str) -> Refused:
    return _refused(
        f"The runtime keeps its clocks in {zone}, where these times are not one cron expression.",
        "Choose other times, or have it kept here.",
    )


def _refused(sentence: str, hint: str) -> Refused:
    return Refused(sentence, code="not-for-clusters", hint=hint)
