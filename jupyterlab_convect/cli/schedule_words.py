"""What `convect schedule` says of schedules."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from . import output

if TYPE_CHECKING:
    from ..schedules.scheduling import Scheduling

OUTCOMES = {"ran": "green", "refused": "red", "missed": "yellow", "skipped": "yellow"}


def due_text(view: dict[str, Any]) -> str:
    """What makes a schedule due."""
    clock, on = view["clock"], view["trigger"] or {}
    found = [clock_text(clock)] if clock.get("cron") or clock.get("every") else []
    if "file" in on:
        found.append(f"file {on['file']['pattern']}")
    if "run" in on:
        found.append(f"run {on['run'].get('path') or on['run']['name']}")
    if "call" in on:
        found.append("call")
    return ", ".join(found)


def clock_text(clock: dict[str, Any]) -> str:
    from ..text import duration_text

    if clock.get("cron"):
        return f"{clock['cron']} {clock.get('zone', 'UTC')}"
    return f"every {duration_text(clock['every'])}"


def when(seconds: float | None, clock: dict[str, Any]) -> str:
    if seconds is None:
        return ""
    zone = ZoneInfo(clock.get("zone", "UTC"))
    return datetime.fromtimestamp(seconds, zone).strftime("%Y-%m-%d %H:%M:%S")


def outcome_of(line: dict[str, Any]) -> str:
    words = line["outcome"]
    if words == "ran" and line["state"]:
        words = f"ran: {line['state']}"
    return output.paint(words, OUTCOMES.get(line["outcome"], "dim"))


def reason_of(line: dict[str, Any], clock: dict[str, Any]) -> str:
    if line["gone"]:
        begin, end = (when(each, clock) for each in line["gone"])
        return f"Nobody kept the clock from {begin} to {end}."
    happening = line["happening"]
    if happening is None:
        return line["reason"] or ""
    values = happening.get("values", {})
    cause = values.get("file") or f"{happening['cause']} {values.get('run', '')}".strip()
    return f"{cause}: {line['reason']}" if line["reason"] else cause


def say_values(view: dict[str, Any]) -> None:
    """What each due time gives to parameters, and what it goes over."""
    from ..json_text import dumps

    given = view["request"].get("parameters") or {}
    space = (view["sweep"] or {}).get("space") or {}
    for title, values in (("parameters", given), ("sweep over", space)):
        if values:
            pairs = (f"{name} = {dumps(value)}" for name, value in values.items())
            output.say(f"{title}: {', '.join(pairs)}")


def say_next(view: dict[str, Any]) -> None:
    if view["next"]:
        times = ", ".join(when(due, view["clock"]) for due in view["next"])
        output.say(f"next: {times}")
    elif not view.get("trigger"):
        output.say("It is not due any more.")
    for each in view["shifts"]:
        wall = each["wall"].replace("T", " ")
        if each["kind"] == "twice":
            output.say(f"{wall} comes twice that night; it runs once, the first time.")
        else:
            due = when(each["due"], view["clock"])
            output.say(f"{wall} is left out that night; it runs at {due}.")


def say_keeper(scheduling: Scheduling, view: dict[str, Any] | None = None) -> None:
    if view is not None and view["kept_by"] == "runtime":
        output.note(f"Kept by {view['runtime']}, also while JupyterLab is off.")
        return
    keeper = scheduling.who_keeps()
    if keeper is None:
        output.note(
            "Nobody keeps the clock now: start JupyterLab, or run: convect schedule keep --detach"
        )
    elif keeper["kind"] == "server":
        output.note(f"Kept by a Jupyter server on {keeper['host']} while it is up.")
    else:
        output.note(f"Kept by process {keeper['process']} on {keeper['host']}.")


def say_hook(hook: dict[str, str]) -> None:
    output.say(f"token: {hook['token']}")
    output.say(f"address: <Jupyter server>/jupyterlab-convect/api/v1/{hook['address']}")
    output.note('Call it with: curl -X POST -H "Authorization: Bearer <token>" <address>')
