"""What is known of the environments of runs, and how they are compared and thrown away."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_convect.runner import environment
from jupyterlab_convect.runs import environments
from jupyterlab_convect.runs import events as e
from jupyterlab_convect.runs.environments import EnvironmentChange
from jupyterlab_convect.runs.model import Git, Run
from jupyterlab_convect.runs.store import Store

BASE = {"python": "3.12.3", "implementation": "CPython", "platform": "linux-x86_64"}


def with_packages(python: str = "3.12.3", **packages: str) -> dict[str, Any]:
    return {**BASE, "python": python, "packages": packages}


def ended(store: Store, run: Run, content: dict[str, Any] | None, step: str = "a") -> Path:
    """A run whose step has been executed in this environment."""
    if not store.run_folder(run.id).exists():
        store.create(run)
    store.append(run.id, e.AttemptStart(1.0, step, 1), e.AttemptEnd(2.0, step, 1, "succeeded"))
    store.append(run.id, e.StepEnd(2.0, step, "succeeded"), e.RunEnd(2.0, "succeeded"))
    folder = store.attempt_folder(run.id, step, 1)
    folder.mkdir(parents=True)
    if content is not None:
        digest = environment.keep(store.folder / environment.FOLDER, content)
        recorded = {"digest": digest, "interpreter": "/p", "kernel": "k", "language": None}
        recorded["host"] = {"name": "m1", "cpus": 2}
        (folder / environment.FILE).write_text(json.dumps(recorded))
    return folder


def described(store: Store, run: Run) -> Any:
    return environments.describe(store, store.read(run.id))


def test_what_differs_is_named_with_both_versions():
    before = with_packages(pandas="2.1.0", numpy="2.0", old="1")
    after = with_packages("3.13.0", pandas="2.2.3", numpy="2.0", new="3")
    assert environments.differences(before, after) == [
        EnvironmentChange("python", "3.12.3", "3.13.0"),
        EnvironmentChange("new", None, "3"),
        EnvironmentChange("old", "1", None),
        EnvironmentChange("pandas", "2.1.0", "2.2.3"),
    ]
    assert environments.differences(before, before) == []


def test_a_run_says_in_which_environments_its_steps_were(store, make_run, step):
    run = make_run(step("a"), step("b"), step("c"), step("d"))
    for name, content in (("a", with_packages(x="1")), ("b", with_packages(x="1")),
                          ("c", with_packages("3.13.0")), ("d", None)):  # fmt: skip
        folder = ended(store, run, content, name)
    in_cluster = store.attempt_folder(run.id, "c", 1) / "cluster.json"
    in_cluster.write_text(json.dumps({"image": "i@sha256:1", "node": "n7"}))
    one, other = environments.view(store, store.read(run.id))["environments"]
    assert (one["steps"], one["python"], one["packages"]) == (["a", "b"], "3.12.3", 1)
    assert (one["host"], one["image"]) == ("m1", None)
    assert (other["steps"], other["host"], other["image"]) == (["c"], "n7", "i@sha256:1")
    found = described(store, run)
    assert list(found["steps"]) == ["a", "b", "c"]
    assert set(found["environments"]) == {one["digest"], other["digest"]}
    assert found["environments"][one["digest"]]["packages"] == {"x": "1"}
    # The record of a new environment comes after the end of the step.
    (folder / environment.FILE).write_text(json.dumps({"digest": None, "host": {"name": "m2"}}))
    assert described(store, run)["steps"]["d"]["host"] == {"name": "m2"}


def test_what_the_runner_could_not_keep_is_kept_when_it_is_read(store, make_run):
    run = make_run()
    folder = ended(store, run, None)
    content = with_packages(x="1")
    found = {"digest": None, "host": {"name": "m1"}, "content": content}
    (folder / environment.FILE).write_text(json.dumps(found))
    (short,) = environments.view(store, store.read(run.id))["environments"]
    assert environment.read(store.folder / environment.FOLDER, short["digest"]) == content


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"host": 1}', '{"digest": "../x"}'])
def test_a_damaged_record_is_none(store, make_run, content):
    run = make_run()
    folder = ended(store, run, None)
    (folder / environment.FILE).write_text(content)
    assert environments.view(store, store.read(run.id))["environments"] == []
    assert described(store, run)["steps"] == {}


def test_runs_are_compared_step_by_step(store, make_run, step):
    first, second = make_run(step("a"), step("b")), make_run(step("a"), step("b"))
    for name in ("a", "b"):
        ended(store, first, with_packages(pandas="1"), name)
    ended(store, second, with_packages(pandas="2"), "a")
    ended(store, second, with_packages(pandas="1"), "b")
    found = environments.compare(described(store, first), described(store, second))
    assert found == {"a": [EnvironmentChange("pandas", "1", "2")], "b": []}
    alone = make_run(step("z"))
    other = make_run(step("y"))
    ended(store, alone, with_packages(), "z")
    ended(store, other, with_packages("3.10.0"), "y")
    found = environments.compare(described(store, alone), described(store, other))
    assert found == {"z": [EnvironmentChange("python", "3.12.3", "3.10.0")]}
    assert environments.compare(described(store, first), described(store, alone)) == {}


def test_only_what_no_run_refers_to_is_thrown_away(store, make_run):
    folder = store.folder / environment.FOLDER
    git = Git("c" * 40, dirty=True, difference="sha256:" + "d" * 64)
    kept = replace(make_run(), git=git)
    ended(store, kept, with_packages(kept="1"))
    gone = make_run()
    ended(store, gone, with_packages(gone="1"))
    environment.keep(folder, with_packages(fresh="1"))
    (folder / f"{'d' * 64}.json").write_text("{}")
    fresh = {file.name for file in folder.glob("*.json")}
    store.delete(gone.id)
    store.prune(keep_runs=10)
    assert {file.name for file in folder.glob("*.json")} == fresh, "it may be about to be used"
    for file in folder.glob("*.json"):
        long_ago = time.time() - 10 * environments.UNUSED
        os.utime(file, (long_ago, long_ago))
    store.prune(keep_runs=10)
    left = {file.name for file in folder.glob("*.json")}
    assert len(left) == 2
    assert f"{'d' * 64}.json" in left
    (recorded,) = described(store, kept)["environments"].values()
    assert recorded["packages"] == {"kept": "1"}
    store.delete(kept.id)
    store.prune(keep_runs=10)
    assert not list(folder.glob("*.json"))
