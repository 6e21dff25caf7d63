"""What an import tells the user, and where it keeps what has no twin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..plan import Json
from ..problems import Problem
from .bag import Bag, Unreadable, is_empty

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
                    f"{names} {'has' if len(plain) == 1 else 'have'} no meaning here and "
                    f"{'is' if len(plain) == 1 else 'are'} kept aside.",
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
                    f"“{name}” is kept aside, because {reason}.",
                    node=node,
                    path=(*path, *KEPT, name),
                )
            )
