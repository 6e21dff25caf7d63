"""What a catalog holds, as data: entries, how a refresh changes them, and how they are found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..errors import ConvectError
from ..pipeline.plan import Json, from_json
from .fetch import check_url
from .model import Component, UnreadableComponent
from .sources import MAX_FILES, Catalog

LEAST_REFRESH = 60
"""No address is asked more often by itself, in seconds."""

SHIPPED = Catalog(id="shipped", name="Included", kind="shipped")


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One component of a catalog, as lists show it; or why there is none."""

    catalog: str
    source: str
    part: int = 0
    """Which one it is in a file of several."""
    digest: str = ""
    """What is pinned; empty when it could not be read so far."""
    name: str = ""
    description: str = ""
    format: str = ""
    image: str = ""
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    update: str | None = None
    """The digest of a newer text that can be taken."""
    gone: bool = False
    """Whether it is no longer where it came from; what is pinned keeps working."""
    error: Mapping[str, Json] | None = None
    """File, line, reason and hint of what was wrong when it was last read."""

    @property
    def key(self) -> tuple[str, int]:
        return (self.source, self.part)


@dataclass(frozen=True, slots=True)
class RefreshProgress:
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Shelf:
    """A catalog with what is in it: the content of its file."""

    catalog: Catalog
    entries: tuple[CatalogEntry, ...] = ()
    refreshed: float | None = None
    error: Mapping[str, Json] | None = None
    """Why nothing could be read at the last refresh."""
    fingerprint: str | None = None


def merge(
    old: Sequence[CatalogEntry], found: Sequence[CatalogEntry], *, follow: bool, complete: bool
) -> list[CatalogEntry]:
    """What a catalog holds after a refresh, in the order of its source."""
    before = {entry.key: entry for entry in old}
    merged = []
    for entry in found:
        pinned = before.pop(entry.key, None)
        if pinned is None or not pinned.digest or (follow and entry.digest):
            merged.append(entry)
        elif entry.error is not None:
            merged.append(replace(pinned, error=entry.error, gone=False))
        elif entry.digest == pinned.digest:
            merged.append(entry)
        else:
            merged.append(replace(pinned, update=entry.digest, error=None, gone=False))
    kept = [entry for entry in before.values() if entry.digest]
    if complete and follow:
        return merged
    return merged + [replace(entry, gone=True) if complete else entry for entry in kept]


def new_catalog_id(name: str, taken: Iterable[str]) -> str:
    """A short id from a name, unlike those that are taken."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:50] or "catalog"
    used = {*taken, SHIPPED.id}
    return next(
        candidate
        for candidate in (slug, *(f"{slug}-{number}" for number in range(2, len(used) + 3)))
        if candidate not in used
    )


def catalog_from_json(value: Mapping[str, Json]) -> Catalog:
    """A catalog's configuration as the panel and the command line give it, checked."""
    try:
        catalog = from_json(Catalog, dict(value))
        check_catalog(catalog)
    except (AttributeError, TypeError, ValueError):
        raise ConvectError("The configuration of the catalog is malformed.") from None
    return catalog


def check_catalog(catalog: Catalog) -> None:
    texts = (catalog.id, catalog.name, catalog.kind, *catalog.urls, *catalog.categories)
    if not all(isinstance(item, str) for item in texts) or not catalog.name.strip():
        raise ConvectError("A catalog needs a name, and its addresses and categories are strings.")
    if catalog.refresh is not None and not LEAST_REFRESH <= catalog.refresh < float("inf"):
        raise ConvectError(
            f"A catalog can be refreshed every {LEAST_REFRESH} seconds at most, "
            f"not every {catalog.refresh}."
        )
    if len(catalog.urls) > MAX_FILES:
        raise ConvectError(f"A catalog has at most {MAX_FILES} addresses.")
    if re.search(r"[\x00-\x1f\x7f]", catalog.path or ""):
        raise ConvectError("The path of a catalog contains a control character.")
    if catalog.kind == "url":
        for url in (*catalog.urls, *catalog.replacements.values()):
            check_url(url)


def broken(catalog: Catalog, source: str, part: int, error: UnreadableComponent) -> CatalogEntry:
    return CatalogEntry(
        catalog=catalog.id,
        source=source,
        part=part,
        name=source.rstrip("/").rsplit("/", 1)[-1],
        categories=catalog.categories,
        error={
            "file": error.file,
            "line": error.line,
            "message": error.reason,
            "hint": error.hint,
        },
    )


def matches(entry: CatalogEntry, words: Sequence[str]) -> bool:
    if not words:
        return True
    text = " ".join((entry.name, entry.description, *entry.inputs, *entry.categories)).casefold()
    return all(word in text for word in words)


def categories_of(component: Component, given: tuple[str, ...]) -> tuple[str, ...]:
    own = component.annotations.get("category")
    return (*given, own) if isinstance(own, str) and own not in given else given
