"""A run of three steps on Kubeflow Pipelines, against the same containers by its own SDK."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import peers
from .measure import Result, absent, versus

NAME, AGAINST = "KFP run of three steps", "the same three containers by the kfp SDK"
TESTBED = Path(__file__).parent.parent / "tests" / "testbed"
STEPS = ("first", "second", "third")
PROGRAM = "print('done')"
REPEAT = 3
PATIENCE = 600
THEIRS = """
import sys
import kfp
from kfp import dsl

endpoint, image, program, name = sys.argv[1:]


@dsl.container_component
def step():
    return dsl.ContainerSpec(image=image, command=["python3", "-c", program])


@dsl.pipeline(name=name)
def three():
    before = None
    for _ in range(3):
        task = step().set_caching_options(False)
        if before is not None:
            task.after(before)
        before = task


client = kfp.Client(host=endpoint)
run = client.create_run_from_pipeline_func(three, enable_caching=False)
ended = client.wait_for_run_completion(run.run_id, timeout=600, sleep_duration=1)
assert ended.state == "SUCCEEDED", ended.state
"""


def rows() -> Iterator[Result]:
    """On the test bed with Kubeflow Pipelines, if it is up."""
    sys.path.insert(0, str(TESTBED))
    try:
        import images
        import pipelines

        if os.geteuid() != 0 or not pipelines.cluster.is_up():
            yield absent(NAME, "`make cluster-up KFP=1` has not been run here.", against=AGAINST)
            return
        yield _measure(pipelines.up(), images.NOTEBOOK)
    finally:
        sys.path.remove(str(TESTBED))


def _measure(endpoint: str, image: str) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        loop = asyncio.new_event_loop()
        ours = loop.run_until_complete(_opened(Path(folder), endpoint, image))

        def run() -> None:
            loop.run_until_complete(ours.run())

        def theirs() -> None:
            words = [str(peers.kfp()), "-c", THEIRS, endpoint, image, PROGRAM, "three-steps"]
            subprocess.run(words, check=True, capture_output=True, cwd=folder)

        run()
        theirs()
        found = versus(
            NAME,
            run,
            theirs,
            budget=1.05,
            against=AGAINST,
            repeat=REPEAT,
            note="submit to succeeded. We end when log and results of each step are here; the SDK "
            "when the server calls the run succeeded, for which it asks every second.",
        )
        loop.run_until_complete(ours.close())
        loop.close()
        return found


async def _opened(folder: Path, endpoint: str, image: str) -> _Ours:
    return _Ours(folder, endpoint, image)


class _Ours:
    def __init__(self, folder: Path, endpoint: str, image: str) -> None:
        from jupyterlab_convect.runs.engine import Engine
        from jupyterlab_convect.runs.index import Index
        from jupyterlab_convect.runs.store import Store
        from jupyterlab_convect.runtimes.kfp.runtime import KfpRuntime

        self._root = folder / "root"
        self._root.mkdir()
        (folder / "runs").mkdir()
        (self._root / "step.py").write_text(PROGRAM)
        nodes: dict[str, Any] = {}
        for before, name in zip((None, *STEPS), STEPS, strict=False):
            after = [before] if before else []
            nodes[name] = {"kind": "script", "path": "step.py", "after": after}
        document = {"convect": 1, "name": "three", "nodes": nodes}
        (self._root / "three.pipeline").write_text(json.dumps(document))
        self._document: Any = document
        self._store = Store(folder / "runs", Index(folder / "index.sqlite"))
        self._runtime = KfpRuntime(endpoint=endpoint, image=image)
        self._engine = Engine(self._store, {"kfp": self._runtime})

    async def run(self) -> None:
        from jupyterlab_convect.pipeline.resolve import resolve
        from jupyterlab_convect.runs.model import Request, Run, new_id

        plan = resolve(self._document, root=self._root, path="three.pipeline")
        request = Request(path="three.pipeline", root=str(self._root), runtime="kfp")
        run = Run(new_id(), plan.name, time.time(), "kfp", plan, request)
        await self._runtime.check(plan)
        await self._engine.submit(run)
        state = await self._engine.wait(run.id, PATIENCE)
        if state.state != "succeeded":
            raise RuntimeError(f"The run ended as {state.state}: {state.reason}")

    async def close(self) -> None:
        await self._engine.close()
        await self._runtime.close()
        self._store.close()
