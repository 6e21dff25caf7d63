"""One attempt from beginning to end: claim it, execute it, write down how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from ..safe_files import read_regular, write_new, write_whole
from ..text import duration_text
from . import dask_versions, declared_files
from .event_files import EventFiles
from .kernels import reap_rest
from .layers import Layer
from .limits import limiting
from .masking import Mask, secrets_in
from .notebook_work import NotebookWork, SpareKernel
from .outcome import (
    TAKEN,
    UNWRITABLE,
    Ending,
    StepFailed,
    ending_of,
    explain_trouble,
    write_outcome,
)
from .process_work import ProcessWork
from .processes import identify
from .record import StepRecord
from .shared_folder import check_source
from .step import RunnerSettings, StepSpec, read_step
from .usage import Gpu, Usage
from .view import inside, keep_made, open_view
from .view_spec import View, ViewSpec

TICK = 0.5
BEAT = 10.0
RESERVE = 64 * 1024


class Work(Protocol):
    """What a step executes. `interrupt` and `kill` make `run` end soon."""

    view: View
    """Where it works; it may turn out to be another one than it was given."""

    async def run(self) -> None: ...
    async def interrupt(self) -> None: ...
    def kill(self) -> None: ...
    def tick(self, used: Mapping[str, float] | None, gpus: Mapping[str, Gpu]) -> None:
        """Called again and again; `used` is what was used of the machine, if that is new."""

    def processes(self) -> list[int]: ...
    def close(self) -> None:
        """Let go of what is no longer of use; nobody waits for it."""


def run(
    folder: Path, spare: SpareKernel | None = None, told: Callable[[], object] = lambda: None
) -> int:
    """Execute the attempt in `folder`, unless another runner has it; returns the exit code.

    `told` is called when the outcome is written, and nobody waits for the rest.
    """
    stop = _Stop(folder)
    stop.listen()
    folder = folder.absolute()
    try:
        _claim(folder)
    except FileExistsError:
        return TAKEN
    except OSError as error:
        sys.stderr.write(f"{folder} cannot be written: {error.strerror}.\n")
        return UNWRITABLE
    started = time.time()
    reserve = _Reserve(folder)
    record: StepRecord | None = None
    report = AttemptReport()
    try:
        step = read_step(folder / "step.json")
        settings = RunnerSettings.read(os.environ)
        mask = Mask(secrets_in(os.environ))
        record = StepRecord(folder, mask, step.metrics, settings.log_limit)
        outcome = asyncio.run(_attempt(step, record, settings, stop, spare, report))
    except Exception as error:  # also a mistake of the runner: no step is left without an end
        outcome = ending_of(error)
    reserve.free()
    if record is not None:
        record.close()
    outcome = _with_trouble(outcome, record)
    work = report.work
    facts = {
        "started": started,
        "ended": time.time(),
        "values": record.values if record else {},
        "metrics": record.metrics if record else {},
        "files": report.files,
        "made": report.made,
        "view": report.view.kind,
        **({"notices": report.notices} if report.notices else {}),
        **({"replicas": report.replicas()} if report.replicas else {}),
        **({"parameters": record.parameters} if record and record.parameters else {}),
    }
    code = _conclude(folder, outcome, facts)
    told()
    if work is not None:
        work.close()
    report.view.close()
    shutil.rmtree(folder / ".inputs", ignore_errors=True)
    return code


@dataclass(slots=True)
class AttemptReport:
    """What an attempt leaves behind, as far as it came."""

    view: View = field(default_factory=lambda: open_view(None))
    files: list[Any] = field(default_factory=list)
    made: int = 0
    notices: list[str] = field(default_factory=list)
    work: Work | None = None
    replicas: Callable[[], list[dict[str, Any]]] | None = None
    """What became of each process of a distributed step."""
    scalars: EventFiles | None = None


async def _attempt(
    step: StepSpec,
    record: StepRecord,
    settings: RunnerSettings,
    stop: _Stop,
    spare: SpareKernel | None,
    report: AttemptReport,
) -> Ending:
    stop.attach(asyncio.get_running_loop())
    record.event("step.start", step=step.step, attempt=step.attempt, kind=step.kind)
    counts = step.distributed is None or step.distributed.outputs_node == settings.node
    if counts:
        report.scalars = EventFiles(time.time() - 1, _reporting(record), record.metrics)
    if told := os.environ.get(dask_versions.VARIABLE):
        report.notices += await asyncio.to_thread(_compare_versions, record.folder, told)
        for notice in report.notices:
            record.log(notice)
    outcome = await _execute(step, record, settings, stop, spare, report)
    strict = outcome.state == "succeeded"
    if report.scalars is not None:
        report.scalars.finish(report.view.written or step.folder)
    if counts:
        try:
            _collect(step, record, report, strict=strict)
        except StepFailed as failure:
            if strict:
                outcome = Ending("failed", failure.reason, failure.error)
    record.read_values()
    record.event("step.end", state=outcome.state, reason=outcome.reason)
    return outcome


def _compare_versions(folder: Path, told: str) -> list[str]:
    from .environment import of_step  # Most have no Dask cluster.

    found = of_step(folder)
    return [] if found is None else dask_versions.differences_of_step(found, told)


def _collect(step: StepSpec, record: StepRecord, report: AttemptReport, *, strict: bool) -> None:
    """Keep what the step declared, then all that it made."""
    view = report.view
    if step.outputs:
        folder, into = view.path(step.folder), record.folder / "files"

        def collect() -> dict[str, Any]:
            said: list[str] = []
            kept = declared_files.collect(
                step.outputs, folder, into, strict=strict, say=said.append
            )
            return {"files": kept, "said": said}

        collected = inside(view, collect)
        report.files = collected["files"]
        for text in collected["said"]:
            record.log(text)
    made = keep_made(view, record.folder / "made")
    report.made = len(made)
    if made:
        content = {"files": [each.to_json() for each in made]}
        write_whole(record.folder / "made.json", json.dumps(content, ensure_ascii=False).encode())
    if step.view is not None:
        report.notices += [
            *step.notices,
            *(
                f"{path} changed after this run was submitted."
                for path in step.view.changed_meanwhile()
            ),
        ]
        if not strict:
            report.notices += [
                f"This step could only read {path}, which is outside the project."
                for path in view.read_only
            ]


async def _execute(
    step: StepSpec,
    record: StepRecord,
    settings: RunnerSettings,
    stop: _Stop,
    spare: SpareKernel | None,
    report: AttemptReport,
) -> Ending:
    spec = None if step.view is None else _with_inputs(step, step.view, record.folder)
    if spec is not None:
        spec = replace(spec, most_files=settings.copied_files)
    report.view = open_view(spec, step.folder, overlays=settings.overlays > 0)
    with limiting(settings.memory_limit, settings.cpu_limit) as limits:
        work: Work
        if step.distributed is not None:
            # A pod compiles what it imports each time: most have no use for these.
            from .distributed import DistributedWork
            from .distributed_notebook import DistributedNotebook

            distributed: DistributedWork
            if step.kind == "notebook":
                distributed = DistributedNotebook(step, record, settings, limits, report.view)
            else:
                distributed = DistributedWork(step, record, limits, report.view, settings)
            work, report.replicas = distributed, distributed.told
        elif step.kind == "notebook":
            work = NotebookWork(step, record, settings, limits, report.view, spare)
        else:
            work = ProcessWork(step, record, limits, report.view)
        report.work = work
        try:
            return await _carry_out(work, step, record, settings.grace, stop, report.scalars)
        finally:
            report.view = work.view


async def _carry_out(
    work: Work,
    step: StepSpec,
    record: StepRecord,
    grace: float,
    stop: _Stop,
    scalars: EventFiles | None,
) -> Ending:
    helpers = [asyncio.ensure_future(_tick(work, step, record, scalars))]
    stopping = asyncio.ensure_future(stop.wait(step.timeout))
    try:
        _make_ready(step)
        running = asyncio.ensure_future(work.run())
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            await _halt(work, running, grace)
            return stopping.result()
        running.result()
        return Ending("succeeded")
    except StepFailed as failure:
        return Ending("failed", failure.reason, failure.error)
    finally:
        stopping.cancel()
        for helper in helpers:
            helper.cancel()


async def _halt(work: Work, running: asyncio.Future[None], grace: float) -> None:
    """Ask, wait, force, wait; whatever comes of it, the step has ended then."""
    await work.interrupt()
    await asyncio.wait({running}, timeout=grace)
    if not running.done():
        work.kill()
        await asyncio.wait({running}, timeout=grace)
    running.cancel()
    await asyncio.wait({running}, timeout=1)
    if running.done() and not running.cancelled():
        running.exception()


async def _tick(work: Work, step: StepSpec, record: StepRecord, scalars: EventFiles | None) -> None:
    """Look after the step while it runs; a look that fails is followed by others all the same."""
    beat = time.monotonic()
    usage = Usage()
    told = None
    while True:
        await asyncio.sleep(TICK)
        try:
            record.read_values()
            if scalars is not None:
                scalars.look(work.view.written or step.folder)
            used = await usage.sample(work.processes()) if usage.is_due() else None
            if used:
                record.event("usage", **used)
            work.tick(used, usage.gpus)
            reap_rest()
            if time.monotonic() - beat >= BEAT:
                beat = time.monotonic()
                record.event("beat")
        except Exception as error:
            if repr(error) != told:
                traceback.print_exc()
            told = repr(error)


def _reporting(record: StepRecord) -> Callable[[str, float, int, float], None]:
    def report(name: str, value: float, step: int, at: float) -> None:
        record.report("metric", name, value, step, at)

    return report


def _with_inputs(step: StepSpec, view: ViewSpec, folder: Path) -> ViewSpec:
    """The view with the inputs of the step, which come from folders outside of the project."""
    if not step.inputs:
        return view
    layer = folder / ".inputs"
    declared_files.place(step.inputs, layer / step.folder.relative_to(view.root))
    return replace(view, layers=(Layer(layer), *view.layers))


def _make_ready(step: StepSpec) -> None:
    """Make the working folder, unless a view has made its own."""
    if step.view is not None:
        return
    try:
        step.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StepFailed(
            f"The working folder {step.folder} cannot be created: {error.strerror}."
        ) from error
    declared_files.place(step.inputs, step.folder)
    check_source(step)


class _Stop:
    """Turns SIGTERM, SIGINT and the time limit into an outcome.

    Signals are heard from the first moment to the last, also before there is an event loop and
    after it. So the handlers are not the loop's own, which it takes off when it is closed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._asked = False
        self._event: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop

    def listen(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(ValueError):  # not the main thread
                signal.signal(number, self._on_signal)

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._event = asyncio.Event()
        if self._asked:
            self._event.set()

    def _on_signal(self, *_: Any) -> None:
        self._asked = True
        if self._event is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: all is done
                self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self, timeout: float | None) -> Ending:
        assert self._event is not None
        try:
            await asyncio.wait_for(self._event.wait(), timeout)
        except asyncio.TimeoutError:
            return Ending("failed", f"Timed out after {duration_text(timeout or 0)}.")
        return self._read()

    def _read(self) -> Ending:
        """Who stops an attempt may say why in `stop.json`: `{"state", "reason"}`."""
        try:
            data = json.loads(read_regular(self._folder / "stop.json"))
            reason = str(data.get("reason") or "Stopped.")
            return Ending("failed" if data.get("state") == "failed" else "cancelled", reason)
        except (OSError, ValueError, AttributeError):
            return Ending("cancelled", "Stopped.")


