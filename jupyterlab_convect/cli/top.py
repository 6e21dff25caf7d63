"""`convect top`: what there is to run on, what is free, and who holds the rest."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from ..errors import ConvectError
from ..pipeline.plan import Json
from . import output
from .arguments import add_json, open_workspace


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser("top", help="show what is running and what is free")
    parser.add_argument("runtime", nargs="?", help="only this runtime")
    add_json(parser)
    parser.set_defaults(handler=_top)


def _top(options: argparse.Namespace) -> int:
    found = asyncio.run(_ask(options.runtime))
    if options.json:
        output.say_json({"runtimes": found})
        return 0
    output.say("\n\n".join("\n".join(_lines(entry)) for entry in found))
    return 0


async def _ask(name: str | None) -> list[dict[str, Json]]:
    """What each runtime says of itself; one that cannot be asked says why."""
    workspace = open_workspace()
    found = []
    try:
        for each in [name] if name else sorted(workspace.runtimes):
            try:
                about = await workspace.runtimes[each].top()
            except ConvectError as error:
                if name:
                    raise
                found.append({"runtime": each, "problem": error.sentence})
                continue
            if about is not None:
                found.append({"runtime": each, **about})
            elif name:
                raise ConvectError(f"The runtime {name} cannot report its capacity.")
    finally:
        await workspace.close()
    return found


def _lines(entry: dict[str, Json]) -> Iterator[str]:
    title = output.paint(entry["runtime"], "bold")
    if entry.get("problem"):
        yield f"{title}: {entry['problem']}"
        return
    yield f"{title}: namespace {entry['namespace']}" if entry.get("namespace") else title
    if entry["gpus"]:
        rows = [
            [
                gpu["type"] or "",
                gpu["resource"],
                _count(gpu["free"]),
                _count(gpu["total"]),
                ""
                if gpu["free"] is None
                else f"{_count(gpu['largest_free'])} on {gpu['largest_node']}",
            ]
            for gpu in entry["gpus"]
        ]
        yield output.table(rows, ("type", "resource", "free", "total", "most on one node"))
    if entry["nodes"]:
        yield ""
        rows = [
            [node["name"], "" if node["ready"] else "not ready", _resources(node["resources"])]
            for node in entry["nodes"]
        ]
        yield output.table(rows, ("node", "", "free / total"))
    if entry["quotas"]:
        yield ""
        rows = [
            [quota["name"], quota["resource"], _amount(quota, "used"), _amount(quota, "total")]
            for quota in entry["quotas"]
        ]
        yield output.table(rows, ("quota", "resource", "used", "total"))
    if entry["queues"]:
        yield ""
        rows = [
            [queue["name"], f"{queue['waiting']}", f"{queue['admitted']}", queue["closed"] or ""]
            for queue in entry["queues"]
        ]
        yield output.table(rows, ("queue", "waiting", "admitted", ""))
    if entry["holders"]:
        yield ""
        named = ("namespace", "pod", "node") if entry["namespace"] else ("run", "step")
        rows = [
            [*(holder[column] for column in named), _held(holder["resources"])]
            for holder in entry["holders"]
        ]
        yield output.table(rows, (*named, "holds"))
    yield from entry["unknown"]


def _held(resources: list[Json]) -> str:
    return ", ".join(
        f"{_number(item['name'], item['amount'])} {item['name']}" for item in resources
    )


def _resources(resources: list[Json]) -> str:
    return ", ".join(
        f"{item['name']} {_number(item['name'], item['free'])} / "
        f"{_number(item['name'], item['total'])}"
        for item in resources
    )


def _amount(quota: Json, key: str) -> str:
    return _number(quota["resource"], quota[key])


def _number(name: str, value: float | None) -> str:
    from ..runtimes.kubernetes.objects import bare

    return "?" if value is None else bare(name, Decimal(str(value)))


def _count(value: float | None) -> str:
    return "?" if value is None else f"{value:g}"
