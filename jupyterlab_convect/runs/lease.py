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
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ..run_files import read_regular, write_new, write_whole

EXPIRES = 30.0
"""Seconds without renewal after which an owner on another machine counts as dead."""

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


class Lease:
    """Held from `take` until `give_back` or `end`; `renew` it every RENEW seconds."""

    def __init__(self, folder: Path, number: int, owner: Owner) -> None:
        self._folder = folder
        self._number = number
        self._owner = owner
        self._lock = threading.Lock()
        self._over = False
        """Let go of: whatever a renewal under way finds, nothing is written any more."""

    @classmethod
    def take(cls, folder: Path) -> Lease | None:
        """The lease of the run in this folder, or None while somebody else has it."""
        number = max(_numbers(folder), default=0)
        if number and is_held(_read(folder, number)):
            return None
        mine = cls(folder, number + 1, _myself())
        if not _create(_path(folder, mine._number), _encode(mine._owner)):
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
            self._write(replace(self._owner, renewed=time.time()))
            return True

    def is_mine(self) -> bool:
        if max(_numbers(self._folder), default=0) != self._number:
            return False
        owner = _read(self._folder, self._number)
        return owner is not None and owner.token == self._owner.token

    def give_back(self) -> None:
        """Let another owner go on with the run at once."""
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
    """Who drives the run in this folder now."""
    number = max(_numbers(folder), default=0)
    owner = _read(folder, number) if number else None
    return owner if owner is not None and is_held(owner) else None


def is_abandoned(folder: Path) -> bool:
    """Whether somebody drove the run in this folder, and nobody does now."""
    number = max(_numbers(folder), default=0)
    return bool(number) and not is_held(_read(folder, number))


def is_held(owner: Owner | None) -> bool:
    """Whether the owner is alive, as far as can be seen from here."""
    if owner is None or owner.free:
        return False
    if owner.host == host_name():
        born = process_birth(owner.process)
        return born is not None and born == owner.born
    return time.time() - owner.renewed < EXPIRES


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
    return Owner(host_name(), process, born, time.time(), secrets.token_hex(8))


def _create(path: Path, data: bytes) -> bool:
    """Create the file, complete; False when there is one already."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        write_new(beside, data)
        path.hardlink_to(beside)
    except FileExistsError:
        return False
    except OSError:
        # A disk without links: a reader may find it empty for a moment, and takes it for free.
        return _create_without_link(path, data)
    finally:
        beside.unlink(missing_ok=True)
    return True


def _create_without_link(path: Path, data: bytes) -> bool:
    try:
        write_new(path, data)
    except FileExistsError:
        return False
    return True


def _numbers(folder: Path) -> list[int]:
    found = (re.fullmatch(r"lease-(\d{1,9})\.json", path.name) for path in folder.iterdir())
    return [int(match[1]) for match in found if match]


def _path(folder: Path, number: int) -> Path:
    return folder / f"lease-{number}.json"


def _read(folder: Path, number: int) -> Owner | None:
    try:
        return Owner(**json.loads(read_regular(_path(folder, number))))
    except (OSError, ValueError, TypeError):
        return None


def _encode(owner: Owner) -> bytes:
    return json.dumps(asdict(owner)).encode()
