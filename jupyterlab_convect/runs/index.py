"""Answers questions about many runs without opening their folders.

The index is a SQLite file on a disk of this machine. It holds nothing that is not
in the run folders: it is thrown away and made again when it is missing or damaged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..pipeline.plan import Json
from .model import State

SORTS = ("created", "started", "ended", "name", "state", "runtime", "path")


@dataclass(frozen=True, slots=True)
class Query:
    """Which runs, in which order, and which page of them."""

    states: tuple[State, ...] = ()
    name: str | None = None
    """The exact name, or a pattern with `*`."""
    runtime: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None
    """Words that all have to occur in name, path, parameters, note or labels."""
    path: str | None = None
    sweep: str | None = None
    since: float | None = None
    until: float | None = None
    sort: str = "-created"
    """One of SORTS, with `-` in front for the other way round."""
    limit: int = 50
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    runs: list[dict[str, Json]]
    """Summaries, as `views.summary` makes them."""
    total: int
    """How many there are on all pages."""
    counts: dict[str, int]
    """How many there are of each state, whatever `states` asks for."""


class Index:
    """`path` is a file on a local disk; several processes may share it."""

    def __init__(self, path: Path) -> None:
        self.path = path
