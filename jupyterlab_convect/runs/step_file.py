"""What an attempt is told: `step.json`."""

from __future__ import annotations

import contextlib
import posixpath
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from secrets import token_hex
from typing import cast

from ..pipeline.plan import Json, Step, to_json
from ..runtimes.base import Attempt
from ..safe_files import make_folder
from .attempts import FileFact
from .json_files import write_json
from .model import Run, RunState
from .project import describe_view, in_view, told_of_links, working_folder
from .reuse import RunResults
from .snapshots import Snapshot, Snapshots

SOURCE = "source.txt"


def write_step(
    attempt: Attempt,
    run: Run,
    state: RunState,
    results: RunResults,
    snapshots: Snapshots,
    snapshot: Snapshot | None,
    expected: float | None,
    *,
    for_all: bool = False,
) -> None:
    """Make the folder of an attempt, whose step is bound, and write down what it is told.

    `for_all`: its view of the project is that of all steps, which go with it to the runtime.
    """
    step = attempt.step
    upstream = results.upstream(step.id, state)
    make_folder(attempt.folder)
    content = describe(run, attempt, upstream, expected, snapshots)
    is_component = step.kind == "component"
    if snapshot is not None and (is_component or in_view(step)):
        made = results.made(None if for_all else step.id, state)
        layers = [(folder, files) for _, folder, files in made]
        view = describe_view(snapshots, snapshot, layers, attempt.folder)
        content["notices"] = told_of_links(snapshot) + results.overlaps(made, state)
        # A component has a folder of its own, and takes single files from the project.
        (content["component"] if is_component else content)["view"] = view
    _keep_source(snapshots, step, attempt.folder)
    write_json(attempt.folder / "step.json", content)


def describe(
    run: Run,
    attempt: Attempt,
    upstream: Mapping[str, tuple[Step, Path, list[FileFact]]],
    expected: float | None,
    snapshots: Snapshots,
) -> dict[str, Json]:
    """The content of `step.json` for an attempt, whose step is bound.

    `upstream` has each result it builds on: the step, the folder of its attempt, its files.
    Where the step has a view of the project, that is still missing.
    """
    step = attempt.step
    source = None if step.path is None else attempt.root / step.path
    described: dict[str, Json] = {
        "run": {"id": run.id, "name": run.name},
        "step": step.id,
        "attempt": attempt.number,
        "kind": step.kind,
        "source": None if source is None else str(source),
        "copy": _copy(snapshots, step),
        "digest": step.digest,
        "folder": str(working_folder(run.plan, step, attempt.root, attempt.folder)),
        "inputs": [
            {"from": str(origin), "to": target}
            for target, origin in _inputs(run, step, upstream, snapshots).items()
        ],
        "kernel": step.kernel,
        "parameters": dict(step.parameters),
        "computed": list(step.computed),
        "command": list(step.command),
        "env": dict(step.env),
        "outputs": list(step.outputs),
        "metrics": dict(step.metrics),
        "timeout": step.timeout,
        "expected": expected,
    }
    if step.distributed is not None:
        described["distributed"] = {
            **cast("dict[str, Json]", to_json(step.distributed)),
            "key": token_hex(16),
        }
    return described | _component(attempt) if step.kind == "component" else described


def _copy(snapshots: Snapshots, step: Step) -> str | None:
    """Where the source is kept as it was at submit."""
    kept = None if step.digest is None else snapshots.object(step.digest)
    return str(kept) if kept is not None and kept.exists() else None


def _keep_source(snapshots: Snapshots, step: Step, folder: Path) -> None:
    """Show a script as it is executed: unlike a notebook, it leaves no copy of itself."""
    if step.kind == "script" and step.digest is not None:
        with contextlib.suppress(OSError):  # whoever runs it says what is wrong with it
            shutil.copyfile(snapshots.object(step.digest), folder / SOURCE)


def _component(attempt: Attempt) -> dict[str, Json]:
    """A component renders its own command, from what it is given, when it starts."""
    step = attempt.step
    definition = attempt.plan.components[step.component or ""]
    given = {
        "definition": definition,
        "arguments": dict(step.parameters),
        "image": step.image,
        "secrets": [secret.env for secret in step.secrets],
        "root": str(attempt.root),
        "runs": str(attempt.runs),
    }
    command = [sys.executable, "-m", "jupyterlab_convect.catalog.execute", str(attempt.folder)]
    return {
        "parameters": {},
        "command": command,
        "outputs": [*step.outputs, *(["outputs"] if definition.get("outputs") else [])],
        "component": given,
    }


def _inputs(
    run: Run,
    step: Step,
    upstream: Mapping[str, tuple[Step, Path, list[FileFact]]],
    snapshots: Snapshots,
) -> dict[str, Path]:
    """What has to be put into the working folder, because it is not there by itself."""
    isolated = step.working_folder == "isolated" and step.kind != "component"
    placed: dict[str, Path] = {}
    if isolated:
        root = Path(run.request.root)
        home = posixpath.dirname(step.path or run.plan.path or "")
        for file in step.dependencies:
            relative = posixpath.relpath(file.path, home or ".")
            target = file.path if relative.startswith("..") else relative
            kept = snapshots.object(file.digest)
            placed[target] = kept if kept.exists() else root / file.path
    for other, folder, files in upstream.values():
        # What a component leaves is handed on by its path, not by its place in a folder.
        if other.kind != "component" and (isolated or other.working_folder == "isolated"):
            for fact in files:
                placed[str(fact["path"])] = folder / "files" / str(fact["path"])
    return placed
