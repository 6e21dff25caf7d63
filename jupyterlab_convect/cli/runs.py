"""`convect runs`: list, show, follow, stop, run again, download and clean up runs."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import re
import sys
import time
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from ..errors import ConvectError, Missing
from . import output
from .arguments import add_json
from .run import add_following, leave_to_host
from .shell import add_shell

if TYPE_CHECKING:
    from ..runs.environments import Change
    from ..runs.store import Store
    from ..runs.versions import Version
    from ..workspace import Workspace

UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86400, "w": 604800}
SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
RUN = "a run: its id, a beginning or end of it, or `latest`"
POLL = 0.2


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser("runs", help="list, show, follow, stop and clean up runs")
    verbs = parser.add_subparsers(dest="runs_verb", metavar="verb", required=True)
    _add_list(verbs)

    show = verbs.add_parser("show", help="show a run with its steps")
    show.add_argument("run", help=RUN)
    add_json(show)
    show.set_defaults(handler=_show)

    environment = verbs.add_parser(
        "environment", help="list what a run was executed with, or how two runs differ in it"
    )
    environment.add_argument("run", help=RUN)
    environment.add_argument("other", nargs="?", help="another run, to compare with the first")
    environment.add_argument(
        "--difference", action="store_true", help="print how the files differed from the commit"
    )
    add_json(environment)
    environment.set_defaults(handler=_environment)

    logs = verbs.add_parser("logs", help="print what the steps printed")
    logs.add_argument("run", help=RUN)
    logs.add_argument("step", nargs="?", help="one step alone")
    logs.add_argument("-f", "--follow", action="store_true", help="go on until the run ends")
    logs.add_argument("--attempt", type=int, metavar="N", help="one attempt alone")
    logs.set_defaults(handler=_logs)

    add_shell(verbs)

    stop = verbs.add_parser("stop", help="stop a run or one step of it")
    stop.add_argument("run", help=RUN)
    stop.add_argument("step", nargs="?", help="one step alone")
    add_json(stop)
    stop.set_defaults(handler=_stop)

    rerun = verbs.add_parser("rerun", help="run it again, whole or in part, as a new run")
    rerun.add_argument("run", help=RUN)
    part = rerun.add_mutually_exclusive_group()
    part.add_argument("--failed", action="store_true", help="only what did not succeed")
    part.add_argument("--only", metavar="NODE", help="this node alone")
    part.add_argument("--from", metavar="NODE", dest="from_node", help="this node and all after it")
    part.add_argument("--upto", metavar="NODE", help="this node and all before it")
    rerun.add_argument("--no-cache", action="store_true", help="run also what is unchanged")
    rerun.add_argument(
        "--version",
        choices=["today", "run"],
        help="with the files as they are now (today), or as that run executed them (run)",
    )
    add_following(rerun)
    add_json(rerun)
    rerun.set_defaults(handler=_rerun)

    files = verbs.add_parser("files", help="list the files that a run made, or put them in place")
    files.add_argument("run", help=RUN)
    files.add_argument(
        "--put", action="store_true", help="put them into the project, where it did not change"
    )
    files.add_argument(
        "--replace", action="store_true", help="put them also over files that changed since"
    )
    add_json(files)
    files.set_defaults(handler=_files)

    best = verbs.add_parser("best", help="show a sweep, and choose which of its runs is the best")
    best.add_argument("sweep", help="the id of a sweep, a beginning or end of it, or `latest`")
    best.add_argument("select", nargs="?", metavar="max:METRIC", help="or min:METRIC, or none")
    add_json(best)
    best.set_defaults(handler=_best)

    download = verbs.add_parser("download", help="save all that a run left as a zip")
    download.add_argument("run", help=RUN)
    download.add_argument("-o", "--output", type=Path, help="the file to write (<run id>.zip)")
    download.add_argument("--force", action="store_true", help="overwrite an existing file")
    download.set_defaults(handler=_download)

    prune = verbs.add_parser("prune", help="delete runs that have ended, the oldest first")
    prune.add_argument("--keep-days", type=float, default=None, metavar="N", help="younger ones")
    prune.add_argument("--keep-runs", type=int, default=None, metavar="N", help="the newest ones")
    prune.add_argument(
        "--keep-size", default=None, metavar="SIZE", help="as many as fit: 10G, 500M"
    )
    prune.add_argument("--dry-run", action="store_true", help="say what would go")
    add_json(prune)
    prune.set_defaults(handler=_prune)


def _add_list(verbs: Any) -> None:
    parser = verbs.add_parser("list", help="list runs, the newest first")
    parser.add_argument("--state", action="append", default=[], help="in this state (repeatable)")
    parser.add_argument("--name", help="of this name, or a pattern with *")
    parser.add_argument("--runtime", help="on this runtime")
    parser.add_argument("--label", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--text", help="with these words in name, path, parameters or note")
    parser.add_argument("--path", help="of this file")
    parser.add_argument("--sweep", help="of this sweep")
    parser.add_argument("--since", metavar="WHEN", help="made after: 2h, 3d, or 2026-11-16")
    parser.add_argument("--until", metavar="WHEN", help="made before")
    parser.add_argument("--sort", default="-created", help="by this; with - in front, backwards")
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="how many (20)")
    parser.add_argument("--offset", type=int, default=0, metavar="N", help="from which on (0)")
    add_json(parser)
    parser.set_defaults(handler=_list)


def _workspace() -> Workspace:
    from ..settings import load_settings
    from ..workspace import Workspace

    return Workspace(load_settings())


def _store() -> Store:
    """The runs, with none left without a driver."""
    from ..host import take_up

    workspace = _workspace()
    with contextlib.suppress(ConvectError, OSError):
        if count := take_up(workspace):
            whose = "a run" if count == 1 else f"{count} runs"
            output.note(f"What drove {whose} was killed; another process goes on with it.")
    return workspace.store


def _list(options: argparse.Namespace) -> int:
    from ..runs.index import Query
    from ..runs.model import State
    from .values import split

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
    page = _store().find(query)
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
            _pairs(run["parameters"]),
            _pairs(run["metrics"]),
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


def _show(options: argparse.Namespace) -> int:
    from ..runs import environments
    from ..runs.store import Record
    from .finding import find_run
    from .progress import seconds

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
        ("took", None if view["ended"] is None else seconds(view["ended"] - view["created"])),
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
            seconds(step.ended - step.started) if step.ended and step.started else "",
            step.reason or step.cache or "",
        ]
        for step in state.steps.values()
    ]
    output.say()
    output.say(output.table(rows, ("step", "state", "attempts", "took", "reason")))
    return 0


def _in_short(found: dict[str, Any]) -> str:
    """`Python 3.12.3 with 176 packages on node-7, image …`."""
    python, packages, language = (found[name] for name in ("python", "packages", "language"))
    what = f"Python {python} with {packages} packages" if python else language or "no Python"
    where = f"{what} on {found['host']}"
    return f"{where}, image {found['image']}" if found["image"] else where


def _environment(options: argparse.Namespace) -> int:
    from ..runs import environments
    from .finding import find_run

    store = _workspace().store

    def described(word: str) -> dict[str, Any]:
        return environments.describe(store, store.read(find_run(store, word)))

    found = described(options.run)
    if options.other is not None:
        changes = environments.compare(found, described(options.other))
        return _say_changes(changes, options.json)
    if options.json:
        output.say_json(found)
    elif options.difference:
        difference = (found["git"] or {}).get("difference") or {}
        output.say(difference.get("text") or "")
        if difference.get("cut"):
            output.note("The rest was too long to be kept.")
    elif not found["steps"]:
        raise Missing(f"The environment of run “{options.run}” was not recorded.")
    else:
        _say_environments(found)
    return 0


def _say_environments(found: dict[str, Any]) -> None:
    for step_id, step in found["steps"].items():
        environment = found["environments"].get(step["digest"], {})
        python = environment and f"{environment['implementation']} {environment['python']}"
        host = step["host"]
        facts = [
            ("python", python),
            ("language", step["language"]),
            ("interpreter", step["interpreter"]),
            ("kernel", step["kernel"]),
            ("platform", environment.get("platform")),
            ("host", step["node"] or host.get("name")),
            ("system", host.get("system")),
            ("processors", host.get("cpus")),
            ("gpus", ", ".join(map(str, host.get("gpus") or ()))),
            ("image", step["image"]),
            ("digest", step["digest"]),
        ]
        output.say(output.paint(step_id, "bold"))
        output.say(output.table([[f"  {name}", str(fact)] for name, fact in facts if fact]))
    for digest, environment in found["environments"].items():
        output.say()
        if len(found["environments"]) > 1:
            output.say(f"# {digest}")
        for name, version in environment["packages"].items():
            number, mark, origin = version.partition(" @ ")
            output.say(f"{name} @ {origin}" if mark else f"{name}=={number}")


def _say_changes(changes: dict[str, list[Change]], as_json: bool) -> int:
    if as_json:
        output.say_json({step: [asdict(each) for each in found] for step, found in changes.items()})
        return 0
    if not changes:
        output.note("They have no step whose environment is known in both.")
    for step_id, found in changes.items():
        same = "" if found else ": the same environment"
        output.say(f"{output.paint(step_id, 'bold')}{same}")
        rows = [[f"  {each.name}", each.before or "-", each.after or "-"] for each in found]
        if rows:
            output.say(output.table(rows))
    return 0


def _logs(options: argparse.Namespace) -> int:
    from ..runs.model import ENDED
    from .finding import find_run
    from .progress import Logs

    store = _store()
    run_id = find_run(store, options.run)
    steps = store.read(run_id).state.steps
    if options.step is not None and options.step not in steps:
        raise Missing(f"Run {run_id} has no step “{options.step}”.", hint=", ".join(steps))
    logs = Logs(store, options.step, options.attempt)
    while True:
        record = store.read(run_id)
        ended = record.state.state in ENDED
        logs.update(record)
        if ended or not options.follow:
            return 0
        time.sleep(POLL)


def _stop(options: argparse.Namespace) -> int:
    return asyncio.run(_stop_and_wait(_workspace(), options))


async def _stop_and_wait(workspace: Workspace, options: argparse.Namespace) -> int:
    from ..runs import environments
    from .finding import find_run

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
            for step in record.run.plan.steps_of(options.step):
                output.say(f"{step}: {record.state.steps[step].state}")
        return 0
    finally:
        await workspace.close()


def _rerun(options: argparse.Namespace) -> int:
    from ..runs.model import Selection
    from .finding import find_run
    from .following import follow_run

    workspace = _workspace()
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
            names = ", ".join(change.path for change in found[:3])
            more = f" and {len(found) - 3} more" if len(found) > 3 else ""
            output.note(
                f"Running the files as they are now; changed since that run: {names}{more}. "
                "Add --version run for those of the run."
            )


def _files(options: argparse.Namespace) -> int:
    from ..runs import made
    from ..runs.model import GOOD
    from .finding import find_run

    store = _workspace().store
    run_id = find_run(store, options.run)
    if options.put or options.replace:
        made.put_when_asked(store, run_id, replace=options.replace)
    found = made.describe(store, run_id)
    if options.json:
        output.say_json(found)
        return 0
    _, state = store.read(run_id)
    good = [each for each in found["files"] if state.steps[each["step"]].state in GOOD]
    last = {each["path"]: each for each in good if each["change"]}
    rows = [
        [
            each["change"] or "output",
            each["path"],
            str(each.get("size", "")),
            each["step"],
            _whereabouts(each, found, last) if each in good else "kept: the step did not succeed",
        ]
        for each in found["files"]
    ]
    if rows:
        output.say(output.table(rows, ("change", "file", "bytes", "step", "")))
    else:
        output.note("This run made no files.")
    return 0


def _whereabouts(file: dict[str, Any], found: dict[str, Any], last: dict[str, Any]) -> str:
    """What became of a file that a run made."""
    path, is_deleted = file["path"], file["change"] == "deleted"
    if last.get(path, file) is not file:
        return f"replaced by {last[path]['step']}"
    if path in found["put"]:
        return "deleted in the project" if is_deleted else "put into the project"
    why = f": {found['kept'][path]}" if path in found["kept"] else ""
    if is_deleted:
        return f"not deleted in the project{why}"
    return f"kept with the run{why}" if file["kept"] else "too large to be kept"


def _best(options: argparse.Namespace) -> int:
    from ..runs.best import NONE
    from .finding import find_sweep
    from .following import tell_sweep

    sweeps = _workspace().sweeps
    sweep_id = find_sweep(sweeps, options.sweep)
    if options.select is not None:
        sweeps.mark(sweep_id, None if options.select == NONE else options.select)
    view = sweeps.view(sweep_id)
    if options.json:
        output.say_json(view)
    else:
        tell_sweep(view)
    return 0


def _download(options: argparse.Namespace) -> int:
    from ..archive import archive
    from .finding import find_run

    store = _workspace().store
    run_id = find_run(store, options.run)
    target: Path = options.output or Path(f"{run_id}.zip")
    if str(target) == "-":
        for chunk in archive(store.run_folder(run_id)):
            sys.stdout.buffer.write(chunk)
        return 0
    if target.is_dir():
        target /= f"{run_id}.zip"
    if target.exists() and not options.force:
        raise ConvectError(f"“{target}” is there already.", hint="Overwrite it with --force.")
    draft = target.with_name(f".{target.name}.part")
    try:
        with draft.open("wb") as file:
            for chunk in archive(store.run_folder(run_id)):
                file.write(chunk)
        draft.replace(target)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise ConvectError(f"“{target}” cannot be written: {error.strerror}.") from None
    output.say(str(target))
    return 0


def _prune(options: argparse.Namespace) -> int:
    workspace = _workspace()
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
            f"“{text}” is not a time.", hint="Say 90min, 2h, 3d, or 2026-11-16T08:00."
        ) from None


def size(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text, re.IGNORECASE)
    if match is None:
        raise ConvectError(f"“{text}” is not a size.", hint="Say 500M or 10G.")
    return int(float(match[1]) * SIZES[match[2].upper()])


def _ago(moment: float) -> str:
    from .progress import seconds

    return f"{seconds(max(0.0, time.time() - moment))} ago"


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
