"""A real Kubeflow Pipelines: the one of the test bed, on this machine.

`make test-kfp` runs these; without CONVECT_TEST_KFP none of them is collected.
"""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from loading import load

from jupyterlab_convect.pipeline.resolve import raise_first_error
from jupyterlab_convect.runtimes.kfp.runtime import KfpRuntime

HERE = Path(__file__).parent

if not os.environ.get("CONVECT_TEST_KFP"):
    collect_ignore_glob = ["test_*.py"]

sys.path[:0] = [str(HERE.parent / "testbed"), str(HERE.parent / "conformance")]

PATIENCE = 600.0
AT_ONCE = 4


suite = load("conformance_lab", HERE.parent / "conformance" / "conftest.py")
suite.PATIENCE = PATIENCE


class Lab(suite.Lab):  # type: ignore[misc,name-defined]
    """Runs have their own version of the folder: a task of Kubeflow does not see ours."""

    def open(self) -> None:
        super().open()
        wait = self.engine.wait

        async def patiently(run_id: str, timeout: float = 0) -> Any:
            """A run takes minutes, whatever it takes elsewhere."""
            return await wait(run_id, max(timeout, PATIENCE))

        submit = self.engine.submit

        async def checked(run: Any) -> Any:
            raise_first_error(await self.runtime.check(run.plan))
            return await submit(run)

        self.engine.wait, self.engine.submit = patiently, checked

    async def start(self, *what: Any, own_view: bool = True, **how: Any) -> Any:
        return await super().start(*what, own_view=own_view, **how)

    def graph(self, run: Any) -> Any:
        """What is known of the run over there."""
        return suite.json.loads((self.store.run_folder(run.id) / "graph.json").read_bytes())


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    import pipelines

    was_up = pipelines.cluster.is_up()
    yield pipelines.up()
    if not was_up:
        pipelines.cluster.down()


@pytest.fixture
def make_runtime(endpoint: str) -> Callable[..., KfpRuntime]:
    import images

    def make(**traits: Any) -> KfpRuntime:
        return KfpRuntime(**{"endpoint": endpoint, "image": images.NOTEBOOK, **traits})

    return make


@pytest.fixture
def make_lab(make_runtime: Callable[..., KfpRuntime]) -> Callable[..., Lab]:
    """A lab in a folder, whose runtime has the given traits."""
    return lambda folder, **traits: Lab(folder, lambda: make_runtime(**traits))


AtOnce = Callable[[dict[str, Callable[[Lab], Awaitable[None]]]], Awaitable[None]]


@pytest.fixture
def at_once(make_lab: Callable[..., Lab], tmp_path: Path) -> AtOnce:
    """Does many things at the same time, each in a lab of its own, and says what failed.

    A run takes the better part of a minute, most of which it waits.
    """

    async def do_all(cases: dict[str, Callable[[Lab], Awaitable[None]]]) -> None:
        limit = asyncio.Semaphore(AT_ONCE)

        async def do(number: int, name: str) -> str | None:
            async with limit:
                (tmp_path / str(number)).mkdir()
                lab = make_lab(tmp_path / str(number))
                try:
                    await cases[name](lab)
                except pytest.skip.Exception:
                    return None
                except Exception:
                    return f"{name}: {traceback.format_exc()}"
                finally:
                    await lab.close()
                return None

        failed = await asyncio.gather(*(do(number, name) for number, name in enumerate(cases)))
        assert not any(failed), "\n".join(filter(None, failed))

    return do_all


@pytest.fixture
async def lab(make_lab: Callable[..., Lab], tmp_path: Path) -> AsyncIterator[Lab]:
    lab = make_lab(tmp_path)
    yield lab
    await lab.close()
