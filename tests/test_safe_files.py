"""The files of runs are regular and private, whatever somebody put into their place."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyterlab_convect.errors import ConvectError, Missing
from jupyterlab_convect.pipeline.plan import Plan, Step
from jupyterlab_convect.runs.attempt_files import (
    AttemptFiles,
    executed_notebook,
    list_files,
    read_events,
    read_log,
)
from jupyterlab_convect.runs.attempts import read_outcome
from jupyterlab_convect.runs.index import Index
from jupyterlab_convect.runs.json_files import Journal
from jupyterlab_convect.runs.model import Request, Run, new_id
from jupyterlab_convect.runs.store import Store
from jupyterlab_convect.runtimes.base import Attempt
from jupyterlab_convect.safe_files import (
    append_to,
    copy_regular,
    make_folder,
    make_runs_folder,
    open_regular,
    read_regular,
    size_of_regular,
    write_whole,
)
from jupyterlab_convect.settings import Settings
from jupyterlab_convect.workspace import Workspace

NOT_REGULAR = "Not a regular file|Is a directory"
KINDS = ("fifo", "link", "dangling link", "socket", "folder")


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text('{"type": "output", "time": 1, "state": "succeeded"}\n')
    return path


def put(kind: str, path: Path, secret: Path) -> None:
    """Something that has the name of a file and is none."""
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        os.mknod(path, stat.S_IFSOCK | 0o600)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(secret if kind == "link" else secret.with_name("gone"))


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_but_a_regular_file_is_opened(kind: str, tmp_path: Path, secret: Path) -> None:
    odd = tmp_path / "odd"
    put(kind, odd, secret)
    for act in (open_regular, read_regular, size_of_regular, append_to):
        with pytest.raises(OSError, match=NOT_REGULAR):
            act(odd)
    with pytest.raises(OSError, match=NOT_REGULAR):
        copy_regular(odd, tmp_path / "copy")
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_what_shows_an_attempt_neither_waits_nor_follows(
    kind: str, tmp_path: Path, secret: Path
) -> None:
    for name in ("log.txt", "events.ndjson", "executed.ipynb", "outputs.json"):
        put(kind, tmp_path / name, secret)
    step = Step(id="a", name="a", kind="notebook")
    results = AttemptFiles(
        Attempt("r", step, 1, tmp_path, root=tmp_path, plan=Plan("p", (step,)), runs=tmp_path),
        tmp_path,
        ended=True,
    )
    with pytest.raises(Missing):
        executed_notebook(results)
    with pytest.raises(Missing, match="not a regular file"):
        read_log(results)
    with pytest.raises(Missing, match="not a regular file"):
        read_events(results)
    assert list_files(results) == []
    with pytest.raises(OSError, match=NOT_REGULAR):
        Journal(tmp_path / "events.ndjson").read()
    if kind == "dangling link":
        assert read_outcome(tmp_path) is None
    else:
        with pytest.raises(ConvectError, match="cannot be read"):
            read_outcome(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_of_runs_passes_by_what_is_no_run(kind: str, tmp_path: Path, secret: Path) -> None:
    store = Store(tmp_path / "runs", Index(tmp_path / "index.sqlite"))
    folder = store.folder / new_id()
    folder.mkdir(parents=True)
    put(kind, folder / "run.json", secret)
    assert [(run["id"], run["state"]) for run in store.find().runs] == [(folder.name, "lost")]
    store.close()


def test_what_is_made_is_private(tmp_path: Path) -> None:
    make_folder(tmp_path / "a" / "b")
    write_whole(tmp_path / "a" / "b" / "x", b"1")
    os.close(append_to(tmp_path / "a" / "y"))
    assert mode_of(tmp_path / "a") == mode_of(tmp_path / "a" / "b") == 0o700
    assert mode_of(tmp_path / "a" / "b" / "x") == mode_of(tmp_path / "a" / "y") == 0o600


def test_what_is_made_in_a_shared_folder_is_read_by_its_group(tmp_path: Path) -> None:
    os.umask(0o077)
    shared = tmp_path / "shared"
    make_folder(shared, 0o2750)
    make_folder(shared / "a" / "b")
    write_whole(shared / "a" / "b" / "x", b"1")
    os.close(append_to(shared / "y"))
    assert mode_of(shared / "a") == mode_of(shared / "a" / "b") == 0o2750
    assert mode_of(shared / "a" / "b" / "x") == mode_of(shared / "y") == 0o640


def test_a_copy_keeps_the_mode(tmp_path: Path) -> None:
    for mode in (0o600, 0o755, 0o444):
        (tmp_path / "x").write_text("1")
        (tmp_path / "x").chmod(mode)
        copy_regular(tmp_path / "x", tmp_path / "copy")
        assert mode_of(tmp_path / "copy") == mode
        for each in tmp_path.iterdir():
            each.unlink()


@pytest.mark.parametrize(
    ("before", "shared", "after"),
    [
        (None, False, 0o700),
        (0o755, False, 0o700),
        (0o1777, False, 0o1777),
        (0o3770, False, 0o3770),
        (None, True, 0o3770),
        (0o755, True, 0o3770),
        (0o2775, True, 0o2775),
    ],
)
def test_the_runs_folder(tmp_path: Path, before: int | None, shared: bool, after: int) -> None:
    folder = tmp_path / "runs"
    if before is not None:
        folder.mkdir()
        folder.chmod(before)
    make_runs_folder(folder, shared=shared)
    assert mode_of(folder) == after


@pytest.mark.parametrize(
    ("share", "folder_mode", "file_mode"), [("", 0o700, 0o600), ("group", 0o2750, 0o640)]
)
def test_runs_and_index_are_private_unless_they_are_shared(
    tmp_path: Path, share: str, folder_mode: int, file_mode: int
) -> None:
    settings = Settings(
        runs_dir=str(tmp_path / "runs"), index_dir=str(tmp_path / "index"), share_runs=share
    )
    workspace = Workspace(settings)
    plan = Plan("p", steps=())
    run = Run(new_id(), "p", 1.0, "local", plan, Request(root=str(tmp_path)))
    workspace.store.create(run)
    workspace.store.change(run.id, note="x")
    folder = workspace.store.run_folder(run.id)
    assert mode_of(folder) == folder_mode
    for each in folder.rglob("*"):
        assert mode_of(each) == (folder_mode if each.is_dir() else file_mode)
    assert mode_of(tmp_path / "index") == 0o700
    assert {mode_of(each) for each in (tmp_path / "index").iterdir()} == {0o600}
    workspace.store.close()


def test_an_index_that_others_could_read_becomes_private(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    path.touch(0o644)
    Index(path).close()
    assert mode_of(path) == 0o600
