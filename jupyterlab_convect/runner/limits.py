"""What a step may use at most, as far as the system lets this user say so.

Each process has a limit of its own. Where control groups can be made, the processes of a
step also share one, which limits all of them together, and their use of the processors.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .processes import signal_if

CGROUPS = Path("/sys/fs/cgroup")
PERIOD = 100_000
"""Microseconds over which the use of processors is measured."""


@dataclass(frozen=True, slots=True)
class Limits:
    memory: int = 0
    """Bytes of private memory of each process; 0 is no limit."""
    groups: tuple[str, ...] = ()
    """The folders of the control groups that a process joins."""

    def apply(self) -> None:
        """Put this process, and all it will start, under the limits."""
        for group in self.groups:
            with contextlib.suppress(OSError):
                Path(group, "cgroup.procs").write_text("0")
        if self.memory:
            limit_memory(self.memory)


@contextlib.contextmanager
def limiting(memory: int, cpu: float) -> Iterator[Limits]:
    """Limits for the processes of one step; what is left in its groups at the end is killed."""
    groups = make_groups(memory, cpu, f"convect-{os.getpid()}")
    try:
        yield Limits(memory, tuple(str(group) for group in groups))
    finally:
        for group in groups:
            _remove(group)


def limit_memory(count: int) -> None:
    """Limit the private memory of this process and of each it starts.

    Address space would be the wrong measure where it can be avoided: GPU libraries
    reserve far more of it than they use.
    """
    import resource

    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    resource.setrlimit(kind, (count, count))


def can_limit(controller: str) -> bool:
    """May this user limit `memory` or `cpu` for several processes together?"""
    return find_parent(controller) is not None


def make_groups(memory: int, cpu: float, name: str) -> list[Path]:
    """New control groups with these limits; none where that is not allowed."""
    wanted = {
        "memory": {
            "memory.max": str(memory),
            "memory.swap.max": "0",
            "memory.limit_in_bytes": str(memory),
            "memory.memsw.limit_in_bytes": str(memory),
        },
        "cpu": {
            "cpu.max": f"{max(int(cpu * PERIOD), 1000)} {PERIOD}",
            "cpu.cfs_period_us": str(PERIOD),
            "cpu.cfs_quota_us": str(max(int(cpu * PERIOD), 1000)),
        },
    }
    made = []
    for controller, amount in (("memory", memory), ("cpu", cpu)):
        parent = find_parent(controller) if amount else None
        if parent is None:
            continue
        group = parent / name
        with contextlib.suppress(OSError):
            group.mkdir(exist_ok=True)
            for file, content in wanted[controller].items():
                # Which of them there are depends on the version, and on whether there is swap.
                if (group / file).exists():
                    (group / file).write_text(content)
            made.append(group)
    return list(dict.fromkeys(made))


def find_parent(
    controller: str, root: Path = CGROUPS, membership: Path = Path("/proc/self/cgroup")
) -> Path | None:
    """Where this user can make groups with the controller: as near as possible to its own."""
    try:
        lines = [line.split(":", 2) for line in membership.read_text().splitlines()]
    except OSError:
        return None
    own = {name: path for _, names, path in lines for name in names.split(",")}
    if controller in own:  # version 1: a tree for each controller
        group = root / controller / own[controller].lstrip("/")
        return group if _is_ours(group) else None
    group = root / own.get("", "").lstrip("/")
    while group.is_relative_to(root) and ".." not in group.parts:
        # A group that has processes gives no controllers to those below it.
        if controller in _words(group / "cgroup.subtree_control") and _is_ours(group):
            return group
        group = group.parent
    return None


def remove_empty_groups() -> None:
    """Remove the groups of runners that were killed."""
    for parent in {find_parent("memory"), find_parent("cpu")} - {None}:
        assert parent is not None
        for group in parent.glob("convect-*"):
            if not Path("/proc", group.name.removeprefix("convect-")).exists():
                with contextlib.suppress(OSError):  # which is how it says that some still run
                    group.rmdir()


def count_kills(*groups: Path) -> int:
    """How often the out-of-memory killer struck in control groups."""
    return sum(
        _count(group / file) for group in groups for file in ("memory.events", "memory.oom_control")
    )


def count_all_kills() -> int:
    """How often it struck, in this container and on this machine."""
    return count_kills(CGROUPS, CGROUPS / "memory") + _count(Path("/proc/vmstat"))


def _remove(group: Path) -> None:
    for _ in range(50):
        for pid in _words(group / "cgroup.procs"):
            signal_if(int(pid), signal.SIGKILL, functools.partial(_is_member, group, pid))
        with contextlib.suppress(OSError):
            group.rmdir()
        if not group.exists():
            return
        time.sleep(0.01)


def _is_member(group: Path, pid: str) -> bool:
    return pid in _words(group / "cgroup.procs")


def _is_ours(group: Path) -> bool:
    return os.access(group, os.W_OK) and os.access(group / "cgroup.procs", os.W_OK)


def _count(file: Path) -> int:
    words = _words(file)
    return int(words[words.index("oom_kill") + 1]) if "oom_kill" in words else 0


def _words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []
