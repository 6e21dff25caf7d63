"""Putting the files that a run made into the project: whole files, never over what changed.

A file is put only where the project is still as it was when the run was submitted, unless
somebody has seen that it is not and wants it all the same.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import words_of
from ..runner.layers import FileKey, Made, copy, is_ignored, part_of, same_content
from .scan import target_of
from .snapshots import Snapshot

EXCHANGE = 2


@dataclass(slots=True)
class PutBack:
    """What came of it, by path relative to the project."""

    put: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    """What stays with the run, and why."""


def last_made(results: Iterable[tuple[Path, Sequence[Made]]]) -> dict[str, tuple[Path, Made]]:
    """Each path that the steps of a run have made, as the last of them left it."""
    found: dict[str, tuple[Path, Made]] = {}
    for folder, files in results:
        for each in files:
            if each.change == "deleted":
                for path in [path for path in found if path.startswith(f"{each.path}/")]:
                    del found[path]
            found[each.path] = (folder / each.path, each)
    return found


def put_back(
    made: Mapping[str, tuple[Path, Made]],
    snapshot: Snapshot,
    submitted: float,
    *,
    replace: bool = False,
) -> PutBack:
    """Put files into the project that `snapshot` is of; `submitted` is when it was taken.

    With `replace` also over files that changed since.
    """
    result = PutBack()
    outside = {name: to for name, to in snapshot.outside.items() if name not in made}
    for path, (source, each) in sorted(made.items()):
        target = target_of(snapshot.root, path, outside)
        if is_ignored(path) or (
            each.change == "deleted" and not _was_there(target, path, snapshot)
        ):
            continue
        try:
            if each.change == "deleted":
                why = _delete(target, path, snapshot, submitted, replace=replace)
            else:
                before = _before(snapshot, path)
                why = _put(source, target, before, submitted, replace=replace)
        except OSError as error:
            why = f"it cannot be written: {words_of(error)}"
        if why is None:
            result.put.append(path)
        else:
            result.kept[path] = why
    return result


def _was_there(target: Path, path: str, snapshot: Snapshot) -> bool:
    """Whether the project has, or had at submit, what a step deleted: else an earlier step of the
    run made it."""
    known = path in snapshot.files or path in snapshot.folders
    return known or os.path.lexists(target)


def _before(snapshot: Snapshot, path: str) -> FileKey | bool | None:
    """The file at submit; None when there was none; True when nobody knows."""
    found = snapshot.files.get(path)
    if found is not None:
        return found[0]
    return None if snapshot.whole and not part_of(path, snapshot.outside)[0] else True


def _put(
    source: Path, target: Path, before: FileKey | bool | None, submitted: float, *, replace: bool
) -> str | None:
    """None when it is there now, else why not."""
    if not os.path.lexists(source):
        return "it is no longer kept with the run"
    if _is_there(target, source):
        return None
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = _draft(target)
    try:
        copy(source, draft)
        if replace:
            draft.replace(target)
            return None
        return _move_there(draft, target, before, submitted)
    finally:
        draft.unlink(missing_ok=True)


def _move_there(
    draft: Path, target: Path, before: FileKey | bool | None, submitted: float
) -> str | None:
    if before is True:
        # Nobody wrote down what was there: whatever has not been touched since is still it.
        before = _untouched(target, submitted)
        if before is False:
            return "it changed after the run was submitted"
    if before is None:
        try:
            os.link(draft, target, follow_symlinks=False)
        except FileExistsError:
            return "somebody made it after the run was submitted"
        return None
    try:
        if FileKey.of(target.lstat()) != before:
            return "it changed after the run was submitted"
    except FileNotFoundError:
        return "somebody deleted it after the run was submitted"
    if not _exchange(draft, target):
        draft.replace(target)
    elif FileKey.of(draft.lstat()) != before:
        _exchange(draft, target)
        return "it changed after the run was submitted"
    return None


def _untouched(target: Path, submitted: float) -> FileKey | bool | None:
    try:
        status = target.lstat()
    except FileNotFoundError:
        return None
    return FileKey.of(status) if status.st_ctime < submitted else False


def _is_there(target: Path, source: Path) -> bool:
    """Whether the project has the very file already."""
    try:
        modes = {stat.S_IMODE(path.lstat().st_mode) for path in (target, source)}
    except OSError:
        return False
    return len(modes) == 1 and same_content(target, source)


def _delete(
    target: Path, path: str, snapshot: Snapshot, submitted: float, *, replace: bool
) -> str | None:
    if not os.path.lexists(target):
        return None
    if not target.is_dir() or target.is_symlink():
        before = _before(snapshot, path)
        if before is True:
            before = _untouched(target, submitted)
        if replace:
            target.unlink()
        elif not isinstance(before, FileKey) or not _remove(target, before):
            return "it changed after the run was submitted"
        return None
    for each in [each for each in snapshot.files if each.startswith(f"{path}/")]:
        with contextlib.suppress(OSError):
            _remove(target / each[len(path) + 1 :], snapshot.files[each][0])
    for parent, _, _ in os.walk(target, topdown=False):
        with contextlib.suppress(OSError):
            Path(parent).rmdir()
    return "something in it changed after the run was submitted" if target.exists() else None


def _remove(target: Path, before: FileKey) -> bool:
    """Remove a file if it is what it was. It is looked at again under a name that nobody else
    knows: who saves it at that moment gets it back."""
    if FileKey.of(target.lstat()) != before:
        return False
    aside = _draft(target)
    target.rename(aside)
    is_same = FileKey.of(aside.lstat()) == before
    if not is_same:
        try:
            os.link(aside, target, follow_symlinks=False)
        except FileExistsError:
            pass  # It was saved once more.
        except OSError:
            aside.rename(target)
    aside.unlink(missing_ok=True)
    return is_same


def _draft(target: Path) -> Path:
    return target.with_name(f".{target.name[:100]}.convect-{secrets.token_hex(4)}")


def _exchange(one: Path, other: Path) -> bool:
    """Swap two files in one step, where the system can."""
    if sys.platform != "linux":
        return False
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        return False
    here = ctypes.c_int(-100)
    return bool(libc.renameat2(here, os.fsencode(one), here, os.fsencode(other), EXCHANGE) == 0)
