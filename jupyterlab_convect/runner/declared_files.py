"""Files into the working folder before a step, and out of it afterwards."""

from __future__ import annotations

import fnmatch
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from ..safe_files import copy_regular, make_folder
from .outcome import StepFailed
from .step import PlacedInput


def place(inputs: Iterable[PlacedInput], folder: Path) -> None:
    """Copy each input to its place below `folder`, making folders as needed."""
    for item in inputs:
        target = _inside(folder, item.to, "Input")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if item.source.is_dir():
                shutil.copytree(item.source, target, dirs_exist_ok=True)
            elif not (target.exists() and target.samefile(item.source)):
                shutil.copy2(item.source, target)
        except (OSError, shutil.Error) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise StepFailed(f"Input {item.to} could not be placed: {why}.") from error


def collect(
    patterns: Iterable[str],
    folder: Path,
    into: Path,
    *,
    strict: bool,
    say: Callable[[str], None] = lambda _: None,
) -> list[Any]:
    """Copy the declared outputs below `into`; each as its path, size and digest.

    Only what lies in `folder` is copied, and only regular files, with their modes; a link to
    such a file counts as a copy of it. `say` hears what is left out, a sentence each. With
    `strict`, a pattern that matches nothing fails the step.
    """
    found: dict[str, Path] = {}
    left_out: dict[str, str] = {}
    for pattern in patterns:
        matches = _matches(pattern, folder, left_out)
        if strict and not matches:
            raise StepFailed(f"Declared output {pattern} was not produced.")
        found |= matches
    for name, why in sorted(left_out.items()):
        say(f"[{name} is not kept as an output: it {why}.]\n")
    return [_take(name, found[name], into) for name in sorted(found)]


def _matches(pattern: str, folder: Path, left_out: dict[str, str]) -> dict[str, Path]:
    """The files that a pattern means, each by its name with where its content lies."""
    literal = _inside(folder, pattern, "Declared output")
    named = os.path.lexists(literal)
    root = folder.resolve()
    found: dict[str, Path] = {}
    for name in [pattern] if named else _expand(folder, "", pattern.split("/")):
        for path in _below(folder / name, follow=named, left_out=left_out, folder=folder):
            relative = os.path.relpath(path, folder)
            try:
                found[relative] = _content(path, root)
            except _LeftOut as error:
                left_out[relative] = str(error)
    return found


def _expand(folder: Path, below: str, parts: list[str]) -> Iterator[str]:
    """The names that match, as `glob` finds them; `**` follows no links, so that it ends."""
    part, rest = parts[0], parts[1:]
    if part == "**":
        yield from _expand(folder, below, rest) if rest else [below or "."]
        for entry in _entries(folder / below):
            if not entry.name.startswith("."):
                name = _join(below, entry.name)
                if entry.is_dir(follow_symlinks=False):
                    yield from _expand(folder, name, parts)
                elif not rest:
                    yield name
        return
    for entry in _entries(folder / below):
        is_hidden = entry.name.startswith(".") and not part.startswith(".")
        if not is_hidden and fnmatch.fnmatchcase(entry.name, part):
            name = _join(below, entry.name)
            if not any(rest):
                yield name
            elif (folder / name).is_dir():
                yield from _expand(folder, name, rest)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _below(path: Path, *, follow: bool, left_out: dict[str, str], folder: Path) -> Iterator[Path]:
    """The path, or all files below it. A link to a folder is followed when it was named."""
    if not path.is_dir():
        yield path
    elif path.is_symlink() and not follow:
        left_out[os.path.relpath(path, folder)] = "is a link to a folder"
    elif not path.resolve().is_relative_to(folder.resolve()):
        left_out[os.path.relpath(path, folder)] = "leads out of the working folder"
    else:
        for parent, folders, files in os.walk(path):
            for name in folders:
                if Path(parent, name).is_symlink():
                    left_out[os.path.relpath(Path(parent, name), folder)] = "is a link to a folder"
            yield from (Path(parent, name) for name in files)


class _LeftOut(Exception):
    """Why something is no output, as the rest of a sentence."""


def _content(path: Path, root: Path) -> Path:
    """Where the content of an output lies."""
    try:
        real = path.resolve(strict=True)
        status = real.stat()
    except (OSError, RuntimeError):
        raise _LeftOut("is a link that leads nowhere") from None
    if not real.is_relative_to(root):
        raise _LeftOut("leads out of the working folder")
    if not stat.S_ISREG(status.st_mode):
        raise _LeftOut("is not a regular file")
    return real


def _take(name: str, source: Path, into: Path) -> dict[str, Any]:
    target = into / name
    try:
        make_folder(target.parent)
        count, digest = copy_regular(source, target)
    except OSError as error:
        raise StepFailed(f"Declared output {name} could not be saved: {error.strerror}.") from error
    return {"path": Path(name).as_posix(), "size": count, "digest": digest}


def _inside(folder: Path, name: str, what: str) -> Path:
    relative = Path(name)
    if relative.is_absolute() or ".." in relative.parts:
        raise StepFailed(f"{what} {name} is outside the working folder.")
    return folder / relative
