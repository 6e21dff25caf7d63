"""Finds the program that runs containers here, if there is one that works."""

from __future__ import annotations

import os
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


def user_in(program: str) -> str | None:
    """Whom a container runs as, so that its files are ours; None when they are anyway.

    Only docker's usual server is root of this machine. The root of a container of podman,
    or of docker without root, is the user who started it.
    """
    if os.getuid() == 0:
        return None
    options = _info(program, "--format", "{{.SecurityOptions}}")
    if options is None or "rootless" in options:
        return None
    return f"{os.getuid()}:{os.getgid()}"


def _answers(program: str) -> bool:
    return _info(program) is not None


def _info(program: str, *arguments: str) -> str | None:
    """What the engine says of itself; None when it says nothing."""
    try:
        done = subprocess.run(
            [program, "info", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=10,
            check=False,
            text=True,
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
