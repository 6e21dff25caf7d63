"""`convect schedule`: run something on a schedule or by what happens."""

from __future__ import annotations

import argparse
import asyncio
import time
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from ..errors import ConvectError, Missing
from . import output
from .arguments import (
    add_json,
    add_parameters,
    add_root,
    known_types,
    locate,
    open_workspace,
    space_of,
    split,
    typed_parameters,
)

if TYPE_CHECKING:
    from ..runs.model import Request
    from ..schedules.times import Clock
    from ..schedules.triggers import Trigger
    from ..scheduling import Scheduling
    from ..workspace import Workspace

SCHEDULE = "a schedule: its id, a beginning or end of it, or its name"
OUTCOMES = {"ran": "green", "refused": "red", "missed": "yellow", "skipped": "yellow"}


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser("schedule", help="run something on a schedule")
    verbs = parser.add_subparsers(dest="schedule_verb", metavar="verb", required=True)

    adding = verbs.add_parser("add", help="make a schedule of a notebook, script or pipeline")
    adding.add_argument("path", type=Path, help="a notebook, script or pipeline")
    _add_clock(adding)
    _add_rules(adding)
    _add_request(adding)
    adding.add_argument("--paused", action="store_true", help="do not start yet")
    add_root(adding)
    add_json(adding)
    adding.set_defaults(handler=_add)

    editing = verbs.add_parser("edit", help="change a schedule")
    editing.add_argument("schedule", help=SCHEDULE)
    _add_clock(editing)
    _add_rules(editing)
    _add_request(editing)
    editing.add_argument(
        "--latest", action="store_true", help="always run the current files, not pinned ones"
    )
    add_json(editing)
    editing.set_defaults(handler=_edit)

    listing = verbs.add_parser("list", help="list the schedules, and who keeps the clock")
    add_json(listing)
    listing.set_defaults(handler=_list)

    show = verbs.add_parser("show", help="show a schedule with its ledger")
    show.add_argument("schedule", help=SCHEDULE)
    show.add_argument("--limit", type=int, default=20, metavar="N", help="lines to show (20)")
    add_json(show)
    show.set_defaults(handler=_show)

    diff = verbs.add_parser("diff", help="show how pinned files differ from those of today")
    diff.add_argument("schedule", help=SCHEDULE)
    add_json(diff)
    diff.set_defaults(handler=_diff)

    for verb, words in (("pause", "let due times pass"), ("resume", "go on after a pause")):
        each = verbs.add_parser(verb, help=words)
        each.add_argument("schedule", help=SCHEDULE)
        add_json(each)
        each.set_defaults(handler=_pause, paused=verb == "pause")

    remove = verbs.add_parser("remove", help="delete a schedule and its ledger; its runs stay")
    remove.add_argument("schedule", help=SCHEDULE)
    remove.set_defaults(handler=_remove)

    run = verbs.add_parser("run", help="run it now, in the background")
    run.add_argument("schedule", help=SCHEDULE)
    run.add_argument(
        "--due", metavar="WHEN", help="as if it were due at this time: 2026-05-01T02:00"
    )
    add_json(run)
    run.set_defaults(handler=_run)

    hook = verbs.add_parser("hook", help="show how to call a schedule made with --on-call")
    hook.add_argument("schedule", help=SCHEDULE)
    hook.add_argument("--new-token", action="store_true", help="replace its token")
    add_json(hook)
    hook.set_defaults(handler=_hook)

    following = verbs.add_parser("next", help="show when a schedule, or a clock, is due next")
    following.add_argument("schedule", nargs="?", help=SCHEDULE)
    _add_clock(following)
    add_json(following)
    following.set_defaults(handler=_next)

    backfill = verbs.add_parser("backfill", help="run it for earlier due times, as a sweep")
    backfill.add_argument("schedule", help=SCHEDULE)
    backfill.add_argument("--from", required=True, metavar="WHEN", dest="begin", help="2026-05-01")
    backfill.add_argument("--to", required=True, metavar="WHEN", dest="end", help="2026-05-31")
    backfill.add_argument(
        "--which",
        choices=("missing", "failed", "all"),
        default="missing",
        help="due times without a run, those and failed ones, or all (missing)",
    )
    backfill.add_argument("--parameter", metavar="NAME", help="the parameter that has the date")
    backfill.add_argument("--backwards", action="store_true", help="the latest first")
    backfill.add_argument("--concurrency", type=int, metavar="N", help="how many at once")
    add_json(backfill)
    backfill.set_defaults(handler=_backfill)

    importing = verbs.add_parser("import", help="import the job definitions of jupyter-scheduler")
    importing.add_argument(
        "database", nargs="?", type=Path, help="its database (scheduler.sqlite in Jupyter's data)"
    )
    importing.add_argument("--runtime", help="where to run (local)")
    add_root(importing)
    add_json(importing)
    importing.set_defaults(handler=_import)

    keep = verbs.add_parser("keep", help="keep the clocks, also when JupyterLab is not running")
    how = keep.add_mutually_exclusive_group()
    how.add_argument("--detach", action="store_true", help="in the background")
    how.add_argument("--stop", action="store_true", help="end the process in the background")
    how.add_argument("--install", action="store_true", help="have systemd start it and keep it up")
    how.add_argument("--uninstall", action="store_true", help="remove it from systemd")
    keep.set_defaults(handler=_keep)


