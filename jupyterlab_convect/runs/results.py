"""The results a run builds on: of its own steps, and of earlier runs."""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ..errors import ConvectError
from ..pipeline.expressions import as_text, bind
from ..pipeline.plan import Json, Step, digest_of
from ..runner.layers import Made, copy
from ..runner.outcome import StepFailed
from .attempts import FileFact, Outcome, read_outcome
from .cache import fingerprint, parts_of, why_not
from .made import has_made, read_made
from .model import Run, RunState, StepState
from .open_run import place_of
from .project import in_view, modules_of, overlaps
from .restoring import is_complete
from .store import TAKEN_OVER, Store


class Results:
    """`left_out` are the steps that the run does not have results of."""

    def __init__(self, store: Store, run: Run, left_out: frozenset[str]) -> None:
        self._store = store
        self._run = run
        self._left_out = left_out
        self._steps = {step.id: step for step in run.plan.steps}
        self._known: dict[str, tuple[Path, Outcome]] = {}
        self._fingerprints: dict[str, str] = {}
        self._above: dict[str, frozenset[str]] = {}
        self._order = {step.id: number for number, step in enumerate(run.plan.steps)}

    def remember(self, step_id: str, folder: Path, outcome: Outcome) -> None:
        """Spare a reading of what is known already."""
        self._known[step_id] = (folder, outcome)

    def made(self, step: Step) -> list[tuple[str, Path, list[Made]]]:
        """What the steps that this one waits for have made, however far up; the last first."""
        makers = sorted(self._makers(step.id), key=self._order.__getitem__, reverse=True)
        folders = [(other, self.of(other)[0]) for other in makers]
        return [(other, folder / "made", read_made(folder)) for other, folder in folders]

    def overlaps(self, made: list[tuple[str, Path, list[Made]]]) -> list[str]:
        """What two of them have made differently without waiting for each other."""
        after = {step_id: self._makers(step_id) for step_id, _, _ in made}
        return overlaps([(step_id, files) for step_id, _, files in made], after)

    def keep(self, place: str, step_id: str) -> Path:
        """Give the run its own copy of an earlier result, which may be deleted one day."""
        run_id, _, attempt = place.partition("/")
        source = self._store.attempt_folder(run_id, step_id, int(attempt))
        target = self._store.attempt_folder(self._run.id, step_id, TAKEN_OVER)
        if not target.is_dir():
            draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
            shutil.copytree(source, draft, symlinks=True, copy_function=_link)
            draft.rename(target)
        return target

    def _makers(self, step_id: str) -> frozenset[str]:
        """Those of the steps above this one, however far up, that made files."""
        left = [step_id]
        while left:
            current = left[-1]
            above = [each for each in self._steps[current].after if each not in self._left_out]
            missing = [each for each in above if each not in self._above]
            if missing:
                left += missing
                continue
            left.pop()
            makers = {each for each in above if self._is_maker(each)}
            self._above[current] = frozenset(makers.union(*(self._above[e] for e in above)))
        return self._above[step_id]

    def _is_maker(self, step_id: str) -> bool:
        return in_view(self._steps[step_id]) and self.of(step_id)[1].made > 0

    def of(self, step_id: str) -> tuple[Path, Outcome]:
        """The folder and the outcome of a step that ended well."""
        if step_id not in self._known:
            folder = self._store.result_folder(self._run.id, step_id)
            outcome = None if folder is None else read_outcome(folder)
            if folder is None or outcome is None:
                raise ConvectError(f"The result of {step_id} is not there any more.")
            self._known[step_id] = (folder, outcome)
        return self._known[step_id]

    def bind(self, step: Step, state: RunState) -> Step:
        """The step with the values of what came before it."""
        outputs = {
            upstream: _seen_by(step, state.steps[upstream].outputs) for upstream in step.after
        }
        facts = {"id": self._run.id, "name": self._run.name}
        return replace(
            step,
            parameters=bind(step.parameters, outputs, facts),
            env={name: as_text(bind(text, outputs, facts)) for name, text in step.env.items()},
            command=tuple(as_text(bind(text, outputs, facts)) for text in step.command),
        )

    def parts(self, step: Step, state: RunState) -> dict[str, str]:
        """Digests of all that a bound step depends on."""
        upstream = {
            other: self._fingerprint(state.steps[other])
            for other in step.after
            if other not in self._left_out
        }
        component = self._run.plan.components.get(step.component or "")
        modules = self._modules if step.cache and in_view(step) else None
        return parts_of(step, component, upstream, modules, self._environment(step))

    def _environment(self, step: Step) -> str | None:
        """A digest of what is installed where the step is executed, if that is known before."""
        if not step.cache or self._run.runtime != "local":
            return None
        from .environments import digest_here

        with contextlib.suppress(StepFailed, OSError, ValueError):
            return digest_here(self._store, Path(self._run.request.root), step)
        return None

    @functools.cached_property
    def _modules(self) -> str | None:
        """A digest of the code that lies beside the steps, as they see it."""
        if self._run.snapshot is None:
            return None
        snapshots = self._store.snapshots
        return modules_of(snapshots, snapshots.read(self._run.snapshot), self._run)

    def upstream(self, step: Step) -> dict[str, tuple[Step, Path, list[FileFact]]]:
        """Each result that a step builds on, with the files that were left."""
        found = {}
        for other in step.after:
            if other not in self._left_out:
                folder, outcome = self.of(other)
                found[other] = (self._steps[other], folder, outcome.files)
        return found

    def expected(self, step_id: str) -> float | None:
        """Seconds that the step took the last time it succeeded."""
        last = self._store.index.last_result(place_of(self._run), step_id)
        return last.seconds if last else None

    def earlier(self, step: Step, parts: dict[str, str]) -> tuple[str | None, str]:
        """Where a result lies that can be taken over, and why it is or is not."""
        if not step.cache:
            return None, "Not reused: reuse is off for this step."
        if not self._run.request.use_cache:
            return None, "Not reused: reuse is off for this run."
        self._store.flush()
        index = self._store.index
        for result in index.results(digest_of(parts)):
            place = f"{result.run}/{result.attempt}"
            if result.step == step.id and self.at(place, step.id) is not None:
                return place, f"Taken over from run {result.run}: nothing has changed since."
        last = index.last_result(place_of(self._run), step.id)
        return None, why_not(parts, last.parts if last else None, last.run if last else "")

    def at(self, place: str, step_id: str) -> tuple[Path, Outcome] | None:
        """The good result of a step at `<run id>/<attempt>`, unless something of it is gone."""
        run_id, _, attempt = place.partition("/")
        if not self._store.is_own_folder(self._store.run_folder(run_id)):
            return None
        folder = self._store.attempt_folder(run_id, step_id, int(attempt))
        try:
            outcome = read_outcome(folder)
        except ConvectError:
            return None
        if outcome is None or outcome.state != "succeeded":
            return None
        complete = is_complete(folder, outcome.files) and has_made(folder)
        return (folder, outcome) if complete else None

    def _fingerprint(self, step: StepState) -> str:
        if step.id not in self._fingerprints:
            folder, outcome = self.of(step.id)
            made = [{"path": each.path, "digest": each.digest} for each in read_made(folder)]
            files = [*outcome.files, *made]
            self._fingerprints[step.id] = fingerprint(step.outputs, files, self._key(step))
        return self._fingerprints[step.id]

    def _key(self, step: StepState) -> str:
        """The digest of all that a good result depended on, wherever it was made."""
        attempts = step.attempts
        if step.source is not None:
            run_id, _, number = step.source.partition("/")
            source = self._store.read(run_id).state.steps[step.id]
            attempts = source.attempts[: int(number)]
        return digest_of(attempts[-1].parts)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        copy(Path(source), Path(target))


def _seen_by(step: Step, outputs: Mapping[str, Json]) -> Mapping[str, Json]:
    """Files that components leave are `{"file", "size"}`; everybody else wants just the path."""
    if step.kind == "component":
        return outputs
    return {
        name: value["file"] if isinstance(value, dict) and set(value) == {"file", "size"} else value
        for name, value in outputs.items()
    }
