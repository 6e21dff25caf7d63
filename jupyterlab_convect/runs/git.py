"""Which commit the code of a run is, and how it differs from that."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..runner.environment import FOLDER, make, path_of, touch
from ..safe_files import write_whole
from .model import Git

PATIENCE = 3.0
"""Seconds; a repository that takes longer to answer is left out of the record."""
STATUS_PATIENCE, SLOW_FOR = 1.0, 600.0
"""Seconds to tell what has changed, and for which it is not asked again when that was too short."""
PATIENCE_BEHIND = 20.0
"""Seconds for what nobody waits for."""
LONGEST = 1_000_000
"""Bytes that are kept of a difference."""
MOST_NAMES = 1_000
SOURCES = {
    *(".py", ".ipynb", ".pipeline", ".r", ".jl", ".sh", ".sql", ".scala", ".js", ".ts", ".c"),
    *(".cpp", ".cu", ".h", ".rs", ".go", ".java", ".yaml", ".yml", ".toml", ".cfg", ".ini"),
}
"""Endings of files that are likely to be code or settings, not data."""


_slow: dict[Path, float] = {}
"""Large repositories, and until when they are only asked for their commit."""


def git_of(folder: Path, paths: Sequence[Path]) -> Git | None:
    """The commit that `folder` is at, dirty when tracked files or one of `paths` differ from it.

    Whether it is dirty stays open where telling would keep a run waiting.
    """
    top = _top(folder)
    if top is None:
        return None
    status = _status(top)
    if status is None:
        return _commit(top)
    entries = status.rstrip("\0").split("\0")
    heads = dict(
        entry.removeprefix("# branch.").split(" ", 1)
        for entry in entries
        if entry.startswith("# branch.")
    )
    if heads.get("oid", "(initial)") == "(initial)":
        return None
    changed = [entry for entry in entries if not entry.startswith("#")]
    inside = [path for path in paths if path.is_relative_to(top)]
    untracked = bool(inside) and not _tracked(top, inside)
    dirty = bool(changed) or untracked
    return Git(
        commit=heads["oid"],
        branch=None if heads.get("head") == "(detached)" else heads.get("head"),
        dirty=dirty,
        difference=_fingerprint(top, heads["oid"], changed, inside) if dirty else None,
    )


def keep_difference(runs: Path, folder: Path, git: Git) -> None:
    """Keep how `folder` differs from the commit, once for each state that it is in.

    It reads what has changed, which may take long: not while anybody waits. The folder is for
    its owner alone, because a change may hold whatever somebody has typed.
    """
    top = _top(folder)
    if top is None or git.difference is None:
        return
    path = path_of(runs / FOLDER, git.difference)
    if not touch(path):
        text, is_cut = _difference(top)
        names = list(_untracked_sources(top))
        found = {
            "text": text,
            "cut": is_cut,
            "untracked": names[:MOST_NAMES],
            "untracked_cut": len(names) > MOST_NAMES,
        }
        make(path.parent)
        write_whole(path, json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))


def _status(top: Path) -> str | None:
    began = time.monotonic()
    if _slow.get(top, 0.0) > began:
        return None
    what = ("status", "--porcelain=v2", "--branch", "--untracked-files=no", "-z")
    status = _git(top, *what, patience=STATUS_PATIENCE)
    if status is None and time.monotonic() - began >= STATUS_PATIENCE:
        _slow[top] = time.monotonic() + SLOW_FOR
    return status


def _commit(top: Path) -> Git | None:
    """The commit and nothing else."""
    found = (_git(top, "rev-parse", "HEAD", "--abbrev-ref", "HEAD") or "").split()
    if len(found) != 2:
        return None
    return Git(found[0], branch=None if found[1] == "HEAD" else found[1], dirty=None)


def _top(folder: Path) -> Path | None:
    """The folder of the repository that `folder` is in."""
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)


def _fingerprint(top: Path, commit: str, changed: list[str], inside: Sequence[Path]) -> str:
    """Stands for all that differs, without reading it: the same while no file was written to."""
    files = sorted({*(top / _name(entry) for entry in changed), *inside})
    facts = [str(top), commit, changed, [(str(file), *_state(file)) for file in files]]
    return "sha256:" + hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _name(entry: str) -> str:
    """The path in an entry of `git status`; what was renamed has its old one as an entry, too."""
    fields_before = {"1 ": 8, "2 ": 9, "u ": 10}.get(entry[:2], 0)
    return entry.split(" ", fields_before)[-1]


def _state(file: Path) -> tuple[int, int]:
    try:
        found = file.lstat()
        return found.st_mtime_ns, found.st_size
    except OSError:
        return 0, -1


def _tracked(top: Path, paths: Sequence[Path]) -> bool:
    return _git(top, "ls-files", "--error-unmatch", "--", *map(str, paths)) is not None


def _difference(top: Path) -> tuple[str, bool]:
    """The difference to the commit as a text, and whether it was too long to be whole."""
    with _start(top, "diff", "HEAD", "--no-color", "--no-ext-diff", "--no-textconv") as process:
        assert process.stdout is not None
        alarm = threading.Timer(PATIENCE_BEHIND, process.kill)
        alarm.start()
        data = process.stdout.read(LONGEST + 1)
        process.kill()
        late = alarm.finished.is_set()
        alarm.cancel()
    is_cut = late or len(data) > LONGEST
    return data[:LONGEST].decode("utf-8", "ignore" if is_cut else "replace"), is_cut


def _untracked_sources(top: Path) -> Iterator[str]:
    found = _git(top, "ls-files", "--others", "--exclude-standard", "-z", patience=PATIENCE_BEHIND)
    for name in (found or "").split("\0"):
        if Path(name).suffix.lower() in SOURCES:
            yield name


def _git(top: Path, *arguments: str, patience: float = PATIENCE) -> str | None:
    try:
        with _start(top, *arguments) as process:
            try:
                output, _ = process.communicate(timeout=patience)
            except subprocess.TimeoutExpired:
                process.kill()
                return None
    except OSError:
        return None
    return output.decode("utf-8", "surrogateescape") if process.returncode == 0 else None


def _start(top: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["git", "--literal-pathspecs", "-c", "core.fsmonitor=false", *arguments],
        cwd=top,
        env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
