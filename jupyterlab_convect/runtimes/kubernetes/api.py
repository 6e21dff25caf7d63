"""The connection to one cluster: plain JSON over HTTP, with the credentials of `kubernetes`.

The models of that client are left aside: a manifest is a dictionary on its way out and
on its way in. Everything here blocks and is called in threads.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

from ...background import Health, forever_in_thread
from ...errors import ConvectError, Refused
from ...pipeline.plan import Json

T = TypeVar("T")

IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
GROUPS = {
    "cronjobs": "/apis/batch/v1",
    "deployments": "/apis/apps/v1",
    "jobs": "/apis/batch/v1",
    "mpijobs": "/apis/kubeflow.org/v2beta1",
    "pytorchjobs": "/apis/kubeflow.org/v1",
    "tfjobs": "/apis/kubeflow.org/v1",
    "trainingruntimes": "/apis/trainer.kubeflow.org/v1alpha1",
    "trainjobs": "/apis/trainer.kubeflow.org/v1alpha1",
}
"""Where the resources are that are not in the core."""
CONNECT, READ = 10.0, 30.0
BUSY = frozenset((429, 500, 502, 503, 504))
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
DOUBT = 15.0
"""Seconds until a refusal is believed."""


class ApiError(Exception):
    """The cluster refused; `status` is that of HTTP, `message` its own words."""

    def __init__(
        self, status: int, message: str, reason: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.reason = reason
        self.retry_after = retry_after


class ClusterUnreachable(Exception):
    """The cluster does not answer, or cannot at the moment."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


@dataclass(frozen=True)
class Connection:
    """What is known of a cluster before the first request."""

    client: Any
    namespace: str
    in_cluster: bool


def connect(context: str = "", config_file: str = "", namespace: str = "") -> Connection:
    """A connection by kubeconfig, or by the pod's own account when there is none to be asked."""
    try:
        from kubernetes import client, config
        from kubernetes.config import kube_config
    except ImportError:
        raise Refused(
            "Kubernetes cannot be used: the package `kubernetes` is not installed.",
            code="runtime-unavailable",
            hint="pip install 'jupyterlab-convect[kubernetes]'",
        ) from None
    loader: Any = kube_config
    load_incluster: Any = config.load_incluster_config
    settings = client.Configuration()
    settings.socket_options = _keep_alive()
    account = IN_CLUSTER / "token"
    try:
        if account.exists() and not (context or config_file):
            load_incluster(client_configuration=settings)
            found = (IN_CLUSTER / "namespace").read_text().strip()
            return Connection(client.ApiClient(settings), namespace or found, in_cluster=True)
        # By itself the package knows only what the variable was when it was imported.
        file = config_file or os.environ.get("KUBECONFIG") or None
        loader.load_kube_config(file, context or None, settings, persist_config=False)
        _, active = loader.list_kube_config_contexts(file)
        if context:
            contexts, _ = loader.list_kube_config_contexts(file)
            active = next(item for item in contexts if item["name"] == context)
    except (config.ConfigException, OSError) as error:
        raise Refused(
            f"No Kubernetes cluster is configured: {error}.".replace("..", "."),
            code="no-cluster",
            hint="Set KUBECONFIG, or c.KubernetesRuntime.config_file and .context.",
        ) from None
    found = active.get("context", {}).get("namespace") or "default"
    return Connection(client.ApiClient(settings), namespace or found, in_cluster=False)


def require_configuration(config_file: str = "") -> None:
    """Refused where nothing says which cluster is meant; a look at files, no connection."""
    given = config_file or os.environ.get("KUBECONFIG") or "~/.kube/config"
    files = [Path(name).expanduser() for name in given.split(os.pathsep) if name]
    if not (IN_CLUSTER / "token").exists() and not any(file.exists() for file in files):
        raise Refused(
            "No Kubernetes cluster is configured.",
            code="no-cluster",
            hint="Set KUBECONFIG, or c.KubernetesRuntime.config_file and .context.",
        )


