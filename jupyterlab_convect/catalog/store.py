"""The pinned store: what was imported stays as it was until somebody takes an update.

```
<store>/
  catalogs/<id>.json    how the catalog is configured, and what is in it
  texts/<digest>        every text that was imported, as it came
  components/<digest>   what was read from it, complete: a graph with all of its parts
  approvals/<digest>    the commands that may run without a container
```
Nothing is fetched when it is read, so it works offline. Files are replaced
whole; the newest writer wins.
"""

from __future__ import annotations

import difflib
import json
import re
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from ..errors import Conflict, ConvectError, Missing
from ..pipeline.plan import from_json, to_json
from ..pipeline.problems import did_you_mean
from .approvals import Approvals
from .entries import (
    SHIPPED,
    CatalogEntry,
    RefreshProgress,
    Shelf,
    broken,
    categories_of,
    check_catalog,
    matches,
    merge,
)
from .fetch import Fetcher, Policy, check_url
from .model import Component, UnreadableComponent, component_from_json
from .read import read
from .sources import (
    Catalog,
    Text,
    authorization,
    check_options,
    fingerprint,
    hosts_of,
    reader,
    source_of,
)
from .store_files import read_json, write, write_json

T = TypeVar("T")

LOOK_AGAIN = 2.0
"""How long a look at the files of a watched folder stays true, in seconds."""


@dataclass(slots=True)
class _FolderLook:
    shelf: Shelf
    stamp: tuple[int, int]
    looked: float = 0.0


