"""What lies in a project folder, as far as runs have a version of their own of it, and what
lies outside of it."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..filesystems import mount_points
from ..runner.layers import FileKey, part_of

MOST_NAMES = 5000
"""A folder with more files is not recorded: runs see it as it is."""
MOST_SEEN = 1_000_000
"""Names among which the links of a folder are looked for, which takes half a second."""
LIVE = frozenset((".venv", "node_modules", ".tox", ".nox", ".conda"))
"""Folders that no run has a version of its own of: large, and not made by runs."""
SKIPPED = frozenset(
    (".ipynb_checkpoints", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".jupyter_ystore.db")
)


@dataclass(frozen=True, slots=True)
class Scan:
    files: dict[str, FileKey]
    folders: list[str]
    live: list[str]
    private: list[str]
    whole: bool
    outside: dict[str, str] = field(default_factory=dict)
    searched: bool = True


def scan_folder(root: Path, runs: Path, named: frozenset[str]) -> Scan:
    """What lies in a folder; only the named files when there is too much of it."""
    scan = Scan({}, [], [], [], True)
    files, top, exempt, home = scan.files, str(root), _exempt(runs), Path.home()
    left = [""]
    while left:
        inside = left.pop()
        try:
            entries = os.scandir(f"{top}/{inside}")
        except OSError:
            continue
        with entries:
            for entry in entries:
                name = entry.name
                path = inside + name
                if name in SKIPPED:
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                mode = status.st_mode
                if stat.S_ISREG(mode):
                    files[path] = FileKey(mode, status.st_size, status.st_mtime_ns, status.st_ino)
                elif stat.S_ISLNK(mode):
                    files[path] = FileKey.of(status)
                    if target := leads_out(root, path):
                        scan.outside[path] = target
                elif not stat.S_ISDIR(mode):
                    continue
                elif name == ".git":
                    scan.private.append(path)
                elif _is_live(root / path, name, exempt, home):
                    scan.live.append(path)
                else:
                    scan.folders.append(path)
                    left.append(f"{path}/")
        if len(scan.files) + len(scan.folders) > MOST_NAMES:
            return _near(root, runs, named, scan.private)
    return scan


def _near(root: Path, runs: Path, named: frozenset[str], private: list[str]) -> Scan:
    """The named files of a folder that is too large, and the folders at its top that they are
    in, unless these are too large as well; and the links in it that lead out."""
    exempt, home = _exempt(runs), Path.home()
    links = _links(root, exempt, home)
    scan = Scan({}, [], [], private, False, links or {}, links is not None)
    for path in {*named, *scan.outside}:
        with contextlib.suppress(OSError):
            scan.files[path] = FileKey.of((root / path).lstat())
    for top in {path.partition("/")[0] for path in named if "/" in path}:
        inside = scan_folder(root / top, runs, frozenset())
        if inside.whole:
            scan.files.update({f"{top}/{path}": key for path, key in inside.files.items()})
            scan.outside.update({f"{top}/{path}": to for path, to in inside.outside.items()})
    with contextlib.suppress(OSError), os.scandir(root) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) and _is_live(
                root / entry.name, entry.name, exempt, home
            ):
                scan.live.append(entry.name)
    for path in sorted(exempt):
        inner = path.removeprefix(f"{root}/")
        if inner != path and inner.partition("/")[0] not in scan.live:
            scan.live.append(inner)
    return scan


def _links(root: Path, exempt: frozenset[str], home: Path) -> dict[str, str] | None:
    """Where the links in a folder lead to that lead out of it, by their paths; None when there
    is too much in it to look for them."""
    found, left, seen = {}, [""], 0
    while left:
        inside = left.pop()
        with contextlib.suppress(OSError), os.scandir(f"{root}/{inside}") as entries:
            for entry in entries:
                seen += 1
                path = inside + entry.name
                if entry.is_symlink():
                    if target := leads_out(root, path):
                        found[path] = target
                elif (
                    entry.is_dir(follow_symlinks=False)
                    and entry.name not in SKIPPED
                    and entry.name != ".git"
                    and not _is_live(root / path, entry.name, exempt, home)
                ):
                    left.append(f"{path}/")
        if seen > MOST_SEEN:
            return None
    return found


def _exempt(runs: Path) -> frozenset[str]:
    """Folders of which nobody has a version of their own, wherever they lie: the runs, what is
    mounted, and temporary files, where the runner meets its kernel."""
    return mount_points() | {str(runs), tempfile.gettempdir()}


def _is_live(path: Path, name: str, exempt: frozenset[str], home: Path) -> bool:
    """Whether a folder stays as it is for everybody: also those of programs, in a home folder."""
    return (
        name in LIVE
        or str(path) in exempt
        or (name in ("venv", "env") and (path / "pyvenv.cfg").exists())
        or (path.parent == home and (name.startswith(".") or (path / "conda-meta").exists()))
    )


PROGRAMS = frozenset(
    ("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "run", "sbin", "sys")
) | {"usr"}
"""Folders at the top of a system in which nobody keeps data."""
SYSTEM = PROGRAMS | {"home", "media", "mnt", "opt", "root", "srv", "tmp", "var"}
"""Folders at the top of a system that are no project."""
AROUND = "~"
"""How the folder that holds a project is called in the paths of files that a run made."""


def holds_projects(folder: Path, home: Path) -> bool:
    """Whether a folder is none that somebody would call a project, but may have some in it."""
    return (
        home.is_relative_to(folder)
        or folder == Path(tempfile.gettempdir())
        or len(folder.parts) < 2
        or (len(folder.parts) == 2 and folder.name in SYSTEM)
    )


def leads_out(root: Path, link: str) -> str | None:
    """Where a link in a project leads to, if that lies outside and a run could write to it."""
    target = Path(os.path.realpath(root / link))
    if target.is_relative_to(os.path.realpath(root)):
        return None
    try:
        mode = target.stat().st_mode
    except OSError:
        return None
    if target.parts[1:2] and target.parts[1] in PROGRAMS:
        return None
    home = Path.home()
    if stat.S_ISDIR(mode):
        return None if target != home and holds_projects(target, home) else str(target)
    is_written = mode & 0o222 and os.access(target, os.W_OK)
    return str(target) if stat.S_ISREG(mode) and is_written else None


def name_around(root: Path) -> str:
    """How the folder that holds a project is called: by a name that no file in it has."""
    name = AROUND
    while os.path.lexists(root / name):
        name += AROUND
    return name


def target_of(root: str, path: str, outside: Mapping[str, str]) -> Path:
    """Where a file belongs that a run made."""
    name, inside = part_of(path, outside)
    return Path(outside[name] if name else root, inside)
