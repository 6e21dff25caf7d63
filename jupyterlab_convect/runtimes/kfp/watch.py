"""Watches runs of ours on a Kubeflow Pipelines server, and brings home what their tasks leave."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial

from ...background import Health, explain
from ...catalog.model import component_from_json
from ...errors import ConvectError, Missing
from ...pipeline.plan import Json
from ...pools import Threads
from ...runner.outcome import Ending, write_outcome
from ...runs.graph import Graph
from ...runs.model import ENDED, State
from ...safe_files import read_regular, write_whole
from ...transfer.agent import MARK
from ...transfer.s3 import S3Transfer
from ..base import Attempt, StepStatus
from ..progress import Progresses
from .api import Client, Unreachable
from .argo_nodes import CLAIM, FILES, RESULTS, Place, SeenRun, SeenTask
from .pods import Pods
from .task_results import TaskReceiver

Key = tuple[str, str, int]
PATIENCE, STOPPED_PATIENCE = 120.0, 20.0
"""Seconds for which the log of a task that has ended may be on its way to Kubeflow's store; that
of one that was stopped may never come."""
SETTLING = 60.0
"""Seconds for which Kubeflow may know that a run has ended, and not yet what became of its tasks:
it writes down the one after the other."""
FETCHES, FETCH_PAUSE = 4, 10.0
"""Steps whose results come from the object store at the same time, and seconds between tries."""
LARGEST_DETAIL = 300
COPYING_BACK = "Its results are being copied back."
STOPPED = "The run was stopped in Kubeflow Pipelines."
_NOISE = re.compile(r"^(time=|level=|[IWE]\d{4} |\{\"|\[?goroutine|\s|main\.|exit status)")
_GLOG = re.compile(r"^[IWEF]\d{4} \S+\s+\d+ \S+\] ")

_WORDS: Mapping[str, tuple[State, str | None]] = {
    "absent": ("queued", "Waiting for its turn in Kubeflow Pipelines."),
    "preparing": ("starting", "Kubeflow Pipelines is preparing it."),
    "pending": ("starting", "Waiting for its pod to start."),
    "running": ("running", None),
}


@dataclass
class _Watched:
    """What is known of one run from look to look."""

    id: str
    """What it is called there."""
    places: Mapping[str, Place]
    graph: Graph
    unreachable_since: float | None = None
    told: dict[Key, StepStatus] = field(default_factory=dict)
    ended_at: dict[Key, float] = field(default_factory=dict)
    run_ended_at: float | None = None


@dataclass
class _Fetch:
    """The results of a step, while they come from the object store."""

    receiver: TaskReceiver
    under_way: Future[None]
    next_try: float = 0.0


class Watcher:
    """Everything here blocks, and is called by one thread at a time."""

    def __init__(
        self,
        health: Health,
        graph_of: Callable[[Attempt], Json],
        pods: Pods | None,
        store: S3Transfer | None = None,
    ) -> None:
        self._health = health
        self._pods = pods
        self._graph_of = graph_of
        self._store = store
        self._threads = Threads(FETCHES, "kfp-results")
        self._fetches: dict[Key, _Fetch] = {}
        self._runs: dict[str, _Watched] = {}
        self._progresses = Progresses()

    def observe(self, client: Client, attempts: Sequence[Attempt]) -> list[StepStatus]:
        by_run: dict[str, list[Attempt]] = {}
        for attempt in attempts:
            by_run.setdefault(attempt.run, []).append(attempt)
        return [
            status for together in by_run.values() for status in self._look_at(client, together)
        ]

    def unreachable(self, attempts: Sequence[Attempt], error: ConvectError) -> list[StepStatus]:
        """What was known last, and why there is nothing newer."""
        found = []
        for attempt in attempts:
            watched = self._watched(attempt)
            since = watched.unreachable_since = watched.unreachable_since or time.time()
            at = time.strftime("%H:%M:%S", time.localtime(since))
            reason = (
                f"Kubeflow Pipelines has been unreachable since {at}; this is the last known state."
            )
            if not isinstance(error, Unreachable):
                reason = f"{error.sentence} This is the last known state."
            known = watched.told.get(attempt.key) or StepStatus(attempt.key, "starting")
            found.append(replace(known, reason=reason, detail=error.sentence))
        return found

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def forget(self, key: Key) -> None:
        self._progresses.forget(key)
        if self._fetches.pop(key, None) is not None:
            self._health.recovered(_copying(key))
        if self._pods is not None:
            self._pods.forget(key)
        watched = self._runs.get(key[0])
        if watched is not None:
            watched.told.pop(key, None)
            watched.ended_at.pop(key, None)
            if not watched.told:
                del self._runs[key[0]]
                if self._pods is not None:
                    self._pods.forget_run(watched.id)

    def _watched(self, attempt: Attempt) -> _Watched:
        if attempt.run not in self._runs:
            known = self._graph_of(attempt) or {}
            places = {step: tuple(place) for step, place in (known.get("places") or {}).items()}
            there = str(known.get("id") or "")
            self._runs[attempt.run] = _Watched(there, places, Graph(attempt.plan))
        return self._runs[attempt.run]

    def _look_at(self, client: Client, attempts: Sequence[Attempt]) -> list[StepStatus]:
        watched = self._watched(attempts[0])
        graph = self._graph_of(attempts[0]) or {}
        if not graph.get("done"):  # It was never handed over, as far as anybody knows.
            return [StepStatus(attempt.key, "queued") for attempt in attempts]
        try:
            seen = SeenRun(client.run(graph["id"]))
        except Missing:
            words = "The run was deleted in Kubeflow Pipelines."
            return [StepStatus(attempt.key, "lost", words) for attempt in attempts]
        except ConvectError as error:
            return self.unreachable(attempts, error)
        watched.unreachable_since = None
        found = []
        for attempt in attempts:
            name = f"Watching step {attempt.step.id} of run {attempt.run}"
            try:
                status = self._status(client, graph["id"], seen, watched, attempt)
            except Exception as error:
                self._health.failed(name, error)
                known = watched.told.get(attempt.key) or StepStatus(attempt.key, "starting")
                status = replace(known, reason=f"Its state cannot be read: {explain(error)}")
            else:
                self._health.recovered(name)
            watched.told[attempt.key] = status
            found.append(status)
        return found

    def _status(
        self, client: Client, run_id: str, seen: SeenRun, watched: _Watched, attempt: Attempt
    ) -> StepStatus:
        if (home := _outcome(attempt)) is not None:
            return home
        task = self._task(seen, watched, attempt)
        if task.state == "absent" and FILES in watched.places:
            # Before any step, a task of ours brings the files.
            files = seen.task(watched.places[FILES], (), 1, retried=False)
            if files.state == "pending" and not seen.has_ended:
                return self._waiting_for_files(run_id, files, attempt)
            task = files if files.state == "failed" else task
        if task.state == "absent":
            for name, place in watched.places.items():
                if name.startswith(CLAIM) and (made := seen.driver(place)).state == "failed":
                    task = made
        if attempt.step.kind == "component" and task.state in ("succeeded", "failed"):
            return self._component(client, run_id, seen, task, watched, attempt)
        if task.by_driver:
            return self._driver_failed(client, run_id, task, attempt)
        if task.state in ("succeeded", "failed") or (seen.has_ended and task.state == "running"):
            return self._collect(client, run_id, seen, task, watched, attempt)
        # What runs always runs after a stop as well, and may not be told yet.
        is_left = seen.is_stopped and attempt.step.run_if != "always"
        if seen.has_ended and (is_left or self._is_settled(watched)):
            return _never_ran(seen, attempt)
        if not seen.workflow:
            words = "Waiting for Kubeflow Pipelines to begin the run."
            return StepStatus(attempt.key, "queued", words)
        (state, reason), detail = _WORDS[task.state], None
        if task.state in ("pending", "running") and self._pods is not None:
            pod = self._pods.find(run_id, task.node)
            why = (
                self._pods.refusal(run_id, task.node)
                if pod is None
                else self._pods.why_it_waits(pod)
            )
            if why is not None:
                # What never mends by itself still waits there, until somebody stops the run.
                state = "starting" if why.state in ENDED else why.state
                reason, detail = why.reason, why.detail
            elif pod is not None and attempt.step.kind != "component":
                state, reason = "running", None
                self._pods.follow(attempt.key, pod, partial(TaskReceiver, attempt))
        if seen.is_stopped:
            reason = "Kubeflow Pipelines is stopping the run."
        progress = self._progresses.read(attempt) if state == "running" else None
        return StepStatus(attempt.key, state, reason, detail, progress)

    @staticmethod
    def _is_settled(watched: _Watched) -> bool:
        """Whether all that happened in a run that has ended is sure to be known."""
        now = time.monotonic()
        watched.run_ended_at = watched.run_ended_at or now
        return now > watched.run_ended_at + SETTLING

    @staticmethod
    def _task(
        seen: SeenRun, watched: _Watched, attempt: Attempt, *, results: bool = False
    ) -> SeenTask:
        """The task of a step; with `results` the one that tells what a component gives."""
        item = tuple(int(part) for part in attempt.step.id.split(".") if part.isdigit())
        graph = watched.graph
        for node in graph.steps:
            if (
                len(graph.inner_loops(node)) != len(item)
                or graph.name(node, item) != attempt.step.id
            ):
                continue
            if results:
                return seen.task(watched.places[f"{node} {RESULTS}"], item, 1, retried=False)
            retried = bool(attempt.step.retries.count)
            return seen.task(watched.places[node], item, attempt.number, retried)
        return SeenTask("absent", "")

    def _component(
        self,
        client: Client,
        run_id: str,
        seen: SeenRun,
        task: SeenTask,
        watched: _Watched,
        attempt: Attempt,
    ) -> StepStatus:
        """It runs as itself: its log is its own, and another task tells its outputs."""
        if task.by_driver:
            return self._driver_failed(client, run_id, task, attempt)
        path = attempt.folder / "log.txt"
        if not path.exists():
            try:
                said = client.log(run_id, task.node)
            except Missing:
                since = watched.ended_at.setdefault(attempt.key, time.monotonic())
                if time.monotonic() < since + PATIENCE:
                    return StepStatus(attempt.key, "running", COPYING_BACK)
                said = b""
            except ConvectError as error:
                return self.unreachable([attempt], error)[0]
            write_whole(path, said)
            watched.ended_at.pop(attempt.key, None)
        if task.state == "failed":
            if seen.is_stopped:
                return StepStatus(attempt.key, "cancelled", STOPPED)
            return StepStatus(attempt.key, "failed", *_told_by(read_regular(path)))
        if not component_from_json(attempt.plan.components[attempt.step.component or ""]).outputs:
            write_outcome(attempt.folder, Ending("succeeded"), {"ended": time.time()})
            return StepStatus(attempt.key, "succeeded")
        told = self._task(seen, watched, attempt, results=True)
        if told.by_driver:
            return self._driver_failed(client, run_id, told, attempt)
        if told.state not in ("succeeded", "failed"):
            if seen.has_ended and (seen.is_stopped or self._is_settled(watched)):
                return _never_ran(seen, attempt)
            return StepStatus(attempt.key, "running", COPYING_BACK)
        return self._collect(client, run_id, seen, told, watched, attempt)

    def _collect(
        self,
        client: Client,
        run_id: str,
        seen: SeenRun,
        task: SeenTask,
        watched: _Watched,
        attempt: Attempt,
    ) -> StepStatus:
        """Bring home what the task has left."""
        if attempt.key in self._fetches:
            return self._fetched(attempt)
        if self._pods is not None and self._pods.still_reads(attempt.key):
            return StepStatus(attempt.key, "running", COPYING_BACK)
        since = watched.ended_at.setdefault(attempt.key, time.monotonic())
        try:
            data = client.log(run_id, task.node)
        except Missing as error:
            was_stopped = seen.is_stopped and task.state != "succeeded"
            if time.monotonic() < since + (STOPPED_PATIENCE if was_stopped else PATIENCE):
                return StepStatus(attempt.key, "running", COPYING_BACK)
            return self._without_log(run_id, seen, task, attempt, error.sentence)
        except ConvectError as error:
            return self.unreachable([attempt], error)[0]
        receiver = TaskReceiver(attempt)
        receiver.take(data + b"\n")
        if receiver.is_stored:
            coming = self._threads.submit(receiver.take_stored, self._store)
            self._fetches[attempt.key] = _Fetch(receiver, coming)
            return self._fetched(attempt)
        if attempt.step.kind == "component":
            _place_files(attempt)
        if (home := _outcome(attempt)) is not None:
            return home
        if seen.is_stopped:
            return StepStatus(attempt.key, "cancelled", STOPPED)
        return StepStatus(attempt.key, "failed", *_told_by(data))

    def _without_log(
        self, run_id: str, seen: SeenRun, task: SeenTask, attempt: Attempt, detail: str
    ) -> StepStatus:
        if seen.is_stopped and task.state != "succeeded":
            return StepStatus(attempt.key, "cancelled", STOPPED)
        if task.state == "failed":
            why = None if self._pods is None else self._pods.refusal(run_id, task.node)
            if why is not None:
                return StepStatus(attempt.key, "failed", why.reason, why.detail)
            reason = "It failed, and Kubeflow Pipelines has no log of it."
        else:
            reason = "Its results could not be copied back: Kubeflow Pipelines has no log of it."
        return StepStatus(attempt.key, "failed", reason, detail)

    def _fetched(self, attempt: Attempt) -> StepStatus:
        """What becomes of results that come from the object store; it is asked until it gives."""
        fetch, now = self._fetches[attempt.key], time.monotonic()
        if not fetch.under_way.done():
            return StepStatus(attempt.key, "running", COPYING_BACK)
        error = fetch.under_way.exception()
        assert error is None or isinstance(error, Exception)
        if error is None:
            if attempt.step.kind == "component":
                _place_files(attempt)
            return _outcome(attempt) or StepStatus(attempt.key, "failed", *_told_by(b""))
        if isinstance(error, Missing) or self._store is None:
            return StepStatus(attempt.key, "failed", f"Its results are lost: {explain(error)}")
        if not fetch.next_try:
            fetch.next_try = now + FETCH_PAUSE
            self._health.failed(_copying(attempt.key), error)
        elif now > fetch.next_try:
            coming = self._threads.submit(fetch.receiver.take_stored, self._store)
            self._fetches[attempt.key] = _Fetch(fetch.receiver, coming)
        reason = f"Its results cannot be copied back yet: {explain(error)}"
        return StepStatus(attempt.key, "running", reason)

    def _waiting_for_files(self, run_id: str, files: SeenTask, attempt: Attempt) -> StepStatus:
        pod = None if self._pods is None else self._pods.find(run_id, files.node)
        if pod is None or self._pods is None:
            return StepStatus(attempt.key, *_WORDS["pending"])
        why = self._pods.why_it_waits(pod)
        if why is None:
            return StepStatus(attempt.key, *_WORDS["absent"])
        return StepStatus(attempt.key, "starting", why.reason, why.detail)

    def _driver_failed(
        self, client: Client, run_id: str, task: SeenTask, attempt: Attempt
    ) -> StepStatus:
        try:
            detail = _told_by(client.log(run_id, task.node))[1]
        except ConvectError:
            detail = None
        words = "Kubeflow Pipelines could not prepare it"
        reason = f"{words}: {detail}." if detail else f"{words}."
        return StepStatus(attempt.key, "failed", reason, detail)


def _copying(key: Key) -> str:
    return f"Copying back the results of step {key[1]} of run {key[0]}"


def _outcome(attempt: Attempt) -> StepStatus | None:
    """What the runner has left, once all of it is here."""
    try:
        state = json.loads(read_regular(attempt.folder / "outputs.json"))["state"]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        state = "failed"  # Whoever reads it says what is wrong with it.
    return StepStatus(attempt.key, state if state in ENDED else "failed")


def _place_files(attempt: Attempt) -> None:
    """The files among the values of a component are named by where they are here."""
    path = attempt.folder / "outputs.json"
    try:
        outcome = json.loads(read_regular(path))
    except (OSError, ValueError):
        return
    for value in (outcome.get("values") or {}).values():
        if isinstance(value, dict) and set(value) == {"file", "size"}:
            name = str(value["file"])
            if name.startswith("files/") and ".." not in name.split("/"):
                value["file"] = str(attempt.folder / name)
    write_whole(path, json.dumps(outcome).encode())


def _never_ran(seen: SeenRun, attempt: Attempt) -> StepStatus:
    if seen.is_stopped:
        return StepStatus(attempt.key, "cancelled", STOPPED)
    reason = "Kubeflow Pipelines ended the run before it began."
    return StepStatus(attempt.key, "failed", reason, seen.error or None)


def _told_by(data: bytes) -> tuple[str, str | None]:
    """What a container that left no result has said last, without what others say around it."""
    lines = [line.strip() for line in data.decode(errors="replace").splitlines()]
    said = [line for line in lines if line and not _NOISE.match(line) and MARK not in line]
    errors = [_GLOG.sub("", line) for line in lines if re.match(r"^[EF]\d{4} ", line)]
    last = (said or errors or [""])[-1][:LARGEST_DETAIL].rstrip(".")
    words = "Its container ended without a result"
    return (f"{words}: {last}." if last else f"{words}."), last or None
