"""`convect dask`: Dask clusters, on the gateway that Dask is configured with or one's own."""

from __future__ import annotations

import argparse
import shlex
import time
from typing import TYPE_CHECKING, Any

from . import output
from .arguments import add_json, open_workspace, read_value, split

if TYPE_CHECKING:
    from ..pipeline.plan import Json
    from ..services.dask_clusters import DaskClusters

STATES = {"running": "green", "pending": "blue", "stopping": "dim", "failed": "red"}
PAUSE = 0.5
PATIENCE = 300.0
"""Seconds that it waits for workers."""


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser("dask", help="make, scale, test and stop Dask clusters")
    verbs = parser.add_subparsers(dest="dask_verb", metavar="verb", required=True)

    listing = verbs.add_parser("list", help="list your clusters, wherever they were made")
    add_json(listing)
    listing.set_defaults(handler=_list)

    options = verbs.add_parser("options", help="show what the gateway lets you choose")
    add_json(options)
    options.set_defaults(handler=_options)

    new = verbs.add_parser("new", help="make a cluster and wait for its workers")
    new.add_argument("--workers", type=int, default=1, metavar="N", help="how many workers (1)")
    new.add_argument(
        "-o",
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the gateway (repeatable); the value is read as JSON if it is JSON",
    )
    add_json(new)
    new.set_defaults(handler=_new)

    scale = verbs.add_parser("scale", help="have so many workers")
    _add_cluster(scale)
    scale.add_argument("workers", type=int)
    scale.set_defaults(handler=_scale)

    adapt = verbs.add_parser("adapt", help="let the work decide how many workers there are")
    _add_cluster(adapt)
    adapt.add_argument("minimum", type=int)
    adapt.add_argument("maximum", type=int)
    adapt.set_defaults(handler=_adapt)

    test = verbs.add_parser("test", help="compute something on every worker; compare versions")
    _add_cluster(test)
    add_json(test)
    test.set_defaults(handler=_test)

    stop = verbs.add_parser("stop", help="stop a cluster, or all of them")
    stop.add_argument("cluster", nargs="?", help="the id of a cluster")
    stop.add_argument("--all", action="store_true", help="stop all clusters")
    stop.set_defaults(handler=_stop)

    env = verbs.add_parser(
        "env",
        help="print variables by which Gateway() finds the gateway, which is started if need be",
        epilog='Example: eval "$(convect dask env)"',
    )
    add_json(env)
    env.set_defaults(handler=_env)


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cluster", help="the id of a cluster")


def _clusters() -> DaskClusters:
    from ..services.dask_clusters import DaskClusters
    from ..services.store import ServiceStore

    return DaskClusters(ServiceStore(open_workspace().store))


def _list(options: argparse.Namespace) -> int:
    import asyncio

    asyncio.run(open_workspace().provisions.remove_left())
    found = _clusters().overview()
    if options.json:
        output.say_json(found)
        return 0
    gateway = found["gateway"]
    if not found["clusters"]:
        where = gateway["address"] or "your own gateway"
        output.note(f"There are no Dask clusters on {where}.")
        return 0
    rows = [_row(each) for each in found["clusters"]]
    heads = ("id", "state", "workers", "threads", "memory", "tasks", "errors", "age", "")
    output.say(output.table(rows, heads))
    return 0


def _row(cluster: dict[str, Json]) -> tuple[str, ...]:
    from ..text import elapsed_text, size_text

    state = cluster["state"]
    memory = f"{size_text(cluster['memory'])} of {size_text(cluster['memory_limit'])}"
    return (
        cluster["id"],
        output.paint(state, STATES.get(state, "dim")),
        str(cluster["workers"]),
        str(cluster["threads"]),
        memory if cluster["is_known"] else "",
        str(cluster["processing"] + cluster["waiting"]) if cluster["is_known"] else "",
        str(cluster["erred"]) if cluster["is_known"] else "",
        elapsed_text(max(0.0, time.time() - cluster["started"])),
        cluster["reason"] or ("nobody uses it" if cluster["orphan"] else ""),
    )


def _options(options: argparse.Namespace) -> int:
    from ..json_text import dumps

    found = _clusters().options()
    if options.json:
        output.say_json(found)
        return 0
    rows = [
        (each["field"], dumps(each["default"]), _limits(each["spec"]), each["label"] or "")
        for each in found
    ]
    output.say(output.table(rows, ("option", "default", "values", "")))
    return 0


def _limits(spec: dict[str, Json]) -> str:
    if spec["type"] == "select":
        return ", ".join(map(str, spec["options"]))
    bounds = [
        f"{word} {spec[name]:g}"
        for name, word in (("min", "from"), ("max", "to"))
        if spec.get(name) is not None
    ]
    return " ".join((spec["type"], *bounds))


def _new(options: argparse.Namespace) -> int:
    clusters = _clusters()
    given = {name: read_value(text) for name, text in map(split, options.option)}
    made = clusters.new(given, options.workers)
    deadline = time.monotonic() + PATIENCE
    while made["state"] in ("pending", "running") and made["workers"] < options.workers:
        if time.monotonic() > deadline:
            break
        time.sleep(PAUSE)
        made = clusters.read(made["id"])
    if options.json:
        output.say_json(made)
    else:
        output.say(f"{made['id']}  {made['state']}  {made['workers']} of {options.workers} workers")
    return 0 if made["state"] == "running" and made["workers"] >= options.workers else 1


def _scale(options: argparse.Namespace) -> int:
    return _told(_clusters().scale(options.cluster, options.workers))


def _adapt(options: argparse.Namespace) -> int:
    return _told(_clusters().adapt(options.cluster, options.minimum, options.maximum))


def _told(message: str | None) -> int:
    if message:
        output.note(message)
    return 0


def _test(options: argparse.Namespace) -> int:
    found = _clusters().test(options.cluster)
    if options.json:
        output.say_json(found)
        return 0
    workers = "1 worker" if found["workers"] == 1 else f"{found['workers']} workers"
    output.say(f"{workers} computed a sum within {found['seconds']:g} s.")
    for sentence in found["differences"]:
        output.note(sentence)
    return 0


def _stop(options: argparse.Namespace) -> int:
    from ..errors import ConvectError

    if bool(options.cluster) == options.all:
        raise ConvectError("Name a cluster, or say --all.", code="bad-arguments")
    if options.all:
        output.say(f"stopped {_clusters().stop_all()}")
    else:
        _clusters().stop(options.cluster)
    return 0


def _env(options: argparse.Namespace) -> int:
    found = _clusters().variables()
    if options.json:
        output.say_json(found)
        return 0
    if not found:
        output.note("Dask is configured with a gateway already: Gateway() finds it.")
    for name, value in found.items():
        output.say(f"export {name}={shlex.quote(value)}")
    return 0
