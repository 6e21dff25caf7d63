from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_convect.pipeline.plan import Plan, Step
from jupyterlab_convect.runs.engine import Engine
from jupyterlab_convect.runs.index import Index
from jupyterlab_convect.runs.model import Request, Run, RunState, Selection, new_id
from jupyterlab_convect.runs.store import Store

sys.path.insert(0, str(Path(__file__).parent))

from inprocess import InProcess, MakeRun, make_step


@pytest.fixture
def step() -> Callable[..., Step]:
    return make_step


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    root = tmp_path / "root"
    root.mkdir(exist_ok=True)

    def make(
        *steps: Step, name: str = "churn", select: Selection | None = None, **request: Any
    ) -> Run:
        asked = Request(
            root=str(root), runtime="inprocess", select=select or Selection(), **request
        )
        plan = Plan(name, steps or (make_step("a"),), path=f"{name}.pipeline")
        return Run(new_id(), name, time.time(), "inprocess", plan, asked, user="ana")

    return make


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    folder = tmp_path / "runs"
    folder.mkdir()
    store = Store(folder, Index(tmp_path / "cache" / "index.sqlite"))
    yield store
    store.close()


@pytest.fixture
def runtime() -> InProcess:
    return InProcess()


@pytest.fixture
async def engine(store: Store, runtime: InProcess) -> AsyncIterator[Engine]:
    engine = Engine(store, {"inprocess": runtime}, beat=0.2)
    yield engine
    await engine.close()


@pytest.fixture
def finish(engine: Engine) -> Callable[[Run], Any]:
    """Submit a run and wait for its end."""

    async def act(run: Run) -> RunState:
        await engine.submit(run)
        return await engine.wait(run.id, 60)

    return act
