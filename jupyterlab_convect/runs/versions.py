"""The sources that a run executed, beside the files as they are now."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

from ..pipeline.plan import Json
from ..run_files import read_regular
from ..runner.layers import Key
from .model import Run
from .snapshots import CODE, Snapshots

Version = Literal["today", "run"]
"""Which files a run that is repeated executes: as they are now, or as they were."""

LONGEST = 200_000
"""Characters of a text that is shown."""


class Change(NamedTuple):
    """A source that is not what it was; None is a file that is not there."""

    path: str
    before: str | None
    after: str | None


def changes(snapshots: Snapshots, run: Run) -> list[Change]:
    """How the code that a run saw differs from that of today, its own sources first."""
    found = []
    if run.snapshot is None:
        root = Path(run.request.root)
        known = {step.path: step.digest for step in run.plan.steps if step.path}
        pairs: list[tuple[str, Path, str | None, Key | None]] = [
            (path, root / path, digest, None) for path, digest in known.items()
        ]
    else:
        snapshot = snapshots.read(run.snapshot)
        root = Path(snapshot.root)
        pairs = [
            (path, root / path, digest, key)
            for path, (key, digest) in snapshot.files.items()
            if PurePosixPath(path).suffix.lower() in CODE
        ]
    for path, now, digest, key in pairs:
        if digest is not None and (changed := _change(snapshots, path, now, digest, key)):
            found.append(changed)
    own = {(Path(run.request.root) / step.path) for step in run.plan.steps if step.path}
    return sorted(found, key=lambda change: (root / change.path not in own, change.path))


def describe(found: list[Change]) -> list[dict[str, Json]]:
    return [change._asdict() for change in found]


def _change(
    snapshots: Snapshots, path: str, now: Path, digest: str, key: Key | None
) -> Change | None:
    try:
        if key is not None and Key.of(now.lstat()) == key:
            return None
        content: bytes | None = now.read_bytes()
    except OSError:
        content = None
    if content is not None and f"sha256:{hashlib.sha256(content).hexdigest()}" == digest:
        return None
    try:
        before = read_regular(snapshots.object(digest))
    except OSError:
        before = None
    return Change(path, text_of(before, path), text_of(content, path))


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
