"""Puts together, in the folder of an attempt, what each of its nodes says and leaves.

A distributed step that runs on several machines has a runner on each, and each runner leaves what
runners leave, in `nodes/<number>/`. Here the folder of the attempt becomes what it is for any other
step: one log, one log per rank, the events, `replicas.json`, and at the end the outcome. Then
`nodes/` is removed.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from ..errors import ConvectError
from ..json_text import dumps, is_number, loads
from ..pipeline.plan import Distributed, Json
from ..runner.outcome import INTERRUPTED, Ending, write_outcome
from ..runner.step import NODES, REPLICA_LOGS, REPLICA_STATES, REPLICA_USE
from ..safe_files import append_to, make_folder, open_regular, write_whole
from ..text import size_text
from .json_files import read_json
from .model import ENDED, State

LOG, EVENTS, STATE, OUTCOME = "log.txt", "events.ndjson", "gathered.json", "outputs.json"
LARGEST_READ = 1 << 20
LARGEST_LOG = 100_000_000
LONGEST_REASON = 2000
KEPT = ("executed.ipynb", "files", "made", "made.json", "environment.json")
"""What is taken over from the node whose outputs count."""
_LINE = re.compile(rb"\[(\d{1,9})\] (.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """What a runtime knows of one node."""

    state: State
    reason: str | None = None
    node: str | None = None
    """The name of the machine that it was given."""
    exit_code: int | None = None
    ended: float | None = None


def node_folder(folder: Path, number: int) -> Path:
    return folder / NODES / str(number)


def make_node_folders(folder: Path, count: int) -> None:
    """A folder for each node, with what it is told. Idempotent."""
    told = (folder / "step.json").read_bytes()
    make_folder(folder / NODES)
    for number in range(count):
        make_folder(node_folder(folder, number))
        write_whole(node_folder(folder, number) / "step.json", told)


class Gathering:
    """The only writer of the attempt's folder. It can be begun again at any time.

    What was read and what was written is noted together: whatever was written after the last note
    is cut off and written again.
    """

    def __init__(self, folder: Path, how: Distributed) -> None:
        self._folder = folder
        self._how = how
        self._read: dict[str, int] = {}
        self._written: dict[str, int] = {}
        self.replicas: list[dict[str, Json]] = []
        """What is known of each so far."""
        self._restore()

    def update(self, nodes: Sequence[NodeStatus]) -> None:
        """Take over what is new."""
        before = dict(self._written)
        for number in range(len(nodes)):
            self._take_log(number)
        self._take_events()
        replicas = [replica for number in range(len(nodes)) for replica in self._of(number, nodes)]
        if first := first_failed(replicas):
            why = f"Stopped because rank {first['rank']} failed."
            for replica in replicas:
                if replica["state"] == "cancelled":
                    replica["reason"] = why
        self._tell_changes(replicas)
        if self._written != before:
            state = {"read": self._read, "written": self._written}
            write_whole(self._folder / NODES / STATE, dumps(state).encode())
        if replicas != self.replicas:
            write_whole(self._folder / REPLICA_STATES, dumps({"replicas": replicas}).encode())
            self.replicas = replicas

    def conclude(self, nodes: Sequence[NodeStatus], *, stopped: str | None) -> None:
        """All nodes have ended: write how the attempt ended. `stopped`: why, if it was asked to."""
        outcomes = [self._outcome(number) for number in range(len(nodes))]
        if self._how.is_elastic and stopped is None:
            nodes = [
                each if told else self._not_needed(number, each)
                for number, (each, told) in enumerate(zip(nodes, outcomes, strict=True))
            ]
        if stopped is not None:
            # How a pod looks that was deleted says nothing then.
            ended = zip(nodes, outcomes, strict=True)
            nodes = [
                each if told else replace(each, state="cancelled", reason=stopped)
                for each, told in ended
            ]
        self.update(nodes)
        counting = outcomes[self._how.outputs_node] or {}
        for name in KEPT:
            source = node_folder(self._folder, self._how.outputs_node) / name
            with contextlib.suppress(FileNotFoundError):
                source.rename(self._folder / name)
        self._keep_notebooks(len(nodes))
        known = [outcome for outcome in outcomes if outcome]
        facts = {
            **{key: value for key, value in counting.items() if key not in _OF_ONE_NODE},
            "started": min(_times(known, "started"), default=None),
            "ended": max(_times(known, "ended"), default=time.time()),
            "replicas": self.replicas,
        }
        write_outcome(self._folder, self._ending(nodes, outcomes, stopped), facts)
        shutil.rmtree(self._folder / NODES, ignore_errors=True)

    def _not_needed(self, number: int, status: NodeStatus) -> NodeStatus:
        """Of a node that had not ended when the others had: it did not come in time."""
        before = [each for each in self.replicas if each.get("node_rank") == number]
        if not before or any(each["state"] in ENDED for each in before):
            return status
        return replace(status, state="cancelled", reason="The others ended without it.")

    def _keep_notebooks(self, count: int) -> None:
        """What the ranks of a notebook executed that do not count."""
        for number in range(count):
            for path in (node_folder(self._folder, number) / REPLICA_LOGS).glob("*.ipynb"):
                if path.stem.isdecimal():
                    make_folder(self._folder / REPLICA_LOGS)
                    path.rename(self._folder / REPLICA_LOGS / path.name)

    def _ending(
        self,
        nodes: Sequence[NodeStatus],
        outcomes: Sequence[dict[str, Json] | None],
        stopped: str | None,
    ) -> Ending:
        # As many as are needed end together, and the first node is always one of them.
        needed = outcomes[:1] if self._how.is_elastic else outcomes
        if all(outcome and outcome.get("state") == "succeeded" for outcome in needed):
            return Ending("succeeded")
        if stopped is not None:
            return Ending("cancelled", stopped)
        first = first_failed(self.replicas)
        if first is not None:
            outcome = outcomes[cast("int", first["node_rank"])] or {}
            if outcome.get("state") == "failed" and outcome.get("reason") != INTERRUPTED:
                return Ending("failed", str(outcome.get("reason")), outcome.get("error") or None)
            return Ending("failed", f"Rank {first['rank']} failed: {first['reason']}")
        lost = [number for number, each in enumerate(nodes) if _is_lost(each)]
        if lost:
            number = min(lost, key=lambda each: nodes[each].ended or time.time())
            rank = number * self._how.processes if self._how.processes != "cpu" else number
            return Ending("failed", f"Rank {rank} failed: {nodes[number].reason}")
        is_silent = any(
            status.state == "succeeded" and outcome is None
            for status, outcome in zip(nodes, outcomes, strict=True)
        )
        return Ending("failed", "It ended without leaving a result." if is_silent else INTERRUPTED)

    def _of(self, number: int, nodes: Sequence[NodeStatus]) -> Iterator[dict[str, Json]]:
        """The replicas of a node: as its runner tells, or as its runtime does."""
        status, count = nodes[number], self._how.processes
        told = self._told(number)
        ranks: Iterable[int] = range(number * count, (number + 1) * count) if count != "cpu" else ()
        for rank in ranks or sorted(told):
            found = told.get(rank, {})
            state, reason = found.get("state"), found.get("reason")
            is_over = status.state in ENDED
            if (
                state is None
                or (is_over and state in ("starting", "running"))
                or (state == "cancelled" and _is_lost(status))
            ):
                state, reason = _state_of(status), status.reason
            facts = {
                "rank": rank,
                "node_rank": number,
                "node": status.node,
                "gpu": found.get("gpu"),
                "state": state,
                "reason": None if reason is None else str(reason)[:LONGEST_REASON],
                "exit_code": found.get("exit_code", status.exit_code if is_over else None),
                "started": found.get("started"),
                "ended": found.get("ended", status.ended if is_over else None),
                **{name: found.get(name) for name in REPLICA_USE},
            }
            yield {key: value for key, value in facts.items() if value is not None}

    def _told(self, number: int) -> dict[int, dict[str, Json]]:
        """What came from a node is checked like any stranger's input."""
        for name in (OUTCOME, REPLICA_STATES):
            try:
                listed = read_json(node_folder(self._folder, number) / name)["replicas"]
                return {each["rank"]: each for each in listed if _is_sound(each)}
            except (OSError, ConvectError, KeyError, TypeError, AttributeError):
                continue
        return {}

    def _outcome(self, number: int) -> dict[str, Json] | None:
        try:
            found = read_json(node_folder(self._folder, number) / OUTCOME)
        except (OSError, ConvectError):
            return None
        return found if isinstance(found, dict) else None

    def _take_log(self, number: int) -> None:
        """Whole lines, each into the log of all and into that of its rank."""
        for lines in self._new_lines(number, LOG):
            by_rank: defaultdict[str, list[bytes]] = defaultdict(list)
            for line in lines:
                if match := _LINE.fullmatch(line):
                    by_rank[f"{REPLICA_LOGS}/{int(match[1])}.log"].append(match[2])
            size = self._written.get(LOG, 0)
            if size < LARGEST_LOG:
                mark = {"time": round(time.time(), 6), "type": "log", "offset": size}
                self._append(EVENTS, dumps({**mark, "stream": None}).encode() + b"\n")
                full = f"\n[The log ends here: it is longer than {size_text(LARGEST_LOG)}.]\n"
                content = b"".join(lines)
                is_full = size + len(content) >= LARGEST_LOG
                self._append(LOG, content + (full.encode() if is_full else b""))
            for name, said in by_rank.items():
                make_folder(self._folder / REPLICA_LOGS)
                self._append(name, b"".join(said))

    def _take_events(self) -> None:
        """Those of the node whose outputs count; its log is not the log of all."""
        for lines in self._new_lines(self._how.outputs_node, EVENTS):
            kept = [line for line in lines if _type_of(line) not in ("log", "replica")]
            self._append(EVENTS, b"".join(kept))

    def _tell_changes(self, replicas: Iterable[dict[str, Json]]) -> None:
        """An event for each replica whose state is another one, or the reason for it."""
        before = {each["rank"]: each for each in self.replicas}
        for replica in replicas:
            known = before.get(replica["rank"], {})
            if any(replica.get(key) != known.get(key) for key in ("state", "reason")):
                event = {"time": round(time.time(), 6), "type": "replica", **replica}
                self._append(EVENTS, dumps(event).encode() + b"\n")

    def _new_lines(self, number: int, name: str) -> Iterator[list[bytes]]:
        key = f"{number}/{name}"
        while True:
            try:
                with open_regular(node_folder(self._folder, number) / name) as file:
                    file.seek(self._read.get(key, 0))
                    data = file.read(LARGEST_READ)
            except OSError:
                return
            whole = data.rfind(b"\n") + 1
            if not whole and len(data) < LARGEST_READ:
                return
            data = data[:whole] if whole else data + b"\n"  # a line without end
            self._read[key] = self._read.get(key, 0) + (whole or LARGEST_READ)
            yield data.splitlines(keepends=True)

    def _append(self, name: str, data: bytes) -> None:
        if not data:
            return
        with os.fdopen(append_to(self._folder / name), "ab") as file:
            file.write(data)
        self._written[name] = self._written.get(name, 0) + len(data)

    def _restore(self) -> None:
        try:
            state = read_json(self._folder / NODES / STATE)
            self._read, self._written = dict(state["read"]), dict(state["written"])
        except (OSError, ConvectError, KeyError, TypeError, ValueError):
            self._read, self._written = {}, {}
        with contextlib.suppress(OSError, ConvectError, KeyError, TypeError):
            self.replicas = list(read_json(self._folder / REPLICA_STATES)["replicas"])
        logs = (self._folder / REPLICA_LOGS).glob("*.log")
        for path in (self._folder / LOG, self._folder / EVENTS, *logs):
            size = self._written.get(path.relative_to(self._folder).as_posix(), 0)
            if path.exists() and path.stat().st_size > size:
                os.truncate(path, size)


