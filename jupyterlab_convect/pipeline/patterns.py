"""Finds the files that a pattern means, whatever folders and links there are."""

from __future__ import annotations

import fnmatch
import glob
import os
import posixpath
from collections.abc import Iterator
from pathlib import Path

from ..errors import ConvectError

MOST_LOOKED_AT = 1_000_000


def find(root: Path, pattern: str) -> Iterator[str]:
    """The names of what matches, as a shell finds it: hidden files only where they are named.

    `**` follows links, but not into a folder that it is in already.
    """
    search = _Search(root, pattern)
    try:
        yield from search.below("", posixpath.normpath(pattern).split("/"))
    except RecursionError:
        raise search.too_many() from None


class _Search:
    def __init__(self, root: Path, pattern: str) -> None:
        self._root = root
        self._pattern = pattern
        self._looked_at = 0

    def below(self, folder: str, parts: list[str]) -> Iterator[str]:
        part, rest = parts[0], parts[1:]
        if part == "**":
            yield from self._everywhere(folder, rest, frozenset())
        elif not glob.has_magic(part):
            name = posixpath.join(folder, part)
            if (self._root / name).exists():
                yield from self.below(name, rest) if rest else [name]
        else:
            for entry in self._entries(folder):
                is_hidden = entry.name.startswith(".") and not part.startswith(".")
                if not is_hidden and fnmatch.fnmatchcase(entry.name, part):
                    name = posixpath.join(folder, entry.name)
                    if not rest:
                        yield name
                    elif _is_folder(entry):
                        yield from self.below(name, rest)

    def _everywhere(
        self, folder: str, rest: list[str], above: frozenset[tuple[int, int]]
    ) -> Iterator[str]:
        """What matches `rest` in the folder and in all below it; all files without `rest`."""
        try:
            status = (self._root / folder).stat()
        except OSError:
            return
        this = (status.st_dev, status.st_ino)
        if this in above:
            return
        if rest:
            yield from self.below(folder, rest)
        for entry in self._entries(folder):
            if not entry.name.startswith("."):
                name = posixpath.join(folder, entry.name)
                if _is_folder(entry):
                    yield from self._everywhere(name, rest, above | {this})
                elif not rest:
                    yield name

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self._root / folder) as entries:
                found = list(entries)
        except OSError:
            return []
        self._looked_at += 1 + len(found)
        if self._looked_at > MOST_LOOKED_AT:
            raise self.too_many()
        return found

    def too_many(self) -> ConvectError:
        return ConvectError(
            f"There are too many files to look for “{self._pattern}” among them.",
            code="too-many-files",
            hint="Choose a narrower pattern.",
        )


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False) or (entry.is_symlink() and Path(entry.path).is_dir())
