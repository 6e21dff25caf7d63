"""Finds the program that runs containers here, if there is one that works."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping

VARIABLE = "CONVECT_CONTAINER_ENGINE"
"""The program to use; empty to use none."""


def container_engine(environment: Mapping[str, str]) -> str | None:
    """podman or docker, whichever is there and answers: a client without its server is none."""
    chosen = environment.get(VARIABLE)
    names = ("podman", "docker") if chosen is None else (chosen,)
    for name in filter(None, names):
        program = shutil.which(name, path=environment.get("PATH"))
        if program and _answers(program):
            return program
    return None


def _answers(program: str) -> bool:
    try:
        done = subprocess.run(
            [program, "info"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
