"""This machine: what it has, as far as this process may use it, and who uses how much of it, over
all processes of the user that start steps.

The latter is one small file in a private folder on a local disk, changed under a lock. An entry
belongs to a process, told apart by its start time, and counts only while that runs.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...filesystems import private_folder
from ...pipeline.plan import Json
from ...runner.processes import is_alive
from ...text import size_text, some_of

TINY = 1e-6
NOBODY: Mapping[str, str] = {}
GPU = "gpu"


@dataclass(frozen=True, slots=True)
class GpuDevice:
    id: str
    """What `CUDA_VISIBLE_DEVICES` calls it."""
    name: str = ""


def cpus() -> float:
    """Processors this process may run on, or its container's share of them."""
    try:
        count = float(len(os.sched_getaffinity(0)))
    except AttributeError:
        count = float(os.cpu_count() or 1)
    share = _cpu_share()
    return min(count, share) if share else count


def memory() -> int:
    """Bytes of memory, of the machine or of the container."""
    amounts = [_cgroup_number("memory.max", "memory/memory.limit_in_bytes")]
    with contextlib.suppress(ValueError, OSError, AttributeError):
        amounts.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min((amount for amount in amounts if amount), default=1 << 62)


@functools.cache
def gpus() -> tuple[GpuDevice, ...]:
    """The GPUs that `nvidia-smi` lists, less those that `CUDA_VISIBLE_DEVICES` hides."""
    query = ["nvidia-smi", "--query-gpu=index,name", "--format=csv,noheader"]
    try:
        listed = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    pairs = (line.partition(",") for line in listed.stdout.splitlines() if line.strip())
    found = [GpuDevice(index.strip(), name.strip()) for index, _, name in pairs]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return tuple(found)
    names = {device.id: device.name for device in found}
    ids = (part.strip() for part in visible.split(","))
    return tuple(GpuDevice(each, names.get(each, "")) for each in ids if each and each != "-1")


def _cpu_share() -> float | None:
    for folder, files in (
        ("/sys/fs/cgroup", ("cpu.max",)),
        ("/sys/fs/cgroup/cpu", ("cpu.cfs_quota_us", "cpu.cfs_period_us")),
    ):
        try:
            parts = " ".join(Path(folder, file).read_text() for file in files).split()
            return max(int(parts[0]) / int(parts[1]), 0.1) if int(parts[0]) > 0 else None
        except (OSError, ValueError, IndexError):
            continue
    return None


def _cgroup_number(*names: str) -> int | None:
    for name in names:
        try:
            return int(Path("/sys/fs/cgroup", name).read_text())
        except (OSError, ValueError):
            continue
    return None


@dataclass(frozen=True, slots=True)
class Requirements:
    cpu: float = 1.0
    memory: float = 0.0
    gpu: float = 0.0


@dataclass(frozen=True, slots=True)
class MachineCapacity:
    cpu: float
    memory: float
    gpus: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Room:
    """What was given: the GPUs by their ids."""

    gpus: tuple[str, ...] = ()


class Reservations:
    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._path = (folder or private_folder("convect")) / "room.json"
        self._owed: set[str] = set()
        """What was given back while nothing could be written."""

    def take(
        self,
        key: str,
        need: Requirements,
        capacity: MachineCapacity,
        holder: Mapping[str, Any],
        *,
        force: bool = False,
        about: Mapping[str, str] = NOBODY,
    ) -> Room | str:
        """Room for `key`, or why there is none; with `force`, room in any case.

        Who has room already keeps it. `about` is the `run`, the `step` and the `name` by which
        others are told who has it.
        """
        self._owed.discard(key)
        with self._change() as entries:
            if key in entries:
                return Room(tuple(entries[key]["gpus"]))
            others = list(entries.values())
            reason = _lacking(need, capacity, others)
            chosen = _choose_gpus(need.gpu, capacity.gpus, others)
            if not force:
                if reason is not None:
                    return reason
                if chosen is None:
                    who = _users(others, "gpus")
                    return f"Waiting for {_gpus(need.gpu)}: all are in use by {who}."
            chosen = chosen or {}
            entries[key] = {
                "cpu": need.cpu,
                "memory": need.memory,
                "gpus": chosen,
                "holder": dict(holder),
                "about": dict(about),
            }
            return Room(tuple(chosen))

    def hand_over(self, key: str, holder: Mapping[str, Any]) -> None:
        """From now on the room belongs to another process."""
        with self._change() as entries:
            if key in entries:
                entries[key] = {**entries[key], "holder": dict(holder)}

    def give_back(self, key: str) -> None:
        """Where that cannot be written now, it is with the next change."""
        self._owed.add(key)
        with self._change():
            pass

    def used(self) -> dict[str, Any]:
        """The entries of now, by key."""
        with self._locked() as file:
            return self._valid(_read(file))

    @contextlib.contextmanager
    def _change(self) -> Iterator[dict[str, Any]]:
        with self._locked() as file:
            before = _read(file)
            owed = set(self._owed)
            entries = self._valid(before)
            yield entries
            if entries != before:
                _write(file, json.dumps(entries).encode() + b"\n")
            self._owed -= owed

    def _valid(self, entries: dict[str, Any]) -> dict[str, Any]:
        return {
            key: each
            for key, each in entries.items()
            if key not in self._owed and is_alive(each["holder"])
        }

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        file = self._open()
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            return os.open(self._path, flags, 0o600)
        except FileNotFoundError:
            # Somebody has cleaned up the temporary folder.
            if self._folder is not None:
                self._folder.mkdir(0o700, parents=True, exist_ok=True)
            self._path = (self._folder or private_folder("convect")) / "room.json"
            return os.open(self._path, flags, 0o600)


