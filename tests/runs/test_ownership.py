"""Runs of other users are seen where their files allow it, and never executed or changed."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from inprocess import InProcess, MakeRun, make_step

from jupyterlab_convect.detached import take_up
from jupyterlab_convect.errors import Conflict, Missing
from jupyterlab_convect.pipeline.plan import Plan
from jupyterlab_convect.runs.engine import Engine
from jupyterlab_convect.runs.events import RunStart
from jupyterlab_convect.runs.index import Index, Query
from jupyterlab_convect.runs.lease import Lease
from jupyterlab_convect.runs.model import Request, Run, new_id
from jupyterlab_convect.runs.snapshots import Snapshots
from jupyterlab_convect.runs.store import Store
from jupyterlab_convect.runs.sweeps import Sweeps
from jupyterlab_convect.safe_files import owner_of, owner_of_new_files
from jupyterlab_convect.settings import Settings
from jupyterlab_convect.workspace import Workspace

STRANGER, FRIEND = 65534, 1234

needs_two_users = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder in which everybody may make something, like /tmp."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))  # where every user gets to
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


def act_as(user: int, act: Callable[[], Any]) -> int:
    """Do something as another user, in a process that has ended afterwards; its exit code."""
    process = os.fork()
    if process:
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    try:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
        act()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def abandoned(folder: Path, proof: Path, runtime: str) -> Run:
    """What to make into a run that somebody began and did not end: it would write the proof."""
    step = make_step("b", "sh", "-c", f"id > {proof}")
    plan = Plan("theirs", (step,), path="theirs.pipeline")
    return Run(
        new_id(), "theirs", time.time(), runtime, plan, Request(root=str(folder), runtime=runtime)
    )


def begin(folder: Path, run: Run, mode: int) -> None:
    store = Store(folder, Index(Path("/nonexistent/index.sqlite")), mode)
    store.create(run)
    store.append(run.id, RunStart(time.time()))
    assert Lease.take(store.run_folder(run.id))
    for path in (store.run_folder(run.id), *store.run_folder(run.id).iterdir()):
        path.chmod(0o777 if path.is_dir() else 0o666)


@needs_two_users
async def test_looking_at_runs_executes_nobody_elses(shared: Path, tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    run = abandoned(shared, proof, "local")
    assert act_as(STRANGER, lambda: begin(shared, run, 0o755)) == 0
    settings = Settings(runs_dir=str(shared), index_dir=str(tmp_path / "index"))
    workspace = Workspace(settings)
    try:
        assert [found["id"] for found in workspace.store.find(Query()).runs] == [run.id]
        assert take_up(workspace) == 0
        assert await workspace.engine.resume() == []
        with pytest.raises(Conflict, match="belongs to another user"):
            await workspace.engine.stop(run.id)
        with pytest.raises(Conflict, match="belongs to another user"):
            workspace.store.delete(run.id)
        assert workspace.store.read(run.id).state.state == "running"
    finally:
        await workspace.close()
    assert not proof.exists()


@needs_two_users
async def test_ones_own_abandoned_run_is_gone_on_with(shared: Path, tmp_path: Path) -> None:
    store = Store(shared, Index(tmp_path / "index.sqlite"))
    run = abandoned(shared, tmp_path / "proof", "inprocess")
    assert act_as(0, lambda: begin(shared, run, 0o700)) == 0
    engine = Engine(store, {"inprocess": InProcess()}, beat=0.2)
    assert await engine.resume() == [run.id]
    await engine.close()
    store.close()


@needs_two_users
@pytest.mark.parametrize(
    "name", ["", "run.json", "events.ndjson", "changes", "changes/1.ndjson", "lease-1.json"]
)
async def test_one_strange_file_is_enough(
    store: Store, engine: Engine, make_run: MakeRun, name: str
) -> None:
    run = make_run()
    store.create(run)
    folder = store.run_folder(run.id)
    store.append(run.id, RunStart(time.time()))
    store.change(run.id, note="mine")
    (folder / "lease-1.json").write_text("{}")
    os.chown(folder / name, STRANGER, STRANGER)
    fresh = Store(store.folder, store.index)
    assert not fresh.is_own(run.id)
    assert await Engine(fresh, engine.runtimes).resume() == []


@needs_two_users
async def test_a_sweep_of_somebody_else_gets_no_runs(
    store: Store, engine: Engine, make_run: MakeRun
) -> None:
    made: list[Request] = []

    def make(request: Request) -> Run:
        made.append(request)
        return make_run()

    sweeps = Sweeps(store, engine, make)
    sweep_id = await sweeps.create(make_run().request, {"x": [1, 2]})
    await sweeps.wait(sweep_id, 60)
    folder = store.folder / "sweeps" / sweep_id
    with (folder / "events.ndjson").open("a") as file:
        file.write('{"type": "points", "points": [{"x": 3}]}\n')
    os.chown(folder / "events.ndjson", STRANGER, STRANGER)
    count = len(made)
    await sweeps.resume()
    for act in (sweeps.stop, sweeps.rerun):
        with pytest.raises(Conflict, match="belongs to another user"):
            await act(sweep_id)
    assert len(made) == count
    assert sweeps.view(sweep_id)["total"] == 3


@needs_two_users
def test_what_is_not_shared_is_not_there(shared: Path, tmp_path: Path, make_run: MakeRun) -> None:
    Store(shared, Index(tmp_path / "index.sqlite")).create(make_run())

    def look() -> None:
        store = Store(shared, Index(Path("/nonexistent/index.sqlite")))
        assert store.find(Query()).runs == []
        (run_id,) = store.run_ids()
        with pytest.raises(Missing, match="not shared with you"):
            store.read(run_id)

    assert act_as(STRANGER, look) == 0


@needs_two_users
def test_a_group_reads_what_is_shared_with_it(shared: Path, tmp_path: Path) -> None:
    folder = shared / "runs"
    settings = Settings(runs_dir=str(folder), index_dir=str(tmp_path / "index"), share_runs="group")
    workspace = Workspace(settings)
    assert workspace.store.folder == folder
    os.chown(folder, 0, FRIEND)
    folder.chmod(0o3770)
    run = abandoned(shared, tmp_path / "proof", "local")
    workspace.store.create(run)
    assert stat.S_IMODE(workspace.store.run_folder(run.id).stat().st_mode) == 0o2750

    def read() -> None:
        store = Store(folder, Index(Path("/nonexistent/index.sqlite")), 0o2750)
        assert [each["id"] for each in store.find(Query()).runs] == [run.id]
        for act in (store.delete, store.ask_stop):
            with pytest.raises(Conflict):
                act(run.id)
        with pytest.raises(PermissionError):
            (folder / run.id / "run.json").write_text("{}")
        with pytest.raises(PermissionError):
            (folder / run.id).rename(folder / "mine")
        store.create(abandoned(shared, tmp_path / "proof", "local"))

    assert act_as(FRIEND, read) == 0
    assert act_as(STRANGER, read) == 1
    assert len(workspace.store.find(Query()).runs) == 2
    workspace.store.close()


@needs_two_users
def test_nothing_is_executed_that_somebody_else_put_among_the_sources(shared: Path) -> None:
    planted = b"print('theirs')"
    digest = "sha256:" + hashlib.sha256(b"print('mine')").hexdigest()

    def plant() -> None:
        theirs = Snapshots(shared)
        theirs.keep(planted, digest)
        os.umask(0)
        (shared / "objects-0.1").symlink_to("objects", target_is_directory=True)

    assert act_as(STRANGER, plant) == 0
    mine = Snapshots(shared)
    assert not mine.has(digest)
    mine.keep(b"print('mine')")
    assert mine.object(digest).read_bytes() == b"print('mine')"
    assert Snapshots(shared).object(digest) == mine.object(digest), "the same the next time"
    assert owner_of(mine.objects) == 0


def test_the_owner_is_whom_the_file_system_names(tmp_path: Path) -> None:
    assert owner_of_new_files(tmp_path) == os.geteuid()
    assert owner_of_new_files(tmp_path / "gone") == os.geteuid()
    assert list(tmp_path.iterdir()) == []
