"""The services of a runs folder: `<runs folder>/services/<id>/`, each with its lease.

`service.json` is what was asked for, `status.json` what became of it, `log.txt` what it printed.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ..errors import Conflict, ConvectError, Missing, Refused
from ..pipeline.plan import Json, from_json, to_json
from ..runner import processes
from ..runs.json_files import read_json, write_json
from ..runs.lease import Lease, owner_of
from ..runs.store import Store
from ..safe_files import open_regular
from .base import UP, Service, ServiceStatus, kind_of
from .host import LOG, MARK, SERVICE, STATUS, STOP, read_status, remove_leftovers, touch, used
from .own_folders import OwnFolders, require_id

PAUSE = 0.05
LONGEST_IDLE = 30 * 86400.0
MOST_OF_LOG = 1 << 20


class ServiceRecord(NamedTuple):
    service: Service
    status: ServiceStatus
    used: float
    """When somebody used it last."""

    @property
    def is_up(self) -> bool:
        return self.status.state in UP


class ServiceStore:
    """The services of this user; those of others are not there."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._folders = OwnFolders(store, "services", SERVICE, _missing)

    def all(self) -> list[ServiceRecord]:
        found = []
        for service_id in self._folders.ids():
            with contextlib.suppress(ConvectError):
                found.append(self.read(service_id))
        return found

    def read(self, service_id: str) -> ServiceRecord:
        """Missing when there is none, or none of this user."""
        service = self._folders.read(service_id, Service)
        folder = self._folders.folder(service_id)
        status = read_status(folder)
        if status.state in UP and owner_of(folder) is None:
            # Its host may have written how it ended, and left, since it was read.
            status = read_status(folder)
            if status.state in UP:
                status = self._settle(folder, status)
        return ServiceRecord(service, status, used(folder))

    def start(
        self,
        kind: str,
        options: Mapping[str, Json],
        root: Path,
        *,
        service_id: str | None = None,
        name: str | None = None,
        idle: float | None = None,
    ) -> ServiceRecord:
        """Start a service, unless one with the same options is up. It takes a moment.

        Without `service_id` it has one that follows from its kind and its options.
        """
        maker = kind_of(kind)
        title, kept = maker.prepare(options, root, self.store)
        seconds = maker.idle if idle is None else idle
        if not 0 <= seconds <= LONGEST_IDLE:
            raise ConvectError(
                f"The idle time is a number of seconds from 0 to {LONGEST_IDLE:g}.",
                code="bad-service",
            )
        digest = hashlib.sha256(json.dumps([kind, kept], sort_keys=True).encode()).hexdigest()
        service_id = require_id(service_id or f"{kind}-{digest[:12]}", "bad-service")
        key = secrets.token_urlsafe(32)
        service = Service(service_id, kind, name or title, time.time(), kept, seconds, key)
        with contextlib.suppress(Missing):
            known = self.read(service_id)
            if known.is_up and (known.service.kind, known.service.options) == (kind, kept):
                return known
            if known.is_up:
                raise Conflict(f"The service {service_id} is up with other options.")
        with self._folders.writing():
            folder = self._folders.make(service_id)
            write_json(folder / SERVICE, to_json(service))
            self._start_host(folder)
        return self.read(service_id)

    def start_again(self, service_id: str) -> ServiceRecord:
        """Start one that has ended, as it was asked for."""
        known = self.read(service_id)
        if not known.is_up:
            with self._folders.writing():
                self._start_host(self._folders.folder(service_id))
        return self.read(service_id)

    def stop(self, service_id: str) -> None:
        """Have it stopped, wherever it runs; it is not waited for."""
        record = self.read(service_id)
        if record.is_up:
            process = record.status.process
            processes.send_signal(process, signal.SIGTERM)
            is_told = contextlib.suppress(OSError) if processes.is_here(process) else None
            with is_told or self._folders.writing():
                (self._folders.folder(service_id) / STOP).touch(0o600)

    def remove(self, service_id: str) -> None:
        """Forget one that has ended."""
        if self.read(service_id).is_up:
            raise Conflict(f"The service {service_id} is up.", hint="Stop it first.")
        shutil.rmtree(self._folders.folder(service_id), ignore_errors=True)

    async def until(self, service_id: str, *, up: bool, timeout: float) -> ServiceRecord:
        """How it is once it is ready (or has ended instead), or once it has ended; or after
        `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while True:
            record = await asyncio.to_thread(self.read, service_id)
            if not record.is_up or (up and record.status.state == "ready"):
                return record
            if time.monotonic() > deadline:
                return record
            await asyncio.sleep(PAUSE)

    def address(self, record: ServiceRecord) -> str:
        """Where this machine finds a service that is ready. Refused when it does not."""
        service, status, _ = record
        if status.state == "starting":
            raise Refused(f"{service.name} is starting.", code="not-ready", hint=status.reason)
        if status.state != "ready":
            reason = status.reason or f"{service.name} is stopped."
            raise Refused(reason, code="not-ready", hint="Start it again.")
        if not processes.is_here(status.process):
            raise Refused(
                f"{service.name} runs on {status.process.get('host')}, not on this machine.",
                code="elsewhere",
                hint="Open it there, or stop it and start it here.",
            )
        return status.address

    def use(self, service_id: str) -> None:
        """Say that somebody uses it, so that it is not stopped as idle."""
        touch(self._folders.folder(service_id))

    def log(self, service_id: str) -> str:
        """The end of what it has printed."""
        self.read(service_id)
        try:
            with open_regular(self._folders.folder(service_id) / LOG) as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - MOST_OF_LOG))
                return file.read().decode("utf-8", "replace")
        except OSError:
            return ""

    def _start_host(self, folder: Path) -> None:
        with (folder / LOG).open("wb") as log:
            host = subprocess.Popen(
                [sys.executable, "-m", "jupyterlab_convect.services.host", str(folder)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        assert host.stdout is not None
        with host.stdout:
            if not host.stdout.readline():
                raise ConvectError(
                    "The process that should keep the service did not start.",
                    code="no-host",
                    hint=f"{folder / LOG} says why.",
                )

    def _settle(self, folder: Path, status: ServiceStatus) -> ServiceStatus:
        """Write down that its host was killed, and end what it has left behind."""
        host = status.process.get("host")
        is_here = processes.is_here(status.process)
        reason = (
            "The process that kept it was killed."
            if is_here
            else f"The machine {host}, on which it ran, is gone or was restarted."
        )
        lost = ServiceStatus("lost", reason, "", status.started, time.time(), status.process)
        with contextlib.suppress(OSError):  # On a full disk it is written down later.
            lease = Lease.take(folder)
            if lease is not None:
                processes.end_marked(f"{MARK}={folder.resolve()}")
                with contextlib.suppress(ConvectError):
                    remove_leftovers(folder, from_json(Service, read_json(folder / SERVICE)))
                write_json(folder / STATUS, to_json(lost))
                lease.end()
        return lost


def _missing(service_id: str) -> Missing:
    return Missing(f"There is no service {service_id[:80]!r}.", code="no-such-service")


def shown(record: ServiceRecord) -> dict[str, Json]:
    """`ServiceView`, but for where JupyterLab shows it."""
    service, status, when = record
    return {
        "id": service.id,
        "kind": service.kind,
        "name": service.name,
        "created": service.created,
        "options": dict(service.options),
        "idle": service.idle,
        "state": status.state,
        "reason": status.reason,
        "started": status.started,
        "ended": status.ended,
        "used": when,
        "host": status.process.get("host"),
    }
