"""How a Dask gateway is found and asked, with the standard library: its own client takes a second
to import, and the memory of all of `distributed`."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from ..errors import Conflict, Missing, Refused, words_of
from ..pipeline.plan import Json
from .dask_gateways import OWN, user_name

SECONDS = 20.0
LONGEST_ANSWER = 64 << 20
AT_ONCE = ("basic", "jupyterhub")
"""Ways of signing in for which one need not be asked first."""


@dataclass(frozen=True, slots=True)
class DaskGateway:
    """Where a gateway is, and how one is let in."""

    address: str
    auth: str = "basic"
    auth_options: Mapping[str, Json] = field(default_factory=dict)
    proxy: str | bool = True
    defaults: Mapping[str, Json] = field(default_factory=dict)
    """Options of clusters for which nobody chooses them."""
    is_own: bool = False
    scheduler: str | None = None
    """Where clients reach the schedulers, host and port, if that is not the address."""


def configured_gateway() -> DaskGateway | None:
    """The gateway that Dask's own configuration names, unless that is one's own."""
    try:
        import dask.config
    except ImportError:
        return None
    given = dask.config.collect(dask.config.paths).get("gateway") or {}
    address = _filled(given.get("address"))
    if not isinstance(address, str) or not address or address == os.environ.get(OWN):
        return None
    auth = given.get("auth") or {}
    options = {name: _filled(value) for name, value in (auth.get("kwargs") or {}).items()}
    cluster = given.get("cluster") or {}
    defaults = {name: _filled(value) for name, value in (cluster.get("options") or {}).items()}
    proxy = _filled((given.get("http-client") or {}).get("proxy", True))
    kind = str(auth.get("type") or "basic")
    parts = urllib.parse.urlsplit(address.rstrip("/"))
    if parts.username:  # As in http://me:password@host
        kind, options = "basic", {"username": parts.username, "password": parts.password}
        parts = parts._replace(netloc=parts.netloc.rpartition("@")[2])
    scheduler = _scheduler(_filled(given.get("proxy-address")), parts.hostname or "")
    return DaskGateway(parts.geturl(), kind, options, proxy, defaults, scheduler=scheduler)


def _scheduler(told: Json, host: str) -> str | None:
    """As Dask's own client understands it: a port of the same host, an address, or a URL."""
    if told is None or told == "":
        return None
    if str(told).isdigit():
        return f"{host}:{told}"
    return urllib.parse.urlsplit(str(told)).netloc or str(told)


def scheduler_address(gateway: DaskGateway, name: str) -> str:
    """What `Client` connects with."""
    parts = urllib.parse.urlsplit(gateway.address)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 8786)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"gateway://{gateway.scheduler or f'{host}:{port}'}/{name}"


def _filled(value: Json) -> Json:
    """Dask lets values name variables of the environment in braces."""
    if not isinstance(value, str):
        return value
    try:
        return value.format(**os.environ)
    except (KeyError, ValueError, IndexError):
        raise Refused(
            "A value of Dask's gateway configuration names a variable that is not set.",
            code="bad-configuration",
        ) from None


def ask(gateway: DaskGateway, path: str, method: str = "GET", body: Json = None) -> dict[str, Any]:
    """What the gateway answers. ConvectError when it does not do what it is asked."""
    answer = send(gateway, path, method, body, _known_credentials(gateway))
    if answer.status == 401 and gateway.auth not in AT_ONCE:
        headers, finish = _other_credentials(gateway, answer)
        answer = send(gateway, path, method, body, headers)
        finish(answer)
    if answer.status < 400:
        return parsed(gateway, answer.body) if answer.body else {}
    where = gateway.address
    told = _told(answer)
    if answer.status == 401:
        raise Refused(
            f"The Dask gateway {where} does not let you in.",
            code="gateway-unauthorized",
            hint="Check gateway.auth in Dask's configuration.",
        )
    if answer.status in (403, 404):
        raise Missing("There is no such Dask cluster of yours.", code="no-such-cluster")
    if answer.status == 409:
        raise Conflict(f"The Dask gateway refused: {told}.")
    if answer.status == 422:
        raise Refused(f"The Dask gateway refused: {told}.", code="gateway-refused")
    raise Refused(
        f"The Dask gateway {where} failed with the status {answer.status}.", code="gateway-failed"
    )


@dataclass(frozen=True, slots=True)
class GatewayAnswer:
    status: int
    body: bytes
    headers: Mapping[str, str]
    url: str


