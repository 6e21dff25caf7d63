"""`convect schedule`: run something on a schedule or by what happens."""

from __future__ import annotations

import argparse
import asyncio
import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConvectError, Missing
from . import output
from .arguments import add_json, add_root, locate, open_workspace, split
from .schedule_options import (
    add_clock,
    add_request,
    add_rules,
    clock_of,
    edited,
    moment,
    parameters_of,
    rules_of,
    sweep_of,
    trigger_of,
    zone_for,
)
from .schedule_words import (
    due_text,
    outcome_of,
    reason_of,
    say_hook,
    say_keeper,
    say_next,
    say_values,
    when,
)

if TYPE_CHECKING:
    from ..runs.model import Request, Run
    from ..schedules.scheduling import Scheduling
    from ..workspace import Workspace

SCHEDULE = "a schedule: its id, a beginning or end of it, or its name"


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser("schedule", help="run something on a schedule")
    verbs = parser.add_subparsers(dest="schedule_verb", metavar="verb", required=True)

    adding = verbs.add_parser("add", help="make a schedule of a notebook, script or pipeline")
    adding.add_argument("path", type=Path, help="a notebook, script or pipeline")
    add_clock(adding)
    add_rules(adding)
    add_request(adding)
    adding.add_argument("--paused", action="store_true", help="do not start yet")
    add_root(adding)
    add_json(adding)
    adding.set_defaults(handler=_add)

    editing = verbs.add_parser("edit", help="change a schedule")
    editing.add_argument("schedule", help=SCHEDULE)
    add_clock(editing)
    add_rules(editing)
    add_request(editing)
    editing.add_argument(
        "--latest", action="store_true", help="always run the current files, not pinned ones"
    )
    editing.add_argument(
        "--no-sweep", action="store_true", help="make a single run each time, not a sweep"
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
    add_clock(following)
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


def _add(options: argparse.Namespace) -> int:
    from ..runs.model import Request
    from ..schedules.times import Clock

    workspace = open_workspace()
    root, path = locate(options.path, options.root)
    request = Request(
        path=path,
        root=str(root),
        runtime=options.runtime or workspace.settings.default_runtime,
        parameters=parameters_of(options.parameter, root, path),
        labels=dict(map(split, options.label)),
    )
    trigger = trigger_of(options)
    clock = clock_of(options, Clock(zone=zone_for(options)), has_trigger=trigger is not None)
    fields = rules_of(options)
    if trigger is not None:
        fields["trigger"] = trigger
    if (sweep := sweep_of(options, root, path)) is not None:
        fields["sweep"] = sweep

    async def act() -> str:
        try:
            return await workspace.scheduling.add(
                request,
                clock,
                name=options.name,
                pinned=options.pinned,
                paused=options.paused,
                make=_making(workspace),
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
    say_next(scheduling.view(schedule_id))
    if trigger is not None and trigger.call is not None:
        say_hook(scheduling.hook(schedule_id))
    say_keeper(scheduling, scheduling.view(schedule_id))
    return 0


def _edit(options: argparse.Namespace) -> int:
    workspace = open_workspace()
    schedule_id = find_schedule(workspace.scheduling, options.schedule)
    known = workspace.scheduling.schedules.read(schedule_id).schedule
    changes: dict[str, Any] = rules_of(options)
    trigger = trigger_of(options)
    has_trigger = (trigger or known.trigger) is not None
    if (clock := clock_of(options, known.clock, has_trigger=has_trigger)) != known.clock:
        changes["clock"] = clock
    if trigger is not None:
        changes["trigger"] = trigger
    if options.name:
        changes["name"] = options.name
    if (request := edited(options, known.request)) != known.request:
        changes["request"] = request
    sweep = sweep_of(options, Path(known.request.root), known.request.path or "")
    if sweep is not None and options.no_sweep:
        raise ConvectError("--sweep and --no-sweep exclude each other.")
    if sweep is not None or options.no_sweep:
        changes["sweep"] = sweep
    if options.pinned and options.latest:
        raise ConvectError("--pinned and --latest exclude each other.")
    if options.pinned or options.latest:
        changes["pinned"] = options.pinned
    if not changes:
        raise ConvectError("Say what to change.", hint="For example --cron, --missed or -p.")
    work = workspace.scheduling.edit(schedule_id, changes, make=_making(workspace))
    asyncio.run(_closing(workspace, work))
    view = open_workspace().scheduling.view(schedule_id)
    if options.json:
        output.say_json(view)
    else:
        say_next(view)
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
            "paused" if view["paused"] is not None else when(view["due"], view["clock"]),
            "" if view["last"] is None else outcome_of(view["last"]),
        ]
        for view in found
    ]
    output.say(output.table(rows, ("id", "name", "file", "when", "next", "last")))
    say_keeper(scheduling)
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
    say_values(view)
    if view["paused"] is not None:
        output.say(f"paused since {when(view['paused'], view['clock'])}")
    if view["changed"]:
        output.say(f"changed since it was pinned: {', '.join(view['changed'])}")
    say_next(view)
    rows = [
        [
            when(line["due"], view["clock"]),
            outcome_of(line),
            ", ".join(filter(None, [line["run"], *(each["run"] for each in line["asked"])])),
            reason_of(line, view["clock"]),
        ]
        for line in lines
    ]
    if rows:
        output.say(output.table(rows, ("due", "outcome", "run", "")))
    say_keeper(scheduling, view)
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
        say_hook(hook)
    return 0


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
    from ..schedules.schedule_views import upcoming
    from ..schedules.times import Clock

    if options.schedule is not None:
        scheduling = open_workspace().scheduling
        known = scheduling.schedules.read(
            find_schedule(scheduling, options.schedule)
        ).schedule.clock
    else:
        known = Clock(zone=zone_for(options), anchor=time.time())
    clock = clock_of(options, known)
    found = {**upcoming(clock, time.time()), "clock": to_json(clock)}
    if options.json:
        output.say_json(found)
    else:
        say_next(found)
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


def _making(workspace: Workspace) -> Callable[[Request], Run]:
    """Makes the run that a schedule is tried with, and warns of what is odd about it."""
    from .following import warn_of

    return functools.partial(workspace.make, tell=warn_of)


async def _closing(workspace: Workspace, work: Any) -> Any:
    try:
        return await work
    finally:
        await workspace.close()
