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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...filesystems import private_folder
from ...pipeline.plan import Json
from ...pipeline.profiles import Profile, floor_to, memory_text, settings_times, whole
from ...pipeline.quantities import quantity
from ...runner.processes import is_alive
from ...text import quoted, size_text, some_of
from ..capacity import (
    GPU_MEMORY,
    GpuOverview,
    HeldAmount,
    Holder,
    NodeOverview,
    Offer,
    Overview,
    ResourceAmount,
)
from .kernel_processes import KernelProcess

TINY = 1e-6
NOBODY: Mapping[str, str] = {}
GPU = "gpu"
MOST = 1000
"""So many times a profile is enough to be told."""


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
    return some_of(quoted(dict.fromkeys(known)) or ["others"])


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


def memory_in_use(total: float) -> float | None:
    """Bytes that all processes of the machine, or of the container, use; None if nobody tells."""
    used = _cgroup_number("memory.current", "memory/memory.usage_in_bytes")
    limit = _cgroup_number("memory.max", "memory/memory.limit_in_bytes")
    if used is not None and limit is not None and limit < 1 << 60:
        cache = _cgroup_cache()
        return float(min(max(used - cache, 0), total))
    try:
        lines = dict(
            line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines() if line
        )
        amounts = {
            name: int(lines[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable")
        }
    except (OSError, ValueError, KeyError, IndexError):
        return None
    return float(min(amounts["MemTotal"] - amounts["MemAvailable"], total))


def cpu_in_use(total: float) -> float | None:
    """How many processors were busy during the last minute, on average."""
    try:
        return min(os.getloadavg()[0], total)
    except OSError:
        return None


def _cgroup_cache() -> int:
    """Bytes of files that the system may forget whenever somebody needs the memory."""
    for name, key in (
        ("memory.stat", "inactive_file"),
        ("memory/memory.stat", "total_inactive_file"),
    ):
        try:
            for line in Path("/sys/fs/cgroup", name).read_text().splitlines():
                word, _, value = line.partition(" ")
                if word == key:
                    return int(value)
        except (OSError, ValueError):
            continue
    return 0


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """All that an overview of this machine is made of."""

    name: str
    capacity: MachineCapacity
    devices: Sequence[GpuDevice]
    entries: Sequence[Any]
    """What steps hold, as `Reservations.used` tells."""
    kernels: Sequence[KernelProcess] = ()
    memory_used: float | None = None
    cpu_used: float | None = None


def machine_overview(facts: MachineFacts, profiles: Sequence[Profile] = ()) -> Overview:
    """This machine is the only node. Pure."""
    resources = _resources(facts)
    types = sorted({device.name for device in facts.devices if device.name})
    gpus = tuple(
        GpuOverview(GPU, ", ".join(types) or None, each.total, each.free, each.free, facts.name)
        for each in resources
        if each.name == GPU
    )
    return Overview(
        namespace=None,
        nodes=(NodeOverview(facts.name, True, types[0] if types else None, resources),),
        gpus=gpus,
        quotas=(),
        queues=(),
        holders=(
            *(_holder(entry, facts.name) for entry in facts.entries if entry.get("about")),
            *(_kernel(each, facts.name) for each in facts.kernels),
        ),
        offers=tuple(_offers(facts, profiles)),
    )


def _resources(facts: MachineFacts) -> tuple[ResourceAmount, ...]:
    capacity, entries = facts.capacity, facts.entries
    totals = {"cpu": capacity.cpu, "memory": capacity.memory, GPU: float(len(capacity.gpus))}
    used = {"cpu": facts.cpu_used, "memory": facts.memory_used}
    return tuple(
        ResourceAmount(
            name, total, max(total - sum(map(_amounts(name), entries)), 0.0), used.get(name)
        )
        for name, total in totals.items()
        if total
    )


def _holder(entry: Any, node: str) -> Holder:
    about = entry["about"]
    return Holder(
        "run",
        about["name"],
        "",
        node,
        tuple(
            HeldAmount(name, amount)
            for name in ("cpu", "memory", GPU)
            if (amount := _amounts(name)(entry))
        ),
        mine=True,
        run=about["run"],
        step=about["step"],
    )


def _kernel(kernel: KernelProcess, node: str) -> Holder:
    held = (("memory", kernel.memory), (GPU_MEMORY, kernel.gpu_memory))
    return Holder(
        "kernel",
        f"{kernel.id[:8]}",
        "",
        node,
        tuple(HeldAmount(name, amount) for name, amount in held if amount),
        mine=True,
        id=kernel.id,
    )


def _offers(facts: MachineFacts, profiles: Sequence[Profile]) -> Iterator[Offer]:
    """As `Reservations.take` decides: by what steps hold, and never by what else is in use."""
    capacity, entries = facts.capacity, facts.entries
    used = {
        device: sum(each["gpus"].get(device, 0.0) for each in entries) for device in capacity.gpus
    }
    free = Requirements(
        cpu=max(capacity.cpu - sum(each["cpu"] for each in entries), 0.0),
        memory=max(capacity.memory - sum(each["memory"] for each in entries), 0.0),
        gpu=float(sum(1 for amount in used.values() if amount <= TINY)),
    )
    if not profiles:
        yield _everything(free, facts.name)
    for profile in profiles:
        yield _offer(profile, free, capacity, list(entries), facts.name)


def _everything(free: Requirements, node: str) -> Offer:
    cpu, memory = floor_to(free.cpu, 0.25), int(free.memory) >> 20
    settings: dict[str, Json] = {}
    if cpu and memory:
        gpu = {"gpu": int(free.gpu)} if free.gpu else {}
        settings = {"resources": {"cpu": whole(cpu), "memory": memory_text(memory), **gpu}}
    sentence = None if settings else "Steps use all of this machine."
    return Offer(None, "All that is free", settings, bool(settings), 1, node, sentence)


def _offer(
    profile: Profile,
    free: Requirements,
    capacity: MachineCapacity,
    others: list[Any],
    node: str,
) -> Offer:
    unit = Requirements(
        cpu=float(quantity(profile.cpu)) if profile.cpu else 1.0,
        memory=float(quantity(profile.memory)) if profile.memory else 0.0,
        gpu=profile.gpu.count if profile.gpu else 0.0,
    )

    def why_not(count: int) -> str | None:
        need = Requirements(unit.cpu * count, unit.memory * count, unit.gpu * count)
        reason = _lacking(need, capacity, others)
        if reason is None and _choose_gpus(need.gpu, capacity.gpus, others) is None:
            who = _users(others, "gpus")
            return f"Waiting for {_gpus(need.gpu)}: all are in use by {who}."
        return reason

    count = 0
    while count < MOST and why_not(count + 1) is None:
        count += 1
    # The image is for runtimes that have images.
    settings = settings_times(replace(profile, image=""), count) if count else {}
    return Offer(
        profile.name,
        profile.name,
        settings,
        count > 0,
        count,
        node if count else None,
        None if count else why_not(1),
        profile.notes,
    )


def _amounts(name: str) -> Any:
    return lambda entry: float(sum(entry["gpus"].values()) if name == GPU else entry[name])