def _add_clock(parser: argparse.ArgumentParser) -> None:
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


def _add_rules(parser: argparse.ArgumentParser) -> None:
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


def _add_request(parser: argparse.ArgumentParser) -> None:
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


def _add(options: argparse.Namespace) -> int:
    from ..runs.model import Request
    from ..schedules.times import Clock

    workspace = open_workspace()
    root, path = locate(options.path, options.root)
    request = Request(
        path=path,
        root=str(root),
        runtime=options.runtime or workspace.settings.default_runtime,
        parameters=_parameters(options.parameter, root, path),
        labels=dict(map(split, options.label)),
    )
    trigger = _trigger(options)
    clock = _clock(options, Clock(zone=_zone(options)), has_trigger=trigger is not None)
    fields = _rules(options)
    if trigger is not None:
        fields["trigger"] = trigger
    if (sweep := _sweep(options, root, path)) is not None:
        fields["sweep"] = sweep

    async def act() -> str:
        try:
            return await workspace.scheduling.add(
                request,
                clock,
                name=options.name,
                pinned=options.pinned,
                paused=options.paused,
                **fields,
            )
        finally:
            await workspace.close()

    schedule_id = asyncio.run(act())
    scheduling = open_workspace().scheduling
    if options.json:
        output.say_json(scheduling.view(schedule_id))
        return 0
    output.say(schedule_id)
    _say_next(scheduling.view(schedule_id))
    if trigger is not None and trigger.call is not None:
        _say_hook(scheduling.hook(schedule_id))
    _say_keeper(scheduling, scheduling.view(schedule_id))
    return 0


def _edit(options: argparse.Namespace) -> int:
    workspace = open_workspace()
    schedule_id = find_schedule(workspace.scheduling, options.schedule)
    known = workspace.scheduling.schedules.read(schedule_id).schedule
    changes: dict[str, Any] = _rules(options)
    trigger = _trigger(options)
    has_trigger = (trigger or known.trigger) is not None
    if (clock := _clock(options, known.clock, has_trigger=has_trigger)) != known.clock:
        changes["clock"] = clock
    if trigger is not None:
        changes["trigger"] = trigger
    if options.name:
        changes["name"] = options.name
    if (request := _edited(options, known.request)) != known.request:
        changes["request"] = request
    sweep = _sweep(options, Path(known.request.root), known.request.path or "")
    if sweep is not None:
        changes["sweep"] = sweep
    if options.pinned and options.latest:
        raise ConvectError("--pinned and --latest exclude each other.")
    if options.pinned or options.latest:
        changes["pinned"] = options.pinned
    if not changes:
        raise ConvectError("Say what to change.", hint="For example --cron, --missed or -p.")
    asyncio.run(_closing(workspace, workspace.scheduling.edit(schedule_id, changes)))
    view = open_workspace().scheduling.view(schedule_id)
    if options.json:
        output.say_json(view)
    else:
        _say_next(view)
    return 0


