"""Arguments that several verbs share, and how they are read."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..errors import ConvectError, Missing


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def add_root(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--root",
        type=Path,
        metavar="FOLDER",
        help="the folder that no path may leave (here, or the file's folder when it is elsewhere)",
    )


def add_parameters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-p",
        "--parameter",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of the run; the value is JSON, or else a text (repeatable)",
    )


def read_parameters(pairs: Iterable[str]) -> dict[str, Any]:
    """`lr=0.1` is a number, `name=x` a text, `ids=[1,2]` a list."""
    found = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise ConvectError(f"“{pair}” is not NAME=VALUE.", code="bad-parameter")
        found[name] = read_value(text)
    return found


def read_value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=lambda word: word)
    except (ValueError, RecursionError):
        return text


def locate(path: Path, root: Path | None = None) -> tuple[Path, str]:
    """The root folder and a file's path relative to it."""
    file = path.absolute()
    if root is None:
        here = Path.cwd()
        root = here if file.is_relative_to(here) else file.parent
    root = root.absolute()
    if not file.is_relative_to(root):
        raise ConvectError(
            f"“{path}” is not inside “{root}”.", code="outside-root", hint="Choose another --root."
        )
    return root, file.relative_to(root).as_posix()


def read_file(path: Path, limit: int) -> bytes:
    """A file's bytes, no more than one past `limit`."""
    try:
        with path.open("rb") as file:
            return file.read(limit + 1)
    except FileNotFoundError:
        raise Missing(f"There is no file “{path}”.", code="missing-file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConvectError(f"“{path}” cannot be read: {reason}.", code="unreadable-file") from None


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
    except OSError as error:
        raise ConvectError(f"“{path}” cannot be written: {error.strerror}.") from None
