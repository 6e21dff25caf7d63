"""A training job as it is in its file: made in the cluster, and followed to its end."""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import Conflict, ConvectError, Refused
from ...json_text import dumps
from ...pipeline.plan import Json
from ...pipeline.training.job_kinds import KINDS
from ...runner.step import REPLICA_LOGS, REPLICA_STATES
from ...safe_files import append_to, make_folder, write_whole
from .api import Api, ApiError, ClusterUnreachable, as_convect_error, read_pieces
from .explain import explain
from .jobs import MANAGED_BY, US
from .log_follower import SILENCE
from .objects import Object, condition, seconds_of, words_of

PAUSE = 1.0
_PREFIX = "training.kubeflow.org/"
_JOB_SET = "jobset.sigs.k8s.io/"
_INDEX = "batch.kubernetes.io/job-completion-index"
_TAGGED = re.compile(r"\[\d+,(\d+)\]<std(?:out|err)>: ?(.*)")
"""A line of mpirun that says which rank it is from."""


def ending(job: Object) -> tuple[bool, str] | None:
    """Whether it succeeded and what the operator says; None while it has not ended."""
    for kind in ("Succeeded", "Complete"):
        if found := condition(job, kind):
            return True, words_of(found)
    failed = condition(job, "Failed")
    return (False, words_of(failed)) if failed else None


def rank_of(job: Object, pod: Object) -> int | None:
    """None for a pod that only starts the others."""
    labels = pod["metadata"].get("labels") or {}
    if job["kind"] == "TrainJob":
        index = labels.get(_INDEX, "")
        return int(index) if labels.get(f"{_JOB_SET}replicatedjob-name") == "node" else None
    about = KINDS[job["kind"]]
    role = labels.get(f"{_PREFIX}replica-type") or labels.get(f"{_PREFIX}job-role") or ""
    if role.lower() == "launcher":
        return None
    before = 0
    for name in about.roles:
        spec = job["spec"][about.replicas].get(name)
        if name.lower() == role.lower():
            break
        if spec is not None and name != "Launcher":
            before += 1 if spec.get("replicas") is None else int(spec["replicas"])
    index = labels.get(f"{_PREFIX}replica-index", "0")
    return before + int(index)


def first_end(pods: list[Object]) -> tuple[Object, int] | None:
    """The pod whose container failed first, and its exit code."""
    ends = [
        (seconds_of(end["finishedAt"]), end["exitCode"], pod)
        for pod in pods
        for status in pod.get("status", {}).get("containerStatuses") or ()
        for end in [(status.get("state") or {}).get("terminated")]
        if end and end.get("exitCode") and end.get("finishedAt")
    ]
    if not ends:
        return None
    _, code, pod = min(ends, key=lambda each: each[0])
    return pod, code


def failed_end(pods: list[Object]) -> tuple[Object, int] | None:
    """The first pod that failed by itself; one that was told to stop has not."""
    return first_end(
        [
            pod
            for pod in pods
            if pod.get("status", {}).get("phase") == "Failed"
            and not pod["metadata"].get("deletionTimestamp")
        ]
    )


def replica_of(rank: int, pod: Object, now: float) -> dict[str, Json]:
    """What the page of a run shows of a rank."""
    diagnosis = explain(None, pod, now=now)
    state = _state(pod).get("state") or {}
    end = state.get("terminated") or {}
    begun = (state.get("running") or end).get("startedAt")
    facts = {
        "rank": rank,
        "state": "starting" if diagnosis.state == "queued" else diagnosis.state,
        "reason": diagnosis.reason,
        "node": pod["spec"].get("nodeName"),
        "exit_code": end.get("exitCode"),
        "started": seconds_of(begun) if begun else None,
        "ended": seconds_of(end["finishedAt"]) if end.get("finishedAt") else None,
    }
    return {name: fact for name, fact in facts.items() if fact is not None}


