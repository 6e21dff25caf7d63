"""Runs at the same time do not meet outside of their project either, as far as it can be."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from traitlets.config import Config
from views import overlays_work

from jupyterlab_convect.runner import landlock
from jupyterlab_convect.runner.mirror_view import LARGE, MOST_BESIDE
from jupyterlab_convect.runs import scan
from jupyterlab_convect.runs.made import describe, put_when_asked
from jupyterlab_convect.runs.model import Request, Run, RunState
from jupyterlab_convect.settings import Settings
from jupyterlab_convect.workspace import Workspace

pytestmark = pytest.mark.skipif(landlock.version() < 1, reason="The kernel has no Landlock.")

WRITE = """
import os, pathlib
x, place = os.environ["x"], pathlib.Path(os.environ["place"])
(place / "x.csv").write_text(x)
(place / "new").mkdir(exist_ok=True)
(place / "new/y.csv").write_text(x)
(place / "gone.csv").unlink()
"""
READ = """
import os, pathlib, time
from jupyterlab_convect import output
place, others = pathlib.Path(os.environ["place"]), pathlib.Path(os.environ["others"])
(others / os.environ["x"]).touch()
while len(list(others.iterdir())) < int(os.environ["count"]):
    time.sleep(0.01)
output("x", int((place / "x.csv").read_text()))
output("y", int((place / "new/y.csv").read_text()))
output("gone", (place / "gone.csv").exists())
output("old", (place / "old.csv").read_text())
output("large", (place / "large.bin").stat().st_size)
"""
LARGEST = 5 << 30


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder as people have it, the runs in it included."""
    folder = tmp_path / "主页"
    (folder / ".cache").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture(params=["overlay", "mirror"])
async def workspace(home: Path, request: pytest.FixtureRequest) -> AsyncIterator[Workspace]:
    config = Config({"LocalRuntime": {"overlays": request.param == "overlay", "cpus": 8}})
    hidden = home / ".local/share"
    folders = {"runs_dir": str(hidden / "runs"), "index_dir": str(hidden / "index")}
    made = Workspace(Settings(config=config, **folders))
    yield made
    await made.close()
    outcomes = list((hidden / "runs").glob("*/steps/*/*/outputs.json"))
    kinds = {json.loads(path.read_text())["view"] for path in outcomes}
    if request.param == "mirror" or overlays_work(home):
        assert kinds == {request.param}


def fill(folder: Path) -> Path:
    """Data that steps read and write, with a file that takes no room but would in a copy."""
    folder.mkdir(parents=True)
    for name in ("old.csv", "gone.csv", "x.csv"):
        (folder / name).write_text("old")
    with (folder / "large.bin").open("wb") as file:
        file.truncate(LARGEST)
    return folder


def pipeline(folder: Path, place: str, others: Path, count: int) -> dict[str, Any]:
    """Two steps that hand each other files which nobody declared."""
    others.mkdir()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "write.py").write_text(WRITE)
    (folder / "read.py").write_text(READ)
    env = {"place": place, "others": str(others), "count": str(count)}
    given = {"env": env, "parameters": {"x": "${{ parameters.x }}"}}
    return {
        "convect": 1,
        "parameters": {"x": {"type": "integer", "default": 0}},
        "nodes": {
            "write": {"kind": "script", "path": "write.py", **given},
            "read": {"kind": "script", "path": "read.py", "after": ["write"], **given},
        },
    }


async def start(workspace: Workspace, folder: Path, document: Any, root: Path, x: int) -> Run:
    path = folder / "p.pipeline"
    path.write_text(json.dumps(document))
    wanted = Request(
        path=str(path.relative_to(root)), root=str(root), parameters={"x": x}, document=document
    )
    run = await asyncio.to_thread(workspace.make, wanted)
    await workspace.submit(run)
    return run


def seen_by(state: RunState) -> dict[str, Any]:
    assert state.state == "succeeded", (state.reason, [s.reason for s in state.steps.values()])
    return state.steps["read"].outputs


def whose(path: str, states: list[RunState]) -> str:
    """Of which run a file is in the project: the first to end."""
    (x,) = (x for x, state in enumerate(states, 1) if path in state.files["put"])
    return str(x)


