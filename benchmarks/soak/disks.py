"""Disks that are full, slow, or do not answer."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .. import workloads
from .support import Broken, Skipped, all_succeeded, quiet_server, submit, wait_for


def full_disk(folder: Path) -> str:
    """A run that fills the disk fails and says so; the next one, with room, succeeds."""
    workloads.notebook(folder / "fill.ipynb", "print('x' * 6_000_000)", "1 / 1")
    workloads.trivial(folder)
    small = folder.parent / "small"
    small.mkdir()
    with _mounted(small, "size=4m"):
        (small / "ballast").write_bytes(bytes(2_500_000))
        with quiet_server(folder, CONVECT_RUNS_DIR=str(small / "runs")) as running:
            view = submit(running, path="fill.ipynb")
            if view["state"] != "failed" or "space" not in str(view["reason"]).lower():
                raise Broken(f"the run ended as {view['state']}: {view['reason']}")
            (small / "ballast").unlink()
            after = submit(running, path="trivial.ipynb")
            if after["state"] != "succeeded":
                raise Broken(f"with room again it ended as {after['state']}: {after['reason']}")
    return str(view["reason"])


def slow_disk(folder: Path) -> str:
    """Every rename and open takes 5 ms; runs go on."""
    if subprocess.run(
        ["strace", "-o", "/dev/null", "true"], check=False, capture_output=True
    ).returncode:
        raise Skipped("needs strace with the right to trace")
    workloads.trivial(folder)
    delay = ["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=rename,openat",
             "-e", "inject=rename,openat:delay_enter=5000"]  # fmt: skip
    with quiet_server(folder, prefix=tuple(delay)) as running:
        views = [submit(running, path="trivial.ipynb") for _ in range(3)]
    all_succeeded(views)
    return "3 runs succeeded"


def blocked(folder: Path) -> str:
    """Three times the runs folder does not answer for 5 s; JupyterLab does, and runs go on."""
    workloads.notebook(folder / "wait.ipynb", *["import time; time.sleep(1)"] * 8)
    disk = folder.parent / "disk"
    with (
        _freezable(folder.parent / "image", disk),
        quiet_server(folder, CONVECT_RUNS_DIR=str(disk / "runs")) as running,
    ):
        made = [running.convect("runs", {"path": "wait.ipynb"}) for _ in range(4)]
        slowest = 0.0
        for _ in range(3):
            time.sleep(1)
            with _frozen(disk):
                end = time.monotonic() + 5
                while (began := time.monotonic()) < end:
                    running.ask("api/status")
                    slowest = max(slowest, time.monotonic() - began)
                    time.sleep(0.05)
        all_succeeded([wait_for(running, run["id"]) for run in made])
    return f"4 runs succeeded, slowest answer meanwhile {slowest * 1000:.0f} ms"


@contextmanager
def _freezable(image: Path, place: Path) -> Iterator[None]:
    """A file system of its own."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("mkfs.ext4", "fsfreeze", "mount"))):
        raise Skipped("needs root, mkfs.ext4, fsfreeze and mount")
    with image.open("wb") as file:
        file.truncate(256 << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    place.mkdir()
    mount = ["mount", "-o", "loop", image, place]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        raise Skipped("needs a loop device")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", place], check=False)


@contextmanager
def _frozen(place: Path) -> Iterator[None]:
    subprocess.run(["fsfreeze", "-f", place], check=True)
    # Whatever happens to us, nothing is left waiting.
    watchdog = subprocess.Popen(["sh", "-c", f"sleep 60; fsfreeze -u '{place}'"])
    try:
        yield
    finally:
        watchdog.kill()
        watchdog.wait()
        subprocess.run(["fsfreeze", "-u", place], check=True)


@contextmanager
def _mounted(place: Path, options: str) -> Iterator[None]:
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        raise Skipped("needs the right to mount")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)
