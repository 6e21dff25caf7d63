"""What lies outside of a project, and where runs must not meet there either."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ..runner.layers import part_of

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
