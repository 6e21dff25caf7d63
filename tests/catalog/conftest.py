from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from waiting import PATIENCE

from jupyterlab_convect.catalog.approvals import Approvals, store_folder
from jupyterlab_convect.catalog.fetch import Policy
from jupyterlab_convect.catalog.model import Component
from jupyterlab_convect.catalog.read import read
from jupyterlab_convect.catalog.store import CatalogStore
from jupyterlab_convect.errors import Missing
from jupyterlab_convect.pipeline.plan import Plan, Step, to_json
from jupyterlab_convect.runs.model import Request, Run
from jupyterlab_convect.runs.snapshots import Snapshots
from jupyterlab_convect.runs.step_file import describe
from jupyterlab_convect.runtimes.base import Attempt as StepAttempt

CORPUS = Path(__file__).parents[2].parent / "shared" / "corpus" / "components"


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real specs, which lies beside the project where there is one."""
    if not CORPUS.is_dir():
        pytest.skip("the folder with real component specs is not beside the project")
    return CORPUS


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CatalogStore:
    """A store that looks at its files every time, and may ask web servers on this machine."""
    monkeypatch.setattr("jupyterlab_convect.catalog.store.LOOK_AGAIN", 0.0)
    return CatalogStore(tmp_path / "catalog", Policy(hosts=("127.0.0.1",)))


@pytest.fixture
def component() -> Callable[..., Component]:
    """Makes a v1 component from its inputs, outputs and arguments."""

    def make(
        args: list[Any],
        inputs: list[dict[str, Any]] | None = None,
        outputs: list[dict[str, Any]] | None = None,
        **container: Any,
    ) -> Component:
        spec = {
            "name": "Example",
            "inputs": inputs or [],
            "outputs": outputs or [],
            "implementation": {"container": {"image": "alpine", "args": args, **container}},
        }
        reading = read(yaml.safe_dump(spec).encode(), "example.yaml")
        if reading.errors:
            raise reading.errors[0]
        return reading.components[0]

    return make


def spec_text(name: str = "Echo", word: str = "hello", **more: Any) -> str:
    """The text of a component that says a word."""
    container = {"image": "alpine", "command": ["echo", word]}
    return yaml.safe_dump({"name": name, **more, "implementation": {"container": container}})


@pytest.fixture(name="spec_text")
def _spec_text() -> Callable[..., str]:
    return spec_text


class Attempt:
    """An attempt at one component in a runs folder, described as the engine does it."""

    def __init__(self, tmp_path: Path, component: Component, **arguments: Any) -> None:
        self.runs = tmp_path / "runs"
        self.folder = self.runs / "r1" / "steps" / "s" / "1"
        self.folder.mkdir(parents=True)
        step = Step(
            id="s",
            kind="component",
            name="s",
            component="c",
            parameters=arguments,
            env={"ASKED": "yes"},
            working_folder="isolated",
        )
        plan = Plan("p", (step,), components={"c": to_json(component)})
        run = Run("r1", "my run", 0.0, "local", plan, Request(root=str(tmp_path)))
        about = {"root": tmp_path, "plan": plan, "runs": self.runs}
        attempt = StepAttempt("r1", step, 1, self.folder, **about)
        described = describe(run, attempt, {}, None, Snapshots(self.runs))
        (self.folder / "step.json").write_text(json.dumps(described))
        self.approvals = Approvals(store_folder(self.runs))
        self.component = component

    def start(self, **env: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "jupyterlab_convect.runner", str(self.folder)],
            env={**os.environ, "CONVECT_CONTAINER_ENGINE": "", **env},
        )

    def run(self, *, approved: bool = True, **env: str) -> dict[str, Any]:
        if approved:
            self.approvals.give(self.component)
        self.start(**env).wait(PATIENCE)
        return self.outcome

    @property
    def outcome(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads((self.folder / "outputs.json").read_text())
        return value

    @property
    def log(self) -> str:
        return (self.folder / "log.txt").read_text()


@pytest.fixture
def attempt_at() -> type[Attempt]:
    return Attempt


AGGREGATE = (
    "https://raw.githubusercontent.com/kubeflow/pipelines/7ea9363fe201918d419fecdc00d1275e657ff712"
    "/components/ml_metrics/Aggregate_regression_metrics/component.yaml"
)
"""The reference of the XGBoost graph that nobody has any more; `twin.yaml` is ours."""


def fetch_refs(corpus: Path, twin: bytes) -> Callable[[Sequence[str]], dict[str, Any]]:
    """Answers the references of the XGBoost graph from the corpus."""

    def fetch(addresses: Sequence[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for address in addresses:
            path = corpus / "refs" / address.split("/pipelines/")[-1]
            if address == "twin.yaml":
                found[address] = twin
            elif path.is_file():
                found[address] = path.read_bytes()
            else:
                found[address] = Missing("The server answered 404.")
        return found

    return fetch


@pytest.fixture
def twin() -> bytes:
    return (Path(__file__).parent / "aggregate_regression_metrics.yaml").read_bytes()


@pytest.fixture
def fetch(corpus: Path, twin: bytes) -> Callable[[Sequence[str]], dict[str, Any]]:
    return fetch_refs(corpus, twin)


@pytest.fixture
def xgboost(corpus: Path, fetch: Any) -> Callable[[], Component]:
    """The XGBoost graph, with our twin for its dead reference."""

    def make() -> Component:
        name = "graph-xgboost-train-and-cross-validate.yaml"
        data = (corpus / name).read_bytes()
        reading = read(data, name, fetch=fetch, replacements={AGGREGATE: "twin.yaml"})
        return reading.components[0]

    return make
