"""A kernel that was forked ahead, and waits to be told for whom it is."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import json
import os
import shutil
import signal
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from . import processes
from .kernels import Kernel, KernelSpec, copy_text
from .limits import Limits
from .record import StepRecord
from .step import mark_of

EARLY = ("PYTHON", "LD_", "DYLD_", "MALLOC_", "GLIBC_", "LC_", "LANG", "IPYTHON", "JUPYTER", "HOME")
"""Variables that are read before a program's own code runs, or while a kernel starts."""


Receive = Callable[[socket.socket], tuple[Any, list[int]]]


class ForkedSpare:
    """What a keeper hands to the runner: a kernel, used or thrown away.

    Nobody waits for the keeper before the kernel is needed.
    """

    def __init__(self, keeper: socket.socket, receive: Receive) -> None:
        self._keeper = keeper
        self._receive = receive
        self._taken = False

    @functools.cached_property
    def _kernel(self) -> _Handed | None:
        """What the keeper says; None when there is none."""
        made, rights = self._receive(self._keeper)
        return None if made is None else _Handed(made, socket.socket(fileno=rights[0]), rights[1])

    def fits(self, spec: KernelSpec, env: Mapping[str, str], *, shared: bool) -> bool:
        """Can it be the kernel that is asked for, without a new interpreter?

        In a user namespace, where it can have a view, it cannot become another user: a step
        that shares its folder with everybody has no need of that.
        """
        if self._kernel is None:
            return False
        made = self._kernel.made
        launch, base = made["launch"], made["base"]
        if not made.get("answers") or (shared and made["confined"]):
            return False
        return describes(spec) == launch and not needs_exec(spec.environment(env), base)

    def show(self, order: Mapping[str, Any]) -> bool:
        data = json.dumps({"view": order}).encode()
        try:
            self._keeper.sendall(struct.pack("!I", len(data)) + data)
            self._keeper.settimeout(30)
            return self._keeper.recv(1) == b"y"
        except OSError:
            return False
        finally:
            self._keeper.settimeout(None)

    async def assign(
        self,
        cwd: Path,
        env: Mapping[str, str],
        limits: Limits,
        record: StepRecord,
        guard: Sequence[Sequence[str]] = (),
    ) -> Kernel | None:
        if self._kernel is None:
            return None
        made, channel, output = self._kernel
        assignment = {
            "cwd": str(cwd),
            "env": dict(env),
            "guard": list(guard),
            **dataclasses.asdict(limits),
        }
        data = json.dumps(assignment).encode()
        try:
            channel.settimeout(30)
            if channel.recv(1) != b"r":
                return None
            channel.sendall(struct.pack("!I", len(data)) + data)
            if channel.recv(1) != b"t":  # it died while it waited
                return None
            kernel = ForkedKernel(made, self._keeper, channel, output, self._receive)
        except OSError:
            return None
        self._taken = True
        kernel.listen(record, limits)
        return kernel

    def discard(self) -> None:
        if not self._taken and self._kernel is not None:
            self._keeper.close()  # which ends the kernel
            shutil.rmtree(self._kernel.made["folder"], ignore_errors=True)


class _Handed(NamedTuple):
    made: Mapping[str, Any]
    channel: socket.socket
    output: int


class ForkedKernel(Kernel):
    is_prepared = True

    def __init__(
        self,
        made: Mapping[str, Any],
        keeper: socket.socket,
        channel: socket.socket,
        output: int,
        receive: Receive,
    ) -> None:
        self.connection = made["connection"]
        self.pid = made["pid"]
        self._loop = asyncio.get_running_loop()
        self.ended = self._loop.create_future()
        self.gone = self._loop.create_future()
        self._process = os.pidfd_open(self.pid)
        self._folder = made["folder"]
        self._keeper = keeper
        self._channel = channel
        self._output = output
        self._receive = receive
        self._introduced: asyncio.Future[Any] = self._loop.create_future()
        self._alone = False
        """Whether nobody looks after it any longer."""

    def listen(self, record: StepRecord, limits: Limits) -> None:
        self._in_groups = bool(limits.groups)
        self._mark = mark_of(record.values_path)
        self._loop.add_reader(self._keeper, self._on_end)
        self._loop.add_reader(self._process, self._on_gone)
        self._loop.add_reader(self._channel, self._on_message)
        self._reading = asyncio.ensure_future(copy_text(self._output, record.log))

    async def introduction(self) -> Mapping[str, Any] | None:
        told: Mapping[str, Any] | None = await self._introduced
        return told

    async def end_rest(self) -> None:
        """The keeper does so before it tells of the end; if it was killed, by their mark."""
        patience = processes.POLITELY + 2 * processes.AT_MOST
        await asyncio.wait({self.ended}, timeout=patience)
        if self._alone or not self.ended.done():
            await asyncio.to_thread(processes.end_marked, self._mark)

    def forget(self) -> None:
        self._loop.remove_reader(self._keeper)
        self._loop.remove_reader(self._process)
        self._loop.remove_reader(self._channel)
        os.close(self._process)
        self._reading.cancel()
        self._channel.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _on_message(self) -> None:
        """It introduces itself; and it has done its last, and has left nothing running.

        What is left of it then is for the system to clear away, which takes a while; only a
        control group cannot be removed before.
        """
        message, _ = self._receive(self._channel)
        if message is None:
            self._loop.remove_reader(self._channel)
        if not self._introduced.done():
            self._introduced.set_result(message)
        elif message is not None and "left" in message and not self._in_groups:
            self._end(0)
            self._on_gone()

    def _on_gone(self) -> None:
        self._loop.remove_reader(self._process)
        if not self.gone.done():
            self.gone.set_result(None)

    def _on_end(self) -> None:
        self._loop.remove_reader(self._keeper)
        data = self._keeper.recv(1 << 16)
        try:
            code = int(json.loads(data[4:])["ended"])
        except (ValueError, KeyError):  # the keeper was killed, and the kernel with it
            code, self._alone = -signal.SIGKILL, not self.ended.done()
        self._end(code)

    def _end(self, code: int) -> None:
        if not self.ended.done():
            self.ended.set_result(code)


def describes(spec: KernelSpec) -> dict[str, Any] | None:
    """How to launch the kernel's interpreter; two kernels with the same can be forked alike."""
    found = spec.ipykernel
    if found is None or spec.provisioner is not None:
        return None
    flags, arguments = found
    return {
        "interpreter": spec.interpreter,
        "flags": flags,
        "arguments": arguments,
        "env": dict(spec.env),
    }


def needs_exec(env: Mapping[str, str], base: Mapping[str, str]) -> bool:
    """Do the two environments differ in what an interpreter looks at when it starts?"""
    changed = {name for name in {*env, *base} if env.get(name) != base.get(name)}
    return any(name.startswith(EARLY) for name in changed)
