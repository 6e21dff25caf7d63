"""What is told before a run of the packages that differ from where it worked."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ipykernel
import pytest

from jupyterlab_convect.pipeline.plan import Plan, Step
from jupyterlab_convect.runner import environment
from jupyterlab_convect.runner.step import StepSpec
from jupyterlab_convect.runs import events as e
from jupyterlab_convect.runs.drift import drift
from jupyterlab_convect.runs.index import Index
from jupyterlab_convect.runs.model import Request, Run, new_id
from jupyterlab_convect.runs.store import Store

Write = Callable[..., Path]


class Place:
    """A notebook that imports ipykernel, and earlier runs of it and of others."""

    def __init__(self, folder: Path, write_notebook: Write) -> None:
        self.root = folder
        write_notebook(folder / "n.ipynb", "import ipykernel")
        (folder / "runs").mkdir()
        self.store = Store(folder / "runs", Index(folder / "index.sqlite"))
        interpreter = environment.interpreter_of(
            StepSpec("n", "script", folder, source=Path("n.py")), None, {}
        )
        assert interpreter is not None
        found = environment.look(interpreter)
        assert found is not None
        self.here = {name: found[name] for name in environment.CONTENT}

    def run(self, runtime: str, image: str | None = None, path: str = "n.ipynb") -> Run:
        step = Step("n", "notebook", "n", path=path, image=image)
        request = Request(path=path, root=str(self.root), runtime=runtime)
        plan = Plan("n", (step,), path=path)
        return Run(new_id(), "n", time.time(), runtime, plan, request)

    def worked(self, run: Run, **packages: str | None) -> None:
        """It succeeded where these packages were other than here; None: they were missing."""
        changed = {**self.here["packages"], **packages}
        kept = {name: version for name, version in changed.items() if version is not None}
        digest = environment.keep(
            self.store.folder / environment.FOLDER, {**self.here, "packages": kept}
        )
        self.store.create(run)
        self.store.append(
            run.id,
            e.AttemptStart(1.0, "n", 1),
            e.AttemptEnd(2.0, "n", 1, "succeeded"),
            e.StepEnd(2.0, "n", "succeeded"),
            e.RunEnd(2.0, "succeeded"),
        )
        folder = self.store.attempt_folder(run.id, "n", 1)
        folder.mkdir(parents=True)
        record = {"digest": digest, "host": {"name": "m"}}
        (folder / environment.FILE).write_text(json.dumps(record))

    def told(self, run: Run) -> list[tuple[str, str, str, str | None]]:
        found = drift(self.store, run)
        return [(each.severity, each.code, each.message, each.hint) for each in found]


@pytest.fixture
def place(tmp_path: Path, write_notebook: Write) -> Iterator[Place]:
    made = Place(tmp_path, write_notebook)
    yield made
    made.store.close()


VERSION = ipykernel.__version__


def test_nothing_is_told_that_is_not_known(place: Place) -> None:
    assert place.told(place.run("local")) == []
    assert place.told(place.run("kubernetes", "i:1")) == []
    assert not (place.store.folder / environment.FOLDER).exists(), "nothing was looked at"
    place.worked(place.run("local"))
    assert place.told(place.run("local")) == []


@pytest.mark.parametrize(
    ("packages", "severity", "message", "hint"),
    [
        (
            {"ipykernel": "0.1", "other": "1"},
            "warning",
            f"ipykernel is {VERSION} here; the last successful run used 0.1.",
            "There is 1 more difference.",
        ),
        (
            {"ipykernel": None},
            "warning",
            f"ipykernel is {VERSION} here; the last successful run did not have it.",
            None,
        ),
        (
            {"a": "1", "b": "1", "c": "1"},
            "info",
            "a is not installed here; the last successful run used 1.",
            "There are 2 more differences.",
        ),
    ],
    ids=["imported", "new", "not imported"],
)
def test_the_last_successful_run(
    place: Place, packages: Any, severity: str, message: str, hint: str | None
) -> None:
    place.worked(place.run("local"), **packages)
    told = place.told(place.run("local"))
    assert told == [(severity, "differs-from-last-run", message, hint)]


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("0.1", f"The image i:1 had ipykernel 0.1; here it is {VERSION}."),
        (None, f"The image i:1 did not have ipykernel; here it is {VERSION}."),
    ],
)
@pytest.mark.parametrize("path", ["n.ipynb", "another.ipynb"])
def test_what_the_image_had_when_anything_ran_in_it(
    place: Place, path: str, version: str | None, message: str
) -> None:
    place.worked(place.run("kubernetes", "i:1", path), ipykernel=version, unrelated="1")
    told = place.told(place.run("kubernetes", "i:1"))
    assert told == [("warning", "differs-from-image", message, None)]
    assert place.told(place.run("kubernetes", "i:2")) == [], "another image"


def test_an_image_has_many_other_packages_which_do_not_matter(place: Place) -> None:
    place.worked(place.run("kubernetes", "i:1"), unrelated="1")
    assert place.told(place.run("kubernetes", "i:1")) == []


def test_another_python_matters_whatever_is_imported(place: Place) -> None:
    place.here["python"] = "3.2.1"
    place.worked(place.run("kubernetes", "i:1"))
    here = sys.version.split()[0]
    (told,) = place.told(place.run("kubernetes", "i:1"))
    assert told[2] == f"The image i:1 had Python 3.2.1; here it is {here}."
