"""What waits for what: nodes, groups with and without a rule, and the edges that cross them.

A group without a rule is transparent: what is before or after it is before or after all of its
members. A group with a rule, and another pipeline, is a scope: an edge that crosses its border
is one of the whole group, up to the scope that both ends have in common.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import ConvectError
from .expressions import Reference, parse, texts, weighed_references
from .problems import Path

Node = Mapping[str, Any]

EXPRESSIVE = ("parameters", "env", "command", "inputs")
"""The properties of a node in which expressions are bound when it starts."""


def has_rule(node: Node) -> bool:
    """Whether it is decided while a run goes on if, or how often, it runs."""
    if node.get("disabled") or node.get("run_if", "succeeded") != "succeeded":
        return True
    return "when" in node or "for_each" in node


def used_outputs(node: Node) -> Iterator[tuple[Path, Reference]]:
    """The outputs of nodes that the readable expressions of a node use, and where each stands."""
    return (
        (path, reference)
        for path, reference, _ in weighed_references_of(node)
        if reference.kind == "nodes" and reference.of == "outputs"
    )


def expressive_texts(node: Node) -> Iterator[tuple[Path, str]]:
    """The texts of a node that may hold expressions and do, and where each stands."""
    for key in (*EXPRESSIVE, "when", "for_each"):
        if key in node:
            yield from ((path, text) for path, text in texts(node[key], (key,)) if "${{" in text)


def weighed_references_of(node: Node) -> Iterator[tuple[Path, Reference, bool]]:
    """All that they refer to, and whether the node does without the value, an option of `first`."""
    for path, text in expressive_texts(node):
        with contextlib.suppress(ConvectError):
            for part in parse(text):
                if not isinstance(part, str):
                    yield from ((path, *each) for each in weighed_references(part))


@dataclass(frozen=True, slots=True)
class Need:
    """A node comes after another, because `after` or the expression at `path` says so."""

    path: Path
    node: str
    is_weak: bool = False
    """It goes on without it, when it is skipped by a rule."""


class Flow:
    """The nodes of one document, and how they depend on each other."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self.nodes = nodes
        self.home: dict[str, str] = {}
        """The group that each node is in."""
        for name, node in nodes.items():
            for member in node.get("members", ()) if node.get("kind") == "group" else ():
                self.home.setdefault(member, name)

    def is_scope(self, name: str) -> bool:
        node = self.nodes.get(name, {})
        kind = node.get("kind")
        return kind == "pipeline" or (kind == "group" and has_rule(node))

    def is_plain(self, name: str) -> bool:
        """Whether it is a group without a rule."""
        return self.nodes.get(name, {}).get("kind") == "group" and not self.is_scope(name)

    def around(self, name: str) -> Iterator[str]:
        """The groups that a node is in, the innermost first."""
        seen = {name}
        while (above := self.home.get(name)) is not None and above not in seen:
            yield above
            seen.add(above)
            name = above

    def scopes(self, name: str) -> list[str]:
        """The groups with a rule that a node is in, the innermost first."""
        return [group for group in self.around(name) if self.is_scope(group)]

    def scope(self, name: str) -> str | None:
        return next(iter(self.scopes(name)), None)

    @functools.cached_property
    def children(self) -> dict[str | None, list[str]]:
        """The units of each scope, by its id; None for those that are in none."""
        found: dict[str | None, list[str]] = {}
        for name in self.units:
            found.setdefault(self.scope(name), []).append(name)
        return found

    @property
    def units(self) -> list[str]:
        """All that becomes a step or a group of a plan."""
        return [name for name in self.nodes if not self.is_plain(name)]

    def members(self, name: str) -> list[str]:
        """The units in a group without a rule, however deep in others."""
        found: dict[str, None] = {}
        left, seen = [name], {name}
        while left:
            for member in self.nodes[left.pop()].get("members", ()):
                if member in self.nodes and member not in seen:
                    seen.add(member)
                    if self.is_plain(member):
                        left.append(member)
                    else:
                        found[member] = None
        return list(found)

    def needs(self, name: str) -> list[Need]:
        """What a node says itself that it comes after."""
        node = self.nodes[name]
        named = [Need(("after", index), other) for index, other in enumerate(node.get("after", ()))]
        return named + [
            Need(path, reference.node, is_weak)
            for path, reference, is_weak in weighed_references_of(node)
            if reference.node is not None
        ]

    def lifted(self, name: str, other: str) -> tuple[str, str] | None:
        """The siblings whose order follows from that of two units; None when one is in the other.

        The same twice when a group would wait for something in it.
        """
        own, others = [name, *self.scopes(name)], [other, *self.scopes(other)]
        if other in own[1:]:
            return None
        common = next((scope for scope in own[1:] if scope in others[1:]), None)

        def below(chain: list[str]) -> str:
            return chain[chain.index(common) - 1] if common is not None else chain[-1]

        return below(own), below(others)

    @functools.cached_property
    def edges(self) -> dict[str, dict[str, bool]]:
        """What each unit waits for among its siblings, and whether it can do without it."""
        found: dict[str, dict[str, bool]] = {name: {} for name in self.units}
        for name in self.units:
            scope = self.scope(name)
            for source in (name, *self.around(name)):
                if source == scope:
                    break
                for need in self.needs(source):
                    self._add(found, name, need)
        return {name: dict(sorted(before.items())) for name, before in found.items()}

    def _add(self, found: dict[str, dict[str, bool]], name: str, need: Need) -> None:
        for one, other in self._pairs(name, need):
            found[one][other] = found[one].get(other, True) and need.is_weak

    def _pairs(self, name: str, need: Need) -> Iterator[tuple[str, str]]:
        """The siblings that a need of a unit puts in order."""
        if need.node not in self.nodes:
            return
        for other in self.members(need.node) if self.is_plain(need.node) else [need.node]:
            pair = self.lifted(name, other)
            if pair is not None and not (pair[0] == pair[1] and need.node != other):
                yield pair

    def link(self, name: str, before: str) -> tuple[str, Path]:
        """The node and the place that make one sibling wait for another."""
        inside = [name]
        if self.is_scope(name):
            inside += [each for each in self.units if name in self.scopes(each)]
        for unit in inside:
            scope = self.scope(unit)
            for source in (unit, *self.around(unit)):
                if source == scope:
                    break
                for need in self.needs(source):
                    if (name, before) in self._pairs(unit, need):
                        return source, need.path
        return name, ("after",)
