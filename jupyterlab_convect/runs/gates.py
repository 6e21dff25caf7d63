"""How many runs of one sweep go on at a time."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..run_files import read_regular
from .lease import Lease

AT_ONCE = 64
"""Runs of a sweep that has no limit of its own; their steps queue for room anyway."""


@dataclass(slots=True)
class _Gate:
    limit: int
    lease: Lease
    tended: bool = False
    """Its points are just given their runs."""
    inside: set[str] = field(default_factory=set)
    waiting: dict[str, None] = field(default_factory=dict)


class Gates:
    """One gate a sweep. Its lease makes sure that only one process counts."""

    def __init__(self, runs_folder: Path) -> None:
        self._folder = runs_folder / "sweeps"
        self._gates: dict[str, _Gate] = {}

    def is_elsewhere(self, sweep: str) -> bool:
        """Whether another process sees to this sweep."""
        return (self._folder / sweep).is_dir() and self._gate(sweep) is None

    def enter(self, sweep: str, run_id: str) -> str | None:
        """Let a run in, or say why it has to wait; `leave` calls it up when its turn comes."""
        gate = self._gate(sweep)
        if gate is None or run_id in gate.inside:
            return None
        if len(gate.inside) < gate.limit:
            gate.inside.add(run_id)
            return None
        if run_id not in gate.waiting:
            gate.waiting[run_id] = None
        return f"Waits for its turn: the sweep runs {gate.limit} at a time."

    def leave(self, sweep: str, run_id: str) -> list[str]:
        """A run is over; the runs whose turn it is now."""
        gate = self._gates.get(sweep)
        if gate is None:
            return []
        gate.inside.discard(run_id)
        gate.waiting.pop(run_id, None)
        room = max(gate.limit - len(gate.inside), 0)
        called = list(itertools.islice(gate.waiting, room))
        for next_id in called:
            del gate.waiting[next_id]
            gate.inside.add(next_id)  # Its turn is its own, also when it cannot begin at once.
        self._close_empty(sweep)
        return called

    @contextlib.contextmanager
    def held(self, sweep: str) -> Iterator[bool]:
        """Hold the sweep's lease for a while; False when another process has it."""
        gate = self._gate(sweep)
        if gate is None:
            yield False
            return
        gate.tended = True
        try:
            yield True
        finally:
            gate.tended = False
            self._close_empty(sweep)

    def inside(self) -> list[str]:
        """The runs that have their turn."""
        return [run_id for gate in self._gates.values() for run_id in gate.inside]

    def is_waiting(self, run_id: str) -> bool:
        """Whether the run is called up by itself."""
        return any(run_id in gate.waiting for gate in self._gates.values())

    def forget(self, run_id: str) -> None:
        """The run is not there any more."""
        for sweep in list(self._gates):
            self.leave(sweep, run_id)

    def leases(self) -> dict[str, Lease]:
        return {sweep: gate.lease for sweep, gate in self._gates.items()}

    def lose(self, sweep: str) -> None:
        """Another process sees to this sweep now."""
        del self._gates[sweep]

    def close_empty(self) -> None:
        """Give back the leases of sweeps that need none, also where that failed before."""
        for sweep in list(self._gates):
            self._close_empty(sweep)

    def close(self) -> None:
        for sweep in list(self._gates):
            self._close(sweep)

    def _gate(self, sweep: str) -> _Gate | None:
        folder = self._folder / sweep
        if sweep not in self._gates:
            lease = Lease.take(folder) if folder.is_dir() else None
            if lease is None:
                return None
            self._gates[sweep] = _Gate(limit_of(folder), lease)
        return self._gates[sweep]

    def _close_empty(self, sweep: str) -> None:
        gate = self._gates.get(sweep)
        if gate is not None and not (gate.inside or gate.waiting or gate.tended):
            self._close(sweep)

    def _close(self, sweep: str) -> None:
        with contextlib.suppress(OSError):  # It stays ours, and is given back later.
            self._gates[sweep].lease.give_back()
            del self._gates[sweep]


def limit_of(folder: Path) -> int:
    """How many runs the sweep in this folder allows at a time."""
    try:
        limit = json.loads(read_regular(folder / "sweep.json")).get("concurrency")
    except (OSError, ValueError, AttributeError):
        return AT_ONCE
    return limit if isinstance(limit, int) and limit > 0 else AT_ONCE
