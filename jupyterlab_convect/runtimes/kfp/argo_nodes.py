"""What Kubeflow Pipelines tells of a run, read as the states of our steps.

Its interface lists the nodes of Argo's graph without their names and ids: a node has the last
part of its name and the ids of those that follow it. Argo makes an id of a name in a fixed way,
and the names follow from the compiled pipeline, so that both can be put together again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ...pipeline.plan import Json

EACH = "*"
"""Stands in a place for one item of the loop before it."""
FILES = "files "
"""The task that leaves the files of all steps; no step has this id."""
CLAIM = "claim "
"""Before the name of a volume claim: the task that makes it; no step has such an id."""
RESULTS = "results"
"""Of the task that tells the outputs of a component: the step's id, and this word."""
ENDED = frozenset(("SUCCEEDED", "FAILED", "SKIPPED", "CANCELED"))
TOGETHER = 2.0
"""Seconds between the begin of two nodes that are made one right after the other."""
LOG = "main-logs"
"""The name of the artifact that a node's log is kept as."""

Place = tuple[str, ...]
"""The keys of the tasks around a task, the outermost first, and its own."""


@dataclass(frozen=True)
class SeenTask:
    """One try of a task, as far as Kubeflow tells."""

    state: Literal["absent", "preparing", "pending", "running", "succeeded", "failed"]
    node: str
    """The id of the node whose log tells more."""
    by_driver: bool = False
    """It failed before its own container was made."""


@dataclass(frozen=True)
class _Node:
    name: str
    state: str
    started: float
    children: frozenset[str]


class SeenRun:
    """One look at a run."""

    def __init__(self, told: Mapping[str, Json]) -> None:
        self.state = str(told.get("state") or "")
        history = [str(each.get("state")) for each in told.get("state_history") or ()]
        self.is_stopped = "CANCELING" in (self.state, *history) or self.state == "CANCELED"
        self.error = str((told.get("error") or {}).get("message") or "")
        listed = (told.get("run_details") or {}).get("task_details") or ()
        self._nodes: dict[str, list[_Node]] = {}
        self._known: set[str] = set()
        for entry in listed:
            node = _node(entry)
            self._nodes.setdefault(node.name, []).append(node)
            self._known |= node.children
        self.workflow = next((each.rpartition("-")[0] for each in sorted(self._known)), "")

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED

    def task(self, place: Place, item: Sequence[int], number: int, retried: bool) -> SeenTask:
        """A try at the task at a place, for an item of the loops around it."""
        name = f"{self.workflow}.{node_name(place, item)}"
        executor = f"{name}.executor({number - 1})" if retried else f"{name}.executor"
        found = self._find(place[-1], self._id(f"{name}.executor"))
        driver = self._find(f"{place[-1]}-driver", self._id(name))
        if driver is not None and driver.state == "FAILED":
            return SeenTask("failed", self._id(f"{name}-driver"), by_driver=True)
        if found is None or self._id(f"{name}.executor") not in self._known:
            return SeenTask("absent" if driver is None else "preparing", self._id(name))
        node = self._id(executor)
        if retried and node not in self._known:
            ended = found.state in ENDED
            return SeenTask("failed" if ended and found.state == "FAILED" else "absent", node)
        if retried and self._id(f"{name}.executor({number})") in self._known:
            return SeenTask("failed", node)
        if found.state in ("SUCCEEDED", "FAILED"):
            return SeenTask("succeeded" if found.state == "SUCCEEDED" else "failed", node)
        return SeenTask("pending" if self._is_pending(found) else "running", node)

    def driver(self, place: Place) -> SeenTask:
        """A task that its driver does alone, without a container of its own."""
        found = self._nodes.get(place[-1], [])
        failed = any(node.state == "FAILED" for node in found)
        node = self._id(f"{self.workflow}.{node_name(place, ())}")
        return SeenTask("failed" if failed else "running", node, by_driver=failed)

    def _find(self, name: str, child: str) -> _Node | None:
        """The node of that name; where there are several, the one that the child follows."""
        same = self._nodes.get(name, [])
        if len(same) == 1:
            return same[0]
        return next((node for node in same if child in node.children), None)

    def _is_pending(self, task: _Node) -> bool:
        """Whether its pod waits: the two nodes begin together, which is all that tells."""
        return any(
            node.state == "PENDING" and abs(node.started - task.started) <= TOGETHER
            for name, nodes in self._nodes.items()
            if name.startswith("executor")
            for node in nodes
        )

    def _id(self, name: str) -> str:
        return node_id(self.workflow, name)


def node_name(place: Place, item: Sequence[int]) -> str:
    """The name of a task's node without that of its workflow."""
    numbers = iter(item)
    parts = ["root"]
    for key in place:
        if key == EACH:
            number = next(numbers)
            parts += [f"iteration-iterations({number}:{number})", "iteration-item"]
        else:
            parts.append(key)
    return ".".join(parts)


def node_id(workflow: str, name: str) -> str:
    """As Argo makes it: the hash FNV-1a of the name, in 32 bits."""
    if name == workflow:
        return workflow
    found = 0x811C9DC5
    for byte in name.encode():
        found = (found ^ byte) * 0x01000193 % (1 << 32)
    return f"{workflow}-{found}"


def _node(entry: Mapping[str, Json]) -> _Node:
    children = (each.get("pod_name") for each in entry.get("child_tasks") or ())
    return _Node(
        str(entry.get("display_name") or ""),
        str(entry.get("state") or ""),
        _seconds(str(entry.get("start_time") or "")),
        frozenset(str(each) for each in children if each),
    )


def _seconds(stamp: str) -> float:
    try:
        return datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0
