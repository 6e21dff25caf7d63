"""Runs as people name them: by id, by a part of it, or as the latest."""

from __future__ import annotations

from ..errors import ConvectError, Missing
from ..runs.index import Query
from ..runs.store import ID, Store

LATEST = "latest"


def find_run(store: Store, word: str) -> str:
    """The id that `word` means: an id, its beginning or end, or `latest`."""
    if word == LATEST:
        return latest_run(store)
    if ID.fullmatch(word):
        return store.read(word).run.id
    found = sorted(run for run in store.run_ids() if run.startswith(word) or run.endswith(word))
    if not found:
        raise Missing(f"There is no run “{word}”.", hint="“convect runs list” shows them.")
    if len(found) > 1:
        raise ConvectError(
            f"“{word}” can mean {len(found)} runs.",
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
