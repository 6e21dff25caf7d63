"""From a request to a run that can be submitted: examined once, planned, its sources pinned."""

from __future__ import annotations

import functools
import getpass
import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import ConvectError
from .pipeline.document import parse, read_file
from .pipeline.files import FileCache, PinnedFiles
from .pipeline.plan import Plan
from .pipeline.problems import Problem
from .pipeline.resolve import build_plan, document_of_file, plan_of_file, raise_first_error
from .pipeline.validate import validate, validate_settings
from .pools import Threads
from .runs.content_store import gone
from .runs.git import git_of, keep_difference
from .runs.model import Git, Request, Run, SweepSources, new_id
from .runs.project import is_kept, take_snapshot
from .runs.store import Store

if TYPE_CHECKING:
    from .pipeline.types import Document

LARGEST_PARAMETERS = 1 << 20
"""Bytes of the parameters of a run, and of those of each step."""
SAME_TIME = 2.0
"""Seconds within which a working copy is taken not to change."""
KEPT_SOURCES = 8
"""Sweeps whose sources are kept in memory."""

Tell = Callable[[Problem], None]


@dataclass(frozen=True, slots=True)
class Examined:
    """What a request asks for, and all that is wrong or odd about it, errors first."""

    document: Document
    is_file: bool
    """It is the pipeline of one node that a single notebook or script stands for."""
    problems: list[Problem]

    @property
    def errors(self) -> list[Problem]:
        return [problem for problem in self.problems if problem.severity == "error"]


def examine(request: Request, files: FileCache) -> Examined:
    """Read and validate what is asked. A ConvectError when there is nothing to validate."""
    document = pipeline_of(request)
    is_file = document is None
    if document is not None:
        path, given = request.path, request.parameters
    elif request.path is not None:
        document, path, given = document_of_file(request.path, request.parameters, files), None, {}
    else:
        raise ConvectError("Specify what to run: a file or a pipeline.")
    problems = validate(document, path=path, parameters=given, files=files)
    if is_file:
        problems = [_of_file(problem) for problem in problems]
    if not any(problem.severity == "error" for problem in problems):
        problems += validate_settings(request.settings, document, path=path)
    return Examined(document, is_file, sorted(problems, key=lambda each: each.severity != "error"))


def plan(request: Request, files: FileCache, tell: Tell = lambda _: None) -> Plan:
    """The plan of what was asked, or the first error; `tell` hears what is odd. Reads files."""
    examined = examine(request, files)
    raise_first_error(examined.errors)
    for problem in examined.problems:
        tell(problem)
    return plan_of(examined, request, files)


def plan_of(examined: Examined, request: Request, files: FileCache) -> Plan:
    """The plan of what was examined and has no errors."""
    document, settings = examined.document, request.settings
    if examined.is_file:
        return plan_of_file(document, build_plan(document, None, {}, settings, files))
    found = build_plan(document, request.path, request.parameters, settings, files)
    if not found.components:
        return found
    from .catalog.expand import expand

    return expand(found)


def pipeline_of(request: Request) -> Document | None:
    """The pipeline that is asked for, if it is not a single file."""
    if request.document is None and request.path is not None:
        is_pipeline = request.path.endswith(".pipeline")
        return read_pipeline(Path(request.root, request.path)) if is_pipeline else None
    document: Document | None = request.document
    return document


def read_pipeline(path: Path) -> Document:
    return parse(read_file(path))


