"""Putting the files of an earlier result back where the step would have left them."""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path

from ..run_files import copy_regular, open_regular, size_of_regular
from .attempts import FileFact

BLOCK = 1 << 20


def is_complete(attempt_folder: Path, files: list[FileFact]) -> bool:
    """Whether all files of a result are still there, by their size."""
    try:
        return all(
            size_of_regular(attempt_folder / "files" / str(fact["path"])) == fact.get("size")
            for fact in files
        )
    except OSError:
        return False


def restore(attempt_folder: Path, files: list[FileFact], folder: Path) -> None:
    """Copy what is missing or different in `folder`; each file appears whole."""
    for fact in files:
        target = folder / str(fact["path"])
        if _is_same(target, fact):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}")
        try:
            copy_regular(attempt_folder / "files" / str(fact["path"]), beside)
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)


def _is_same(path: Path, fact: FileFact) -> bool:
    try:
        if path.stat().st_size != fact.get("size"):
            return False
        digest = hashlib.sha256()
        with open_regular(path) as file:
            while block := file.read(BLOCK):
                digest.update(block)
    except OSError:
        return False
    return f"sha256:{digest.hexdigest()}" == fact.get("digest")
