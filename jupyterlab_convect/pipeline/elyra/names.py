"""Readable ids, the same for the same file on every machine."""

from __future__ import annotations

import re
import unicodedata

LONGEST = 60


class Names:
    """Gives each thing an id that no other has, also where case does not count."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}

    def choose(self, wish: str, otherwise: str) -> str:
        """An id made of `wish`, or of `otherwise` when nothing is left of it."""
        stem = slug(wish) or otherwise
        key, name = stem.casefold(), stem
        while name.casefold() in self._taken:
            number = self._next.get(key, 2)
            self._next[key] = number + 1
            name = f"{stem}-{number}"
        self._taken.add(name.casefold())
        return name


def slug(text: str) -> str:
    """Letters, digits, `_` and `-` of a text."""
    plain = unicodedata.normalize("NFC", text)
    return re.sub(r"\W+", "-", plain).strip("-")[:LONGEST].rstrip("-")
