"""Checks of ids, links, groups and cycles."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .cycles import MAX_CYCLES, cycles, way
from .flow import Flow
from .problems import Path, Problem, did_you_mean

_ID = re.compile(r"[^\W][\w-]{0,62}")


def edges_of(nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """What each step and group comes after, among its siblings; links to nowhere left out."""
    return {name: list(before) for name, before in Flow(nodes).edges.items()}


def check_graph(document: Mapping[str, Any], known: set[str]) -> Iterator[Problem]:
    """`known` are the ids of all nodes, those that could not be read included."""
    nodes = document.get("nodes", {})
    groups = {name for name, node in nodes.items() if node.get("kind") == "group"}
    flow = Flow(nodes)
    yield from _check_ids(document, known)
    for name, node in nodes.items():
        for index, other in enumerate(node.get("after", ())):
            if other not in known:
                yield _nowhere(other, known, name, ("after", index))
            elif other in flow.around(name):
                yield Problem(
                    "error",
                    "after-own-group",
                    f"Node “{name}” comes after “{other}”, but it is a member of it.",
                    name,
                    ("after", index),
                    "Name the members of the group that it has to wait for.",
                )
            elif node.get("kind") == "group" and name in flow.around(other):
                yield Problem(
                    "error",
                    "after-own-group",
                    f"Group “{name}” comes after “{other}”, which is a member of it.",
                    name,
                    ("after", index),
                    "Remove the link.",
                )
            elif other == name and flow.is_plain(name):
                sentence = f"Node “{name}” waits for itself."
                yield Problem("error", "cycle", sentence, name, ("after",), "Remove the link.")
    yield from _check_groups(nodes, groups, known)
    for name, comment in document.get("comments", {}).items():
        for index, other in enumerate(comment.get("about", ())):
            if other not in known:
                yield Problem(
                    "warning",
                    "unknown-node",
                    f"A comment is about “{other}”, but there is no such node.",
                    None,
                    ("comments", name, "about", index),
                    did_you_mean(other, known),
                )
    edges = {
        name: [other for other in before if other != name or not _has_own_sentence(name, flow)]
        for name, before in flow.edges.items()
    }
    found = cycles(edges)
    yield from (_cycle(cycle, flow) for cycle in found)
    if len(found) == MAX_CYCLES:
        words = f"There may be more cycles than the {MAX_CYCLES} that are listed."
        yield Problem("info", "more-cycles", words, hint="Check again when these are gone.")


def _has_own_sentence(name: str, flow: Flow) -> bool:
    """Whether a group waits for itself because of something in it, or of its own rule."""
    return flow.is_scope(name) and not any(
        need.node == name and need.path[0] not in ("when", "for_each") for need in flow.needs(name)
    )


def _cycle(cycle: list[str], flow: Flow) -> Problem:
    links = [flow.link(name, cycle[index - 1]) for index, name in enumerate(cycle)]
    hint = "Remove one of the links." if len(cycle) > 1 else "Remove the link."
    for name, path in links:
        if path[0] != "after":
            place = ".".join(map(str, path))
            hint = f"Remove one of the links, or the expression in “{place}” of “{name}”."
    return Problem(
        "error",
        "cycle",
        f"These nodes wait for each other: {way(cycle)}."
        if len(cycle) > 1
        else f"Node “{cycle[0]}” waits for itself.",
        cycle[0],
        ("after",) if links[0][1][0] == "after" else links[0][1],
        hint,
    )


def _check_ids(document: Mapping[str, Any], known: set[str]) -> Iterator[Problem]:
    for name in sorted(known):
        if not _ID.fullmatch(name):
            yield Problem(
                "error",
                "bad-id",
                f"“{name[:60]}” cannot be the id of a node.",
                name,
                (),
                f"{_suggestion(name)}An id has up to 63 letters, digits, “_” and “-”, and does not "
                "start with “-”.",
            )
    for name in document.get("comments", {}):
        if name in known:
            yield Problem(
                "error",
                "duplicate-id",
                f"“{name}” is the id of a node and of a comment.",
                None,
                ("comments", name),
                "Rename the comment: both have a place in “layout”.",
            )


def _suggestion(name: str) -> str:
    plain = re.sub(r"[^\w-]+", "-", name).strip("-")[:63]
    return f"Use “{plain}”, for example. " if _ID.fullmatch(plain) else ""


def _check_groups(
    nodes: Mapping[str, Mapping[str, Any]], groups: set[str], known: set[str]
) -> Iterator[Problem]:
    home: dict[str, str] = {}
    for name in sorted(groups):
        for index, member in enumerate(nodes[name].get("members", ())):
            if member not in known:
                yield _nowhere(member, known, name, ("members", index))
            elif member in home:
                yield Problem(
                    "error",
                    "two-groups",
                    f"Node “{member}” is a member of “{home[member]}” and of “{name}”.",
                    name,
                    ("members", index),
                    "A node can be in only one group.",
                )
            else:
                home[member] = name
    nesting = {name: [home[name]] if name in home else [] for name in groups}
    for cycle in cycles(nesting):
        yield Problem(
            "error",
            "cycle",
            f"Group “{cycle[0]}” is inside itself.",
            cycle[0],
            ("members",),
            "Remove it from the members.",
        )


def _nowhere(name: str, known: set[str], node: str, path: Path) -> Problem:
    return Problem(
        "error",
        "unknown-node",
        f"Node “{node}” refers to “{name[:60]}”, but there is no such node.",
        node,
        path,
        did_you_mean(name, known),
    )
