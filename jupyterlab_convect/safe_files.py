"""The files of runs: opened only when they are regular, written whole, and private.

A run folder may have been tampered with, or lie in a folder that others write to as well:
a link, a FIFO or a device in the place of a file is refused, and never waited for.

New files and folders are for their owner alone, unless the folder that they are made in is
shared with its group (set-group-ID and readable by the group): then the group reads them too.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import os
import secrets
import stat
from pathlib import Path
from typing import BinaryIO

PRIVATE, SHARED = 0o700, 0o2750
"""Modes of a folder for its owner alone, and of one that its group reads."""

_BLOCK = 1 << 20
_SAFELY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading; an OSError when it is anything but a regular file."""
    return os.fdopen(_open(path, os.O_RDONLY), "rb")


def read_regular(path: Path) -> bytes:
    with open_regular(path) as file:
        return file.read()


def copy_regular(source: Path, target: Path) -> tuple[int, str]:
    """Copy a regular file with its mode and times to where nothing is; its size and digest."""
    with open_regular(source) as file:
        status = os.fstat(file.fileno())
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(target, flags, 0o600), "wb") as copy:
            digest, count = hashlib.sha256(), 0
            while block := file.read(_BLOCK):
                digest.update(block)
                count += copy.write(block)
            copy.flush()
            os.fchmod(copy.fileno(), status.st_mode & 0o777)
            os.utime(copy.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))
    return count, f"sha256:{digest.hexdigest()}"


def size_of_regular(path: Path) -> int:
    """Its bytes; an OSError when it is anything but a regular file."""
    status = path.lstat()
    _require_regular(status, path)
    return status.st_size


def refuse_links(base: Path, path: Path) -> None:
    """An OSError when anything on the way from `base`, which may be one, to `path` is a link."""
    for part in (path, *path.parents):
        if part == base:
            return
        if part.is_symlink():
            raise OSError(errno.ELOOP, "A link is not followed", str(part))


def append_to(path: Path, flags: int = os.O_WRONLY) -> int:
    """A descriptor that appends to a file, which is made if it is not there."""
    mode = _file_mode(path.parent)
    descriptor = _open(path, flags | os.O_APPEND | os.O_CREAT, mode)
    _share(descriptor, mode)
    return descriptor


def write_new(path: Path, data: bytes) -> None:
    """Make a file, whole or not at all; FileExistsError when there is anything of that name."""
    mode = _file_mode(path.parent)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            _share(descriptor, mode)
            file.write(data)
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink()
        raise


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees the old or the new one, never a part."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        write_new(draft, data)
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


def make_folder(path: Path, mode: int | None = None) -> None:
    """Make a folder, and those above it; with the rights of the one above unless `mode` is given.

    One that is there already stays as it is.
    """
    if path.is_dir():
        return
    make_folder(path.parent)
    mode = (SHARED if is_shared(path.parent) else PRIVATE) if mode is None else mode
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode & PRIVATE)
        if mode & ~PRIVATE:
            path.chmod(mode)  # the file mode creation mask must not take the group's rights away


def make_runs_folder(path: Path, *, shared: bool) -> None:
    """Make the folder that holds the runs, or put the rights of one's own right.

    Shared, the members of its group make their own runs there and read those of each other.
    A folder that was given special rights, such as `/tmp` has, stays as somebody wanted it.
    """
    make_folder(path, 0o3770 if shared else PRIVATE)
    status = path.stat()
    if status.st_uid != os.geteuid():
        return
    if shared and status.st_mode & 0o2070 != 0o2070:
        path.chmod(0o3770)
    elif not shared and status.st_mode & 0o077 and not status.st_mode & 0o7000:
        path.chmod(PRIVATE)


def own_folder(parent: Path, name: str) -> Path:
    """A folder of this name that belongs to this user, also where others have made theirs.

    What is found there may be executed, so nobody else must have put it there. Where nothing
    can be made, it is a folder that is not there.
    """
    user = owner_of_new_files(parent)
    path = parent / name
    for number in itertools.count(1):
        try:
            make_folder(path)
        except OSError:
            break
        if owner_of(path) == user:
            break
        path = parent / f"{name}-{user}.{number}"
    return path


def is_shared(folder: Path) -> bool:
    """Whether the group of the folder reads what is in it."""
    try:
        return folder.stat().st_mode & 0o2040 == 0o2040
    except OSError:
        return False


def owner_of_new_files(folder: Path) -> int:
    """Whom the file system says that files belong to which this user makes in the folder.

    That is the user, unless the file system knows no users, as some network shares do not.
    """
    probe = folder / f".owner.{secrets.token_hex(4)}"
    try:
        write_new(probe, b"")
        return probe.lstat().st_uid
    except OSError:
        return os.geteuid()
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()


def owner_of(path: Path) -> int | None:
    """Whom a file or folder belongs to; None when there is none, or a link."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return None if stat.S_ISLNK(status.st_mode) else status.st_uid


def _open(path: Path, flags: int, mode: int = 0o600) -> int:
    try:
        descriptor = os.open(path, flags | _SAFELY, mode)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link; a socket, or a FIFO without reader
            raise _not_regular(path) from None
        raise
    try:
        _require_regular(os.fstat(descriptor), path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _require_regular(status: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise _not_regular(path)


def _not_regular(path: Path) -> OSError:
    return OSError(errno.EINVAL, "Not a regular file", str(path))


def _file_mode(folder: Path) -> int:
    return 0o640 if is_shared(folder) else 0o600


def _share(descriptor: int, mode: int) -> None:
    if mode & 0o077 and os.fstat(descriptor).st_mode & 0o777 != mode:
        with contextlib.suppress(OSError):  # somebody else's file stays as it is
            os.fchmod(descriptor, mode)
