"""The results a run builds on: of its own steps, and of earlier runs that it takes over."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from ..errors import ConvectError
from ..pipeline.expressions import as_text
from ..pipeline.plan import Json, Step, digest_of, to_json
from ..runner.layers import Made, copy
from ..runner.outcome import StepFailed
from ..safe_files import copy_regular, open_regular, size_of_regular
from ..text import listing
from .attempts import FileFact, Outcome, read_outcome
from .graph import Graph, Item, Key
from .made import has_made, read_made
from .model import (
    GOOD,
    GroupState,
    Run,
    RunState,
    StepState,
    read_source,
    source_of,
    step_of,
    steps_in,
)
from .project import in_view, modules_of, overlaps
from .run_file import pipeline_name
from .store import TAKEN_OVER, Store
from .values import item_values, unit_state, values_for

BLOCK = 1 << 20

WORDS = {
    "code": "its code",
    "command": "its command",
    "parameters": "its parameters",
    "inputs": "the results it uses",
    "files": "the files it needs",
    "modules": "the code beside it",
    "variables": "its environment variables",
    "image": "its image",
    "environment": "Python or the packages",
    "kernel": "its kernel",
    "outputs": "the files it is to make",
    "folder": "its working folder",
    "processes": "the processes it has",
}
"""What a result depends on, in the words of a sentence."""


FLUSH_EVERY = 0.2
"""Seconds within which the items of a loop look at the same index."""


class RunResults:
    """`left_out` are the steps and groups that the run does not have results of."""

    def __init__(self, store: Store, run: Run, left_out: frozenset[str]) -> None:
        self._store = store
        self._run = run
        self._left_out = left_out
        self._known: dict[str, tuple[Path, Outcome]] = {}
        self._fingerprints: dict[Key, str] = {}
        self._makers: dict[Key, frozenset[str]] = {}
        self._above: dict[Key, frozenset[str]] = {}
        self._expected: dict[str, float | None] = {}
        self._flushed = 0.0

    def remember(self, step_id: str, folder: Path, outcome: Outcome) -> None:
        """Spare a reading of what is known already."""
        self._known[step_id] = (folder, outcome)

    def made(self, step_id: str | None, state: RunState) -> list[tuple[str, Path, list[Made]]]:
        """What the steps that this one waits for have made, however far up; the last first.

        For None, what all have made so far.
        """
        order = state.graph.order

        def place(step_id: str) -> tuple[int, Item]:
            step = state.steps[step_id]
            return order[step.node], step.item

        if step_id is None:
            good = (step for step in state.steps.values() if step.state in GOOD)
            found = frozenset(step.id for step in good if step.made)
        else:
            found = self._makers_above(step_id, state)
        makers = sorted(found, key=place, reverse=True)
        folders = [(other, self.of(other)[0]) for other in makers]
        return [(other, folder / "made", read_made(folder)) for other, folder in folders]

    def overlaps(self, made: list[tuple[str, Path, list[Made]]], state: RunState) -> list[str]:
        """What two of them have made differently without waiting for each other."""
        after = {step_id: self._makers_above(step_id, state) for step_id, _, _ in made}
        return overlaps([(step_id, files) for step_id, _, files in made], after)

    def keep(self, source: str, step_id: str) -> Path:
        """Give the run its own copy of an earlier result, which may be deleted one day."""
        folder = self._store.attempt_folder(*read_source(source, step_id))
        target = self._store.attempt_folder(self._run.id, step_id, TAKEN_OVER)
        if not target.is_dir():
            draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
            shutil.copytree(folder, draft, symlinks=True, copy_function=_link)
            draft.rename(target)
        return target

    def _makers_above(self, step_id: str, state: RunState) -> frozenset[str]:
        """Those of the steps above this one, however far up, that made files."""
        step = state.steps[step_id]
        left: list[Key] = [(step.node, step.item)]
        while left:
            current = left[-1]
            before, parent = self._before(*current, state), state.graph.parent(*current)
            needed = before if parent is None else [*before, parent]
            missing = [key for key in needed if key not in self._above]
            if missing:
                left += missing
                continue
            left.pop()
            found = [*map(self._above.__getitem__, needed)]
            found += [self._makers_in(key, state) for key in before]
            found = [makers for makers in found if makers]
            # Many items share what is above them.
            shared = found[0] if len(found) == 1 else frozenset[str]().union(*found)
            self._above[current] = shared
        return self._above[step.node, step.item]

    def _before(self, unit: str, item: Item, state: RunState) -> list[Key]:
        """The siblings that a unit waits for."""
        if state.graph.is_iteration(unit, item):
            return []
        after = state.graph.units[unit].after
        return [(other, item) for other in after if other not in self._left_out]

    def _makers_in(self, key: Key, state: RunState) -> frozenset[str]:
        if key not in self._makers:
            self._makers[key] = frozenset(
                step.id
                for step in steps_in(state, *key)
                if step.state in GOOD and step.made and in_view(state.graph.steps[step.node])
            )
        return self._makers[key]

    def of(self, step_id: str) -> tuple[Path, Outcome]:
        """The folder and the outcome of a step that ended well."""
        if step_id not in self._known:
            folder = self._store.result_folder(self._run.id, step_id)
            outcome = None if folder is None else read_outcome(folder)
            if folder is None or outcome is None:
                raise ConvectError(f"The result of “{step_id}” no longer exists.")
            self._known[step_id] = (folder, outcome)
        return self._known[step_id]

    def bind(self, step_id: str, state: RunState) -> Step:
        """A step with the values of what came before it, and of its item. Unavailable."""
        known = state.steps[step_id]
        step = step_of(state, step_id)
        values = values_for(self._run, state, known.node, known.item)
        return replace(
            step,
            parameters=values.bind(step.parameters),
            env={name: as_text(values.bind(text)) for name, text in step.env.items()},
            command=tuple(as_text(values.bind(text)) for text in step.command),
        )

    def parts(self, step: Step, state: RunState) -> dict[str, str]:
        """Digests of all that a bound step depends on."""
        upstream = {
            unit: self._fingerprint((unit, item), state)
            for unit, item in self.waits_for(step.id, state)
        }
        component = self._run.plan.components.get(step.component or "")
        modules = self._modules if step.cache and in_view(step) else None
        return parts_of(step, component, upstream, modules, self._environment(step))

    def waits_for(self, step_id: str, state: RunState) -> Iterator[Key]:
        """The units that a step waits for, and those that the groups around it wait for."""
        known = state.steps[step_id]
        key = (known.node, known.item)
        yield from self._before(*key, state)
        if state.graph.has_rules:
            for above in state.graph.ancestors(*key):
                yield from self._before(*above, state)

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

    def upstream(
        self, step_id: str, state: RunState
    ) -> dict[str, tuple[Step, Path, list[FileFact]]]:
        """Each result that a step builds on, with the files that were left."""
        found = {}
        for key in self.waits_for(step_id, state):
            for other in steps_in(state, *key):
                if other.state in GOOD:
                    folder, outcome = self.of(other.id)
                    found[other.id] = (step_of(state, other.id), folder, outcome.files)
        return found

    def expected(self, step: StepState) -> float | None:
        """Seconds that the step, or another item of its loop, took the last time."""
        if not step.item:
            return self._last_seconds(step.id)
        if step.node not in self._expected:
            self._expected[step.node] = self._last_seconds(step.id)
        return self._expected[step.node]

    def _last_seconds(self, step_id: str) -> float | None:
        last = self._store.index.last_result(pipeline_name(self._run), step_id)
        return last.seconds if last else None

    def earlier(self, step: Step, parts: dict[str, str], item: Item = ()) -> tuple[str | None, str]:
        """Where a result lies that can be taken over, and why it is or is not."""
        if not step.cache:
            return None, "Not reused: reuse is off for this step."
        if not self._run.request.use_cache:
            return None, "Not reused: reuse is off for this run."
        if any(volume.size for volume in step.volumes):
            return None, "Not reused: it works on a volume that is made for each run."
        if not item or time.monotonic() - self._flushed > FLUSH_EVERY:
            self._store.flush()
            self._flushed = time.monotonic()
        index = self._store.index
        for result in index.results(digest_of(parts)):
            source = source_of(result.run, result.step, result.attempt, step.id)
            same = result.step == step.id or (item and is_same_node(result.step, step.id))
            if same and self.at(source, step.id) is not None:
                return source, f"Reused from run {result.run}: nothing has changed since."
        last = index.last_result(pipeline_name(self._run), step.id)
        return None, why_not(parts, last.parts if last else None, last.run if last else "")

    def at(self, source: str, step_id: str) -> tuple[Path, Outcome] | None:
        """The good result that lies at `source`, unless something of it is gone."""
        run_id, earlier, attempt = read_source(source, step_id)
        if not self._store.is_own_folder(self._store.run_folder(run_id)):
            return None
        folder = self._store.attempt_folder(run_id, earlier, attempt)
        try:
            outcome = read_outcome(folder)
        except ConvectError:
            return None
        if outcome is None or outcome.state != "succeeded":
            return None
        complete = is_complete(folder, outcome.files) and has_made(folder)
        return (folder, outcome) if complete else None

    def _fingerprint(self, key: Key, state: RunState) -> str:
        """What others can see of the result of a step, or of all steps of a group."""
        found = self._fingerprints.get(key)
        if found is None:
            step = state.steps.get(state.graph.name(*key))
            if step is not None:
                found = self._fingerprint_of_step(step)
            else:
                inside = steps_in(state, *key)
                found = _short([self._fingerprint_of_step(each) for each in inside])
            self._fingerprints[key] = found
        return found

    def _fingerprint_of_step(self, step: StepState) -> str:
        if step.state not in GOOD:  # Skipped, or failed before one that runs anyway.
            return _short([step.state, step.outputs])
        folder, outcome = self.of(step.id)
        made = [{"path": each.path, "digest": each.digest} for each in read_made(folder)]
        return fingerprint(step.outputs, [*outcome.files, *made], self._key(step))

    def _key(self, step: StepState) -> str:
        """The digest of all that a good result depended on, wherever it was made."""
        attempts = step.attempts
        if step.source is not None:
            run_id, earlier, number = read_source(step.source, step.id)
            attempts = self._store.read(run_id).state.steps[earlier].attempts[:number]
        return digest_of(attempts[-1].parts)


class EarlierRuns:
    """What earlier runs have, for a run that takes over what was good of them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._results: dict[str, dict[tuple[str, str], tuple[str, str, int]]] = {}
        self._same: dict[Key, bool] = {}

    def units(self, run_id: str) -> dict[str, StepState | GroupState]:
        state = self._store.read(run_id).state
        return {**state.groups, **state.steps}

    def is_same(self, run_id: str, key: Key, state: RunState) -> bool:
        """Whether a unit that has ended is in all parts what it was in an earlier run."""
        found = self._same.get(key)
        if found is None:
            found = self._same[key] = self._is_same(run_id, key, state)
        return found

    def _is_same(self, run_id: str, key: Key, state: RunState) -> bool:
        then, unit = self._store.read(run_id).state, unit_state(state, *key)
        before = None if unit is None else then.steps.get(unit.id) or then.groups.get(unit.id)
        if unit is None or before is None or unit.by_rule != before.by_rule:
            return False
        if unit.by_rule:
            return True
        if isinstance(unit, StepState):
            return unit.source is not None and unit.source == self.source(run_id, unit, state)
        inside = state.graph.members(*key)
        if unit.values is not None:
            if not isinstance(before, GroupState) or before.values != unit.values:
                return False
            inside = [(unit.node, (*unit.item, number)) for number in range(len(unit.values))]
        return all(self._is_same(run_id, each, state) for each in inside)

    def source(self, run_id: str, step: StepState, state: RunState) -> str | None:
        """Where the good result of the same step lies; of a loop's, that of the same value."""
        if run_id not in self._results:
            earlier = self._store.read(run_id).state
            self._results[run_id] = {
                _value_key(earlier, each): read_source(
                    each.source or f"{run_id}/{len(each.attempts)}", each.id
                )
                for each in earlier.steps.values()
                if each.state in GOOD
            }
        found = self._results[run_id].get(_value_key(state, step))
        return None if found is None else source_of(*found, step.id)


