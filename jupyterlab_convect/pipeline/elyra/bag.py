"""An Elyra object that is being emptied: whatever nobody takes out is kept and reported."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from ..document import shorten
from ..plan import Json
from ..problems import Problem

T = TypeVar("T")


Severity = Literal["warning", "info"]


class Unreadable(Exception):
    """A value has no meaning here; the words say why, as the end of a sentence."""

    def __init__(self, reason: str, severity: Severity = "warning") -> None:
        super().__init__(reason)
        self.severity: Severity = severity


@dataclass(slots=True)
class Bag:
    """Take values out by name. One that cannot be read goes to `unreadable`, with the reasons.

    Elyra's forms leave empty texts and lists behind; they say nothing and count as absent.
    """

    content: dict[str, Any]
    unreadable: dict[str, Any] = field(default_factory=dict)
    reasons: dict[str, list[Unreadable]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.content = {key: item for key, item in self.content.items() if not is_empty(item)}

    def take(self, key: str, read: Callable[[Json], T]) -> T | None:
        if key not in self.content:
            return None
        value = self.content.pop(key)
        try:
            return read(value)
        except Unreadable as problem:
            self.refuse(key, value, problem)
            return None

    def take_each(self, key: str, read: Callable[[Json], T]) -> list[T]:
        """The items of a list; those that cannot be read stay behind, alone."""
        taken: list[T] = []
        refused: list[Json] = []
        for item in self.take(key, as_list) or []:
            if is_empty(item):
                continue
            try:
                taken.append(read(item))
            except Unreadable as problem:
                refused.append(item)
                self.refuse(key, refused, problem)
        return taken

    def open(self, key: str) -> Bag:
        """An object inside as a bag of its own."""
        return Bag(self.take(key, as_object) or {})

    def refuse(self, key: str, value: Json, reason: Unreadable) -> None:
        self.unreadable[key] = value
        self.reasons.setdefault(key, []).append(reason)

    @property
    def kept(self) -> dict[str, Any]:
        return {**self.content, **self.unreadable}


def is_empty(value: Json) -> bool:
    return value is None or value in ("", [], {})


def as_text(value: Json) -> str:
    if not isinstance(value, str):
        raise Unreadable(f"{shorten(value)} is not a string")
    return value


def as_value_text(value: Json) -> str:
    """A text, also where somebody wrote a number or a truth value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else as_text(value)


def as_name(value: Json) -> str:
    """A name that an expression can hold."""
    name = as_text(value)
    if not all(name.split(".")) or any(character in "${}" for character in name):
        raise Unreadable(f"{shorten(name)} cannot be a name")
    return name


def as_literal(value: Json) -> Json:
    """A value that says itself. Ours have no way to write `${{` that is no expression."""
    if "${{" in json.dumps(value):
        raise Unreadable(f"{shorten(value)} would be an expression here")
    return value


def as_flag(value: Json) -> bool:
    match value:
        case bool():
            return value
        case "True" | "true":
            return True
        case "False" | "false":
            return False
    raise Unreadable(f"{shorten(value)} is neither true nor false")


def as_number(value: Json) -> float:
    """A number that is not below zero, also as a text."""
    try:
        number = float(value) if isinstance(value, str) else value
    except ValueError:
        number = None
    if not isinstance(number, int | float) or isinstance(number, bool) or not 0 <= number < 1e18:
        raise Unreadable(f"{shorten(value)} is not a number of 0 or more")
    return int(number) if number % 1 == 0 else number


def as_list(value: Json) -> list[Any]:
    if not isinstance(value, list):
        raise Unreadable(f"{shorten(value)} is not a list")
    return value


def as_object(value: Json) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Unreadable(f"{shorten(value)} is not an object")
    return value


KEPT = ("extra", "elyra")
SILENT = {"id", "version", "component_source"}
"""Kept for the record, and nothing to tell."""


class Report:
    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def keep(
        self,
        target: dict[str, Any],
        bags: Mapping[str, Bag],
        odd: Mapping[str, Json] | None = None,
        *,
        node: str | None = None,
        path: tuple[str, ...] = (),
    ) -> None:
        """Put what is left in the bags under `extra.elyra` of `target`, and say so.

        A name that two bags have gets the second bag's name in front of it.
        """
        kept = {key: item for key, item in (odd or {}).items() if not is_empty(item)}
        explained = set()
        for holder, bag in bags.items():
            for key, item in bag.kept.items():
                name = f"{holder}.{key}" if key in kept else key
                kept[name] = item
                if key in bag.reasons:
                    explained.add(name)
                    self._explain(bag.reasons[key], name, node, path)
        if kept:
            target["extra"] = {"elyra": kept}
        plain = sorted(kept.keys() - explained - SILENT)
        if plain:
            names = ", ".join(f"“{name}”" for name in plain)
            self.problems.append(
                Problem(
                    "info",
                    "elyra-kept",
                    f"{names} {'has' if len(plain) == 1 else 'have'} no equivalent here "
                    f"and {'is' if len(plain) == 1 else 'are'} set aside.",
                    node=node,
                    path=(*path, *KEPT),
                )
            )

    def _explain(
        self, reasons: list[Unreadable], name: str, node: str | None, path: tuple[str, ...]
    ) -> None:
        for reason in reasons:
            self.problems.append(
                Problem(
                    reason.severity,
                    "elyra-unreadable" if reason.severity == "warning" else "elyra-kept",
                    f"“{name}” is set aside because {reason}.",
                    node=node,
                    path=(*path, *KEPT, name),
                )
            )