class Api:
    def __init__(self, connection: Connection) -> None:
        self.namespace = connection.namespace
        self.in_cluster = connection.in_cluster
        self.client = connection.client
        self._host = self.client.configuration.host.rstrip("/")
        self._pool = self.client.rest_client.pool_manager

    def path(self, kind: str, name: str = "", *, namespace: str | None = None) -> str:
        """The path of `jobs`, `pods`, … in our namespace, or of one of them."""
        path = f"{GROUPS.get(kind, '/api/v1')}/namespaces/{namespace or self.namespace}/{kind}"
        return f"{path}/{name}" if name else path

    def get(self, path: str, **query: Json) -> Json:
        return self._send("GET", path, query)

    def list(self, path: str, **query: Json) -> list[Json]:
        """All items, page by page."""
        items: list[Json] = []
        query = {"limit": 500, **query}
        while True:
            page = self._send("GET", path, query)
            items += page.get("items") or []
            query["continue"] = page.get("metadata", {}).get("continue")
            if not query["continue"]:
                return items

    def create(self, path: str, body: Json, **query: Json) -> Json:
        return self._send("POST", path, query, body)

    def replace(self, path: str, body: Json) -> Json:
        return self._send("PUT", path, {}, body)

    def delete(self, path: str, **options: Json) -> None:
        """Idempotent: what is gone already is fine."""
        try:
            self._send("DELETE", path, {}, options or None)
        except ApiError as error:
            if error.status != 404:
                raise

    @contextmanager
    def stream(self, path: str, patience: float, **query: Json) -> Iterator[Any]:
        """The raw answer while it comes; `patience` is the longest silence, in seconds."""
        response = self._open("GET", path, query, None, patience)
        try:
            yield response
        finally:
            # Closed first: half an answer in a connection of the pool would be the next one's.
            response.close()
            response.release_conn()

    def forward(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        patience: float,
    ) -> tuple[int, str, bytes]:
        """What somebody behind the cluster, or inside of it, answers: status, type, content."""
        import urllib3

        try:
            response = self._pool.request(
                method,
                url,
                body=body,
                headers=dict(headers),
                retries=False,
                timeout=urllib3.Timeout(connect=CONNECT, read=patience),
            )
        except Exception as error:
            raise _as_unreachable(error) from error
        return response.status, response.headers.get("Content-Type", ""), response.data

    def headers(self) -> dict[str, str]:
        """What says who we are; asked for each time, because tokens are renewed."""
        try:
            settings = self.client.configuration.auth_settings().values()
        except Exception as error:  # Whatever a plug-in for credentials comes up with.
            words = f"{type(error).__name__}: {error}".rstrip(": .")
            raise ClusterUnreachable(f"the credentials cannot be renewed ({words})") from error
        return {item["key"]: item["value"] for item in settings if item.get("value")}

    def url(self, path: str, query: Mapping[str, Json] | None = None) -> str:
        given = [
            (key, part)
            for key, value in (query or {}).items()
            if value is not None
            for part in (value if isinstance(value, list | tuple) else [value])
        ]
        texts = [
            (key, str(part).lower() if isinstance(part, bool) else str(part)) for key, part in given
        ]
        return f"{self._host}{path}" + (f"?{urlencode(texts)}" if texts else "")

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, Json],
        body: Json = None,
    ) -> Json:
        response = self._open(method, path, query, body, READ)
        try:
            return json.loads(response.read())
        except (OSError, ValueError) as error:
            raise ClusterUnreachable(str(error)) from error
        except Exception as error:
            raise _as_unreachable(error) from error
        finally:
            response.release_conn()

    def _open(
        self,
        method: str,
        path: str,
        query: Mapping[str, Json],
        body: Json,
        patience: float,
    ) -> Any:
        import urllib3

        headers = {"Accept": "application/json", **self.headers()}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            response = self._pool.request(
                method,
                self.url(path, query),
                body=None if body is None else json.dumps(body).encode(),
                headers=headers,
                preload_content=False,
                retries=False,
                timeout=urllib3.Timeout(connect=CONNECT, read=patience),
            )
        except Exception as error:
            raise _as_unreachable(error) from error
        if response.status >= 400:
            raise _error_of(response)
        return response


def read_pieces(response: Any) -> Iterator[bytes]:
    """What comes as soon as it is there, not when a buffer is full."""
    while True:
        try:
            data = response.read1(1 << 20)
        except Exception as error:
            raise ClusterUnreachable(str(error) or type(error).__name__) from error
        if not data:
            return
        yield data


