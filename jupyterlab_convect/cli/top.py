"""`convect top`: what there is to run on, what is free, who holds the rest, what could start."""

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
    parser = subparsers.add_parser(
        "top", help="show what is running, what is free and what could start now"
    )
    parser.add_argument("runtime", nargs="?", help="only this runtime")
    add_json(parser)
    parser.set_defaults(handler=_top)
    profiles = subparsers.add_parser(
        "profiles", help="list the profiles and images that your administrator offers"
    )
    profiles.add_argument("--runtime", help="only those for the namespace of this runtime")
    add_json(profiles)
    profiles.set_defaults(handler=_profiles)


def _top(options: argparse.Namespace) -> int:
    found = asyncio.run(_ask(options.runtime))
    if options.json:
        output.say_json({"runtimes": found})
        return 0
    output.say("\n\n".join("\n".join(_lines(entry)) for entry in found))
    return 0


def _profiles(options: argparse.Namespace) -> int:
    from ..pipeline.profiles import settings_of

    workspace = open_workspace()
    offering = workspace.offering
    place = workspace.runtimes[options.runtime].place() if options.runtime else None
    profiles = [each for each in offering.profiles if each.is_for(place)]
    if options.json:
        shown = [
            {"name": each.name, "notes": each.notes, "settings": settings_of(each)}
            for each in profiles
        ]
        images = [{"image": each.image, "notes": each.notes} for each in offering.images]
        output.say_json({"profiles": shown, "images": images})
        return 0
    if not profiles and not offering.images:
        output.say("Your administrator has configured no profiles and no images.")
        return 0
    rows = [[each.name, _asked(settings_of(each)), each.image, each.notes] for each in profiles]
    parts = [output.table(rows, ("profile", "resources", "image", "notes"))] if rows else []
    rows = [[each.image, each.notes] for each in offering.images]
    parts += [output.table(rows, ("image", "notes"))] if rows else []
    output.say("\n\n".join(parts))
    return 0


async def _ask(name: str | None) -> list[dict[str, Json]]:
    """What each runtime says of itself; one that cannot be asked says why."""
    from ..overviews import overview_of
    from ..runtimes.capacity import as_json

    workspace = open_workspace()
    found = []
    try:
        for each in [name] if name else sorted(workspace.runtimes):
            try:
                about = await overview_of(workspace, each)
                while about.reading:
                    await asyncio.sleep(0.2)
                    about = await overview_of(workspace, each)
            except ConvectError as error:
                if name:
                    raise
                if error.code != "no-capacity":
                    found.append({"runtime": each, "problem": error.sentence})
                continue
            found.append({"runtime": each, **as_json(about)})
    finally:
        await workspace.close()
    return found


def _lines(entry: dict[str, Json]) -> Iterator[str]:
    title = output.paint(entry["runtime"], "bold")
    if entry.get("problem"):
        yield f"{title}: {entry['problem']}"
        return
    yield f"{title}: namespace {entry['namespace']}" if entry.get("namespace") else title
    for part in (_offers, _gpus, _nodes, _quotas, _queues, _holders):
        found = part(entry)
        if found:
            yield ""
            yield found
    if entry["hidden"] or entry["notes"]:
        yield ""
    yield from entry["notes"]
    for hidden in entry["hidden"]:
        yield hidden["sentence"]
        where = "ClusterRole" if hidden["scope"] == "cluster" else "Role"
        yield f"  A rule of a {where} would show it:"
        yield from (f"    {line}" for line in hidden["rule"].splitlines())


def _offers(entry: dict[str, Json]) -> str:
    rows = [
        [
            offer["title"],
            _asked(offer["settings"]) or "nothing",
            {True: "now", False: "no", None: "unknown"}[offer["now"]],
            offer["node"] or "",
            offer["sentence"] or "",
        ]
        for offer in entry["offers"]
    ]
    return output.table(rows, ("could start now", "at most", "", "node", "")) if rows else ""


