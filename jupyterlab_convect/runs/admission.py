"""What waits for its turn: steps for room, fairly between runs, and runs of a sweep or an endpoint
that limits how many of them run at the same time."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from ..safe_files import read_regular
from .lease import Lease
from .model import Request

T = TypeVar("T")


class AdmissionQueue(Generic[T]):
    """Items stand in lines; one line for all that ask for the same.

    When the first of a line does not fit, nobody in it does, so that a look at the
    queue costs no more than what it lets through. In a line, runs take turns.
    """

    def __init__(self) -> None:
        self._lines: OrderedDict[Hashable, OrderedDict[str, deque[T]]] = OrderedDict()

    def __len__(self) -> int:
        return sum(len(items) for line in self._lines.values() for items in line.values())

    def put(self, line: Hashable, run_id: str, item: T) -> None:
        self._lines.setdefault(line, OrderedDict()).setdefault(run_id, deque()).append(item)

    def remove(self, run_id: str) -> None:
        """Forget all items of a run."""
        for key in list(self._lines):
            self._lines[key].pop(run_id, None)
            if not self._lines[key]:
                del self._lines[key]

    def let_in(self, admit: Callable[[T], bool | None]) -> list[T]:
        """Ask `admit` for one line after the other, again and again, until nobody fits.

        An item of which it knows nothing, None, keeps its place and holds up nobody.
        """
        admitted: list[T] = []
        passed: list[tuple[Hashable, str, T]] = []
        willing = deque(self._lines)
        while willing:
            key = willing.popleft()
            line = self._lines[key]
            run_id, items = next(iter(line.items()))
            fits = admit(items[0])
            if fits is False:
                continue
            item = items.popleft()
            if fits:
                admitted.append(item)
            else:
                passed.append((key, run_id, item))
            line.move_to_end(run_id)
            if not items:
                del line[run_id]
            if not line:
                del self._lines[key]
                continue
            self._lines.move_to_end(key)
            willing.append(key)
        for key, run_id, item in reversed(passed):
            line = self._lines.setdefault(key, OrderedDict())
            line.setdefault(run_id, deque()).appendleft(item)
            line.move_to_end(run_id, last=False)
        return admitted


AT_ONCE = 64
"""Runs where no limit is given; their steps queue for room anyway."""
FILES = {"sweeps": "sweep.json", "endpoints": "endpoint.json"}
"""Where the limit is written, by the folder that the owner of the runs lies in."""


def owner_of(request: Request) -> str | None:
    """What limits how many runs like this go on at a time: its folder among the runs."""
    if request.sweep is not None:
        return f"sweeps/{request.sweep}"
    return None if request.endpoint is None else f"endpoints/{request.endpoint}"


@dataclass(slots=True)
class _Limit:
    most: int
    lease: Lease
    tended: bool = False
    """Its points are just given their runs."""
    inside: set[str] = field(default_factory=set)
    waiting: dict[str, None] = field(default_factory=dict)


class RunLimits:
    """One limit per owner. Its lease makes sure that only one process counts."""

    def __init__(self, runs_folder: Path) -> None:
        self._folder = runs_folder
        self._limits: dict[str, _Limit] = {}

    def is_elsewhere(self, owner: str) -> bool:
        """Whether another process counts the runs of this owner."""
        return (self._folder / owner).is_dir() and self._limit(owner) is None

    def enter(self, owner: str, run_id: str) -> str | None:
        """Let a run in, or say why it has to wait; `leave` calls it up when its turn comes."""
        limit = self._limit(owner)
        if limit is None or run_id in limit.inside:
            return None
        if len(limit.inside) < limit.most:
            limit.inside.add(run_id)
            return None
        if run_id not in limit.waiting:
            limit.waiting[run_id] = None
        if owner.startswith("sweeps/"):
            return f"Waiting for its turn: the sweep runs {limit.most} at a time."
        return f"Waiting for its turn: the endpoint runs {limit.most} at a time."

    def leave(self, owner: str, run_id: str) -> list[str]:
        """A run is over; the runs whose turn it is now."""
        limit = self._limits.get(owner)
        if limit is None:
            return []
        limit.inside.discard(run_id)
        limit.waiting.pop(run_id, None)
        room = max(limit.most - len(limit.inside), 0)
        called = list(itertools.islice(limit.waiting, room))
        for next_id in called:
            del limit.waiting[next_id]
            limit.inside.add(next_id)  # Its turn is its own, also when it cannot begin at once.
        self._close_empty(owner)
        return called

    @contextlib.contextmanager
    def held(self, owner: str) -> Iterator[bool]:
        """Hold the lease for a while; False when another process has it."""
        limit = self._limit(owner)
        if limit is None:
            yield False
            return
        limit.tended = True
        try:
            yield True
        finally:
            limit.tended = False
            self._close_empty(owner)

    def inside(self) -> list[str]:
        """The runs that have their turn."""
        return [run_id for limit in self._limits.values() for run_id in limit.inside]

    def is_waiting(self, run_id: str) -> bool:
        """Whether the run is called up by itself."""
        return any(run_id in limit.waiting for limit in self._limits.values())

    def forget(self, run_id: str) -> None:
        """The run is not there any more."""
        for owner in list(self._limits):
            self.leave(owner, run_id)

    def leases(self) -> dict[str, Lease]:
        return {owner: limit.lease for owner, limit in self._limits.items()}

    def lose(self, owner: str) -> None:
        """Another process counts its runs now."""
        del self._limits[owner]

    def close_empty(self) -> None:
        """Give back the leases that nobody needs, also where that failed before."""
        for owner in list(self._limits):
            self._close_empty(owner)

    def close(self) -> None:
        for owner in list(self._limits):
            self._close(owner)

    def _limit(self, owner: str) -> _Limit | None:
        folder = self._folder / owner
        if owner not in self._limits:
            lease = Lease.take(folder) if folder.is_dir() else None
            if lease is None:
                return None
            self._limits[owner] = _Limit(limit_of(folder), lease)
        return self._limits[owner]

    def _close_empty(self, owner: str) -> None:
        limit = self._limits.get(owner)
        if limit is not None and not (limit.inside or limit.waiting or limit.tended):
            self._close(owner)

    def _close(self, owner: str) -> None:
        with contextlib.suppress(OSError):  # It stays ours, and is given back later.
            self._limits[owner].lease.give_back()
            del self._limits[owner]


def limit_of(folder: Path) -> int:
    """How many runs the owner that lies in this folder allows at a time."""
    try:
        limit = json.loads(read_regular(folder / FILES[folder.parent.name])).get("concurrency")
    except (OSError, ValueError, AttributeError):
        return AT_ONCE
    return limit if isinstance(limit, int) and limit > 0 else AT_ONCE
