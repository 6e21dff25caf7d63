"""The sources that a run executed, beside the files as they are now."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

from ..errors import ConvectError
from ..pipeline.plan import Json
from ..runner.layers import FileKey
from ..safe_files import read_regular
from .model import Request, Run, SweepSources
from .snapshots import CODE, Snapshots

Version = Literal["today", "run"]
"""Which files a run that is repeated executes: as they are now, or as they were."""

LONGEST = 200_000
"""Characters of a text that is shown."""


class SourceChange(NamedTuple):
    """A source that is not what it was; None is a file that is not there."""

    path: str
    before: str | None
    after: str | None


def changes(snapshots: Snapshots, run: Run) -> list[SourceChange]:
    """How the code that a run saw differs from that of today, its own sources first."""
    own = {part.path: part.digest for part in run.plan.parts if part.path}
    return [
        _texts(snapshots, path, digest, content)
        for path, _, digest, content in _changed(snapshots, run.request, own, run.snapshot)
    ]


def changes_since(
    snapshots: Snapshots, request: Request, sources: SweepSources
) -> list[SourceChange]:
    """How the code that was kept differs from that of today, its own sources first; not where
    only outputs and metadata of a notebook do. Paths are those from the root folder."""
    changed = _changed(snapshots, request, sources.files.digests, sources.snapshot)
    found = (
        _texts(snapshots, os.path.relpath(now, request.root), digest, content)
        for _, now, digest, content in changed
    )
    return [each for each in found if each.before != each.after]


def changed_sources(snapshots: Snapshots, request: Request, sources: SweepSources) -> list[str]:
    """The code that is not what it was when a sweep was submitted, its own sources first; by
    paths from the root folder."""
    changed = _changed(snapshots, request, sources.files.digests, sources.snapshot)
    return [os.path.relpath(now, request.root) for _, now, _, _ in changed]


def _texts(snapshots: Snapshots, path: str, digest: str, content: bytes | None) -> SourceChange:
    return SourceChange(path, text_of(_kept(snapshots, digest), path), text_of(content, path))


def _changed(
    snapshots: Snapshots, request: Request, own: Mapping[str, str | None], snapshot: str | None
) -> list[tuple[str, Path, str, bytes | None]]:
    """The sources that are others now, each with its place, the digest it had and what it is."""
    root = Path(request.root)
    named = {root / path for path in (*own, request.path) if path}
    if snapshot is None:
        pairs: list[tuple[str, Path, str | None, FileKey | None]] = [
            (path, root / path, digest, None) for path, digest in own.items()
        ]
    else:
        project = snapshots.read(snapshot)
        pairs = [
            (path, now, digest, key)
            for path, (key, digest) in project.files.items()
            if (now := Path(project.root, path)) in named
            or PurePosixPath(path).suffix.lower() in CODE
        ]
    found = [
        (now not in named, path, now, digest, content)
        for path, now, digest, key in pairs
        if digest is not None
        for content in _if_changed(now, digest, key)
    ]
    return [each[1:] for each in sorted(found, key=lambda each: each[:2])]


def describe(found: list[SourceChange]) -> list[dict[str, Json]]:
    return [change._asdict() for change in found]


def _if_changed(now: Path, digest: str, key: FileKey | None) -> Iterator[bytes | None]:
    """The content of a file if it is another one now; None when it is gone."""
    try:
        if key is not None and FileKey.of(now.lstat()) == key:
            return
        content: bytes | None = read_regular(now.resolve())
    except OSError:
        content = None
    if content is None or f"sha256:{hashlib.sha256(content).hexdigest()}" != digest:
        yield content


def _kept(snapshots: Snapshots, digest: str) -> bytes | None:
    try:
        return snapshots.content(digest)
    except ConvectError:
        return None


def text_of(content: bytes | None, path: str) -> str | None:
    """A source as people compare it: of a notebook, what its cells say."""
    if content is None:
        return None
    if path.endswith(".ipynb"):
        try:
            cells = json.loads(content)["cells"]
            return "\n\n".join("".join(cell["source"]) for cell in cells)[:LONGEST]
        except (ValueError, KeyError, TypeError):
            pass
    return content.decode(errors="replace")[:LONGEST]
