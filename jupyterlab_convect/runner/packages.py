"""Prints what a Python has installed, as JSON.

Run by the interpreter in question, whatever it is and wherever: Python 3.8 or newer,
nothing but the standard library, and no import of anything around it.
"""

from __future__ import annotations

import json
import os
import re
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import Distribution

MARKS = (".dist-info", ".egg-info", ".egg-link", ".pth")
"""How the names of what an installer leaves in a folder end."""


def describe() -> dict[str, Any]:
    """The environment of this interpreter, and by which files it is known again."""
    import platform  # takes long, and is seldom needed

    began = time.time()
    folders = [Path(folder).absolute() for folder in dict.fromkeys(sys.path) if folder]
    files = [file for folder in folders for file in changed_in_place(folder)]
    watched = [seen(path) for path in (*folders, *files, Path(sys.executable).resolve())]
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": sysconfig.get_platform(),
        "packages": installed(),
        "began": began,
        "watched": watched,
    }


def installed() -> dict[str, str]:
    """Version by name; of two with one name the one that is imported."""
    from importlib.metadata import distributions

    found: dict[str, str] = {}
    for each in distributions():
        text = each.read_text("METADATA") or each.read_text("PKG-INFO") or ""
        head = dict(re.findall(r"^(Name|Version): *(.+?) *$", text.split("\n\n", 1)[0], re.M))
        if "Name" in head:
            name = re.sub(r"[-_.]+", "-", head["Name"]).lower()
            found.setdefault(name, head.get("Version", "") + origin(each))
    return dict(sorted(found.items()))


def origin(distribution: Distribution) -> str:
    """Where it came from, if not from an index; without what may be a password."""
    try:
        found = json.loads(distribution.read_text("direct_url.json") or "{}")
        url = re.sub(r"//[^/@]*@", "//", found.get("url", ""))
        if version := found.get("vcs_info"):
            url = f"{version['vcs']}+{url}@{version['commit_id']}"
        editable = " (editable)" if found.get("dir_info", {}).get("editable") else ""
    except (ValueError, AttributeError, TypeError, KeyError):
        return ""
    return f" @ {url}{editable}" if url else ""


def changed_in_place(folder: Path) -> Iterator[Path]:
    """What may change when something is installed without the folder changing."""
    for name in marks_in(folder):
        path = folder / name
        if name.endswith(".egg-info") and path.is_dir():
            yield path / "PKG-INFO"
        elif not name.endswith(".dist-info"):
            yield path


def marks_in(folder: Path) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if name.endswith(MARKS)]  # noqa: PTH208
    except OSError:
        return []


def seen(path: Path) -> tuple[str, int | None, bool]:
    """A path, when it changed last, and whether anything is installed in it."""
    try:
        return str(path), path.stat().st_mtime_ns, bool(marks_in(path))
    except OSError:
        return str(path), None, False


if __name__ == "__main__":
    sys.stdout.write(json.dumps(describe()))