def expected(x: int) -> dict[str, Any]:
    return {"x": x, "y": x, "gone": False, "old": "old", "large": LARGEST}


@pytest.mark.parametrize("root", ["home", "folder"])
async def test_files_beside_a_folder_of_the_home_are_the_runs_own(
    workspace: Workspace, home: Path, tmp_path: Path, root: str
) -> None:
    data, folder = fill(home / "data"), home / "nb"
    for number in range(MOST_BESIDE + 1):
        (home / "many").mkdir(exist_ok=True)
        (home / f"many/{number}").touch()
    document = pipeline(folder, "../data", tmp_path / "others", 3)
    top = home if root == "home" else folder
    runs = [await start(workspace, folder, document, top, x) for x in (1, 2, 3)]
    states = [await workspace.engine.wait(run.id, 300) for run in runs]
    assert [seen_by(state) for state in states] == [expected(x) for x in (1, 2, 3)]
    paths = {each["path"] for each in describe(workspace.store, runs[0].id)["files"]}
    assert paths == {"~/data/x.csv", "~/data/new/y.csv", "~/data/gone.csv"}
    assert (data / "x.csv").read_text() == whose("~/data/x.csv", states)
    assert (data / "new/y.csv").read_text() == whose("~/data/new/y.csv", states)
    assert not (data / "gone.csv").exists()
    for x, run in enumerate(runs, 1):
        put = await asyncio.to_thread(put_when_asked, workspace.store, run.id, replace=True)
        assert put.kept == {}
        assert (data / "x.csv").read_text() == str(x)


async def test_folders_to_which_links_lead_are_the_runs_own(
    workspace: Workspace, home: Path, tmp_path: Path
) -> None:
    data, folder = fill(tmp_path / "elsewhere/data"), home / "p"
    (folder / ".convect").mkdir(parents=True)
    (folder / "data").symlink_to(data)
    document = pipeline(folder, "data", tmp_path / "others", 3)
    runs = [await start(workspace, folder, document, folder, x) for x in (1, 2, 3)]
    states = [await workspace.engine.wait(run.id, 300) for run in runs]
    assert [seen_by(state) for state in states] == [expected(x) for x in (1, 2, 3)]
    assert (data / "x.csv").read_text() == whose("data/x.csv", states)
    assert (folder / "data").is_symlink()


async def test_links_deep_in_a_large_project_are_looked_at_as_well(
    workspace: Workspace, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "MOST_NAMES", 3)
    data, folder = fill(tmp_path / "elsewhere/data"), home / "p"
    (folder / ".convect").mkdir(parents=True)
    (folder / "in/深").mkdir(parents=True)
    (folder / "in/深/data").symlink_to(data)
    for number in range(5):
        (folder / f"in/{number}").touch()
    document = pipeline(folder, "in/深/data", tmp_path / "others", 3)
    runs = [await start(workspace, folder, document, folder, x) for x in (1, 2, 3)]
    states = [await workspace.engine.wait(run.id, 300) for run in runs]
    assert [seen_by(state) for state in states] == [expected(x) for x in (1, 2, 3)]
    assert (data / "x.csv").read_text() == whose("in/深/data/x.csv", states)


async def test_links_that_nobody_looked_at_are_told(
    workspace: Workspace, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "MOST_NAMES", 3)
    monkeypatch.setattr(scan, "MOST_SEEN", 3)
    folder = home / "p"
    (folder / ".convect").mkdir(parents=True)
    for number in range(5):
        (folder / f"{number}").touch()
    state, _ = await run_script(workspace, folder, "")
    (step,) = state.steps.values()
    (told,) = step.notices
    assert told.startswith(f"{folder} has too many files to look for links")


