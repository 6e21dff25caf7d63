"""Builds all programs of the test bed, with the time of the processor that nobody else wants.

Usage: python build_all.py &   whoever needs one of them meanwhile waits for it

It is a session of its own, so that all of it can be ended by the id of the process.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import build
import cluster
import kueue
import kwok
import pipelines
import pipelines_build
import registry
import s3
import training


def main() -> int:
    with contextlib.suppress(OSError):  # The leader of a session has one already.
        os.setsid()
    os.nice(19)
    with contextlib.suppress(OSError):  # Linux shares the processor between sessions first.
        Path("/proc/self/autogroup").write_text("19")
    missing = cluster.what_is_missing()
    if missing and s3.what_is_missing():
        build.say(missing)
        return 0
    programs: list[Callable[[], object]] = [s3.build_program, registry.build_program]
    if missing is None:
        programs += [build.build, kueue.build_program, kwok.build_program]
        programs += [pipelines_build.build_programs] if pipelines.what_is_missing() is None else []
        programs += [lambda part=part: training.build_program(part) for part in training.PARTS]
    failed = [_fails(each) for each in programs]
    return int(any(failed))


def _fails(program: Callable[[], object]) -> bool:
    """Whoever needs it says why there is none; the others are built all the same."""
    try:
        program()
    except SystemExit as error:
        build.say(str(error))
        return True
    return False


if __name__ == "__main__":
    sys.exit(main())
