"""What is wrong with a pipeline, as data that an editor, a terminal and a test can read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Path = tuple[str | int, ...]
"""The way to a value in a document: keys, and indexes of lists."""


@dataclass(frozen=True, slots=True)
class Problem:
    severity: Literal["error", "warning", "info"]
    code: str
    """Stable, kebab-case, for programs."""
    message: str
    """One sentence for people."""
    node: str | None = None
    path: Path = ()
    """Where in the document, from the node (or from the top, when there is no node)."""
    hint: str | None = None
    """What to do about it."""