_OF_ONE_NODE = ("state", "reason", "error", "exit_code", "replicas", "started", "ended")


def first_failed(replicas: Iterable[dict[str, Json]]) -> dict[str, Json] | None:
    """By time: the others often fail because it did."""
    failed = [each for each in replicas if each["state"] == "failed"]
    return min(failed, key=lambda each: each.get("ended") or time.time(), default=None)


def _times(outcomes: Iterable[dict[str, Json]], key: str) -> list[float]:
    return [outcome[key] for outcome in outcomes if is_number(outcome.get(key))]


def _is_lost(status: NodeStatus) -> bool:
    """Whether it ended for a reason of its own that is not one of its processes."""
    return status.state == "failed" and status.reason not in (None, INTERRUPTED)


def _state_of(status: NodeStatus) -> State:
    """Of a replica that its runner says nothing of."""
    if status.reason == INTERRUPTED:
        return "cancelled"
    return "starting" if status.state == "running" else status.state


_NUMBERS = ("started", "ended", *REPLICA_USE)


def _is_sound(told: dict[str, Json]) -> bool:
    states = ("starting", "running", "succeeded", "failed", "cancelled")
    return (
        isinstance(told.get("rank"), int)
        and told.get("state") in states
        and all(told.get(key) is None or is_number(told[key]) for key in _NUMBERS)
        and isinstance(told.get("exit_code", 0), int)
        and isinstance(told.get("gpu", ""), str)
    )


def _type_of(line: bytes) -> str:
    try:
        return str(loads(line)["type"])
    except (ValueError, KeyError, TypeError):
        return ""
