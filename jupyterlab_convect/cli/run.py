"""`convect run`: run a notebook, script or pipeline, here or elsewhere."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConvectError
from . import output
from .arguments import (
    add_json,
    add_parameters,
    add_root,
    find_run,
    known_types,
    latest_run,
    locate,
    read_value,
    space_of,
    split,
    typed_parameters,
)

if TYPE_CHECKING:
    from ..runs.model import Request, Selection
    from ..settings import Settings
    from ..workspace import Workspace


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "run",
        help="run a notebook, script or pipeline",
        epilog="Exit codes: 0 all succeeded, 1 a run failed, 2 bad input, 130 interrupted. "
        "Ctrl-C stops the run; a second one leaves without waiting for it.",
    )
    parser.add_argument("path", type=Path, nargs="?", help="a notebook, script or pipeline")
    parser.add_argument(
        "--params_file",
        "--params-file",
        type=Path,
        metavar="FILE",
        help="a parameter file of DLC instead",
    )
    add_parameters(
        parser, "a parameter, read as its declared type; without one JSON, or else a string"
    )
    parser.add_argument("--runtime", help="where to run (local)")
    parser.add_argument(
        "--profile", metavar="NAME", help="image and resources by this profile: `convect profiles`"
    )
    parser.add_argument("--name", help="what to call the run")
    parser.add_argument(
        "--label", action="append", default=[], metavar="NAME=VALUE", help="a label to find it by"
    )
    parser.add_argument("--dry-run", action="store_true", help="show the plan, run nothing")
    parser.add_argument("--no-cache", action="store_true", help="also run what has not changed")
    sweep = parser.add_argument_group("sweep")
    sweep.add_argument(
        "--sweep",
        action="append",
        default=[],
        metavar="NAME=VALUES",
        help="run once per value: 0.1,0.2 or 1:9:2 (from, to, step) or 0.1:1 (min, max)",
    )
    sweep.add_argument("--mode", choices=("grid", "random", "list"), help="how to combine (grid)")
    sweep.add_argument("--samples", type=int, metavar="N", help="how many, when random")
    sweep.add_argument(
        "--seed", type=int, metavar="N", help="a number that makes the choice repeatable (0)"
    )
    sweep.add_argument("--concurrency", type=int, metavar="N", help="how many at once")
    sweep.add_argument(
        "--select",
        metavar="max:METRIC",
        help="which run is best, or `none`; chosen automatically where the metrics make it clear",
    )
    part = parser.add_argument_group("a part of a pipeline")
    one = part.add_mutually_exclusive_group()
    one.add_argument("--only", metavar="NODE", help="only this node")
    one.add_argument("--from", metavar="NODE", dest="from_node", help="this node and all after it")
    one.add_argument("--upto", metavar="NODE", help="this node and all before it")
    part.add_argument("--of", metavar="RUN", help="the run whose results are reused (latest)")
    add_distributed(parser)
    dask = parser.add_argument_group("a Dask cluster for each step")
    dask.add_argument("--dask-workers", metavar="N", type=int, help="with so many workers")
    dask.add_argument(
        "--dask-option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the Dask gateway (repeatable), as `convect dask options` lists them",
    )
    add_following(parser)
    add_root(parser)
    add_json(parser)
    parser.set_defaults(handler=_run)


def add_distributed(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("distributed training, of a file or of a pipeline's scripts")
    group.add_argument(
        "--processes", metavar="N", type=_processes, help="on each node: a number, `gpu` or `cpu`"
    )
    group.add_argument("--nodes", metavar="N", type=int, help="how many machines (1)")
    group.add_argument(
        "--min-nodes", metavar="N", type=int, help="how many of them are enough (all)"
    )
    group.add_argument(
        "--launcher", choices=("plain", "torchrun", "mpi"), help="what starts them (plain)"
    )
    group.add_argument(
        "--restarts", metavar="N", type=int, help="how often all start again after a failure (0)"
    )
    group.add_argument(
        "--outputs-from",
        metavar="RANK",
        type=int,
        help="the rank whose values and metrics count (0)",
    )
    group.add_argument(
        "--hang-after", metavar="TIME", help="say so when they do nothing for so long, as in 10m"
    )
    group.add_argument("--on-hang", choices=("report", "stop"), help="what to do about it (report)")
    group.add_argument(
        "--operator",
        choices=("auto", "none", "TrainJob", "PyTorchJob", "TFJob", "MPIJob"),
        help="what runs them on Kubernetes (auto)",
    )
    group.add_argument(
        "--gang",
        action="store_true",
        default=None,
        help="create no pod before there is room for all of them",
    )


def _processes(text: str) -> int | str:
    return int(text) if text.lstrip("-").isdigit() else text


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    names = (
        *("nodes", "processes", "launcher", "restarts", "outputs_from", "hang_after", "on_hang"),
        *("operator", "gang", "min_nodes"),
    )
    how = {name: value for name in names if (value := getattr(options, name)) is not None}
    dask: dict[str, Any] = {}
    if options.dask_workers is not None:
        dask["workers"] = options.dask_workers
    if options.dask_option:
        dask["options"] = {name: read_value(text) for name, text in map(split, options.dask_option)}
    return {**({"distributed": how} if how else {}), **({"dask": dask} if dask else {})}


def _with_profile(options: argparse.Namespace, workspace: Workspace) -> dict[str, Any]:
    runtime = options.runtime or workspace.settings.default_runtime
    return workspace.profile_settings(options.profile, runtime, _settings(options))


def add_following(parser: argparse.ArgumentParser) -> None:
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--follow", action="store_true", help="also print what the steps print")
    how.add_argument(
        "--detach", action="store_true", help="run it in the background, in a process of its own"
    )


def _run(options: argparse.Namespace) -> int:
    from ..settings import load_settings

    settings = load_settings()
    if (options.path is None) == (options.params_file is None):
        raise ConvectError("Give a notebook, script or pipeline, or else --params_file.")
    _warm_up(options, settings)
    import asyncio

    from ..workspace import Workspace

    workspace = Workspace(settings)
    request = _request(options, workspace)
    sweep = _sweep(options, Path(request.root), request.path or "")
    if options.dry_run:
        return asyncio.run(_dry_run(workspace, request, sweep, options.json))
    if sweep is not None and options.follow:
        raise ConvectError("--follow is for one run, not for a sweep.")
    if options.detach:
        return leave_to_host(workspace, request, sweep, options.json)
    from .following import follow_run, follow_sweep

    if sweep is None:
        return asyncio.run(follow_run(workspace, request, options.follow, options.json))
    return asyncio.run(follow_sweep(workspace, request, sweep, options.json))


def _warm_up(options: argparse.Namespace, settings: Settings) -> None:
    """Have the warm processes get ready while the rest is imported here."""
    runtime = options.runtime or settings.default_runtime
    if runtime != "local" or options.dry_run or options.detach:
        return
    if options.path is None or not options.path.is_file():
        return
    from ..runtimes.local.fork_start import IDLE, SPARES, SUPPORTED, start_early

    chosen = settings.config.get("LocalRuntime", {})
    spares, idle = chosen.get("spare_kernels", SPARES), chosen.get("idle_timeout", IDLE)
    if spares and SUPPORTED:
        with contextlib.suppress(OSError):  # They are tried again when they are needed.
            start_early(spares, idle)


def leave_to_host(workspace: Workspace, request: Request, sweep: Any, as_json: bool) -> int:
    from ..detached import detach

    answer = detach(workspace.settings, request, sweep)
    for sentence in answer.pop("warnings"):
        output.warn(sentence)
    if as_json:
        output.say_json(answer)
    else:
        kind, found = next(iter(answer.items()))
        output.say(found)
        verb = "follow it with: convect runs logs -f"
        if kind == "sweep":
            verb = "list its runs with: convect runs list --sweep"
        output.note(f"The {kind} continues in the background; {verb} {found}")
    return 0


def _request(options: argparse.Namespace, workspace: Workspace) -> Request:
    from ..runs.model import Request

    if options.params_file is not None:
        return _request_of_params(options, workspace)
    root, path = locate(options.path, options.root)
    types = known_types(root, path) if options.parameter else {}
    select, of = _selection(options, path, workspace)
    return Request(
        path=path,
        root=str(root),
        runtime=options.runtime or workspace.settings.default_runtime,
        name=options.name,
        parameters=typed_parameters(options.parameter, types),
        labels=dict(map(split, options.label)),
        settings=_with_profile(options, workspace),
        select=select,
        use_cache=not options.no_cache,
        of=of,
    )


def _request_of_params(options: argparse.Namespace, workspace: Workspace) -> Request:
    """The job of a parameter file, in the folder where `convect` was called."""
    from ..pipeline.dlc import read_params
    from ..runs.model import Request
    from ..safe_files import read_regular

    for name in ("parameter", "sweep", "only", "from_node", "upto"):
        if getattr(options, name):
            raise ConvectError(f"--{name.partition('_')[0]} cannot be combined with --params_file.")
    file = options.params_file
    try:
        text = read_regular(file).decode("utf-8-sig")
    except OSError as error:
        raise ConvectError(f"“{file}” cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ConvectError(f"“{file}” is not text in UTF-8.") from None
    job = read_params(text, file.name)
    for note in job.notes:
        output.warn(note)
    options.follow = options.follow or (job.is_followed and not options.detach)
    return Request(
        root=str((options.root or Path.cwd()).absolute()),
        document=job.document,
        runtime=options.runtime or workspace.settings.default_runtime,
        name=options.name or job.name,
        labels=dict(map(split, options.label)),
        settings=_with_profile(options, workspace),
        use_cache=not options.no_cache,
    )


def _selection(
    options: argparse.Namespace, path: str, workspace: Workspace
) -> tuple[Selection, str | None]:
    from ..runs.model import Selection

    parts = (
        Selection("only", options.only),
        Selection("from", options.from_node),
        Selection("upto", options.upto),
    )
    chosen = next((part for part in parts if part.node is not None), None)
    if chosen is None:
        if options.of:
            raise ConvectError("--of needs one of --only, --from and --upto.")
        return Selection(), None

    if options.of:
        return chosen, find_run(workspace.store, options.of)
    return chosen, latest_run(workspace.store, path)


def _sweep(options: argparse.Namespace, root: Path, path: str) -> dict[str, Any] | None:
    how = {
        key: value
        for key in ("mode", "samples", "seed", "concurrency", "select")
        if (value := getattr(options, key)) is not None
    }
    if not options.sweep:
        if how:
            raise ConvectError(f"--{next(iter(how))} needs --sweep.")
        return None

    return {"space": space_of(options.sweep, known_types(root, path)), **how}


async def _dry_run(
    workspace: Workspace, request: Request, sweep: dict[str, Any] | None, as_json: bool
) -> int:
    """The plan, and what would keep it from running; nothing is written."""
    from ..pipeline.describe import rule_of
    from ..pipeline.plan import to_json
    from ..pipeline.resolve import raise_first_error
    from ..runs.best import settle
    from ..runs.sweeps import points_of

    checked = await workspace.check(request)
    plan, problems = checked.plan, checked.problems
    if plan is None:
        raise_first_error(problems)
        return 2
    points = None
    if sweep is not None:
        how = {key: sweep[key] for key in ("mode", "samples", "seed") if key in sweep}
        points = points_of(sweep["space"], **how)
        settle(sweep.get("select"), checked.reported)
    if as_json:
        found = {"plan": to_json(plan), "problems": [to_json(item) for item in problems]}
        output.say_json(found if points is None else {**found, "points": points})
    else:
        rows = [
            [
                step.id,
                step.kind,
                step.path or " ".join(step.command),
                ", ".join(step.after),
                ", ".join(f"{name}={value}" for name, value in step.parameters.items()),
            ]
            for step in plan.steps
        ]
        output.say(output.table(rows, ("step", "kind", "runs", "after", "parameters")))
        members = {
            group.id: ", ".join(part.id for part in plan.parts if part.group == group.id)
            for group in plan.groups
        }
        rules = [
            [part.id, rule_of(part), members.get(part.id, ""), ", ".join(part.after)]
            for part in plan.parts
            if rule_of(part)
        ]
        if rules:
            output.say(output.table(rules, ("node", "rule", "members", "after")))
        for point in points or ():
            output.say("  " + ", ".join(f"{name}={value}" for name, value in point.items()))
        for problem in problems:
            where = f"{problem.node}: " if problem.node else ""
            hint = f" {problem.hint}" if problem.hint else ""
            output.say(f"{problem.severity}: {where}{problem.message}{hint}")
    return 2 if any(problem.severity == "error" for problem in problems) else 0
