"""The kernels that are installed, read without the cost of importing jupyter_client."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .outcome import StepFailed

NATIVE = "python3"
"""The kernel of the interpreter that runs this, installed or not."""
_PLACE = re.compile(r"\{([A-Za-z0-9_]+)\}")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


@dataclass(frozen=True, slots=True)
class KernelSpec:
    name: str
    argv: tuple[str, ...]
    folder: Path | None = None
    language: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    interrupt_mode: str = "signal"
    provisioner: str | None = None
    """Set when something other than a process on this machine runs the kernel."""

    def command(self, connection_file: str) -> list[str]:
        places = {
            "connection_file": connection_file,
            "resource_dir": str(self.folder or ""),
            "prefix": sys.prefix,
        }
        command = [
            _PLACE.sub(lambda match: places.get(match[1], match[0]), part) for part in self.argv
        ]
        own = {"python", f"python{sys.version_info[0]}"}
        own.add(f"python{sys.version_info[0]}.{sys.version_info[1]}")
        if command and command[0] in own:
            command[0] = sys.executable
        return command

    @property
    def interpreter(self) -> str:
        return self.command("")[0]

    @property
    def ipykernel(self) -> tuple[list[str], list[str]] | None:
        """Interpreter flags and kernel arguments, when this is `python -m ipykernel_launcher`."""
        command = self.command("{connection_file}")
        for module in ("ipykernel_launcher", "ipykernel"):
            if module in command[1:] and command[command.index(module) - 1] == "-m":
                place = command.index(module)
                rest = command[place + 1 :]
                if rest[:2] == ["-f", "{connection_file}"]:
                    return command[1 : place - 1], rest[2:]
        return None

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """`base` with the kernel's own variables, in which `${NAME}` refers to `base`."""

        def expand(value: str) -> str:
            return _VARIABLE.sub(lambda match: base.get(match[1] or match[2], match[0]), value)

        return {**base, **{name: expand(value) for name, value in self.env.items()}}


def installed() -> dict[str, KernelSpec]:
    """Every kernel by its name, lower case; the first found of a name counts."""
    specs: dict[str, KernelSpec] = {}
    for folder in _folders():
        try:
            names = sorted(place.name for place in folder.iterdir())
        except OSError:
            continue
        for name in names:
            if name.lower() not in specs and (spec := _read(folder / name)):
                specs[name.lower()] = spec
    if NATIVE not in specs and importlib.util.find_spec("ipykernel") is not None:
        argv = (sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}")
        specs[NATIVE] = KernelSpec(NATIVE, argv, language="python")
    return specs


def resolved(name: str) -> str:
    """The name under which a kernel is installed; Jupyter calls the native one `python`, too."""
    return NATIVE if name == "python" else name


def default_for(language: str) -> str | None:
    """The kernel of a notebook that names none: the native one, or the only one of its language."""
    wanted = "python" if language in ("ipython", NATIVE) else language
    found = [name for name, spec in installed().items() if spec.language.lower() == wanted]
    return NATIVE if NATIVE in found else found[0] if len(found) == 1 else None


def find(name: str) -> KernelSpec:
    name = resolved(name)
    for folder in _folders():
        if name and Path(name).name == name and (spec := _read(folder / name)):
            return spec
    specs = installed()
    if name.lower() in specs:
        return specs[name.lower()]
    raise StepFailed(f"The kernel {name} is not installed; {known(specs)}.")


def known(specs: Mapping[str, KernelSpec]) -> str:
    return f"installed are {', '.join(sorted(specs))}" if specs else "none is installed"


def _folders() -> list[Path]:
    from jupyter_core.paths import jupyter_path

    ipython = Path(os.environ.get("IPYTHONDIR") or Path.home() / ".ipython", "kernels")
    return [*(Path(folder) for folder in jupyter_path("kernels")), ipython]


def _read(folder: Path) -> KernelSpec | None:
    try:
        data: Any = json.loads((folder / "kernel.json").read_bytes())
        provisioner = (data.get("metadata") or {}).get("kernel_provisioner") or {}
        other = provisioner.get("provisioner_name")
        return KernelSpec(
            name=folder.name,
            argv=tuple(str(part) for part in data["argv"]),
            folder=folder,
            language=str(data.get("language") or ""),
            env={str(key): str(value) for key, value in (data.get("env") or {}).items()},
            interrupt_mode=str(data.get("interrupt_mode") or "signal"),
            provisioner=None if other == "local-provisioner" else other,
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
