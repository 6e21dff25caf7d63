"""`convect runs`: list, show, follow, stop, run again, download and clean up runs."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import math
import re
import time
from dataclasses import asdict, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, get_args

from ..errors import ConvectError, Missing
from ..text import elapsed_text, size_text, some_of
from . import output
from .arguments import RUN, add_json, find_run, find_sweep, open_workspace, split
from .artifacts import add_artifacts
from .run import add_following, leave_to_host

if TYPE_CHECKING:
    from ..runs.index import Page, Query
    from ..runs.model import RunState, StepState
    from ..runs.store import Record, Store
    from ..runs.sweeps import Sweeps
    from ..runs.versions import Version
    from ..runtimes.base import Attempt
    from ..workspace import Workspace

UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86400, "w": 604800}
SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
MOST_GROUPS = 50
"""Rows of a table that are shown."""
POLL = 0.2


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser("runs", help="list, show, follow, stop and clean up runs")
    verbs = parser.add_subparsers(dest="runs_verb", metavar="verb", required=True)
    _add_list(verbs)

    show = verbs.add_parser("show", help="show a run with its steps")
    show.add_argument("run", help=RUN)
    add_json(show)
    show.set_defaults(handler=_show)

    logs = verbs.add_parser("logs", help="print what the steps printed")
    logs.add_argument("run", help=RUN)
    logs.add_argument("step", nargs="?", help="only this step")
    logs.add_argument(
        "-f", "--follow", action="store_true", help="keep printing until the run ends"
    )
    logs.add_argument("--attempt", type=int, metavar="N", help="only this attempt")
    logs.add_argument(
        "--replica", type=int, metavar="RANK", help="only this replica of a distributed step"
    )
    logs.set_defaults(handler=_logs)

    replicas = verbs.add_parser("replicas", help="list the processes of a distributed step")
    replicas.add_argument("run", help=RUN)
    replicas.add_argument("step", nargs="?", help="only this step")
    replicas.add_argument(
        "--replica", type=int, metavar="RANK", help="how the state of this one changed"
    )
    add_json(replicas)
    replicas.set_defaults(handler=_replicas)

    _add_shell(verbs)

    stop = verbs.add_parser("stop", help="stop a run or one step of it")
    stop.add_argument("run", help=RUN)
    stop.add_argument("step", nargs="?", help="only this step")
    add_json(stop)
    stop.set_defaults(handler=_stop)

    rerun = verbs.add_parser("rerun", help="run it again, whole or in part, as a new run")
    rerun.add_argument("run", help=RUN)
    part = rerun.add_mutually_exclusive_group()
    part.add_argument("--failed", action="store_true", help="only what did not succeed")
    part.add_argument("--only", metavar="NODE", help="only this node")
    part.add_argument("--from", metavar="NODE", dest="from_node", help="this node and all after it")
    part.add_argument("--upto", metavar="NODE", help="this node and all before it")
    rerun.add_argument("--no-cache", action="store_true", help="also run what has not changed")
    rerun.add_argument(
        "--version",
        choices=["today", "run"],
        help="with the files as they are now (today), or as that run executed them (run)",
    )
    add_following(rerun)
    add_json(rerun)
    rerun.set_defaults(handler=_rerun)

    best = verbs.add_parser("best", help="show a sweep, and choose which of its runs is best")
    best.add_argument("sweep", help="the id of a sweep, a beginning or end of it, or `latest`")
    best.add_argument("select", nargs="?", metavar="max:METRIC", help="or min:METRIC, or none")
    add_json(best)
    best.set_defaults(handler=_best)

    add_artifacts(verbs)

    edit = verbs.add_parser(
        "edit", help="give a run another name, labels or a note, or a sweep another name"
    )
    edit.add_argument("run", help=f"{RUN}; or the same of a sweep")
    edit.add_argument("--name", help="what it is called")
    edit.add_argument("--note", help="what there is to say about it; '' for nothing")
    edit.add_argument(
        "--label",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="add or replace a label; NAME= alone removes it (repeatable)",
    )
    add_json(edit)
    edit.set_defaults(handler=_edit)

    delete = verbs.add_parser("delete", help="delete runs that have ended, with what they left")
    delete.add_argument("run", nargs="+", help=RUN)
    add_json(delete)
    delete.set_defaults(handler=_delete)

    prune = verbs.add_parser("prune", help="delete runs that have ended, the oldest first")
    prune.add_argument(
        "--keep-days", type=float, default=None, metavar="N", help="keep those that are younger"
    )
    prune.add_argument("--keep-runs", type=int, default=None, metavar="N", help="the newest ones")
    prune.add_argument(
        "--keep-size", default=None, metavar="SIZE", help="keep as many as fit: 10G, 500M"
    )
    prune.add_argument("--dry-run", action="store_true", help="only list what would be deleted")
    add_json(prune)
    prune.set_defaults(handler=_prune)


def _add_list(verbs: Any) -> None:
    parser = verbs.add_parser(
        "list", help="list runs, the newest first, and all runs of a sweep in one row"
    )
    parser.add_argument(
        "--each", action="store_true", help="list each run of a sweep, as with a filter or --json"
    )
    parser.add_argument("--state", action="append", default=[], help="in this state (repeatable)")
    parser.add_argument("--name", help="of this name, or a pattern with *")
    parser.add_argument("--runtime", help="on this runtime")
    parser.add_argument("--label", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--text", help="with these words in name, path, parameters or note")
    parser.add_argument("--path", help="of this file")
    parser.add_argument("--sweep", help="of this sweep; none for those outside of sweeps")
    parser.add_argument("--since", metavar="WHEN", help="made after: 2h, 3d, or 2026-11-16")
    parser.add_argument("--until", metavar="WHEN", help="made before")
    parser.add_argument(
        "--sort", default="-created", help="sort by this; a leading - reverses the order"
    )
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="how many (20)")
    parser.add_argument(
        "--offset", type=int, default=0, metavar="N", help="how many to skip first (0)"
    )
    add_json(parser)
    parser.set_defaults(handler=_list)


def _store() -> Store:
    return _workspace().store


def _workspace() -> Workspace:
    """The runs, with none left without a driver."""
    from ..detached import take_up

    workspace = open_workspace()
    with contextlib.suppress(ConvectError, OSError):
        if count := take_up(workspace):
            whose = "a run" if count == 1 else f"{count} runs"
            output.note(f"The process driving {whose} was killed; another one has taken over.")
    return workspace


def _add_shell(verbs: Any) -> None:
    parser = verbs.add_parser("shell", help="open a shell where a step runs")
    parser.add_argument("run", help=RUN)
    parser.add_argument("step", nargs="?", help="the step, if several run")
    parser.add_argument(
        "--replica", type=int, metavar="RANK", help="this replica of a distributed step"
    )
    parser.add_argument(
        "-c",
        "--command",
        nargs=argparse.REMAINDER,
        default=[],
        metavar="WORD",
        help="run this instead of a shell: all words that follow",
    )
    parser.set_defaults(handler=_shell)


def _list(options: argparse.Namespace) -> int:
    from ..runs.index import Query
    from ..runs.model import State

    states = get_args(State)
    for state in options.state:
        if state not in states:
            raise ConvectError(f"There is no state “{state}”.", hint=", ".join(states))
    if options.limit < 0 or options.offset < 0:
        raise ConvectError("--limit and --offset cannot be negative.")
    query = Query(
        states=tuple(options.state),
        name=options.name,
        runtime=options.runtime,
        labels=dict(map(split, options.label)),
        text=options.text,
        path=options.path,
        sweep=options.sweep,
        since=None if options.since is None else when(options.since),
        until=None if options.until is None else when(options.until),
        sort=options.sort,
        limit=options.limit,
        offset=options.offset,
    )
    workspace = _workspace()
    of_whole = replace(query, since=None, until=None, limit=0, offset=0)
    if not options.each and not options.json and of_whole == Query(limit=0):
        page = _with_sweeps(workspace, query)
    else:
        page = workspace.store.find(query)
    if options.json:
        output.say_json(asdict(page))
        return 0
    rows = [
        [
            run["id"],
            run["name"],
            run["state"],
            run["runtime"],
            _ago(run["created"]),
            _progress(run) if "space" in run else _pairs(run["parameters"]),
            _pairs(run.get("metrics", {})),
        ]
        for run in page.runs
    ]
    if rows:
        header = ("run", "name", "state", "runtime", "made", "parameters", "metrics")
        output.say(output.table(rows, header))
    if page.total > len(rows):
        total = f"{page.total}" if page.exact else f"more than {page.total}"
        output.note(f"{len(rows)} of {total}; see more with --limit and --offset.")
    return 0


def _with_sweeps(workspace: Workspace, query: Query) -> Page:
    """The runs outside of sweeps and, at its place in time, each sweep."""
    end = query.offset + query.limit
    page = workspace.store.find(replace(query, sweep="none", limit=end, offset=0))
    sweeps = [
        sweep
        for sweep in workspace.sweeps.all()
        if (query.since or 0) <= sweep["created"] <= (query.until or math.inf)
    ]
    rows = sorted([*page.runs, *sweeps], key=lambda row: -row["created"])
    return replace(page, runs=rows[query.offset : end], total=page.total + len(sweeps))


def _progress(sweep: dict[str, Any]) -> str:
    """`sweep over lr: 3 of 9 runs, 1 failed`."""
    told = f"sweep over {', '.join(sweep['space'])}: {sweep['done']} of {sweep['total']} runs"
    failed = sum(sweep["counts"].get(state, 0) for state in ("failed", "lost"))
    return f"{told}, {failed} failed" if failed else told


def _show(options: argparse.Namespace) -> int:
    from ..runs import environments
    from ..runs.store import Record
    from ..runs.views import shown_steps

    store = _store()
    run, state = store.read(find_run(store, options.run))
    view = environments.view(store, Record(run, state))
    if options.json:
        output.say_json(view)
        return 0
    output.say(f"{output.paint(view['name'], 'bold')}: {view['state']}  {run.id}")
    facts = [
        ("reason", view["reason"]),
        ("file", view["path"]),
        ("runtime", view["runtime"]),
        ("made", time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(view["created"]))),
        ("took", None if view["ended"] is None else elapsed_text(view["ended"] - view["created"])),
        ("user", view["user"]),
        ("commit", run.git and run.git.commit[:12] + (" (changed)" if run.git.dirty else "")),
        *(("environment", _in_short(each)) for each in view["environments"]),
        ("parameters", _parameters(view)),
        ("metrics", _pairs(view["metrics"])),
        ("labels", _pairs(view["labels"])),
        ("note", view["note"]),
        ("folder", str(store.run_folder(run.id))),
    ]
    output.say(output.table([[f"  {name}", str(fact)] for name, fact in facts if fact]))
    rows = [
        [
            step.id,
            step.state,
            str(len(step.attempts)),
            elapsed_text(step.ended - step.started) if step.ended and step.started else "",
            step.reason or step.cache or "",
        ]
        for step in shown_steps(state)
    ]
    output.say()
    output.say(output.table(rows, ("step", "state", "attempts", "took", "reason")))
    if len(state.steps) > len(rows):
        output.say(f"… and {len(state.steps) - len(rows)} more steps of loops")
    _show_groups(state)
    return 0


def _show_groups(state: RunState) -> None:
    """The branches that were taken or not, and how far the loops are."""
    rows = []
    for group in state.groups.values():
        if state.graph.is_iteration(group.node, group.item):
            continue
        counts = ", ".join(f"{count} {name}" for name, count in group.counts.items())
        if group.values is not None:
            counts = f"{len(group.values)} items: {counts}" if counts else "0 items"
        rows.append([group.id, group.state, counts, group.reason or ""])
    if rows:
        output.say()
        output.say(output.table(rows[:MOST_GROUPS], ("group", "state", "items", "reason")))
    if len(rows) > MOST_GROUPS:
        output.say(f"… and {len(rows) - MOST_GROUPS} more groups")


def _in_short(found: dict[str, Any]) -> str:
    """`Python 3.12.3 with 176 packages on node-7, image …`."""
    python, packages, language = (found[name] for name in ("python", "packages", "language"))
    what = f"Python {python} with {packages} packages" if python else language or "no Python"
    where = f"{what} on {found['host']}"
    return f"{where}, image {found['image']}" if found["image"] else where


def _logs(options: argparse.Namespace) -> int:
    from ..runs.model import ENDED
    from .following import Logs

    store = _store()
    run_id = find_run(store, options.run)
    _steps_of(store.read(run_id), options.step)
    if options.replica is not None and options.step is None:
        raise ConvectError("--replica needs the name of a step.")
    logs = Logs(store, options.step, options.attempt, options.replica)
    while True:
        record = store.read(run_id)
        ended = record.state.state in ENDED
        logs.update(record)
        if ended or not options.follow:
            return 0
        time.sleep(POLL)


def _replicas(options: argparse.Namespace) -> int:
    from ..runs.attempt_files import all_events, files_of
    from ..runs.replicas import is_of, list_replicas, need_replica

    store = _store()
    record = store.read(find_run(store, options.run))
    found = [
        files_of(store, record, step.id, max(1, len(step.attempts)))
        for step in _steps_of(record, options.step)
        if step.attempts or step.source
    ]
    listed = [(files.attempt.step.id, each) for files in found for each in list_replicas(files)]
    if not listed:
        raise Missing("No process of a distributed step has started.")
    if options.replica is None:
        if options.json:
            output.say_json([{"step": step, **each} for step, each in listed])
            return 0
        rows = [[step, *_replica_row(each)] for step, each in listed]
        header = ("step", "rank", "state", "node", "gpu", "cpu", "memory", "exit", "rate", "")
        output.say(output.table(rows, header))
        return 0
    for files in found:
        need_replica(files, options.replica)
    told = [each for files in found for each in all_events(files) if is_of(each, options.replica)]
    if options.json:
        output.say_json(told)
        return 0
    for event in told:
        at = time.strftime("%H:%M:%S", time.localtime(event["time"]))
        output.say(" ".join(filter(None, (at, event.get("state"), event.get("reason")))))
    return 0


def _replica_row(replica: dict[str, Any]) -> list[str]:
    def text(name: str) -> str:
        return "" if replica[name] is None else str(replica[name])

    memory = "" if replica["memory"] is None else size_text(replica["memory"])
    cells = [text(name) for name in ("rank", "state", "node", "gpu", "cpu")]
    return [*cells, memory, text("exit_code"), text("rate"), replica["reason"] or replica["line"]]


def _steps_of(record: Record, name: str | None) -> list[StepState]:
    """The step of that name, or all of them."""
    run, state = record
    if name is not None and name not in state.steps:
        hint = ", ".join(itertools.islice(state.steps, MOST_GROUPS))
        raise Missing(f"Run {run.id} has no step “{name}”.", hint=hint)
    return [step for step in state.steps.values() if name in (None, step.id)]


def _shell(options: argparse.Namespace) -> int:
    from ..runtimes.base import StepRuntime

    workspace = open_workspace()
    record = workspace.store.read(find_run(workspace.store, options.run))
    attempt = running_attempt(workspace.store, record, options.step)
    runtime = workspace.runtimes[record.run.runtime]
    if not isinstance(runtime, StepRuntime):
        raise ConvectError(f"The runtime {record.run.runtime} has no shell.")
    if options.replica is not None and attempt.step.distributed is None:
        raise ConvectError(f"The step “{attempt.step.id}” is not distributed.")
    return runtime.shell(attempt, options.command, options.replica)


def running_attempt(store: Store, record: Record, step: str | None) -> Attempt:
    """The attempt to look at: of the step that is named, or the only one that runs."""
    from ..runs.attempt_files import files_of

    run, state = record
    if step is not None and step not in state.steps:
        raise Missing(f"Run {run.id} has no step “{step}”.", hint=", ".join(state.steps))
    running = [item for item in state.steps.values() if item.state == "running"]
    chosen = [item for item in running if step in (None, item.id)]
    if not chosen:
        sentence = (
            f"The step “{step}” is not running." if step else "No step of the run is running."
        )
        raise ConvectError(sentence, code="not-running")
    if len(chosen) > 1:
        names = ", ".join(item.id for item in chosen)
        raise ConvectError(f"Several steps are running: {names}.", hint="Name the one you mean.")
    return files_of(store, record, chosen[0].id, len(chosen[0].attempts)).attempt


def _stop(options: argparse.Namespace) -> int:
    return asyncio.run(_stop_and_wait(open_workspace(), options))


async def _stop_and_wait(workspace: Workspace, options: argparse.Namespace) -> int:
    from ..runs import environments
    from ..runs.model import ids_of

    try:
        run_id = find_run(workspace.store, options.run)
        await workspace.engine.stop(run_id, options.step)
        if options.step is None:
            await workspace.engine.wait(run_id)
        record = workspace.store.read(run_id)
        if options.json:
            output.say_json(environments.view(workspace.store, record))
        elif options.step is None:
            output.say(f"{record.state.name}: {record.state.state}")
        else:
            for name in ids_of(record.state, options.step)[:MOST_GROUPS]:
                unit = record.state.steps.get(name) or record.state.groups[name]
                output.say(f"{name}: {unit.state}")
        return 0
    finally:
        await workspace.close()


def _rerun(options: argparse.Namespace) -> int:
    from ..runs.model import Selection
    from .following import follow_run

    workspace = open_workspace()
    chosen = (
        Selection("failed" if options.failed else "all"),
        Selection("only", options.only),
        Selection("from", options.from_node),
        Selection("upto", options.upto),
    )
    selection = next((one for one in chosen[1:] if one.node is not None), chosen[0])
    run_id = find_run(workspace.store, options.run)
    version: Version = options.version or "today"
    if options.version is None:
        _say_version(workspace, run_id)
    use_cache = False if options.no_cache else None
    request = workspace.again(run_id, selection, use_cache, version)
    if options.detach:
        return leave_to_host(workspace, request, None, options.json)
    return asyncio.run(follow_run(workspace, request, options.follow, options.json))


def _say_version(workspace: Workspace, run_id: str) -> None:
    """Say which files are executed, when nobody has chosen and they differ."""
    from ..runs.versions import changes

    with contextlib.suppress(ConvectError):
        run, _ = workspace.store.read(run_id)
        if found := changes(workspace.store.snapshots, run):
            names = some_of([change.path for change in found])
            output.note(
                f"Running the current files; changed since that run: {names}. "
                "Add --version run for those of the run."
            )


def _best(options: argparse.Namespace) -> int:
    from ..runs.best import NONE
    from .following import tell_sweep

    sweeps = open_workspace().sweeps
    sweep_id = find_sweep(sweeps, options.sweep)
    if options.select is not None:
        sweeps.mark(sweep_id, None if options.select == NONE else options.select)
    view = sweeps.view(sweep_id)
    if options.json:
        output.say_json(view)
    else:
        tell_sweep(view)
    return 0


def _edit(options: argparse.Namespace) -> int:
    workspace = open_workspace()
    store = workspace.store
    try:
        run_id = find_run(store, options.run)
    except Missing:
        with contextlib.suppress(Missing):
            return _edit_sweep(workspace.sweeps, options)
        raise
    change: dict[str, Any] = {"name": options.name, "note": options.note}
    change = {key: text for key, text in change.items() if text is not None}
    if options.label:
        asked = dict(map(split, options.label))
        labels = {**store.read(run_id).state.labels, **asked}
        gone = {name for name, text in asked.items() if not text}
        change["labels"] = {name: labels[name] for name in labels if name not in gone}
    if not change:
        raise ConvectError("Say what to change: --name, --label or --note.")
    store.change(run_id, **change)
    return _show(options)


def _edit_sweep(sweeps: Sweeps, options: argparse.Namespace) -> int:
    sweep_id = find_sweep(sweeps, options.run)
    if options.name is None or options.label or options.note is not None:
        raise ConvectError("Of a sweep only the name can be changed: --name.")
    sweeps.rename(sweep_id, options.name)
    if options.json:
        output.say_json(sweeps.view(sweep_id))
    else:
        output.note(f"The sweep is now called {options.name}.")
    return 0


def _delete(options: argparse.Namespace) -> int:
    store = open_workspace().store
    ids = list(dict.fromkeys(find_run(store, word) for word in options.run))
    for run_id in ids:
        store.delete(run_id)
    if options.json:
        output.say_json({"runs": ids})
    else:
        output.note("1 run deleted." if len(ids) == 1 else f"{len(ids)} runs deleted.")
    return 0


def _prune(options: argparse.Namespace) -> int:
    workspace = open_workspace()
    limits = (options.keep_days, options.keep_runs, options.keep_size)
    if all(limit is None for limit in limits):
        gone = workspace.prune(dry_run=options.dry_run)
    elif any(isinstance(limit, int | float) and limit < 0 for limit in limits):
        raise ConvectError("What to keep cannot be negative.")
    else:
        gone = workspace.store.prune(
            keep_days=options.keep_days or 0,
            keep_runs=options.keep_runs or 0,
            keep_bytes=0 if options.keep_size is None else size(options.keep_size),
            dry_run=options.dry_run,
            live=workspace.sweeps.live_snapshots(),
        )
    if options.json:
        output.say_json({"runs": gone})
        return 0
    for run_id in gone:
        output.say(run_id)
    counted = "1 run" if len(gone) == 1 else f"{len(gone)} runs"
    output.note(f"{counted} {'would be' if options.dry_run else ''} deleted.".replace("  ", " "))
    return 0


def when(text: str) -> float:
    """A moment: so long ago (`90min`, `2h`, `3d`), or a date, with or without a time."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|min|h|d|w)", text)
    if match:
        return time.time() - float(match[1]) * UNITS[match[2]]
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        raise ConvectError(
            f"“{text}” is not a time.", hint="Write 90min, 2h, 3d, or 2026-11-16T08:00."
        ) from None


def size(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text, re.IGNORECASE)
    if match is None:
        raise ConvectError(f"“{text}” is not a size.", hint="Write 500M or 10G.")
    return int(float(match[1]) * SIZES[match[2].upper()])


def _ago(moment: float) -> str:
    return f"{elapsed_text(max(0.0, time.time() - moment))} ago"


def _parameters(view: dict[str, Any]) -> str:
    """Those that were given, then the defaults."""
    from .following import number

    unset = {*view["defaults"]}
    given = {name: value for name, value in view["parameters"].items() if name not in unset}
    rest = [
        f"{name}={number(value)} (default)"
        for name, value in view["parameters"].items()
        if name in unset
    ]
    rest += [f"{name} computed by {code}" for name, code in view["computed"].items()]
    return ", ".join(filter(None, (_pairs(given), *rest)))


def _pairs(values: dict[str, Any]) -> str:
    from .following import number

    return ", ".join(f"{name}={number(value)}" for name, value in values.items())
