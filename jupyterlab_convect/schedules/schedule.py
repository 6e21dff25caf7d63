"""What a schedule is: a request with a clock or a trigger, and what to do when something comes in
its way."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timezone
from typing import Literal

from ..errors import ConvectError, Refused
from ..pipeline.plan import Json
from ..runs.model import Request, SweepSources
from .times import Clock, check, has_times, local_time
from .triggers import Happening, Trigger, check_trigger

Overlap = Literal["skip", "queue", "stop"]
"""What becomes of a due time while as many runs of the schedule go on as may: it is skipped, it
waits, or the oldest of the runs is stopped for it."""
KeptBy = Literal["here", "runtime"]
"""Who keeps the clock: a server or a process of ours, or the cluster that the runs run on."""
Missed = Literal["none", "last", "all"]
"""Which due times are made up for when nobody was there: none, the last, or each."""

DAY = 86400.0
LONGEST_NAME = 200
MOST_AT_ONCE = 1000
MOST_RECURRING = 10
"""Runs at the same time where a runtime makes them by its own clock."""
_REFERENCE = re.compile(r"\$\{\{\s*schedule\.([\w.-]+)\s*\}\}")
BODY = "body."
"""What the names of parts of the body of a call begin with."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The content of `schedule.json`; an edit replaces all of it but `id` and `created`."""

    id: str
    name: str
    created: float
    request: Request
    clock: Clock
    sweep: Mapping[str, Json] | None = None
    """`space` and how to go through it, when each due time makes a sweep."""
    overlap: Overlap = "skip"
    concurrency: int = 1
    """Runs of the schedule that go on at the same time."""
    missed: Missed = "last"
    deadline: float = DAY
    """Seconds after which a missed due time is not made up for any more."""
    sources: SweepSources | None = None
    """The files that are executed, when they are pinned; None means those of the day."""
    user: str | None = None
    trigger: Trigger | None = None
    """What makes it due beside the clock."""
    kept_by: KeptBy = "here"


def check_schedule(schedule: Schedule, now: float) -> None:
    """ConvectError for the first thing that is wrong with it."""
    check(schedule.clock, now, has_trigger=schedule.trigger is not None)
    if schedule.trigger is not None:
        check_trigger(schedule.trigger, schedule.request.root)
    if not schedule.name.strip() or len(schedule.name) > LONGEST_NAME:
        raise ConvectError(
            f"The name of a schedule must have 1 to {LONGEST_NAME} characters.", code="bad-schedule"
        )
    if not 1 <= schedule.concurrency <= MOST_AT_ONCE:
        raise ConvectError(
            f"`concurrency` of a schedule is a number from 1 to {MOST_AT_ONCE}.",
            code="bad-schedule",
        )
    if schedule.kept_by == "runtime" and schedule.trigger is not None:
        raise Refused(
            "A cluster keeps clocks, not triggers.",
            code="not-for-clusters",
            hint="Have this schedule kept here, or remove its trigger.",
        )
    if schedule.deadline < 0:
        raise ConvectError("The deadline must not be negative.", code="bad-schedule")
    if has_times(schedule.clock):
        at_due(schedule, now)
    for happening in examples(schedule):
        at_due(schedule, now, happening)


def require_recurring(schedule: Schedule) -> None:
    """Refused unless a runtime that makes the runs itself can do as the schedule says."""
    given = schedule.request
    named = set(_names([given.name or "", dict(given.parameters)]))
    sentence, hint = "", "Change that, or have it kept here."
    if schedule.sweep is not None:
        sentence = "The runtime runs a pipeline by its clock, not a sweep."
    elif named & {"due", "date", "utc"}:
        sentence = "The runtime does not tell a run when it was due."
        hint = "Remove ${{ schedule.due }} and its like, or have it kept here."
    elif (schedule.overlap, schedule.missed) not in (("skip", "last"), ("queue", "all")):
        sentence = (
            "The runtime runs either each due time in turn (overlap “queue”, missed “all”), or "
            "only the last of those that come while it cannot (overlap “skip”, missed “last”)."
        )
    elif schedule.concurrency > MOST_RECURRING:
        sentence = f"The runtime has at most {MOST_RECURRING} runs of a schedule at the same time."
    if sentence:
        raise Refused(sentence, code="not-for-clusters", hint=hint)