def _value_key(state: RunState, step: StepState) -> tuple[str, str]:
    values = item_values(state, step.node, step.item) if step.item else []
    return step.node, digest_of(values)


def is_same_node(step_id: str, other: str) -> bool:
    """Whether two steps are the same but for the items of loops."""
    one, two = (
        [part for part in each.split(".") if not part.isdecimal()] for each in (step_id, other)
    )
    return one == two


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        copy(Path(source), Path(target))


def preview_reuse(store: Store, run: Run) -> dict[str, str]:
    """The steps whose earlier result would be taken over, each with where it lies.

    A step can be told only when all that it builds on would be taken over too: what the
    others will give is not known yet.
    """
    results, state = RunResults(store, run, frozenset()), RunState(graph=Graph(run.plan))
    reused: dict[str, str] = {}
    if not run.request.use_cache:
        return reused
    for step in run.plan.steps:
        may_vary = step.group or step.when is not None or step.for_each
        if not step.cache or may_vary or any(other not in reused for other in step.after):
            continue
        state.steps[step.id] = StepState(step.id, node=step.id)
        try:
            bound = results.bind(step.id, state)
            source, _ = results.earlier(bound, results.parts(bound, state))
            found = results.at(source, step.id) if source else None
        except ConvectError:
            continue
        if source is None or found is None:
            continue
        folder, outcome = found
        results.remember(step.id, folder, outcome)
        outputs = dict(outcome.values)
        state.steps[step.id] = StepState(
            step.id, "cached", outputs=outputs, source=source, made=outcome.made, node=step.id
        )
        reused[step.id] = source
    return reused


