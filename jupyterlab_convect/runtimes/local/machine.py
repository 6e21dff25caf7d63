"""What this machine has, as far as this process may use it."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path


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
