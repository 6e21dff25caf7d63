"""Folders laid over each other: found, compared, merged. Nothing of the system is needed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

BLOCK = 1 << 20
SPARES = ".spares"
"""The suffix of a folder beside a tree, with copies of it that can be used."""

Change = Literal["created", "changed", "deleted"]


class FileKey(NamedTuple):
    """What tells one version of a file from another without reading it."""

    mode: int
    size: int
    mtime: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileKey:
        return cls(status.st_mode, status.st_size, status.st_mtime_ns, status.st_ino)


@dataclass(frozen=True, slots=True)
class Layer:
    """A folder of files, and the paths below it that it hides."""

    folder: Path
    deleted: tuple[str, ...] = ()
    linked: Path | None = None
    """The list of its files that are not copies, and so may change: see `changed_links`."""


@dataclass(frozen=True, slots=True)
class Made:
    """A file that a step created or changed, or a path that it deleted."""

    path: str
    """Relative to the root of the view, with `/`."""
    change: Change
    size: int = 0
    digest: str | None = None
    mode: int = 0

    def to_json(self) -> dict[str, Any]:
        facts = {"path": self.path, "change": self.change}
        if self.change == "deleted":
            return facts
        return {**facts, "size": self.size, "digest": self.digest, "mode": self.mode & 0o7777}


def find(layers: Iterable[Layer], path: str) -> Path | None:
    """The file or folder that a path stands for in layers, the topmost first."""
    parts = path.split("/")
    prefixes = {"/".join(parts[:count]) for count in range(1, len(parts) + 1)}
    for layer in layers:
        candidate = layer.folder / path
        if os.path.lexists(candidate):
            return candidate
        if any(deleted in prefixes for deleted in layer.deleted):
            return None
    return None


def part_of(path: str, names: Iterable[str]) -> tuple[str, str]:
    """The one of some names of folders that a path lies below, and the path in it; the name is
    empty when it lies below none of them."""
    found = max((name for name in names if path.startswith(f"{name}/")), key=len, default="")
    return found, path[len(found) + 1 :] if found else path


def layers_in(layers: Iterable[Layer], name: str) -> list[Layer]:
    """What layers have below a folder, as layers of that folder."""
    found = []
    for layer in layers:
        gone = [path for path in layer.deleted if path.startswith(f"{name}/")]
        folder = layer.folder / name
        if gone or (folder.is_dir() and not folder.is_symlink()):
            found.append(Layer(folder, tuple(path[len(name) + 1 :] for path in gone)))
    return found


def changed_links(layers: Sequence[Layer], root: Path) -> list[str]:
    """The files that are not what they were when the lists of links were written.

    A list has `linked`, files of its layer, and `missing`, files of the project itself, each
    by its path with its key.
    """
    changed = []
    for number, layer in enumerate(layers):
        if layer.linked is None:
            continue
        try:
            lists = json.loads(layer.linked.read_bytes())
        except (OSError, ValueError):
            continue
        for name, folder in (("linked", layer.folder), ("missing", root)):
            for path, key in lists[name].items():
                try:
                    status = os.lstat(f"{folder}/{path}")
                except OSError:
                    status = None
                if status is None or _key(status) != key:
                    above = find(layers[:number], path)
                    if above is None and not _is_hidden(layers[:number], path):
                        changed.append(path)
    return changed


def _key(status: os.stat_result) -> list[int]:
    return [status.st_mode, status.st_size, status.st_mtime_ns, status.st_ino]


def _is_hidden(layers: Iterable[Layer], path: str) -> bool:
    return any(
        path == deleted or path.startswith(f"{deleted}/")
        for layer in layers
        for deleted in layer.deleted
    )


def walk(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Everything below a folder but the folder itself, by relative path; follows no links."""
    left = [""]
    while left:
        inside = left.pop()
        try:
            entries = os.scandir(folder / inside)
        except OSError:
            continue
        with entries:
            for entry in entries:
                path = f"{inside}/{entry.name}" if inside else entry.name
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                yield path, status
                if stat.S_ISDIR(status.st_mode):
                    left.append(path)


def digest_file(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return f"sha256:{digest.hexdigest()}"


def same_content(one: Path, other: Path) -> bool:
    """Whether two files, or two links, say the same; a folder is like no other."""
    try:
        left, right = one.lstat(), other.lstat()
        if stat.S_IFMT(left.st_mode) != stat.S_IFMT(right.st_mode):
            return False
        if stat.S_ISLNK(left.st_mode):
            return one.readlink() == other.readlink()
        if not stat.S_ISREG(left.st_mode) or left.st_size != right.st_size:
            return False
        if left.st_ino == right.st_ino and left.st_dev == right.st_dev:
            return True
        with one.open("rb") as first, other.open("rb") as second:
            while block := first.read(BLOCK):
                if block != second.read(BLOCK):
                    return False
        return True
    except OSError:
        return False


def is_ignored(path: str) -> bool:
    """What programs leave behind for themselves, and nobody would call a result."""
    parts = path.split("/")
    return bool(_LEFTOVERS.intersection(parts)) or parts[-1].startswith(".nfs")


_LEFTOVERS = frozenset(
    ("__pycache__", ".ipynb_checkpoints", ".git", ".mypy_cache", ".pytest_cache", ".ruff_cache")
)


def copy(source: Path, target: Path) -> None:
    """Copy a file with its mode and times, by the disk itself where it can; a link as a link."""
    if source.is_symlink():
        target.symlink_to(source.readlink())
        return
    try:
        with source.open("rb") as read, target.open("wb") as written:
            while os.copy_file_range(read.fileno(), written.fileno(), 1 << 30):
                pass
    except (AttributeError, OSError):
        shutil.copyfile(source, target)
    shutil.copystat(source, target)


def made_from(record: Sequence[Mapping[str, Any]]) -> list[Made]:
    """The content of `made.json`."""
    return [
        Made(
            str(item["path"]),
            item["change"],
            int(item.get("size") or 0),
            item.get("digest"),
            int(item.get("mode") or 0),
        )
        for item in record
    ]
