"""What the options of `convect schedule` mean: when, by which rules, and what is run."""

from __future__ import annotations

import argparse
from dataclasses import replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from ..errors import ConvectError
from ..pipeline.quantities import duration
from .arguments import add_parameters, known_types, space_of, split, typed_parameters

if TYPE_CHECKING:
    from ..runs.model import Request
    from ..schedules.times import Clock
    from ..schedules.triggers import Trigger


def add_clock(parser: argparse.ArgumentParser) -> None:
    clock = parser.add_argument_group("when")
    clock.add_argument("--cron", metavar="FIELDS", help='five fields, such as "30 2 * * 1-5"')
    clock.add_argument("--every", metavar="DURATION", help="15m, 6h, 1d")
    clock.add_argument("--anchor", metavar="WHEN", help="the time from which --every counts (now)")
    clock.add_argument("--zone", metavar="NAME", help="a time zone (the one of this machine)")
    clock.add_argument("--start", metavar="WHEN", help="not before: 2026-05-01 or 2026-05-01T08:00")
    clock.add_argument("--end", metavar="WHEN", help="not after")
    clock.add_argument("--jitter", metavar="DURATION", help="delay each run by at most this much")

    trigger = parser.add_argument_group("or when something happens")
    trigger.add_argument(
        "--on-file", metavar="PATTERN", help="a file appears or changes, as in data/*.csv"
    )
    trigger.add_argument(
        "--settle", metavar="DURATION", help="how long a file must not have changed (5s)"
    )
    trigger.add_argument("--once", action="store_true", help="each file once, also if it changes")
    trigger.add_argument(
        "--on-run", metavar="FILE", help="a run of this file ended, or of a name such as train*"
    )
    trigger.add_argument(
        "--on-state",
        action="append",
        default=[],
        metavar="STATE",
        help="ended in this state (succeeded)",
    )
    trigger.add_argument("--on-call", action="store_true", help="it is called, as by a webhook")
    trigger.add_argument("--no-trigger", action="store_true", help="only by the clock")


def add_rules(parser: argparse.ArgumentParser) -> None:
    rules = parser.add_argument_group("rules")
    rules.add_argument(
        "--overlap",
        choices=("skip", "queue", "stop"),
        help="while an earlier run is still running: skip, wait, or stop that one (skip)",
    )
    rules.add_argument("--limit", type=int, metavar="N", help="runs at the same time (1)")
    rules.add_argument(
        "--missed",
        choices=("none", "last", "all"),
        help="which missed due times to make up for (last)",
    )
    rules.add_argument("--deadline", metavar="DURATION", help="for how long (1d)")
    rules.add_argument(
        "--kept-by",
        choices=("here", "runtime"),
        help="who keeps the clock: we, or the cluster that it runs on (here)",
    )
    rules.add_argument("--pinned", action="store_true", help="always run the files as they are now")


