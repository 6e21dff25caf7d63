from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

from jupyterlab_convect.archive import CHUNK, archive


def test_an_archive_has_everything_and_no_more(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    (folder / "steps" / "数据 {1}").mkdir(parents=True)
    large = os.urandom(CHUNK * 2 + 1)
    (folder / "steps" / "数据 {1}" / "x.bin").write_bytes(large)
    (folder / "run.json").write_text("{}")
    (folder / "lease.json").write_text("{}")
    (folder / ".run.json.1234").write_text("half")
    (tmp_path / "secret").write_text("x")
    (folder / "link").symlink_to(tmp_path / "secret")
    os.utime(folder / "run.json", (0, 0))
    chunks = list(archive(folder))
    assert len(chunks) > 3, "it comes piece by piece"
    with zipfile.ZipFile(io.BytesIO(b"".join(chunks))) as found:
        assert found.testzip() is None
        assert sorted(found.namelist()) == ["run/run.json", "run/steps/数据 {1}/x.bin"]
        assert found.read("run/steps/数据 {1}/x.bin") == large
