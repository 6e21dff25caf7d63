"""A notebook that is executed by several kernels which work together: one for each rank."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import notebooks
from .distributed import DistributedWork, Replica
from .kernels import HISTORY, Kernel, KernelSpec, find, new_connection
from .limits import Limits
from .notebook_work import NotebookWork
from .outcome import Ending, MemoryWatch, StepFailed, ending_of
from .record import StepRecord
from .replica_process import PARENT, RANK
from .step import REPLICA_LOGS, RunnerSettings, StepSpec, child_environment
from .usage import Gpu
from .view_spec import View


class DistributedNotebook(DistributedWork):
    """Its replicas are kernels. Each executes the whole notebook, and how that ends is how the
    replica ends, whatever its kernel does afterwards."""

    def __init__(
        self,
        step: StepSpec,
        record: StepRecord,
        settings: RunnerSettings,
        limits: Limits,
        view: View,
    ) -> None:
        super().__init__(step, record, limits, view, settings)
        self._settings = settings
        self._spec: KernelSpec
        self._ranks: dict[int, _Rank] = {}
        self._failure: Ending | None = None
        """Of the notebook that failed first."""

    async def interrupt(self) -> None:
        self._leave()
        await self._interrupt()

    def tick(self, used: Mapping[str, float] | None, gpus: Mapping[str, Gpu]) -> None:
        for rank in self._ranks.values():
            rank.work.tick(used, gpus)
        super().tick(used, gpus)

    def _program(self) -> tuple[list[str], dict[str, str]]:
        step = self._step
        data = notebooks.read(step.copy or step.source or step.folder, step.title)
        self._spec = spec = find(step.kernel or notebooks.kernel_name(data, step.title))
        if spec.provisioner is not None:
            raise StepFailed(
                f"The kernel {spec.name} is run by {spec.provisioner}, not as a process here."
            )
        env = spec.environment(child_environment(step, self._record.values_path))
        return spec.command(""), {**env, PARENT: ""}

    def _ready(self, folder: Path, command: list[str]) -> list[str]:
        """Where the kernel of each rank is reached, and the words that start it."""
        self._ranks, self._failure = {}, None
        for replica in self._replicas:
            own = folder / f"{replica.rank}.kernel"
            own.mkdir()
            connection = new_connection(own, self._spec)
            (own / "connection.json").write_text(json.dumps(connection))
            self._ranks[replica.rank] = _Rank(self._work(replica), ReplicaKernel(connection))
        words = self._spec.command(f"{folder}/{RANK}.kernel/connection.json")
        return [*words, f"--{HISTORY}=:memory:"] if self._spec.ipykernel is not None else words

    def _work(self, replica: Replica) -> RankNotebook:
        counts = replica.rank == self._how.outputs_from
        record = RankRecord(self._record, self._ear(replica), counts=counts)
        work = RankNotebook(self._step, record, self._settings, self._limits, self.view)
        if not counts:
            work.keep_in(self._record.folder / REPLICA_LOGS / f"{replica.rank}.ipynb")
        return work

    def _began(self, replica: Replica, pid: int) -> None:
        super()._began(replica, pid)
        rank = self._ranks[replica.rank]
        rank.kernel.pid = pid
        rank.work.take(rank.kernel)
        rank.task = asyncio.ensure_future(self._execute(replica, rank))

    def _ended(self, replica: Replica, code: int, memory: MemoryWatch) -> None:
        replica.exit_code = code
        rank = self._ranks[replica.rank]
        if rank.task is None:
            super()._ended(replica, code, memory)
        elif not rank.kernel.ended.done():
            rank.kernel.ended.set_result(code)

    async def _finish(self) -> None:
        """The kernels are gone: what became of the notebooks."""
        for rank in self._ranks.values():
            if not rank.kernel.ended.done():
                rank.kernel.ended.set_result(-signal.SIGKILL)
        tasks = {rank.task for rank in self._ranks.values() if rank.task is not None}
        if tasks:
            await asyncio.wait(tasks)
        for rank in self._ranks.values():
            rank.work.close()

    async def _execute(self, replica: Replica, rank: _Rank) -> None:
        try:
            await rank.work.run()
        except Exception as error:
            replica.ended = time.time()
            if self._are_stopped():
                self._change(replica, "cancelled", self._why_stopped())
                return
            self._first, self._failure = replica, ending_of(error)
            self._change(replica, "failed", self._failure.reason)
            await self._interrupt()
            others = {each.task for each in self._ranks.values() if each.task and each != rank}
            if others:
                await asyncio.wait(others, timeout=self._grace)
            self._signal(signal.SIGKILL)
        else:
            replica.ended = time.time()
            self._change(replica, "succeeded")

    def _explain(self, first: Replica) -> StepFailed:
        if self._failure is None:
            return super()._explain(first)
        reason = f"Rank {first.rank} of {self._step.title} failed: {self._failure.reason}"
        return StepFailed(reason, {**(self._failure.error or {}), "rank": first.rank})

    async def _interrupt(self) -> None:
        for replica in self._replicas:
            if replica.state == "running" and replica.rank in self._ranks:
                await self._ranks[replica.rank].work.interrupt()


class RankNotebook(NotebookWork):
    """The notebook of one rank, with a kernel that somebody else has started."""

    def keep_in(self, target: Path) -> None:
        self._target = target

    def take(self, kernel: Kernel) -> None:
        self._given = kernel

    async def _start_kernel(self) -> Kernel:
        return self._given


class ReplicaKernel(Kernel):
    def __init__(self, connection: Mapping[str, Any]) -> None:
        self.connection = connection
        self.pid = 0
        self.ended = self.gone = asyncio.get_running_loop().create_future()

    async def end_rest(self) -> None:
        pass

    def forget(self) -> None:
        pass

    def _signal(self, number: signal.Signals) -> None:
        # Its group is that of all ranks.
        if not self.gone.done() and self.pid:
            with contextlib.suppress(OSError):
                os.kill(self.pid, number)


@dataclass(slots=True, eq=False)
class _Rank:
    work: RankNotebook
    kernel: ReplicaKernel
    task: asyncio.Future[None] | None = None


class RankRecord(StepRecord):
    """What a rank says goes to its own log; the rest is the step's if the rank counts."""

    def __init__(self, record: StepRecord, say: Callable[[str], None], *, counts: bool) -> None:
        self._of_step = record
        self._say = say
        self._counts = counts
        self.folder, self.mask = record.folder, record.mask
        self.values_path = record.values_path
        self.parameters = record.parameters if counts else {}

    @property
    def trouble(self) -> OSError | None:
        return self._of_step.trouble

    @trouble.setter
    def trouble(self, error: OSError | None) -> None:
        self._of_step.trouble = error

    def event(self, kind: str, /, **data: Any) -> None:
        if self._counts:
            self._of_step.event(kind, **data)

    def log(self, text: str, stream: str | None = None) -> None:
        self._say(text)

    add_to_log = log

    def report(self, kind: str, name: str, value: Any, step: Any = None, at: Any = None) -> None:
        if self._counts:
            self._of_step.report(kind, name, value, step, at)

    def read_values(self) -> None:
        if self._counts:
            self._of_step.read_values()