class CatalogStore:
    """All methods may block and may be called from any thread."""

    def __init__(self, folder: Path, policy: Policy | None = None) -> None:
        self.folder = folder
        self.policy = policy or Policy()
        self.progress: dict[str, RefreshProgress] = {}
        """How far the refreshes that are under way have come, by catalog."""
        self.approvals = Approvals(folder)
        self._lock = threading.RLock()
        self._looks: dict[str, _FolderLook] = {}

    def catalogs(self) -> list[Shelf]:
        """Every catalog, the one that ships first. Folders and files are looked at again."""
        names = sorted(path.stem for path in (self.folder / "catalogs").glob("*.json"))
        ordered = [SHIPPED.id, *(name for name in names if name != SHIPPED.id)]
        shelves = []
        for name in ordered:
            try:
                shelves.append(self.catalog(name))
            except Missing:
                continue
            except ConvectError as error:
                broken_one = Catalog(id=name, name=name, kind="damaged")
                shelves.append(Shelf(broken_one, error=error.to_json()))
        return shelves

    def catalog(self, catalog_id: str) -> Shelf:
        return self._follow(self._shelf(catalog_id))

    def add(self, catalog: Catalog) -> Shelf:
        """A new catalog, still empty: `refresh` fills it."""
        check_catalog(catalog)
        source_of(catalog.kind)
        check_options(catalog)
        with self._lock:
            if self._load(catalog.id) is not None or catalog.id == SHIPPED.id:
                raise Conflict(f"A catalog “{catalog.id}” already exists.")
            return self._save(Shelf(catalog))

    def configure(self, catalog: Catalog) -> Shelf:
        """Change how a catalog is configured; what it has pinned stays."""
        check_catalog(catalog)
        check_options(catalog)
        _refuse_shipped(catalog.id)
        with self._lock:
            shelf = self.catalog(catalog.id)
            entries = tuple(
                replace(
                    entry,
                    categories=categories_of(self.component(entry.digest), catalog.categories)
                    if entry.digest
                    else catalog.categories,
                )
                for entry in shelf.entries
            )
            return self._save(replace(shelf, catalog=catalog, entries=entries, fingerprint=None))

    def remove(self, catalog_id: str) -> None:
        """Forget a catalog. Texts stay: other catalogs and runs may share them."""
        _refuse_shipped(catalog_id)
        with self._lock:
            if not self._path(catalog_id).exists():
                raise Missing(f"There is no catalog “{catalog_id}”.", code="no-such-catalog")
            self._path(catalog_id).unlink()
            self._looks.pop(catalog_id, None)

    def refresh(self, catalog_id: str) -> Shelf:
        """Read the catalog's source again.

        What is new is pinned, what has changed becomes an update that can be
        taken, what has gone or cannot be read keeps what was pinned. A source
        that cannot be read at all is an error of the catalog, not of the call.
        Files on this machine are followed at once.
        """
        catalog = self._shelf(catalog_id).catalog
        mark = fingerprint(catalog)
        found: list[CatalogEntry] = []
        failure: ConvectError | None = None
        self.progress[catalog_id] = RefreshProgress(0, len(catalog.urls) or 1)
        try:
            fetcher = self._fetcher(catalog)
            for number, text in enumerate(source_of(catalog.kind)(catalog, fetcher), 1):
                found += self._import(catalog, text, fetcher)
                total = text.total if isinstance(text, Text) else 0
                self.progress[catalog_id] = RefreshProgress(number, max(total, number))
        except ConvectError as error:
            failure = error
        except OSError as error:
            failure = ConvectError(f"{catalog.path} cannot be read: {error.strerror}.")
        finally:
            self.progress.pop(catalog_id, None)
        with self._lock:
            shelf = self._shelf(catalog_id)
            entries = merge(shelf.entries, found, follow=mark is not None, complete=failure is None)
            return self._save(
                replace(
                    shelf,
                    entries=tuple(entries),
                    refreshed=time.time(),
                    error=failure.to_json() if failure else None,
                    fingerprint=mark,
                )
            )

    def refresh_due(self) -> list[str]:
        """Refresh every catalog that wants to be by now; their ids. Nothing new is taken by it."""
        now = time.time()
        due = [
            shelf.catalog.id
            for shelf in self.catalogs()
            if shelf.catalog.refresh is not None
            and shelf.catalog.id not in self.progress
            and now - (shelf.refreshed or 0) >= shelf.catalog.refresh
        ]
        for catalog_id in due:
            with suppress(Missing):
                self.refresh(catalog_id)
        return due

    def take(self, catalog_id: str, digests: Iterable[str] | None = None) -> Shelf:
        """Pin the updates with these digests (of the new text), or all there are."""
        wanted = None if digests is None else set(digests)
        with self._lock:
            shelf = self.catalog(catalog_id)
            offered = {entry.update for entry in shelf.entries}
            if wanted is not None and not wanted <= offered:
                raise Missing("There is no such update.", code="no-such-update")
            entries = tuple(
                _describe(entry, self.component(entry.update))
                if entry.update and (wanted is None or entry.update in wanted)
                else entry
                for entry in shelf.entries
            )
            return self._save(replace(shelf, entries=entries))

    def difference(self, old: str, new: str) -> str:
        """What changes between two components, as a unified diff.

        Of their texts; of what they are made of where only a reference of a graph changed.
        """
        texts = [self.text(digest) for digest in (old, new)]
        if texts[0] == texts[1] and old != new:
            parts = [to_json(self.component(digest)) for digest in (old, new)]
            texts = [json.dumps(part, indent=1, ensure_ascii=False) + "\n" for part in parts]
        before, after = (text.splitlines(keepends=True) for text in texts)
        names = (f"pinned ({old[:19]})", f"new ({new[:19]})")
        return "".join(difflib.unified_diff(before, after, *names))

    def entries(
        self, text: str = "", catalog: str | None = None, category: str | None = None
    ) -> list[CatalogEntry]:
        """The components that match every word of `text`, by name; broken ones come last."""
        words = text.casefold().split()
        shelves = [self.catalog(catalog)] if catalog else self.catalogs()
        found = [
            entry
            for shelf in shelves
            for entry in shelf.entries
            if (category is None or category in entry.categories) and matches(entry, words)
        ]
        return sorted(found, key=lambda entry: (not entry.digest, entry.name.casefold()))

    def find(self, name: str) -> CatalogEntry:
        """The one component with this name, digest (or its beginning) or source."""
        entries = [entry for entry in self.entries() if entry.digest]
        found = [
            entry
            for entry in entries
            if name in (entry.name, entry.source, f"{entry.catalog}/{entry.name}")
            or (len(name) >= 8 and entry.digest.removeprefix("sha256:").startswith(_hex(name)))
        ] or [entry for entry in entries if entry.name.casefold() == name.casefold()]
        if not found:
            raise Missing(
                f"There is no component “{name}”.",
                code="no-such-component",
                hint=did_you_mean(name, [entry.name for entry in entries], most=10_000),
            )
        if len({entry.digest for entry in found}) > 1:
            choices = ", ".join(
                f"{_hex(entry.digest)[:12]} ({entry.source})" for entry in found[:5]
            )
            raise ConvectError(
                f"“{name}” is the name of several components: {choices}.",
                hint="Give the digest of the one you mean.",
            )
        return found[0]

    def component(self, digest: str) -> Component:
        """The complete definition of a component that was imported once."""
        value = read_json(self._content("components", digest))
        if value is None:
            raise Missing(f"There is no component {digest[:19]}.", code="no-such-component")
        return component_from_json(value)

    def text(self, digest: str) -> str:
        try:
            return self._content("texts", digest).read_text("utf-8", "replace")
        except OSError:
            raise Missing(
                f"The text of {digest[:19]} is not stored.", code="no-such-component"
            ) from None

    def keep(self, component: Component, data: bytes) -> None:
        """Store a definition and its text under the digest of the component."""
        text = self._content("texts", component.digest)
        if not text.exists():
            write(text, data)
        definition = self._content("components", component.digest)
        value = to_json(component)
        # A newer version of ours may read the same text better.
        if not definition.exists() or read_json(definition) != value:
            write_json(definition, value)

    def _shelf(self, catalog_id: str) -> Shelf:
        """What is stored of a catalog; the one that ships is there even when it is not."""
        shelf = self._load(catalog_id)
        if shelf is None and catalog_id != SHIPPED.id:
            raise Missing(f"There is no catalog “{catalog_id}”.", code="no-such-catalog")
        return shelf or Shelf(SHIPPED)

    def _follow(self, shelf: Shelf) -> Shelf:
        """Files on this machine are watched: a change is seen by the next one who looks."""
        catalog_id = shelf.catalog.id
        look = self._looks.get(catalog_id)
        if look is not None:
            if catalog_id in self.progress or time.monotonic() - look.looked < LOOK_AGAIN:
                return shelf
            look.looked = time.monotonic()
        mark = fingerprint(shelf.catalog)
        return shelf if mark in (None, shelf.fingerprint) else self.refresh(catalog_id)

    def _fetcher(self, catalog: Catalog) -> Fetcher:
        until = time.monotonic() + self.policy.catalog_timeout
        if catalog.auth is None:
            return Fetcher(self.policy, until=until)
        hosts = hosts_of(catalog)
        if any(check_url(url).scheme == "http" for url in catalog.urls) and not all(
            self.policy.opens(host) for host in hosts
        ):
            raise ConvectError(
                f"The catalog “{catalog.name}” would send its secret over an unencrypted "
                "connection.",
                hint="Use https.",
            )
        return Fetcher(self.policy, authorization(catalog.auth), hosts, until)

    def _import(
        self, catalog: Catalog, text: Text | UnreadableComponent, fetcher: Fetcher
    ) -> list[CatalogEntry]:
        if isinstance(text, UnreadableComponent):
            return [broken(catalog, text.file, 0, text)]
        fetch = reader(catalog, fetcher)
        reading = read(text.data, text.source, fetch=fetch, replacements=catalog.replacements)
        entries = []
        for part, component in enumerate(reading.components):
            self.keep(component, reading.texts[part])
            entry = CatalogEntry(catalog.id, text.source, part, categories=catalog.categories)
            entries.append(_describe(entry, component))
        for number, error in enumerate(reading.errors, len(entries)):
            entries.append(broken(catalog, text.source, number, error))
        return entries

    def _load(self, catalog_id: str) -> Shelf | None:
        path = self._path(catalog_id)
        try:
            status = path.stat()
        except OSError:
            return None
        stamp = (status.st_mtime_ns, status.st_size)
        look = self._looks.get(catalog_id)
        if look is not None and look.stamp == stamp:
            return look.shelf
        value = read_json(path)
        try:
            shelf = from_json(Shelf, value)
            check_catalog(shelf.catalog)
        except (AttributeError, TypeError, ValueError):
            raise ConvectError(
                f"The catalog “{catalog_id}” is damaged.", hint=f"Remove {path} and add it again."
            ) from None
        self._looks[catalog_id] = _FolderLook(shelf, stamp, look.looked if look else 0.0)
        return shelf

    def _save(self, shelf: Shelf) -> Shelf:
        write_json(self._path(shelf.catalog.id), to_json(shelf))
        return shelf

    def _path(self, catalog_id: str) -> Path:
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,62}", catalog_id):
            raise Missing(f"There is no catalog “{catalog_id}”.", code="no-such-catalog")
        return self.folder / "catalogs" / f"{catalog_id}.json"

    def _content(self, kind: str, digest: str) -> Path:
        if not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
            raise Missing(f"“{digest[:80]}” is not a digest.", code="no-such-component")
        return self.folder / kind / digest.removeprefix("sha256:")


def _describe(entry: CatalogEntry, component: Component) -> CatalogEntry:
    return replace(
        entry,
        digest=component.digest,
        name=component.name,
        description=component.description.strip()[:400],
        format=component.format,
        image=component.container.image if component.container else "",
        inputs=tuple(item.name for item in component.inputs),
        outputs=tuple(item.name for item in component.outputs),
        categories=categories_of(component, entry.categories),
        update=None,
        gone=False,
        error=None,
    )


def _refuse_shipped(catalog_id: str) -> None:
    if catalog_id == SHIPPED.id:
        raise Conflict("The included components cannot be changed.")


def _hex(digest: str) -> str:
    return digest.removeprefix("sha256:").lower()
