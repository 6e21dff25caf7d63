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
from ...pipeline.plan import Json
from ...run_files import read_regular
from ...runner.outcome import duration
from ...runner.saving import write_whole
from ...runner.turns import waits_for
from ...runs.model import ENDED, State
from ..base import Attempt, StepStatus
from ..progress import Progresses
from . import components, fit
from .api import ApiError, Unreachable, as_convect_error, read_pieces
from .cluster import Cluster, Seen
from .delivery import INTERRUPTED, write_stop
from .explain import explain, explain_gone
from .fingerprints import GUARD, Fingerprints
from .follower import Follower, Reading
from .homecoming import Homecoming, PlainLog
from .jobs import delete_job, has_travelled, job_of
from .manifests import CARRIER
from .objects import STEP, Finding, Object, record_of, seconds_of, statuses, step_status
from .queues import Place, queue_of

Key = tuple[str, str, int]

ON_THE_WAY = Finding("running", "Its results are being copied back.")
NOT_COPIED = "Its results could not be copied back."
GONE_WITH_RESULTS = "Its pod was deleted before its results were copied back."
NOT_HIDDEN = "Its results were not kept, because its secrets could not be hidden in them."
RECORD = "cluster.json"
SILENT = 10.0
"""Seconds after which what is known of a cluster that cannot be reached counts as old."""