class Planner:
    """Makes runs, each from the files of one moment; for a sweep that is when it was submitted."""

    def __init__(self, store: Store, sources_of: Callable[[str], SweepSources | None]) -> None:
        """`sources_of` looks up what the runs of a sweep are made from, by its id."""
        self.store = store
        self._sources_of_sweep = sources_of
        self._commits: dict[tuple[Path, tuple[Path, ...]], tuple[float, Git | None]] = {}
        self._of_sweeps: dict[str, tuple[SweepSources, FileCache]] = {}
        self._remembering = threading.Lock()

    def make(
        self,
        request: Request,
        user: str | None = None,
        tell: Tell = lambda _: None,
        sources: SweepSources | None = None,
    ) -> Run:
        """A run that can be submitted; `tell` hears what is odd about it. Reads files.

        It is made from `sources` if they are given.
        """
        pinned = self._sources_of(request)
        if sources is not None:
            pinned = sources, self._files_of(request, sources)
        if pinned is not None:
            found, snapshot, git = self._plan_from(request, *pinned, tell)
        else:
            found, snapshot = self._pinned(request, tell)
            git = self._git(request, found)
        _check_size(request, found)
        return Run(
            id=new_id(),
            name=request.name or found.name,
            created=time.time(),
            runtime=request.runtime,
            plan=found,
            request=request,
            user=user or system_user(),
            git=git,
            snapshot=snapshot,
        )

    def take_sources(self, request: Request) -> tuple[SweepSources, FileCache]:
        """The files that a request is made from, as they are now, for all runs of its sweep."""
        document = pipeline_of(request)
        found, snapshot, files = self._pin(replace(request, document=document))
        if document is not None and request.path is not None and request.document is None:
            files.digest(request.path)  # by which a change of it is noticed
        sources = SweepSources(files.facts(), document, snapshot, self._git(request, found))
        return self._remember(str(request.sweep), sources, files)

    def use_sources(
        self, request: Request, sources: SweepSources
    ) -> tuple[SweepSources, FileCache]:
        """Make all runs of a sweep from files that were kept earlier."""
        return self._remember(str(request.sweep), sources, self._files_of(request, sources))

    def close(self) -> None:
        """Wait for what is still being written."""
        if "_behind" in vars(self):
            self._behind.shutdown()

    def _pinned(self, request: Request, tell: Tell) -> tuple[Plan, str | None]:
        """The plan and the snapshot of the project that it is of, at one moment."""
        if request.version is not None:
            run, _ = self.store.read(request.version)
            self._require_kept(run.plan, run.snapshot)
            return run.plan, run.snapshot
        found, snapshot, _ = self._pin(request, tell)
        return found, snapshot

    def _pin(
        self, request: Request, tell: Tell = lambda _: None
    ) -> tuple[Plan, str | None, FileCache]:
        """Keep what a plan of today is made from; with what was looked up for it."""
        for _ in range(5):
            files = FileCache(Path(request.root))
            odd: list[Problem] = []
            found = plan(request, files, odd.append)
            snapshot = take_snapshot(self.store.snapshots, found, Path(request.root))
            if is_kept(self.store.snapshots, found):
                break
        for problem in odd:
            tell(problem)
        return found, snapshot, files

    def _require_kept(self, found: Plan, snapshot: str | None) -> None:
        snapshots = self.store.snapshots
        if not (is_kept(snapshots, found) and (snapshot is None or snapshots.has(snapshot))):
            raise gone()

    def _sources_of(self, request: Request) -> tuple[SweepSources, FileCache] | None:
        """What a run is made from that belongs to a sweep, unless that has no sources."""
        if request.sweep is None:
            return None
        known = self._of_sweeps.get(request.sweep)
        if known is None and (sources := self._sources_of_sweep(request.sweep)) is not None:
            known = self._remember(request.sweep, sources, self._files_of(request, sources))
        return known

    def _files_of(self, request: Request, sources: SweepSources) -> FileCache:
        return PinnedFiles(Path(request.root), sources.files, self.store.snapshots.content)

    def _remember(
        self, sweep_id: str, sources: SweepSources, files: FileCache
    ) -> tuple[SweepSources, FileCache]:
        with self._remembering:
            while len(self._of_sweeps) >= KEPT_SOURCES:
                del self._of_sweeps[next(iter(self._of_sweeps))]
            self._of_sweeps[sweep_id] = sources, files
        return sources, files

    def _plan_from(
        self, request: Request, sources: SweepSources, files: FileCache, tell: Tell
    ) -> tuple[Plan, str | None, Git | None]:
        found = plan(replace(request, document=sources.document), files, tell)
        self._require_kept(found, sources.snapshot)
        return found, sources.snapshot, sources.git

    def _git(self, request: Request, found: Plan) -> Git | None:
        """The commit, looked up once for runs that are made at the same time."""
        root = Path(request.root)
        paths = tuple(root / step.path for step in found.steps if step.path)
        folder = (root / request.path if request.path else next(iter(paths), root / "x")).parent
        known = self._commits.get((folder, paths))
        if known is not None and known[0] > time.monotonic() - SAME_TIME:
            return known[1]
        git = git_of(folder, paths)
        if git is not None and git.difference is not None:
            self._behind.submit(keep_difference, self.store.folder, folder, git)
        self._commits = {(folder, paths): (time.monotonic(), git)}
        return git

    @functools.cached_property
    def _behind(self) -> Threads:
        """For what nobody waits for until the planner is closed."""
        return Threads(1, "convect-behind")


def system_user() -> str | None:
    """Who the machine thinks we are; a hub knows better."""
    try:
        return os.environ.get("JUPYTERHUB_USER") or getpass.getuser()
    except (KeyError, OSError):  # A container whose user has no name.
        return None


def _of_file(problem: Problem) -> Problem:
    """A problem of the node that stands for a single file, of which its user knows nothing.

    A pipeline may compute what it passes on to a notebook; here somebody has chosen it.
    """
    if problem.code != "wrong-type-for-notebook":
        return replace(problem, node=None)
    return replace(problem, node=None, severity="error", code="wrong-type")


def _check_size(request: Request, found: Plan) -> None:
    """Parameters are values, which every list of runs shows; data belongs in files."""
    of_steps = ({**step.parameters, **step.env} for step in found.steps)
    for given in (dict(request.parameters), dict(found.parameters), *of_steps):
        if given and len(json.dumps(given)) > LARGEST_PARAMETERS:
            raise ConvectError(
                f"The parameters are larger than {LARGEST_PARAMETERS >> 20} MiB.",
                code="too-large",
                hint="Put data into a file, and give its path.",
            )