def add_request(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("what")
    add_parameters(
        what, "a parameter; ${{ schedule.due }} and ${{ schedule.date }} are when it is due"
    )
    what.add_argument("--name", help="what to call the schedule")
    what.add_argument("--runtime", help="where to run (local)")
    what.add_argument(
        "--label", action="append", default=[], metavar="NAME=VALUE", help="a label of the runs"
    )
    what.add_argument(
        "--sweep", action="append", default=[], metavar="NAME=VALUES", help="run a sweep each time"
    )
    what.add_argument("--mode", choices=("grid", "random", "list"), help="how to combine (grid)")
    what.add_argument("--samples", type=int, metavar="N", help="how many, when random")
    what.add_argument(
        "--concurrency", type=int, metavar="N", help="how many runs of a sweep at a time"
    )


def clock_of(options: argparse.Namespace, known: Clock, *, has_trigger: bool = False) -> Clock:
    if options.cron is not None and options.every is not None:
        raise ConvectError("--cron and --every exclude each other.")
    clock = known
    if options.zone is not None:
        clock = replace(clock, zone=options.zone)
    if options.cron is not None:
        clock = replace(clock, cron=options.cron, every=None)
    if options.every is not None:
        clock = replace(clock, every=duration(options.every), cron=None)
    if options.anchor is not None:
        clock = replace(clock, anchor=moment(options.anchor, clock.zone))
    if options.start is not None:
        clock = replace(clock, start=moment(options.start, clock.zone))
    if options.end is not None:
        clock = replace(clock, end=moment(options.end, clock.zone, end_of_day=True))
    if options.jitter is not None:
        clock = replace(clock, jitter=duration(options.jitter))
    if clock.cron is None and clock.every is None and not has_trigger:
        raise ConvectError("Say when: --cron, --every, --on-file, --on-run or --on-call.")
    return clock


def trigger_of(options: argparse.Namespace) -> Trigger | None:
    """What is to make it due; None when nobody says."""
    from ..schedules.triggers import CallTrigger, FileTrigger, RunTrigger, Trigger

    of_file = {"settle": options.settle, "once": options.once}
    if not options.on_file and any(of_file.values()):
        raise ConvectError(f"--{next(key for key in of_file if of_file[key])} needs --on-file.")
    if options.on_state and not options.on_run:
        raise ConvectError("--on-state needs --on-run.")
    file = run = None
    if options.on_file:
        file = FileTrigger(options.on_file, changed=not options.once)
        if options.settle is not None:
            file = replace(file, settle=duration(options.settle))
    if options.on_run:
        is_path = PurePosixPath(options.on_run).suffix != ""
        run = RunTrigger(path=options.on_run) if is_path else RunTrigger(name=options.on_run)
        if options.on_state:
            run = replace(run, states=tuple(options.on_state))
    call = CallTrigger() if options.on_call else None
    if options.no_trigger:
        return Trigger()
    return Trigger(file, run, call) if file or run or call else None


def rules_of(options: argparse.Namespace) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "overlap": options.overlap,
        "concurrency": options.limit,
        "missed": options.missed,
        "kept_by": options.kept_by,
        "deadline": None if options.deadline is None else duration(options.deadline),
    }
    return {name: value for name, value in fields.items() if value is not None}


def edited(options: argparse.Namespace, known: Request) -> Request:
    if options.parameter:
        given = parameters_of(options.parameter, Path(known.root), known.path or "")
        known = replace(known, parameters={**known.parameters, **given})
    if options.runtime:
        known = replace(known, runtime=options.runtime)
    if options.label:
        known = replace(known, labels={**known.labels, **dict(map(split, options.label))})
    return known


def parameters_of(pairs: list[str], root: Path, path: str) -> dict[str, Any]:
    """Of the declared type; what refers to the due time is a text until then."""
    types = known_types(root, path) if pairs else {}
    texts = {name: text for name, text in map(split, pairs) if "${{" in text}
    others = [pair for pair in pairs if split(pair)[0] not in texts]
    return {**typed_parameters(others, types), **texts}


def sweep_of(options: argparse.Namespace, root: Path, path: str) -> dict[str, Any] | None:
    names = ("mode", "samples", "concurrency")
    how = {key: getattr(options, key) for key in names if getattr(options, key) is not None}
    if not options.sweep:
        if how:
            raise ConvectError(f"--{next(iter(how))} needs --sweep.")
        return None
    return {"space": space_of(options.sweep, known_types(root, path)), **how}


def zone_for(options: argparse.Namespace) -> str:
    from ..schedules.times import local_zone

    return options.zone or local_zone()


def moment(text: str, zone: str, *, end_of_day: bool = False) -> float:
    """`2026-05-01` or `2026-05-01T08:00`, as the clocks in the zone show it."""
    from ..schedules.times import zone_of

    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ConvectError(
            f"“{text}” is not a date or a time.", hint="Write 2026-05-01 or 2026-05-01T08:00."
        ) from None
    if end_of_day and len(text) <= 10:
        found = found.replace(hour=23, minute=59, second=59)
    if found.tzinfo is None:
        found = found.replace(tzinfo=zone_of(zone))
    return found.timestamp()
