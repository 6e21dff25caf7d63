"""When something is due: cron in a time zone, or an interval, within a beginning and an end.

All times are seconds since 1970. What has a fixed hour is due once on the nights when clocks
change: at the first of two equal times, and at the end of the hour that is left out. What is due
every hour or every few minutes goes on evenly.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from ..errors import ConvectError

if TYPE_CHECKING:
    from cronsim import CronSim

FIELDS = {
    "Bad minute": "the minute",
    "Bad hour": "the hour",
    "Bad day-of-month": "the day of the month",
    "Bad month": "the month",
    "Bad day-of-week": "the day of the week",
}
"""What is wrong with a cron expression, in our words."""
MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
SHORTEST = 1.0
"""Seconds between two due times."""
FURTHEST = datetime(9000, 1, 1, tzinfo=timezone.utc).timestamp()
HORIZON = 370
"""Days ahead in which changes of the clocks are told."""
_DAY = 86400.0


@dataclass(frozen=True, slots=True)
class Clock:
    """`cron` or `every` is given, or neither where only triggers make something due."""

    cron: str | None = None
    zone: str = "UTC"
    every: float | None = None
    """Seconds from one due time to the next, counted from `anchor`."""
    anchor: float = 0.0
    start: float | None = None
    """Nothing is due before."""
    end: float | None = None
    """Nothing is due after."""
    jitter: float = 0.0
    """Seconds by which a run is put off at most, so that not all begin in the same moment."""


@dataclass(frozen=True, slots=True)
class Shift:
    """A due time on a night when the clocks change."""

    kind: str
    """`twice` when the time comes twice that night, `moved` when it is left out."""
    wall: str
    """The time as the cron expression has it, in the zone: `2026-03-29T02:30`."""
    due: float


def has_times(clock: Clock) -> bool:
    return clock.cron is not None or clock.every is not None


def check(clock: Clock, now: float, *, has_trigger: bool = False) -> None:
    """ConvectError unless it is due at some time, or something else makes it due."""
    if clock.cron is not None and clock.every is not None:
        raise ConvectError("A schedule has either a cron expression or an interval.")
    if not has_times(clock) and not has_trigger:
        raise ConvectError(
            "Specify when it is due: with a cron expression, an interval or a trigger."
        )
    zone_of(clock.zone)
    times = (clock.every, clock.anchor, clock.start, clock.end, clock.jitter)
    if any(each is not None and not -FURTHEST < each < FURTHEST for each in times):
        raise ConvectError("A time of the schedule is too far away.", code="bad-schedule")
    if clock.every is not None and clock.every < SHORTEST:
        raise ConvectError("The interval must be at least a second.", code="bad-schedule")
    if clock.jitter < 0:
        raise ConvectError("The jitter must not be negative.", code="bad-schedule")
    if clock.start is not None and clock.end is not None and clock.end < clock.start:
        raise ConvectError("The end of the schedule is before its start.", code="bad-schedule")
    if clock.cron is not None:
        parse_cron(clock.cron, datetime.fromtimestamp(now, timezone.utc))
    if has_times(clock) and next(due_after(clock, -math.inf), None) is None:
        raise ConvectError("The schedule is never due.", code="never-due")


def due_after(clock: Clock, after: float) -> Iterator[float]:
    """The due times later than that, in order."""
    if not has_times(clock):
        return
    if clock.start is not None:
        after = max(after, just_before(clock.start))
    after = max(after, 0.0)
    for due in _every(clock, after) if clock.every is not None else _by_cron(clock, after):
        if clock.end is not None and due > clock.end:
            return
        yield due


def due_between(clock: Clock, after: float, until: float) -> Iterator[float]:
    """Those later than `after`, up to and including `until`."""
    return itertools.takewhile(lambda due: due <= until, due_after(clock, after))


def due_before(clock: Clock, after: float, until: float) -> Iterator[float]:
    """The same, the last first."""
    if not has_times(clock):
        return
    width = clock.every or 3600.0
    end = until if clock.end is None else min(until, clock.end)
    after = max(after, 0.0 if clock.start is None else just_before(clock.start))
    while end > after:
        begin = max(end - width, after)
        yield from reversed(list(due_between(clock, begin, end)))
        end, width = begin, min(width * 2, 400 * _DAY)


def count_between(clock: Clock, after: float, until: float) -> int:
    """How many there are, without going through all of them."""
    if clock.start is not None:
        after = max(after, just_before(clock.start))
    if clock.end is not None:
        until = min(until, clock.end)
    if until <= after or not has_times(clock):
        return 0
    if clock.every is not None:
        return _count(until - clock.anchor, clock.every) - _count(after - clock.anchor, clock.every)
    return _count_by_cron(clock, after, until)


def is_due(clock: Clock, moment: float) -> bool:
    return next(due_after(clock, just_before(moment)), None) == moment


def put_off(clock: Clock, schedule_id: str, due: float) -> float:
    """When the run of a due time begins: the same for whoever asks."""
    if not clock.jitter:
        return due
    digest = hashlib.sha256(f"{schedule_id} {due!r}".encode()).digest()
    return due + clock.jitter * int.from_bytes(digest[:6], "big") / 2**48


def shifts(clock: Clock, after: float) -> list[Shift]:
    """What happens to due times on the nights of the coming year when clocks change."""
    if clock.cron is None or not _has_fixed_hour(clock.cron):
        return []
    zone = zone_of(clock.zone)
    found: list[Shift] = []
    for change in _changes_of_offset(zone, after):
        earlier = datetime.fromtimestamp(change - 1, zone).replace(fold=0)
        later = datetime.fromtimestamp(change, zone)
        gap = (later.utcoffset() or timedelta()) - (earlier.utcoffset() or timedelta())
        first = (earlier + timedelta(seconds=1)).replace(tzinfo=None, fold=0)
        begin, end = (first, first + gap) if gap > timedelta() else (first + gap, first)
        walls = parse_cron(clock.cron, begin - timedelta(seconds=1))
        for wall in walls:
            if wall >= end:
                break
            real = wall.replace(tzinfo=zone).timestamp()
            if gap > timedelta():
                real = float(change)
            if clock.end is not None and real > clock.end:
                return found
            if real > after and (clock.start is None or real >= clock.start):
                kind = "moved" if gap > timedelta() else "twice"
                found.append(Shift(kind, wall.isoformat(timespec="minutes"), real))
    return found


def local_time(clock: Clock, due: float) -> datetime:
    """A due time as the clocks in its zone show it."""
    try:
        return datetime.fromtimestamp(due, zone_of(clock.zone))
    except (OverflowError, ValueError, OSError):
        raise ConvectError(f"{due:g} is not a time that a calendar has.") from None


def day_start(clock: Clock, day: date) -> float:
    """When a day begins in the zone of a clock."""
    return _midnight(day, zone_of(clock.zone))


def just_before(moment: float) -> float:
    """The last time before it."""
    return math.nextafter(moment, -math.inf)


def local_zone() -> str:
    """The name of this machine's time zone, as far as it can be told."""
    named = os.environ.get("TZ", "").lstrip(":")
    path = Path("/etc/localtime")
    if not named and path.is_symlink():
        named = str(path.resolve()).rpartition("zoneinfo/")[2]
    try:
        zone_of(named)
    except ConvectError:
        return "UTC"
    return named