def _gpus(entry: dict[str, Json]) -> str:
    rows = [
        [
            gpu["type"] or "",
            gpu["resource"],
            _count(gpu["free"]),
            _count(gpu["total"]),
            ""
            if gpu["free"] is None
            else f"{_count(gpu['largest_free'])} on {gpu['largest_node']}",
            "" if gpu["use"] is None else f"{gpu['use']:.0%}",
            _shared(gpu["sharing"]),
        ]
        for gpu in entry["gpus"] or ()
    ]
    header = ("type", "resource", "free", "total", "most on one node", "busy", "shared")
    return output.table(rows, header) if rows else ""


def _nodes(entry: dict[str, Json]) -> str:
    rows = [
        [
            node["name"],
            "" if node["ready"] else "not ready",
            _resources(node["resources"]),
            node["closed"] or "",
        ]
        for node in entry["nodes"] or ()
    ]
    return output.table(rows, ("node", "", "free / total", "")) if rows else ""


def _quotas(entry: dict[str, Json]) -> str:
    rows = [
        [quota["name"], quota["resource"], _amount(quota, "used"), _amount(quota, "total")]
        for quota in entry["quotas"] or ()
    ]
    return output.table(rows, ("quota", "resource", "used", "total")) if rows else ""


def _queues(entry: dict[str, Json]) -> str:
    lines = []
    queues = entry["queues"] or ()
    rows = [
        [
            queue["name"],
            f"{queue['waiting']}",
            f"{queue['admitted']}",
            _wait(queue["wait"]),
            queue["closed"] or "",
        ]
        for queue in queues
    ]
    if rows:
        lines.append(output.table(rows, ("queue", "waiting", "admitted", "expected wait", "")))
    rows = [
        [queue["name"], f"{each['position']}", each["run"] or each["name"], _wait(each["wait"])]
        for queue in queues
        for each in queue["workloads"] or ()
    ]
    if rows:
        lines.append(output.table(rows, ("queue", "position", "waits", "expected wait")))
    rows = [
        [
            queue["group"] or "",
            limit["flavor"],
            limit["resource"],
            _number(limit["resource"], limit["used"]),
            _number(limit["resource"], limit["total"]),
            _number(limit["resource"], limit["mine"]),
        ]
        for queue in queues
        for limit in queue["limits"] or ()
    ]
    if rows:
        header = ("group", "flavor", "resource", "used", "total", "by this queue")
        lines.append(output.table(rows, header))
    return "\n\n".join(lines)


def _holders(entry: dict[str, Json]) -> str:
    rows = [
        [
            holder["kind"],
            holder["name"] if holder["count"] == 1 else f"{holder['count']} pods",
            *([holder["namespace"], holder["owner"] or ""] if entry["namespace"] else []),
            holder["node"] or "",
            _held(holder["resources"]),
            _idle(holder["idle"]),
            "mine" if holder["mine"] else "",
        ]
        for holder in entry["holders"]
    ]
    named = ("namespace", "owner") if entry["namespace"] else ()
    return output.table(rows, ("held by", "", *named, "node", "holds", "idle", "")) if rows else ""


def _shared(sharing: Json) -> str:
    if sharing is None:
        return ""
    if sharing["cards"] is None:
        return str(sharing["kind"])
    return f"{sharing['kind']}, {_count(sharing['cards'])} GPUs"


def _asked(settings: dict[str, Json]) -> str:
    """`4 cpu, 16Gi memory, 1 gpu A100`."""
    resources = settings.get("resources") or {}
    gpu = resources.get("gpu")
    if isinstance(gpu, dict):
        gpu = " ".join(str(gpu[key]) for key in ("count", "type") if gpu.get(key) is not None)
    named = {"cpu": resources.get("cpu"), "memory": resources.get("memory"), "gpu": gpu}
    return ", ".join(f"{value} {name}" for name, value in named.items() if value is not None)


def _wait(found: Json) -> str:
    from ..text import elapsed_text

    if found is None:
        return ""
    return f"{elapsed_text(found['shortest'])} to {elapsed_text(found['longest'])}"


def _idle(seconds: float | None) -> str:
    return "" if seconds is None or seconds < 60 else f"{int(seconds // 60)} min"


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
