from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_convect import planning
from jupyterlab_convect.pipeline.plan import Plan
from jupyterlab_convect.runner.environment import FOLDER
from jupyterlab_convect.runs import git as module
from jupyterlab_convect.runs.git import git_of, keep_difference
from jupyterlab_convect.runs.model import Request
from jupyterlab_convect.settings import Settings
from jupyterlab_convect.workspace import Workspace


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    done = subprocess.run(
        ["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "work")
    (tmp_path / "a.ipynb").write_text("{}")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    return tmp_path


def test_the_commit_and_its_branch_are_known(repository: Path) -> None:
    found = git_of(repository, [repository / "a.ipynb"])
    assert found is not None
    assert (found.commit, found.branch, found.dirty) == (
        git(repository, "rev-parse", "HEAD"),
        "work",
        False,
    )
    git(repository, "checkout", "-q", "--detach")
    assert git_of(repository, []).branch is None  # type: ignore[union-attr]


def test_changes_make_it_dirty(repository: Path) -> None:
    (repository / "new.ipynb").write_text("{}")
    assert not git_of(repository, [repository / "a.ipynb"]).dirty  # type: ignore[union-attr]
    assert git_of(repository, [repository / "new.ipynb"]).dirty  # type: ignore[union-attr]
    (repository / "a.ipynb").write_text("[]")
    assert git_of(repository, []).dirty  # type: ignore[union-attr]


def test_without_a_commit_there_is_nothing_to_say(tmp_path: Path) -> None:
    assert git_of(tmp_path / "none", []) is None
    git(tmp_path, "init", "-q")
    assert git_of(tmp_path, []) is None


def test_two_who_ask_for_a_commit_at_once_both_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Workspace(Settings())
    monkeypatch.setattr(planning, "git_of", lambda root, paths: None)
    failed: list[KeyError] = []
    plan = Plan("p", ())

    def ask(root: str) -> None:
        for _ in range(2000):
            try:
                made.planner._git(Request(root=root), plan)
            except KeyError as error:
                failed.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=ask, args=(f"/{number}",)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert failed == []


def test_a_large_repository_is_only_asked_for_its_commit(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = git_of(repository, [])
    assert known is not None
    with monkeypatch.context() as patch:
        patch.setattr(module, "STATUS_PATIENCE", 0.0)
        slow = git_of(repository, [])
    assert slow == replace(known, dirty=None)
    assert git_of(repository, []) == slow, "it is not kept waiting for again"
    module._slow.clear()
    assert git_of(repository, []) == known


def kept(runs: Path, folder: Path) -> Any:
    """What is kept of how a folder differs from its commit."""
    found = git_of(folder, [])
    assert found is not None
    keep_difference(runs, folder, found)
    assert found.difference is not None
    return json.loads((runs / FOLDER / f"{found.difference[7:]}.json").read_bytes())


def test_a_folder_below_belongs_to_the_repository_and_one_above_does_not(repository: Path) -> None:
    below = repository / "deep" / "er"
    below.mkdir(parents=True)
    assert git_of(below, []) == git_of(repository, [])
    assert git_of(repository.parent, []) is None
    outside = git_of(repository, [repository.parent / "elsewhere.py"])
    assert outside is not None
    assert not outside.dirty


def test_what_differs_from_the_commit_is_kept(repository: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    (repository / "a.ipynb").write_text("[é]")
    (repository / "new module.py").write_text("x = 1")
    (repository / "data.parquet").write_text("")
    index = (repository / ".git" / "index").read_bytes()
    found = kept(runs, repository)
    assert "-{}" in found["text"]
    assert "+[é]" in found["text"]
    assert found["untracked"] == ["new module.py"]
    assert not found["cut"]
    assert (repository / ".git" / "index").read_bytes() == index
    assert (runs / FOLDER).stat().st_mode & 0o077 == 0


def test_the_same_difference_is_kept_once(repository: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    (repository / "a.ipynb").write_text("[]")
    first, second = git_of(repository, []), git_of(repository, [])
    assert first == second
    assert first is not None
    kept(runs, repository)
    (repository / "a.ipynb").write_text("[1]")
    third = git_of(repository, [])
    assert third is not None
    assert third.difference != first.difference
    assert "+[1]" in kept(runs, repository)["text"]
    assert len(list((runs / FOLDER).iterdir())) == 2
    git(repository, "commit", "-qam", "second")
    clean = git_of(repository, [])
    assert clean is not None
    assert clean.difference is None


def test_a_difference_that_is_too_long_is_cut_and_says_so(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LONGEST", 1000)
    (repository / "a.ipynb").write_text("é" * 5000)
    found = kept(tmp_path / "runs", repository)
    assert found["cut"]
    assert 900 < len(found["text"].encode()) <= 1000


def test_renamed_files_with_spaces_count(repository: Path, tmp_path: Path) -> None:
    git(repository, "mv", "a.ipynb", "b c.ipynb")
    before = git_of(repository, [])
    (repository / "b c.ipynb").write_text("{ }")
    after = git_of(repository, [])
    assert before is not None
    assert after is not None
    assert before.difference != after.difference
    assert "b c.ipynb" in kept(tmp_path / "runs", repository)["text"]