@functools.lru_cache(64)
def zone_of(name: str) -> ZoneInfo:
    """The time zone of that name, or a sentence that there is none."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # A name may be that of a folder, or lead out of it.
        raise ConvectError(
            f"“{name}” is not a time zone.",
            code="bad-zone",
            hint="Write a name such as Europe/Berlin, Asia/Shanghai or UTC.",
        ) from None


def parse_cron(expression: str, start: datetime) -> CronSim:
    """A cron expression of five fields, or a macro. ConvectError when it is none."""
    from cronsim import CronSim, CronSimError  # Whoever has no schedules needs not wait for it.

    text = MACROS.get(expression.strip().lower(), expression).replace("?", "*")
    if len(text.split()) != 5:
        raise ConvectError(
            f"“{expression[:80]}” is not a cron expression of five fields.",
            code="bad-cron",
            hint="Minute, hour, day of the month, month, day of the week: 30 2 * * 1-5.",
        )
    try:
        return CronSim(text, start)
    except (CronSimError, AssertionError) as error:
        field = FIELDS.get(str(error), "one of its fields")
        if str(error) == "Bad day-of-month" and _is_day(text.split()[2]):
            raise ConvectError(
                f"“{expression[:80]}” is never due: its months have no such day.", code="never-due"
            ) from None
        raise ConvectError(
            f"“{expression[:80]}” is not a cron expression: {field} is wrong.",
            code="bad-cron",
            hint="Minute, hour, day of the month, month, day of the week: 30 2 * * 1-5.",
        ) from None


def _is_day(field: str) -> bool:
    """Whether some month has such days."""
    from cronsim import CronSim, CronSimError

    try:
        CronSim(f"0 0 {field} * *", datetime.fromtimestamp(0, timezone.utc))
    except (CronSimError, AssertionError):
        return False
    return True


def _has_fixed_hour(expression: str) -> bool:
    minute, hour = MACROS.get(expression.strip().lower(), expression).split()[:2]
    return not minute.startswith(("*", "?")) and not hour.startswith(("*", "?"))


def _by_cron(clock: Clock, after: float) -> Iterator[float]:
    assert clock.cron is not None
    if after >= FURTHEST:
        return
    zone = zone_of(clock.zone)
    last = after
    for found in parse_cron(clock.cron, datetime.fromtimestamp(math.floor(after), zone)):
        # Two times that are left out in one night come to the same moment; and where the clocks
        # go back, a search that begins in the second hour finds what was due in the first.
        if (due := found.timestamp()) > last:
            last = due
            yield due


def _every(clock: Clock, after: float) -> Iterator[float]:
    assert clock.every is not None
    for number in itertools.count(max(_count(after - clock.anchor, clock.every), 1)):
        due = clock.anchor + number * clock.every
        if due > FURTHEST:
            return
        if due > after:
            yield due


def _count(seconds: float, every: float) -> int:
    return max(math.floor(seconds / every), 0)


def _count_by_cron(clock: Clock, after: float, until: float) -> int:
    """Days without a change of the clocks are all alike."""
    assert clock.cron is not None
    zone = zone_of(clock.zone)
    cron = parse_cron(clock.cron, datetime.fromtimestamp(max(after, 0), timezone.utc))
    day = datetime.fromtimestamp(after, zone).date() + timedelta(days=1)
    first, total = _midnight(day, zone), 0
    if first >= until:
        return sum(1 for _ in due_between(clock, after, until))
    total += sum(1 for _ in due_between(clock, after, just_before(first)))
    while (following := _midnight(day + timedelta(days=1), zone)) <= until:
        if following - first == _DAY:
            matches = day.month in cron.months and cron.match_day(day)
            total += len(cron.hours) * len(cron.minutes) if matches else 0
        else:
            whole = just_before(first), just_before(following)
            total += sum(1 for _ in due_between(clock, *whole))
        day, first = day + timedelta(days=1), following
    return total + sum(1 for _ in due_between(clock, just_before(first), until))


def _midnight(day: date, zone: ZoneInfo) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=zone).timestamp()


def _changes_of_offset(zone: ZoneInfo, after: float) -> Iterator[int]:
    """The moments within the horizon at which the clocks of a zone are changed."""

    def offset(moment: float) -> timedelta | None:
        return datetime.fromtimestamp(moment, zone).utcoffset()

    low = math.floor(after)
    for _ in range(HORIZON):
        high = low + int(_DAY)
        if offset(low) != offset(high):
            before, behind = low, high
            while behind - before > 1:
                middle = (before + behind) // 2
                before, behind = (
                    (middle, behind) if offset(middle) == offset(low) else (before, middle)
                )
            yield behind
        low = high
