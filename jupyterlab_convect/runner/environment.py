"""In which environment a step was executed: its Python, what is installed there, its host.

An environment is looked at once, by its own interpreter, kept under its digest in the
folder of the runs, and recognised afterwards by when the folders on its path changed.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import json
import os
import pkgutil
import re
import shutil
import socket
import subprocess
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..safe_files import PRIVATE, is_shared, make_folder, read_regular, write_whole
from . import notebooks
from .kernels import KernelSpec, find
from .outcome import StepFailed
from .packages import marks_in
from .step import NODES, StepSpec, read_step

FILE = "environment.json"
"""In the folder of an attempt: `{"digest", "interpreter", "kernel", "language", "host"}`."""
FOLDER = "environments"
"""In the folder of the runs: `<sha256>.json` for each environment, and who has it."""
PATIENCE = 30.0
"""Seconds an interpreter has to say what it has installed."""
COARSE = 2.0
"""Seconds within which a file may change twice and show the same time."""
MOST_PACKAGES, LONGEST = 20_000, 1_000
"""Of an environment that is believed."""

CONTENT = ("python", "implementation", "platform", "packages")
_LOOKED_AT = (
    *("PYTHONPATH", "PYTHONHOME", "PYTHONNOUSERSITE", "PYTHONUSERBASE", "PYTHONSAFEPATH"),
    *("PATH", "HOME", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH"),
)
"""Variables that decide which interpreter is found, and what it finds."""

Environment = dict[str, Any]
"""`python`, `implementation`, `platform`, and `packages`: version by name."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The words that start it, up to what it is to execute, and what it looks at."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return _sha256([self.command, dict(self.env)])


def record(folder: Path) -> None:
    """Write down in which environment the attempt in `folder` was executed.

    It comes after the outcome, which does not wait for it. Whatever goes wrong, the step has
    ended as it has, and there is no record.
    """
    with contextlib.suppress(Exception):
        write_whole(folder / FILE, json.dumps(_describe(folder)).encode())


def _describe(folder: Path) -> dict[str, Any]:
    step = read_step(folder / "step.json")
    kernel, interpreter = None, None
    with contextlib.suppress(StepFailed, OSError, ValueError, KeyError, TypeError):
        kernel = kernel_of(step.kind, step.copy or step.source, step.kernel)
        interpreter = interpreter_of(step, kernel, {**os.environ, **step.env})
    found: dict[str, Any] = {
        "digest": None,
        "interpreter": None if interpreter is None else interpreter.command[0],
        "kernel": None if kernel is None else kernel.name,
        "language": _language(folder, kernel),
        "host": host(),
    }
    if interpreter is None:
        return found
    ended = json.loads(read_regular(folder / "outputs.json"))["ended"]
    runs = runs_folder(folder)
    if runs is not None:
        with contextlib.suppress(OSError):
            return {**found, "digest": current(runs / FOLDER, interpreter, ended)}
    looked = look(interpreter)
    if looked is None or _has_changed(looked, ended):
        return found
    return {**found, "content": _content(looked)}


def of_step(folder: Path) -> Environment | None:
    """What is installed where the step in `folder` is about to be executed, if anybody knows."""
    step = read_step(folder / "step.json")
    with contextlib.suppress(StepFailed, OSError, ValueError, KeyError, TypeError):
        kernel = kernel_of(step.kind, step.copy or step.source, step.kernel)
        interpreter = interpreter_of(step, kernel, {**os.environ, **step.env})
        if interpreter is None:
            return None
        runs = runs_folder(folder)
        digest = None if runs is None else current(runs / FOLDER, interpreter)
        if runs is not None and digest is not None:
            return read(runs / FOLDER, digest)
        return look(interpreter)
    return None


def runs_folder(attempt: Path) -> Path | None:
    """The folder of the runs that an attempt lies in, if it is there."""
    if attempt.parent.name == NODES:
        attempt = attempt.parents[1]
    if len(attempt.parents) < 4 or attempt.parents[1].name != "steps":
        return None
    run = attempt.parents[2]
    return run.parent if (run / "run.json").is_file() else None


def kernel_of(kind: str, source: Path | None, name: str | None) -> KernelSpec | None:
    """The kernel of a notebook, or the one whose interpreter a script asks for."""
    if kind == "notebook" and not name and source is not None:
        name = notebooks.kernel_name(notebooks.read(source), source.name)
    return find(name) if name and kind in ("notebook", "script") else None


def interpreter_of(
    step: StepSpec, kernel: KernelSpec | None, env: Mapping[str, str]
) -> Interpreter | None:
    """The Python that executes it; None where it is none, or nobody knows which."""
    command: tuple[str, ...] = ()
    if step.kind == "notebook" and kernel is not None:
        if kernel.ipykernel is not None and kernel.provisioner is None:
            command = (kernel.interpreter, *kernel.ipykernel[0])
            env = kernel.environment(env)
    elif step.kind == "script" and not step.command:
        is_python = step.source is not None and step.source.suffix.lower() == ".py"
        command = (kernel.interpreter if kernel else sys.executable,) if is_python else ()
    elif step.kind in ("script", "command") and Path(step.command[0]).name.startswith("python"):
        path = shutil.which(step.command[0], path=env.get("PATH"))
        command = (path,) if path else ()
    looked_at = {name: env[name] for name in _LOOKED_AT if name in env}
    return Interpreter(command, looked_at) if command else None


