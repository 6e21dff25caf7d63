"""What a view is of, and what every kind of view can do."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..filesystems import mount_points
from .layers import Change, Layer, changed_links, copy, same_content

MOST_FILES = 5000
"""Of a mirror."""


@dataclass(frozen=True, slots=True)
class Outside:
    """What is outside the project, and of which a step has its own version as well."""

    name: str
    """The path of the link in the project that leads there; else how files in it are called."""
    path: Path
    is_link: bool = True


@dataclass(frozen=True, slots=True)
class ViewSpec:
    """What `step.json` says of the view."""

    root: Path
    layers: tuple[Layer, ...] = ()
    """Read-only, the topmost first."""
    is_open: bool = False
    """The project folder itself is the lowest layer: it was not recorded whole at submit."""
    live: tuple[str, ...] = ()
    """Below the root, what stays as it is for everybody."""
    private: tuple[str, ...] = ()
    """Below the root, what the step may change without any effect outside or afterwards."""
    scratch: tuple[Path, ...] = ()
    """Where the private layer may lie, the best first."""
    protected: tuple[Path, ...] = ()
    """Beside the root, what nobody may write in a mirror; and the exceptions."""
    writable: tuple[Path, ...] = ()
    most_files: int = MOST_FILES
    """Files that are copied, where there can be no overlay."""
    turns: Path | None = None
    """Where runs say that a folder is theirs, when they have to take turns in it."""
    outside: tuple[Outside, ...] = ()
    """One that is no link is a folder that holds the project, such as the home folder."""

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> ViewSpec:
        return cls(
            root=Path(data["root"]),
            layers=tuple(
                Layer(
                    Path(item["folder"]),
                    tuple(item.get("deleted") or ()),
                    Path(item["linked"]) if item.get("linked") else None,
                )
                for item in data.get("layers") or ()
            ),
            is_open=bool(data.get("is_open")),
            live=tuple(data.get("live") or ()),
            private=tuple(data.get("private") or ()),
            scratch=tuple(Path(path) for path in data.get("scratch") or ()),
            protected=tuple(Path(path) for path in data.get("protected") or ()),
            writable=tuple(Path(path) for path in data.get("writable") or ()),
            turns=Path(data["turns"]) if data.get("turns") else None,
            outside=tuple(
                Outside(item["name"], Path(item["path"]), bool(item["is_link"]))
                for item in data.get("outside") or ()
                if os.access(item["path"], os.R_OK)  # in a pod it might not exist
            ),
        )

    @property
    def lowers(self) -> tuple[Layer, ...]:
        """All layers, with the project itself where it is one."""
        return (*self.layers, Layer(self.root)) if self.is_open else self.layers

    def changed_meanwhile(self) -> list[str]:
        """The files that are not what they were at submit, because they were not copied."""
        return changed_links(self.layers, self.root)


class View(ABC):
    """How a step comes to its folder."""

    kind: str
    guard: Sequence[Sequence[str]] = ()
    """What must not be written, and the exceptions, where the view cannot see to it itself."""
    written: Path | None = None
    """Where what the step writes lies, for those outside; None: in the folder itself."""

    read_only: Sequence[Path] = ()
    """What is outside the project and could not be copied for the step."""

    @abstractmethod
    def path(self, path: Path) -> Path:
        """Where the step finds what lies at `path` of the project."""

    @abstractmethod
    def enter(self) -> None:
        """In a child process, before it executes: from here on it sees the view."""

    @abstractmethod
    def changes(self) -> Iterator[tuple[str, Change]]:
        """What the step left different: files, links, and the folders that it made."""

    @abstractmethod
    def take(self, path: str, target: Path) -> os.stat_result | None:
        """Move a file or link out of the view; None for what is neither."""

    @abstractmethod
    def close(self) -> None:
        """Remove it, once nobody is inside it."""


def live_in(outside: Outside, spec: ViewSpec) -> list[str]:
    """What stays as it is for everybody below a folder outside of the project."""
    top = f"{outside.path}/"
    shared = {*map(str, (*spec.protected, *spec.writable)), tempfile.gettempdir(), *mount_points()}
    live = {path.removeprefix(top) for path in shared if path.startswith(top)}
    if not outside.is_link:
        with os.scandir(outside.path) as entries:
            live.update(entry.name for entry in entries if _is_of_programs(entry))
    live.difference_update(_way(f"{spec.root}".removeprefix(top)))
    return sorted(path for path in live if live.isdisjoint(_way(_parent(path))))


def _is_of_programs(entry: os.DirEntry[str]) -> bool:
    """Whether programs and their settings are in a folder of somebody's home."""
    if not entry.is_dir(follow_symlinks=False):
        return False
    marks = (f"{entry.path}/{name}" for name in ("conda-meta", "pyvenv.cfg"))
    return entry.name.startswith(".") or any(map(os.path.lexists, marks))


def _way(path: str) -> list[str]:
    """A path, and every folder on the way to it."""
    parts = path.split("/")
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def is_below(path: str, folders: Collection[str]) -> bool:
    if not folders:
        return False
    parts = path.split("/")
    return any("/".join(parts[:count]) in folders for count in range(1, len(parts) + 1))


def is_same(one: Path, other: Path) -> bool:
    return same_content(one, other) and one.lstat().st_mode == other.lstat().st_mode


def move(source: Path, target: Path) -> os.stat_result | None:
    status = source.lstat()
    if stat.S_ISDIR(status.st_mode):
        target.mkdir(exist_ok=True)
        return None
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
        return None
    try:
        source.rename(target)
    except OSError:
        copy(source, target)
    return status


def remove_one(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        remove(path)
    else:
        path.unlink(missing_ok=True)


def remove(folder: Path) -> None:
    """Remove a tree, also the folder without any rights that an overlay leaves behind."""
    if not os.path.lexists(folder):
        return
    for parent, names, _ in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            if not path.is_symlink():
                with contextlib.suppress(OSError):
                    path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
