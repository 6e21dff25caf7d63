"""Arguments that several verbs share, and how they are read."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
from pathlib import Path
from typing import Any

from ..errors import ConvectError


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def add_root(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--root",
        type=Path,
        metavar="FOLDER",
        help="the folder that no path may leave (here, or the file's folder when it is elsewhere)",
    )


def read_value(text: str) -> Any:
    """`0.1` is a number, `x` a text, `[1,2]` a list."""
    try:
        return json.loads(text, parse_constant=lambda word: word)
    except (ValueError, RecursionError):
        return text


def locate(path: Path, root: Path | None = None) -> tuple[Path, str]:
    """The root folder and a file's path relative to it."""
    file = Path(os.path.normpath(path.absolute()))
    if root is None:
        here = Path.cwd()
        root = here if file.is_relative_to(here) else file.parent
    root = Path(os.path.normpath(root.absolute()))
    if not file.is_relative_to(root):
        raise ConvectError(
            f"“{path}” is not inside “{root}”.", code="outside-root", hint="Choose another --root."
        )
    return root, file.relative_to(root).as_posix()


def write_file(path: Path, text: str, *, overwrite: bool) -> None:
    """Write a file whole or not at all; an existing one only when told so."""
    draft = path.with_name(f".{path.name}.part")
    try:
        if path.exists() and not overwrite:
            raise ConvectError(
                f"“{path}” is there already.", code="exists", hint="Overwrite it with --force."
            )
        draft.write_text(text, encoding="utf-8", newline="\n")
        draft.replace(path)
    except (OSError, ValueError) as error:
        with contextlib.suppress(OSError, ValueError):
            draft.unlink(missing_ok=True)
        reason = error.strerror if isinstance(error, OSError) else "its name or text is not Unicode"
        raise ConvectError(f"“{path}” cannot be written: {reason}.", code="unwritable") from None
