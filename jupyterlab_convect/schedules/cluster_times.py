"""When a cluster that keeps the clock of a schedule has to look at it.

Clusters read cron expressions differently where clocks change, and in the fields for days. So
what is asked of them covers all due times, and may cover more: whatever they start looks at the
schedule itself, and ends when nothing is due.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timezone
from typing import TYPE_CHECKING, NamedTuple

from ..errors import Refused
from .times import Clock, due_after, parse_cron, shifts

if TYPE_CHECKING:
    from cronsim import CronSim

MINUTE, HOUR, DAY = 60, 3600, 86400


class ClusterTimes(NamedTuple):
    cron: str
    """Five fields, of numbers alone."""
    zone: str


def cluster_times(clock: Clock, now: float) -> ClusterTimes | None:
    """What covers the due times from now on; None when there are none. Refused when nothing does.

    A due time that is moved because clocks change is covered alone, until it is over.
    """
    due = next(due_after(clock, now), None)
    if due is None:
        return None
    if clock.every is not None:
        return ClusterTimes(_of_interval(clock.every, clock.anchor), "UTC")
    if any(shift.kind == "moved" and shift.due == due for shift in shifts(clock, now)):
        at = datetime.fromtimestamp(due, timezone.utc)
        return ClusterTimes(f"{at.minute} {at.hour} {at.day} {at.month} *", "UTC")
    return ClusterTimes(_of_cron(clock.cron or "", now), clock.zone)


def _of_interval(every: float, anchor: float) -> str:
    whole, seconds = int(every), int(anchor // MINUTE) * MINUTE
    if whole == every and whole % MINUTE == 0:
        if HOUR % whole == 0:
            minutes = {(seconds + number) // MINUTE % 60 for number in range(0, HOUR, whole)}
            return f"{field_of(minutes, range(60))} * * * *"
        if DAY % whole == 0 and whole % HOUR == 0:
            hours = {(seconds + number) // HOUR % 24 for number in range(0, DAY, whole)}
            return f"{seconds // MINUTE % 60} {field_of(hours, range(24))} * * *"
        if whole % DAY == 0:
            return f"{seconds // MINUTE % 60} {seconds // HOUR % 24} * * *"
    raise Refused(
        "A cluster can keep an interval of whole minutes that divides an hour, of whole hours that "
        "divides a day, or of whole days.",
        code="not-for-clusters",
        hint="Choose another interval or a cron expression, or have it kept here.",
    )


def _of_cron(cron: str, now: float) -> str:
    parsed = parse_cron(cron, datetime.fromtimestamp(now, timezone.utc))
    days, weekdays = days_of(parsed) or (range(1, 32), range(7))
    fields = [field_of(days, range(1, 32)), field_of(weekdays, range(7))]
    if "*" not in fields and parsed.day_and:
        fields[1] = "*"  # Clusters take days of either field.
    return " ".join(
        (
            field_of(parsed.minutes, range(60)),
            field_of(parsed.hours, range(24)),
            fields[0],
            field_of(parsed.months, range(1, 13)),
            fields[1],
        )
    )


def days_of(parsed: CronSim) -> tuple[Collection[int], Collection[int]] | None:
    """Days of the month and of the week; None for the last Friday, and the like."""
    days, weekdays = (_plain(given) for given in (parsed.days, parsed.weekdays))
    if days is None or weekdays is None:
        return None
    weekdays = {day % 7 for day in weekdays}
    if not parsed.day_and and (len(set(days)) == 31 or len(weekdays) == 7):
        return range(1, 32), range(7)  # One of the two is enough.
    return set(days), weekdays


def _plain(values: Iterable[object]) -> Collection[int] | None:
    found = list(values)
    plain = [each for each in found if isinstance(each, int) and each >= 0]
    return plain if len(plain) == len(found) else None


def field_of(values: Collection[int], every: range) -> str:
    """A field of a cron expression."""
    found = sorted(set(values))
    return "*" if found == list(every) else ",".join(map(str, found))
