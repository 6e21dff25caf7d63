"""Results are those of the run alone, however many run at the same time."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from traitlets.config import Config
from waiting import PATIENCE, eventually

from jupyterlab_convect.cli.runs import running_attempt
from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.runs.made import describe, put_when_asked
from jupyterlab_convect.runs.model import Request, Run, RunState, Selection, StepState
from jupyterlab_convect.runtimes.base import StepRuntime
from jupyterlab_convect.settings import Settings
from jupyterlab_convect.workspace import Workspace

EXAMPLE = Path(__file__).parents[1] / "examples/churn"

HANDS_OVER = {
    "convect": 1,
    "parameters": {"x": {"type": "integer", "default": 0}},
    "nodes": {
        "make": {
            "kind": "script",
            "path": "make.py",
            "parameters": {"x": "${{ parameters.x }}"},
        },
        "change": {"kind": "script", "path": "sub/change.py", "after": ["make"]},
        "read": {"kind": "script", "path": "read.py", "after": ["change"]},
    },
}
MAKE = """
import os, pathlib
from helper import scale
pathlib.Path("model").write_text(str(int(os.environ["x"]) * scale))
pathlib.Path("log").open("a").write("made ")
pathlib.Path("scratch").mkdir()
"""
CHANGE = """
import pathlib
model = pathlib.Path("../model")
model.write_text(str(int(model.read_text()) + int(pathlib.Path("../data/x.csv").read_text())))
pathlib.Path("../scratch").rmdir()
"""
READ = """
import pathlib
from jupyterlab_convect import output
assert not pathlib.Path("scratch").exists()
output("model", int(pathlib.Path("model").read_text()))
output("log", pathlib.Path("log").read_text())
"""


@pytest.fixture(params=["overlay", "mirror"])
async def workspace(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Workspace]:
    config = Config({"LocalRuntime": {"overlays": request.param == "overlay"}})
    folders = {"runs_dir": str(tmp_path / "runs"), "index_dir": str(tmp_path / "index")}
    made = Workspace(Settings(config=config, **folders))
    yield made
    await made.close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "projects/p"
    for folder in ("sub", "data"):
        (root / folder).mkdir(parents=True)
    (root / ".convect").mkdir()
    (root / "p.pipeline").write_text(json.dumps(HANDS_OVER))
    (root / "helper.py").write_text("scale = 10\n")
    (root / "data/x.csv").write_text("7")
    for name, text in (("make.py", MAKE), ("sub/change.py", CHANGE), ("read.py", READ)):
        (root / name).write_text(text)
    return root


def request(project: Path, path: str = "p.pipeline", **how: Any) -> Request:
    return Request(path=path, root=str(project), **how)


async def start(workspace: Workspace, wanted: Request) -> Run:
    run = await asyncio.to_thread(workspace.make, wanted)
    await workspace.submit(run)
    return run


async def finish(workspace: Workspace, wanted: Request) -> RunState:
    return await workspace.engine.wait((await start(workspace, wanted)).id, 120)


def model_of(state: RunState) -> tuple[Any, Any]:
    assert state.state == "succeeded", state.reason
    return state.steps["read"].outputs["model"], state.steps["read"].outputs["log"]


async def test_twenty_at_once_give_what_each_gives_alone(
    workspace: Workspace, project: Path
) -> None:
    """Through files that nobody declared, and a module that nobody declared."""
    before = sorted(path.name for path in project.rglob("*"))
    sweep = await workspace.create_sweep(
        request(project), {"x": list(range(20))}, mode="grid", concurrency=20
    )
    runs = [row["id"] for row in workspace.sweeps.view(sweep)["runs"]]
    states = [await workspace.engine.wait(run_id, 300) for run_id in runs]
    assert [model_of(state) for state in states] == [(x * 10 + 7, "made ") for x in range(20)]
    assert sorted(path.name for path in project.rglob("*")) == before


def edit(project: Path) -> None:
    """All that a run is made from: the pipeline, a source, a module and a data file."""
    document = {**HANDS_OVER, "parameters": {"x": {"type": "integer", "default": 5}}}
    (project / "p.pipeline").write_text(json.dumps(document))
    (project / "read.py").write_text(READ + "output('edited', True)")
    (project / "helper.py").write_text("scale = 1000")
    (project / "data/x.csv").write_text("70")


async def models_of(workspace: Workspace, sweep: str) -> dict[int, Any]:
    """What the runs of a sweep gave, by their point."""
    view = await workspace.sweeps.wait(sweep, 300)
    found = {}
    for point in view["points"]:
        state = await workspace.engine.wait(point["run"], 120)
        assert "edited" not in state.steps["read"].outputs
        found[point["parameters"]["x"]] = model_of(state)[0]
    return found


async def test_all_points_of_a_sweep_take_the_files_of_its_submit(
    workspace: Workspace, project: Path
) -> None:
    made: list[Run] = []

    def make(wanted: Request) -> Run:
        if len(made) == 2:  # The first one is made to check it, and then again.
            edit(project)
        made.append(workspace.make(wanted))
        return made[-1]

    sweep = await workspace.create_sweep(request(project), {"x": [1, 2, 3]}, make)
    assert await models_of(workspace, sweep) == {x: x * 10 + 7 for x in (1, 2, 3)}
    assert len(made) == 4
    assert len({run.snapshot for run in made}) == 1


class Killed(BaseException):
    pass


async def test_whoever_goes_on_with_a_sweep_takes_its_files(
    workspace: Workspace, project: Path
) -> None:
    submit, submitted = workspace.engine.submit, []

    async def killed_at_the_second(run: Run) -> RunState:
        if submitted:
            raise Killed
        submitted.append(run.id)
        return await submit(run)

    workspace.engine.submit = killed_at_the_second  # type: ignore[method-assign]
    with pytest.raises(Killed):
        await workspace.create_sweep(request(project), {"x": [1, 2, 3]})
    await workspace.close()
    edit(project)
    other = Workspace(workspace.settings)
    try:
        await other.resume()
        [sweep] = [found["id"] for found in other.sweeps.all()]
        assert await models_of(other, sweep) == {x: x * 10 + 7 for x in (1, 2, 3)}
    finally:
        await other.close()


async def test_points_that_are_added_take_the_files_of_the_sweep(
    workspace: Workspace, project: Path
) -> None:
    sweep = await workspace.create_sweep(request(project), {"x": [1]})
    assert (await workspace.sweeps.wait(sweep, 120))["changed"] == []
    edit(project)
    assert set(workspace.sweeps.view(sweep)["changed"]) == {"helper.py", "p.pipeline", "read.py"}
    for at_hand in (True, False):
        if not at_hand:
            workspace.planner._of_sweeps.clear()  # as another process finds it
        await workspace.sweeps.add_points(sweep, {"x": [2 + at_hand]})
    assert await models_of(workspace, sweep) == {x: x * 10 + 7 for x in (1, 2, 3)}
    today = await workspace.create_sweep(request(project), {"x": [1]})
    view = await workspace.sweeps.wait(today, 120)
    assert view["changed"] == []
    state = await workspace.engine.wait(view["points"][0]["run"])
    assert state.steps["read"].outputs["edited"]
    assert model_of(state)[0] == 1070


async def test_what_a_sweep_is_made_from_is_kept_as_long_as_the_sweep(
    workspace: Workspace, project: Path
) -> None:
    sweep = await workspace.create_sweep(request(project), {"x": [1, 2]})
    view = await workspace.sweeps.wait(sweep, 120)
    edit(project)
    for run in view["runs"]:
        workspace.store.delete(run["id"])
    objects = workspace.store.snapshots.objects
    kept = {path for path in objects.glob("??/*") if path.is_file()}
    for path in kept:
        os.utime(path, (0, 0))
    (objects / "cleaned").unlink(missing_ok=True)
    workspace.prune()
    assert {path for path in objects.glob("??/*") if path.is_file()} == kept
    await workspace.sweeps.add_points(sweep, {"x": [3]})
    view = await workspace.sweeps.wait(sweep, 120)
    state = await workspace.engine.wait(view["points"][2]["run"])
    assert model_of(state)[0] == 37


async def test_overlapping_runs_do_not_see_each_other(workspace: Workspace, project: Path) -> None:
    runs = [await start(workspace, request(project, parameters={"x": x})) for x in (7, 8)]
    states = [await workspace.engine.wait(run.id, 120) for run in runs]
    assert [model_of(state)[0] for state in states] == [77, 87]


async def test_a_single_run_puts_what_it_made_beside_the_source(
    workspace: Workspace, project: Path
) -> None:
    state = await finish(workspace, request(project, parameters={"x": 1}))
    assert (project / "model").read_text() == "17"
    assert state.files == {"put": ["log", "model"], "kept": {}}
    again = await finish(workspace, request(project, parameters={"x": 2}))
    assert model_of(again) == (27, "made made ")
    assert (project / "model").read_text() == "27"


async def test_a_run_is_not_put_over_what_changed_meanwhile(
    workspace: Workspace, project: Path
) -> None:
    run = await start(workspace, request(project, parameters={"x": 1}))
    (project / "model").write_text("by hand")
    state = await workspace.engine.wait(run.id, 120)
    assert model_of(state)[0] == 17
    assert (project / "model").read_text() == "by hand"
    assert list(state.files["kept"]) == ["model"]


async def test_the_files_of_any_run_can_be_put_afterwards(
    workspace: Workspace, project: Path
) -> None:
    sweep = await workspace.create_sweep(request(project), {"x": [3, 4]}, mode="grid")
    runs = [row["id"] for row in workspace.sweeps.view(sweep)["runs"]]
    for run_id in runs:
        await workspace.engine.wait(run_id, 120)
    assert not (project / "model").exists()
    put_when_asked(workspace.store, runs[1])
    assert (project / "model").read_text() == "47"
    assert workspace.store.read(runs[1]).state.files["put"] == ["log", "model"]


async def test_an_edit_while_a_run_waits_changes_nothing(
    workspace: Workspace, project: Path, tmp_path: Path
) -> None:
    """Neither of its sources, nor of a module beside them, nor of a data file."""
    gate = tmp_path / "gate"
    waits = f"import pathlib, time\nwhile not pathlib.Path({str(gate)!r}).exists(): time.sleep(.01)"
    (project / "make.py").write_text(f"{waits}\n{MAKE}")
    run = await start(workspace, request(project, parameters={"x": 1}))
    (project / "helper.py").write_text("scale = 1000\n")
    (project / "data/x.csv").write_text("7000")
    (project / "read.py").write_text("raise SystemExit('edited')")
    (project / "make.py").write_text("raise SystemExit('edited')")
    gate.touch()
    assert model_of(await workspace.engine.wait(run.id, 120))[0] == 17


async def test_a_large_file_that_is_replaced_while_a_run_waits_is_the_old_one(
    workspace: Workspace, project: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    waits = f"import pathlib, time\nwhile not pathlib.Path({str(gate)!r}).exists(): time.sleep(.01)"
    (project / "data/large").write_bytes(b"old" + bytes(2 << 20))
    (project / "wait.py").write_text(waits)
    (project / "look.py").write_text(
        "from jupyterlab_convect import output\n"
        "output('seen', open('data/large', 'rb').read(3).decode())"
    )
    nodes: Any = {
        "wait": {"kind": "script", "path": "wait.py"},
        "look": {"kind": "script", "path": "look.py", "after": ["wait"]},
    }
    run = await start(workspace, request(project, document={"convect": 1, "nodes": nodes}))
    (project / "data/draft").write_bytes(b"new" + bytes(2 << 20))
    (project / "data/draft").replace(project / "data/large")
    gate.touch()
    state = await workspace.engine.wait(run.id, 120)
    assert state.steps["look"].outputs == {"seen": "old"}
    assert state.steps["look"].notices == []


async def test_reuse_follows_what_was_executed(
    workspace: Workspace, tmp_path: Path, write_notebook: Callable[..., Path]
) -> None:
    """A run that waited while its notebook was edited leaves a result of what it executed."""
    root = tmp_path / "projects/n"
    root.mkdir(parents=True)
    gate = tmp_path / "gate"
    cell = f"import pathlib, time\nwhile not pathlib.Path({str(gate)!r}).exists(): time.sleep(.01)"

    def write(version: str) -> None:
        say = f"from jupyterlab_convect import output\noutput('version', {version!r})"
        write_notebook(root / "n.ipynb", cell, say)

    wanted = request(root, "n.ipynb", settings={"cache": True})
    write("A")
    waiting = await start(workspace, wanted)
    write("B")
    gate.touch()
    ended = await workspace.engine.wait(waiting.id, 120)
    assert ended.steps["n"].outputs == {"version": "A"}
    fresh = await finish(workspace, wanted)
    assert (fresh.steps["n"].state, fresh.steps["n"].outputs) == ("succeeded", {"version": "B"})
    write("A")
    reused = await finish(workspace, wanted)
    assert (reused.steps["n"].state, reused.steps["n"].outputs) == ("cached", {"version": "A"})


async def test_an_edit_of_the_code_beside_it_is_not_reused(
    workspace: Workspace, project: Path
) -> None:
    wanted = request(project, settings={"cache": True}, parameters={"x": 1})
    await finish(workspace, wanted)
    (project / "helper.py").write_text("scale = 20\n")
    state = await finish(workspace, wanted)
    assert model_of(state)[0] == 27
    assert "code beside it" in (state.steps["make"].cache or "")


async def test_other_packages_are_other_results(
    workspace: Workspace, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(site), os.environ.get("PYTHONPATH", ""))))
    wanted = request(project, settings={"cache": True}, parameters={"x": 1})
    await finish(workspace, wanted)
    again = await finish(workspace, wanted)
    assert again.steps["make"].state == "cached"
    (site / "odd-1.0.dist-info").mkdir()
    (site / "odd-1.0.dist-info/METADATA").write_text("Name: odd\nVersion: 1.0\n")
    state = await finish(workspace, wanted)
    assert state.steps["make"].state == "succeeded"
    assert "Python or the packages" in (state.steps["make"].cache or "")


async def test_what_a_run_took_over_stays_when_its_origin_is_deleted(
    workspace: Workspace, project: Path
) -> None:
    wanted = request(project, settings={"cache": True}, parameters={"x": 1})
    first = await start(workspace, wanted)
    await workspace.engine.wait(first.id, 120)
    second = await start(workspace, wanted)
    state = await workspace.engine.wait(second.id, 120)
    assert {step.state for step in state.steps.values()} == {"cached"}
    workspace.store.delete(first.id)
    folder = workspace.store.result_folder(second.id, "read")
    assert folder is not None
    assert (folder / "outputs.json").is_file()
    (project / "model").unlink()
    put_when_asked(workspace.store, second.id)
    assert not (project / "model").exists()  # somebody deleted it, and that is respected


async def test_a_result_of_which_something_was_dropped_is_made_again(
    workspace: Workspace, project: Path
) -> None:
    """Else the next step would find whatever lies in the project instead."""
    wanted = request(project, settings={"cache": True}, parameters={"x": 1})
    first = await start(workspace, wanted)
    await workspace.engine.wait(first.id, 120)
    folder = workspace.store.result_folder(first.id, "make")
    assert folder is not None
    (folder / "made/model").unlink()
    (project / "model").write_text("999")
    state = await finish(workspace, wanted)
    assert state.steps["make"].state == "succeeded"
    assert model_of(state)[0] == 17


async def test_what_could_not_be_put_is_never_dropped(
    workspace: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupyterlab_convect.runs.made.MOST_BYTES", 0)
    run = await start(workspace, request(project, parameters={"x": 1}))
    (project / "model").write_text("by hand")
    await workspace.engine.wait(run.id, 120)
    kept = {each["path"]: each["kept"] for each in describe(workspace.store, run.id)["files"]}
    assert kept["model"] is True
    assert kept["log"] is False


async def test_again_with_the_files_of_the_run_or_those_of_today(
    workspace: Workspace, project: Path
) -> None:
    first = await start(workspace, request(project, parameters={"x": 1}))
    await workspace.engine.wait(first.id, 120)
    (project / "helper.py").write_text("scale = 500\n")
    (project / "read.py").write_text(READ.replace('output("log"', 'output("edited"'))
    then = await finish(workspace, workspace.again(first.id, version="run"))
    assert (then.steps["read"].outputs["model"], "edited" in then.steps["read"].outputs) == (
        17,
        False,
    )
    now = await finish(workspace, workspace.again(first.id))
    assert (now.steps["read"].outputs["model"], "edited" in now.steps["read"].outputs) == (
        507,
        True,
    )


async def test_sources_that_are_gone_are_not_replaced_by_those_of_today(
    workspace: Workspace, project: Path
) -> None:
    first = await start(workspace, request(project, "make.py"))
    await workspace.engine.wait(first.id, 120)
    shutil.rmtree(workspace.store.snapshots.objects)
    with pytest.raises(ConvectError, match="sources of this run no longer exist"):
        await start(workspace, workspace.again(first.id, version="run"))


async def test_files_beside_the_folder_of_a_notebook_are_part_of_the_project(
    workspace: Workspace, project: Path
) -> None:
    (project / ".convect").rmdir()
    (project / "sub/beside.py").write_text(
        "import os, pathlib, time\nfrom jupyterlab_convect import output\n"
        "model = pathlib.Path('../data/model')\nmodel.write_text(os.environ['x'])\n"
        "others = pathlib.Path(os.environ['others'])\n"
        "(others / os.environ['x']).touch()\n"
        "while len(list(others.iterdir())) < 2:\n    time.sleep(0.01)\n"
        "output('model', int(model.read_text()))"
    )
    others = project.parent.parent / "others"
    others.mkdir()
    settings = {"env": {"others": str(others)}}
    wanted = replace(request(project, "sub/beside.py", settings=settings), root=str(project))
    runs = [await start(workspace, replace(wanted, parameters={"x": x})) for x in (1, 2)]
    for x, run in enumerate(runs, 1):
        state = await workspace.engine.wait(run.id, 120)
        assert state.steps["beside"].outputs == {"model": x}


async def test_a_part_of_a_run_sees_the_files_of_what_came_before(
    workspace: Workspace, project: Path
) -> None:
    first = await start(workspace, request(project, parameters={"x": 1}))
    await workspace.engine.wait(first.id, 120)
    for name in ("model", "log"):
        (project / name).unlink()
    part = replace(workspace.again(first.id, Selection("only", "read")))
    assert model_of(await finish(workspace, part)) == (17, "made ")


async def test_a_failed_run_puts_nothing_of_the_step_that_failed(
    workspace: Workspace, project: Path
) -> None:
    (project / "read.py").write_text("open('half', 'w').write('h')\nraise SystemExit(3)")
    state = await finish(workspace, request(project, parameters={"x": 1}))
    assert state.state == "failed"
    assert (project / "model").read_text() == "17"
    assert not (project / "half").exists()


async def test_a_shared_folder_is_shared_when_that_is_chosen(
    workspace: Workspace, project: Path
) -> None:
    (project / "shared.py").write_text("open('out', 'a').write('.')")
    wanted = request(project, "shared.py", settings={"working_folder": "shared"})
    for _ in range(2):
        assert (await finish(workspace, wanted)).state == "succeeded"
    assert (project / "out").read_text() == ".."
    told = [
        problem for problem in (await workspace.check(wanted)).problems if problem.code == "view"
    ]
    assert [problem.message for problem in told] == [
        "Works in the folder itself, together with other runs."
    ]


async def test_files_of_an_isolated_step_reach_the_view(
    workspace: Workspace, project: Path
) -> None:
    (project / "alone.py").write_text("open('kept', 'w').write('from far')")
    (project / "sub/look.py").write_text(
        "import pathlib\nfrom jupyterlab_convect import output\n"
        "output('seen', pathlib.Path('kept').read_text())"
    )
    nodes: Any = {
        "alone": {
            "kind": "script",
            "path": "alone.py",
            "working_folder": "isolated",
            "outputs": ["kept"],
        },
        "look": {"kind": "script", "path": "sub/look.py", "after": ["alone"]},
    }
    state = await finish(workspace, request(project, document={"convect": 1, "nodes": nodes}))
    assert state.steps["look"].outputs == {"seen": "from far"}
    assert not (project / "sub/kept").exists()


async def test_what_an_isolated_step_depends_on_is_that_of_the_submit(
    workspace: Workspace, project: Path
) -> None:
    (project / "alone.py").write_text(
        "from jupyterlab_convect import output\noutput('tool', open('tool.txt').read())"
    )
    tool = project / "tool.txt"
    tool.write_text("before")
    nodes: Any = {
        "edit": {"kind": "command", "command": ["sh", "-c", f"echo after > {tool}"]},
        "alone": {
            "kind": "script",
            "path": "alone.py",
            "dependencies": ["tool.txt"],
            "after": ["edit"],
        },
    }
    document = {"convect": 1, "defaults": {"working_folder": "isolated"}, "nodes": nodes}
    state = await finish(workspace, request(project, document=document))
    assert tool.read_text() == "after\n"
    assert state.steps["alone"].outputs == {"tool": "before"}


async def test_runs_take_turns_in_a_folder_that_is_too_large_to_copy(
    project: Path, tmp_path: Path
) -> None:
    """Where there can be no overlay; each says what it waits for."""
    config = Config({"LocalRuntime": {"overlays": False, "copied_files": 3}})
    folders = {"runs_dir": str(tmp_path / "runs"), "index_dir": str(tmp_path / "index")}
    workspace = Workspace(Settings(config=config, **folders))
    gate = tmp_path / "gate"
    waits = f"import pathlib, time\nwhile not pathlib.Path({str(gate)!r}).exists(): time.sleep(.01)"
    (project / "read.py").write_text(f"{waits}\n{READ}\npathlib.Path('log').unlink()")
    first = await start(workspace, request(project, parameters={"x": 1}))

    def step(run: Run, name: str) -> StepState:
        return workspace.store.read(run.id).state.steps[name]

    await eventually(lambda: step(first, "read").state == "running", "the first runs")
    second = await start(workspace, request(project, parameters={"x": 2}))
    await eventually(lambda: step(second, "make").state == "queued", "the second waits")
    reason = await eventually(lambda: step(second, "make").reason, "it says why")
    assert f"Waiting for its turn: run {first.id} works in {project}" in reason
    gate.touch()
    for run, expected in ((first, 17), (second, 27)):
        assert model_of(await workspace.engine.wait(run.id, PATIENCE)) == (expected, "made ")
    assert not list((tmp_path / "runs/turns").iterdir())
    await workspace.close()


@pytest.mark.parametrize("kind", ["script", "notebook"])
async def test_a_shell_sees_what_the_step_sees(
    workspace: Workspace,
    project: Path,
    tmp_path: Path,
    kind: str,
    write_notebook: Callable[..., Path],
) -> None:
    """Its own version of the folder, which nobody else sees."""
    (tmp_path / "signals").mkdir()
    up, go, seen = (tmp_path / "signals" / name for name in ("up", "go", "seen"))
    code = (
        f"import pathlib, time\npathlib.Path('mine').write_text('made')\n"
        f"pathlib.Path({str(up)!r}).touch()\n"
        f"while not pathlib.Path({str(go)!r}).exists(): time.sleep(0.01)"
    )
    path = "sub/a.py" if kind == "script" else "sub/a.ipynb"
    if kind == "script":
        (project / path).write_text(code)
    else:
        write_notebook(project / path, code)
    run = await start(workspace, request(project, path))
    while not up.exists() or workspace.store.read(run.id).state.steps["a"].state != "running":
        await asyncio.sleep(0.02)
    attempt = running_attempt(workspace.store, workspace.store.read(run.id), "a")
    runtime = workspace.runtimes["local"]
    assert isinstance(runtime, StepRuntime)
    look = ["sh", "-c", f"cat mine ../data/x.csv > {seen}; exit 3"]
    assert await asyncio.to_thread(runtime.shell, attempt, look) == 3
    assert seen.read_text() == "made7"
    assert not (project / "sub/mine").exists()
    go.touch()
    assert (await workspace.engine.wait(run.id, PATIENCE)).state == "succeeded"
    assert (project / "sub/mine").read_text() == "made"


@pytest.mark.slow
async def test_the_example_in_a_sweep_gives_what_each_value_gives_alone(
    workspace: Workspace, tmp_path: Path
) -> None:
    pytest.importorskip("sklearn")
    rates = [0.001, 0.1, 1.5]

    def copy(name: str) -> Path:
        ignored = shutil.ignore_patterns("data")
        return Path(shutil.copytree(EXAMPLE, tmp_path / name / "churn", ignore=ignored))

    async def alone(rate: float) -> Any:
        folder = copy(f"alone-{rate}")
        wanted = request(folder, "churn.pipeline", parameters={"learning_rate": rate})
        return (await finish(workspace, wanted)).steps["evaluate"].metrics

    expected = [await alone(rate) for rate in rates]
    together = copy("together")
    sweep = await workspace.create_sweep(
        request(together, "churn.pipeline"),
        {"learning_rate": rates},
        mode="grid",
        concurrency=3,
        select="max:auc",
    )
    view = workspace.sweeps.view(sweep)
    runs = [row["id"] for row in view["runs"]]
    states = [await workspace.engine.wait(run_id, 300) for run_id in runs]
    assert [state.steps["evaluate"].metrics for state in states] == expected
    assert workspace.sweeps.view(sweep)["best"] == runs[1]
