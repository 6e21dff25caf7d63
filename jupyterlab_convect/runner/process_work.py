"""A step that is a script or a command."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import zipimport
from pathlib import Path
from typing import Any

from ..json_text import dumps
from ..safe_files import write_whole
from .kernels import end_rest, explain_os_error, find, start_process
from .limits import Limits
from .one_file import bundle_path
from .outcome import MemoryWatch, StepFailed, explain_end
from .record import LAST_WORDS, StepRecord
from .shared_folder import wait_for_turn
from .step import StepSpec, child_environment
from .view import certain
from .view_spec import View


class ProcessWork:
    def __init__(self, step: StepSpec, record: StepRecord, limits: Limits, view: View) -> None:
        self.view = view
        self._step = step
        self._record = record
        self._limits = limits
        self._process: asyncio.subprocess.Process | None = None
        self._said = ""

    async def run(self) -> None:
        step, memory = self._step, MemoryWatch(self._limits)
        self.view = certain(self.view, step.folder)
        if self.view.kind == "turns":
            await wait_for_turn(step, self._record)
        command = command_of(step, self.view)
        try:
            env = environment_of(step, self._record, command[0])
            self._process, reading = await start_process(
                command, step.folder, env, self._limits, self._hear, self.view
            )
        except (OSError, ValueError) as error:
            why = explain_os_error(error) if isinstance(error, OSError) else str(error)
            raise StepFailed(f"{step.title} could not be started: {why}.") from error
        try:
            code = await self._process.wait()
        finally:
            await end_rest(self._process.pid)
            # A process that was not found may keep the pipe open forever.
            await asyncio.wait({reading}, timeout=1)
            reading.cancel()
        if code:
            raise StepFailed(*self._explain(explain_end(code, memory)))

    async def interrupt(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def processes(self) -> list[int]:
        return [] if self._process is None else [self._process.pid]

    def tick(self, used: object, gpus: object) -> None:
        pass

    def close(self) -> None:
        pass

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, number)

    def _hear(self, text: str) -> None:
        self._said = (self._said + text)[-LAST_WORDS:]
        self._record.log(text)

    def _explain(self, end: str) -> tuple[str, dict[str, Any]]:
        mask = self._record.mask
        said = mask(self._said).rstrip()
        last = said.rpartition("\n")[2].strip()
        reason = f"{self._step.title} {end}" + (f": {last[:300]}" if last else ".")
        return reason, {"name": "exit", "value": end, "traceback": said}


def command_of(step: StepSpec, view: View) -> list[str]:
    """The program that a step is, with its arguments."""
    if step.command:
        return list(step.command)
    assert step.source is not None
    source = step.copy or step.source
    if not source.is_file():
        raise StepFailed(f"{step.source.name} was not found.")
    suffix, path = step.source.suffix.lower(), str(view.path(step.source))
    if suffix == ".py":
        interpreter = find(step.kernel).interpreter if step.kernel else sys.executable
        return [interpreter, path]
    if suffix in (".r", ".sh"):
        program = {".r": "Rscript", ".sh": "bash"}[suffix]
        if shutil.which(program, path=step.env.get("PATH")) is None:
            raise StepFailed(f"{step.title} needs {program}, which is not installed here.")
        return [program, path]
    if os.access(step.source, os.X_OK):
        return [path]
    raise StepFailed(
        f"There is no known way to run {step.title}: it is not a .py, .R or .sh file "
        "and not executable."
    )


def environment_of(step: StepSpec, record: StepRecord, program: str) -> dict[str, str]:
    """Parameters by name, values that are not text as JSON; and all of them in a file."""
    parameters = record.folder / "parameters.json"
    try:
        write_whole(parameters, dumps(dict(step.parameters)).encode())
    except OSError as error:
        raise StepFailed(f"The parameters could not be written: {error.strerror}.") from error
    given = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in step.parameters.items()
    }
    env = {
        **child_environment(step, record.values_path),
        **given,
        "CONVECT_PARAMETERS": str(parameters),
        "PYTHONUNBUFFERED": "1",
    }
    bundled = isinstance(__spec__.loader, zipimport.zipimporter)
    if bundled or ("python" in Path(program).name and program != sys.executable):
        places = (env.get("PYTHONPATH"), bundle_path(record.folder))
        env["PYTHONPATH"] = os.pathsep.join(place for place in places if place)
    return env
