"""The `sitecustomize` of every Python in a component that runs as a process of this machine.

Its packages go to a folder of its own (`PIP_TARGET`). pip refuses `--user` beside that, which
components add when they try once more; here both mean the same.
"""

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path


def without_user(arguments: list[str], command: list[str]) -> list[str]:
    """What pip is asked for, `command` being all that was typed; others keep what they have."""
    is_pip = command[1:3] == ["-m", "pip"] or Path(arguments[0]).name.startswith("pip")
    return [word for word in arguments if word != "--user"] if is_pip else arguments


def pass_on() -> None:
    """Do what the `sitecustomize` does that would have been found otherwise."""
    here = str(Path(__file__).parent)
    spec = PathFinder.find_spec("sitecustomize", [path for path in sys.path if path != here])
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


if __name__ == "sitecustomize":
    if sys.argv:
        sys.argv[:] = without_user(sys.argv, getattr(sys, "orig_argv", []))
    pass_on()
