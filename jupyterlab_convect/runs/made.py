"""What the steps of a run made: read, limited, put into the project."""

from __future__ import annotations

import os
import shutil
from collections.abc import Container, Iterator, Mapping
from pathlib import Path, PurePath

from ..errors import Conflict, ConvectError
from ..pipeline.plan import Json, Step
from ..runner.layers import Made, made_from
from ..safe_files import size_of_regular
from .attempts import read_outcome
from .json_files import read_json
from .model import ENDED, GOOD, Run, StepState, step_of, steps_of
from .project import in_view, working_folder
from .put_back import PutBack, last_made, put_back
from .store import Store

MOST_FILES, MOST_BYTES = 10_000, 1 << 30
"""What is kept of the files that a run made."""


def read_made(attempt_folder: Path) -> list[Made]:
    """What an attempt made; nothing when that was never written down."""
    path = attempt_folder / "made.json"
    if not path.is_file():
        return []
    try:
        made = made_from(read_json(path)["files"])
        for each in made:
            if each.path.startswith("/") or ".." in each.path.split("/"):
                raise ValueError(each.path)
        return made
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ConvectError("made.json is damaged.", code="damaged") from None


def has_made(attempt_folder: Path) -> bool:
    """Whether all that an attempt made is still with it: a large file may have been dropped."""
    try:
        made = read_made(attempt_folder)
    except ConvectError:
        return False
    kept = (attempt_folder / "made" / each.path for each in made if each.change != "deleted")
    return all(map(os.path.lexists, kept))


def made_by_run(
    store: Store, run_id: str, *, of_items: bool = True
) -> Iterator[tuple[str, Path, list[Made]]]:
    """What each good step of a run made, in the order of the plan, with where it lies; without
    `of_items` not what the items of loops made."""
    state = store.read(run_id).state
    for known in steps_of(state):
        if known.state in GOOD and in_view(state.graph.steps[known.node]):
            folder = store.folder_of(run_id, known) if of_items or not known.item else None
            if folder is not None and (made := read_made(folder)):
                yield known.id, folder / "made", made


def put_into_project(
    store: Store, run_id: str, *, replace: bool = False, of_items: bool = True
) -> PutBack:
    """Put the files of a run into the project it was submitted from, as far as that did not
    change meanwhile; with `replace` where it did as well."""
    run, _ = store.read(run_id)
    if run.snapshot is None:
        return PutBack()
    snapshot = store.snapshots.read(run.snapshot)
    found = made_by_run(store, run_id, of_items=of_items)
    results = [(folder, made) for _, folder, made in found]
    return put_back(last_made(results), snapshot, run.created, replace=replace)


def describe(store: Store, run_id: str) -> dict[str, Json]:
    """The files that a run left, as REST gives them, and what became of them.

    What a step made and what it declared is one list: whoever looks for a file does not
    care which of the two it is.
    """
    run, state = store.read(run_id)
    root = None if run.snapshot is None else store.snapshots.read(run.snapshot).root
    files: list[dict[str, Json]] = []
    for known in steps_of(state):
        step = step_of(state, known.id)
        folder = store.folder_of(run_id, known) if _may_have_left(known, step) else None
        if folder is not None:
            attempt = max(1, len(known.attempts))
            place = {"step": step.id, "state": known.state, "attempt": attempt}
            files += [{**file, **place} for file in _left_in(folder, run, step, root)]
    last = {file["path"]: file for file in files if _is_good(file)}
    for file in files:
        final = last.get(file["path"]) if _is_good(file) else None
        file["replaced_by"] = final["step"] if final is not None and final is not file else None
    outcome = state.files or {"put": [], "kept": {}}
    deleted = {path for path, file in last.items() if file["change"] == "deleted"}
    return {
        "project": root,
        "files": files,
        "total": len(files),
        "to_put": sum(map(is_to_put, files)),
        **outcome,
        "deleted": sum(path in deleted for path in outcome["put"]),
    }


