"""What the command prints: plain for programs and pipes, with colour on a terminal."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

from ..errors import ConvectError
from ..json_text import dumps

_PAINT = re.compile(r"\x1b\[\d+m")
_STYLES = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "dim": "2", "bold": "1"}


def warn(sentence: str) -> None:
    note(f"{paint('warning:', 'yellow', sys.stderr)} {sentence}")


def print_anything() -> None:
    """File names need not be Unicode; what a terminal cannot show is escaped."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """A terminal that is gone is like a pipe that nobody reads: BrokenPipeError for both."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)) from None


def finish() -> None:
    """Write what is left to be written; if nobody is reading any longer, it is discarded."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            with writing():
                stream.flush()
        except BrokenPipeError:
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def say(text: str = "") -> None:
    with writing():
        print(text)


def say_json(value: Any) -> None:
    say(dumps(value, indent=2))


def fail(error: ConvectError, *, as_json: bool = False) -> None:
    """One sentence on stderr, with what to do; for programs, the same on stdout as JSON."""
    if as_json:
        say_json({"error": error.to_json()})
        return
    note(f"{paint('convect:', 'red', sys.stderr)} {error.sentence}")
    if error.hint:
        note(f"  {error.hint}")


def note(text: str) -> None:
    """Something to know that is not the result."""
    with writing():
        print(text, file=sys.stderr)


def paint(text: str, style: str, stream: IO[str] | None = None) -> str:
    """`text` in a style, on a terminal whose user has not turned colours off."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if has_colour(stream or sys.stdout) else text


def has_colour(stream: IO[str]) -> bool:
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def table(rows: Iterable[Sequence[str]], header: Sequence[str] | None = None) -> str:
    """Columns as wide as their widest cell; Chinese characters count twice. A row is a line."""
    cells = [[" ".join(cell.splitlines()) for cell in row] for row in rows]
    if header is not None:
        cells.insert(0, [name.upper() for name in header])
    if not cells:
        return ""
    widths = [max(map(width, column)) for column in zip(*cells, strict=True)]
    lines = (
        "  ".join(cell + " " * (size - width(cell)) for cell, size in zip(row, widths, strict=True))
        for row in cells
    )
    return "\n".join(line.rstrip() for line in lines)


def width(text: str) -> int:
    text = _PAINT.sub("", text)
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
