"""Write protection for folders, for this process and all that it starts. Linux 5.13 and newer."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
NO_NEW_PRIVILEGES = 38
WRITE_FILE, REFER, TRUNCATE = 1 << 1, 1 << 13, 1 << 14
WRITE = WRITE_FILE | sum(1 << bit for bit in range(4, 13))
"""Write a file; remove and make files, folders, links, sockets, devices."""


def version() -> int:
    """The version of Landlock that the kernel offers; 0 when there is none."""
    if sys.platform != "linux":
        return 0
    return max(int(_libc().syscall(CREATE_RULESET, None, ctypes.c_size_t(0), 1)), 0)


def protect(folders: Iterable[Path], except_for: Iterable[Path]) -> bool:
    """Let nobody write below `folders` from here on, except below `except_for`.

    Everything else can be written as before, but no new names can be made directly in a
    folder that holds a protected one. False when the kernel has no Landlock.
    """
    offered = version()
    if offered < 1:
        return False
    rights = WRITE | (REFER if offered >= 2 else 0) | (TRUNCATE if offered >= 3 else 0)
    libc = _libc()
    ruleset = libc.syscall(
        CREATE_RULESET, struct.pack("Q", rights), ctypes.c_size_t(8), ctypes.c_uint32(0)
    )
    if ruleset < 0:
        return False
    try:
        for path in (*_around(Path("/"), sorted(set(folders))), *except_for):
            _allow(ruleset, path, rights)
        libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        return int(libc.syscall(RESTRICT_SELF, ruleset, ctypes.c_uint32(0))) == 0
    finally:
        os.close(ruleset)


def _around(folder: Path, protected: list[Path]) -> Iterable[Path]:
    """The largest files and folders below `folder` that hold nothing protected."""
    try:
        names = list(folder.iterdir())
    except OSError:
        return
    for path in names:
        if path in protected or path.is_symlink():
            continue
        inside = [each for each in protected if each.is_relative_to(path)]
        if inside:
            yield from _around(path, inside)
        else:
            yield path


def _allow(ruleset: int, path: Path, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not path.is_dir():
            rights &= WRITE_FILE | TRUNCATE
        _libc().syscall(ADD_RULE, ruleset, 1, struct.pack("=Qi", rights, opened), 0)
    finally:
        os.close(opened)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
