"""A step as a pod, against the same Job made by hand with `kubectl create`."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .measure import Result, absent, versus
from .workloads import trivial

NAME, AGAINST = "Kubernetes step", "the same Job by `kubectl create`"
TESTBED = Path(__file__).parent.parent / "tests" / "testbed"
REPEAT = 7


def rows() -> Iterator[Result]:
    """On the test bed, which is started (and stopped again) if it can be."""
    sys.path.insert(0, str(TESTBED))
    try:
        import build
        import cluster
        import images

        missing = [name for name in build.PROGRAMS if not (build.cache_folder() / name).exists()]
        if os.geteuid() != 0 or missing:
            yield absent(NAME, "`make cluster-up` has not been run here.", against=AGAINST)
            return
        was_up = cluster.is_up()
        cluster.up()
        try:
            yield _measure(cluster, build.cache_folder() / "kubectl", images.NOTEBOOK)
        finally:
            if not was_up:
                cluster.down()
    finally:
        sys.path.remove(str(TESTBED))


def _measure(cluster: Any, kubectl: Path, image: str) -> Result:
    before = os.umask(0)  # The pods' user is not ours, and both write there.
    folder = Path(tempfile.mkdtemp(dir=cluster.SHARED))
    folder.chmod(0o777)
    loop = asyncio.new_event_loop()
    try:
        ours = _Ours(loop, folder, cluster, image)
        theirs = _Theirs(ours.folder_of_a_run(), cluster.KUBECONFIG, kubectl)
        ours.step()
        theirs.step()
        result = versus(
            NAME,
            ours.step,
            theirs.step,
            budget=0.45,
            against=AGAINST,
            repeat=REPEAT,
            note="submit to succeeded, check and engine included. We end when the result is in "
            "the run's folder; `kubectl wait` when the cluster calls the Job complete.",
        )
        loop.run_until_complete(ours.close())
        return result
    finally:
        loop.close()
        os.umask(before)
        shutil.rmtree(folder, ignore_errors=True)


class _Ours:
    def __init__(
        self, loop: asyncio.AbstractEventLoop, folder: Path, cluster: Any, image: str
    ) -> None:
        from jupyterlab_convect.runs.engine import Engine
        from jupyterlab_convect.runs.index import Index
        from jupyterlab_convect.runs.store import Store
        from jupyterlab_convect.runtimes.kubernetes import KubernetesRuntime

        self._loop, self._folder = loop, folder
        trivial(folder)
        (folder / "runs").mkdir()
        # Special rights: any other runs folder is closed to the pods' user.
        (folder / "runs").chmod(0o1777)
        self._store = Store(folder / "runs", Index(folder / "index.sqlite"))
        share = {"path": str(cluster.SHARED), "volume": {"hostPath": {"path": str(cluster.SHARED)}}}
        self._runtime = KubernetesRuntime(
            config_file=str(cluster.KUBECONFIG), image=image, volumes=[share]
        )
        self._engine = self._on_loop(lambda: Engine(self._store, {"kubernetes": self._runtime}))
        self.last = ""

    def step(self) -> None:
        state = self._loop.run_until_complete(self._run())
        if state.state != "succeeded":
            raise RuntimeError(f"The run ended as {state.state}: {state.reason}")

    async def _run(self) -> Any:
        from jupyterlab_convect.pipeline.resolve import plan_for_file
        from jupyterlab_convect.runs.model import Request, Run, new_id

        plan = plan_for_file("trivial.ipynb", self._folder, {}, {})
        request = Request(path="trivial.ipynb", root=str(self._folder), runtime="kubernetes")
        run = Run(new_id(), "trivial", time.time(), "kubernetes", plan, request)
        await self._runtime.check(plan)
        await self._engine.submit(run)
        self.last = run.id
        return await self._engine.wait(run.id, 120)

    def folder_of_a_run(self) -> Callable[[], tuple[dict[str, Any], Path]]:
        """The Job of our last run, and a fresh folder for another go at it."""

        def another() -> tuple[dict[str, Any], Path]:
            if not self.last:
                self.step()
            attempts = self._store.run_folder(self.last) / "steps" / "trivial"
            number = len(list(attempts.iterdir())) + 1
            target = attempts / str(number)
            target.mkdir()
            shutil.copy(attempts / "1" / "step.json", target)
            cluster = self._runtime._open().cluster
            jobs, _ = cluster.jobs.now()
            job = next(item for name, item in jobs.items() if self.last in name)
            return job, target

        return another

    async def close(self) -> None:
        await self._engine.close()
        await self._runtime.close()
        self._store.close()

    def _on_loop(self, make: Callable[[], Any]) -> Any:
        async def made() -> Any:
            return make()

        return self._loop.run_until_complete(made())


class _Theirs:
    """The same manifest under another name, made and waited for by kubectl."""

    def __init__(
        self, another: Callable[[], tuple[dict[str, Any], Path]], kubeconfig: Path, kubectl: Path
    ) -> None:
        self._another = another
        self._command = [str(kubectl), f"--kubeconfig={kubeconfig}"]
        self._count = 0

    def step(self) -> None:
        self._count += 1
        job, folder = self._another()
        name = f"by-hand-{os.getpid()}-{self._count}"
        spec = json.loads(json.dumps(job["spec"]))
        for key in ("selector", "manualSelector"):
            spec.pop(key, None)
        spec["template"]["metadata"]["labels"] = {"by": "hand"}
        command = spec["template"]["spec"]["containers"][0]["command"]
        command[-1] = str(folder)
        manifest = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name},
            "spec": spec,
        }
        self._kubectl("create", "-f", "-", text=json.dumps(manifest))
        self._kubectl("wait", "--for=condition=complete", f"job/{name}", "--timeout=120s")

    def _kubectl(self, *words: str, text: str | None = None) -> None:
        subprocess.run(
            [*self._command, *words], input=text, text=True, check=True, capture_output=True
        )


if __name__ == "__main__":
    for row in rows():
        print(row)