class Observer:
    """Called in threads, one call at a time for an attempt."""

    def __init__(
        self, cluster: Cluster, patience: float, changed: Callable[[], None], health: Health
    ) -> None:
        self._cluster = cluster
        self._patience = patience
        self._changed = changed
        self._health = health
        self._told: dict[Key, StepStatus] = {}
        self._progresses = Progresses()
        self._followers: dict[Key, dict[str, Follower]] = {}
        self._hopeless: dict[Key, float] = {}
        self._marks: dict[Key, Fingerprints | None] = {}
        self._forbidden: dict[Key, str] = {}
        """Why what hides the secrets of a step cannot be read."""
        self._kept: dict[Key, str] = {}

    def observe(self, attempts: Sequence[Attempt]) -> list[StepStatus]:
        seen = self._cluster.look(job_of(attempt) for attempt in attempts)
        return [self._observe(attempt, seen[job_of(attempt)]) for attempt in attempts]

    def _observe(self, attempt: Attempt, seen: Seen) -> StepStatus:
        """Whatever is wrong with one attempt is told with it, and spoils no other."""
        name = f"Watching step {attempt.step.id} of run {attempt.run}"
        try:
            status = self._status(attempt, seen)
        except Exception as error:
            self._health.failed(name, error)
            known = self._told.get(attempt.key) or unknown(attempt)
            return replace(known, reason=f"Its state cannot be read: {explain_error(error)}")
        self._health.recovered(name)
        self._told[attempt.key] = status
        return status

    def clean_up(self, attempt: Attempt) -> None:
        """Delete its Job; if that fails, time does."""
        with contextlib.suppress(ApiError, Unreachable):
            delete_job(self._cluster.api, job_of(attempt))

    def forget(self, key: Key) -> None:
        self._progresses.forget(key)
        self._hopeless.pop(key, None)
        self._marks.pop(key, None)
        self._forbidden.pop(key, None)
        self._kept.pop(key, None)
        self._told.pop(key, None)
        self._health.recovered(f"Watching step {key[1]} of run {key[0]}")
        for follower in self._followers.pop(key, {}).values():
            follower.close()

    def close(self) -> None:
        for key in list(self._followers):
            self.forget(key)

    def _status(self, attempt: Attempt, seen: Seen) -> StepStatus:
        finding = self._outcome(attempt, seen) or self._in_cluster(attempt, seen)
        if finding.state not in ENDED and (trouble := self._silent()):
            finding = replace(finding, reason=unreachable(trouble[1]), detail=trouble[0])
        elif finding.hopeless:
            finding = self._lose_patience(attempt, finding)
        else:
            self._hopeless.pop(attempt.key, None)
        self._keep_record(attempt, seen, finding.state)
        if finding.state == "running" and (waits := waits_for(attempt.folder)):
            finding = replace(finding, state="queued", reason=waits)
        if finding.state in ENDED and seen.job and seen.job["spec"].get("suspend"):
            self.clean_up(attempt)  # Its queue would let it in once more.
        progress = self._progresses.read(attempt) if finding.state == "running" else None
        return StepStatus(attempt.key, finding.state, finding.reason, finding.detail, progress)

    def _keep_record(self, attempt: Attempt, seen: Seen, state: State) -> None:
        """What the cluster knows of the pod, once it runs and at its end: it forgets."""
        pod = seen.pod or seen.was_pod
        told = "ended" if state in ENDED else state
        if pod is None or told not in ("running", "ended") or self._kept.get(attempt.key) == told:
            return
        self._kept[attempt.key] = told
        events, api = seen.events, self._cluster.api
        if self._cluster.trouble() is None:
            with contextlib.suppress(ApiError, Unreachable):
                chosen = f"involvedObject.uid={pod['metadata']['uid']}"
                events = api.list(api.place("events"), fieldSelector=chosen) or events
        with contextlib.suppress(OSError):
            text = json.dumps(record_of(pod, events), ensure_ascii=False, indent=1)
            write_whole(attempt.folder / RECORD, text.encode())

    def _outcome(self, attempt: Attempt, seen: Seen) -> Finding | None:
        """What the runner left is the truth, and there before the cluster knows."""
        path = attempt.folder / "outputs.json"
        try:
            outcome = json.loads(read_regular(path))
            if outcome.get("reason") == INTERRUPTED:
                _tell_why(path, outcome, seen)
            return Finding(outcome["state"], outcome.get("reason"))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def _in_cluster(self, attempt: Attempt, seen: Seen) -> Finding:
        if attempt.handle is None:
            return Finding("lost")  # Starting it again finds what is there.
        if seen.job is None and seen.pod is None:
            finding = explain_gone(seen.was_job, seen.was_pod)
        else:
            why = self._why_it_does_not_fit(attempt, seen.pod)
            place = self._place_in_queue(seen)
            finding = explain(seen.job, seen.pod, seen.events, why, time.time(), place)
        if attempt.step.kind == "component":
            return self._component(attempt, seen, finding)
        return self._once_home(attempt, seen.pod, finding) if has_travelled(attempt) else finding

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

    def _place_in_queue(self, seen: Seen) -> Place | None:
        if seen.job is None or seen.pod is not None or not seen.job["spec"].get("suspend"):
            return None
        known = self._cluster.latest_capacity()
        line = known.line if known else None
        return (line.places or {}).get(seen.job["metadata"]["uid"]) if line else None

    def _once_home(self, attempt: Attempt, pod: Object | None, finding: Finding) -> Finding:
        """Without a shared volume, nothing has ended before its results are home."""
        over = finding.state in ENDED
        if pod is not None and (over or finding.state == "running"):
            self._follow(attempt, pod, STEP, lambda: Homecoming(attempt.folder))
        if not over:
            return finding
        if self._is_unread(attempt):
            return self._on_the_way(attempt)
        if forbidden := self._why_forbidden(attempt):
            return replace(finding, state="failed", reason=f"{NOT_COPIED} {forbidden}")
        return replace(finding, detail=finding.detail or self._said(attempt))

    def _component(self, attempt: Attempt, seen: Seen, finding: Finding) -> Finding:
        """Nobody of ours is there: what it prints is followed, and its end is written here."""
        folder, secret = attempt.folder, bool(attempt.step.secrets)
        over = finding.state in ENDED
        if seen.pod is not None and (over or finding.state == "running"):
            marks = self._fingerprints(attempt, seen.pod)
            if marks is not None or not secret:
                self._follow(attempt, seen.pod, STEP, lambda: PlainLog(folder / "log.txt", marks))
        if not over:
            return self._in_time(attempt, seen.pod, finding)
        pod, marks = seen.pod or seen.was_pod, self._marks.get(attempt.key)
        if pod is None and finding.state == "lost":
            return finding
        succeeded, carried = finding.state == "succeeded", has_travelled(attempt)
        if succeeded and carried and seen.pod is not None:
            home = Path(folder, "work")
            self._follow(attempt, seen.pod, CARRIER, lambda: Homecoming(home, outputs_only=True))
        untold = secret and attempt.key not in self._marks and seen.pod is not None
        if self._is_unread(attempt) or (succeeded and untold):
            return self._on_the_way(attempt)
        home_again = self._homecoming(attempt)
        lost = None
        if forbidden := self._why_forbidden(attempt):
            lost = f"{NOT_COPIED} {forbidden}"
        elif carried and (home_again is None or not home_again.ended):
            lost = GONE_WITH_RESULTS
        elif secret and marks is None:
            lost = NOT_HIDDEN
        missing = home_again.missing if home_again else ()
        components.conclude(attempt, finding, pod, marks, missing, lost)
        return replace(self._outcome(attempt, seen) or finding, detail=finding.detail)

    def _fingerprints(self, attempt: Attempt, pod: Object) -> Fingerprints | None:
        """How to hide the secrets; without it nothing of the log is kept."""
        if attempt.step.secrets and attempt.key not in self._marks:
            api = self._cluster.api
            path = f"{api.place('pods', pod['metadata']['name'])}/log"
            try:
                with api.stream(path, SILENT, container=GUARD) as response:
                    told = b"".join(read_pieces(response))
                    self._marks[attempt.key] = Fingerprints.read(attempt.folder, told)
            except (ApiError, Unreachable) as error:
                if isinstance(error, ApiError) and error.status == 403 and _is_over(pod, STEP):
                    why = as_convect_error(error, "read logs", api.namespace).sentence
                    self._forbidden[attempt.key] = why
                    self._marks[attempt.key] = None
        return self._marks.get(attempt.key)

    def _why_forbidden(self, attempt: Attempt) -> str | None:
        followers = self._followers.get(attempt.key, {}).values()
        told = (self._forbidden.get(attempt.key), *(each.forbidden for each in followers))
        return next((why for why in told if why), None)

    def _in_time(self, attempt: Attempt, pod: Object | None, finding: Finding) -> Finding:
        """Stop a component whose time is over, as a runner does by itself."""
        limit, state = attempt.step.timeout, step_status(pod).get("state", {}) if pod else {}
        begun = state.get("running", {}).get("startedAt")
        if limit and begun and time.time() > seconds_of(begun) + limit:
            write_stop(attempt.folder, "failed", f"Timed out after {duration(limit)}.")
            self.clean_up(attempt)
        return finding

    def _is_unread(self, attempt: Attempt) -> bool:
        """Whether something of its logs is still on its way."""
        return not all(item.done for item in self._followers.get(attempt.key, {}).values())

    def _on_the_way(self, attempt: Attempt) -> Finding:
        followers = self._followers.get(attempt.key, {}).values()
        return replace(ON_THE_WAY, detail=next((f.trouble for f in followers if f.trouble), None))

    def _said(self, attempt: Attempt) -> str | None:
        followers = self._followers.get(attempt.key, {}).values()
        return next(
            (text for f in followers if (text := "\n".join(f.reading.noise) or f.trouble)), None
        )

    def _homecoming(self, attempt: Attempt) -> Homecoming | None:
        """What came back of the outputs of a component, if its log could be read at all."""
        follower = self._followers.get(attempt.key, {}).get(CARRIER)
        reading = follower.reading if follower else None
        return reading if isinstance(reading, Homecoming) else None

    def _follow(
        self, attempt: Attempt, pod: Object, container: str, begin: Callable[[], Reading]
    ) -> None:
        followers = self._followers.setdefault(attempt.key, {})
        if container in followers:
            return
        name, pods = pod["metadata"]["name"], self._cluster.pods
        followers[container] = Follower(
            self._cluster.api,
            name,
            container,
            begin,
            lambda: _is_over(pods.now()[0].get(name), container),
            self._changed,
            self._health,
        )
        followers[container].start()

    def _lose_patience(self, attempt: Attempt, finding: Finding) -> Finding:
        since = self._hopeless.setdefault(attempt.key, time.monotonic())
        if time.monotonic() - since < self._patience:
            return finding
        self.clean_up(attempt)
        return replace(finding, state="failed", hopeless=False)

    def _silent(self) -> tuple[str, float] | None:
        """Why and since when the cluster cannot be reached, if that is more than a moment."""
        trouble = self._cluster.trouble()
        return trouble if trouble and time.time() - trouble[1] >= SILENT else None


