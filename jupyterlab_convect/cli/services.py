"""`convect services`: what stays up and has an address."""

from __future__ import annotations

import argparse
import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import output
from .arguments import add_json, find_run, open_workspace

if TYPE_CHECKING:
    from ..services.store import ServiceRecord, ServiceStore

SERVICE = "the id of a service"
STATES = {"ready": "green", "starting": "blue", "failed": "red", "lost": "red", "stopped": "dim"}
PATIENCE = 300.0
"""Seconds that it waits for a service to start, or to stop."""


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "services", help="list, start and stop what stays up: apps, TensorBoard, …"
    )
    verbs = parser.add_subparsers(dest="services_verb", metavar="verb", required=True)

    listing = verbs.add_parser("list", help="list the services, also those that have ended")
    add_json(listing)
    listing.set_defaults(handler=_list)

    app = verbs.add_parser(
        "app",
        help="start a program that serves pages",
        epilog="Example: convect services app -- streamlit run app.py --server.port {port}",
    )
    app.add_argument("command", nargs="+", help="the program and its arguments, with {port}")
    app.add_argument("--name", help="what to call it (the program)")
    app.add_argument(
        "--idle",
        metavar="DURATION",
        help="stop it when nobody has used it for this long; 0 means never",
    )
    add_json(app)
    app.set_defaults(handler=_app)

    board = verbs.add_parser("tensorboard", help="show a folder, or runs, in TensorBoard")
    board.add_argument("folder", nargs="?", help="a folder with event files")
    board.add_argument(
        "--run", action="append", metavar="RUN", help="a run, also while it is running (repeatable)"
    )
    board.add_argument("--sweep", metavar="SWEEP", help="a sweep, with the runs that it gets later")
    add_json(board)
    board.set_defaults(handler=_tensorboard)

    for verb, words, act in (
        ("start", "start a service that has ended", _start),
        ("stop", "stop a service, wherever it runs", _stop),
        ("log", "print the end of what a service has printed", _log),
        ("remove", "forget a service that has ended", _remove),
    ):
        each = verbs.add_parser(verb, help=words)
        each.add_argument("service", help=SERVICE)
        if verb in ("start", "stop"):
            add_json(each)
        each.set_defaults(handler=act)


def _services() -> ServiceStore:
    from ..services.store import ServiceStore

    return ServiceStore(open_workspace().store)


def _list(options: argparse.Namespace) -> int:
    from ..services.store import shown
    from ..text import elapsed_text

    found = _services().all()
    if options.json:
        output.say_json([shown(each) for each in found])
        return 0
    if not found:
        output.note("There are no services.")
        return 0
    rows = [
        (
            service.id,
            service.kind,
            service.name,
            output.paint(status.state, STATES[status.state]),
            f"{elapsed_text(max(0.0, time.time() - used))} ago" if used else "",
            status.address or status.reason or "",
        )
        for service, status, used in found
    ]
    output.say(output.table(rows, ("id", "kind", "name", "state", "used", "address")))
    return 0


def _app(options: argparse.Namespace) -> int:
    from ..pipeline.quantities import duration

    services = _services()
    record = services.start(
        "app",
        {"command": options.command},
        Path.cwd(),
        name=options.name,
        idle=None if options.idle is None else duration(options.idle),
    )
    return _tell(options, services, record)


def _tensorboard(options: argparse.Namespace) -> int:
    services = _services()
    runs = options.run and [find_run(services.store, word) for word in options.run]
    given = {"folder": options.folder, "runs": runs, "sweep": options.sweep}
    wanted = {name: value for name, value in given.items() if value is not None}
    return _tell(options, services, services.start("tensorboard", wanted, Path.cwd()))


def _start(options: argparse.Namespace) -> int:
    services = _services()
    return _tell(options, services, services.start_again(options.service))


def _tell(options: argparse.Namespace, services: ServiceStore, record: ServiceRecord) -> int:
    """Wait until it is ready, and say where it is."""
    from ..services.store import shown

    service_id = record.service.id
    record = asyncio.run(services.until(service_id, up=True, timeout=PATIENCE))
    if options.json:
        output.say_json(shown(record))
    elif record.is_up:
        output.say(f"{service_id}  {record.status.state}  {record.status.address}")
    else:
        output.note(f"{record.service.name}: {record.status.reason or record.status.state}")
    return 0 if record.is_up else 1


def _stop(options: argparse.Namespace) -> int:
    from ..services.store import shown

    services = _services()
    services.stop(options.service)
    record = asyncio.run(services.until(options.service, up=False, timeout=PATIENCE))
    if options.json:
        output.say_json(shown(record))
    else:
        output.say(f"{options.service}  {record.status.state}")
    return 1 if record.is_up else 0


def _log(options: argparse.Namespace) -> int:
    output.say(_services().log(options.service).rstrip("\n"))
    return 0


def _remove(options: argparse.Namespace) -> int:
    _services().remove(options.service)
    return 0
