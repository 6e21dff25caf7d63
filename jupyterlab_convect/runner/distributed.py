"""A step that runs as several processes which work together: one replica for each rank."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from ..json_text import dumps, loads
from ..safe_files import write_whole
from ..text import duration_text
from .hang import HangWatch, customize, show_stacks
from .kernels import end_rest, explain_os_error, make_folder, start_process
from .launchers import (
    MPI,
    MPI_AGENTS,
    MPI_REMOTE,
    START,
    gpus_of,
    launcher_of,
    option_of,
    processors,
    shared_environment,
)
from .limits import Limits
from .outcome import INTERRUPTED, MemoryWatch, StepFailed, explain_end
from .process_work import command_of, environment_of
from .record import LAST_WORDS, ReplicaLog, StepRecord
from .replica_process import CONTROL
from .rounds import AGENT, Member, Round, Rules, given_master, joined
from .shared_folder import wait_for_turn
from .step import REPLICA_STATES, DistributedSpec, RunnerSettings, StepSpec
from .usage import Gpu, Meter
from .view import certain
from .view_spec import View

STOPPED = {-signal.SIGTERM, -signal.SIGKILL, 128 + signal.SIGTERM, 128 + signal.SIGKILL}
"""How a process ends that was asked to."""
NAMING = 900.0
"""Seconds that a node has to wait for the name of the first: that one may still need room."""
SHOWING = 1.0
"""Seconds that processes have to write their stacks before they are stopped."""


@dataclass(slots=True)
class Replica:
    rank: int
    log: ReplicaLog
    state: Literal["starting", "running", "succeeded", "failed", "cancelled"] = "starting"
    reason: str | None = None
    gpu: str | None = None
    """The one that its local rank counts."""
    end: str = ""
    """How it failed, as the rest of a sentence."""
    exit_code: int | None = None
    pid: int | None = None
    started: float | None = None
    ended: float | None = None
    meter: Meter = field(default_factory=Meter)
    used: Mapping[str, float] = field(default_factory=dict)
    """What it used of the machine when somebody looked last, by the names of REPLICA_USE."""

    def told(self) -> dict[str, Any]:
        facts = {
            "rank": self.rank,
            "state": self.state,
            "reason": self.reason,
            "gpu": self.gpu,
            "exit_code": self.exit_code,
            "started": self.started,
            "ended": self.ended,
            **self.used,
        }
        return {name: fact for name, fact in facts.items() if fact is not None}


class DistributedWork:
    """Starts all replicas, stops all when one fails, and starts all again where that is asked."""

    def __init__(
        self,
        step: StepSpec,
        record: StepRecord,
        limits: Limits,
        view: View,
        settings: RunnerSettings,
    ) -> None:
        self.view = view
        self._step = step
        self._record = record
        self._limits = limits
        self._grace = settings.grace
        self._node = settings.node
        self._join_wait = settings.join_wait
        self._replicas: list[Replica] = []
        self._processes: list[asyncio.subprocess.Process] = []
        """Those that the runner itself has started: the replicas, or their launcher."""
        self._first: Replica | None = None
        """The first that failed."""
        self._watch: HangWatch | None = None
        self._halt: str | None = None
        """Why all of them are being stopped, if none of them failed."""
        self._hangs = False
        """Whether that is because they hang."""
        self._halted = asyncio.Event()
        self._member: Member | None = None
        self._ending: asyncio.Future[None] | None = None
        self._is_stopping = False
        self._is_written = False

    @property
    def _how(self) -> DistributedSpec:
        assert self._step.distributed is not None
        return self._step.distributed

    async def run(self) -> None:
        step, how = self._step, self._how
        self.view = certain(self.view, step.folder)
        if self.view.kind == "turns" and self._node == 0:  # the other nodes wait for the first
            await wait_for_turn(step, self._record)
        command, env = self._program()
        option = option_of(step, command)
        count = how.processes or processors()
        gpus = gpus_of(env)
        self._replicas = [
            Replica(
                rank,
                ReplicaLog(self._record, rank, counts=rank == how.outputs_from),
                gpu=gpus[rank % count] if rank % count < len(gpus) else None,
            )
            for rank in range(self._node * count, (self._node + 1) * count)
        ]
        try:
            if how.nodes > 1 and self._node:
                await self._wait_for_first()
            if how.nodes > 1 and (how.restarts or how.least < how.nodes or how.launcher == "mpi"):
                await self._run_together(command, env, option, count)
                return
            for restart in range(how.restarts + 1):
                turn = Round(restart, tuple(range(how.nodes)))
                shared = shared_environment(how, turn, self._node, count)
                failure = await self._round(turn, command, {**env, **shared}, option)
                if failure is None:
                    return
                if self._is_stopping or restart == how.restarts:
                    raise failure
                self._record.add_to_log(
                    f"[Restart {restart + 1} of {how.restarts}: {failure.reason}]\n"
                )
        finally:
            for replica in self._replicas:
                if replica.state in ("starting", "running"):
                    self._change(replica, "cancelled", "Stopped.")
                replica.log.close()
            self._write()

    async def _run_together(
        self, command: list[str], env: Mapping[str, str], option: str | None, count: int
    ) -> None:
        """In rounds, which begin and end on all nodes at the same time."""
        how = self._how
        host, port = given_master()
        rules = Rules(how.nodes, how.least, how.restarts, self._join_wait, how.key)
        failure: StepFailed | None = None
        async with joined(self._node, rules, (host, port - 1), NAMING) as member:
            self._member, member.stop = member, self._stop_all
            try:
                while (turn := await member.next()) is not None:
                    self._tell_round(turn)
                    shared = shared_environment(how, turn, self._node, count)
                    failure = await self._round(turn, command, {**env, **shared}, option)
                    if self._is_stopping:
                        raise failure or StepFailed(INTERRUPTED)
                    if self._halt is not None and not (self._first and how.launcher == "mpi"):
                        member.ended(turn, "stopped")
                    elif failure is not None:
                        rank = self._first.rank if self._first else None
                        member.ended(turn, "failed", rank, failure.reason)
                    else:
                        member.ended(turn, "succeeded")
            except StepFailed as over:
                is_own = failure is not None and over.reason == failure.reason
                if is_own and failure is not None:
                    raise failure from None
                raise StepFailed(over.reason if self._node == 0 else INTERRUPTED) from None
            finally:
                self._member = None

    def _tell_round(self, turn: Round) -> None:
        if turn.why is None:
            return
        how, again = self._how, ""
        if turn.restart:
            again = f" {turn.restart} of {how.restarts}"
        nodes = len(turn.nodes)
        on = "" if nodes == how.nodes else f", on {nodes} of {how.nodes} nodes"
        self._record.add_to_log(f"[Restart{again}{on}: {turn.why}]\n")

    def _stop_all(self, why: str) -> None:
        """End the round, though none of ours has failed."""
        if self._halt is None:
            self._halt = why
            self._halted.set()
            self._ending = asyncio.ensure_future(self._end_all())

    async def _end_all(self) -> None:
        self._signal(signal.SIGTERM)
        await asyncio.sleep(self._grace)
        if self._halt is not None:
            self._signal(signal.SIGKILL)

    async def _wait_for_first(self) -> None:
        """Until the name of the first node is known in the cluster; an address always is."""
        host, port = given_master()
        deadline = time.monotonic() + NAMING
        loop = asyncio.get_running_loop()
        while not self._is_stopping:
            try:
                await loop.getaddrinfo(host, port)
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise StepFailed(f"The first node, {host}, cannot be found.") from None
                await asyncio.sleep(0.2)

    async def interrupt(self) -> None:
        self._leave()
        self._signal(signal.SIGTERM)

    def _leave(self) -> None:
        """Before any process is stopped: others would take that for a failure."""
        self._is_stopping = True
        self._halted.set()
        if self._member is not None:
            self._member.leave()

    def kill(self) -> None:
        self._is_stopping = True
        self._signal(signal.SIGKILL)

    def close(self) -> None:
        pass

    def processes(self) -> list[int]:
        return [each.pid for each in self._processes if each.returncode is None]

    def tick(self, used: Mapping[str, float] | None, gpus: Mapping[str, Gpu]) -> None:
        running = [each for each in self._replicas if each.pid and each.state == "running"]
        pids = [each.pid for each in running if each.pid]
        self._measure([r for r in running if used is not None or r.meter.read_at is None], gpus)
        if self._watch is not None and pids and self._watch.look(used, pids):
            self._tell_hang(self._watch.hangs)
        if not self._is_written:
            self._write()

    def _measure(self, running: Sequence[Replica], gpus: Mapping[str, Gpu]) -> None:
        for replica in running:
            found = replica.meter.read([replica.pid or 0])
            if found is None:
                continue
            if replica.gpu is not None and replica.gpu in gpus:
                found["gpu_load"], found["gpu_memory"] = gpus[replica.gpu]
            replica.used = found
            self._is_written = False

    def told(self) -> list[dict[str, Any]]:
        """What became of each replica so far."""
        return [replica.told() for replica in self._replicas]

    def _program(self) -> tuple[list[str], dict[str, str]]:
        """What each replica is, and its environment, but for what tells them apart."""
        command = command_of(self._step, self.view)
        return command, environment_of(self._step, self._record, command[0])

    def _ready(self, folder: Path, command: list[str]) -> list[str]:
        """The words that start a replica, with all that they need in `folder`."""
        return command

    async def _finish(self) -> None:
        """All processes have ended."""

    async def _round(
        self, turn: Round, command: list[str], env: Mapping[str, str], option: str | None
    ) -> StepFailed | None:
        """Run all of them once; why they failed."""
        self._first, self._halt, self._hangs, self._processes = None, None, False, []
        if not self._is_stopping:
            self._halted.clear()
        if self._ending is not None:
            self._ending.cancel()
        memory = MemoryWatch(self._limits)
        for replica in self._replicas:
            replica.exit_code = replica.pid = replica.started = replica.ended = None
            replica.meter, replica.used = Meter(), {}
            self._change(replica, "starting")
        try:
            code, said = await self._run_launcher(turn, command, env, option, memory)
        except (OSError, ValueError) as error:
            why = explain_os_error(error) if isinstance(error, OSError) else str(error)
            raise StepFailed(f"{self._step.title} could not be started: {why}.") from error
        finally:
            self._watch = None
            self._signal(signal.SIGKILL)
            for process in self._processes:
                await end_rest(process.pid)
            await self._finish()
        if self._first is not None or self._halt is not None:
            for replica in self._replicas:
                if replica.state in ("starting", "running"):  # a launcher did not wait for it
                    self._change(replica, "cancelled", self._why_stopped())
            return self._explain(self._first) if self._first else StepFailed(self._halt or "")
        if code:
            end = explain_end(code, memory)
            last = said.rstrip().rpartition("\n")[2].strip()
            reason = f"{self._how.launcher} {end}" + (f": {last[:300]}" if last else ".")
            return StepFailed(reason, {"name": "exit", "value": end, "traceback": said})
        return None

    async def _run_launcher(
        self,
        turn: Round,
        command: list[str],
        env: Mapping[str, str],
        option: str | None,
        memory: MemoryWatch,
    ) -> tuple[int, str]:
        """The exit code of the launcher, and what it said last."""
        said = unread = ""
        first = turn.nodes.index(self._node) * len(self._replicas)

        def hear(text: str) -> None:
            nonlocal said
            said = (said + text)[-LAST_WORDS:]
            self._record.add_to_log(text)

        def heed(text: str) -> None:
            nonlocal unread
            *lines, unread = (unread + text).split("\n")
            for line in lines:
                told = loads(line)
                replica = self._replicas[int(told["rank"]) - first]
                if "pid" in told:
                    self._began(replica, int(told["pid"]))
                else:
                    self._ended(replica, int(told["code"]), memory)

        launcher = await launcher_of(self._step, turn, self._node, command, env)
        folder = make_folder()
        program = folder / "replica.py"
        source = resources.files(__package__).joinpath("replica_process.py")
        program.write_bytes(source.read_bytes())
        if self._how.hang_after is not None:
            env, self._watch = customize(folder, env), HangWatch(self._how.hang_after)
        ears = {str(first + n): self._ear(each) for n, each in enumerate(self._replicas)}
        words = self._ready(folder, command)
        starter = [sys.executable, "-I", "-S", str(program)]
        if not launcher:
            starter += ["--all", str(len(self._replicas)), str(self._grace)]
        whole = [*starter, str(folder), option or "", *words]

        async def execute(line: Sequence[str], **more: str) -> int:
            process, reading = await start_process(
                line, self._step.folder, {**env, **more}, self._limits, hear, self.view
            )
            self._processes.append(process)
            if self._is_stopping or self._halt is not None:
                self._signal(signal.SIGTERM)
            code = await process.wait()
            await asyncio.wait({reading}, timeout=1)
            reading.cancel()
            return code

        try:
            with _listening(folder, {**ears, CONTROL: heed}):
                if self._how.launcher == "mpi" and self._member is not None:
                    code = await self._run_daemons(turn, folder, whole, execute)
                else:
                    code = await execute(
                        [*launcher, *whole], **(MPI if self._how.launcher == "mpi" else {})
                    )
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return code, self._record.mask(said)

    async def _run_daemons(
        self, turn: Round, folder: Path, words: Sequence[str], execute: Execute
    ) -> int:
        """mpirun on the first node has a daemon started on each, by the runner that is there."""
        assert self._member is not None
        start = folder / "start.sh"
        start.write_text(f"exec {shlex.join(words)}\n")
        daemon: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def run_daemon(line: str) -> int:
            code = await execute(["/bin/sh", "-c", line], **MPI, **{START: str(start)})
            if not daemon.done():
                daemon.set_result(code)
            return code

        self._member.execute = run_daemon
        try:
            if self._node:
                halted = asyncio.ensure_future(self._halted.wait())
                waiting: set[asyncio.Future[Any]] = {daemon, halted}
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                halted.cancel()
                for process in self._processes:
                    await process.wait()
                return daemon.result() if daemon.done() else 0
            agent = folder / "agent.py"
            agent.write_text(AGENT)
            _, port = given_master()
            given = [sys.executable, "-I", "-S", str(agent), str(port - 1), self._how.key]
            (folder / "agent.sh").write_text(f'exec {shlex.join(given)} "$@"\n')
            count = len(self._replicas)
            hosts = ",".join(f"node-{node}:{count}" for node in turn.nodes)
            options = ["-n", str(count * len(turn.nodes)), "-H", hosts, "--map-by", "slot"]
            line = ["mpirun", *options, "/bin/sh", "-c", f'exec /bin/sh "${START}"']
            remote = dict.fromkeys(MPI_AGENTS, f"/bin/sh {folder}/agent.sh")
            return await execute(line, **MPI, **MPI_REMOTE, **remote)
        finally:
            self._member.execute = None

    def _ear(self, replica: Replica) -> Callable[[str], None]:
        def hear(text: str) -> None:
            replica.log.write(text)
            if self._watch is not None:
                self._watch.heard()

        return hear

    def _tell_hang(self, hangs: bool) -> None:
        """Say of all that they hang, and where, or that they go on."""
        running = [each for each in self._replicas if each.state == "running"]
        seconds = duration_text(self._how.hang_after or 0)
        reason = f"It seems to hang: no output and no use of a CPU or GPU for {seconds}."
        self._record.add_to_log(f"[{reason}]\n" if hangs else "[It continues.]\n")
        for replica in running:
            self._change(replica, "running", reason if hangs else None)
            if hangs and not (replica.pid and show_stacks([replica.pid])):
                replica.log.write("[It has no Python stacks that can be shown.]\n")
        if self._how.on_hang != "stop":
            return
        if not hangs and self._member is not None:
            self._member.hangs(None)
        if hangs and (self._member is not None or self._how.nodes == 1):
            self._ending = asyncio.ensure_future(self._end_hanging(reason, self._processes[-1]))

    async def _end_hanging(self, reason: str, launcher: asyncio.subprocess.Process) -> None:
        await asyncio.sleep(SHOWING)
        if launcher.returncode is not None or self._watch is None or not self._watch.hangs:
            return
        if self._member is not None:  # the other nodes may be at work
            self._member.hangs(reason)
        else:
            self._halt, self._hangs = reason, True
            await self._end_all()

    def _began(self, replica: Replica, pid: int) -> None:
        replica.pid, replica.started = pid, time.time()
        self._change(replica, "running")

    def _ended(self, replica: Replica, code: int, memory: MemoryWatch) -> None:
        replica.exit_code, replica.ended = code, time.time()
        if code == 0:
            self._change(replica, "succeeded")
        elif code in STOPPED and (self._are_stopped() or self._is_stopped_by_mpirun()):
            self._change(replica, "cancelled", self._why_stopped())
        else:
            end = explain_end(code, memory)
            replica.end = end
            self._change(replica, "failed", f"The process {end}.")
            self._first = self._first or replica

    def _is_stopped_by_mpirun(self) -> bool:
        """It stops the ranks here because one on another node has failed."""
        return self._member is not None and self._how.launcher == "mpi"

    def _are_stopped(self) -> bool:
        return self._is_stopping or self._halt is not None or self._first is not None

    def _why_stopped(self) -> str:
        if self._first is not None:
            return f"Stopped because rank {self._first.rank} failed."
        if self._hangs:
            return "Stopped because it hung."
        return "Stopped." if self._halt is None else f"Stopped: {self._halt}"

    def _change(
        self,
        replica: Replica,
        state: Literal["starting", "running", "succeeded", "failed", "cancelled"],
        reason: str | None = None,
    ) -> None:
        replica.state, replica.reason = state, reason
        self._is_written = False
        if state != "starting":
            self._record.event("replica", **replica.told())

    def _explain(self, first: Replica) -> StepFailed:
        last, said = first.log.last.strip(), first.log.said.rstrip()
        reason = f"Rank {first.rank} of {self._step.title} {first.end}"
        reason += f": {last[:300]}" if last else "."
        error = {"name": "exit", "value": first.end, "traceback": said, "rank": first.rank}
        return StepFailed(reason, error)

    def _signal(self, number: signal.Signals) -> None:
        for process in self._processes:
            if process.returncode is None:
                with contextlib.suppress(OSError):
                    os.killpg(process.pid, number)

    def _write(self) -> None:
        content = dumps({"replicas": self.told()}).encode()
        with contextlib.suppress(OSError):  # it is told again at the end
            write_whole(self._record.folder / REPLICA_STATES, content)
            self._is_written = True


Execute = Callable[..., Coroutine[Any, Any, int]]


@contextlib.contextmanager
def _listening(folder: Path, ears: Mapping[str, Callable[[str], None]]) -> Iterator[None]:
    """Named pipes in a folder, and who hears what is written to each of them."""
    loop = asyncio.get_running_loop()
    pipes: dict[int, Callable[[], bool]] = {}
    for name, hear in ears.items():
        os.mkfifo(folder / name, 0o600)
        # Open for writing as well: it stays open when one who writes has ended.
        pipe = os.open(folder / name, os.O_RDWR | os.O_NONBLOCK)
        pipes[pipe] = _reader(pipe, hear)
        loop.add_reader(pipe, pipes[pipe])
    try:
        yield
    finally:
        for pipe, read in pipes.items():
            loop.remove_reader(pipe)
            while read():
                pass
            os.close(pipe)


def _reader(pipe: int, hear: Callable[[str], None]) -> Callable[[], bool]:
    """Hands on what there is in a pipe, as text; False when there was nothing."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def read() -> bool:
        try:
            data = os.read(pipe, 1 << 16)
        except BlockingIOError:
            return False
        if text := decoder.decode(data):
            hear(text)
        return True

    return read
