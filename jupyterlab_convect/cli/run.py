"""`convect run`: run a notebook, script or pipeline, here or elsewhere."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConvectError
from . import output
from .arguments import add_json, add_root, locate

if TYPE_CHECKING:
    from ..runs.model import Request, Selection
    from ..workspace import Workspace


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "run",
        help="run a notebook, script or pipeline",
        epilog="Exit codes: 0 all succeeded, 1 a run failed, 2 bad input, 130 interrupted. "
        "Ctrl-C stops the run; a second one leaves without waiting for it.",
    )
    parser.add_argument("path", type=Path, help="a notebook, script or pipeline")
    parser.add_argument(
        "-p",
        "--parameter",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter, read as its declared type; without one JSON, or else a text",
    )
    parser.add_argument("--runtime", help="where to run (local)")
    parser.add_argument("--name", help="what to call the run")
    parser.add_argument(
        "--label", action="append", default=[], metavar="NAME=VALUE", help="a label to find it by"
    )
    parser.add_argument("--dry-run", action="store_true", help="show the plan, run nothing")
    parser.add_argument("--no-cache", action="store_true", help="run also what is unchanged")
    sweep = parser.add_argument_group("sweep")
    sweep.add_argument(
        "--sweep",
        action="append",
        default=[],
        metavar="NAME=VALUES",
        help="run once for each value: 0.1,0.2 or 1:9:2 (from, to, step) or 0.1:1 (min, max)",
    )
    sweep.add_argument("--mode", choices=("grid", "random", "list"), help="how to combine (grid)")
    sweep.add_argument("--samples", type=int, metavar="N", help="how many, when random")
    sweep.add_argument("--seed", type=int, metavar="N", help="for the same choice again (0)")
    sweep.add_argument("--concurrency", type=int, metavar="N", help="how many at once")
    sweep.add_argument(
        "--select",
        metavar="max:METRIC",
        help="which run is the best, or `none`; by itself where the metrics make it plain",
    )
    part = parser.add_argument_group("a part of a pipeline")
    one = part.add_mutually_exclusive_group()
    one.add_argument("--only", metavar="NODE", help="this node alone")
    one.add_argument("--from", metavar="NODE", dest="from_node", help="this node and all after it")
    one.add_argument("--upto", metavar="NODE", help="this node and all before it")
    part.add_argument("--of", metavar="RUN", help="the run whose results are taken over (latest)")
    add_following(parser)
    add_root(parser)
    add_json(parser)
    parser.set_defaults(handler=_run)


def add_following(parser: argparse.ArgumentParser) -> None:
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--follow", action="store_true", help="also print what the steps print")
    how.add_argument("--detach", action="store_true", help="leave it to a process of its own")


def _run(options: argparse.Namespace) -> int:
    from ..settings import load_settings
    from ..workspace import Workspace

    workspace = Workspace(load_settings())
    request = _request(options, workspace)
    sweep = _sweep(options, Path(request.root), request.path or "")
    if options.dry_run:
        return asyncio.run(_dry_run(workspace, request, sweep, options.json))
    if sweep is not None and options.follow:
        raise ConvectError("--follow is for one run, not for a sweep.")
    for problem in workspace.oddities(request):
        if problem.severity == "warning":
            output.note(f"{output.paint('warning:', 'yellow', sys.stderr)} {problem.message}")
    if options.detach:
        return leave_to_host(workspace, request, sweep, options.json)
    from .following import follow_run, follow_sweep

    if sweep is None:
        return asyncio.run(follow_run(workspace, request, options.follow, options.json))
    return asyncio.run(follow_sweep(workspace, request, sweep, options.json))


def leave_to_host(workspace: Workspace, request: Request, sweep: Any, as_json: bool) -> int:
    from ..host import detach

    answer = detach(workspace.settings, request, sweep)
    if as_json:
        output.say_json(answer)
    else:
        kind, found = next(iter(answer.items()))
        output.say(found)
        verb = "follow it with: convect runs logs -f" if kind == "run" else "it has its runs in"
        output.note(f"The {kind} goes on in the background; {verb} {found}")
    return 0


def _request(options: argparse.Namespace, workspace: Workspace) -> Request:
    from ..runs.model import Request
    from .values import known_types, split, typed_parameters

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
        select=select,
        use_cache=not options.no_cache,
        of=of,
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
    from .finding import find_run, latest_run

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
    from .values import known_types, space_of

    return {"space": space_of(options.sweep, known_types(root, path)), **how}


async def _dry_run(
    workspace: Workspace, request: Request, sweep: dict[str, Any] | None, as_json: bool
) -> int:
    """The plan, and what would keep it from running; nothing is written."""
    from ..pipeline.files import FileCache
    from ..pipeline.metrics import reported_by
    from ..pipeline.plan import to_json
    from ..runs.best import settle
    from ..runs.sweeps import points_of

    plan = workspace.plan(request)
    problems = await workspace.check(request)
    points = None
    if sweep is not None:
        how = {key: sweep[key] for key in ("mode", "samples", "seed") if key in sweep}
        points = points_of(sweep["space"], **how)
        settle(sweep.get("select"), reported_by(plan, FileCache(Path(request.root))))
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
        for point in points or ():
            output.say("  " + ", ".join(f"{name}={value}" for name, value in point.items()))
        for problem in problems:
            place = f"{problem.node}: " if problem.node else ""
            hint = f" {problem.hint}" if problem.hint else ""
            output.say(f"{problem.severity}: {place}{problem.message}{hint}")
    return 2 if any(problem.severity == "error" for problem in problems) else 0
