"""The files around a pipeline, each touched at most once."""

from __future__ import annotations

import glob
import hashlib
import itertools
import os
import posixpath
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ..errors import ConvectError
from .discovery import MAX_BYTES, Discovery, Reports, discover_content, reports, too_large
from .document import parse, read_file, unreadable
from .file_facts import FileFacts
from .patterns import find

if TYPE_CHECKING:
    from .types import Document

T = TypeVar("T")

MAX_MATCHES = 10_000
LONGEST_NAME = 255
_CHUNK = 1 << 20
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def join(folder: str, path: str) -> str | None:
    """`path` seen from `folder`, relative to the root; None when it leads out of the root."""
    if path.startswith(("/", "~")) or (len(path) > 1 and path[1] == ":"):
        return None
    joined = posixpath.normpath(posixpath.join(folder, path))
    return None if joined == ".." or joined.startswith("../") else joined


def path_fault(path: str) -> str | None:
    """Why no file can have this name, or match this pattern; None when one can."""
    if _CONTROL.search(path):
        return "contains a control character"
    if any(len(part.encode("utf-8", "surrogatepass")) > LONGEST_NAME for part in path.split("/")):
        return f"has a name longer than {LONGEST_NAME} bytes"
    return None


class FileCache:
    """What lies under `root`, remembered. All paths are relative to it, with `/`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._kinds: dict[str, str | None] = {}
        self._contents: dict[str, bytes | ConvectError] = {}
        self._digests: dict[str, str] = {}
        self._discoveries: dict[str, Discovery | ConvectError] = {}
        self._pipelines: dict[str, Document | ConvectError] = {}
        self._matches: dict[str, list[str]] = {}
        self._names: dict[str, list[str]] = {}

    def kind(self, path: str) -> str | None:
        """`file`, `folder`, or None when there is neither."""
        if path not in self._kinds:
            self._kinds[path] = _kind(self.root / path)
        return self._kinds[path]

    def names(self, folder: str) -> list[str]:
        """The names in a folder, no more than anybody would look through."""
        if folder not in self._names:
            try:
                with os.scandir(self.root / folder) as found:
                    self._names[folder] = [item.name for item in itertools.islice(found, 1000)]
            except (OSError, ValueError):
                self._names[folder] = []
        return self._names[folder]

    def digest(self, path: str) -> str:
        """The sha256 of a file's bytes."""
        if path not in self._digests:
            content = self._contents.get(path)
            digest = hashlib.sha256(content if isinstance(content, bytes) else b"")
            if not isinstance(content, bytes):
                try:
                    with (self.root / path).open("rb") as file:
                        while chunk := file.read(_CHUNK):
                            digest.update(chunk)
                except (OSError, ValueError) as error:
                    raise unreadable(path, error) from None
            self._digests[path] = f"sha256:{digest.hexdigest()}"
        return self._digests[path]

    def discovery(self, path: str) -> Discovery:
        """What a notebook or script says about itself; a ConvectError when it is not there."""
        return _remembered(
            self._discoveries,
            path,
            lambda: discover_content(posixpath.basename(path), self._content(path)),
        )

    def pipeline(self, path: str) -> Document:
        """Another pipeline; a ConvectError when it is not there or is none."""
        self.digest(path)  # by which it is found again, and a change of it is noticed
        return _remembered(self._pipelines, path, lambda: parse(self._content(path)))

    def reports(self, path: str) -> Reports:
        """What a notebook or script reports; nothing that is known when it cannot be read."""
        try:
            return reports(self.root / path, self._content(path))
        except (ConvectError, OSError):
            return Reports((), None, complete=False)

    def expand(self, pattern: str) -> list[str]:
        """The files that a glob, a file name or a folder name stands for, sorted."""
        if pattern not in self._matches:
            self._matches[pattern] = self._expand(pattern)
        return self._matches[pattern]

    def _expand(self, pattern: str) -> list[str]:
        kind = self.kind(pattern)
        if kind == "file":
            return [pattern]
        if kind is None and not glob.has_magic(pattern):
            return []
        if kind == "folder":
            pattern = posixpath.join(glob.escape(pattern), "**") if pattern != "." else "**"
        found = list(itertools.islice(find(self.root, pattern), MAX_MATCHES + 1))
        if len(found) > MAX_MATCHES:
            raise ConvectError(
                f"“{pattern}” matches more than {MAX_MATCHES} files.",
                code="too-many-files",
                hint="Name fewer files, or keep data on a volume.",
            )
        return sorted(
            path for path in found if "__pycache__" not in path and self.kind(path) == "file"
        )

    def _content(self, path: str) -> bytes:
        content = self._contents.get(path)
        if content is None:
            try:
                content = self._read(path)
                self._kinds[path] = "file"
                if len(content) > MAX_BYTES:
                    content = too_large(path)
            except ConvectError as error:
                content = error
                if error.code == "missing-file":
                    self._kinds[path] = None
            self._contents[path] = content
        if isinstance(content, ConvectError):
            raise content
        return content

    def _read(self, path: str) -> bytes:
        return read_file(self.root / path, path, MAX_BYTES)

    def facts(self) -> FileFacts:
        """What was looked up so far, for `PinnedFiles`."""
        return FileFacts({**self._kinds}, {**self._digests}, {**self._matches})


class PinnedFiles(FileCache):
    """What lay under `root` at an earlier moment, of which the `facts` are known.

    `read` gives content by its digest. Only what nobody had looked up then is looked up now.
    """

    def __init__(self, root: Path, facts: FileFacts, read: Callable[[str], bytes]) -> None:
        super().__init__(root)
        self._kinds.update(facts.kinds)
        self._digests.update(facts.digests)
        self._matches.update(facts.matches)
        self._read_digest = read

    def _read(self, path: str) -> bytes:
        digest = self._digests.get(path)
        return super()._read(path) if digest is None else self._read_digest(digest)


def _remembered(known: dict[str, T | ConvectError], path: str, read: Callable[[], T]) -> T:
    """What reading a file gave the first time, or the error that it raised."""
    found = known.get(path)
    if found is None:
        try:
            found = read()
        except ConvectError as error:
            found = error
        known[path] = found
    if isinstance(found, ConvectError):
        raise found
    return found


def _kind(path: Path) -> str | None:
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return None
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else None
