"""A program that sees what a running step sees: its view of the project, and its folder.

With the standard library only and nothing of ours around it: in a pod it is executed as text.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from collections.abc import Iterable

NEW_MOUNTS, NEW_USER = 0x20000, 0x10000000
NOT_FOUND = 193
"""The exit code when there is no such program."""


def child_of(parents: Iterable[int]) -> int | None:
    """The first process that one of some processes has started."""
    for parent in parents:
        try:
            with open(f"/proc/{parent}/task/{parent}/children") as file:  # noqa: PTH123
                found = file.read().split()
        except OSError:
            continue
        if found:
            return int(found[0])
    return None


def marked_process(mark: str = "CONVECT_VALUES=", local_rank: int | None = None) -> int | None:
    """The first process that executes a step, by what it finds in its environment.

    `local_rank`: that of one of its replicas.
    """
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):  # noqa: PTH208
        found = environment_of(pid)
        values = found.get("CONVECT_VALUES")
        is_meant = local_rank is None or found.get("LOCAL_RANK") == str(local_rank)
        if is_meant and values and f"CONVECT_VALUES={values}".startswith(mark):
            return pid
    return None


def environment_of(pid: int) -> dict[str, str]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
            entries = os.fsdecode(file.read()).split("\0")
    except OSError:
        return {}
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def enter(pid: int) -> None:
    """Have this process, which must have one thread only, see what another one sees."""
    folder = os.readlink(f"/proc/{pid}/cwd")  # noqa: PTH115
    libc = ctypes.CDLL(None, use_errno=True)
    kinds = [("user", NEW_USER), ("mnt", NEW_MOUNTS)]
    others = [kind for kind in kinds if _namespace("self", kind[0]) != _namespace(pid, kind[0])]
    opened = [os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY) for name, _ in others]
    for descriptor, (_, flag) in zip(opened, others):  # noqa: B905 (for old interpreters)
        if libc.setns(descriptor, flag) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    for descriptor in opened:
        os.close(descriptor)
    os.chdir(folder)


def _namespace(pid: int | str, name: str) -> str:
    return os.readlink(f"/proc/{pid}/ns/{name}")  # noqa: PTH115


def main(local_rank: int | None = None) -> None:
    """Execute the words that are given after a folder, or a shell, where the step works; in the
    folder when nobody knows where that is. With the variables of the replica, if one is meant."""
    folder, *words = sys.argv[1:]
    try:
        pid = marked_process(local_rank=local_rank)
        if local_rank is not None:
            if pid is None:
                sys.exit("It is not running now.")
            os.environ.update(environment_of(pid))
        os.chdir(folder) if pid is None else enter(pid)
    except OSError:
        if os.path.isdir(folder):  # noqa: PTH112
            os.chdir(folder)
    words = words or ["bash" if shutil.which("bash") else "sh"]
    try:
        os.execvp(words[0], words)  # noqa: S606
    except OSError:
        sys.exit(NOT_FOUND)
