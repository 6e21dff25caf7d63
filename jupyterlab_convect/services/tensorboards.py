"""TensorBoard over a folder, or over what runs have logged, also while they go on."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path

from ..errors import ConvectError, Refused
from ..pipeline.plan import Json
from ..runs.store import Store
from ..runs.sweep_store import SweepStore
from ..text import some_of
from . import tensorboard_sweep
from .base import Service, ServiceCommand, ServiceKind

MOST_RUNS = 200


class TensorBoard(ServiceKind):
    """Its options: a `folder` with event files, `runs`, a list of their ids, or a `sweep`."""

    ready_path = "/data/environment"

    def prepare(
        self, options: Mapping[str, Json], root: Path, store: Store
    ) -> tuple[str, dict[str, Json]]:
        if importlib.util.find_spec("tensorboard") is None:
            raise Refused(
                "TensorBoard is not installed.",
                code="no-program",
                hint="Install it where the server is: pip install jupyterlab-convect[tensorboard].",
            )
        folder, runs, sweep = (options.get(name) for name in ("folder", "runs", "sweep"))
        if isinstance(sweep, str) and folder is None and runs is None:
            found, _ = SweepStore(store).read(sweep)
            return f"TensorBoard: {found.name}", {"sweep": sweep, "folder": str(store.folder)}
        if isinstance(folder, str) and runs is None and sweep is None:
            place = (root / folder).resolve()
            if not place.is_relative_to(root.resolve()) or not place.is_dir():
                raise ConvectError(f"There is no folder {folder[:200]!r}.", code="bad-service")
            return f"TensorBoard: {place.name}", {"folder": str(place)}
        others = folder is not None or sweep is not None
        if others or not isinstance(runs, list) or not _are_ids(runs):
            raise ConvectError(
                "TensorBoard has a `folder`, `runs`, a list of ids, or a `sweep`.",
                code="bad-service",
            )
        if len(runs) > MOST_RUNS:
            raise ConvectError(f"TensorBoard shows {MOST_RUNS} runs at most.", code="bad-service")
        read = [store.read(run_id).run for run_id in dict.fromkeys(runs)]
        folders = {run.id: str(store.folder / run.id) for run in read}
        names = {run.id: run.name for run in read}
        title = f"TensorBoard: {some_of(list(dict.fromkeys(names.values())))}"
        return title, {"runs": folders, "names": names}

    def command(self, service: Service, port: int) -> ServiceCommand:
        program = ["tensorboard.main"]
        if "sweep" in service.options:
            folder = str(service.options["folder"])
            program = [tensorboard_sweep.__name__, folder, str(service.options["sweep"])]
            where = []
        elif "folder" in service.options:
            where = ["--logdir", str(service.options["folder"])]
        else:
            names = service.options["names"]
            folders = service.options["runs"].items()
            spec = (f"{_plain(names[run])} {run[-6:]}:{folder}" for run, folder in folders)
            where = ["--logdir_spec", ",".join(spec)]
        options = ["--host", "127.0.0.1", "--port", str(port), "--load_fast", "false"]
        return ServiceCommand(
            (sys.executable, "-m", *program, *where, *options, "--reload_interval", "5")
        )


def _are_ids(runs: list[Json]) -> bool:
    return bool(runs) and all(isinstance(each, str) for each in runs)


def _plain(name: str) -> str:
    """A name as TensorBoard can have it, where commas and colons separate."""
    return name.replace(",", " ").replace(":", " ").strip() or "run"