def send(
    gateway: DaskGateway, path: str, method: str, body: Json, headers: Mapping[str, str]
) -> GatewayAnswer:
    url = f"{gateway.address}{path}"
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise Refused(
            f"The address of the Dask gateway, {gateway.address!r}, is no URL.",
            code="bad-configuration",
        )
    data = None if body is None else json.dumps(body).encode()
    kind = {} if data is None else {"Content-Type": "application/json"}
    request = urllib.request.Request(  # noqa: S310
        url, data, {**kind, **headers}, method=method
    )
    try:
        with _opener(gateway).open(request, timeout=SECONDS) as answer:
            return GatewayAnswer(
                answer.status, answer.read(LONGEST_ANSWER), dict(answer.headers), url
            )
    except urllib.error.HTTPError as error:
        with error:
            return GatewayAnswer(error.code, error.read(LONGEST_ANSWER), dict(error.headers), url)
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None)
        words = words_of(reason if isinstance(reason, BaseException) else error)
        raise Refused(
            f"The Dask gateway {gateway.address} does not answer: {words}.",
            code="gateway-down",
        ) from None


def _opener(gateway: DaskGateway) -> urllib.request.OpenerDirector:
    if gateway.proxy is True:
        return urllib.request.build_opener(_OwnOrigin)
    proxies = {"http": gateway.proxy, "https": gateway.proxy} if gateway.proxy else {}
    return urllib.request.build_opener(_OwnOrigin, urllib.request.ProxyHandler(proxies))


class _OwnOrigin(urllib.request.HTTPRedirectHandler):
    """Credentials are for the gateway, and for nobody that it leads to."""

    def redirect_request(
        self, request: urllib.request.Request, *answer: Any
    ) -> urllib.request.Request | None:
        there = super().redirect_request(request, *answer)
        if there is not None and _origin(there.full_url) != _origin(request.full_url):
            there.remove_header("Authorization")
        return there


def _origin(url: str) -> tuple[str, str]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.netloc


def _known_credentials(gateway: DaskGateway) -> dict[str, str]:
    """The headers that let one in, where they can be known before the gateway asks."""
    options = gateway.auth_options
    if gateway.auth == "basic":
        name = options.get("username") or user_name()
        both = f"{name}:{options.get('password') or ''}".encode("latin1", "replace")
        return {"Authorization": f"Basic {b64encode(both).decode()}"}
    if gateway.auth == "jupyterhub":
        token = options.get("api_token") or os.environ.get("JUPYTERHUB_API_TOKEN")
        if not token:
            raise Refused(
                "The Dask gateway wants a token of JupyterHub, and there is none.",
                code="gateway-unauthorized",
            )
        return {"Authorization": f"jupyterhub {token}"}
    return {}


def auth_of(gateway: DaskGateway) -> Any:
    """What Dask's own client signs in with; None where it finds that in its configuration."""
    if not gateway.is_own:
        return None
    from dask_gateway import BasicAuth

    return BasicAuth(**gateway.auth_options)


def _other_credentials(gateway: DaskGateway, answer: GatewayAnswer) -> tuple[dict[str, str], Any]:
    """Kerberos, or a class that somebody has configured, by Dask's own client."""
    try:
        from dask_gateway.auth import get_auth

        auth = get_auth()
        headers, context = auth.pre_request(_as_response(answer))
    except Exception as error:
        raise Refused(
            f"Signing in to the Dask gateway with {gateway.auth} failed: {words_of(error)}.",
            code="gateway-unauthorized",
        ) from None
    return dict(headers), lambda then: auth.post_response(_as_response(then), context)


def _as_response(answer: GatewayAnswer) -> Any:
    """As much of an answer as the classes of dask-gateway look at."""
    host = urllib.parse.urlsplit(answer.url).hostname
    headers = {name.lower(): value for name, value in answer.headers.items()}
    return SimpleNamespace(status=answer.status, headers=headers, url=SimpleNamespace(host=host))


def parsed(gateway: DaskGateway, body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Refused(
            f"What answers at {gateway.address} is no Dask gateway.", code="gateway-failed"
        )
    return value


def _told(answer: GatewayAnswer) -> str:
    with contextlib.suppress(ValueError, TypeError, KeyError):
        return str(json.loads(answer.body)["error"]).rstrip(".")[:500]
    return f"status {answer.status}"