class StreamThread(ABC):
    """Reads from the cluster in a thread of its own, again and again, until it is closed."""

    def __init__(self, api: Api, name: str, health: Health) -> None:
        self._api = api
        self._name = name
        self._health = health
        self._closing = threading.Event()
        self._response: Any = None

    def start(self) -> None:
        forever_in_thread(self._name, self._read, self._health, self._closing)

    def close(self) -> None:
        self._closing.set()
        response = self._response
        if response is not None:
            with suppress(Exception):
                response.shutdown()
        self._health.recovered(self._name)

    @abstractmethod
    def _read(self) -> None:
        """Read once. What it raises is told as health, and then it reads again."""

    @contextmanager
    def _pieces(self, path: str, patience: float, **query: Json) -> Iterator[Iterator[bytes]]:
        """The answer as it comes; `close` ends it."""
        with self._api.stream(path, patience, **query) as response:
            self._response = response
            try:
                yield read_pieces(response)
            finally:
                self._response = None


async def patiently(
    call: Callable[[], Awaitable[T]], seconds: float, given_up: asyncio.Event | None = None
) -> T:
    """Ask again while the cluster is busy or away, ever more seldom, for so long.

    No thread is kept waiting meanwhile.
    """
    began = time.monotonic()
    pause = FIRST_PAUSE
    given_up = given_up or asyncio.Event()
    while True:
        try:
            return await call()
        except (ClusterUnreachable, ApiError) as error:
            if given_up.is_set() or time.monotonic() - began > _worth(error, seconds):
                raise
            wanted = error.retry_after
        delay = wanted if wanted is not None else pause * random.uniform(0.5, 1.0)  # noqa: S311
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(given_up.wait(), delay)
        pause = min(pause * 2, LONGEST_PAUSE)


def _worth(error: ApiError | ClusterUnreachable, seconds: float) -> float:
    """For how long to ask again after such an answer."""
    if isinstance(error, ClusterUnreachable) or error.status in BUSY:
        return seconds
    # A server that has just started does not know its accounts and their rights yet.
    starting = error.status == 401 or (error.status == 403 and "cannot" in error.message)
    return min(seconds, DOUBT) if starting else 0.0


def as_convect_error(
    error: ApiError | ClusterUnreachable, doing: str, namespace: str
) -> ConvectError:
    """The same as a sentence for the user; `doing` completes “The cluster refused to …”."""
    if isinstance(error, ClusterUnreachable):
        return ConvectError(f"The cluster cannot be reached: {error}.", code="unreachable")
    if error.status == 401:
        return Refused(
            "The cluster does not accept your credentials.",
            code="not-allowed",
            hint=f"Log in to the cluster again. The cluster says: {error.message}",
        )
    if error.status == 403 and "exceeded quota" in error.message:
        return Refused(
            f"The quota of namespace {namespace} is used up: {error.message}.", code="quota"
        )
    if error.status == 403:
        return Refused(
            f"You are not allowed to {doing} in namespace {namespace}: {error.message}.",
            code="not-allowed",
            hint="Ask your administrator for the permissions in deploy/role.yaml.",
        )
    if error.status == 404 and "namespaces" in error.message:
        return Refused(f"There is no namespace {namespace}.", code="no-namespace")
    return Refused(f"The cluster refused to {doing}: {error.message}.", code="refused")


def _keep_alive() -> list[tuple[int, int, int]]:
    """Lets a connection that died without a word be noticed within a minute."""
    options = [
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
        (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    ]
    for name, value in (("TCP_KEEPIDLE", 20), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            options.append((socket.IPPROTO_TCP, getattr(socket, name), value))
    return options


def _as_unreachable(error: Exception) -> Exception:
    import urllib3

    if isinstance(error, urllib3.exceptions.HTTPError | OSError):
        cause = error.reason if isinstance(error, urllib3.exceptions.MaxRetryError) else error
        words = str(cause).rpartition(">: ")[2] or type(cause).__name__
        return ClusterUnreachable(words.rstrip("."))
    return error


def _error_of(response: Any) -> Exception:
    try:
        data = response.read()
        status = json.loads(data)
        message, reason = status.get("message") or "", status.get("reason") or ""
    except (OSError, ValueError, AttributeError):
        message, reason = response.reason or "", ""
    finally:
        response.release_conn()
    after = response.headers.get("Retry-After", "")
    return ApiError(
        response.status,
        message.rstrip("."),
        reason,
        float(after) if after.isdigit() else None,
    )
