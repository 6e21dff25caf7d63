"""A Dask cluster in Python, as `client.dask_clusters` and `client.new_dask_cluster` give it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ..errors import Refused
from ..pipeline.plan import Json
from ..services.dask_clusters import DaskClusters
from ..services.dask_gateway_api import auth_of
from ..services.store import ServiceStore

if TYPE_CHECKING:
    from .session import ClientSession

PAUSE = 0.5


class DaskClusterHandle:
    """A Dask cluster; each look asks its gateway."""

    def __init__(self, session: ClientSession, cluster_id: str) -> None:
        self._session = session
        self.id = cluster_id

    @property
    def state(self) -> str:
        return str(self.view()["state"])

    @property
    def workers(self) -> int:
        """How many workers it has by now."""
        count: int = self.view()["workers"]
        return count

    def view(self) -> dict[str, Json]:
        """All that is known."""
        return self._clusters.read(self.id)

    def wait(self, workers: int = 1, timeout: float = 300.0) -> DaskClusterHandle:
        """Wait until it has so many workers. ConvectError when it has not by then."""
        deadline = time.monotonic() + timeout
        while (seen := self.view())["workers"] < workers:
            if time.monotonic() > deadline or seen["state"] not in ("pending", "running"):
                raise Refused(
                    f"The cluster is {seen['state']}, with {seen['workers']} of {workers} workers."
                )
            time.sleep(PAUSE)
        return self

    def scale(self, workers: int) -> None:
        """Have so many workers; they come and go in a while."""
        self._clusters.scale(self.id, workers)

    def adapt(self, minimum: int, maximum: int) -> None:
        """Let the work decide how many workers there are."""
        self._clusters.adapt(self.id, minimum, maximum)

    def test(self) -> dict[str, Json]:
        """Compute something on every worker, and say where versions differ from these here."""
        return self._clusters.test(self.id)

    def get_client(self) -> Any:
        """A `distributed.Client` of it."""
        from dask_gateway import Gateway

        gateway, name = self._clusters.find(self.id)
        return Gateway(gateway.address, auth=auth_of(gateway)).connect(name).get_client()

    def stop(self) -> None:
        """Stop it, and what it computes."""
        self._clusters.stop(self.id)

    @property
    def _clusters(self) -> DaskClusters:
        return clusters_of(self._session)

    def __repr__(self) -> str:
        return f"<Dask cluster {self.id}>"


def clusters_of(session: ClientSession) -> DaskClusters:
    return DaskClusters(ServiceStore(session.workspace.store))
