"""The tools we are measured against, each in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from functools import cache
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jupyterlab-convect"


class NotToBeHad(Exception):
    """The peer cannot be installed here."""


@cache
def papermill() -> Path:
    return _environment("papermill", ["papermill", "ipykernel"]) / "papermill"


@cache
def elyra() -> Path:
    return _environment("elyra-4.1.1", ["elyra==4.1.1", "ipykernel"]) / "elyra-pipeline"


@cache
def kfp() -> Path:
    """The interpreter that has the SDK of Kubeflow Pipelines."""
    return _environment("kfp-2.14.3", ["kfp==2.14.3"]) / "python"


def _environment(name: str, packages: list[str]) -> Path:
    """The folder of the programs of an environment that has `packages`, made once."""
    folder = CACHE / "peers" / name
    programs = folder / "bin"
    done = folder / ".done"
    if not done.exists():
        print(f"installing {' '.join(packages)} in an environment of its own", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        installed = subprocess.run(
            [programs / "pip", "install", "-q", *packages],
            capture_output=True,
            text=True,
            check=False,
        )
        if installed.returncode:
            last = (installed.stderr.strip().splitlines() or ["pip failed"])[-1]
            raise NotToBeHad(f"{name} does not install here: {last}")
        done.touch()
    return programs