def _list(options: argparse.Namespace) -> int:
    scheduling = open_workspace().scheduling
    found = scheduling.all()
    if options.json:
        output.say_json({"schedules": found, "keeper": scheduling.who_keeps()})
        return 0
    if not found:
        output.note("There are no schedules yet; “convect schedule add” makes one.")
        return 0
    rows = [
        [
            view["id"],
            view["name"],
            view["path"] or "",
            due_text(view),
            "paused" if view["paused"] is not None else _when(view["due"], view["clock"]),
            "" if view["last"] is None else _outcome(view["last"]),
        ]
        for view in found
    ]
    output.say(output.table(rows, ("id", "name", "file", "when", "next", "last")))
    _say_keeper(scheduling)
    return 0


def _show(options: argparse.Namespace) -> int:
    scheduling = open_workspace().scheduling
    schedule_id = find_schedule(scheduling, options.schedule)
    view = scheduling.view(schedule_id)
    if options.limit < 0:
        raise ConvectError("--limit cannot be negative.")
    lines = scheduling.lines(schedule_id, options.limit)
    if options.json:
        output.say_json({**view, "lines": lines})
        return 0
    output.say(f"{view['name']}  {view['path'] or ''}  {due_text(view)}")
    if view["paused"] is not None:
        output.say(f"paused since {_when(view['paused'], view['clock'])}")
    if view["changed"]:
        output.say(f"changed since it was pinned: {', '.join(view['changed'])}")
    _say_next(view)
    rows = [
        [
            _when(line["due"], view["clock"]),
            _outcome(line),
            ", ".join(filter(None, [line["run"], *(each["run"] for each in line["asked"])])),
            _reason(line, view["clock"]),
        ]
        for line in lines
    ]
    if rows:
        output.say(output.table(rows, ("due", "outcome", "run", "")))
    _say_keeper(scheduling, view)
    return 0


def _diff(options: argparse.Namespace) -> int:
    from difflib import unified_diff

    scheduling = open_workspace().scheduling
    found = scheduling.changes(find_schedule(scheduling, options.schedule))
    if options.json:
        output.say_json({"changes": [change._asdict() for change in found]})
        return 0
    for path, before, after in found:
        old, new = ((text or "").splitlines() for text in (before, after))
        name = f"today/{path}" if after is not None else "/dev/null"
        output.say("\n".join(unified_diff(old, new, f"pinned/{path}", name, lineterm="")))
    if not found:
        output.note("No pinned file differs from the file of today.")
    return 0


def _pause(options: argparse.Namespace) -> int:
    workspace = open_workspace()
    schedule_id = find_schedule(workspace.scheduling, options.schedule)
    change = {"paused": options.paused}
    asyncio.run(_closing(workspace, workspace.scheduling.edit(schedule_id, change)))
    if options.json:
        output.say_json(open_workspace().scheduling.view(schedule_id))
    return 0


def _remove(options: argparse.Namespace) -> int:
    workspace = open_workspace()
    schedule_id = find_schedule(workspace.scheduling, options.schedule)
    asyncio.run(_closing(workspace, workspace.scheduling.remove(schedule_id)))
    return 0


def _run(options: argparse.Namespace) -> int:
    scheduling = open_workspace().scheduling
    schedule_id = find_schedule(scheduling, options.schedule)
    zone = scheduling.view(schedule_id)["clock"].get("zone", "UTC")
    due = None if options.due is None else moment(options.due, zone)
    return _leave(options, "run_now", {"schedule_id": schedule_id, "due": due})


def _backfill(options: argparse.Namespace) -> int:
    scheduling = open_workspace().scheduling
    schedule_id = find_schedule(scheduling, options.schedule)
    zone = scheduling.view(schedule_id)["clock"].get("zone", "UTC")
    arguments = {
        "schedule_id": schedule_id,
        "begin": moment(options.begin, zone) - 0.001,
        "end": moment(options.end, zone, end_of_day=True),
        "which": options.which,
        "parameter": options.parameter,
        "backwards": options.backwards,
        "concurrency": options.concurrency,
    }
    return _leave(options, "backfill", arguments)