def parts_of(
    step: Step,
    component: Json,
    upstream: Mapping[str, str],
    modules: str | None = None,
    environment: str | None = None,
) -> dict[str, str]:
    """Digests of what a bound step depends on.

    `upstream` has a fingerprint of each result it builds on, `modules` one of the code that
    it may have imported, `environment` one of the interpreter's packages. What only decides
    where and how patiently it runs is no part of it.
    """
    facts: dict[str, Json] = {
        "code": [step.kind, step.digest or step.path, step.component, component],
        "command": list(step.command),
        "parameters": dict(step.parameters),
        "inputs": dict(upstream),
        "files": to_json(step.dependencies),
        "modules": modules,
        "variables": [dict(step.env), to_json(step.secrets)],
        "image": step.image,
        "environment": environment,
        "kernel": step.kernel,
        "outputs": [list(step.outputs), dict(step.metrics)],
        "folder": step.working_folder,
    }
    if step.distributed is not None:
        facts["processes"] = to_json(step.distributed)
    if step.dask is not None:
        facts["dask"] = [step.dask.workers, dict(step.dask.options)]
    return {name: _short(fact) for name, fact in facts.items()}


def fingerprint(values: Mapping[str, Json], files: list[dict[str, Json]], key: str) -> str:
    """What others can see of a result.

    A step that declares nothing may still leave something behind, so that its own
    dependencies stand for it.
    """
    if not values and not files:
        return key
    return _short([dict(values), [[file.get("path"), file.get("digest")] for file in files]])


