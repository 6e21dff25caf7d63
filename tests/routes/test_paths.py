from __future__ import annotations

from pathlib import Path

import pytest

from jupyterlab_convect.errors import ConvectError, Missing
from jupyterlab_convect.routes.requests import existing, inside


@pytest.mark.parametrize("path", ["a.ipynb", "a b/日本.ipynb", "./a", "{x}/$y", "~/a", "..a/b.."])
def test_paths_inside_the_root_are_taken(tmp_path: Path, path: str) -> None:
    assert Path(inside(tmp_path, path)) == Path(path)


@pytest.mark.parametrize("path", ["", ".", "/", "/etc/passwd", "..", "a/../../b", "../a", "a\0b"])
def test_paths_out_of_the_root_are_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(ConvectError) as caught:
        inside(tmp_path, path)
    assert caught.value.code == "path-outside"


def test_links_are_followed_before_they_are_trusted(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret").write_text("x")
    (root / "file").write_text("x")
    (root / "out").symlink_to(tmp_path)
    (root / "in").symlink_to(root / "file")
    assert existing(root, "in").read_text() == "x"
    with pytest.raises(ConvectError):
        existing(root, "out/secret")
    with pytest.raises(Missing):
        existing(root, "none")


@pytest.mark.parametrize("path", ["z" * 300, "数" * 86, "a/" * 3000 + "b"])
def test_paths_that_no_disk_takes_are_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(ConvectError) as caught:
        existing(tmp_path, path)
    assert caught.value.code == "path-too-long"


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a").write_text("x")
    (tmp_path / "root").symlink_to(tmp_path / "real")
    assert existing(tmp_path / "root", "a").read_text() == "x"
