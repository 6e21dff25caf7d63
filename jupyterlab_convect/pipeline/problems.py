"""What is wrong with a pipeline, as data that an editor, a terminal and a test can read."""

from __future__ import annotations

import difflib
from collections.abc import Collection
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


_OTHER_WORDS = {
    **dict.fromkeys(("str", "text"), "string"),
    **dict.fromkeys(("float", "double", "real"), "number"),
    **dict.fromkeys(("list", "tuple"), "array"),
    **dict.fromkeys(("dict", "map"), "object"),
    "int": "integer",
    "bool": "boolean",
    **dict.fromkeys(("depends_on", "dependson", "needs", "requires", "upstream"), "after"),
}
"""What Python and other programs call the same thing."""


def did_you_mean(
    name: str, known: Collection[str], most: int = 100, suffix: str = ""
) -> str | None:
    """A hint for a name that is not there: the one that is most like it.

    Among more than `most` names nothing is looked for, because a document may hold
    thousands of mistakes and looking is slow. A suffix that all names have does not make
    them alike.
    """
    other = _OTHER_WORDS.get(name.lower())
    if other is not None and other in known:
        return f"Did you mean “{other}”?"
    stems = [item.removesuffix(suffix) for item in known] if len(known) <= most else []
    found = difflib.get_close_matches(name.removesuffix(suffix)[:80], stems, n=1)
    return f"Did you mean “{found[0]}{suffix}”?" if found else None
