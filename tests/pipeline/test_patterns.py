"""Patterns find what a shell finds, and always come to an end."""

from __future__ import annotations

import glob
from pathlib import Path

import pytest

from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.pipeline import patterns
from jupyterlab_convect.pipeline.patterns import find

NAMES = [
    *("a.csv", ".hidden.csv", "data/b.csv", "data/2026/c.csv", "data/2026/d.txt"),
    *("data/.cache/e.csv", "[x]/f.csv", "数据/g.csv", "other/data/h.csv"),
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in NAMES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "latest").symlink_to("data/2026")
    (tmp_path / "gone").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    return tmp_path


@pytest.mark.parametrize(
    "pattern",
    [
        *("*.csv", "**/*.csv", "**", "data/**", "data/*", "*/*.csv", "**/data/**", "**/**/*.csv"),
        *(
            "[[]x]/*.csv",
            "数*/*",
            ".hid*",
            "data/.cache/*",
            "latest/*",
            "l*/*.txt",
            "no*/**",
            "a.csv",
        ),
        *("*/2026/*", "**/2026/**/*.csv", "./data/*.csv", "data//*.csv"),
    ],
)
def test_a_pattern_finds_what_a_shell_finds(project: Path, pattern: str) -> None:
    expected = {
        str(Path(name))
        for name in glob.iglob(pattern, root_dir=project, recursive=True)  # noqa: PTH207
        if (project / name).is_file()
    }
    assert {name for name in find(project, pattern) if (project / name).is_file()} == expected


def test_links_that_lead_back_are_followed_once(project: Path) -> None:
    for name in ("one", "two", "data/three"):
        (project / name).symlink_to(project, target_is_directory=True)
    found = [name for name in find(project, "**/*.csv") if "/" not in name]
    assert found == ["a.csv"]
    assert "latest/c.csv" in find(project, "**/*.csv")


def test_a_search_that_would_never_end_is_refused(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [project / f"f{number}" for number in range(12)]
    for folder in folders:
        folder.mkdir()
    for folder in folders:
        for other in folders:
            (folder / other.name).symlink_to(other, target_is_directory=True)
    monkeypatch.setattr(patterns, "MOST_LOOKED_AT", 10_000)
    with pytest.raises(ConvectError, match="too many files to look for"):
        list(find(project, "**/*.none"))
