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
from collections.abc import Iterable, Mapping
from typing import Any

NEW_MOUNTS, NEW_USER = 0x20000, 0x10000000
READ_ONLY, NO_SUID, NO_DEVICES, NO_EXECUTION, REMOUNT = 1, 2, 4, 8, 32
BIND, RECURSIVE, SLAVE, DETACH = 4096, 16384, 1 << 19, 2
TIMES = {1024: 1024, 2048: 2048, 4096: 1 << 21}
"""What a mount does about times of access, as `statvfs` says it and as `mount` takes it."""
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
    written there, which nobody else sees; and `base`, a folder with `root`, `upper` and
    `work`, when the root itself is the lowest layer and holds others, which an overlay refuses.

    `outside` has such orders for other folders, and `read_only` files that stay as they are.
    """
    orders = sorted([order, *order["outside"]], key=lambda each: str(each["root"]).count("/"))
    descriptors: list[int] = []
    done: list[str] = []
    try:
        # What is mounted hides what lies below: so all of it is opened before.
        ready = [_Overlay(each, descriptors) for each in orders]
        for path in order["read_only"]:
            _protect(path)
        for each in ready:
            each.mount(done)
    except BaseException:
        for root in reversed(done):
            _libc().umount2(os.fsencode(root), DETACH)
        raise
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


class _Overlay:
    """An overlay with everything opened that it is made of."""

    def __init__(self, order: Mapping[str, Any], descriptors: list[int]) -> None:
        self.root = order["root"]
        self.kept = _found(self.root, ((path,) for path in order["live"]), descriptors)
        self.hidden = [
            (found, path, *(_open(f"{folder}/{name}", descriptors) for name in ("upper", "work")))
            for found, path, folder in _found(self.root, order["private"], descriptors)
        ]
        lowers = list(order["lowers"])
        if base := order.get("base"):
            above = [_open(f"{base}/{name}", descriptors) for name in ("upper", "work")]
            _overlay(f"{base}/root", [_open(self.root, descriptors)], *above)
            lowers.append(f"{base}/root")
        self.lowers = [_open(path, descriptors) for path in lowers]
        self.upper, self.work = (_open(order[name], descriptors) for name in ("upper", "work"))

    def mount(self, done: list[str]) -> None:
        _overlay(self.root, self.lowers, self.upper, self.work)
        done.append(self.root)
        for descriptor, path in self.kept:
            target = f"{self.root}/{path}"
            _mount("live", f"/proc/self/fd/{descriptor}", target, None, BIND | RECURSIVE)
        for descriptor, path, upper, work in self.hidden:
            _overlay(f"{self.root}/{path}", [descriptor], upper, work)


def _found(root: str, items: Iterable[Any], descriptors: list[int]) -> list[Any]:
    """Those of which the path below the root is still there, each after its descriptor."""
    found = []
    for path, *rest in items:
        try:
            found.append((_open(f"{root}/{path}", descriptors, 0), path, *rest))
        except FileNotFoundError:
            continue
    return found


def _protect(path: str) -> None:
    """Let nobody write to a file."""
    kept = os.statvfs(path).f_flag
    flags = kept & (NO_SUID | NO_DEVICES | NO_EXECUTION) | READ_ONLY | BIND
    for name, flag in TIMES.items():
        if kept & name:
            flags |= flag
    _mount("file", path, path, None, BIND)
    _mount("file", None, path, None, flags | REMOUNT)


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


def _open(path: str, descriptors: list[int], flags: int = os.O_DIRECTORY) -> int:
    descriptor = os.open(path, os.O_PATH | flags)
    descriptors.append(descriptor)
    return descriptor


def _overlay(root: str, lowers: list[int], upper: int, work: int) -> None:
    # Layers are named by descriptors: no character of a path needs escaping then.
    options = "lowerdir=" + ":".join(f"/proc/self/fd/{number}" for number in lowers)
    options += f",upperdir=/proc/self/fd/{upper},workdir=/proc/self/fd/{work}"
    flags = NO_DEVICES | NO_SUID
    _mount("overlay", "convect", root, "overlay", flags, f"{options},userxattr")


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
