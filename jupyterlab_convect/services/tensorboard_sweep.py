"""The process of a TensorBoard over a sweep: a run that the sweep gets later is shown as well.

python -m jupyterlab_convect.services.tensorboard_sweep RUNS_FOLDER SWEEP [OPTION…]
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import threading
from pathlib import Path

from ..errors import ConvectError
from ..runs.index import Index
from ..runs.store import Store
from ..runs.sweep_store import SweepStore

EVERY = 5.0
"""Seconds between two looks, as TensorBoard itself has them."""


def main(words: list[str]) -> None:
    from tensorboard import main as tensorboard  # type: ignore[import-untyped]

    runs, sweep_id, *options = words
    with tempfile.TemporaryDirectory(prefix="convect-sweep-") as links:
        sweeps = SweepStore(Store(Path(runs), Index(Path(links) / "unused.sqlite")))
        logs = Path(links) / "logs"
        logs.mkdir()
        link_runs(sweeps, sweep_id, Path(runs), logs)
        ended = threading.Event()
        looking = threading.Thread(
            target=_keep_linking, args=(sweeps, sweep_id, Path(runs), logs, ended), daemon=True
        )
        looking.start()
        sys.argv = ["tensorboard", "--logdir", str(logs), *options]
        try:
            tensorboard.run_main()
        finally:
            ended.set()


def link_runs(sweeps: SweepStore, sweep_id: str, runs: Path, logs: Path) -> None:
    """One link for the last run of each point, by the number of the point."""
    _, progress = sweeps.read(sweep_id)
    wanted = {f"{number + 1} {run[-6:]}": runs / run for number, run in progress.runs.items()}
    for link in logs.iterdir():
        if link.name not in wanted:  # the point has been run again
            link.unlink()
    for name, folder in wanted.items():
        with contextlib.suppress(FileExistsError):
            (logs / name).symlink_to(folder)


def _keep_linking(
    sweeps: SweepStore, sweep_id: str, runs: Path, logs: Path, ended: threading.Event
) -> None:
    while not ended.wait(EVERY):
        with contextlib.suppress(ConvectError, OSError):  # the next look may see more
            link_runs(sweeps, sweep_id, runs, logs)


if __name__ == "__main__":
    main(sys.argv[1:])
