"""The nodes of a step, which begin and stop together, again and again.

There is a runner on each node. That of the first one also coordinates: it says when a round begins
and on which nodes, has all of them stop when one has failed, is gone or comes late, and says how it
ended. The messages are lines of JSON over TCP, at the port below that of rank 0.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from hmac import compare_digest
from pathlib import Path
from typing import Any

from ..json_text import dumps, loads
from .outcome import INTERRUPTED, StepFailed

BEAT = 2.0
SILENCE = 30.0
"""Seconds without a word after which a node counts as lost."""
SETTLING = 3.0
"""Seconds in which a failure may turn out to be that of a node which is going."""
LOOK = 0.5
FAREWELL = 10.0
Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Round:
    number: int
    nodes: tuple[int, ...]
    """Those that take part; their places here are their ranks."""
    restart: int = 0
    """How many of the rounds before it ended because a process failed."""
    why: str | None = None
    """Why the one before it ended."""


@dataclass(frozen=True, slots=True)
class Rules:
    nodes: int
    least: int
    """How many nodes are enough."""
    restarts: int
    wait: float
    """Seconds that those which are enough wait for the others at the beginning."""
    key: str
    """A secret of the nodes of an attempt: whoever has it can have them execute something."""


def given_master() -> tuple[str, int]:
    """Where the first node is reached: as the environment says, or a file that it names."""
    try:
        given = os.environ["CONVECT_MASTER"]
        host, port = (Path(given).read_text() if given.startswith("/") else given).split()
        return host, int(port)
    except (KeyError, ValueError, OSError) as error:
        raise StepFailed("The address of the first node is not known.") from error


def master_of(node: int) -> tuple[str, int]:
    """Where this node reaches rank 0; on the first node, an address that can be listened on."""
    host, port = given_master()
    if node:
        return host, port
    # Its own name may not be known in the cluster yet.
    to = host if _is_address(host) else socket.gethostname()
    try:
        family, *_, address = socket.getaddrinfo(to, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as to_others:
            to_others.connect(address)  # sends nothing
            return str(to_others.getsockname()[0]), port
    except OSError as error:
        raise StepFailed("The address of the first node is not known.") from error


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


@contextlib.asynccontextmanager
async def joined(
    node: int, rules: Rules, address: tuple[str, int], patience: float
) -> AsyncIterator[Member]:
    """Take part; the first node coordinates as well."""
    coordinator = Coordinator(rules) if node == 0 else None
    if coordinator is not None:
        await coordinator.open(address[1])
        address = ("127.0.0.1", address[1])
    try:
        member = await _connect(node, rules, address, patience)
        try:
            yield member
        finally:
            member.leave()
    finally:
        if coordinator is not None:
            await coordinator.close()


async def _connect(node: int, rules: Rules, address: tuple[str, int], patience: float) -> Member:
    deadline = time.monotonic() + patience
    while True:
        try:
            return Member(node, rules.key, *await asyncio.open_connection(*address))
        except OSError:
            if time.monotonic() > deadline:
                raise StepFailed("The first node cannot be reached.") from None
            await asyncio.sleep(0.2)


class Member:
    """What a node hears from the coordinator, and tells it."""

    def __init__(
        self, node: int, key: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.stop: Callable[[str], None] = lambda why: None
        """Called when the round has to end."""
        self.execute: Callable[[str], Awaitable[int]] | None = None
        """Runs a command line for a launcher on the first node; the exit code."""
        self.failed_rank: int | None = None
        """The rank that ended it all."""
        self._rounds: asyncio.Queue[Round | StepFailed | None] = asyncio.Queue()
        self._reader = reader
        self._writer = writer
        self._executing: set[asyncio.Future[None]] = set()
        self._tasks = [asyncio.ensure_future(each) for each in (self._read(), self._beat())]
        self._say(node=node, key=key)

    async def next(self) -> Round | None:
        """The next round, or None when all of it is done."""
        found = await self._rounds.get()
        if isinstance(found, StepFailed):
            raise found
        return found

    def ended(
        self, turn: Round, how: str, rank: int | None = None, reason: str | None = None
    ) -> None:
        """`how`: succeeded, failed or stopped."""
        self._say(ended=turn.number, how=how, rank=rank, reason=reason)

    def hangs(self, why: str | None) -> None:
        """All processes of this node seem to hang, or do so no more."""
        self._say(hangs=why)

    def leave(self) -> None:
        self._say(leaving=True)
        self._rounds.put_nowait(StepFailed(INTERRUPTED))
        for task in (*self._tasks, *self._executing):
            task.cancel()
        self._writer.close()

    def _say(self, **message: Any) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            self._writer.write((dumps(message) + "\n").encode())

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT)
            self._say(beat=True)

    async def _read(self) -> None:
        async for told in _messages(self._reader):
            if "round" in told:
                nodes = tuple(map(int, told["nodes"]))
                turn = Round(int(told["round"]), nodes, int(told["restart"]), told["why"])
                self._rounds.put_nowait(turn)
            elif "stop" in told:
                self.stop(str(told["stop"]))
            elif "execute" in told:
                task = asyncio.ensure_future(self._execute(told))
                self._executing.add(task)
                task.add_done_callback(self._executing.discard)
            elif "over" in told:
                self.failed_rank = told.get("rank")
                reason = told["over"]
                self._rounds.put_nowait(None if reason is None else StepFailed(str(reason)))
        why = "The connection to the first node was lost."
        self.stop(why)
        self._rounds.put_nowait(StepFailed(INTERRUPTED))

    async def _execute(self, told: Message) -> None:
        code = 1
        with contextlib.suppress(OSError, ValueError):
            if self.execute is not None:
                code = await self.execute(str(told["words"]))
        self._say(executed=told["execute"], code=code)


@dataclass(eq=False, slots=True)
class _Connection:
    writer: asyncio.StreamWriter
    heard: float = field(default_factory=time.monotonic)
    is_busy: bool = False
    hang: str | None = None
    """Why its processes are said to hang."""

    def say(self, **message: Any) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            self.writer.write((dumps(message) + "\n").encode())


class Coordinator:
    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._members: dict[int, _Connection] = {}
        self._agents: dict[int, _Connection] = {}
        """Those who wait for the end of what a node executes."""
        self._round: Round | None = None
        self._done: set[int] = set()
        self._failure: Message | None = None
        self._failed_at = 0.0
        self._came_at = 0.0
        self._is_stopping = False
        self._is_over = False
        self._changed = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._looking: asyncio.Future[None] | None = None

    async def open(self, port: int) -> None:
        try:
            self._server = await asyncio.start_server(self._serve, None, port)
        except OSError as error:
            text = f"The port {port}, at which nodes meet, cannot be had: {error.strerror}."
            raise StepFailed(text) from error
        self._looking = asyncio.ensure_future(self._look_again())

    async def close(self) -> None:
        """Once all others have heard how it ended."""
        deadline = time.monotonic() + FAREWELL
        while self._is_over and self._members and time.monotonic() < deadline:
            self._changed.clear()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._changed.wait(), LOOK)
        if self._looking is not None:
            self._looking.cancel()
        for connection in (*self._members.values(), *self._agents.values()):
            connection.writer.close()
        if self._server is not None:
            self._server.close()

    async def _look_again(self) -> None:
        while True:
            self._changed.clear()
            try:
                self._look()
            except Exception as error:  # or else all nodes would wait for a word from here
                self._end(
                    f"The nodes cannot be coordinated ({type(error).__name__}: {error}).", None
                )
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._changed.wait(), LOOK)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _Connection(writer)
        node: int | None = None
        try:
            async for told in _messages(reader):
                connection.heard = time.monotonic()
                if node is None and not compare_digest(str(told.get("key")), self._rules.key):
                    break
                if "words" in told:
                    self._pass_on(connection, told)
                elif "node" in told and 0 <= int(told["node"]) < self._rules.nodes:
                    node = int(told["node"])
                    self._members[node] = connection
                    self._came_at = time.monotonic()
                elif node is not None:
                    self._hear(node, told)
                self._changed.set()
        except (ValueError, KeyError, TypeError):
            pass  # Nobody of ours says such a thing.
        finally:
            if node is not None:
                self._lose(node, connection)
            writer.close()
            self._changed.set()

    def _hear(self, node: int, told: Message) -> None:
        if told.get("leaving"):
            self._lose(node, self._members.get(node))
        elif "hangs" in told and node in self._members:
            self._members[node].hang = told["hangs"]
        elif "executed" in told:
            if agent := self._agents.pop(int(told["executed"]), None):
                agent.say(code=told.get("code"))
        elif "ended" in told and node in self._members:
            self._members[node].is_busy = False
            if self._round is None or told["ended"] != self._round.number:
                return
            if told["how"] == "succeeded":
                self._done.add(node)
            elif told["how"] == "failed" and (self._failure or {}).get("rank") is None:
                # A launcher that only knows that something failed may be the first to say so.
                self._failure, self._failed_at = told, time.monotonic()

    def _pass_on(self, agent: _Connection, told: Message) -> None:
        """Have a node execute what the launcher on the first one asks for."""
        member = self._members.get(int(told.get("on", -1)))
        if member is None:
            agent.say(code=255)
            return
        number = max(self._agents, default=0) + 1
        self._agents[number] = agent
        member.say(execute=number, words=told["words"])

    def _lose(self, node: int, connection: _Connection | None) -> None:
        if connection is not None and self._members.get(node) is connection:
            del self._members[node]

    def _look(self) -> None:
        rules, now = self._rules, time.monotonic()
        for node, connection in list(self._members.items()):
            if now - connection.heard > SILENCE:
                self._lose(node, connection)
        if self._is_over:
            return
        if self._round is None:
            are_enough = len(self._members) >= rules.least and 0 in self._members
            if are_enough and (
                len(self._members) == rules.nodes or now - self._came_at >= rules.wait
            ):
                self._begin(None)
            return
        of_round = set(self._round.nodes)
        lost = of_round - self._members.keys() - self._done
        going = [self._members[node].hang for node in of_round - self._done - lost]
        if self._failure is None and going and all(going):
            self._failure, self._failed_at = {"reason": going[0]}, now
        came = self._members.keys() - of_round
        if of_round <= self._done:
            self._end(None, None)
        elif lost:
            why = f"{_named(lost)} lost."
            if self._have_stopped(why):
                if len(self._members) < rules.least or 0 not in self._members:
                    self._end(why, None)
                else:
                    self._begin(why)
        elif self._failure is not None:
            why = str(self._failure.get("reason"))
            is_settled = rules.least == rules.nodes or now - self._failed_at >= SETTLING
            if self._have_stopped(why) and is_settled:
                if self._round.restart < rules.restarts:
                    self._begin(why, self._round.restart + 1)
                else:
                    self._end(why, self._failure.get("rank"))
        elif came and not self._done:
            why = f"{_named(came)} added."
            if self._have_stopped(why):
                self._begin(why)

    def _have_stopped(self, why: str) -> bool:
        if not self._is_stopping:
            self._is_stopping = True
            for connection in self._members.values():
                connection.say(stop=why)
        return not any(connection.is_busy for connection in self._members.values())

    def _begin(self, why: str | None, restart: int | None = None) -> None:
        before = self._round or Round(-1, ())
        nodes = tuple(sorted(self._members))
        again = before.restart if restart is None else restart
        self._round = Round(before.number + 1, nodes, again, why)
        self._done, self._failure, self._is_stopping = set(), None, False
        for connection in self._members.values():
            connection.is_busy, connection.hang = True, None
            connection.say(round=self._round.number, nodes=nodes, restart=again, why=why)

    def _end(self, reason: str | None, rank: int | None) -> None:
        self._is_over = True
        for connection in self._members.values():
            connection.say(over=reason, rank=rank)


def _named(nodes: Collection[int]) -> str:
    names = ", ".join(map(str, sorted(nodes)))
    return f"Node {names} was" if len(nodes) == 1 else f"Nodes {names} were"


async def _messages(reader: asyncio.StreamReader) -> AsyncIterator[Message]:
    """Until the other side is gone, or says what nobody understands."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        while line := await reader.readline():
            told = loads(line)
            if not isinstance(told, dict):
                return
            yield told


AGENT = """
import json, socket, sys
port, key, host, *words = sys.argv[1:]
with socket.create_connection(("127.0.0.1", int(port))) as connection:
    order = {"key": key, "on": int(host.rpartition("-")[2]), "words": " ".join(words)}
    connection.sendall((json.dumps(order) + "\\n").encode())
    answer = connection.makefile().readline()
sys.exit(json.loads(answer)["code"] if answer else 255)
"""
"""Takes the place of ssh for mpirun on the first node: `python3 agent.py PORT KEY node-1 WORDS`."""
