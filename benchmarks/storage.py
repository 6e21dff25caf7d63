"""The list of runs, with a thousand and with a hundred thousand of them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

from jupyterlab_convect.pipeline.plan import Plan, Step, to_json
from jupyterlab_convect.runs.events import (
    AttemptEnd,
    AttemptStart,
    RunEnd,
    RunStart,
    StepEnd,
    encode,
)
from jupyterlab_convect.runs.index import Index
from jupyterlab_convect.runs.model import Request, Run, new_id
from jupyterlab_convect.runs.store import Store

from .measure import Result, percentile, seconds
from .server import Server, server

COUNTS = (1000, 10_000, 100_000)
QUERIES = (
    "runs?limit=50",
    "runs?limit=50&offset=400",
    "runs?state=failed&limit=50",
    "runs?text=lr%20churn7&limit=50",
    "runs?sort=name&limit=50",
    "runs?label=team=blue&limit=50",
    "runs?name=churn7*&limit=50",
)


def rows() -> Iterator[Result]:
    slowest: dict[int, float] = {}
    for count in COUNTS:
        with tempfile.TemporaryDirectory(prefix="convect-bench-") as scratch:
            folder = Path(scratch)
            fill(folder / "runs", count)
            rebuilt = seconds(lambda: _rebuild(folder))  # noqa: B023
            yield Result(f"index rebuilt, {count:,} runs", rebuilt, "s")
            places = {"CONVECT_RUNS_DIR": f"{folder}/runs", "CONVECT_INDEX_DIR": f"{folder}/index"}
            with server(folder, **places) as running:
                times = list(_ask(running, 30 * len(QUERIES)))
            slowest[count] = percentile(times, 0.95)
            yield Result(
                f"runs list p95, {count:,} stored", slowest[count] * 1000, "ms",
                budget=10, against="–", ours=times, note="over REST, seven kinds of question",
            )  # fmt: skip
    yield Result(
        "runs list p95, 100,000 against 1000 stored", slowest[100_000] / slowest[1000],
        budget=1.5, against="itself",
    )  # fmt: skip


def fill(folder: Path, count: int) -> None:
    """Ended runs as the engine leaves them."""
    import json

    for number in range(count):
        created = 1_760_000_000.0 + number * 7
        step = Step("train", "notebook", "train", path="train.ipynb", digest="sha256:0")
        name = f"churn{number % 100}"
        values = {"lr": number % 10 / 10, "depth": number % 7}
        plan = Plan(name, (step,), path="train.ipynb", parameters=values)
        labels = {"team": "blue" if number % 50 == 0 else "red"}
        request = Request("train.ipynb", "/home/me", parameters=values, labels=labels)
        run = Run(new_id(created), name, created, "local", plan, request, user="me")
        state = "failed" if number % 20 == 0 else "succeeded"
        reason = "Cell 3 raised ValueError: no" if state == "failed" else None
        events = (
            RunStart(created),
            AttemptStart(created, "train", 1),
            AttemptEnd(created + 5, "train", 1, state, reason),  # type: ignore[arg-type]
            StepEnd(created + 5, "train", state, reason, {}, {"accuracy": number % 100 / 100}),  # type: ignore[arg-type]
            RunEnd(created + 5, state, reason),  # type: ignore[arg-type]
        )
        place = folder / run.id
        place.mkdir(parents=True)
        (place / "run.json").write_text(json.dumps(to_json(run)))
        (place / "events.ndjson").write_bytes(b"".join(map(encode, events)))


def _rebuild(folder: Path) -> None:
    import hashlib

    name = hashlib.sha256(bytes((folder / "runs").resolve())).hexdigest()[:16]
    store = Store(folder / "runs", Index(folder / "index" / f"{name}.sqlite"))
    store.refresh()
    store.close()


def _ask(running: Server, times: int) -> Iterator[float]:
    for question in QUERIES:
        running.convect(question)
    for question in islice(cycle(QUERIES), times):
        yield seconds(lambda: running.convect(question))  # noqa: B023