def examples(schedule: Schedule) -> list[Happening]:
    """One of each that may make it due."""
    on = schedule.trigger or Trigger()
    found = []
    if on.file is not None:
        found.append(Happening("file", {"file": on.file.pattern}))
    if on.run is not None:
        found.append(Happening("run", {"run": "a run", "state": on.run.states[0]}))
    if on.call is not None:
        found.append(Happening("call", dict.fromkeys(body_names(schedule), "")))
    return found


def body_names(schedule: Schedule) -> set[str]:
    """The parts of the body of a call that it refers to: `body.ref`, `body.repository.name`."""
    given = schedule.request
    every = [given.name or "", dict(given.parameters), dict(schedule.sweep or {})]
    return {name for name in _names(every) if name.startswith(BODY)}


def values_of_body(schedule: Schedule, body: Json) -> dict[str, Json]:
    """The parts of the body of a call that the schedule refers to."""
    values = {}
    for name in body_names(schedule):
        found = body
        for part in name.removeprefix(BODY).split("."):
            if not isinstance(found, dict) or part not in found:
                raise ConvectError(
                    f"The body of the call has no “{name.removeprefix(BODY)}”.",
                    code="no-such-value",
                )
            found = found[part]
        values[name] = found
    return values


def at_due(
    schedule: Schedule, due: float, happening: Happening | None = None
) -> tuple[Request, Mapping[str, Json] | None]:
    """What is asked for at a due time: `${{ schedule.due }}` and its like have their values."""
    moment = local_time(schedule.clock, due)
    values: dict[str, Json] = {
        "due": moment.isoformat(timespec="seconds"),
        "date": moment.date().isoformat(),
        "utc": moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "name": schedule.name,
        "id": schedule.id,
        **({} if happening is None else happening.values),
    }
    given = schedule.request
    request = replace(
        given,
        name=given.name if given.name is None else str(_bound(given.name, values)),
        parameters=_bound(dict(given.parameters), values),
        labels={"schedule": schedule.name, **given.labels},
    )
    return request, None if schedule.sweep is None else _bound(dict(schedule.sweep), values)


def space_over(
    schedule: Schedule, dues: Sequence[float], parameter: str | None = None
) -> dict[str, list[Json]]:
    """The values that depend on the due time, one for each of them.

    Where none does, `parameter` has the date.
    """
    given = dict(schedule.request.parameters)
    if parameter is not None:
        given[parameter] = "${{ schedule.date }}"
    names = [name for name, value in given.items() if _refers(value)]
    if not names:
        raise ConvectError(
            "No parameter of the schedule depends on its due time.",
            code="no-such-value",
            hint="Name the parameter that has the date, or give one the value "
            "${{ schedule.date }}.",
        )
    chosen = replace(schedule, request=replace(schedule.request, parameters=given))
    bound = [at_due(chosen, due)[0].parameters for due in dues]
    return {name: [values[name] for values in bound] for name in names}


def _refers(value: Json) -> bool:
    return any(True for _ in _names(value))


def _names(value: Json) -> Iterator[str]:
    """What a value refers to."""
    if isinstance(value, str):
        yield from _REFERENCE.findall(value)
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _names(item)


def _bound(value: Json, values: Mapping[str, Json]) -> Json:
    if isinstance(value, str):
        if whole := _REFERENCE.fullmatch(value):
            return _value_of(whole[1], values)
        return _REFERENCE.sub(lambda found: str(_value_of(found[1], values)), value)
    if isinstance(value, list | tuple):
        return [_bound(item, values) for item in value]
    if isinstance(value, dict):
        return {key: _bound(item, values) for key, item in value.items()}
    return value


def _value_of(name: str, values: Mapping[str, Json]) -> Json:
    if name not in values:
        raise ConvectError(
            f"There is no “schedule.{name}”.",
            code="no-such-value",
            hint=f"Available: schedule.{', schedule.'.join(values)}.",
        )
    return values[name]