def _hook(options: argparse.Namespace) -> int:
    scheduling = open_workspace().scheduling
    schedule_id = find_schedule(scheduling, options.schedule)
    if options.new_token:
        scheduling.renew_token(schedule_id)
    hook = scheduling.hook(schedule_id)
    if options.json:
        output.say_json(hook)
    else:
        _say_hook(hook)
    return 0


def _say_hook(hook: dict[str, str]) -> None:
    output.say(f"token: {hook['token']}")
    output.say(f"address: <Jupyter server>/jupyterlab-convect/api/v1/{hook['address']}")
    output.note('Call it with: curl -X POST -H "Authorization: Bearer <token>" <address>')


def _leave(options: argparse.Namespace, verb: str, arguments: dict[str, Any]) -> int:
    from ..detached import detach_schedule
    from ..settings import load_settings

    answer = detach_schedule(load_settings(), verb, arguments)
    answer.pop("warnings")
    kind, found = next(iter(answer.items()))
    if options.json:
        output.say_json(answer)
        return 0
    output.say(found)
    verb = "follow it with: convect runs logs -f"
    if kind == "sweep":
        verb = "list its runs with: convect runs list --sweep"
    output.note(f"The {kind} continues in the background; {verb} {found}")
    return 0


def _next(options: argparse.Namespace) -> int:
    from ..pipeline.plan import to_json
    from ..schedule_views import upcoming
    from ..schedules.times import Clock

    if options.schedule is not None:
        scheduling = open_workspace().scheduling
        known = scheduling.schedules.read(
            find_schedule(scheduling, options.schedule)
        ).schedule.clock
    else:
        known = Clock(zone=_zone(options), anchor=time.time())
    clock = _clock(options, known)
    found = {**upcoming(clock, time.time()), "clock": to_json(clock)}
    if options.json:
        output.say_json(found)
    else:
        _say_next(found)
    return 0


def _import(options: argparse.Namespace) -> int:
    """0 when all were taken over, 1 when some were not."""
    from jupyter_core.paths import jupyter_data_dir

    workspace = open_workspace()
    database = options.database or Path(jupyter_data_dir(), "scheduler.sqlite")
    work = workspace.scheduling.import_definitions(
        database.absolute(),
        (options.root or Path()).absolute(),
        options.runtime or workspace.settings.default_runtime,
    )
    found = asyncio.run(_closing(workspace, work))
    if options.json:
        output.say_json({"definitions": found})
    elif found:
        rows = [[each["name"], each["schedule"] or "", each["reason"] or ""] for each in found]
        output.say(output.table(rows, ("definition", "schedule", "")))
    else:
        output.note("There are no job definitions with a schedule.")
    return 0 if all(each["schedule"] for each in found) else 1


def _keep(options: argparse.Namespace) -> int:
    from .. import keep_process
    from ..settings import load_settings
    from ..workspace import Workspace

    settings = load_settings()
    if options.install:
        output.say(str(keep_process.install()))
    elif options.uninstall:
        if not keep_process.uninstall():
            output.note("It is not installed.")
    elif options.stop:
        if not keep_process.stop(settings):
            output.note("No process keeps the schedules.")
    elif options.detach:
        owner = keep_process.start(settings)
        output.note(keep_process.already(owner))
    else:
        keep_process.run_until_told(Workspace(settings))
    return 0


def find_schedule(scheduling: Scheduling, word: str) -> str:
    """The id that `word` means: an id, its beginning or end, or a name."""
    known = {ledger.schedule.id: ledger.schedule.name for ledger in scheduling.schedules.all()}
    if word in known:
        return word
    found = [each for each, name in known.items() if name == word] or [
        each for each in known if each.startswith(word) or each.endswith(word)
    ]
    if not found:
        hint = "“convect schedule list” shows the schedules."
        raise Missing(f"There is no schedule “{word}”.", hint=hint)
    if len(found) > 1:
        raise ConvectError(
            f"“{word}” can mean {len(found)} schedules.",
            code="ambiguous",
            hint=f"{', '.join(found[:3])}{'…' if len(found) > 3 else ''}",
        )
    return found[0]