class _Reserve:
    """Space kept on the disk, so that the outcome can be written when it is full."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / ".reserve"
        with contextlib.suppress(OSError):
            write_new(self._path, bytes(RESERVE))

    def free(self) -> None:
        with contextlib.suppress(OSError):
            self._path.unlink()


def _claim(folder: Path) -> None:
    """The first act. Whoever creates this file, and nobody else, executes the attempt."""
    content = json.dumps(identify(os.getpid())).encode()
    draft = folder / f".runner.{os.getpid()}"
    try:
        write_new(draft, content)
        os.link(draft, folder / "runner.json")
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
            raise
        write_new(folder / "runner.json", content)
    finally:
        draft.unlink(missing_ok=True)


def _with_trouble(outcome: Ending, record: StepRecord | None) -> Ending:
    """A step whose record could not be kept did not succeed."""
    if outcome.state != "succeeded" or record is None or record.trouble is None:
        return outcome
    return Ending("failed", explain_trouble(record.trouble))


def _conclude(folder: Path, outcome: Ending, facts: dict[str, Any]) -> int:
    try:
        write_outcome(folder, outcome, facts)
    except OSError as error:
        sys.stderr.write(f"{explain_trouble(error)}\n")
        return UNWRITABLE
    return outcome.exit_code
