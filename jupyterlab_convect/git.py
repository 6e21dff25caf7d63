"""Which commit the code of a run is."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .runs.model import Git

PATIENCE = 3.0
"""Seconds; a repository that takes longer to answer is left out of the record."""


def git_of(root: Path, paths: Sequence[str]) -> Git | None:
    """The commit that `root` is at, dirty when tracked files or one of `paths` differ from it."""
    if not any((folder / ".git").exists() for folder in (root, *root.parents)):
        return None
    status = _git(root, "status", "--porcelain=v2", "--branch", "--untracked-files=no")
    if status is None:
        return None
    heads = dict(
        line.removeprefix("# branch.").split(" ", 1)
        for line in status.splitlines()
        if line.startswith("# branch.")
    )
    if heads.get("oid", "(initial)") == "(initial)":
        return None
    dirty = any(not line.startswith("#") for line in status.splitlines())
    return Git(
        commit=heads["oid"],
        branch=None if heads.get("head") == "(detached)" else heads.get("head"),
        dirty=dirty or (bool(paths) and not _tracked(root, paths)),
    )


def _tracked(root: Path, paths: Sequence[str]) -> bool:
    return _git(root, "ls-files", "--error-unmatch", "--", *paths) is not None


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "--literal-pathspecs", "-c", "core.fsmonitor=false", *arguments],
            cwd=root,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
