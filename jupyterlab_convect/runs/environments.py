"""In which environments a run was executed, and how two of them differ."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..pipeline.plan import Json, Step
from ..runner import environment
from ..runner.environment import Environment
from ..runner.step import StepSpec
from ..safe_files import read_regular
from . import views
from .model import ENDED
from .retention import created_of

if TYPE_CHECKING:
    from .store import Record, Store

UNUSED = 86400.0
"""Seconds for which an environment is kept that no run refers to: one may be about to."""


@dataclass(frozen=True, slots=True)
class EnvironmentChange:
    """What differs between two environments; None where it is missing."""

    name: str
    before: str | None
    after: str | None


def differences(before: Environment, after: Environment) -> list[EnvironmentChange]:
    """Python and its platform first, then packages by name."""
    facts = [(name, before.get(name), after.get(name)) for name in environment.CONTENT[:-1]]
    old, new = before["packages"], after["packages"]
    facts += [(name, old.get(name), new.get(name)) for name in sorted({*old, *new})]
    return [EnvironmentChange(name, was, now) for name, was, now in facts if was != now]


def compare(before: dict[str, Json], after: dict[str, Json]) -> dict[str, list[EnvironmentChange]]:
    """How the environments of two runs differ, as `describe` gives them, step by step.

    Of two runs with one step each these are compared, whatever they are called. A step
    whose environment is not known in both runs is left out.
    """
    ours, theirs = before["steps"], after["steps"]
    pairs = [(name, name) for name in ours if name in theirs]
    if not pairs and len(ours) == len(theirs) == 1:
        pairs = [(*ours, *theirs)]
    found = {}
    for one, other in pairs:
        was = before["environments"].get(ours[one]["digest"])
        now = after["environments"].get(theirs[other]["digest"])
        if was is not None and now is not None:
            images = EnvironmentChange("image", ours[one]["image"], theirs[other]["image"])
            changed = [images] if images.before != images.after else []
            found[one] = [*changed, *differences(was, now)]
    return found


def view(store: Store, record: Record) -> dict[str, Json]:
    """`RunView` of docs/rest.md."""
    return {**views.view(*record), "environments": summaries(store, record)}


def summaries(store: Store, record: Record) -> list[dict[str, Json]]:
    """The environments of a run, each with its steps; those it has nothing of are left out."""
    found: dict[str, dict[str, Json]] = {}
    for step_id, folder in _ended(store, record):
        try:
            recorded = _recorded(folder)
        except (OSError, ValueError):
            continue
        short = _short(store.folder, recorded, folder)
        found.setdefault(json.dumps(short), {**short, "steps": []})["steps"].append(step_id)
    return list(found.values())


def describe(store: Store, record: Record) -> dict[str, Json]:
    """`RunEnvironment` of docs/rest.md: all that is known, each environment once."""
    steps: dict[str, Json] = {}
    environments: dict[str, Json] = {}
    for step_id, folder in _ended(store, record):
        with contextlib.suppress(OSError, ValueError):
            recorded = _recorded(folder)
            steps[step_id] = {**recorded, **_cluster(folder)}
            digest = recorded["digest"]
            if digest and digest not in environments and (kept := read(store.folder, digest)):
                environments[digest] = kept
    return {"git": _git(store, record), "steps": steps, "environments": environments}


def _git(store: Store, record: Record) -> dict[str, Json] | None:
    """The commit, and how the files differed from it: None when they did not, or not yet known."""
    git, difference = record.run.git, None
    if git is None:
        return None
    with contextlib.suppress(OSError, ValueError):
        if git.difference is not None:
            path = environment.path_of(store.folder / environment.FOLDER, git.difference)
            difference = json.loads(read_regular(path))
    return {**asdict(git), "difference": difference}


def of_step(store: Store, run_id: str, step_id: str, attempt: int) -> Environment | None:
    """The environment in which an attempt was executed, if it is known."""
    try:
        recorded = _recorded(store.attempt_folder(run_id, step_id, attempt))
    except (OSError, ValueError):
        return None
    return read(store.folder, recorded["digest"]) if recorded["digest"] else None


@functools.lru_cache(maxsize=256)
def _read(folder: Path, digest: str) -> Environment:
    kept = environment.read(folder, digest)
    if kept is None:  # Not remembered: it may come.
        raise FileNotFoundError(digest)
    return kept


def digest_here(store: Store, root: Path, step: Step) -> str | None:
    """The digest of the environment that a step would have on this machine now, if it is known.

    StepFailed when its kernel is not installed, or its source cannot be read.
    """
    source = root / step.path if step.path else None
    kernel = environment.kernel_of(step.kind, source, step.kernel)
    spec = StepSpec(step.id, step.kind, root, source=source, command=step.command)
    interpreter = environment.interpreter_of(spec, kernel, {**os.environ, **step.env})
    if interpreter is None:
        return None
    return environment.current(store.folder / environment.FOLDER, interpreter)


def read(runs: Path, digest: str) -> Environment | None:
    with contextlib.suppress(OSError):
        return _read(runs / environment.FOLDER, digest)
    return None


def remove_unused(store: Store, now: float | None = None) -> list[str]:
    """Delete the environments that no run refers to any more; their file names.

    Whoever refers to one touches it, so that only what is older than every run is looked for.
    """
    folder = store.folder / environment.FOLDER
    oldest = min((created_of(run_id) for run_id in store.run_ids()), default=None)
    limit = min(now or time.time(), oldest or now or time.time()) - UNUSED
    doomed = {file.name for file in folder.glob("*.json") if _changed(file) < limit}
    for run_id in store.run_ids() if doomed else ():
        doomed -= {f"{digest.removeprefix('sha256:')}.json" for digest in _digests(store, run_id)}
    for name in sorted(doomed):
        (folder / name).unlink(missing_ok=True)
    for file in folder.glob("interpreters/*.json"):
        if _changed(file) < limit:  # It only saves a look.
            file.unlink(missing_ok=True)
    return sorted(doomed)


def _digests(store: Store, run_id: str) -> Iterator[str]:
    """Everything in the folder of environments that a run refers to."""
    folder = store.run_folder(run_id)
    for file in folder.glob(f"steps/*/*/{environment.FILE}"):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            yield str(json.loads(read_regular(file)).get("digest"))
    with contextlib.suppress(OSError, ValueError, AttributeError):
        git = json.loads(read_regular(folder / "run.json")).get("git") or {}
        yield str(git.get("difference"))


def _ended(store: Store, record: Record) -> Iterator[tuple[str, Path]]:
    """The steps that have a result, and where it lies."""
    run, state = record
    for step in views.shown_steps(state):  # The items of a loop are executed alike.
        folder = store.folder_of(run.id, step) if step.state in ENDED else None
        if folder is not None:
            yield step.id, folder


@functools.lru_cache(maxsize=8192)
def _recorded(folder: Path) -> dict[str, Json]:
    """What the runner wrote down; OSError or ValueError when there is nothing, which may come."""
    data = read_regular(folder / environment.FILE)
    found = json.loads(data)
    if isinstance(found, dict) and "content" in found:
        # The runner could not write where environments are kept, as in a pod of another user.
        found = json.loads(environment.settle(folder, data))
    if not isinstance(found, dict) or not isinstance(found.get("host"), dict):
        raise ValueError(f"{folder} has no record of an environment")
    names = ("digest", "interpreter", "kernel", "language")
    return {
        **{name: found[name] if isinstance(found.get(name), str) else None for name in names},
        "host": found["host"],
    }


def _cluster(folder: Path) -> dict[str, Json]:
    """The image as the node resolved it, and the node, where a pod executed it."""
    try:
        record = json.loads(read_regular(folder / "cluster.json"))
        return {"image": record.get("image"), "node": record.get("node")}
    except (OSError, ValueError, AttributeError):
        return {"image": None, "node": None}


def _short(runs: Path, recorded: dict[str, Json], folder: Path) -> dict[str, Json]:
    kept = read(runs, recorded["digest"]) if recorded["digest"] else None
    cluster = _cluster(folder)
    return {
        "digest": recorded["digest"],
        "python": kept and kept["python"],
        "packages": kept and len(kept["packages"]),
        "language": recorded["language"],
        "host": cluster["node"] or recorded["host"].get("name"),
        "image": cluster["image"],
    }


def _changed(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return time.time()
