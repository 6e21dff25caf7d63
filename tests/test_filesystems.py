"""The index never lies on a network, whatever the home folder is made of."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jupyterlab_convect import filesystems
from jupyterlab_convect.filesystems import file_system, is_remote, private_folder
from jupyterlab_convect.settings import Settings

MOUNTS = """\
overlay / overlay rw 0 0
proc /proc proc rw 0 0
server:/homes /home nfs4 rw,vers=4.2 0 0
/dev/sdb1 /home/local\\040disk ext4 rw 0 0
tmpfs /scratch tmpfs rw 0 0
server:/scratch /scratch nfs rw 0 0
s3 /buckets fuse.s3fs rw 0 0
broken
"""


@pytest.mark.parametrize(
    ("path", "kind", "remote"),
    [
        ("/root/.cache", "overlay", False),
        ("/home/me/.cache", "nfs4", True),
        ("/homeless/.cache", "overlay", False),
        ("/home/local disk/.cache", "ext4", False),
        ("/scratch/me", "nfs", True),
        ("/buckets/mine", "fuse.s3fs", True),
        ("/home", "nfs4", True),
    ],
)
def test_the_deepest_and_latest_mount_counts(path: str, kind: str, remote: bool) -> None:
    assert file_system(Path(path), MOUNTS) == kind
    assert is_remote(Path(path), MOUNTS) is remote


def test_where_mounts_are_unknown_nothing_is_remote() -> None:
    assert not is_remote(Path("/home/me"), "")


def test_the_index_leaves_a_home_on_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"server:/home {tmp_path}/home nfs4 rw 0 0\n")
    monkeypatch.setattr(filesystems, "_MOUNTS", mounts)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv("CONVECT_INDEX_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home/.cache"))
    folder = Path(Settings().index_dir)
    assert folder == tmp_path / f"jupyterlab-convect-{os.getuid()}"
    assert folder.stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "disk"))
    assert Settings().index_dir == str(tmp_path / "disk/jupyterlab-convect")


def test_a_folder_that_somebody_else_prepared_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    trap = tmp_path / f"x-{os.getuid()}"
    trap.symlink_to(tmp_path)
    assert private_folder("x") != trap
    trap.unlink()
    trap.mkdir(mode=0o777)
    assert private_folder("x") == trap
    assert trap.stat().st_mode & 0o777 == 0o700
