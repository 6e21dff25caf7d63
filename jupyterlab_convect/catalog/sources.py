"""Where components come from: addresses, files, folders, the set that ships, and third parties.

A source is a function of a catalog and a fetcher that gives the texts of its
components one by one. Others are found by the entry point group
`jupyterlab_convect.catalogs`; their name is the catalog's `kind`. The attribute
`options_schema` of such a function is a JSON Schema of the catalog's `options`, which
becomes the form in which they are given.
"""

from __future__ import annotations

import errno
import importlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from pathlib import Path
from urllib.parse import urljoin

from ..errors import ConvectError, Missing
from ..pipeline.plan import Json
from .fetch import (
    PARALLEL,
    Fetcher,
    Folder,
    check_url,
    files_in_zip,
    folder_of,
    plain_address,
    shorten,
)
from .model import UnreadableComponent
from .read import Fetch
from .store_files import INCLUDED
from .yaml_text import MAX_BYTES, decode

GROUP = "jupyterlab_convect.catalogs"

MAX_FILES = 5_000
SUFFIXES = (".yaml", ".yml", ".json")

_COMPONENT = re.compile(
    rb"^\s{0,4}[\"']?(implementation|pipelineInfo|pipelineSpec)[\"']?\s*:", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Auth:
    """Names what is sent as `Authorization`: an environment variable, or a secret's key."""

    env: str | None = None
    name: str | None = None
    key: str | None = None
    scheme: str = "Bearer"


@dataclass(frozen=True, slots=True)
class Catalog:
    """How a catalog is configured."""

    id: str
    name: str
    kind: str = "url"
    urls: tuple[str, ...] = ()
    path: str | None = None
    categories: tuple[str, ...] = ()
    auth: Auth | None = None
    replacements: Mapping[str, str] = field(default_factory=dict)
    """Addresses to read instead of references that are dead."""
    options: Mapping[str, Json] = field(default_factory=dict)
    """What only a third party's source understands."""
    refresh: float | None = None
    """Seconds between two looks for changes while a server runs; None: only when asked."""


@dataclass(frozen=True, slots=True)
class Text:
    """The text of one or more components, and how many texts there are as far as is known."""

    source: str
    data: bytes
    total: int = 1


Source = Callable[[Catalog, Fetcher], Iterable["Text | UnreadableComponent"]]


def source_of(kind: str) -> Source:
    return _OWN[kind] if kind in _OWN else _careful(kind, _theirs(kind))


def _theirs(kind: str) -> Source:
    for found in entry_points(group=GROUP, name=kind):
        try:
            source: Source = found.load()
        except Exception as error:
            raise ConvectError(
                f"The catalogs of kind “{kind}” cannot be loaded: {error}."
            ) from error
        return source
    raise ConvectError(
        f"There are no catalogs of kind “{kind}”.", hint=f"Available kinds: {', '.join(kinds())}."
    )


def options_schemas() -> dict[str, Json]:
    """What third parties' kinds want to know, as JSON Schema; those that cannot be loaded apart."""
    schemas = {}
    for kind in kinds():
        if kind not in _OWN:
            with suppress(ConvectError):
                schemas[kind] = _schema(_theirs(kind))
    return schemas


def check_options(catalog: Catalog) -> None:
    if catalog.kind in _OWN:
        return
    from jsonschema import Draft202012Validator, SchemaError
    from jsonschema.exceptions import best_match

    schema = _schema(_theirs(catalog.kind))
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise ConvectError(
            f"The source “{catalog.kind}” has an invalid schema: {error.message}."
        ) from error
    problem = best_match(Draft202012Validator(schema).iter_errors(dict(catalog.options)))
    if problem is not None:
        where = " › ".join(map(str, problem.absolute_path))
        raise ConvectError(
            f"The options of “{catalog.name}” are not valid"
            f"{f' at “{where}”' if where else ''}: {problem.message}."
        )


def _schema(source: Source) -> Json:
    schema = getattr(source, "options_schema", None)
    return schema if isinstance(schema, dict) else {"type": "object"}


def _careful(kind: str, source: Source) -> Source:
    """A mistake in somebody else's source is an error of the catalog."""

    def texts(catalog: Catalog, fetcher: Fetcher) -> Iterator[Text | UnreadableComponent]:
        try:
            yield from source(catalog, fetcher)
        except ConvectError:
            raise
        except Exception as error:
            raise ConvectError(f"The source “{kind}” failed: {error!r}.") from error

    return texts


def kinds() -> list[str]:
    """The kinds of catalogs that users can add."""
    theirs = {found.name for found in entry_points(group=GROUP)} - set(_OWN)
    return [*(kind for kind in _OWN if kind != "shipped"), *sorted(theirs)]


def from_urls(catalog: Catalog, fetcher: Fetcher) -> Iterator[Text | UnreadableComponent]:
    """Each address is a component, a list of them, or a folder of a repository."""
    waiting = list(catalog.urls)
    if not waiting:
        raise ConvectError(f"The catalog “{catalog.name}” has no address.")
    seen: set[str] = set()
    total = len(waiting)
    while waiting:
        pages, waiting = waiting[:PARALLEL], waiting[PARALLEL:]
        folders = {url: folder for url in pages if (folder := folder_of(url))}
        files = dict.fromkeys(plain_address(url) for url in pages if url not in folders)
        batch = [url for url in files if url not in seen]
        seen.update(batch)
        for url, data in fetcher.many(batch).items():
            if isinstance(data, ConvectError):
                yield UnreadableComponent(url, 0, data.sentence, hint=data.hint)
                continue
            listed = addresses_in(data, url)
            if listed is None:
                yield Text(url, data, total)
                continue
            total += len(listed) - 1
            if total > MAX_FILES:
                raise ConvectError(f"{url} lists more than {MAX_FILES} components.")
            waiting += listed
        for url, folder in folders.items():
            try:
                texts = _from_archive(folder, fetcher)
            except ConvectError as error:
                yield UnreadableComponent(url, 0, error.sentence, hint=error.hint)
            else:
                total += len(texts) - 1
                yield from (replace(text, total=total) for text in texts)


def from_path(catalog: Catalog, fetcher: Fetcher) -> Iterator[Text | UnreadableComponent]:
    """A file, or every component in a folder and the folders in it."""
    root = Path(catalog.path or "")
    if not catalog.path or not os.path.exists(root):  # noqa: PTH110 false for impossible names
        raise ConvectError(f"{shorten(catalog.path or 'The folder')} does not exist.")
    if root.is_file():
        listed = addresses_in(_bytes(root), "")
        yield from _from_list(catalog, fetcher, root, listed) if listed else _texts(root, [root])
        return
    paths = list(component_files(root))
    if len(paths) > MAX_FILES:
        raise ConvectError(f"{root} holds more than {MAX_FILES} files that could be components.")
    yield from _texts(root, paths)


def from_shipped(catalog: Catalog, fetcher: Fetcher) -> Iterator[Text | UnreadableComponent]:
    yield from _texts(INCLUDED, sorted(INCLUDED.glob("*.yaml")))


_OWN: dict[str, Source] = {
    "url": from_urls,
    "file": from_path,
    "folder": from_path,
    "shipped": from_shipped,
}


def reader(catalog: Catalog, fetcher: Fetcher) -> Fetch:
    """Reads what graphs refer to: addresses, and for files here also files in their folder."""
    if catalog.kind not in ("file", "folder"):
        return fetcher.many
    root = Path(catalog.path or "").resolve()
    folder = root if os.path.isdir(root) else root.parent  # noqa: PTH112

    def fetch(addresses: Sequence[str]) -> Mapping[str, bytes | ConvectError]:
        web = [address for address in addresses if "://" in address]
        here = [address for address in addresses if "://" not in address]
        return {**fetcher.many(web), **{address: _beside(folder, address) for address in here}}

    return fetch


def _beside(folder: Path, name: str) -> bytes | ConvectError:
    try:
        path = (folder / name).resolve()
        return _bytes(path) if folder in path.parents else _not_beside(name)
    except (OSError, ValueError):
        return _not_beside(name)


def _not_beside(name: str) -> Missing:
    return Missing(f"There is no file {shorten(name)} in the folder of the catalog.")


def fingerprint(catalog: Catalog) -> str | None:
    """Changes whenever a file of the catalog does; None for one that is not made of files here."""
    if catalog.kind not in ("file", "folder", "shipped"):
        return None
    root = INCLUDED if catalog.kind == "shipped" else Path(catalog.path or "")
    is_file = os.path.isfile(root)  # noqa: PTH113 false for impossible names
    paths = [root] if is_file else component_files(root)
    found = []
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            continue
        found.append(f"{path}:{status.st_mtime_ns}:{status.st_size}")
    return "\n".join(found)


def component_files(root: Path) -> Iterator[Path]:
    """Files in a folder that could be components; hidden folders are left alone."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if name.endswith(SUFFIXES) and not name.startswith("."):
                yield Path(folder, name)


def addresses_in(data: bytes, source: str) -> list[str] | None:
    """The addresses in a list file, one per line or as YAML; None when it is something else."""
    if len(data) > MAX_BYTES or _COMPONENT.search(data):
        return None
    try:
        text = decode(data, source)
    except UnreadableComponent:
        return None
    lines = [line.strip().removeprefix("- ").strip("'\"") for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith("#") and line != "---"]
    if lines[:1] == ["components:"] or lines[:1] == ["urls:"]:
        lines = lines[1:]
    if not lines or not all(_is_address(line) for line in lines):
        return None
    return [urljoin(source, line) for line in lines]


def _is_address(line: str) -> bool:
    if line.startswith(("https://", "http://")):
        return " " not in line
    return line.endswith(SUFFIXES) and not re.search(r"[\s:{}\[\]]", line)


def _from_archive(folder: Folder, fetcher: Fetcher) -> list[Text]:
    page = fetcher.get(folder.archive, archive=True)
    found = []
    for name, data in files_in_zip(page.data, folder.path, MAX_BYTES, SUFFIXES):
        if _COMPONENT.search(data):
            found.append(Text(folder.files + name, data))
        if len(found) > MAX_FILES:
            raise ConvectError(f"It contains more than {MAX_FILES} components.")
    return found


def _texts(root: Path, paths: Sequence[Path]) -> Iterator[Text | UnreadableComponent]:
    for path in paths:
        name = path.name if path == root else path.relative_to(root).as_posix()
        try:
            data = _bytes(path)
        except OSError as error:
            yield UnreadableComponent(name, 0, f"It cannot be read: {error.strerror}.")
        else:
            if path == root or path.stem == "component" or _COMPONENT.search(data):
                yield Text(name, data, len(paths))


def _from_list(
    catalog: Catalog, fetcher: Fetcher, root: Path, listed: Sequence[str]
) -> Iterator[Text | UnreadableComponent]:
    """Addresses, and files in the folder of the list."""
    urls = tuple(item for item in listed if "://" in item)
    folder = root.parent.resolve()
    for name in listed:
        if name in urls:
            continue
        path = (folder / name).resolve()
        if folder not in path.parents:
            yield UnreadableComponent(name, 0, "It is outside the folder of its list.")
        elif not os.path.isfile(path):  # noqa: PTH113 false for impossible names
            yield UnreadableComponent(name, 0, "It does not exist.")
        else:
            yield from _texts(folder, [path])
    if urls:
        yield from from_urls(replace(catalog, urls=urls), fetcher)


def hosts_of(catalog: Catalog) -> frozenset[str]:
    """The hosts of a catalog's addresses, and those that serve the files of their pages."""
    folders = [folder for url in catalog.urls if (folder := folder_of(url))]
    addresses = [*catalog.urls, *map(plain_address, catalog.urls)]
    addresses += [address for folder in folders for address in (folder.archive, folder.files)]
    return frozenset(check_url(address).hostname or "" for address in addresses)


def _bytes(path: Path) -> bytes:
    """No more than what `read` refuses anyway, and never waiting for somebody to write it."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        return file.read(MAX_BYTES + 1)


def authorization(auth: Auth) -> str:
    """The header's value. It is never stored, logged or part of an error."""
    secret = _from_environment(auth) if auth.env else _from_keyring(auth)
    if "\n" in secret or "\r" in secret:
        raise ConvectError("The secret of the catalog contains a line break.")
    return f"{auth.scheme} {secret}" if auth.scheme else secret


def _from_environment(auth: Auth) -> str:
    value = os.environ.get(auth.env or "")
    if not value:
        raise ConvectError(
            f"The environment variable {auth.env}, which holds the catalog's secret, is not set."
        )
    return value


def _from_keyring(auth: Auth) -> str:
    if not auth.name or not auth.key:
        raise ConvectError("The catalog's secret needs a name and a key.")
    try:
        keyring = importlib.import_module("keyring")
    except ImportError:
        raise ConvectError(
            f"The secret “{auth.name}” cannot be looked up without the package keyring.",
            hint="Install keyring, or name an environment variable.",
        ) from None
    value = keyring.get_password(auth.name, auth.key)
    if not value:
        raise ConvectError(f"The keyring has no secret “{auth.name}” with the key “{auth.key}”.")
    return str(value)
