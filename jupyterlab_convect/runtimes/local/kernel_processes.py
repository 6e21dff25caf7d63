"""The kernels of this user on this machine, whoever has started them, and what they hold."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FILE = re.compile(rb"kernel-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.json")
_OF_A_STEP = b"CONVECT_VALUES="
"""In the environment of all that a step starts: its kernel is told as the step."""


@dataclass(frozen=True, slots=True)
class KernelProcess:
    id: str
    """As Jupyter names it."""
    pid: int
    memory: float
    """Bytes that it does not share with others, with those of its children."""
    gpu_memory: float = 0.0


def find_kernels() -> list[KernelProcess]:
    """Those that read a connection file of Jupyter; none where there is no /proc. Blocks."""
    found: dict[str, KernelProcess] = {}
    parents = dict(_parents())
    on_gpus: dict[int, float] | None = None
    for pid in parents:
        kernel = _kernel_of(pid)
        if kernel is None or _is_of_a_step(pid):
            continue
        if on_gpus is None:
            on_gpus = gpu_memory()
        family = [pid, *_below(pid, parents)]
        memory = sum(_memory(each) for each in family)
        held = sum(on_gpus.get(each, 0.0) for each in family)
        known = found.get(kernel)
        if known is None or pid < known.pid:  # A child has the same command line.
            found[kernel] = KernelProcess(kernel, pid, memory, held)
    return sorted(found.values(), key=lambda each: -each.memory)


def family_memory(pid: int) -> float:
    """Bytes that a process and all below it hold for themselves. Blocks."""
    return sum(_memory(each) for each in (pid, *_below(pid, dict(_parents()))))


def gpu_memory() -> dict[int, float]:
    """Bytes of GPU memory by process, as `nvidia-smi` tells; empty where there is none."""
    query = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
    try:
        listed = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    return parse_gpu_memory(listed.stdout)


def parse_gpu_memory(text: str) -> dict[int, float]:
    found: dict[int, float] = {}
    for line in text.splitlines():
        pid, _, amount = line.partition(",")
        with contextlib.suppress(ValueError):
            found[int(pid)] = found.get(int(pid), 0.0) + float(amount) * (1 << 20)
    return found


def _parents() -> Iterator[tuple[int, int]]:
    """The processes of this user, each with its parent."""
    try:
        folders = list(Path("/proc").iterdir())
    except OSError:
        return
    for folder in folders:
        if folder.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                if folder.stat().st_uid == os.geteuid():
                    stat = (folder / "stat").read_bytes()
                    yield int(folder.name), int(stat.rpartition(b")")[2].split()[1])


def _below(pid: int, parents: dict[int, int]) -> Iterator[int]:
    for child, parent in parents.items():
        if parent == pid:
            yield child
            yield from _below(child, parents)


def _kernel_of(pid: int) -> str | None:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return None
    for word in words:
        if match := _FILE.search(word):
            return match[1].decode()
    return None


def _is_of_a_step(pid: int) -> bool:
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(each.startswith(_OF_A_STEP) for each in variables)


def _memory(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/statm").read_bytes().split()
    except OSError:
        return 0.0
    page = os.sysconf("SC_PAGE_SIZE")
    return float((int(fields[1]) - int(fields[2])) * page)