def current(folder: Path, interpreter: Interpreter, since: float | None = None) -> str | None:
    """The digest of the interpreter's environment as it is now, which is kept in `folder`.

    None when nobody can say, also because it has changed `since` then.
    """
    known = folder / "interpreters" / f"{interpreter.key}.json"
    digest = _recognise(known)
    if digest is not None and touch(path_of(folder, digest)):
        return digest
    looked = look(interpreter)
    if looked is None:
        return None
    digest = keep(folder, _content(looked))
    seen = {"digest": digest, "began": looked["began"], "watched": looked["watched"]}
    make_folder(known.parent)
    write_whole(known, json.dumps(seen).encode())
    return None if since is not None and _has_changed(looked, since) else digest


def _has_changed(looked: Mapping[str, Any], since: float) -> bool:
    """Whether anything was installed after that moment, which is not what the step found."""
    return any(
        changed is not None and changed / 1e9 > since and (has_packages or not Path(path).is_dir())
        for path, changed, has_packages in looked["watched"]
    )


def look(interpreter: Interpreter) -> dict[str, Any] | None:
    """What `packages.py` prints when the interpreter executes it."""
    source = zlib.compress(pkgutil.get_data(__package__, "packages.py") or b"")
    program = (  # One line: programs that start others do not all hand on more.
        "exec(__import__('zlib').decompress(__import__('base64')"
        f".b64decode('{base64.b64encode(source).decode()}')))"
    )
    try:
        done = subprocess.run(
            [*interpreter.command, "-c", program],
            env=dict(interpreter.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE,
            check=True,
        )
        found: dict[str, Any] = json.loads(done.stdout)
        _content(found)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return found


def keep(folder: Path, content: Environment) -> str:
    """Keep an environment under its digest, once."""
    digest = f"sha256:{_sha256(content)}"
    path = path_of(folder, digest)
    if not touch(path):
        make(folder)
        write_whole(path, _canonical(content))
    return digest


def make(folder: Path) -> None:
    """Make the folder of the environments; who shares runs shares what they refer to."""
    make_folder(folder, 0o3770 if is_shared(folder.parent) else PRIVATE)


def touch(path: Path) -> bool:
    """Say that something refers to it, so that it stays; False when it is not there."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    except PermissionError:  # somebody else's, of whom it is shared
        pass
    return True


def read(folder: Path, digest: str) -> Environment | None:
    """The environment of this digest, if it is kept in `folder`."""
    try:
        return _content(json.loads(read_regular(path_of(folder, digest))))
    except (OSError, ValueError):
        return None


def path_of(folder: Path, digest: str) -> Path:
    """Where it is kept; ValueError when it is no digest."""
    found = re.fullmatch(r"sha256:([0-9a-f]{64})", digest)
    if found is None:
        raise ValueError(f"{digest!r} is no digest")
    return folder / f"{found[1]}.json"


def settle(attempt: Path, data: bytes) -> bytes:
    """What a runner elsewhere has recorded, with what it has found kept among the runs here."""
    found = json.loads(data)
    runs = runs_folder(attempt)
    if runs is not None and "content" in found:
        found["digest"] = keep(runs / FOLDER, _content(found.pop("content")))
    return json.dumps(found).encode()


@functools.cache
def host() -> dict[str, Any]:
    """What this machine is, as far as it costs nothing to know."""
    system = os.uname()
    return {
        "name": socket.gethostname(),
        "system": f"{system.sysname} {system.release}",
        "machine": system.machine,
        "cpus": os.cpu_count(),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "gpus": _gpus(),
    }


def _gpus() -> list[str]:
    """As the driver names them; asking its own program would take long."""
    names = []
    for file in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        with contextlib.suppress(OSError):
            facts = (line.partition(":") for line in file.read_text().splitlines())
            names += [value.strip() for name, _, value in facts if name == "Model"]
    return names


def _language(folder: Path, kernel: KernelSpec | None) -> str | None:
    """The language of a kernel that is no Python, and its version if the kernel has told it."""
    if kernel is None or kernel.language.lower() == "python":
        return None
    with contextlib.suppress(OSError, ValueError, AttributeError):
        notebook = json.loads((folder / "executed.ipynb").read_bytes())
        told = notebook.get("metadata", {}).get("language_info", {})
        if told.get("version"):
            return f"{kernel.language} {told['version']}"
    return kernel.language or None


def _recognise(known: Path) -> str | None:
    """The digest of the environment that was seen last, if nothing was installed since."""
    try:
        seen = json.loads(read_regular(known))
        same = all(_is_same(seen["began"], *each) for each in seen["watched"])
        return str(seen["digest"]) if same else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_same(began: float, path: str, changed: int | None, has_packages: bool) -> bool:
    folder = Path(path)
    try:
        now: int | None = folder.stat().st_mtime_ns
    except OSError:
        now = None
    if now == changed and (now is None or now / 1e9 < began - COARSE):
        return True
    # A project's own folder changes all the time; nothing was installed there, nor is now.
    return not has_packages and folder.is_dir() and not marks_in(folder)


def _content(found: Any) -> Environment:
    """What there is to an environment, checked; ValueError."""
    content = {name: found.get(name) for name in CONTENT} if isinstance(found, dict) else {}
    packages = content.pop("packages", None)
    texts = [*content.values(), *(packages if isinstance(packages, dict) else (None,))]
    texts += packages.values() if isinstance(packages, dict) else ()
    if len(texts) > 2 * MOST_PACKAGES or not all(
        isinstance(text, str) and len(text) <= LONGEST for text in texts
    ):
        raise ValueError("this is no environment")
    return {**content, "packages": packages}


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


def _sha256(value: Any) -> str:
    return hashlib.sha256(_canonical(value)).hexdigest()
