"""A step that is a notebook."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..json_text import loads
from ..safe_files import write_whole
from . import notebooks
from .kernels import Kernel, KernelSpec, StartedKernel, find
from .limits import Limits
from .one_file import bundle_path
from .outcome import StepFailed
from .overlay_view import OverlayView
from .record import StepRecord
from .shared_folder import wait_for_turn
from .step import RunnerSettings, StepSpec, child_environment
from .view import certain, without
from .view_spec import View

if TYPE_CHECKING:
    from .execution import Execution

_IMPORTABLE = "__import__('importlib.util').util.find_spec('jupyterlab_convect') is not None"
_ORDERLY_EXIT = (
    "(setattr(get_ipython().kernel, '_process_children', list), "
    "__import__('atexit').register(get_ipython().kernel.control_thread.join, 2))"
)
"""At its end, ipykernel waits long for children that have ended, which are ended here anyway;
and it may close streams that its control thread still flushes, and then hangs."""


class SpareKernel(Protocol):
    """A kernel that was started ahead and waits for what to do."""

    def fits(self, spec: KernelSpec, env: Mapping[str, str], *, shared: bool) -> bool: ...

    def show(self, order: Mapping[str, Any]) -> bool:
        """Put an overlay where the kernel will see it; False when that is not possible."""

    async def assign(
        self,
        cwd: Path,
        env: Mapping[str, str],
        limits: Limits,
        record: StepRecord,
        guard: Sequence[Sequence[str]] = (),
    ) -> Kernel | None:
        """The kernel, with everything it needs; None when it has died meanwhile."""


class NotebookWork:
    def __init__(
        self,
        step: StepSpec,
        record: StepRecord,
        settings: RunnerSettings,
        limits: Limits,
        view: View,
        spare: SpareKernel | None = None,
    ) -> None:
        self.view = view
        self._step = step
        self._record = record
        self._settings = settings
        self._limits = limits
        self._spare = spare
        self._target = record.folder / "executed.ipynb"
        self._pace = Pace()
        self._started = time.monotonic()
        self._notebook: notebooks.Notebook = None
        self._injected: int | None = None
        self._spec: KernelSpec
        self._kernel: Kernel | None = None
        self._execution: Execution | None = None
        self._ready = False
        self._saved: object = None

    async def run(self) -> None:
        step = self._step
        assert step.source is not None
        data = notebooks.read(step.copy or step.source, step.source.name)
        self._spec = find(step.kernel or notebooks.kernel_name(data, step.title))
        self._kernel = await self._start_kernel()
        failed = True
        try:
            # While the kernel starts, the slow imports continue here.
            self._notebook = notebooks.prepare(data, step.title)
            if step.parameters:
                self._notebook, self._injected = notebooks.inject(
                    self._notebook, step.parameters, self._spec
                )
            notebooks.mark_start(self._notebook, step.parameters, step.source)
            await self._execute()
            failed = False
        finally:
            if self._notebook is not None:
                seconds = time.monotonic() - self._started
                notebooks.mark_end(self._notebook, seconds, failed)
            await self._end_kernel()

    async def interrupt(self) -> None:
        if self._kernel is None:
            return
        if not self._ready:
            self._kernel.kill()
        elif self._spec.interrupt_mode == "message" and self._execution is not None:
            client = self._execution.client
            client.control_channel.send(client.session.msg("interrupt_request", content={}))
        else:
            self._kernel.interrupt()

    def kill(self) -> None:
        if self._kernel is not None:
            self._kernel.kill()

    def close(self) -> None:
        if self._execution is not None:
            self._execution.close()
        if self._kernel is not None:
            self._kernel.forget()

    def processes(self) -> list[int]:
        return [] if self._kernel is None else [self._kernel.pid]

    def tick(self, used: object, gpus: object) -> None:
        execution = self._execution
        if execution is not None and execution.version != self._saved and self._pace.due():
            execution.settle(final=False)
            self._save()

    def progress(self, done: int, total: int) -> None:
        self._record.event(
            "progress",
            cell=done,
            cells=total,
            elapsed=round(time.monotonic() - self._started, 3),
            expected=self._step.expected,
        )

    async def _start_kernel(self) -> Kernel:
        step, spec, limits = self._step, self._spec, self._limits
        if spec.provisioner is not None:
            raise StepFailed(
                f"The kernel {spec.name} is run by {spec.provisioner}, not as a process here."
            )
        env = child_environment(step, self._record.values_path)
        shared = self.view.kind == "shared"
        if self._spare is not None and self._spare.fits(spec, env, shared=shared):
            complete = spec.environment(env)
            if isinstance(self.view, OverlayView) and not self._spare.show(self.view.order):
                self.view = without(self.view, step.folder)
            await self._wait_for_turn()
            kernel = await self._spare.assign(
                self.view.path(step.folder), complete, limits, self._record, self.view.guard
            )
            if kernel is not None:
                return kernel
        self.view = certain(self.view, step.folder)
        await self._wait_for_turn()
        log = self._record.log
        return await StartedKernel.start(spec, step.folder, env, limits, log, self.view)

    async def _wait_for_turn(self) -> None:
        if self.view.kind == "turns":
            await wait_for_turn(self._step, self._record)

    async def _execute(self) -> None:
        from .execution import Execution

        assert self._kernel is not None
        limit = self._settings.output_limit
        python = self._spec.language.lower() == "python"
        computed = self._step.computed if python else ()
        self._execution = Execution(
            self._notebook,
            self._record,
            limit,
            self._limits,
            injected=self._injected,
            computed=computed,
        )
        try:
            await self._execution.connect(self._kernel, self._settings.start_timeout)
        except StepFailed as failure:
            if self._kernel.ended.done():
                raise StepFailed(
                    f"The kernel {self._spec.name} did not start: {failure.reason}", failure.error
                ) from failure
            raise
        self._ready = True
        foreign = self._spec.interpreter != sys.executable
        if python and (foreign or not self._kernel.is_prepared):
            await self._offer_reporting()
        self.progress(0, self._execution.total)
        await self._execution.execute_cells(self.progress)
        if python:
            await self._take_values()

    async def _offer_reporting(self) -> None:
        """Make `import jupyterlab_convect` work in the kernel where it is not installed."""
        assert self._execution is not None
        asked = {"importable": _IMPORTABLE, "exit": _ORDERLY_EXIT}
        found = await self._execution.evaluate(asked)
        if found.get("importable") is False:
            path = bundle_path(self._record.folder)
            await self._execution.evaluate({"path": f"__import__('sys').path.append({path!r})"})

    async def _take_values(self) -> None:
        """The values of the names that cells tagged `outputs` assign."""
        from .execution import AS_JSON

        assert self._execution is not None
        cells = (c for c in self._notebook.cells if c.cell_type == "code")
        tagged = (cell.source for cell in cells if notebooks.is_tagged(cell, "outputs"))
        names = dict.fromkeys(n for source in tagged for n in notebooks.assigned_names(source))
        if not names or self._kernel is None or self._kernel.ended.done():
            return
        found = await self._execution.evaluate({n: AS_JSON.format(name=n) for n in names})
        for name in names:
            try:
                value: Any = loads(found[name])
            except (KeyError, TypeError, ValueError):
                self._record.log(f"[The value of {name} cannot be written as JSON; left out.]\n")
                continue
            self._record.report("output", name, value)

    async def _end_kernel(self) -> None:
        """Save while the kernel shuts down, and again if it said something then."""
        kernel = self._kernel
        assert kernel is not None
        try:
            if self._ready and self._execution is not None:
                ending = asyncio.ensure_future(self._execution.shut_down())
                await asyncio.sleep(0)
                self._save()
                await ending
                if self._execution.version != self._saved:
                    self._save()
            elif self._notebook is not None:
                self._save()
        finally:
            if not kernel.gone.done():
                kernel.kill()
            await asyncio.wait({kernel.gone}, timeout=5)
            await kernel.end_rest()

    def _save(self) -> None:
        def write() -> None:
            write_whole(self._target, notebooks.dump(self._notebook, self._record.mask))

        self._saved = self._execution.version if self._execution else None
        try:
            self._pace.save(write)
        except OSError as error:
            self._record.trouble = self._record.trouble or error


class Pace:
    """Keeps saving below a quarter of the time: after each save three times as long a pause."""

    def __init__(self, least: float = 1.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._least = least
        self._clock = clock
        self._next = clock() + least

    def due(self) -> bool:
        return self._clock() >= self._next

    def save(self, write: Callable[[], None]) -> None:
        start = self._clock()
        try:
            write()
        finally:
            end = self._clock()
            self._next = end + max(self._least, 3 * (end - start))
