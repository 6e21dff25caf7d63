"""The project that a run works on: where it begins, and what each step sees of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from ..filesystems import file_system, private_folder
from ..pipeline.plan import Json, Plan, Step, digest_of
from ..pipeline.problems import Problem
from ..runner.layers import Layer, Made
from .model import Run
from .scan import holds_projects
from .snapshots import Snapshot, Snapshots

MARKERS = (".git", ".convect", "pyproject.toml")
"""What lies at the top of a project."""
IMPORTED = frozenset((".py", ".pyi", ".r", ".jl", ".sh", ".sql"))
"""Suffixes of code that other code makes use of."""
LAYERED = frozenset(("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "tmpfs", "bcachefs"))
"""File systems that can hold what is written in an overlay."""
MOST_OVERLAPS = 20
"""Files that are named because several steps made them differently."""
OWN_FOLDER = ("isolated", "shared")
"""Working folders without a view."""


def project_root(folders: Iterable[Path], root: Path, home: Path) -> Path:
    """The folder of which a run has its own version, given those that it works in.

    The nearest one above with a marker; else the root folder, for files beside the working
    folder; where that is the home folder, the first folder below it; else one level up. Never
    the home folder itself or one that belongs to the system, unless a step works there.
    """
    common = Path(os.path.commonpath([str(folder) for folder in folders]))
    for folder in (common, *common.parents):
        if folder == home or len(folder.parts) < 3:
            break
        if any(os.path.lexists(folder / marker) for marker in MARKERS):
            return folder
    if common != root and common.is_relative_to(root) and not holds_projects(root, home):
        return root
    for top in (root, home):
        if common != top and common.is_relative_to(top) and len(top.parts) > 1:
            return top / common.relative_to(top).parts[0]
    parent = common.parent
    return common if holds_projects(parent, home) or len(parent.parts) < 3 else parent


def surroundings(project: Path, home: Path) -> Path | None:
    """The folder that holds a project and of which runs have a version of their own too: the
    home folder, unless something says that the project ends where it does."""
    is_marked = any(os.path.lexists(project / marker) for marker in MARKERS)
    return None if project == home or is_marked or not project.is_relative_to(home) else home


def in_view(step: Step) -> bool:
    """Whether a step works in its own version of the project."""
    return step.working_folder not in OWN_FOLDER


def working_folder(plan: Plan, step: Step, root: Path, attempt_folder: Path) -> Path:
    """Where the step is executed."""
    if step.working_folder == "isolated":
        return attempt_folder / "work"
    if step.working_folder not in ("source", "shared"):
        return root / step.working_folder
    return (root / (step.path or plan.path or "x")).parent


def folders_of(plan: Plan, root: Path) -> list[Path]:
    """The folders of the project that the steps of a plan work in, and those of their sources."""
    steps = [step for step in plan.steps if in_view(step)]
    working = [working_folder(plan, step, root, root) for step in steps]
    return working + [(root / step.path).parent for step in steps if step.path]


def told_of_sharing(plan: Plan) -> list[Problem]:
    """Which steps work in the project folder itself, because the pipeline says so."""
    shared = [step.name for step in plan.steps if step.working_folder == "shared"]
    if not shared:
        return []
    sentence = "Works in the folder itself, together with other runs."
    if len(shared) < len(plan.steps):
        sentence = f"Works in the folder itself, together with other runs: {', '.join(shared)}."
    return [Problem("info", "view", sentence)]


def take_snapshot(snapshots: Snapshots, plan: Plan, root: Path) -> str | None:
    """Keep the sources of a plan, and the project that its steps will see; its digest."""
    folders = folders_of(plan, root)
    sources = {root / part.path: part.digest for part in plan.parts if part.path}
    placed = {
        root / file.path: file.digest
        for step in plan.steps
        if not in_view(step)
        for file in step.dependencies
    }
    if not folders:
        snapshots.keep_files((sources | placed).items())
        return None
    home = Path.home()
    project = project_root(folders, root, home)
    inside = [path for path in sources if path.is_relative_to(project)]
    outside = {path: digest for path, digest in sources.items() if path not in inside}
    snapshots.keep_files((outside | placed).items())
    named = (path.relative_to(project).as_posix() for path in inside)
    snapshot = snapshots.take(project, named, surroundings(project, home))
    snapshots.layers(snapshot)  # Links what was not copied, before somebody replaces it.
    return snapshot.digest


def is_kept(snapshots: Snapshots, plan: Plan) -> bool:
    """Whether what the steps of a plan are made of was kept as the plan knows it."""
    sources = [part.digest for part in plan.parts if part.digest]
    placed = (step for step in plan.steps if not in_view(step))
    sources += [file.digest for step in placed for file in step.dependencies]
    return all(map(snapshots.has, sources))


def describe_view(
    snapshots: Snapshots,
    snapshot: Snapshot,
    made: Sequence[tuple[Path, Sequence[Made]]],
    attempt_folder: Path,
) -> dict[str, Json]:
    """The `view` of `step.json`: `made` is what earlier steps left, the latest first."""
    pinned, is_open = snapshots.layers(snapshot)
    earlier = [
        Layer(folder, tuple(each.path for each in files if each.change == "deleted"))
        for folder, files in made
    ]
    return {
        "root": snapshot.root,
        "layers": [_layer(layer) for layer in (*earlier, *pinned)],
        "is_open": is_open,
        "live": list(snapshot.live),
        "private": list(snapshot.private),
        "scratch": [str(path) for path in scratch_folders(attempt_folder)],
        "writable": [str(attempt_folder)],
        "protected": [str(snapshots.runs)],
        "turns": str(turns_folder(snapshots)),
        "outside": [
            {"name": name, "path": path, "is_link": name in snapshot.files}
            for name, path in snapshot.outside.items()
            if not any(each.path == name for _, files in made for each in files)
        ],
    }


def told_of_links(snapshot: Snapshot) -> list[str]:
    """What a step must know about links that nobody looked at."""
    if snapshot.searched:
        return []
    return [
        f"{snapshot.root} has too many files to look for links that lead out of it. What a step "
        "writes through one is shared with other runs."
    ]


def turns_folder(snapshots: Snapshots) -> Path:
    """Where runs say whose turn it is in a folder that is too large for views."""
    return snapshots.runs / "turns"


def modules_of(snapshots: Snapshots, snapshot: Snapshot, run: Run) -> str:
    """A digest of the code in a project that its steps can import.

    The source of a step is no part of it, unless some code imports it: else an edit of one
    step would touch all the others.
    """
    root = Path(run.request.root)
    digests = {
        path: digest
        for path, (_, digest) in snapshot.files.items()
        if digest is not None and PurePosixPath(path).suffix.lower() in IMPORTED
    }
    own = {
        path: PurePosixPath(path).stem
        for path in digests
        if any(
            step.path and root / step.path == Path(snapshot.root, path) for step in run.plan.steps
        )
    }
    kept = {*digests.values(), *(step.digest for step in run.plan.steps if step.digest)}
    code = b"\n".join(_content(snapshots.object(digest)) for digest in sorted(kept)) if own else b""
    alone = {
        path
        for path, stem in own.items()
        if not re.search(rb"(import|from|source)\b[^\n]*\b" + re.escape(stem).encode(), code)
    }
    return digest_of({path: digest for path, digest in digests.items() if path not in alone})


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def scratch_folders(attempt_folder: Path) -> list[Path]:
    """Where the private layer of a step may lie: beside its results where that disk can hold
    one, so that they need not be copied; else on a disk of this machine."""
    beside = attempt_folder / ".view"
    name = "-".join(attempt_folder.parts[-4:]).replace(" ", "_")
    local = private_folder("convect-views") / name
    mounts = Path("/proc/self/mounts")
    if not mounts.exists() or file_system(beside, mounts.read_text()) in LAYERED:
        return [beside, local]
    return [local, beside]


def _layer(layer: Layer) -> dict[str, Any]:
    described: dict[str, Any] = {"folder": str(layer.folder)}
    if layer.deleted:
        described["deleted"] = list(layer.deleted)
    if layer.linked is not None:
        described["linked"] = str(layer.linked)
    return described


def overlaps(
    made: Sequence[tuple[str, Sequence[Made]]], after: Mapping[str, frozenset[str]]
) -> list[str]:
    """What steps that do not wait for each other have made differently; the first one counts.

    `after` has all that each step waits for, however far up.
    """
    found: dict[str, tuple[str, str | None]] = {}
    sentences: list[str] = []
    for step, files in made:
        for each in files:
            known = found.setdefault(each.path, (step, each.digest))
            other, digest = known
            if len(sentences) >= MOST_OVERLAPS:
                return sentences
            if digest != each.digest and step not in after[other] and other not in after[step]:
                sentences.append(
                    f"{each.path} was created by “{step}” and by “{other}”, which do not wait "
                    f"for each other; the one from “{other}” is used."
                )
    return sentences
