"""Who drives a run: one owner at a time, without file locks.

The lease of a run is the file `lease-<n>.json` with the highest number. Whoever takes
it over creates the next number, which only one can. The number never goes back, so
that nobody wins by a look at old files.
"""

from __future__ import annotations

import functools
import json
import os
import re
import secrets
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from time import monotonic

from ..runner.processes import boot
from ..safe_files import read_regular, write_whole
from .json_files import create_whole

EXPIRES = 30.0
"""Seconds of watching it without a renewal after which an owner out of sight counts as dead."""
LONG_AGO = 3600.0
"""Seconds since a renewal that no difference between clocks explains."""
RENEW = 10.0


@dataclass(frozen=True, slots=True)
class Owner:
    host: str
    process: int
    born: str | None
    """When the process began, in the system's own terms, because ids are used again."""
    renewed: float
    token: str
    free: bool = False
    """Given back: anybody may take it at once."""
    boot: str = ""
    processes: str = ""
    """The namespace in which `process` counts."""

    @property
    def machine(self) -> tuple[str, str]:
        """Where `process` can be looked up. Machines may share a name, containers a boot."""
        return (self.boot or self.host, self.processes)


class Lease:
    """Held from `take` until `give_back` or `end`; `renew` it every RENEW seconds."""

    def __init__(self, folder: Path, number: int, owner: Owner) -> None:
        self._folder = folder
        self._number = number
        self._owner = owner
        self._lock = threading.Lock()
        self._sure = monotonic()
        """When it was ours for certain."""
        self._over = False
        """Let go of: whatever a renewal under way finds, nothing is written any more."""

    @classmethod
    def take(cls, folder: Path) -> Lease | None:
        """The lease of the run in this folder, or None while somebody else has it."""
        number = max(_numbers(folder), default=0)
        if number and _holder(folder, number) is not None:
            return None
        mine = cls(folder, number + 1, _myself())
        if not create_whole(_path(folder, mine._number), _encode(mine._owner)):
            return None
        numbers = _numbers(folder)
        if max(numbers) != mine._number:
            _path(folder, mine._number).unlink(missing_ok=True)
            return None
        for old in numbers:
            if old < mine._number:
                _path(folder, old).unlink(missing_ok=True)
        return mine

    def renew(self) -> bool:
        """False when somebody else has taken it: let go of the run at once."""
        with self._lock:
            if self._over or not self.is_mine():
                return False
            now = monotonic()
            self._write(replace(self._owner, renewed=time.time()))
            self._sure = now
            return True

    def is_sure(self) -> bool:
        """Whether nobody can have taken it; looked up only when it was not renewed in time."""
        return monotonic() - self._sure < EXPIRES - RENEW or self.renew()

    def is_mine(self) -> bool:
        if max(_numbers(self._folder), default=0) != self._number:
            return False
        try:
            owner = _decode(read_regular(_path(self._folder, self._number)))
            return owner.token == self._owner.token
        except (FileNotFoundError, ValueError, TypeError, AttributeError):
            return False

    def give_back(self) -> None:
        """Let another owner continue the run at once."""
        with self._lock:
            if not self._over and self.is_mine():
                self._write(replace(self._owner, free=True))
            self._over = True

    def end(self) -> None:
        """The run is over: nobody needs its lease any more."""
        with self._lock:
            self._over = True
            _path(self._folder, self._number).unlink(missing_ok=True)

    def _write(self, owner: Owner) -> None:
        self._owner = owner
        write_whole(_path(self._folder, self._number), _encode(owner))


def renew_all(leases: Mapping[str, Lease]) -> tuple[list[str], Exception | None]:
    """The names of those that somebody else has taken, and the last of what went wrong."""
    lost, trouble = [], None
    for name, lease in leases.items():
        try:
            if not lease.renew():
                lost.append(name)
        except Exception as error:
            trouble = error
    return lost, trouble


def owner_of(folder: Path) -> Owner | None:
    """Who drives the run in this folder now, as far as can be seen from here."""
    number = max(_numbers(folder), default=0)
    return _holder(folder, number) if number else None


def is_abandoned(folder: Path) -> bool:
    """Whether somebody drove the run in this folder, and nobody does now."""
    number = max(_numbers(folder), default=0)
    return bool(number) and _holder(folder, number) is None


def _holder(folder: Path, number: int) -> Owner | None:
    """The owner of that lease, unless it was given back, is damaged or its owner is dead."""
    path = _path(folder, number)
    try:
        data = read_regular(path)
        owner = _decode(data)
    except (FileNotFoundError, ValueError, TypeError, AttributeError):
        return None
    if owner.free:
        return None
    if owner.machine == _machine():
        born = process_birth(owner.process)
        return owner if born is not None and born == owner.born else None
    return None if _is_silent(path, data, owner) else owner


_observed: dict[Path, tuple[bytes, float]] = {}
"""The leases of owners out of sight: what was read, and when that was new, by our own clock."""


def _is_silent(path: Path, data: bytes, owner: Owner) -> bool:
    """Whether an owner out of sight has not renewed for so long that it counts as dead.

    Clocks of machines differ. What counts is how long we have seen no change ourselves.
    """
    now = monotonic()
    known, since = _observed.get(path, (None, now))
    if known != data:
        _observed[path] = (data, now)
        since = now
    return now - since >= EXPIRES or time.time() - owner.renewed > LONG_AGO


@functools.cache
def host_name() -> str:
    return socket.gethostname()


def process_birth(process: int) -> str | None:
    """When a process began, in terms that only compare on this machine; None when it is gone."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return None if Path("/proc/self/stat").exists() else _birth_elsewhere(process)
    # The name, in brackets, may hold anything, brackets and blanks included.
    state, *fields = stat[stat.rindex(")") + 2 :].split()
    return None if state in "ZX" else fields[18]


def _birth_elsewhere(process: int) -> str | None:
    import psutil  # type: ignore[import-untyped]

    try:
        return str(psutil.Process(process).create_time())
    except psutil.Error:
        return None


def _myself() -> Owner:
    process = os.getpid()
    born = process_birth(process)
    boot_id, processes = boot(), _process_namespace()
    return Owner(
        host_name(),
        process,
        born,
        time.time(),
        secrets.token_hex(8),
        boot=boot_id,
        processes=processes,
    )


def _machine() -> tuple[str, str]:
    return (boot() or host_name(), _process_namespace())


@functools.cache
def _process_namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _numbers(folder: Path) -> list[int]:
    found = (re.fullmatch(r"lease-(\d{1,9})\.json", path.name) for path in folder.iterdir())
    return [int(match[1]) for match in found if match]


def _path(folder: Path, number: int) -> Path:
    return folder / f"lease-{number}.json"


def _decode(data: bytes) -> Owner:
    given = json.loads(data)
    return Owner(**{name: value for name, value in given.items() if name in _FIELDS})


_FIELDS = {item.name for item in fields(Owner)}


def _encode(owner: Owner) -> bytes:
    return json.dumps(asdict(owner)).encode()
