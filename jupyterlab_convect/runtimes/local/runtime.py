"""Steps as processes on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from traitlets import Bool, Dict, Float, Integer, List, Unicode

from ...errors import Conflict, ConvectError, Refused
from ...pipeline.plan import Json, Plan
from ...pipeline.problems import Problem
from ...pipeline.profiles import Profile
from ...pipeline.quantities import quantity
from ...runner import enter_step
from ...runner.forked_kernel import describes
from ...runner.hang import hang_of
from ...runner.kernels import find
from ...runner.notebooks import kernel_name, read
from ...runner.outcome import StepFailed
from ...runner.processes import identify, is_alive, is_here, send_signal
from ...runner.shared_folder import waits_for
from ...runner.step import REPLICA_STATES, VALUES, mark_of
from ...runs.attempts import read_outcome
from ...runs.model import ENDED, State
from ...safe_files import append_to, read_regular, write_whole
from ...secret_values import environment, without_secrets
from ..base import Attempt, Feature, StepRuntime, StepStatus
from ..capacity import Overview
from ..progress import Progresses
from . import fork_start, machine
from .checks import check_plan, cpu_limit, memory_limit, need_of
from .fork_client import ForkClient
from .kernel_processes import find_kernels
from .machine import GpuDevice, MachineCapacity, MachineFacts, Reservations, machine_overview
from .step_processes import end_attempt, remove_leftovers

FORCE_AFTER = 5.0
SHARING = "Recording what steps use of this machine"
"""Seconds beyond the grace until a runner that does not end is killed."""


class LocalRuntime(StepRuntime):
    """Runs each step in a process of its own, which outlives the server."""

    name = "local"
    display_name = "This machine"
    features = frozenset(
        (
            Feature.CPU,
            Feature.MEMORY,
            Feature.GPU,
            Feature.SECRETS,
            Feature.ISOLATION,
            Feature.DISTRIBUTED,
            Feature.DASK,
            Feature.SHELL,
        )
    )

    cpus = Float(
        help="Processors that steps may use together; by default those this process may use."
    ).tag(config=True)
    memory = Unicode(
        help="Memory that steps may ask for together, such as 16Gi; by default all of it."
    ).tag(config=True)
    gpus = List(
        Unicode(),
        default_value=None,
        allow_none=True,
        help="""GPUs that steps may use, as CUDA_VISIBLE_DEVICES names them; by default those
        that nvidia-smi lists. A step that asks for GPUs gets them for itself alone; one that
        asks for none finds the variable as it was.""",
    ).tag(config=True)
    spare_kernels = Integer(
        fork_start.SPARES,
        min=0,
        help="""Kernels kept ready by a warm process, so that a run starts in tens of
        milliseconds; 0 turns the warm process off.""",
    ).tag(config=True)
    idle_timeout = Float(
        fork_start.IDLE, help="Seconds without a run until the warm process gives its memory back."
    ).tag(config=True)
    stop_grace = Float(5.0, help="Seconds a step has to end by itself when it is stopped.").tag(
        config=True
    )
    output_limit = Unicode("10M", help="Output kept in the notebook for one cell.").tag(config=True)
    log_limit = Unicode("100M", help="Size of a step's log.").tag(config=True)
    start_timeout = Float(60.0, help="Seconds a kernel has to start.").tag(config=True)
    overlays = Bool(
        True,
        help="""Whether runs may see their folder through an overlay, where the system allows it.
        Otherwise each run works in a copy, with links to large files.""",
    ).tag(config=True)
    copied_files = Integer(
        5000,
        min=0,
        help="""Files of a project that are copied for a run, where there can be no overlay. Runs
        in larger projects work in the folder itself, and take turns.""",
    ).tag(config=True)
    environment = Dict(help="Variables added to the environment of every step.").tag(config=True)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._warm: dict[str, ForkClient] = {}
        self._watched: dict[int, Callable[[], None]] = {}
        """What takes a watch off again, by the process, or the descriptor below zero."""
        self._progress = Progresses()

    async def check(self, plan: Plan) -> list[Problem]:
        self.warm_up()
        return await asyncio.to_thread(lambda: check_plan(plan, self.size, self.devices))

    async def capacity(self, profiles: Sequence[Profile] = ()) -> Overview | None:
        return await asyncio.to_thread(self._overview, profiles)

    def _overview(self, profiles: Sequence[Profile]) -> Overview:
        size = self.size
        facts = MachineFacts(
            os.uname().nodename,
            size,
            self.devices,
            list(self.reservations.used().values()),
            find_kernels(),
            machine.memory_in_use(size.memory),
            machine.cpu_in_use(size.cpu),
        )
        return machine_overview(facts, profiles)

    def warm_up(self) -> None:
        """Have the warm processes ready for the next step; costs nothing when they are."""
        for launch in (None, fork_start.own_launch()):
            if warm := self._warm_process(launch):
                warm.warm_up()

    @functools.cached_property
    def devices(self) -> tuple[GpuDevice, ...]:
        if self.gpus is not None:
            return tuple(GpuDevice(each) for each in self.gpus)
        return machine.gpus()

    @functools.cached_property
    def size(self) -> MachineCapacity:
        return MachineCapacity(
            cpu=self.cpus or machine.cpus(),
            memory=float(quantity(self.memory)) if self.memory else float(machine.memory()),
            gpus=tuple(device.id for device in self.devices),
        )

    @functools.cached_property
    def reservations(self) -> Reservations:
        return Reservations()

    def admit(self, attempt: Attempt) -> str | None:
        need = need_of(attempt.step, self.size)
        found = _identity(attempt)
        runs = found is not None and is_alive(found)
        holder = found if runs and found is not None else identify(os.getpid())
        about = {"run": attempt.run, "step": attempt.step.id, "name": attempt.step.name}
        room = self.reservations.take(
            _key(attempt), need, self.size, holder, force=runs, about=about
        )
        return room if isinstance(room, str) else None

    def release(self, attempt: Attempt) -> None:
        """What still runs keeps its room: the step continues when its host lets go of it."""
        found = _identity(attempt)
        ended = (attempt.folder / "outputs.json").exists()
        if ended or found is None or not is_alive(found):
            with self.health.guard(SHARING):
                self.reservations.give_back(_key(attempt))
        self._progress.forget(attempt.key)

    async def start(self, attempt: Attempt) -> AsyncIterator[Json]:
        env = self._environment(attempt)
        warm, keeper = await self._start_warm(attempt, env)
        pid = warm or self._start_cold(attempt, env)
        identity = identify(pid)
        with self.health.guard(SHARING):  # Until it can, the room is this process's own.
            self.reservations.hand_over(_key(attempt), identity)
        self._watch(pid)
        yield identity if keeper is None else {**identity, "keeper": identify(keeper)}

    async def poll(self, attempts: Sequence[Attempt]) -> list[StepStatus]:
        statuses = [self._status(attempt) for attempt in attempts]
        for attempt, status in zip(attempts, statuses, strict=True):
            if status.state in ENDED and not (attempt.folder / "outputs.json").exists():
                # Its runner was killed, and could not end what it had started.
                await asyncio.to_thread(end_attempt, attempt.folder, *_keepers(attempt))
        return statuses

    async def stop(self, attempt: Attempt) -> None:
        _leave_word(attempt.folder)
        found = _identity(attempt)
        if found is None or not is_here(found):
            return
        if send_signal(found, signal.SIGTERM):
            await _wait_for_end(found, 2 * self.stop_grace + FORCE_AFTER)
        if is_alive(found) or not (attempt.folder / "outputs.json").exists():
            await asyncio.to_thread(end_attempt, attempt.folder, *_keepers(attempt), found)

    def shell(
        self, attempt: Attempt, command: Sequence[str] = (), replica: int | None = None
    ) -> int:
        """Where the step works, with its variables, but outside of its process."""
        step = json.loads(read_regular(attempt.folder / "step.json"))
        words = list(command) or [os.environ.get("SHELL") or "/bin/sh"]
        env = {**os.environ, **step["env"]}
        holders = [*_keepers(attempt), *filter(None, [_identity(attempt)])]
        pid = enter_step.child_of(int(each["pid"]) for each in holders if is_alive(each))
        if replica is not None:
            mark = mark_of(attempt.folder.absolute() / VALUES)
            pid = enter_step.marked_process(mark, replica)
            if pid is None:
                raise Conflict(f"Rank {replica} is not running.", code="not-running")
            env |= enter_step.environment_of(pid)
        try:
            if pid is None or sys.platform != "linux":
                return subprocess.call(words, cwd=step["folder"], env=env)
            return subprocess.call(words, env=env, preexec_fn=lambda: enter_step.enter(pid))
        except subprocess.SubprocessError:
            raise Refused("The view of the step cannot be entered.", code="no-shell") from None
        except OSError as error:
            raise Refused(
                f"{words[0]} cannot be started in {step['folder']}: {error.strerror}.",
                code="no-shell",
            ) from None

    async def close(self) -> None:
        await asyncio.gather(*(warm.close() for warm in self._warm.values()))
        self._warm.clear()
        fork_start.end_unused()
        for forget in list(self._watched.values()):
            forget()

    def _status(self, attempt: Attempt) -> StepStatus:
        outcome = _outcome(attempt)
        if outcome is not None:
            return outcome
        found = _identity(attempt)
        if found is None:
            return StepStatus(attempt.key, "lost", "It was never started.")
        if not is_here(found):
            where = found.get("host")
            return StepStatus(
                attempt.key, "lost", f"It ran on {where}, or before this machine was restarted."
            )
        if is_alive(found):
            self._watch(int(found["pid"]))
            progress = self._progress.read(attempt)
            if waits := waits_for(attempt.folder):
                return StepStatus(attempt.key, "queued", waits, progress=progress)
            begun = (attempt.folder / "runner.json").exists()
            state: State = "running" if begun else "starting"
            return StepStatus(attempt.key, state, _hang(attempt), progress=progress)
        # It may have ended since the first look.
        return _outcome(attempt) or _explain_death(attempt)

    def _environment(self, attempt: Attempt) -> dict[str, str]:
        """The runner's; the step's own variables are in `step.json`."""
        step = attempt.step
        env = {
            **without_secrets(os.environ),
            **{str(name): str(value) for name, value in self.environment.items()},
            **environment(step.secrets),
            "CONVECT_GRACE": str(self.stop_grace),
            "CONVECT_START_TIMEOUT": str(self.start_timeout),
            "CONVECT_OUTPUT_LIMIT": str(int(quantity(self.output_limit))),
            "CONVECT_LOG_LIMIT": str(int(quantity(self.log_limit))),
            "CONVECT_MEMORY_LIMIT": str(memory_limit(step.resources)),
            "CONVECT_OVERLAYS": str(int(self.overlays)),
            "CONVECT_COPIED_FILES": str(self.copied_files),
            "CONVECT_CPU_LIMIT": str(cpu_limit(step.resources)),
        }
        hidden = [env["CONVECT_SECRETS"], attempt.variables.get("CONVECT_SECRETS")]
        env |= {**attempt.variables, "CONVECT_SECRETS": ",".join(filter(None, hidden))}
        if step.resources.gpu is not None and step.resources.gpu.count > 0:
            room = self.reservations.used().get(_key(attempt), {})
            env["CUDA_VISIBLE_DEVICES"] = ",".join(room.get("gpus", {}))
        return env

    async def _start_warm(
        self, attempt: Attempt, env: Mapping[str, str]
    ) -> tuple[int | None, int | None]:
        """Have warm processes run it: its runner, and the keeper of its kernel, where they can."""
        runners = self._warm_process(None)
        if runners is None:
            return None, None
        order = {"folder": str(attempt.folder), "env": env}
        done, written = os.pipe()
        self._listen(-done, done)
        try:
            if attempt.step.kind != "notebook" or attempt.step.distributed is not None:
                return await runners.order(order, [written]), None
            # The runner gets ready while its kernel is looked for.
            ours, theirs = socket.socketpair()
            with ours, theirs:
                return await asyncio.gather(
                    runners.order(order, [written, ours.fileno()]),
                    self._order_keeper(attempt, theirs),
                )
        finally:
            os.close(written)

    async def _order_keeper(self, attempt: Attempt, channel: socket.socket) -> int | None:
        """Have a warm kernel wait at the channel, which is closed where there can be none."""
        launch = await asyncio.to_thread(_launch_of, attempt)
        kernels = None if launch is None else self._warm_process(launch)
        keeper = None if kernels is None else await kernels.order({}, [channel.fileno()])
        if keeper is None:
            channel.close()
        return keeper

    def _start_cold(self, attempt: Attempt, env: Mapping[str, str]) -> int:
        with os.fdopen(append_to(attempt.folder / "log.txt"), "ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "jupyterlab_convect.runner", str(attempt.folder)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=env,
                start_new_session=True,
            )
        self._watch(process.pid, process.poll)
        return process.pid

    def _warm_process(self, launch: Mapping[str, Any] | None) -> ForkClient | None:
        if not (self.spare_kernels and fork_start.SUPPORTED):
            return None
        key = json.dumps(launch, sort_keys=True)
        if key not in self._warm:
            if not self._warm:
                remove_leftovers()
            self._warm[key] = ForkClient(
                self.log, launch, spares=self.spare_kernels, idle=self.idle_timeout
            )
        return self._warm[key]

    def _watch(self, pid: int, on_end: Callable[[], object] = lambda: None) -> None:
        """Tell the engine as soon as the process ends; elsewhere than on Linux it has to poll."""
        if pid in self._watched or not hasattr(os, "pidfd_open"):
            return
        try:
            descriptor = os.pidfd_open(pid)
        except OSError:
            asyncio.get_running_loop().call_soon(self.changed)
            return
        self._listen(pid, descriptor, on_end)

    def _listen(self, key: int, descriptor: int, then: Callable[[], object] = lambda: None) -> None:
        """Tell the engine when there is something on the descriptor, once."""
        loop = asyncio.get_running_loop()

        def forget() -> None:
            del self._watched[key]
            loop.remove_reader(descriptor)
            os.close(descriptor)

        def heard() -> None:
            forget()
            then()
            self.changed()

        self._watched[key] = forget
        loop.add_reader(descriptor, heard)


def _key(attempt: Attempt) -> str:
    return str(attempt.folder.absolute())


def _identity(attempt: Attempt) -> dict[str, Any] | None:
    """Who executes it. What the runner itself wrote counts more than what was started."""
    try:
        found: dict[str, Any] = json.loads(read_regular(attempt.folder / "runner.json"))
        return found
    except (OSError, ValueError):
        return dict(attempt.handle) if attempt.handle else None


def _keepers(attempt: Attempt) -> list[dict[str, Any]]:
    """Who looks after its kernel."""
    keeper = (attempt.handle or {}).get("keeper")
    return [keeper] if keeper else []


def _outcome(attempt: Attempt) -> StepStatus | None:
    try:
        outcome = read_outcome(attempt.folder)
    except ConvectError as error:
        return StepStatus(attempt.key, "failed", "Its result cannot be read.", error.sentence)
    return None if outcome is None else StepStatus(attempt.key, outcome.state, outcome.reason)


def _hang(attempt: Attempt) -> str | None:
    how = attempt.step.distributed
    if how is None or how.hang_after is None:
        return None
    try:
        told = json.loads(read_regular(attempt.folder / REPLICA_STATES))["replicas"]
        return hang_of(told)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _explain_death(attempt: Attempt) -> StepStatus:
    try:
        word = json.loads(read_regular(attempt.folder / "stop.json"))
        return StepStatus(attempt.key, word["state"], word["reason"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    if (attempt.folder / "runner.json").exists():
        return StepStatus(
            attempt.key,
            "failed",
            "The runner was killed before it could write the result, "
            "by someone or because memory or disk space ran out.",
        )
    if trouble := _trouble_writing(attempt.folder):
        return StepStatus(
            attempt.key, "failed", f"It could not begin: its folder cannot be written, {trouble}."
        )
    return StepStatus(attempt.key, "failed", "The runner ended before the step began; see the log.")


def _trouble_writing(folder: Path) -> str | None:
    """What keeps a runner from writing down that it begins."""
    probe = folder / ".probe"
    try:
        write_whole(probe, bytes(4096))
    except OSError as error:
        return (error.strerror or str(error)).lower()
    finally:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)
    return None


def _leave_word(folder: Path) -> None:
    """Say why it is stopped, unless someone has done so."""
    path = folder / "stop.json"
    if not path.exists():
        with contextlib.suppress(OSError):
            write_whole(path, json.dumps({"state": "cancelled", "reason": "Stopped."}).encode())


async def _wait_for_end(identity: Mapping[str, Any], patience: float) -> None:
    deadline = time.monotonic() + patience
    pause = 0.005
    while is_alive(identity) and time.monotonic() < deadline:
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, 0.2)


def _launch_of(attempt: Attempt) -> dict[str, Any] | None:
    """How the kernel of a notebook is launched; None when it is none that can be forked."""
    try:
        data = json.loads(read_regular(attempt.folder / "step.json"))
        name = data.get("kernel") or kernel_name(read(Path(data["source"])), "")
        return describes(find(name))
    except (OSError, ValueError, KeyError, TypeError, StepFailed):
        return None  # the runner finds the same, and says so