def why_not(parts: Mapping[str, str], last: Mapping[str, str] | None, last_run: str) -> str:
    """Why no earlier result could be taken over, given the last one of this step."""
    if last is None:
        return "Not reused: there is no earlier result."
    names = [name for name in parts if parts[name] != last.get(name)]
    changed = [WORDS.get(name, name) for name in names]
    if not changed:
        return f"Not reused: the result of run {last_run} is no longer complete."
    verb = "have" if len(names) > 1 or names[0].endswith("s") else "has"
    return f"Not reused: {listing(changed)} {verb} changed since run {last_run}."


def _short(value: Json) -> str:
    return digest_of(value)[7:31]


def is_complete(attempt_folder: Path, files: list[FileFact]) -> bool:
    """Whether all files of a result are still there, by their size."""
    try:
        return all(
            size_of_regular(attempt_folder / "files" / str(fact["path"])) == fact.get("size")
            for fact in files
        )
    except OSError:
        return False


def restore(attempt_folder: Path, files: list[FileFact], folder: Path) -> None:
    """Copy what is missing or different in `folder`; each file appears whole."""
    for fact in files:
        target = folder / str(fact["path"])
        if _is_same(target, fact):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}")
        try:
            copy_regular(attempt_folder / "files" / str(fact["path"]), beside)
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)


def _is_same(path: Path, fact: FileFact) -> bool:
    try:
        if path.stat().st_size != fact.get("size"):
            return False
        digest = hashlib.sha256()
        with open_regular(path) as file:
            while block := file.read(BLOCK):
                digest.update(block)
    except OSError:
        return False
    return f"sha256:{digest.hexdigest()}" == fact.get("digest")
