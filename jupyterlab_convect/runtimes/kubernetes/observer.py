"""Puts together what the cluster says of attempts and what they left in their folders."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ...background import Health
from ...background import explain as explain_error
from ...errors import ConvectError
from ...runner.outcome import INTERRUPTED
from ...runner.shared_folder import waits_for
from ...runs.attempts import read_outcome
from ...runs.model import ENDED, State
from ...safe_files import read_regular, write_whole
from ...text import duration_text
from ...transfer.bundle import SendingTransfer
from ...transfer.receive import LogReceiver
from ...transfer.shared_volume import write_stop
from ...transfer.ways import Transfers
from ..base import Attempt, StepStatus
from ..progress import Progresses
from . import components, fit
from .api import ApiError, ClusterUnreachable, as_convect_error, read_pieces
from .cluster import Cluster, Observed
from .explain import explain, explain_gone, missing_secret
from .gang import COPYING_BACK, Gangs, nodes_of
from .jobs import delete, job_of, kind_of, way_of, without_shared_volume
from .log_follower import LogFollower, LogReader, PlainLog
from .manifests import SEND
from .objects import STEP, Diagnosis, Object, is_over, record_of, seconds_of, step_status
from .operators import operator_of
from .queues import QueuePosition, queue_of
from .secret_digests import DIGESTS, SecretDigests

Key = tuple[str, str, int]

NOT_COPIED = "Its results could not be copied back."
GONE_WITH_RESULTS = "Its pod was deleted before its results were copied back."
NOT_HIDDEN = "Its results were not kept, because its secrets could not be hidden in them."
RECORD = "cluster.json"
OWN_SECRET = 300.0
"""Seconds for which a pod may wait for the Secret that we make for it."""
FIRST_LOOK = 1.0
"""Seconds that the first look at what an operator has may take."""
SILENT = 10.0
"""Seconds after which what is known of a cluster that cannot be reached counts as old."""


class Observer:
    """Called in threads, one call at a time for an attempt."""

    def __init__(
        self,
        cluster: Cluster,
        transfers: Transfers,
        patience: float,
        changed: Callable[[], None],
        health: Health,
    ) -> None:
        self._cluster = cluster
        self._transfers = transfers
        self._patience = patience
        self._changed = changed
        self._health = health
        self._told: dict[Key, StepStatus] = {}
        self._progresses = Progresses()
        self._followers: dict[Key, dict[str, LogFollower]] = {}
        self._permanent: dict[Key, float] = {}
        self._digests: dict[Key, SecretDigests | None] = {}
        self._forbidden: dict[Key, str] = {}
        """Why what hides the secrets of a step cannot be read."""
        self._kept: dict[Key, str] = {}
        self._gangs = Gangs(cluster, transfers, self._of_one, changed, health)

    def observe(self, attempts: Sequence[Attempt]) -> list[StepStatus]:
        observed = self._cluster.look(
            (job_of(each), nodes_of(each), operator_of(kind_of(each))) for each in attempts
        )
        return [self._observe(attempt, observed[job_of(attempt)]) for attempt in attempts]

    def _observe(self, attempt: Attempt, observed: Sequence[Observed]) -> StepStatus:
        """Whatever is wrong with one attempt is told with it, and spoils no other."""
        name = f"Watching step {attempt.step.id} of run {attempt.run}"
        try:
            status = self._status(attempt, observed)
        except Exception as error:
            self._health.failed(name, error)
            known = self._told.get(attempt.key) or unknown(attempt)
            return replace(known, reason=f"Its state cannot be read: {explain_error(error)}")
        self._health.recovered(name)
        self._told[attempt.key] = status
        return status

    def clean_up(self, attempt: Attempt) -> None:
        """Delete its Job; if that fails, time does."""
        with contextlib.suppress(ApiError, ClusterUnreachable):
            plurals = reversed(operator_of(kind_of(attempt)).plurals)
            delete(self._cluster.api, plurals, job_of(attempt))

    def forget(self, key: Key) -> None:
        self._progresses.forget(key)
        self._permanent.pop(key, None)
        self._digests.pop(key, None)
        self._forbidden.pop(key, None)
        self._kept.pop(key, None)
        self._told.pop(key, None)
        self._health.recovered(f"Watching step {key[1]} of run {key[0]}")
        self._gangs.forget(key)
        for follower in self._followers.pop(key, {}).values():
            follower.close()

    def close(self) -> None:
        self._gangs.close()
        for key in list(self._followers):
            self.forget(key)

    def _status(self, attempt: Attempt, pods: Sequence[Observed]) -> StepStatus:
        observed = pods[0]
        if untold := self._untold(attempt):
            return untold
        diagnosis = self._outcome(attempt, observed) or (
            self._in_cluster(attempt, observed)
            if attempt.step.distributed is None
            else self._of_all(attempt, pods)
        )
        if diagnosis.state not in ENDED and (trouble := self._silent()):
            diagnosis = replace(diagnosis, reason=unreachable(trouble[1]), detail=trouble[0])
        elif diagnosis.permanent:
            diagnosis = self._lose_patience(attempt, diagnosis)
        else:
            self._permanent.pop(attempt.key, None)
        self._keep_record(attempt, observed, diagnosis.state)
        if diagnosis.state == "running" and (waits := waits_for(attempt.folder)):
            diagnosis = replace(diagnosis, state="queued", reason=waits)
        if diagnosis.state in ENDED and observed.job and observed.job["spec"].get("suspend"):
            self.clean_up(attempt)  # Its queue would let it in once more.
        progress = self._progresses.read(attempt) if diagnosis.state == "running" else None
        return StepStatus(
            attempt.key, diagnosis.state, diagnosis.reason, diagnosis.detail, progress
        )

    def _untold(self, attempt: Attempt) -> StepStatus | None:
        """While the objects of an operator have not been listed yet."""
        operator = operator_of(kind_of(attempt))
        made = self._cluster.made(operator)
        if made.synced.wait(FIRST_LOOK):
            return None
        why, since = made.trouble or ("", time.time())
        return replace(unknown(attempt), reason=unreachable(since) if why else None, detail=why)

    def _keep_record(self, attempt: Attempt, observed: Observed, state: State) -> None:
        """What the cluster knows of the pod, once it runs and at its end: it forgets."""
        pod = observed.pod or observed.past_pod
        told = "ended" if state in ENDED else state
        if pod is None or told not in ("running", "ended") or self._kept.get(attempt.key) == told:
            return
        self._kept[attempt.key] = told
        events, api = observed.events, self._cluster.api
        if self._cluster.trouble() is None:
            with contextlib.suppress(ApiError, ClusterUnreachable):
                chosen = f"involvedObject.uid={pod['metadata']['uid']}"
                events = api.list(api.path("events"), fieldSelector=chosen) or events
        with contextlib.suppress(OSError):
            text = json.dumps(record_of(pod, events), ensure_ascii=False, indent=1)
            write_whole(attempt.folder / RECORD, text.encode())

    def _outcome(self, attempt: Attempt, observed: Observed) -> Diagnosis | None:
        """What the runner left is the truth, and there before the cluster knows."""
        try:
            outcome = read_outcome(attempt.folder)
        except ConvectError:
            return None
        if outcome is None:
            return None
        if outcome.reason == INTERRUPTED:
            return _why_interrupted(attempt, observed)
        return Diagnosis(outcome.state, outcome.reason)

    def _in_cluster(self, attempt: Attempt, observed: Observed) -> Diagnosis:
        if attempt.handle is None:
            return Diagnosis("lost")  # Starting it again finds what is there.
        diagnosis = self._explain(attempt, observed)
        if attempt.step.kind == "component":
            return self._component(attempt, observed, diagnosis)
        return (
            self._once_copied_back(attempt, observed.pod, diagnosis)
            if without_shared_volume(attempt)
            else diagnosis
        )

    def _explain(self, attempt: Attempt, observed: Observed) -> Diagnosis:
        """What the cluster says of a Job and one of its pods."""
        if observed.job is None and observed.pod is None:
            return explain_gone(observed.past_job, observed.past_pod)
        why = self._why_it_does_not_fit(attempt, observed.pod)
        position = self._queue_position(observed)
        return explain(observed.job, observed.pod, observed.events, why, time.time(), position)

    def _of_all(self, attempt: Attempt, pods: Sequence[Observed]) -> Diagnosis:
        diagnosis = self._gangs.diagnose(attempt, pods) or self._outcome(attempt, pods[0])
        return diagnosis or Diagnosis("lost")

    def _of_one(self, attempt: Attempt, observed: Observed) -> Diagnosis:
        return self._outcome(attempt, observed) or self._explain(attempt, observed)

    def _why_it_does_not_fit(self, attempt: Attempt, pod: Object | None) -> str | None:
        """Our own words for a pod that finds no node."""
        if pod is None or pod["spec"].get("nodeName"):
            return None
        known = self._cluster.latest_capacity()
        if known is None or known.nodes is None:
            return None
        gpu = attempt.step.resources.gpu
        needs = fit.needs_of(pod["spec"], gpu.type if gpu else None)
        return fit.judge_nodes(needs, known.nodes).sentence

    def _queue_position(self, observed: Observed) -> QueuePosition | None:
        if (
            observed.job is None
            or observed.pod is not None
            or not observed.job["spec"].get("suspend")
        ):
            return None
        known = self._cluster.latest_capacity()
        queues = known.queues if known else None
        return (queues.positions or {}).get(observed.job["metadata"]["uid"]) if queues else None

    def _once_copied_back(
        self, attempt: Attempt, pod: Object | None, diagnosis: Diagnosis
    ) -> Diagnosis:
        """Without a shared volume, nothing has ended before its results are copied back."""
        over = diagnosis.state in ENDED
        if over or diagnosis.state == "running":
            self._receive(attempt, pod, STEP, attempt.folder)
        if not over:
            return diagnosis
        if self._is_unread(attempt):
            return self._copying_back(attempt)
        if forbidden := self._why_forbidden(attempt):
            return replace(diagnosis, state="failed", reason=f"{NOT_COPIED} {forbidden}")
        return replace(diagnosis, detail=diagnosis.detail or self._said(attempt))

    def _component(self, attempt: Attempt, observed: Observed, diagnosis: Diagnosis) -> Diagnosis:
        """Nobody of ours is there: what it prints is followed, and its end is written here."""
        folder, secret = attempt.folder, bool(attempt.step.secrets)
        over = diagnosis.state in ENDED
        if observed.pod is not None and (over or diagnosis.state == "running"):
            digests = self._secret_digests(attempt, observed.pod)
            if digests is not None or not secret:
                name = observed.pod["metadata"]["name"]
                self._follow(attempt, name, STEP, lambda: PlainLog(folder / "log.txt", digests))
        if not over:
            return self._in_time(attempt, observed.pod, diagnosis)
        pod, digests = observed.pod or observed.past_pod, self._digests.get(attempt.key)
        if pod is None and diagnosis.state == "lost":
            return diagnosis
        succeeded, sent = diagnosis.state == "succeeded", without_shared_volume(attempt)
        if succeeded and sent:
            self._receive(attempt, observed.pod, SEND, folder / "work")
        untold = secret and attempt.key not in self._digests and observed.pod is not None
        if self._is_unread(attempt) or (succeeded and untold):
            return self._copying_back(attempt)
        received = self._receiver(attempt)
        lost = None
        if forbidden := self._why_forbidden(attempt):
            lost = f"{NOT_COPIED} {forbidden}"
        elif sent and (received is None or not received.ended):
            lost = (received and received.trouble) or GONE_WITH_RESULTS
        elif secret and digests is None:
            lost = NOT_HIDDEN
        missing = received.missing if received else ()
        components.conclude(attempt, diagnosis, pod, digests, missing, lost)
        return replace(self._outcome(attempt, observed) or diagnosis, detail=diagnosis.detail)

    def _secret_digests(self, attempt: Attempt, pod: Object) -> SecretDigests | None:
        """How to hide the secrets; without it nothing of the log is kept."""
        if attempt.step.secrets and attempt.key not in self._digests:
            api = self._cluster.api
            path = f"{api.path('pods', pod['metadata']['name'])}/log"
            try:
                with api.stream(path, SILENT, container=DIGESTS) as response:
                    told = b"".join(read_pieces(response))
                    self._digests[attempt.key] = SecretDigests.read(attempt.folder, told)
            except (ApiError, ClusterUnreachable) as error:
                if isinstance(error, ApiError) and error.status == 403 and is_over(pod, STEP):
                    why = as_convect_error(error, "read logs", api.namespace).sentence
                    self._forbidden[attempt.key] = why
                    self._digests[attempt.key] = None
        return self._digests.get(attempt.key)

    def _why_forbidden(self, attempt: Attempt) -> str | None:
        followers = self._followers.get(attempt.key, {}).values()
        told = (self._forbidden.get(attempt.key), *(each.forbidden for each in followers))
        return next((why for why in told if why), None)

    def _in_time(self, attempt: Attempt, pod: Object | None, diagnosis: Diagnosis) -> Diagnosis:
        """Stop a component whose time is over, as a runner does by itself."""
        limit, state = attempt.step.timeout, step_status(pod).get("state", {}) if pod else {}
        begun = state.get("running", {}).get("startedAt")
        if limit and begun and time.time() > seconds_of(begun) + limit:
            write_stop(attempt.folder, "failed", f"Timed out after {duration_text(limit)}.")
            self.clean_up(attempt)
        return diagnosis

    def _is_unread(self, attempt: Attempt) -> bool:
        """Whether something of its logs is still on its way."""
        return not all(item.done for item in self._followers.get(attempt.key, {}).values())

    def _copying_back(self, attempt: Attempt) -> Diagnosis:
        followers = self._followers.get(attempt.key, {}).values()
        return replace(COPYING_BACK, detail=next((f.trouble for f in followers if f.trouble), None))

    def _said(self, attempt: Attempt) -> str | None:
        followers = self._followers.get(attempt.key, {}).values()
        return next(
            (text for f in followers if (text := "\n".join(f.reader.other_lines) or f.trouble)),
            None,
        )

    def _receive(self, attempt: Attempt, pod: Object | None, container: str, folder: Path) -> None:
        """Have the results brought into the folder, while the pod says what happens."""
        way = way_of(attempt)
        if pod is None and way != "s3":
            return  # They were in its log.
        transfer = self._transfers.of(way)
        if not isinstance(transfer, SendingTransfer):
            return

        def begin() -> LogReceiver:
            return transfer.fetch(attempt, folder, outputs_only=container == SEND)

        name = pod["metadata"]["name"] if pod else job_of(attempt)
        self._follow(attempt, name, container, begin)

    def _receiver(self, attempt: Attempt) -> LogReceiver | None:
        """What came back of the outputs of a component, if its log could be read at all."""
        follower = self._followers.get(attempt.key, {}).get(SEND)
        reader = follower.reader if follower else None
        return reader if isinstance(reader, LogReceiver) else None

    def _follow(
        self, attempt: Attempt, pod: str, container: str, begin: Callable[[], LogReader]
    ) -> None:
        followers = self._followers.setdefault(attempt.key, {})
        if container in followers:
            return
        pods = self._cluster.pods
        followers[container] = LogFollower(
            self._cluster.api,
            pod,
            container,
            begin,
            lambda: is_over(pods.now()[0].get(pod), container),
            self._changed,
            self._health,
        )
        followers[container].start()

    def _lose_patience(self, attempt: Attempt, diagnosis: Diagnosis) -> Diagnosis:
        since = self._permanent.setdefault(attempt.key, time.monotonic())
        if time.monotonic() - since < patience_with(attempt, diagnosis, self._patience):
            return diagnosis
        self.clean_up(attempt)
        return replace(diagnosis, state="failed", permanent=False)

    def _silent(self) -> tuple[str, float] | None:
        """Why and since when the cluster cannot be reached, if that is more than a moment."""
        trouble = self._cluster.trouble()
        return trouble if trouble and time.time() - trouble[1] >= SILENT else None


def unknown(attempt: Attempt) -> StepStatus:
    """An attempt of which nothing has been heard yet: as far as its folder tells."""
    return StepStatus(attempt.key, "running" if (attempt.folder / RECORD).exists() else "starting")


def patience_with(attempt: Attempt, diagnosis: Diagnosis, patience: float) -> float:
    """Its own Secret is made right after its Job: on a busy cluster the pod may be quicker."""
    # Of several pods it is said how many wait for it.
    ours = (diagnosis.reason or "").endswith(missing_secret(job_of(attempt)))
    return max(patience, OWN_SECRET) if ours else patience


def unreachable(since: float) -> str:
    """Whatever else is said of an attempt then is what was known last."""
    at = time.strftime("%H:%M:%S", time.localtime(since))
    return f"The cluster has been unreachable since {at}; this is the last known state."


def _why_interrupted(attempt: Attempt, observed: Observed) -> Diagnosis:
    """The runner only knows that it was stopped; who asked, or the cluster, knows why."""
    try:
        stop = json.loads(read_regular(attempt.folder / "stop.json"))
    except (OSError, ValueError):
        stop = {}
    pod = observed.pod or observed.past_pod
    if stop.get("state") == "cancelled" or stop.get("reason") not in (None, INTERRUPTED):
        state: State = "cancelled" if stop.get("state") == "cancelled" else "failed"
        return Diagnosis(state, stop.get("reason"))
    if observed.job and observed.job["spec"].get("suspend") and (queue := queue_of(observed.job)):
        return Diagnosis("failed", f"The queue {queue} reclaimed its quota.")
    found = explain_gone(None, pod) if pod is not None else None
    return Diagnosis("failed", found.reason if found and found.detail else INTERRUPTED)
