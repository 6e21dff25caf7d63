"""What a run made goes into the project, but never over what somebody else has done there."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from jupyterlab_convect.runner.layers import Made, digest_file
from jupyterlab_convect.runs.put_back import PutBack, last_made, put_back
from jupyterlab_convect.runs.snapshots import Snapshot, Snapshots

CHANGED = "it changed after the run was submitted"


class Bench:
    def __init__(self, folder: Path) -> None:
        self.project, self.made = folder / "project", folder / "made"
        self.project.mkdir()
        self.made.mkdir()
        self._snapshots = Snapshots(folder / "runs")
        self._files: dict[str, tuple[Path, Made]] = {}

    def snapshot(self) -> Snapshot:
        return self._snapshots.take(self.project, [])

    def make(self, path: str, content: str | None, mode: int = 0o644) -> None:
        target = self.made / path
        if content is None:
            self._files[path] = (target, Made(path, "deleted"))
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
        target.chmod(mode)
        facts = (len(content.encode()), digest_file(target), target.stat().st_mode)
        self._files[path] = (target, Made(path, "created", *facts))

    def put(
        self, snapshot: Snapshot, submitted: float | None = None, *, replace: bool = False
    ) -> PutBack:
        return put_back(self._files, snapshot, submitted or time.time(), replace=replace)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_new_changed_and_deleted_files(bench: Bench) -> None:
    for name in ("model", "gone", "other"):
        (bench.project / name).write_text("before")
    snapshot = bench.snapshot()
    bench.make("out/new", "new", 0o750)
    bench.make("model", "after")
    bench.make("gone", None)
    result = bench.put(snapshot)
    assert result == PutBack(["gone", "model", "out/new"], {})
    assert (bench.project / "out/new").read_text() == "new"
    assert (bench.project / "out/new").stat().st_mode & 0o777 == 0o750
    assert (bench.project / "model").read_text() == "after"
    assert not (bench.project / "gone").exists()
    assert sorted(path.name for path in bench.project.iterdir()) == ["model", "other", "out"]


def test_what_changed_meanwhile_is_kept(bench: Bench) -> None:
    for name in ("edited", "removed", "deleted"):
        (bench.project / name).write_text("before")
    snapshot = bench.snapshot()
    (bench.project / "edited").write_text("by hand")
    (bench.project / "deleted").write_text("by hand")
    (bench.project / "made").write_text("by hand")
    (bench.project / "removed").unlink()
    bench.make("edited", "by the run")
    bench.make("made", "by the run")
    bench.make("removed", "by the run")
    bench.make("deleted", None)
    result = bench.put(snapshot)
    assert result.put == []
    assert set(result.kept) == {"edited", "made", "removed", "deleted"}
    assert (bench.project / "edited").read_text() == "by hand"
    assert (bench.project / "made").read_text() == "by hand"
    assert (bench.project / "deleted").read_text() == "by hand"
    assert not (bench.project / "removed").exists()


def test_what_is_saved_while_it_is_deleted_is_kept(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("gone", "folder/inner"):
        (bench.project / name).parent.mkdir(exist_ok=True)
        (bench.project / name).write_text("before")
    snapshot = bench.snapshot()
    bench.make("gone", None)
    bench.make("folder", None)
    rename = Path.rename

    def save_first(path: Path, target: Path) -> Path:
        path.write_text("saved at that very moment")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", save_first)
    result = bench.put(snapshot)
    assert result.kept == {
        "gone": CHANGED,
        "folder": "something in it changed after the run was submitted",
    }
    left = {path.name: path.read_text() for path in bench.project.rglob("*") if path.is_file()}
    assert left == dict.fromkeys(("gone", "inner"), "saved at that very moment")


def test_doing_it_twice_changes_nothing(bench: Bench) -> None:
    snapshot = bench.snapshot()
    bench.make("x", "1")
    assert bench.put(snapshot).put == ["x"]
    before = (bench.project / "x").lstat()
    assert bench.put(snapshot) == PutBack(["x"])
    assert (bench.project / "x").lstat() == before


def test_a_project_that_was_not_recorded_is_judged_by_the_clock_of_its_files(
    bench: Bench,
) -> None:
    (bench.project / "old").write_text("before")
    (bench.project / "new").write_text("before")
    snapshot = Snapshot("sha256:0", str(bench.project), whole=False)
    bench.make("old", "by the run")
    bench.make("fresh", "by the run")
    later = (bench.project / "old").stat().st_ctime + 1000
    assert bench.put(snapshot, submitted=later).put == ["fresh", "old"]
    bench.make("new", "by the run")
    earlier = (bench.project / "new").stat().st_ctime - 1000
    assert bench.put(snapshot, submitted=earlier).kept == {"new": CHANGED}


@pytest.mark.skipif(os.geteuid() == 0, reason="Root writes everywhere.")
def test_a_folder_that_cannot_be_written_loses_nothing(bench: Bench) -> None:
    snapshot = bench.snapshot()
    bench.make("x", "1")
    bench.project.chmod(0o500)
    result = bench.put(snapshot)
    assert result.kept == {"x": "it cannot be written: permission denied"}
    bench.project.chmod(0o700)


def test_the_last_step_that_made_a_file_counts(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    found = last_made(
        [
            (one, [Made("model", "created"), Made("scratch/a", "created")]),
            (two, [Made("model", "changed"), Made("scratch", "deleted")]),
        ]
    )
    assert {path: (source, made.change) for path, (source, made) in found.items()} == {
        "model": (two / "model", "changed"),
        "scratch": (two / "scratch", "deleted"),
    }


def test_whoever_wants_it_all_the_same_gets_it(bench: Bench) -> None:
    for name in ("changed", "deleted", "gone"):
        (bench.project / name).write_text("old")
    snapshot = bench.snapshot()
    for name in ("changed", "new", "gone"):
        (bench.project / name).write_text("by hand")
    (bench.project / "deleted").unlink()
    for name in ("changed", "deleted", "new"):
        bench.make(name, name)
    bench.make("gone", None)
    paths = ["changed", "deleted", "gone", "new"]
    assert sorted(bench.put(snapshot).kept) == paths
    assert bench.put(snapshot, replace=True) == PutBack(paths)
    left = {path.name: path.read_text() for path in bench.project.iterdir()}
    assert left == {name: name for name in ("changed", "deleted", "new")}