@dataclass(slots=True)
class JobRun:
    """One job in the cluster; `say` gets each line for the log."""

    api: Api
    job: Object
    say: Callable[[str], None]
    folder: Path | None = None
    """Of the attempt that this is, where the page of its run finds the ranks."""
    _written: Json = None
    _pods: dict[str, Object] = field(default_factory=dict)
    _readers: dict[str, threading.Thread] = field(default_factory=dict)
    _told: dict[str, str | None] = field(default_factory=dict)

    def run(self) -> int:
        """The exit code: 0 when the job succeeded. Whoever interrupts it has the job deleted."""
        try:
            self._make()
        except (ApiError, ClusterUnreachable) as error:
            raise self._refusal(error) from None
        try:
            return self._follow()
        except (KeyboardInterrupt, SystemExit):
            self._delete()
            raise

    @property
    def _name(self) -> str:
        return str(self.job["metadata"]["name"])

    @property
    def _title(self) -> str:
        return f"{self.job['kind']} {self._name}"

    def _path(self, name: str = "") -> str:
        plural = f"{self.job['kind'].lower()}s"
        space = self.job["metadata"].get("namespace") or self.api.namespace
        path = f"/apis/{self.job['apiVersion']}/namespaces/{space}/{plural}"
        return f"{path}/{name}" if name else path

    def _make(self) -> None:
        metadata = self.job["metadata"]
        labels = {**(metadata.get("labels") or {}), MANAGED_BY: US}
        body = {**self.job, "metadata": {**metadata, "labels": labels}}
        try:
            self.job = self.api.create(self._path(), body)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            self._make_way()
            self.job = self.api.create(self._path(), body)
        self.say(f"{self._title} was created.")

    def _make_way(self) -> None:
        """Delete one that we made before and that has ended."""
        there = self.api.get(self._path(self._name))
        is_ours = (there["metadata"].get("labels") or {}).get(MANAGED_BY) == US
        if not is_ours or ending(there) is None:
            raise Conflict(
                f"There is a {self._title} in the cluster already.",
                code="job-exists",
                hint="Delete it, or give this one another name.",
            )
        self._delete()
        while True:
            try:
                self.api.get(self._path(self._name))
            except ApiError as error:
                if error.status == 404:
                    return
                raise
            time.sleep(PAUSE)

    def _delete(self) -> None:
        self.api.delete(self._path(self._name), propagationPolicy="Background")

    def _refusal(self, error: ApiError | ClusterUnreachable) -> ConvectError:
        if isinstance(error, ApiError) and error.status == 404:
            return Refused(
                f"The cluster knows no {self.job['kind']} of {self.job['apiVersion']}.",
                code="no-operator",
                hint="Its operator has to be installed, or convert the job to a pipeline.",
            )
        return as_convect_error(error, "make training jobs", self.api.namespace)

    def _follow(self) -> int:
        end = None
        while end is None:
            time.sleep(PAUSE)
            try:
                found = self.api.get(self._path(self._name))
            except (ApiError, ClusterUnreachable) as error:
                if isinstance(error, ApiError) and error.status == 404:
                    self.say(f"{self._title} was deleted.")
                    return 1
                self._tell_trouble("training jobs", error)
                continue
            self._tell("training jobs", None)
            try:
                self._look(found)
                self._tell("pods", None)
            except (ApiError, ClusterUnreachable) as error:
                self._tell_trouble("pods", error)
            end = ending(found)
        self._wait_for_workers(found, end[0])
        for name, reader in self._readers.items():
            if _is_over(self._pods[name]):  # others may say more for ever
                reader.join(SILENCE)
        succeeded, words = end
        failed = failed_end(list(self._pods.values())) if succeeded else None
        if failed is not None:
            # Operators count some jobs as succeeded as soon as one of their pods has.
            who, code = self._who(failed[0]), failed[1]
            claim = f"The operator says that {self._title} succeeded"
            self.say(f"{claim}, but {who} exited with code {code}.")
            return 1
        self.say(self._sentence(succeeded, words))
        if not succeeded and any(not _is_over(pod) for pod in self._pods.values()):
            self._delete()  # The rest would go on, and nobody would look at it.
        return 0 if succeeded else 1

    def _wait_for_workers(self, found: Object, succeeded: bool) -> None:
        """A PyTorchJob has succeeded with its master, whatever its workers are doing."""
        while True:
            with contextlib.suppress(ApiError, ClusterUnreachable):
                going = [name for name in self._look(found) if not _is_over(self._pods[name])]
                if not (succeeded and going and found["kind"] == "PyTorchJob"):
                    return
                self._tell("workers", f"{self._title} succeeded; waiting for its other pods.")
            time.sleep(PAUSE)

    def _sentence(self, succeeded: bool, words: str) -> str:
        if succeeded:
            return f"{self._title} succeeded."
        first = first_end(list(self._pods.values()))
        if first is None:
            return f"{self._title} failed: {words}"
        pod, code = first
        who = self._who(pod)
        return f"{who[0].upper()}{who[1:]} exited with code {code}: {words}"

    def _who(self, pod: Object) -> str:
        rank = rank_of(self.job, pod)
        return str(pod["metadata"]["name"]) if rank is None else f"rank {rank}"

    def _keep(self) -> None:
        """Tell the page of the run what has become of each rank."""
        if self.folder is None:
            return
        now = time.time()
        found = {rank_of(self.job, pod): pod for pod in self._pods.values()}
        told = [replica_of(rank, pod, now) for rank, pod in found.items() if rank is not None]
        told.sort(key=lambda each: each["rank"])
        if told and told != self._written:
            with contextlib.suppress(OSError):
                write_whole(self.folder / REPLICA_STATES, dumps({"replicas": told}).encode())
                self._written = told

    def _hear(self, rank: int | None, line: str) -> None:
        """One line of a pod: into the log of all, and into that of its rank."""
        self.say(line if rank is None else f"[{rank}] {line}")
        if rank is None and (tagged := _TAGGED.fullmatch(line)):
            rank, line = int(tagged[1]), tagged[2]
        if rank is None or self.folder is None:
            return
        with contextlib.suppress(OSError):
            make_folder(self.folder / REPLICA_LOGS)
            path = self.folder / REPLICA_LOGS / f"{rank}.log"
            with os.fdopen(append_to(path), "ab") as file:
                file.write(f"{line}\n".encode())

    def _look(self, found: Object) -> list[str]:
        """Read the log of each pod, and tell what those that do not run wait for; their names."""
        label = f"{_JOB_SET}jobset-name" if found["kind"] == "TrainJob" else f"{_PREFIX}job-name"
        space = found["metadata"]["namespace"]
        path = self.api.path("pods", namespace=space)
        pods = self.api.list(path, labelSelector=f"{label}={self._name}")
        for pod in pods:
            name = pod["metadata"]["name"]
            self._pods[name] = pod
            if _has_begun(pod) and name not in self._readers:
                reader = threading.Thread(target=self._read, args=(name,), daemon=True)
                self._readers[name] = reader
                reader.start()
            elif not _has_begun(pod):
                reason = explain(None, pod, now=time.time()).reason
                self._tell(name, f"{name}: {reason}" if reason else None)
            if again := _restarts(pod):
                times = "once" if again == 1 else f"{again} times"
                self._tell(f"{name} again", f"{name} failed and was restarted {times}.")
        self._keep()
        return [pod["metadata"]["name"] for pod in pods]

    def _tell_trouble(self, what: str, error: ApiError | ClusterUnreachable) -> None:
        """The job continues meanwhile, and so does whoever follows it."""
        self._tell(what, as_convect_error(error, f"read {what}", self.api.namespace).sentence)

    def _tell(self, who: str, words: str | None) -> None:
        if words is not None and self._told.get(who) != words:
            self.say(words)
        self._told[who] = words

    def _read(self, name: str) -> None:
        pod = self._pods[name]
        rank = rank_of(self.job, pod)
        path = f"{self.api.path('pods', name, namespace=pod['metadata']['namespace'])}/log"
        container = pod["spec"]["containers"][0]["name"]
        said, begun = 0, _restarts(pod)
        while True:
            is_over = _is_over(self._pods[name])
            if _restarts(self._pods[name]) != begun:
                said, begun = 0, _restarts(self._pods[name])
            try:
                query = {"container": container, "follow": not is_over}
                with self.api.stream(path, SILENCE, **query) as response:
                    for number, line in enumerate(_lines(response), 1):
                        if number > said:
                            self._hear(rank, line)
                            said = number
            except (ApiError, ClusterUnreachable):
                pass  # Once it has ended there may be nothing left to read.
            if is_over:
                return
            time.sleep(PAUSE)


def _lines(response: Json) -> Iterator[str]:
    rest = b""
    for piece in read_pieces(response):
        *lines, rest = (rest + piece).split(b"\n")
        yield from (line.decode(errors="replace") for line in lines)
    if rest:
        yield rest.decode(errors="replace")


def _state(pod: Object) -> Json:
    found = pod.get("status", {}).get("containerStatuses") or [{}]
    return found[0]


def _has_begun(pod: Object) -> bool:
    state = _state(pod).get("state") or {}
    return "running" in state or "terminated" in state


def _is_over(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def _restarts(pod: Object) -> int:
    return int(_state(pod).get("restartCount") or 0)
