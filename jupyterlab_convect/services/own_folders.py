"""Folders of this user among those of a runs folder, each with a JSON file that says what it is."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from ..errors import Conflict, ConvectError, Missing, words_of
from ..json_text import loads
from ..pipeline.plan import from_json
from ..runs.store import Store
from ..safe_files import PRIVATE, is_shared, make_folder, owner_of, read_regular

LONGEST_ID = 63
_ID = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")

T = TypeVar("T")


def require_id(wanted: str, code: str) -> str:
    """The id, if it can be one; `code` is that of the error."""
    if not _is_id(wanted):
        raise ConvectError(
            f"{wanted[:80]!r} cannot be an id.",
            code=code,
            hint=f"It is part of a URL: up to {LONGEST_ID} lowercase letters, digits and hyphens.",
        )
    return wanted


def _is_id(text: str) -> bool:
    return len(text) <= LONGEST_ID and _ID.fullmatch(text) is not None


class OwnFolders:
    def __init__(
        self, store: Store, name: str, file: str, missing: Callable[[str], Missing]
    ) -> None:
        self._store = store
        self._folder = store.folder / name
        self._file = file
        self._missing = missing

    def folder(self, item_id: str) -> Path:
        return self._folder / item_id

    def ids(self) -> Iterator[str]:
        """The names of all that are there, of anybody, in order."""
        with contextlib.suppress(FileNotFoundError):
            yield from sorted(entry.name for entry in os.scandir(self._folder))

    def read(self, item_id: str, kind: type[T]) -> T:
        """What the file says. Missing when there is none, or none of this user."""
        folder = self.folder(item_id)
        if not _is_id(item_id) or folder.is_symlink():
            raise self._missing(item_id)
        try:
            data = read_regular(folder / self._file)
        except OSError:
            raise self._missing(item_id) from None
        owner = owner_of(folder / self._file)
        if owner is None or not self._store.is_own_folder(folder, [owner]):
            raise self._missing(item_id)
        try:
            return from_json(kind, loads(data))
        except (ValueError, TypeError, KeyError):
            raise Conflict(f"{self._file} of {item_id} is damaged.") from None

    def is_own(self, item_id: str) -> bool:
        folder = self.folder(item_id)
        return self._store.is_own_folder(folder) and not folder.is_symlink()

    def make(self, item_id: str) -> Path:
        make_folder(self._folder, 0o3770 if is_shared(self._store.folder) else PRIVATE)
        make_folder(self.folder(item_id), PRIVATE)
        return self.folder(item_id)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """ConvectError when the disk does not take what is written."""
        try:
            yield
        except FileExistsError:
            raise
        except OSError as error:
            raise ConvectError(
                f"{self._folder} cannot be written: {words_of(error)}.", code="unwritable"
            ) from None