def _trigger(options: argparse.Namespace) -> Trigger | None:
    """What is to make it due; None when nobody says."""
    from dataclasses import replace

    from ..pipeline.quantities import duration
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


def _clock(options: argparse.Namespace, known: Clock, *, has_trigger: bool = False) -> Clock:
    from dataclasses import replace

    from ..pipeline.quantities import duration

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


def _rules(options: argparse.Namespace) -> dict[str, Any]:
    from ..pipeline.quantities import duration

    fields: dict[str, Any] = {
        "overlap": options.overlap,
        "concurrency": options.limit,
        "missed": options.missed,
        "kept_by": options.kept_by,
        "deadline": None if options.deadline is None else duration(options.deadline),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _edited(options: argparse.Namespace, known: Request) -> Request:
    from dataclasses import replace

    if options.parameter:
        given = _parameters(options.parameter, Path(known.root), known.path or "")
        known = replace(known, parameters={**known.parameters, **given})
    if options.runtime:
        known = replace(known, runtime=options.runtime)
    if options.label:
        known = replace(known, labels={**known.labels, **dict(map(split, options.label))})
    return known


def _parameters(pairs: list[str], root: Path, path: str) -> dict[str, Any]:
    """Of the declared type; what refers to the due time is a text until then."""
    types = known_types(root, path) if pairs else {}
    texts = {name: text for name, text in map(split, pairs) if "${{" in text}
    others = [pair for pair in pairs if split(pair)[0] not in texts]
    return {**typed_parameters(others, types), **texts}


def _sweep(options: argparse.Namespace, root: Path, path: str) -> dict[str, Any] | None:
    names = ("mode", "samples", "concurrency")
    how = {key: getattr(options, key) for key in names if getattr(options, key) is not None}
    if not options.sweep:
        if how:
            raise ConvectError(f"--{next(iter(how))} needs --sweep.")
        return None
    return {"space": space_of(options.sweep, known_types(root, path)), **how}


def _zone(options: argparse.Namespace) -> str:
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


def clock_text(clock: dict[str, Any]) -> str:
    from ..text import duration_text

    if clock.get("cron"):
        return f"{clock['cron']} {clock.get('zone', 'UTC')}"
    return f"every {duration_text(clock['every'])}"


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


def _when(seconds: float | None, clock: dict[str, Any]) -> str:
    if seconds is None:
        return ""
    zone = ZoneInfo(clock.get("zone", "UTC"))
    return datetime.fromtimestamp(seconds, zone).strftime("%Y-%m-%d %H:%M:%S")


def _outcome(line: dict[str, Any]) -> str:
    words = line["outcome"]
    if words == "ran" and line["state"]:
        words = f"ran: {line['state']}"
    return output.paint(words, OUTCOMES.get(line["outcome"], "dim"))


def _reason(line: dict[str, Any], clock: dict[str, Any]) -> str:
    if line["gone"]:
        begin, end = (_when(each, clock) for each in line["gone"])
        return f"Nobody kept the clock from {begin} to {end}."
    happening = line["happening"]
    if happening is None:
        return line["reason"] or ""
    values = happening.get("values", {})
    cause = values.get("file") or f"{happening['cause']} {values.get('run', '')}".strip()
    return f"{cause}: {line['reason']}" if line["reason"] else cause


def _say_next(view: dict[str, Any]) -> None:
    if view["next"]:
        times = ", ".join(_when(due, view["clock"]) for due in view["next"])
        output.say(f"next: {times}")
    elif not view.get("trigger"):
        output.say("It is not due any more.")
    for each in view["shifts"]:
        wall = each["wall"].replace("T", " ")
        if each["kind"] == "twice":
            output.say(f"{wall} comes twice that night; it runs once, the first time.")
        else:
            due = _when(each["due"], view["clock"])
            output.say(f"{wall} is left out that night; it runs at {due}.")


def _say_keeper(scheduling: Scheduling, view: dict[str, Any] | None = None) -> None:
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


async def _closing(workspace: Workspace, work: Any) -> Any:
    try:
        return await work
    finally:
        await workspace.close()