async def test_a_sweep_touches_nothing_where_links_lead(
    workspace: Workspace, home: Path, tmp_path: Path
) -> None:
    data, folder = fill(tmp_path / "elsewhere/data"), home / "p"
    folder.mkdir()
    (folder / "data").symlink_to(data)
    document = pipeline(folder, "data", tmp_path / "others", 2)
    (folder / "p.pipeline").write_text(json.dumps(document))
    sweep = await workspace.create_sweep(
        Request(path="p/p.pipeline", root=str(home)), {"x": [1, 2]}, mode="grid", concurrency=2
    )
    for x, row in enumerate(workspace.sweeps.view(sweep)["runs"], 1):
        assert seen_by(await workspace.engine.wait(row["id"], 300)) == expected(x)
    assert (data / "x.csv").read_text() == "old"
    assert (data / "gone.csv").exists()
    assert [path.name for path in home.iterdir() if not path.name.startswith(".")] == ["p"]


async def test_a_notebook_that_changes_its_folder_stays_in_its_view(
    workspace: Workspace, home: Path, tmp_path: Path, write_notebook: Callable[..., Path]
) -> None:
    """In kernels that were forked ahead, and at any depth below the home folder."""
    folder, others = home / "work/深/nb", tmp_path / "others"
    data = fill(home / "work/data")
    for made in (folder, others):
        made.mkdir(parents=True)
    write_notebook(
        folder / "a.ipynb",
        ("parameters", "x = 0"),
        f"import os, pathlib, time\nothers = pathlib.Path({str(others)!r})\n"
        "from jupyterlab_convect import output",
        "os.chdir('..')\nos.chdir('..')\npathlib.Path('data/x.csv').write_text(str(x))\n"
        "pathlib.Path('../note').write_text(str(x))",
        "(others / str(x)).touch()\nwhile len(list(others.iterdir())) < 2: time.sleep(0.01)\n"
        "output('x', int(pathlib.Path('data/x.csv').read_text()))\n"
        "output('note', int(pathlib.Path('../note').read_text()))",
    )
    wanted = Request(path="a.ipynb", root=str(folder))
    sweep = await workspace.create_sweep(wanted, {"x": [1, 2]}, mode="grid", concurrency=2)
    for x, row in enumerate(workspace.sweeps.view(sweep)["runs"], 1):
        state = await workspace.engine.wait(row["id"], 300)
        assert state.state == "succeeded", state.reason
        assert state.steps["a"].outputs == {"x": x, "note": x}
    assert (data / "x.csv").read_text() == "old"
    assert not (home / "note").exists()


async def run_script(workspace: Workspace, folder: Path, text: str) -> tuple[RunState, Run]:
    (folder / "a.py").write_text(text)
    wanted = Request(path="a.py", root=str(folder))
    run = await asyncio.to_thread(workspace.make, wanted)
    await workspace.submit(run)
    return await workspace.engine.wait(run.id, 300), run


async def test_a_file_to_which_a_link_leads_is_read_and_never_written(
    workspace: Workspace, home: Path, tmp_path: Path
) -> None:
    folder, model = home / "p", tmp_path / "elsewhere/model.bin"
    folder.mkdir()
    model.parent.mkdir()
    with model.open("wb") as file:
        file.truncate(LARGE * 5000)
    (folder / "model").symlink_to(model)
    state, _ = await run_script(
        workspace,
        folder,
        "from jupyterlab_convect import output\n"
        "output('size', open('model', 'rb').seek(0, 2))\nopen('model', 'r+b').write(b'mine')",
    )
    (step,) = state.steps.values()
    assert step.outputs == {"size": LARGE * 5000}
    assert step.state == "failed"
    only_read = f"This step could only read {model}, which is outside the project."
    assert step.notices == [only_read]
    with model.open("rb") as file:
        assert file.read(4) == bytes(4)


async def test_programs_and_their_settings_in_the_home_folder_are_everybodys(
    workspace: Workspace, home: Path
) -> None:
    (home / "conda/conda-meta").mkdir(parents=True)
    folder = home / "nb"
    folder.mkdir()
    state, run = await run_script(
        workspace,
        folder,
        "import pathlib\nfor each in ('.cache', 'conda'):\n"
        "    pathlib.Path.home().joinpath(each, 'new').write_text('n')\n"
        "    assert pathlib.Path('..', each, 'new').read_text() == 'n'",
    )
    assert state.state == "succeeded", state.reason
    assert (home / ".cache/new").exists()
    assert (home / "conda/new").exists()
    assert describe(workspace.store, run.id)["files"] == []
