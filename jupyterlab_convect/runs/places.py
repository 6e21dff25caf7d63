"""Which disks can be trusted with a database."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

NETWORK = frozenset(
    (
        *("9p", "afs", "beegfs", "ceph", "cifs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs"),
        *("nfs4", "ocfs2", "orangefs", "smb2", "smb3", "smbfs", "virtiofs"),
        *("fuse.blobfuse", "fuse.ceph", "fuse.gcsfuse", "fuse.glusterfs", "fuse.juicefs"),
        *("fuse.s3fs", "fuse.sshfs"),
    )
)


def local_place(path: Path) -> Path:
    """`path`, or its twin in the machine's temporary folder when it lies on a network disk."""
    if not on_network(path):
        return path
    folder = Path(tempfile.gettempdir(), f"jupyterlab-convect-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    # Somebody else's folder of that name is not ours to trust.
    return folder / path.name if folder.stat().st_uid == os.getuid() else path


def on_network(path: Path) -> bool:
    try:
        mounts = Path("/proc/self/mounts").read_text(errors="replace")
    except OSError:
        return False
    return _is_network(path.absolute(), mounts)


def _is_network(path: Path, mounts: str) -> bool:
    """Whether the innermost mount that holds `path` is of a network file system."""
    kinds: dict[Path, str] = {}
    for line in mounts.splitlines():
        words = line.split(" ")
        if len(words) > 2:
            kinds[Path(_unescape(words[1]))] = words[2]
    home = next((folder for folder in (path, *path.parents) if folder in kinds), None)
    return home is not None and kinds[home] in NETWORK


def _unescape(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)
