from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from jupyterlab_convect import workspace as workspace_module
from jupyterlab_convect.git import git_of
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
    found = git_of(repository, ["a.ipynb"])
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
    assert not git_of(repository, ["a.ipynb"]).dirty  # type: ignore[union-attr]
    assert git_of(repository, ["new.ipynb"]).dirty  # type: ignore[union-attr]
    (repository / "a.ipynb").write_text("[]")
    assert git_of(repository, []).dirty  # type: ignore[union-attr]


def test_without_a_commit_there_is_nothing_to_say(tmp_path: Path) -> None:
    assert git_of(tmp_path / "none", []) is None
    git(tmp_path, "init", "-q")
    assert git_of(tmp_path, []) is None


def test_two_who_ask_for_a_commit_at_once_both_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Workspace(Settings())
    monkeypatch.setattr(workspace_module, "git_of", lambda root, paths: None)
    failed: list[KeyError] = []

    def ask(root: str) -> None:
        for _ in range(2000):
            try:
                made._git(root, ())
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
