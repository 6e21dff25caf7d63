"""Attempts of several pods that work together: one for each node of a distributed step."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace

from ...background import Health
from ...pipeline.plan import Distributed
from ...runner.hang import hang_of
from ...runs.gather import Gathering, NodeStatus, first_failed, node_folder
from ...runs.model import ENDED
from ...safe_files import read_regular
from ...transfer.bundle import SendingTransfer
from ...transfer.receive import LogReceiver
from ...transfer.shared_volume import write_stop
from ...transfer.ways import Transfers
from ..base import Attempt
from .api import ApiError, ClusterUnreachable
from .cluster import Cluster, Observed
from .jobs import delete, job_of, kind_of, way_of, without_shared_volume
from .log_follower import LogFollower
from .objects import STEP, Diagnosis, is_over, seconds_of, step_container, terminated
from .operators import JOB, operator_of

Key = tuple[str, str, int]
Diagnose = Callable[[Attempt, Observed], Diagnosis]
COPYING_BACK = Diagnosis("running", "Its results are being copied back.")
ORDER = ("waiting", "queued", "starting", "running")


def nodes_of(attempt: Attempt) -> int:
    """How many pods it has."""
    return attempt.step.distributed.nodes if attempt.step.distributed else 1


class Gangs:
    """Called in threads, one call at a time for an attempt."""

    def __init__(
        self,
        cluster: Cluster,
        transfers: Transfers,
        diagnose: Diagnose,
        changed: Callable[[], None],
        health: Health,
    ) -> None:
        self._cluster = cluster
        self._transfers = transfers
        self._diagnose = diagnose
        """What one pod has come to, by what its runner left or by what the cluster says."""
        self._changed = changed
        self._health = health
        self._gatherings: dict[Key, Gathering] = {}
        self._followers: dict[Key, dict[int, LogFollower]] = {}

    def diagnose(self, attempt: Attempt, observed: Sequence[Observed]) -> Diagnosis | None:
        """What all have come to together; None when the attempt has ended, and its outcome says."""
        if attempt.handle is None:
            return Diagnosis("lost")  # Starting it again finds what is there.
        how = attempt.step.distributed or Distributed()
        if attempt.key not in self._gatherings:
            self._gatherings[attempt.key] = Gathering(attempt.folder, how)
        gathering = self._gatherings[attempt.key]
        found = [self._look(attempt, number, each) for number, each in enumerate(observed)]
        nodes = [_status(*each) for each in zip(found, observed, strict=True)]
        if all(each.state in ENDED for each in found):
            if all(each.state == "lost" for each in found):
                return found[0]
            gathering.conclude(nodes, stopped=_why_stopped(attempt))
            return None
        gathering.update(nodes)
        hang = hang_of(gathering.replicas)
        if hang is not None and how.on_hang == "stop" and not how.restarts:
            stop_nodes(attempt, "failed", hang)
            self._delete(attempt)
        elif how.is_elastic and found[0].state in ENDED:
            self._delete(attempt)  # All that took part have ended; others have come too late.
        elif (
            operator_of(kind_of(attempt)) is not JOB
            and not how.is_elastic
            and any(map(_has_broken, found))
        ):
            # An operator starts a deleted pod again, and lets the others wait for it.
            self._delete(attempt)
        diagnosis = together(found, gathering, how)
        return diagnosis if hang is None else replace(diagnosis, reason=hang)

    def _delete(self, attempt: Attempt) -> None:
        with contextlib.suppress(ApiError, ClusterUnreachable):  # the next look tries again
            plurals = reversed(operator_of(kind_of(attempt)).plurals)
            delete(self._cluster.api, plurals, job_of(attempt))

    def forget(self, key: Key) -> None:
        self._gatherings.pop(key, None)
        for follower in self._followers.pop(key, {}).values():
            follower.close()

    def close(self) -> None:
        for key in list(self._followers):
            self.forget(key)

    def _look(self, attempt: Attempt, number: int, observed: Observed) -> Diagnosis:
        own = replace(attempt, folder=node_folder(attempt.folder, number))
        diagnosis = self._diagnose(own, observed)
        if not without_shared_volume(attempt) or (own.folder / "outputs.json").exists():
            return diagnosis
        is_done = diagnosis.state in ENDED
        if is_done or diagnosis.state == "running":
            self._follow(own, number, observed)
        follower = self._followers.get(attempt.key, {}).get(number)
        if not is_done or follower is None:
            return diagnosis
        if not follower.done:
            return replace(COPYING_BACK, detail=follower.trouble)
        said = "\n".join(follower.reader.other_lines) or follower.trouble
        return replace(self._diagnose(own, observed), detail=diagnosis.detail or said)

    def _follow(self, own: Attempt, number: int, observed: Observed) -> None:
        """Read the log of a pod, and with it its results."""
        followers = self._followers.setdefault(own.key, {})
        counts = number == (own.step.distributed or Distributed()).outputs_node
        if number in followers or (observed.pod is None and not (counts and way_of(own) == "s3")):
            return
        transfer = self._transfers.of(way_of(own))
        assert isinstance(transfer, SendingTransfer)

        def begin() -> LogReceiver:
            # The other nodes keep no files, and what they say fits into a log.
            return transfer.fetch(own, own.folder) if counts else LogReceiver(own.folder)

        pods = self._cluster.pods
        pod = observed.pod["metadata"]["name"] if observed.pod else job_of(own)
        container = step_container(observed.pod["spec"])["name"] if observed.pod else STEP
        followers[number] = LogFollower(
            self._cluster.api,
            pod,
            container,
            begin,
            lambda: is_over(pods.now()[0].get(pod), container),
            self._changed,
            self._health,
        )
        followers[number].start()


def stop_nodes(attempt: Attempt, state: str, reason: str) -> None:
    """What the runner of each node finds when it is stopped."""
    for number in range(nodes_of(attempt)):
        with contextlib.suppress(OSError):
            write_stop(node_folder(attempt.folder, number), state, reason)


def together(found: Sequence[Diagnosis], gathering: Gathering, how: Distributed) -> Diagnosis:
    """An attempt is as far as the last of its pods, or of as many as it needs."""
    running = sum(each.state == "running" for each in found)
    if how.is_elastic and found[0].state == "running" and running >= how.least:
        if running == len(found):
            return found[0]
        others = next(each for each in found if each.state != "running")
        why = f": {others.reason}" if others.reason else "."
        return Diagnosis("running", f"It runs on {running} of {len(found)} nodes{why}")
    if (first := first_failed(gathering.replicas)) is not None:
        return Diagnosis("running", f"Rank {first['rank']} failed; the others are being stopped.")
    going = [each for each in found if each.state not in ENDED]
    last = min(going, key=lambda each: ORDER.index(each.state))
    behind = sum(each.state == last.state for each in going)
    if last.reason is None or behind == len(found) or last.state == "running":
        return last
    pods = "1 pod" if behind == 1 else f"{behind} pods"
    return replace(last, reason=f"{pods} of {len(found)}: {last.reason}")


def _has_broken(diagnosis: Diagnosis) -> bool:
    return diagnosis.state in ENDED and diagnosis.state != "succeeded"


def _status(diagnosis: Diagnosis, observed: Observed) -> NodeStatus:
    pod = observed.pod or observed.past_pod
    end = terminated(pod) if pod else None
    at = (end or {}).get("finishedAt")
    return NodeStatus(
        diagnosis.state,
        diagnosis.reason,
        pod["spec"].get("nodeName") if pod else None,
        end.get("exitCode") if end else None,
        seconds_of(at) if at else None,
    )


def _why_stopped(attempt: Attempt) -> str | None:
    try:
        stop = json.loads(read_regular(attempt.folder / "stop.json"))
    except (OSError, ValueError):
        return None
    return stop.get("reason") if stop.get("state") == "cancelled" else None
