"""What a cluster starts for a schedule whose clock it keeps: a process that drives its runs."""

from __future__ import annotations

import json
import os
import sys

from traitlets import HasTraits

from ..errors import Refused
from ..pipeline.plan import Json
from ..safe_files import make_folder, write_whole
from ..settings import FILE, Settings
from ..transfer.base import PYTHON, SharedVolume, first_uncovered
from .base import KeptClock, Runtime

SCRATCH = "/tmp"  # noqa: S108
_OF_THIS_MACHINE = ("runs_dir", "index_dir", "named_runtimes", "runtimes")


def engine_command(clock: KeptClock, *, is_own_image: bool = False) -> tuple[str, ...]:
    """The process; where the image is ours, with the interpreter that we have."""
    python = sys.executable if is_own_image else PYTHON
    return (python, "-m", "jupyterlab_convect.keep_process", clock.id)


def engine_environment(
    clock: KeptClock, runtime: Runtime, *, is_own_image: bool = False, **traits: Json
) -> dict[str, str]:
    """Its variables; its configuration, with these `traits` of the runtime, is written beside the
    schedules, where it finds it."""
    folder = clock.config / runtime.name
    make_folder(folder)
    settings = runtime.parent if isinstance(runtime.parent, Settings) else Settings()
    own = {"kind": type(runtime).name, **chosen_traits(runtime, type(runtime)), **traits}
    chosen = chosen_traits(settings, Settings)
    told = {
        **{key: value for key, value in chosen.items() if key not in _OF_THIS_MACHINE},
        "named_runtimes": {runtime.name: own},
    }
    write_whole(folder / f"{FILE}.json", json.dumps({"Convect": told}).encode())
    found = {
        "CONVECT_RUNS_DIR": str(clock.runs),
        "CONVECT_INDEX_DIR": f"{SCRATCH}/convect-index",
        "JUPYTER_CONFIG_DIR": str(folder),
        "JUPYTER_DATA_DIR": f"{SCRATCH}/jupyter",
        "HOME": SCRATCH,
    }
    if is_own_image and "PYTHONPATH" in os.environ:
        found["PYTHONPATH"] = os.environ["PYTHONPATH"]
    return found


def require_shared(clock: KeptClock, volumes: tuple[SharedVolume, ...]) -> None:
    outside = first_uncovered(volumes, clock.paths) if volumes else clock.paths[0]
    if outside is not None:
        raise Refused(
            f"The cluster cannot keep this clock: no volume of it holds {outside}.",
            code="not-shared",
            hint="Put the runs folder and the project on a volume that pods share with this "
            "machine, or have the schedule kept here.",
        )


def require_image(image: str, trait: str) -> str:
    if not image:
        raise Refused(
            "No image is configured that can drive runs in the cluster.",
            code="no-image",
            hint=f"Set c.{trait} to one in which jupyterlab-convect is installed.",
        )
    return image


def chosen_traits(configured: HasTraits, kind: type[HasTraits]) -> dict[str, Json]:
    """What somebody configured of the traits of this class."""
    names = kind.class_trait_names(config=True)
    given = {name: getattr(configured, name) for name in names}
    return {
        name: value for name, value in given.items() if value != configured.trait_defaults(name)
    }