def unknown(attempt: Attempt) -> StepStatus:
    """An attempt of which nothing has been heard yet: as far as its folder tells."""
    return StepStatus(attempt.key, "running" if (attempt.folder / RECORD).exists() else "starting")


def unreachable(since: float) -> str:
    """Whatever else is said of an attempt then is what was known last."""
    at = time.strftime("%H:%M:%S", time.localtime(since))
    return f"The cluster has been unreachable since {at}; this is the last known state."


def _is_over(pod: Object | None, container: str) -> bool:
    if pod is None or pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return True
    states = {item.get("name"): item.get("state", {}) for item in statuses(pod)}
    return "terminated" in states.get(container, {})


def _tell_why(path: Path, outcome: Json, seen: Seen) -> None:
    """The runner only knows that it was stopped; who asked, or the cluster, knows why."""
    try:
        stop = json.loads(read_regular(path.with_name("stop.json")))
    except (OSError, ValueError):
        stop = {}
    pod = seen.pod or seen.was_pod
    if stop.get("state") == "cancelled":
        outcome |= {"state": "cancelled", "reason": stop.get("reason")}
    elif seen.job and seen.job["spec"].get("suspend") and (queue := queue_of(seen.job)):
        outcome["reason"] = f"The queue {queue} reclaimed its quota."
    elif pod is not None and (found := explain_gone(None, pod)).detail:
        outcome["reason"] = found.reason
    else:
        return
    write_whole(path, json.dumps(outcome, ensure_ascii=False).encode())
