"""A folder as one process tree sees it: read-only layers below, a private one on top.

Linux only, with the standard library only and nothing of ours around it: the fork server
of another interpreter executes this file too. An ordinary user may do all of it where the
system allows user namespaces; root needs a mount namespace alone.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Mapping
from typing import Any

NEW_MOUNTS, NEW_USER = 0x20000, 0x10000000
NO_SUID, NO_DEVICES, BIND, RECURSIVE, SLAVE = 2, 4, 4096, 16384, 1 << 19
CAPABILITY_VERSION = 0x20080522
SET_DUMPABLE = 4

OPAQUE = "user.overlay.opaque"


class Refusal(Exception):
    """This system does not let us: at which stage, and the system's number for why."""

    def __init__(self, stage: str, number: int) -> None:
        super().__init__(f"{stage}: {os.strerror(number)}")
        self.stage = stage
        self.number = number

    @property
    def sentence(self) -> str:
        return _REASONS.get(
            (self.stage, self.number), f"The system refused it ({self.stage}: {self.number})."
        )


_NO_NAMESPACES = "User namespaces are not allowed here."
_REASONS = {
    ("unshare", errno.EPERM): _NO_NAMESPACES,
    ("unshare", errno.EACCES): _NO_NAMESPACES,
    ("unshare", errno.ENOSPC): "No more user namespaces are allowed (user.max_user_namespaces).",
    ("unshare", errno.EINVAL): "The kernel has no user namespaces.",
    ("unshare", errno.ENOSYS): "The kernel has no user namespaces.",
    ("maps", errno.EPERM): "AppArmor forbids the use of user namespaces.",
    ("maps", errno.EACCES): "AppArmor forbids the use of user namespaces.",
    ("private", errno.EPERM): "Mounts are not allowed here.",
    ("private", errno.EACCES): "Mounts are not allowed here.",
    ("overlay", errno.EPERM): "The kernel allows overlays to root only.",
    ("overlay", errno.EACCES): "Mounts are not allowed here.",
    ("overlay", errno.ENODEV): "The kernel has no overlay file system.",
    ("overlay", errno.EINVAL): "This disk cannot hold an overlay.",
    ("platform", errno.ENOSYS): "Only Linux has overlays.",
}


def enter() -> None:
    """Move this process, which must have one thread only, into a mount namespace of its own.

    What is mounted outside later still appears inside; nothing goes the other way.
    """
    if sys.platform != "linux":
        raise Refusal("platform", errno.ENOSYS)
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0:
        _call("unshare", _libc().unshare(NEW_MOUNTS))
    else:
        _libc().prctl(SET_DUMPABLE, 1, 0, 0, 0)  # else its own maps are not its to write
        _call("unshare", _libc().unshare(NEW_USER | NEW_MOUNTS))
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{uid} {uid} 1"),
            ("gid_map", f"{gid} {gid} 1"),
        ):
            try:
                with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123
                    file.write(text)
            except OSError as error:
                raise Refusal("maps", error.errno or errno.EPERM) from None
    _mount("private", None, "/", None, RECURSIVE | SLAVE)


def mount(order: Mapping[str, Any]) -> None:
    """Put a view over a folder, in the namespace that `enter` made.

    The order has `root`, the folder; `lowers`, the read-only layers, the topmost first;
    `upper` and `work`, empty folders of one disk; `live`, paths below the root that stay
    what they are; `private`, pairs of a path below the root and a folder for what is
    written there, which nobody else sees.
    """
    root = order["root"]
    kept = [(found, path) for path in order["live"] if (found := _opened(f"{root}/{path}")) >= 0]
    hidden = [
        (found, path, folder)
        for path, folder in order["private"]
        if (found := _opened(f"{root}/{path}")) >= 0
    ]
    try:
        _overlay(root, order["lowers"], order["upper"], order["work"])
        for descriptor, path in kept:
            target = f"{root}/{path}"
            _mount("live", f"/proc/self/fd/{descriptor}", target, None, BIND | RECURSIVE)
        for descriptor, path, folder in hidden:
            lower = f"/proc/self/fd/{descriptor}"
            _overlay(f"{root}/{path}", [lower], f"{folder}/upper", f"{folder}/work")
    finally:
        for descriptor, *_ in (*kept, *hidden):
            os.close(descriptor)


def drop_capabilities() -> None:
    """Give back what a user namespace gave: with it, read-only files could be written."""
    if os.geteuid() == 0:
        return

    class Header(ctypes.Structure):
        _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))

    nothing = (ctypes.c_uint32 * 6)()
    header = Header(CAPABILITY_VERSION, 0)
    _call("capabilities", _libc().capset(ctypes.byref(header), nothing))


def is_whiteout(status: os.stat_result) -> bool:
    """Whether a file of an upper folder says that the one below it was deleted."""
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def is_opaque(folder: str) -> bool:
    """Whether a folder of an upper folder replaces the one below instead of adding to it."""
    try:
        return os.getxattr(folder, OPAQUE, follow_symlinks=False) == b"y"
    except OSError:
        return False


def make_whiteout(path: str) -> None:
    """Have a layer hide what lies below it at this path."""
    os.mknod(path, stat.S_IFCHR | 0o600, 0)


def _opened(path: str) -> int:
    """A descriptor of a folder; below zero when it has gone meanwhile."""
    try:
        return os.open(path, os.O_PATH)
    except OSError:
        return -1


def _overlay(root: str, lowers: list[str], upper: str, work: str) -> None:
    # Layers are named by descriptors: no character of a path needs escaping then.
    opened = [os.open(path, os.O_PATH | os.O_DIRECTORY) for path in (*lowers, upper, work)]
    names = [f"/proc/self/fd/{descriptor}" for descriptor in opened]
    options = f"lowerdir={':'.join(names[:-2])},upperdir={names[-2]},workdir={names[-1]},userxattr"
    try:
        _mount("overlay", "convect", root, "overlay", NO_DEVICES | NO_SUID, options)
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _mount(
    stage: str,
    source: str | None,
    target: str,
    kind: str | None,
    flags: int,
    options: str | None = None,
) -> None:
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    data = None if options is None else options.encode()
    _call(stage, _libc().mount(*encoded, ctypes.c_ulong(flags), data))


def _call(stage: str, result: int) -> None:
    if result < 0:
        raise Refusal(stage, ctypes.get_errno())


def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)
