"""Runs the component of one attempt: `python -m jupyterlab_convect.catalog.execute FOLDER`.

The runner starts it in place of a command. It decides how the component runs here,
starts it, passes on how it ended, and reports its outputs. The last line it prints
says what went wrong.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from ..errors import ConvectError
from ..json_text import dumps, is_number
from ..pipeline.component_types import from_text
from ..pipeline.plan import Json
from .approvals import Approvals, refuse_unapproved, store_folder
from .launch import (
    Folders,
    Launch,
    arguments_of,
    as_container,
    as_process,
    container_engine,
    context_of,
    in_view,
    user_in,
)
from .model import Component, component_from_json
from .store_files import read_json

LARGEST_VALUE = 64 << 10
"""Outputs above so many bytes are files, whatever their type."""


def main(folder: Path) -> int:
    try:
        step = read_json(folder / "step.json")
        component = component_from_json(step["component"]["definition"])
        launch = prepare(step, component, folder)
        code = execute(launch, Path(step["folder"]))
        if code == 0:
            report(collect(component, launch, folder, Path(step["folder"])))
    except ConvectError as error:
        if error.hint:
            say(error.hint)
        say(error.sentence)
        return 1
    finally:
        shutil.rmtree(folder / "work" / "site-packages", ignore_errors=True)
    return code if code >= 0 else 128 - code


def prepare(step: Json, component: Component, folder: Path) -> Launch:
    """Decide how it runs here, and make ready what it needs."""
    given = step["component"]
    folders = Folders(Path(step["folder"]))
    files = in_view(given, folders.work / "merged")
    arguments = arguments_of(component, files, (folders.work, Path(given["root"])))
    context = context_of(step)
    program = container_engine(os.environ)
    if program:
        launch = as_container(
            component,
            arguments,
            folders,
            context,
            program=program,
            image=given.get("image"),
            env=step["env"],
            secrets=given.get("secrets", ()),
            gpus=os.environ.get("CUDA_VISIBLE_DEVICES"),
            user=user_in(program),
            memory=int(os.environ.get("CONVECT_MEMORY_LIMIT") or 0),
            cpu=float(os.environ.get("CONVECT_CPU_LIMIT") or 0),
        )
    else:
        launch = as_process(component, arguments, folders, context, os.environ, step["env"])
        if not Approvals(store_folder(Path(given["runs"]))).has(component):
            raise refuse_unapproved(component)
        say(f"[Not contained: “{component.name}” runs as a process of this machine.]")
    make_ready(launch, folders)
    return launch


def execute(launch: Launch, work: Path) -> int:
    """Run it to its end; a signal to stop reaches it first."""
    try:
        process = subprocess.Popen(
            launch.command,
            cwd=work,
            env={**os.environ, **launch.env},
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise ConvectError(f"{launch.command[0]} is not installed here.") from None
    except (OSError, ValueError) as error:
        raise ConvectError(f"{launch.command[0]} could not be started: {error}.") from None

    def stop(number: int, frame: FrameType | None) -> None:
        if launch.name is not None:
            # In a session of its own, so that it outlives our process group.
            subprocess.Popen(
                [launch.command[0], "stop", "--time", "3", launch.name],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    return process.wait()


def collect(
    component: Component, launch: Launch, folder: Path, work: Path
) -> Iterator[dict[str, Json]]:
    """Outputs and metrics as the runner takes them."""
    told = _executor_output(launch)
    for output in component.outputs:
        if output.name not in launch.reads:
            continue
        path = launch.reads[output.name]
        values = told.get("parameterValues", {})
        if not path.exists() and output.name in values:
            yield _line("output", output.name, values[output.name])
        elif path.exists():
            value = _small(path, output.type) if output.passed == "value" else None
            yield _line(
                "output", output.name, _file(path, folder, work) if value is None else value
            )
        elif component.format != "ir":
            raise ConvectError(f"“{component.name}” did not write its output “{output.name}”.")
    yield from _metrics(launch, told)
    if component.outputs and not any(path.is_file() for path in (work / "outputs").rglob("*")):
        # The runner takes a folder without a file for a promise that was not kept.
        (work / "outputs" / ".empty").touch()


def report(lines: Iterator[dict[str, Json]]) -> None:
    found = [dumps(line) + "\n" for line in lines]
    values_file = os.environ.get("CONVECT_VALUES")
    if values_file:
        with Path(values_file).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(found)


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def make_ready(launch: Launch, folders: Folders) -> None:
    try:
        for folder in (folders.inputs, folders.outputs):
            folder.mkdir(parents=True, exist_ok=True)
        for path in launch.reads.values():
            path.parent.mkdir(parents=True, exist_ok=True)
        for path, is_folder in launch.mounts.items():
            (path if is_folder else path.parent).mkdir(parents=True, exist_ok=True)
            if not is_folder:
                path.touch()
        for path, text in launch.writes.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", errors="surrogateescape", newline="")
    except OSError as error:
        raise ConvectError(f"The inputs cannot be written: {error.strerror}.") from None


def _small(path: Path, kind: Json) -> Json:
    """What a small file says; None when it is none."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if path.stat().st_size <= LARGEST_VALUE:
            return from_text(path.read_bytes().decode(), kind)
    return None


def _file(path: Path, folder: Path, work: Path) -> Json:
    """Where the runner keeps it. A folder without files is not kept and stays where it is."""
    files = [item for item in path.rglob("*") if item.is_file()] if path.is_dir() else [path]
    kept = folder / "files" / path.relative_to(work) if files else path
    return {"file": str(kept), "size": sum(item.stat().st_size for item in files)}


def _executor_output(launch: Launch) -> dict[str, Any]:
    """What a compiled component says about its outputs, when it says anything."""
    if launch.executor_output is None:
        return {}
    with contextlib.suppress(OSError, ValueError):
        value = json.loads(launch.executor_output.read_bytes())
        if isinstance(value, dict) and isinstance(value.get("parameterValues", {}), dict):
            return value
    return {}


def _metrics(launch: Launch, told: Mapping[str, Any]) -> Iterator[dict[str, Json]]:
    """Numbers that Kubeflow would show as metrics: of the first format and of the second."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        for name in ("mlpipeline-metrics", "MLPipeline Metrics", "mlpipeline_metrics"):
            if name in launch.reads:
                for item in json.loads(launch.reads[name].read_bytes())["metrics"]:
                    yield from _metric(str(item["name"]), item["numberValue"])
    with contextlib.suppress(KeyError, TypeError, AttributeError):
        for listed in told["artifacts"].values():
            for artifact in listed["artifacts"]:
                if artifact["type"]["schemaTitle"] == "system.Metrics":
                    for name, value in artifact["metadata"].items():
                        yield from _metric(name, value)


def _metric(name: str, value: Json) -> Iterator[dict[str, Json]]:
    if is_number(value):
        yield _line("metric", name, value)


def _line(kind: str, name: str, value: Json) -> dict[str, Json]:
    return {"kind": kind, "name": name, "value": value, "step": None, "time": time.time()}


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
