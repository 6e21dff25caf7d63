"""`python -m jupyterlab_convect.runner <attempt folder>`: execute the step described there.

Exit codes: 0 succeeded, 1 failed, 143 cancelled; 2 wrong usage, 74 the outcome could not
be written, 75 another runner has this attempt.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .outcome import TAKEN, USAGE
from .step import NODES, RunnerSettings


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.stderr.write(f"{__doc__}\n")
        return USAGE
    from . import processes
    from .attempt import run
    from .environment import record

    processes.adopt()

    folder = own_folder(Path(arguments[0]).absolute())
    code = run(folder)
    if code != TAKEN:
        record(folder)
    return code


def own_folder(folder: Path) -> Path:
    """The folder of this node, where several of them work in one attempt."""
    own = folder / NODES / str(RunnerSettings.read(os.environ).node)
    return own if own.is_dir() else folder


if __name__ == "__main__":
    sys.exit(main())
