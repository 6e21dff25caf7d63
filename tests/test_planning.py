"""What is asked for is looked at once, and all that follows comes from that one look."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_convect import planning
from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.pipeline.file_facts import FileFacts
from jupyterlab_convect.pipeline.problems import Problem
from jupyterlab_convect.runs.attempt_files import files_of
from jupyterlab_convect.runs.model import Request, SweepSources
from jupyterlab_convect.settings import Settings
from jupyterlab_convect.workspace import Workspace

NOTEBOOK = {
    "cells": [
        {
            "cell_type": "code",
            "metadata": {"tags": ["parameters"]},
            "source": "lr: float = 0.1",
            "outputs": [],
            "execution_count": None,
        }
    ],
    "metadata": {"kernelspec": {"name": "python3", "display_name": "p", "language": "python"}},
    "nbformat": 4,
    "nbformat_minor": 4,
}
PIPELINE = {"convect": 1, "nodes": {"a": {"kind": "notebook", "path": "a.ipynb"}}}


@pytest.fixture
async def workspace(tmp_path: Path) -> AsyncIterator[Workspace]:
    folders = {"runs_dir": str(tmp_path / "runs"), "index_dir": str(tmp_path / "index")}
    made = Workspace(Settings(**folders))
    yield made
    await made.close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.ipynb").write_text(json.dumps(NOTEBOOK))
    (root / "p.pipeline").write_text(json.dumps(PIPELINE))
    return root


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Each document that was validated."""
    found: list[Any] = []

    def look(document: Any, **how: Any) -> list[Problem]:
        found.append(document)
        return validate(document, **how)

    validate = planning.validate
    monkeypatch.setattr(planning, "validate", look)
    return found


@pytest.mark.parametrize("path", ["a.ipynb", "p.pipeline"])
async def test_a_run_and_a_check_each_validate_once(
    workspace: Workspace, project: Path, looks: list[Any], path: str
) -> None:
    wanted = Request(path=path, root=str(project))
    told: list[Problem] = []
    run = workspace.make(wanted, tell=told.append)
    assert (len(looks), told) == (1, [])
    checked = await workspace.check(wanted)
    assert len(looks) == 2
    assert checked.plan == run.plan


async def test_what_is_odd_is_told_and_what_is_wrong_is_refused_in_the_words_of_the_file(
    workspace: Workspace, project: Path
) -> None:
    told: list[Problem] = []
    odd = Request(path="a.ipynb", root=str(project), parameters={"typo": 1})
    workspace.make(odd, tell=told.append)
    assert [(each.code, each.node) for each in told] == [("unknown-parameter-of-notebook", None)]
    wrong = Request(path="a.ipynb", root=str(project), parameters={"lr": "high"})
    with pytest.raises(ConvectError, match=r"^“a\.ipynb” expects “lr” to be of type number"):
        workspace.make(wrong)
    checked = await workspace.check(wrong)
    assert [(each.severity, each.code) for each in checked.problems] == [("error", "wrong-type")]
    assert checked.plan is None


async def test_options_are_those_of_the_runtime_or_refused(
    workspace: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = Request(path="a.ipynb", root=str(project), options={"queue": "gpu"})
    with pytest.raises(ConvectError, match="The runtime local has no option “queue”"):
        await workspace.refuse(workspace.make(wanted))
    (problem,) = (await workspace.check(wanted)).problems
    assert problem.code == "unknown-option"
    schema = {"type": "object", "properties": {"queue": {"type": "integer"}}}
    monkeypatch.setattr(workspace.runtimes["local"], "options_schema", lambda: schema)
    with pytest.raises(ConvectError, match="The option “queue” is wrong: 'gpu' is not of type"):
        await workspace.refuse(workspace.make(wanted))
    fits = Request(path="a.ipynb", root=str(project), options={"queue": 1})
    run = workspace.make(fits)
    await workspace.submit(run)
    await workspace.engine.wait(run.id, 120)
    found = files_of(workspace.store, workspace.store.read(run.id), "a", 1)
    assert found.attempt.options == {"queue": 1}


def test_the_sources_of_sweeps_make_room_for_each_other_one_after_the_other(
    workspace: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2)

    class Shared(dict[str, Any]):
        def __delitem__(self, name: str) -> None:
            with contextlib.suppress(threading.BrokenBarrierError):
                both.wait(0.5)  # in vain, if the other one is kept out meanwhile
            super().__delitem__(name)

    monkeypatch.setattr(planning, "KEPT_SOURCES", 1)
    sources = SweepSources(FileFacts({}, {}, {}))
    planner = planning.Planner(workspace.store, lambda _: sources)
    planner._of_sweeps = Shared(earlier=None)

    def use(sweep: str) -> None:
        planner.use_sources(Request(root=str(project), path="a.ipynb", sweep=sweep), sources)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(use, ["one", "another"]))
    assert len(planner._of_sweeps) == 1
