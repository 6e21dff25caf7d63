"""Files into the working folder before a step, and out of it afterwards."""

from __future__ import annotations

import glob
import hashlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .outcome import StepFailed
from .step import Input

BLOCK = 1 << 20


def place(inputs: Iterable[Input], folder: Path) -> None:
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


def collect(patterns: Iterable[str], folder: Path, into: Path, *, strict: bool) -> list[Any]:
    """Copy the declared outputs below `into`; each as its path, size and digest.

    With `strict`, a pattern that matches nothing fails the step.
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        matches = list(_matches(pattern, folder))
        if strict and not matches:
            raise StepFailed(f"Declared output {pattern} was not produced.")
        found.update(dict.fromkeys(matches))
    return [_take(folder, path, into) for path in sorted(found)]


def _matches(pattern: str, folder: Path) -> Iterable[str]:
    literal = _inside(folder, pattern, "Declared output")
    names = [pattern] if literal.exists() else _glob(pattern, folder)
    for name in names:
        path = folder / name
        if path.is_dir():
            yield from (
                os.path.relpath(Path(place, file), folder)
                for place, _, files in os.walk(path)
                for file in files
            )
        elif path.is_file():
            yield os.path.relpath(path, folder)


def _glob(pattern: str, folder: Path) -> list[str]:
    # Not Path.glob: before Python 3.13 its `**` finds folders only.
    return glob.glob(pattern, root_dir=folder, recursive=True)  # noqa: PTH207


def _take(folder: Path, name: str, into: Path) -> dict[str, Any]:
    target = into / name
    digest = hashlib.sha256()
    count = 0
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with (folder / name).open("rb") as source, target.open("wb") as copy:
            while block := source.read(BLOCK):
                digest.update(block)
                count += copy.write(block)
    except OSError as error:
        raise StepFailed(f"Declared output {name} could not be kept: {error.strerror}.") from error
    return {
        "path": Path(name).as_posix(),
        "size": count,
        "digest": f"sha256:{digest.hexdigest()}",
    }


def _inside(folder: Path, name: str, what: str) -> Path:
    relative = Path(name)
    if relative.is_absolute() or ".." in relative.parts:
        raise StepFailed(f"{what} {name} is outside the working folder.")
    return folder / relative
