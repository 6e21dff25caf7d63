"""A service in Python, as `client.services` and `client.start_service` give it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..pipeline.plan import Json
from ..services.base import ServiceState
from ..services.store import ServiceRecord, ServiceStore, shown

if TYPE_CHECKING:
    from .session import ClientSession


class ServiceHandle:
    """Something that stays up; each look reads the present state."""

    def __init__(self, session: ClientSession, service_id: str) -> None:
        self._session = session
        self.id = service_id

    @property
    def kind(self) -> str:
        return self._read().service.kind

    @property
    def state(self) -> ServiceState:
        return self._read().status.state

    @property
    def address(self) -> str:
        """Where this machine finds it; ConvectError when it is not ready, or elsewhere."""
        return self._services.address(self._read())

    def view(self) -> dict[str, Json]:
        """All that is known."""
        return shown(self._read())

    def wait(self, timeout: float = 300.0) -> ServiceHandle:
        """Wait until it is ready. ConvectError when it is not by then."""
        record = self._session.do(self._services.until(self.id, up=True, timeout=timeout))
        self._services.address(record)
        return self

    def stop(self, timeout: float = 60.0) -> None:
        """Stop it and wait until it has ended."""
        self._services.stop(self.id)
        self._session.do(self._services.until(self.id, up=False, timeout=timeout))

    def start(self) -> ServiceHandle:
        """Start it again after it has ended."""
        self._services.start_again(self.id)
        return self

    def log(self) -> str:
        return self._services.log(self.id)

    def remove(self) -> None:
        """Forget it, after it has ended."""
        self._services.remove(self.id)

    @property
    def _services(self) -> ServiceStore:
        return ServiceStore(self._session.workspace.store)

    def _read(self) -> ServiceRecord:
        return self._services.read(self.id)

    def __repr__(self) -> str:
        return f"<service {self.id} {self.state}>"
