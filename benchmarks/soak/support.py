"""What the phases share: a server with folders of its own, and what must hold after each."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..server import ENDED, Server, server


class Broken(Exception):
    """A promise was not kept."""


class Skipped(Exception):
    """This machine cannot do it."""


def folders(folder: Path) -> dict[str, str]:
    """Where runs, index and temporary files lie, as variables of the environment.

    Beside the project; other runs on this machine neither take room there nor leave files.
    """
    beside = folder.parent
    (beside / "tmp").mkdir(exist_ok=True)
    return {
        "CONVECT_RUNS_DIR": f"{beside}/runs",
        "CONVECT_INDEX_DIR": f"{beside}/index",
        "TMPDIR": f"{beside}/tmp",
    }


@contextmanager
def quiet_server(folder: Path, **environment: Any) -> Iterator[Server]:
    with_folders = {**folders(folder), **environment}
    try:
        with server(folder, **with_folders) as running:
            yield running
    except subprocess.TimeoutExpired:
        raise Broken("the server does not stop") from None


def submit(running: Server, **request: Any) -> dict[str, Any]:
    return wait_for(running, running.convect("runs", request)["id"])


def wait_for(running: Server, run: str, patience: float = 120) -> dict[str, Any]:
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        view: dict[str, Any] = running.convect(f"runs/{run}")
        if view["state"] in ENDED:
            return view
        time.sleep(0.02)
    raise Broken(f"{run} did not end within {patience:g} s: {view['state']}, {view['reason']}")


def all_succeeded(views: list[dict[str, Any]]) -> None:
    for view in views:
        if view["state"] != "succeeded":
            raise Broken(f"{view['id']} ended as {view['state']}: {view['reason']}")


def leftovers(folder: Path) -> None:
    """No process of ours and no temporary file outlives its server for long."""
    deadline = time.monotonic() + 30
    while extra := our_processes(folder):
        if time.monotonic() > deadline:
            names = [Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ") for pid in extra]
            raise Broken(f"{len(extra)} processes are left, for instance {names[0][:120]}")
        time.sleep(0.2)
    parts = [path for path in folder.rglob("*") if path.name.startswith(".") and path.is_file()]
    kept = (".server.log", f".dask-{os.getuid()}")
    """What is meant to stay: the log of the server, and the password of the user's Dask gateway."""
    strange = [path for path in parts if path.name not in kept]
    if strange:
        raise Broken(f"{len(strange)} temporary files are left, for instance {strange[0].name}")


def our_processes(folder: Path) -> set[int]:
    """Servers, runners, kernels and warm processes of a phase, by where they keep their files."""
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            text = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            zombie = (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            continue
        if str(folder).encode() in text and not zombie:
            found.add(int(entry.name))
    return found
