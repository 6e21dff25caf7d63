"""Folders that can hold a database, which are those on a disk of this machine, and sockets."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from pathlib import Path

_NETWORK = re.compile(
    r"9p|afs|beegfs|ceph|cifs|davfs|gfs2?|glusterfs|gpfs|lustre|ncpfs|nfs\d?|ocfs2|orangefs|panfs"
    r"|pvfs2|smb(fs|\d)?|virtiofs|wekafs|fuse.*"
)
_MOUNTS = Path("/proc/self/mounts")
_SOCKET_NAME = 103
"""Bytes in the name of a socket, at most; Linux allows four more."""


def local_folder(wanted: Path, name: str) -> Path:
    """`wanted`, or a private folder in the temporary one when `wanted` is on a network."""
    return private_folder(name) if is_remote(wanted.absolute(), _read(_MOUNTS)) else wanted


def is_remote(path: Path, mounts: str) -> bool:
    """Whether a path is on a network (or FUSE) file system, by the text of /proc/self/mounts."""
    return _NETWORK.fullmatch(file_system(path, mounts)) is not None


def file_system(path: Path, mounts: str) -> str:
    """The type of the file system that holds an absolute path; empty when nobody knows."""
    deepest, kind = -1, ""
    inside = f"{path}/"
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = f"{_unescape(fields[1]).rstrip('/')}/"
        # Of two mounts at one place the later hides the earlier.
        if inside.startswith(point) and len(point) >= deepest:
            deepest, kind = len(point), fields[2]
    return kind


def mount_points() -> frozenset[str]:
    """Where something is mounted."""
    lines = _read(_MOUNTS).splitlines()
    return frozenset(_unescape(line.split(" ")[1]) for line in lines if " " in line)


def _unescape(text: str) -> str:
    return (
        text
        if "\\" not in text
        else re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
    )


def private_folder(name: str) -> Path:
    """A folder of this user's in the temporary one; nobody else can have made it or look in."""
    path = Path(tempfile.gettempdir(), f"{name}-{os.getuid()}")
    path.mkdir(mode=0o700, exist_ok=True)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        return Path(tempfile.mkdtemp(prefix=f"{name}-"))
    path.chmod(0o700)
    return path


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "surrogateescape")
    except OSError:
        return ""


def socket_folders() -> list[str]:
    """Where sockets can be: the temporary folder, or another if its name is too long for that."""
    others = ("/tmp", "/var/tmp")  # noqa: S108 (only for folders that mkdtemp makes)
    wanted = (tempfile.gettempdir(), os.environ.get("XDG_RUNTIME_DIR"), *others)
    return [
        folder
        for folder in dict.fromkeys(wanted)
        if folder and fits_sockets(Path(folder, "x" * 24))
    ]


def fits_sockets(folder: Path) -> bool:
    """Whether the name of a folder is short enough for the sockets of a kernel."""
    return len(os.fsencode(folder / "k-5")) <= _SOCKET_NAME
