"""What running a component on this machine means, as data: paths, files, and the command.

With podman or docker the command runs in the component's image and sees Kubeflow's
own paths; without, it runs as a plain process in a folder of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path

from ..errors import ConvectError, Refused
from ..pipeline.plan import Json
from .model import Component
from .render import Argument, File, Paths, Rendered, Value, render, slugs

LARGEST_TEXT = 256 << 10
"""How much of a file can be the value of an input, in bytes."""

SEEN = Paths()
VARIABLE = "CONVECT_CONTAINER_ENGINE"
"""The program to use; empty to use none."""


@dataclass(frozen=True, slots=True)
class Folders:
    """Where an attempt keeps what goes in and comes out."""

    work: Path

    @property
    def inputs(self) -> Path:
        return self.work / "inputs"

    @property
    def outputs(self) -> Path:
        return self.work / "outputs"

    @property
    def packages(self) -> Path:
        """What a plain process installs with pip, instead of into our environment."""
        return self.work / "site-packages"


@dataclass(frozen=True, slots=True)
class Launch:
    """Everything to do on this machine; all paths are real ones."""

    command: tuple[str, ...]
    env: Mapping[str, str]
    args: tuple[str, ...] = ()
    image: str | None = None
    """With `args` apart from `command`, for a pod; None for what this machine starts itself."""
    writes: Mapping[Path, str] = field(default_factory=dict)
    mounts: Mapping[Path, bool] = field(default_factory=dict)
    """Places that must be there to be mounted over: True for a folder."""
    reads: Mapping[str, Path] = field(default_factory=dict)
    binds: Mapping[str, Path] = field(default_factory=dict)
    """For a pod: the files that have to be seen at paths which the image fixes."""
    executor_output: Path | None = None
    name: str | None = None
    """What the container is called, to stop it."""


def as_process(
    component: Component,
    arguments: Mapping[str, Argument],
    folders: Folders,
    context: Mapping[str, str],
    environment: Mapping[str, str],
    own: Mapping[str, str],
) -> Launch:
    """The component as a plain process in `environment`, of which `own` was asked for.

    Refused when only its image knows what to execute.
    """
    rendered = _in_place(component, arguments, folders, context)
    fixed = next((item.name for item in component.outputs if item.path), None)
    if fixed:
        raise _only_contained(component, f"it writes “{fixed}” to a path of its image")
    if not rendered.command:
        raise _only_contained(component, "its command is inside its image")
    here = os.path.dirname(sys.executable)  # noqa: PTH120
    packages = str(folders.packages)
    env = {
        "PATH": os.pathsep.join((here, environment.get("PATH", os.defpath))),
        "PYTHONPATH": os.pathsep.join(filter(None, (packages, environment.get("PYTHONPATH")))),
        "PIP_TARGET": packages,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        **rendered.env,
        **own,
    }
    command = (*rendered.command, *rendered.args)
    site = resources.files(__package__).joinpath("component_site.py").read_text("utf-8")
    writes = {**rendered.writes, folders.packages / "sitecustomize.py": site}
    return replace(rendered, command=command, args=(), image=None, env=env, writes=writes)


def as_pod(
    component: Component,
    arguments: Mapping[str, Argument],
    folders: Folders,
    context: Mapping[str, str],
) -> Launch:
    """The component in a pod that sees our files where they are."""
    launch = _in_place(component, arguments, folders, context)
    binds = {path: _real(output, folders) for path, output in _fixed_outputs(component).items()}
    return replace(
        launch,
        reads={name: binds.get(str(path), path) for name, path in launch.reads.items()},
        mounts=dict.fromkeys(binds.values(), False),
        binds=binds,
    )


def as_distant_pod(
    component: Component,
    arguments: Mapping[str, Argument],
    folders: Folders,
    context: Mapping[str, str],
) -> tuple[Launch, Mapping[str, str]]:
    """The component in a pod that shares nothing with us, at Kubeflow's own paths.

    `writes`, `mounts` and `reads` of the launch are in `folders`, whose content has to be
    brought there and back. Beside it the files that have to be seen at each path.
    """
    rendered = render(component, arguments, SEEN, context)
    binds = {path: Path(output) for path, output in _fixed_outputs(component).items()}
    return replace(_behind(rendered, component, folders), binds=binds), rendered.files


def as_container(
    component: Component,
    arguments: Mapping[str, Argument],
    folders: Folders,
    context: Mapping[str, str],
    *,
    program: str,
    image: str | None = None,
    env: Mapping[str, str] | None = None,
    secrets: Iterable[str] = (),
    gpus: str | None = None,
    user: str | None = None,
    memory: int = 0,
    cpu: float = 0,
) -> Launch:
    """The component in its image (or another), by podman or docker.

    `secrets` are variables that are passed on by name, so that no value is in the
    command. `memory` (in bytes) and `cpu` are limits, 0 for none: the control group of
    the step does not hold for what a container engine starts.
    """
    rendered = render(component, arguments, SEEN, context)
    name = context["step.uid"]
    fixed = _fixed_outputs(component)
    mounts = [_mount(folders.inputs, SEEN.inputs), _mount(folders.outputs, SEEN.outputs)]
    mounts += [_mount(Path(real), seen, "readonly") for seen, real in rendered.files.items()]
    mounts += [_mount(_real(output, folders), path) for path, output in fixed.items()]
    # A user whom the image does not know has no home, and pip wants one.
    variables = {**({"HOME": "/tmp"} if user else {}), **rendered.env, **(env or {})}  # noqa: S108
    entry = ["--entrypoint", rendered.command[0]] if rendered.command else []
    command = (
        program,
        "run",
        "--rm",
        "--name",
        name,
        *(("--user", user) if user else ()),
        *(("--memory", f"{memory}b", "--memory-swap", f"{memory}b") if memory else ()),
        *(("--cpus", f"{cpu:g}") if cpu else ()),
        *(word for mount in mounts for word in ("--mount", mount)),
        *(word for key, value in variables.items() for word in ("-e", f"{key}={value}")),
        *(word for key in secrets for word in ("-e", key)),
        *_gpus(program, gpus),
        *entry,
        image or rendered.image,
        *rendered.command[1:],
        *rendered.args,
    )
    launch = _behind(rendered, component, folders)
    files = {_real(seen, folders): Path(real).is_dir() for seen, real in rendered.files.items()}
    return replace(
        launch,
        command=command,
        args=(),
        image=None,
        env={},
        mounts={**files, **launch.mounts},
        name=name,
    )


def context_of(step: Json) -> dict[str, str]:
    """What a command may ask of its run, from the content of `step.json`."""
    name = f"convect-{step['run']['id']}-{step['step']}-{step['attempt']}"
    return {
        "run.id": step["run"]["id"],
        "run.name": step["run"]["name"],
        "step.id": step["step"],
        "step.uid": re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-"),
        "root": step["folder"],
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def in_view(given: Mapping[str, Json], merged: Path) -> dict[str, Json]:
    """The arguments of `step.json`, with files of the project as the run sees them.

    What earlier steps made lies over the project as it was submitted. A folder that
    several layers have is put together below `merged`.
    """
    view = given.get("view") or {"root": given["root"], "layers": []}

    def real(name: str, value: Json) -> Json:
        path = file_in(value)
        inside = None if path is None else os.path.relpath(Path(given["root"], path), view["root"])
        if inside is None or inside.startswith(".."):
            return value
        try:
            found = _seen(inside, view["layers"], merged)
        except FileNotFoundError:
            raise ConvectError(
                f"An earlier step deleted the file {path} for the input “{name}”."
            ) from None
        return value if found is None else {**value, "file": str(found)}

    return {name: real(name, value) for name, value in given["arguments"].items()}


def _seen(path: str, layers: Sequence[Json], merged: Path) -> Path | None:
    """Where it lies; None when no layer knows it, FileNotFoundError when a step deleted it."""
    above: list[tuple[Path, Sequence[str]]] = []
    for layer in layers:
        hidden = layer.get("deleted", ())
        found = Path(layer["folder"], path)
        if found.is_file():
            return None if above else found
        if found.is_dir():
            above.append((found, [item for item in hidden if _below(item, path)]))
        if any(_below(path, item) for item in hidden):
            if not above:
                raise FileNotFoundError(path)
            break
    if len(above) < 2:
        return above[0][0] if above else None
    target = merged / path
    for found, deleted in reversed(above):
        for item in deleted:
            gone = merged / item
            shutil.rmtree(gone) if gone.is_dir() else gone.unlink(missing_ok=True)
        shutil.copytree(found, target, dirs_exist_ok=True)
    return target


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def arguments_of(
    component: Component, given: Mapping[str, Json], folders: Iterable[Path]
) -> dict[str, Argument]:
    """Values and files as a bound step has them.

    `{"file": path}` is a file; a relative path is looked for in each of `folders`.
    Files are read where the component wants a value. What is no input is left out.
    """
    searched = list(folders)
    found: dict[str, Argument] = {}
    for end in component.inputs:
        if end.name not in given:
            continue
        path = file_in(given[end.name])
        if path is None:
            found[end.name] = Value(given[end.name])
            continue
        real = next((folder / path for folder in searched if (folder / path).exists()), None)
        if real is None:
            raise ConvectError(f"The file {path} for the input “{end.name}” does not exist.")
        found[end.name] = File(str(real), _text(real) if end.passed == "value" else None)
    return found


def input_files(given: Json) -> list[str]:
    """Every file that a step is given, from `component` in its `step.json`."""
    paths = [file_in(value) for value in given["arguments"].values()]
    return [str(Path(given["root"]) / path) for path in paths if path is not None]


def file_in(value: Json) -> str | None:
    """The path in `{"file": path}`, which outputs of components give with their size."""
    if isinstance(value, Mapping) and "file" in value and set(value) <= {"file", "size"}:
        return value["file"] if isinstance(value["file"], str) else None
    return None


def _text(path: Path) -> str | None:
    try:
        if path.is_file() and path.stat().st_size <= LARGEST_TEXT:
            return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        pass
    return None


def _real(seen: str, folders: Folders) -> Path:
    """Where a path that the command sees lies on this machine."""
    for base, real in ((SEEN.inputs, folders.inputs), (SEEN.outputs, folders.outputs)):
        if seen.startswith(base + "/"):
            return real / seen[len(base) + 1 :]
    return Path(seen)


def _in_place(
    component: Component,
    arguments: Mapping[str, Argument],
    folders: Folders,
    context: Mapping[str, str],
) -> Launch:
    """What the command is where it sees our files as they lie."""
    paths = Paths(str(folders.inputs), str(folders.outputs), in_place=True)
    rendered = render(component, arguments, paths, context)
    return Launch(
        command=rendered.command,
        args=rendered.args,
        image=rendered.image,
        env=rendered.env,
        writes={Path(path): text for path, text in rendered.writes.items()},
        reads={name: Path(path) for name, path in rendered.reads.items()},
        executor_output=Path(rendered.executor_output) if rendered.executor_output else None,
    )


def _behind(rendered: Rendered, component: Component, folders: Folders) -> Launch:
    """The files on this machine behind the paths that the command sees."""
    fixed = _fixed_outputs(component)
    report = rendered.executor_output
    return Launch(
        command=rendered.command,
        args=rendered.args,
        image=rendered.image,
        env=rendered.env,
        writes={_real(path, folders): text for path, text in rendered.writes.items()},
        mounts={_real(output, folders): False for output in fixed.values()},
        reads={
            name: _real(fixed.get(path, path), folders) for name, path in rendered.reads.items()
        },
        executor_output=_real(report, folders) if report else None,
    )


def _fixed_outputs(component: Component) -> dict[str, str]:
    """Paths that the image fixes: each is a file of its own among the outputs."""
    own = slugs([item.name for item in component.outputs])
    return {
        item.path: f"{SEEN.outputs}/{own[item.name]}/data"
        for item in component.outputs
        if item.path
    }


def _mount(real: Path, seen: str, *options: str) -> str:
    """A bind mount as both engines read it: comma-separated values, with quotes where needed."""
    fields = ("type=bind", f"source={real}", f"target={seen}", *options)
    return ",".join(
        '"' + field.replace('"', '""') + '"' if set(field) & set(',"\n') else field
        for field in fields
    )


def _gpus(program: str, gpus: str | None) -> list[str]:
    devices = [item for item in (gpus or "").split(",") if item and item != "-1"]
    if not devices:
        return []
    if Path(program).name.startswith("podman"):
        return [word for item in devices for word in ("--device", f"nvidia.com/gpu={item}")]
    return ["--gpus", f'"device={",".join(devices)}"']


def _only_contained(component: Component, why: str) -> Refused:
    return Refused(
        f"“{component.name}” runs only in its container, because {why}.",
        code="needs-container",
        hint="Install podman or docker, or run it on a cluster.",
    )


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
