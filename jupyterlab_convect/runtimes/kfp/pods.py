"""The pods of runs, where the cluster lets us see them: why they wait, and what they say."""

from __future__ import annotations

import time
from collections.abc import Callable

from ...background import Health
from ...errors import ConvectError
from ...transfer.receive import LogReceiver
from ..kubernetes.api import Api, ApiError, ClusterUnreachable, connect
from ..kubernetes.explain import pending, refused_pod
from ..kubernetes.log_follower import LogFollower
from ..kubernetes.objects import Diagnosis, Object, statuses

Key = tuple[str, str, int]
FRESH, SELDOM, AWAY = 2.0, 10.0, 60.0
"""Seconds for which a look at pods is good, and one at a workflow, which is large; and until a
cluster that did not let us look is asked again."""
LATE = 15.0
"""Seconds for which a log may be read to its end after that of its task."""
NODE = "workflows.argoproj.io/node-id"
CONTAINER = "main"


class Pods:
    """Called by one thread at a time. What cannot be seen is just not known."""

    def __init__(self, namespace: str, changed: Callable[[], None], health: Health) -> None:
        self._namespace = namespace
        self._changed = changed
        self._health = health
        self._api: Api | None = None
        self._next_try = 0.0
        self._looks: dict[str, tuple[float, dict[str, Object]]] = {}
        self._messages: dict[str, tuple[float, dict[str, str]]] = {}
        self._followers: dict[Key, LogFollower] = {}
        self._ended: dict[Key, float] = {}

    def find(self, run_id: str, node: str) -> Object | None:
        """The pod of a node of Argo's graph."""
        at, found = self._looks.get(run_id, (0.0, {}))
        now = time.monotonic()
        if now > at + FRESH and now >= self._next_try:
            found = self._look(run_id)
            self._looks[run_id] = (now, found)
        return found.get(node)

    def why_it_waits(self, pod: Object) -> Diagnosis | None:
        """None when it does not."""
        if pod.get("status", {}).get("phase") != "Pending":
            return None
        return pending(pod, (), None)

    def refusal(self, run_id: str, node: str) -> Diagnosis | None:
        """Why the cluster does not take the pod of a node, which Argo notes in its workflow."""
        at, messages = self._messages.get(run_id, (0.0, {}))
        now = time.monotonic()
        if now > at + SELDOM and now >= self._next_try:
            messages = self._messages_of(run_id)
            self._messages[run_id] = (now, messages)
        message = messages.get(node, "")
        return refused_pod(message) if " is forbidden: " in message else None

    def follow(self, key: Key, pod: Object, begin: Callable[[], LogReceiver]) -> None:
        """Have the log read from now on, once its container runs."""
        if key in self._followers or self._api is None or not _has_begun(pod):
            return
        name, run_id = pod["metadata"]["name"], pod["metadata"]["labels"].get("pipeline/runid", "")
        node = pod["metadata"].get("annotations", {}).get(NODE, "")

        def is_over() -> bool:
            known = self._looks.get(run_id, (0.0, {}))[1].get(node)
            return known is None or known.get("status", {}).get("phase") in ("Succeeded", "Failed")

        follower = LogFollower(
            self._api,
            name,
            CONTAINER,
            begin,
            is_over,
            self._changed,
            self._health,
        )
        self._followers[key] = follower
        follower.start()

    def still_reads(self, key: Key) -> bool:
        """Whether a log is still being read whose task has ended; not for long."""
        follower = self._followers.get(key)
        if follower is None or follower.done:
            return False
        if time.monotonic() < self._ended.setdefault(key, time.monotonic()) + LATE:
            return True
        follower.close()
        return False

    def forget(self, key: Key) -> None:
        """Nobody asks about this attempt any more."""
        self._ended.pop(key, None)
        if follower := self._followers.pop(key, None):
            follower.close()

    def forget_run(self, run_id: str) -> None:
        self._looks.pop(run_id, None)
        self._messages.pop(run_id, None)

    def close(self) -> None:
        for key in list(self._followers):
            self.forget(key)

    def _look(self, run_id: str) -> dict[str, Object]:
        try:
            if self._api is None:
                self._api = Api(connect(namespace=self._namespace))
            chosen = f"pipeline/runid={run_id}"
            listed = self._api.list(self._api.path("pods"), labelSelector=chosen)
        except (ApiError, ClusterUnreachable, ConvectError):
            self._next_try = time.monotonic() + AWAY
            return {}
        return {
            node: pod
            for pod in listed
            if (node := pod["metadata"].get("annotations", {}).get(NODE)) is not None
        }

    def _messages_of(self, run_id: str) -> dict[str, str]:
        """What Argo has noted of the nodes of a run."""
        if self._api is None:
            return {}
        path = f"/apis/argoproj.io/v1alpha1/namespaces/{self._namespace}/workflows"
        try:
            listed = self._api.list(path, labelSelector=f"pipeline/runid={run_id}")
        except (ApiError, ClusterUnreachable):
            return {}
        nodes = ((each.get("status") or {}).get("nodes") or {} for each in listed)
        return {
            name: str(node["message"])
            for known in nodes
            for name, node in known.items()
            if node.get("message")
        }


def _has_begun(pod: Object) -> bool:
    for status in statuses(pod):
        if status.get("name") == CONTAINER:
            return bool({"running", "terminated"} & set(status.get("state") or {}))
    return False
