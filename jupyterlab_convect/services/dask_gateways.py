"""A Dask gateway of one's own: a service that makes clusters of processes on this machine.

It is there for who has no other. Programs find it by variables of their environment, and
whoever asks it first has it started.
"""

from __future__ import annotations

import contextlib
import getpass
import importlib.util
import json
import os
import secrets
import sys
import urllib.request
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..errors import Refused
from ..pipeline.plan import Json
from ..runs.store import Store
from ..safe_files import PRIVATE, is_shared, make_folder, owner_of, read_regular, write_new
from .base import OnDemand, Service, ServiceCommand, ServiceKind

PROGRAM = f"{__package__}.dask_gateway_process"
NEEDED_BY_CLIENTS = ("dask_gateway", "distributed")
NEEDED = ("dask_gateway_server", *NEEDED_BY_CLIENTS, "sqlalchemy")
GIB = 1 << 30
OWN = "CONVECT_DASK_GATEWAY"
"""Holds the address of the gateway in `DASK_GATEWAY__ADDRESS`, if that is one of these."""
SECONDS = 10.0


class OwnDaskGateway(ServiceKind):
    """It has no options. Those of its clusters are in `dask_gateway_process.py`."""

    idle = 1800.0
    politely = 30.0
    ready_path = "/api/health"
    ready_below = 400  # Its proxy answers before it knows the way to the rest.

    def prepare(
        self, options: Mapping[str, Json], root: Path, store: Store
    ) -> tuple[str, dict[str, Json]]:
        require_installed()
        make_password(store)
        return "Dask gateway", {"user": user_name(), "password_file": str(_password_file(store))}

    def command(self, service: Service, port: int) -> ServiceCommand:
        order = {"port": port, "password": read_password(service)}
        return ServiceCommand((sys.executable, "-m", PROGRAM), order=order)

    def is_busy(self, service: Service, address: str) -> bool:
        """Whether it has clusters. One that does not answer is looked at again later."""
        credentials = f"{user_name()}:{read_password(service)}".encode()
        request = urllib.request.Request(  # noqa: S310
            f"{address}/api/v1/clusters/",
            headers={"Authorization": f"Basic {b64encode(credentials).decode()}"},
        )
        without_proxy = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with without_proxy.open(request, timeout=SECONDS) as answer:
                return bool(json.load(answer))
        except (OSError, ValueError):
            return True

    def on_demand(self, store: Store) -> OnDemand | None:
        if not is_installed():
            return None
        from .dask_gateway_api import configured_gateway

        if configured_gateway() is not None:
            return None
        password = make_password(store)

        def variables(address: str) -> dict[str, str]:
            return {OWN: address, **gateway_variables(address, password)}

        return OnDemand({}, variables)


def gateway_variables(address: str, password: str) -> dict[str, str]:
    """What has `Gateway()` find a gateway of one's own. Dask reads values as Python."""
    return {
        "DASK_GATEWAY__ADDRESS": address,
        "DASK_GATEWAY__AUTH__TYPE": "basic",
        "DASK_GATEWAY__AUTH__KWARGS__USERNAME": repr(user_name()),
        "DASK_GATEWAY__AUTH__KWARGS__PASSWORD": repr(password),
        "DASK_GATEWAY__HTTP_CLIENT__PROXY": "False",
    }


def own_options() -> list[dict[str, Json]]:
    """What a gateway of one's own lets one choose, as gateways tell it."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB, 1)
    usual = min(2.0, memory)

    def option(name: str, label: str, default: Json, **spec: Json) -> dict[str, Json]:
        return {"field": name, "label": label, "default": default, "spec": spec}

    least = min(0.25, usual)
    return [
        option("worker_cores", "Cores of a worker", 1, type="int", min=1, max=cpus),
        option(
            "worker_memory",
            "Memory of a worker in GiB",
            usual,
            type="float",
            min=least,
            max=memory,
        ),
        option("environment", "Environment variables", {}, type="mapping"),
    ]


def is_installed(needed: Sequence[str] | None = None) -> bool:
    return all(importlib.util.find_spec(name) is not None for name in needed or NEEDED)


def require_installed(needed: Sequence[str] | None = None) -> None:
    if not is_installed(needed):
        raise Refused(
            "Dask is not installed.",
            code="no-program",
            hint="Install it where the server is: pip install jupyterlab-convect[dask].",
        )


def user_name() -> str:
    """As the gateway takes it, which knows ASCII alone."""
    with contextlib.suppress(KeyError, OSError):  # A user may have no name.
        if (name := getpass.getuser()).isascii():
            return name
    return str(os.getuid())


def read_password(service: Service) -> str:
    return _read(Path(service.options["password_file"]))


def make_password(store: Store) -> str:
    """What lets this user in, and nobody else; the same for as long as the runs folder lasts."""
    file = _password_file(store)
    make_folder(file.parent, 0o3770 if is_shared(store.folder) else PRIVATE)
    with contextlib.suppress(FileExistsError):
        write_new(file, secrets.token_hex(32).encode())
        file.chmod(0o600)
    return _read(file)


def _password_file(store: Store) -> Path:
    return store.folder / "services" / f".dask-{os.getuid()}"


def _read(file: Path) -> str:
    with contextlib.suppress(OSError):
        if owner_of(file) == os.getuid() or not is_shared(file.parents[1]):
            return read_regular(file).decode()
    raise Refused(f"{file} is not yours, or cannot be read.", code="unreadable")
