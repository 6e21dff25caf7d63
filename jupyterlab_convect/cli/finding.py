"""Runs as people name them: by id, by a part of it, or as the latest."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import ConvectError, Missing
from ..runs.index import Query
from ..runs.store import ID, Store
from ..runs.sweeps import Sweeps

LATEST = "latest"


def find_run(store: Store, word: str) -> str:
    """The id that `word` means: an id, its beginning or end, or `latest`."""
    if word == LATEST:
        return latest_run(store)
    if ID.fullmatch(word):
        return store.read(word).run.id
    return _only(word, "run", store.run_ids())


def find_sweep(sweeps: Sweeps, word: str) -> str:
    """The same for a sweep."""
    known: list[str] = [sweep["id"] for sweep in sweeps.all()]
    if word == LATEST and known:
        return known[0]
    return _only(word, "sweep", known)


def _only(word: str, kind: str, known: Iterable[str]) -> str:
    found = sorted(each for each in known if each.startswith(word) or each.endswith(word))
    if not found:
        raise Missing(f"There is no {kind} “{word}”.", hint="“convect runs list” shows the runs.")
    if len(found) > 1:
        raise ConvectError(
            f"“{word}” can mean {len(found)} {kind}s.",
            code="ambiguous",
            hint=f"{', '.join(found[:3])}{'…' if len(found) > 3 else ''}",
        )
    return found[0]


def latest_run(store: Store, path: str | None = None) -> str:
    """The newest run, of a file if one is given."""
    runs = store.find(Query(path=path, limit=1)).runs
    if not runs:
        raise Missing(f"There is no run of “{path}” yet." if path else "There are no runs yet.")
    run_id: str = runs[0]["id"]
    return run_id