def _may_have_left(known: StepState, step: Step) -> bool:
    """Whether there is something to look for: of the many items of a loop that is seldom so."""
    is_good = known.state in GOOD
    return not is_good or bool(known.made or step.outputs) or step.kind == "component"


def _is_good(file: Mapping[str, Json]) -> bool:
    """Whether a step that ended well created, changed or deleted it."""
    return file["change"] is not None and file["state"] in GOOD


def is_to_put(file: Mapping[str, Json]) -> bool:
    """Whether putting the files of a run into the project is about this one."""
    is_last = _is_good(file) and file["replaced_by"] is None
    return is_last and bool(file["kept"] or file["change"] == "deleted")


def _left_in(folder: Path, run: Run, step: Step, root: str | None) -> Iterator[dict[str, Json]]:
    """What a step made, then what it declared and was there before; `file` is its content."""
    outcome = read_outcome(folder)
    facts = outcome.files if outcome else []
    declared = {_in_project(fact["path"], run, step, root): fact for fact in facts}
    for made in read_made(folder) if in_view(step) else ():
        places = [] if made.change == "deleted" else [f"made/{made.path}"]
        if same := declared.pop(made.path, None):
            places.append(f"files/{same['path']}")
        file = next((place for place in places if _is_regular(folder / place)), None)
        is_kept = any(os.path.lexists(folder / place) for place in places)
        yield {**made.to_json(), "kept": is_kept, "file": file}
    for path, fact in declared.items():
        file = f"files/{fact['path']}"
        is_kept = _is_regular(folder / file)
        facts_of_it = {"size": fact["size"], "digest": fact.get("digest")}
        place = {"kept": is_kept, "file": file if is_kept else None}
        yield {"path": path, "change": None, **facts_of_it, **place}


def _in_project(path: str, run: Run, step: Step, root: str | None) -> str:
    """The path of a declared file as those of made files are: below the project."""
    if root is None or not in_view(step):
        return path
    request_root = Path(run.request.root)
    working = working_folder(run.plan, step, request_root, request_root)
    below = PurePath(os.path.relpath(working / path, root))
    return path if ".." in below.parts else below.as_posix()


def _is_regular(path: Path) -> bool:
    try:
        size_of_regular(path)
    except OSError:
        return False
    return True


def see_to_files(store: Store, run_id: str, *, alone: bool) -> PutBack:
    """At the end of a run: put its files into the project if it ran for itself `alone`, and
    keep of them what is allowed. An item of a loop is one of many, as a run of a sweep is."""
    result = put_into_project(store, run_id, of_items=False) if alone else PutBack()
    drop_beyond_limits(store, run_id, result.kept)
    return result


def put_when_asked(store: Store, run_id: str, *, replace: bool = False) -> PutBack:
    """The same for a run that has ended, because somebody wants its files."""
    if store.read(run_id).state.state not in ENDED:
        raise Conflict("The run has not ended yet.", hint="Wait for its end, or stop it.")
    result = put_into_project(store, run_id, replace=replace)
    store.note_files(run_id, result.put, result.kept)
    return result


def drop_beyond_limits(store: Store, run_id: str, only_here: Container[str]) -> None:
    """Keep the names of all files that a run made, and the content of as many as is allowed.

    What should have been put into the project and could not is nowhere else, and stays.
    """
    files, room = MOST_FILES, MOST_BYTES
    for _, folder, made in made_by_run(store, run_id):
        for each in sorted(made, key=lambda each: each.size):
            files, room = files - 1, room - each.size
            too_much = files < 0 or room < 0
            if too_much and each.change != "deleted" and each.path not in only_here:
                (folder / each.path).unlink(missing_ok=True)


def remove_unfinished(attempt_folder: Path) -> None:
    """Remove the private layer of an attempt whose runner was killed."""
    shutil.rmtree(attempt_folder / ".view", ignore_errors=True)
