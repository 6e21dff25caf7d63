"""A run folder can be handed on as it is, without what belongs to whoever drives it."""

from __future__ import annotations

import io
import os
import socket
import zipfile
from pathlib import Path

from jupyterlab_convect.runs.archive import CHUNK, archive
from jupyterlab_convect.runs.lease import Lease


def opened(folder: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(b"".join(archive(folder))))


def test_an_archive_has_everything_and_no_more(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    (folder / "steps" / "数据 {1}").mkdir(parents=True)
    large = os.urandom(CHUNK * 2 + 1)
    (folder / "steps" / "数据 {1}" / "x.bin").write_bytes(large)
    (folder / "run.json").write_text("{}")
    os.utime(folder / "run.json", (0, 0))
    chunks = list(archive(folder))
    assert len(chunks) > 3, "it comes piece by piece"
    with zipfile.ZipFile(io.BytesIO(b"".join(chunks))) as found:
        assert found.testzip() is None
        assert sorted(found.namelist()) == ["run/run.json", "run/steps/数据 {1}/x.bin"]
        assert found.read("run/steps/数据 {1}/x.bin") == large


def test_leases_and_drafts_stay_behind(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    attempt = folder / "steps" / "train" / "1"
    attempt.mkdir(parents=True)
    assert Lease.take(folder), "the real one, under whatever name it has"
    (folder / "run.json").write_text("{}")
    (folder / ".run.json.1234").write_text("half")
    (attempt / ".reserve").write_bytes(bytes(10))
    (attempt / "outputs.json").write_text("{}")
    with opened(folder) as found:
        assert sorted(found.namelist()) == ["run/run.json", "run/steps/train/1/outputs.json"]


def test_outputs_are_kept_whatever_they_are_called_and_with_their_modes(tmp_path: Path) -> None:
    files = tmp_path / "run" / "steps" / "train" / "1" / "files"
    modes = {".env": 0o600, "bin/go": 0o755, "lease-1.json": 0o644, ".config/x": 0o640}
    for name, mode in modes.items():
        (files / name).parent.mkdir(parents=True, exist_ok=True)
        (files / name).write_text(name)
        (files / name).chmod(mode)
    with opened(tmp_path / "run") as found:
        kept = {
            each.filename.removeprefix("run/steps/train/1/files/"): each.external_attr >> 16 & 0o777
            for each in found.infolist()
        }
    assert kept == modes


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "run.json").write_text("{}")
    (tmp_path / "secret").write_text("x")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "dangling").symlink_to(tmp_path / "gone")
    (folder / "elsewhere").symlink_to(tmp_path, target_is_directory=True)
    os.mkfifo(folder / "log.txt")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "s"))
        with opened(folder) as found:
            assert found.namelist() == ["run/run.json"]
