"""Paths that come in over the network stay inside the folder they are meant for."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from ..errors import ConvectError, Missing
from ..run_files import refuse_links, size_of_regular

LONGEST_NAME, LONGEST_PATH = 255, 4000
"""Bytes that file systems take."""


def inside(root: Path, path: str) -> str:
    """The path in its plain form, relative to `root`; refused when it leads out of it.

    Links are followed, so that one that points out of the root does not help.
    """
    plain = PurePosixPath(path)
    if "\0" in path or plain.is_absolute() or ".." in plain.parts or not plain.parts:
        raise ConvectError(
            f"{path!r} is not a path inside the server's root folder.",
            code="path-outside",
            hint="Give a path relative to the root folder, without `..`.",
        )
    lengths = [len(part.encode("utf-8", "surrogatepass")) for part in plain.parts]
    if max(lengths) > LONGEST_NAME or sum(lengths) + len(lengths) > LONGEST_PATH:
        raise ConvectError(f"{path[:80] + '…'!r} is too long for a path.", code="path-too-long")
    base = root.resolve()
    try:
        target = (base / plain).resolve()
    except (OSError, RuntimeError):
        raise Missing(f"{path!r} cannot be read.") from None
    if not target.is_relative_to(base):
        raise ConvectError(
            f"{path!r} is a link out of the server's root folder.", code="path-outside"
        )
    return str(plain)


def existing(root: Path, path: str) -> Path:
    """The file that `path` names inside `root`."""
    file = root / inside(root, path)
    if not os.path.isfile(file):  # noqa: PTH113 which is false for what cannot be looked at
        raise Missing(f"There is no file {path!r}.")
    return file


def kept(folder: Path, path: str) -> Path:
    """The regular file, and no link, that `path` names inside a folder of a run."""
    file = folder / inside(folder, path)
    try:
        refuse_links(folder.parent, file)
        size_of_regular(file)
    except OSError:
        raise Missing(f"There is no file {path!r}.") from None
    return file
