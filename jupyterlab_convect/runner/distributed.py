"""A step that runs as several processes which work together: one replica for each rank."""

from __future__ import annotations

import ast
import asyncio
import codecs
import contextlib
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from ..json_text import dumps, loads
from ..safe_files import write_whole
from ..text import duration_text
from .hang import HangWatch, customize, show_stacks
from .kernels import end_rest, explain_os_error, make_folder, start_process
from .limits import Limits
from .outcome import MemoryWatch, StepFailed, explain_end
from .process_work import command_of, environment_of
from .record import LAST_WORDS, ReplicaLog, StepRecord
from .replica_process import CONTROL
from .shared_folder import wait_for_turn
from .step import REPLICA_STATES, DistributedSpec, StepSpec
from .view import certain
from .view_spec import View

ADDRESS = "127.0.0.1"
STOPPED = {-signal.SIGTERM, -signal.SIGKILL, 128 + signal.SIGTERM, 128 + signal.SIGKILL}
"""How a process ends that was asked to."""
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

    def told(self) -> dict[str, Any]:
        facts = {
            "rank": self.rank,
            "state": self.state,
            "reason": self.reason,
            "gpu": self.gpu,
            "exit_code": self.exit_code,
            "started": self.started,
            "ended": self.ended,
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
        grace: float,
        node: int = 0,
    ) -> None:
        self.view = view
        self._step = step
        self._record = record
        self._limits = limits
        self._grace = grace
        self._node = node
        self._replicas: list[Replica] = []
        self._processes: list[asyncio.subprocess.Process] = []
        """Those that the runner itself has started: the replicas, or their launcher."""
        self._first: Replica | None = None
        """The first that failed."""
        self._watch: HangWatch | None = None
        self._hang: str | None = None
        """Why all of them are being stopped, if that is because they hang."""
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
        option = _option_of(step, command)
        count = how.processes or _processors()
        gpus = _gpus(env)
        self._replicas = [
            Replica(
                rank,
                ReplicaLog(self._record, rank, counts=rank == how.outputs_from),
                gpu=gpus[rank % count] if rank % count < len(gpus) else None,
            )
            for rank in range(self._node * count, (self._node + 1) * count)
        ]
        try:
            for restart in range(how.restarts + 1):
                shared = self._shared(count, restart)
                failure = await self._round(command, {**env, **shared}, option)
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

    async def interrupt(self) -> None:
        self._is_stopping = True
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._is_stopping = True
        self._signal(signal.SIGKILL)

    def processes(self) -> list[int]:
        return [each.pid for each in self._processes if each.returncode is None]

    def tick(self, used: Mapping[str, float] | None) -> None:
        pids = [each.pid for each in self._replicas if each.pid and each.state == "running"]
        if self._watch is not None and pids and self._watch.look(used, pids):
            self._tell_hang(self._watch.hangs)
        if not self._is_written:
            self._write()

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
        self, command: list[str], env: Mapping[str, str], option: str | None
    ) -> StepFailed | None:
        """Run all of them once; why they failed."""
        self._first, self._hang, self._processes = None, None, []
        memory = MemoryWatch(self._limits)
        for replica in self._replicas:
            replica.exit_code = replica.pid = replica.started = replica.ended = None
            self._change(replica, "starting")
        try:
            code, said = await self._run_launcher(command, env, option, memory)
        except (OSError, ValueError) as error:
            why = explain_os_error(error) if isinstance(error, OSError) else str(error)
            raise StepFailed(f"{self._step.title} could not be started: {why}.") from error
        finally:
            self._watch = None
            self._signal(signal.SIGKILL)
            for process in self._processes:
                await end_rest(process.pid)
            await self._finish()
        if self._first is not None or self._hang is not None:
            for replica in self._replicas:
                if replica.state in ("starting", "running"):  # a launcher did not wait for it
                    self._change(replica, "cancelled", self._why_stopped())
            return StepFailed(self._hang) if self._first is None else self._explain(self._first)
        if code:
            end = explain_end(code, memory)
            last = said.rstrip().rpartition("\n")[2].strip()
            reason = f"{self._how.launcher} {end}" + (f": {last[:300]}" if last else ".")
            return StepFailed(reason, {"name": "exit", "value": end, "traceback": said})
        return None

    async def _run_launcher(
        self, command: list[str], env: Mapping[str, str], option: str | None, memory: MemoryWatch
    ) -> tuple[int, str]:
        """The exit code of the launcher, and what it said last."""
        said = unread = ""

        def hear(text: str) -> None:
            nonlocal said
            said = (said + text)[-LAST_WORDS:]
            self._record.add_to_log(text)

        def heed(text: str) -> None:
            nonlocal unread
            *lines, unread = (unread + text).split("\n")
            for line in lines:
                told = loads(line)
                replica = self._replicas[int(told["rank"]) - self._replicas[0].rank]
                if "pid" in told:
                    self._began(replica, int(told["pid"]))
                else:
                    self._ended(replica, int(told["code"]), memory)

        launcher = await self._launcher(command, env)
        folder = make_folder()
        program = folder / "replica.py"
        source = resources.files(__package__).joinpath("replica_process.py")
        program.write_bytes(source.read_bytes())
        if self._how.hang_after is not None:
            env, self._watch = customize(folder, env), HangWatch(self._how.hang_after)
        ears = {str(each.rank): self._ear(each) for each in self._replicas} | {CONTROL: heed}
        words = self._ready(folder, command)
        starter = [sys.executable, "-I", "-S", str(program)]
        if not launcher:
            starter += ["--all", str(len(self._replicas)), str(self._grace)]
        try:
            with _listening(folder, ears):
                process, reading = await start_process(
                    [*launcher, *starter, str(folder), option or "", *words],
                    self._step.folder,
                    {**env, **(_MPI if self._how.launcher == "mpi" else {})},
                    self._limits,
                    hear,
                    self.view,
                )
                self._processes.append(process)
                if self._is_stopping:
                    self._signal(signal.SIGTERM)
                code = await process.wait()
                await asyncio.wait({reading}, timeout=1)
                reading.cancel()
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return code, self._record.mask(said)

    async def _launcher(self, command: list[str], env: Mapping[str, str]) -> list[str]:
        """The words before those that start a replica; none where we launch them ourselves."""
        count, title = len(self._replicas), self._step.title
        if self._how.launcher == "plain":
            return []
        if self._how.launcher == "mpi":
            if shutil.which("mpirun", path=env.get("PATH")) is None:
                raise StepFailed(f"{title} needs mpirun, which is not installed here.")
            return ["mpirun", "-n", str(count)]
        interpreter = command[0] if "python" in Path(command[0]).name else sys.executable
        if not await _has_torch(interpreter, env):
            raise StepFailed(f"{title} needs torch, which {interpreter} does not have.")
        nodes = [f"--nnodes={self._how.nodes}", f"--node_rank={self._node}"]
        options = [*nodes, f"--nproc_per_node={count}", "--max_restarts=0"]
        # Names with underscores, which old and new versions know.
        address = [f"--master_addr={env['MASTER_ADDR']}", f"--master_port={env['MASTER_PORT']}"]
        return [interpreter, "-m", "torch.distributed.run", *options, *address, "--no_python"]

    def _shared(self, count: int, restart: int) -> dict[str, str]:
        """What all replicas of this node find in their environment, whatever their rank."""
        how = self._how
        threads = str(max(1, _processors() // count))
        address, port = (ADDRESS, _free_port()) if how.nodes == 1 else _master(self._node)
        return {
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", threads),
            "WORLD_SIZE": str(how.nodes * count),
            "LOCAL_WORLD_SIZE": str(count),
            "NODE_RANK": str(self._node),
            "GROUP_RANK": str(self._node),
            "MASTER_ADDR": address,
            "MASTER_PORT": str(port),
            "CONVECT_RESTART": str(restart),
            "CONVECT_OUTPUTS_FROM": str(how.outputs_from),
        }

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
        self._record.add_to_log(f"[{reason}]\n" if hangs else "[It goes on.]\n")
        for replica in running:
            self._change(replica, "running", reason if hangs else None)
            if hangs and not (replica.pid and show_stacks([replica.pid])):
                replica.log.write("[It has no Python stacks that can be shown.]\n")
        # With several nodes, the others may be at work.
        if hangs and self._how.on_hang == "stop" and self._how.nodes == 1:
            self._ending = asyncio.ensure_future(self._end_hanging(reason, self._processes[-1]))

    async def _end_hanging(self, reason: str, launcher: asyncio.subprocess.Process) -> None:
        await asyncio.sleep(SHOWING)
        if launcher.returncode is None and self._watch is not None and self._watch.hangs:
            self._hang = reason
            self._signal(signal.SIGTERM)
            await asyncio.sleep(self._grace)
        if launcher.returncode is None and self._hang:
            self._signal(signal.SIGKILL)

    def _began(self, replica: Replica, pid: int) -> None:
        replica.pid, replica.started = pid, time.time()
        self._change(replica, "running")

    def _ended(self, replica: Replica, code: int, memory: MemoryWatch) -> None:
        replica.exit_code, replica.ended = code, time.time()
        if code == 0:
            self._change(replica, "succeeded")
        elif self._are_stopped() and code in STOPPED:
            self._change(replica, "cancelled", self._why_stopped())
        else:
            end = explain_end(code, memory)
            replica.end = end
            self._change(replica, "failed", f"The process {end}.")
            self._first = self._first or replica

    def _are_stopped(self) -> bool:
        return self._is_stopping or self._hang is not None or self._first is not None

    def _why_stopped(self) -> str:
        if self._first is not None:
            return f"Stopped because rank {self._first.rank} failed."
        return "Stopped." if self._hang is None else "Stopped because it hung."

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


_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
"""A container's only user is often root, and there may be more processes than processors."""


def _gpus(env: Mapping[str, str]) -> list[str]:
    """Those that the step sees; in a pod, what the device plugin gave it."""
    given = env.get("CUDA_VISIBLE_DEVICES") or env.get("NVIDIA_VISIBLE_DEVICES") or ""
    return (
        []
        if given in ("all", "none", "void", "-1")
        else [each.strip() for each in given.split(",") if each.strip()]
    )


def _processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _master(node: int) -> tuple[str, int]:
    """Where this node reaches rank 0; on the first node, an address that can be listened on."""
    try:
        given, port = Path(os.environ["CONVECT_MASTER"]).read_text().split()
        family, *_, to = socket.getaddrinfo(given, int(port), type=socket.SOCK_DGRAM)[0]
    except (KeyError, ValueError, OSError) as error:
        raise StepFailed("The address of the first node is not known.") from error
    if node:
        return given, int(port)
    with socket.socket(family, socket.SOCK_DGRAM) as to_others:
        to_others.connect(to)  # sends nothing
        return str(to_others.getsockname()[0]), int(port)


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind((ADDRESS, 0))
        return int(taken.getsockname()[1])


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


async def _has_torch(interpreter: str, env: Mapping[str, str]) -> bool:
    code = "import sys, importlib.util as u; sys.exit(u.find_spec('torch') is None)"
    process = await asyncio.create_subprocess_exec(
        interpreter, "-c", code, env=env, stderr=asyncio.subprocess.DEVNULL
    )
    return await process.wait() == 0


def _option_of(step: StepSpec, command: list[str]) -> str | None:
    """The option by which a script wants to be told its local rank."""
    scripts = [word for word in command if word.endswith(".py")]
    source = step.copy or step.source or (step.folder / scripts[0] if scripts else None)
    if source is None or (step.source or source).suffix != ".py":
        return None
    try:
        return local_rank_option(source.read_bytes())
    except OSError:
        return None


def local_rank_option(source: bytes) -> str | None:
    """`--local_rank` or `--local-rank`, as the script's own argparse has it; None for neither.

    The script is read, not run. Where it has both, the first is taken.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    found = [
        word.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument"
        for word in node.args
        if isinstance(word, ast.Constant) and word.value in ("--local_rank", "--local-rank")
    ]
    return str(found[0]) if found else None