def _read(file: int) -> dict[str, Any]:
    """The first line; what follows is of an earlier time, by somebody who died before the end."""
    try:
        line = os.pread(file, os.fstat(file).st_size, 0).partition(b"\n")[0]
        return {key: dict(each) for key, each in json.loads(line).items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def _write(file: int, line: bytes) -> None:
    """Replace the first line, or raise and leave it as it was when there is no space."""
    size = os.fstat(file).st_size
    if len(line) > size:
        more = b" " * (len(line) - size)
        if os.pwrite(file, more, size) != len(more):
            os.ftruncate(file, size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.pwrite(file, line, 0)
    os.ftruncate(file, len(line))


def too_much(need: Requirements, capacity: MachineCapacity) -> str | None:
    """Why this could never fit, however long it waits."""
    if need.cpu > capacity.cpu + TINY:
        return f"needs {need.cpu:g} CPUs; this machine has {capacity.cpu:g}"
    if need.memory > capacity.memory + TINY:
        return (
            f"needs {_memory(need.memory)} of memory; this machine has {_memory(capacity.memory)}"
        )
    if need.gpu > len(capacity.gpus) + TINY:
        return f"needs {_gpus(need.gpu)}; this machine has {len(capacity.gpus) or 'none'}"
    return None


def _lacking(need: Requirements, capacity: MachineCapacity, others: list[Any]) -> str | None:
    never = too_much(need, capacity)
    if never is not None:
        return f"This step {never}."
    cpu = sum(each["cpu"] for each in others)
    if cpu + need.cpu > capacity.cpu + TINY:
        unit = "CPU" if need.cpu == 1 else "CPUs"
        who = _users(others, "cpu")
        return f"Waiting for {need.cpu:g} {unit}: {cpu:g} of {capacity.cpu:g} are in use by {who}."
    memory = sum(each["memory"] for each in others)
    if memory + need.memory > capacity.memory + TINY:
        who = _users(others, "memory")
        return (
            f"Waiting for {_memory(need.memory)} of memory: "
            f"{_memory(memory)} of {_memory(capacity.memory)} are in use by {who}."
        )
    return None


def _users(others: list[Any], what: str) -> str:
    """Who uses it, as far as that is known."""
    known = (each["about"]["name"] for each in others if each[what] and each.get("about"))
    return some_of(list(dict.fromkeys(known)) or ["others"])


def _choose_gpus(
    count: float, devices: tuple[str, ...], others: list[Any]
) -> dict[str, float] | None:
    """Whole devices that nobody uses; a part of one goes where others have parts already."""
    used = {device: sum(each["gpus"].get(device, 0.0) for each in others) for device in devices}
    if count <= 0:
        return {}
    if count < 1:
        shared = [device for device in devices if used[device] + count <= 1 + TINY]
        best = max(shared, key=lambda device: used[device], default=None)
        return None if best is None else {best: count}
    free = [device for device in devices if used[device] <= TINY]
    wanted = int(-(-count // 1))
    return dict.fromkeys(free[:wanted], 1.0) if len(free) >= wanted else None


def _gpus(count: float) -> str:
    return "1 GPU" if count == 1 else f"{count:g} GPUs"


def _memory(count: float) -> str:
    return size_text(count, binary=True)


def overview(
    capacity: MachineCapacity, devices: Sequence[GpuDevice], entries: Sequence[Any]
) -> dict[str, Json]:
    """`Overview` of the REST API: this machine is the only node."""
    name = os.uname().nodename
    resources = _resources(capacity, entries)
    types = sorted({device.name for device in devices if device.name})
    return {
        "namespace": None,
        "nodes": [
            {
                "name": name,
                "ready": True,
                "type": types[0] if types else None,
                "resources": resources,
            }
        ],
        "gpus": [
            _gpu_row(resource, types, name) for resource in resources if resource["name"] == GPU
        ],
        "quotas": [],
        "queues": [],
        "holders": [_holder(entry, name) for entry in entries if entry.get("about")],
        "unknown": [],
    }


def _resources(capacity: MachineCapacity, entries: Sequence[Any]) -> list[dict[str, Json]]:
    totals = {"cpu": capacity.cpu, "memory": capacity.memory, GPU: float(len(capacity.gpus))}
    return [
        {"name": name, "total": total, "free": max(total - sum(map(_amounts(name), entries)), 0.0)}
        for name, total in totals.items()
        if total
    ]


def _gpu_row(resource: dict[str, Json], types: list[str], node: str) -> dict[str, Json]:
    return {
        "resource": GPU,
        "type": ", ".join(types) or None,
        "total": resource["total"],
        "free": resource["free"],
        "largest_free": resource["free"],
        "largest_node": node,
    }


def _holder(entry: Any, node: str) -> dict[str, Json]:
    amounts = {name: _amounts(name)(entry) for name in ("cpu", "memory", GPU)}
    return {
        "namespace": "",
        "pod": entry["about"]["name"],
        "node": node,
        "run": entry["about"]["run"],
        "step": entry["about"]["step"],
        "resources": [
            {"name": name, "amount": amount} for name, amount in amounts.items() if amount
        ],
    }


def _amounts(name: str) -> Any:
    return lambda entry: float(sum(entry["gpus"].values()) if name == GPU else entry[name])
