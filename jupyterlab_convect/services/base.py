"""The contract of everything that stays up and has an address.

A service is a process of this user with a port on the loopback interface. `host.py` starts it,
sees it become ready, stops it when nobody uses it, and writes down what became of it. A kind of
services says how that process is started: one file per kind, named in `KINDS`.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from ..errors import ConvectError
from ..pipeline.plan import Json
from ..runs.store import Store

ServiceState = Literal["starting", "ready", "stopped", "failed", "lost"]
UP: tuple[ServiceState, ...] = ("starting", "ready")

KINDS = {
    "app": "apps:App",
    "dask": "dask_gateways:OwnDaskGateway",
    "endpoint": "workers:EndpointWorker",
    "tensorboard": "tensorboards:TensorBoard",
}
"""The class of each kind, as `module:Class` of this folder; imported when it is needed."""


@dataclass(frozen=True, slots=True)
class Service:
    """The content of `service.json`: what was asked for."""

    id: str
    kind: str
    name: str
    created: float
    options: dict[str, Json] = field(default_factory=dict)
    """What its kind was told, checked."""
    idle: float = 0.0
    """Seconds without a request after which it is stopped; 0 is never."""
    key: str = ""
    """What the proxy sends to it as `X-Convect-Key`, and no other user of the machine knows; its
    process has it as the variable CONVECT_SERVICE_KEY."""


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """The content of `status.json`: what became of it. Its host alone writes it."""

    state: ServiceState
    reason: str | None = None
    """Why it is not ready yet, or any more."""
    address: str = ""
    """Where its machine finds it: `http://127.0.0.1:<port>`."""
    started: float = 0.0
    ended: float | None = None
    process: dict[str, Any] = field(default_factory=dict)
    """Its host, as `runner.processes.identify` names a process."""


@dataclass(frozen=True, slots=True)
class ServiceCommand:
    """How a service is started."""

    words: tuple[str, ...]
    folder: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    order: Json = None
    """What it reads from its standard input, as JSON."""


@dataclass(frozen=True, slots=True)
class OnDemand:
    """A service that is started when somebody connects to it for the first time."""

    options: dict[str, Json]
    variables: Callable[[str], Mapping[str, str]]
    """By which programs of this user find it, given where it is waited for."""


class ServiceKind(ABC):
    idle: ClassVar[float] = 3600.0
    """`Service.idle` of services for which nobody chooses it."""
    patience: ClassVar[float] = 300.0
    """Seconds that it has until it answers."""
    politely: ClassVar[float] = 5.0
    """Seconds that it has to stop by itself."""
    ready_path: ClassVar[str] = "/"
    """What it answers with less than `ready_below` as soon as it is ready."""
    ready_below: ClassVar[int] = 500

    @abstractmethod
    def prepare(
        self, options: Mapping[str, Json], root: Path, store: Store
    ) -> tuple[str, dict[str, Json]]:
        """What people call a service with these options, and the options as they are kept.

        Paths in them start from `root`, and are absolute in what is kept; runs in them are those
        of `store`. ConvectError when no
        service can be started with them. Two services with the same options are one.
        """

    @abstractmethod
    def command(self, service: Service, port: int) -> ServiceCommand:
        """A command that listens on this port of 127.0.0.1 and stays in the foreground."""

    def patience_for(self, service: Service) -> float:
        """`patience`, where it depends on the service."""
        return self.patience

    def removal(self, service: Service) -> tuple[str, ...]:
        """What removes what it has made elsewhere, if it makes anything: a command that reads
        what the service has written into `host.LEFT`."""
        return ()

    def on_demand(self, store: Store) -> OnDemand | None:
        """How programs find a service of this kind without starting it, if they can."""
        return None

    def is_busy(self, service: Service, address: str) -> bool:
        """Whether it is in use although nobody asks it anything through JupyterLab."""
        return False


def kind_of(name: str) -> ServiceKind:
    try:
        module, _, cls = KINDS[name].partition(":")
    except KeyError:
        raise ConvectError(
            f"There are no services of the kind {name[:80]!r}.",
            code="no-such-kind",
            hint=f"Kinds: {', '.join(KINDS)}.",
        ) from None
    kind: ServiceKind = getattr(importlib.import_module(f".{module}", __package__), cls)()
    return kind
