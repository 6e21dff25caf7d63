"""Reads addresses that users typed, without being led where users may not go.

A name is resolved once and the connection goes to an address that was looked
at, so a second answer of the name server changes nothing. Every redirect is
looked at again. Sizes, times and types are bounded.
"""

from __future__ import annotations

import http.client
import ipaddress
import re
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import NoReturn
from urllib.parse import SplitResult, quote, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

from ..errors import ConvectError, Missing, Refused

PARALLEL = 8
MAX_REDIRECTS = 5
USER_AGENT = "jupyterlab-convect"

_TEXT = re.compile(r"^(text/(?!html)|application/(.*yaml|.*json|octet-stream|text)\b)")
_ARCHIVE = re.compile(r"^application/(zip|x-zip.*|octet-stream)\b")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")

_IP = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Policy:
    hosts: tuple[str, ...] = ()
    """Host names and addresses (with `*`) that may be internal; an administrator lists them."""
    max_bytes: int = 8 << 20
    max_archive_bytes: int = 64 << 20
    timeout: float = 20.0

    def opens(self, host: str) -> bool:
        return any(fnmatch(host.lower(), pattern.lower()) for pattern in self.hosts)


@dataclass(frozen=True, slots=True)
class Page:
    url: str
    """Where it was found in the end."""
    data: bytes
    archive: bool = False


@dataclass(frozen=True, slots=True)
class Fetcher:
    policy: Policy = field(default_factory=Policy)
    authorization: str | None = None
    """Sent to `authorized_hosts` and nowhere else."""
    authorized_hosts: frozenset[str] = frozenset()

    def many(self, urls: Sequence[str]) -> Mapping[str, bytes | ConvectError]:
        """Several addresses at once; what fails is answered with its error."""

        def one(url: str) -> bytes | ConvectError:
            try:
                return self.get(url).data
            except ConvectError as error:
                return error

        with ThreadPoolExecutor(min(PARALLEL, len(urls) or 1)) as pool:
            return dict(zip(urls, pool.map(one, urls), strict=True))

    def get(self, url: str, *, archive: bool = False) -> Page:
        """The text at `url`, or with `archive` the zip file there."""
        address = url
        for _ in range(MAX_REDIRECTS + 1):
            answer = self._once(address, archive)
            if isinstance(answer, Page):
                return answer
            target = urljoin(address, answer)
            if address.startswith("https:") and not target.startswith("https:"):
                raise Refused(f"{url} leads away from https, to {shorten(target)}.")
            address = target
        raise Refused(f"{url} redirects too often.")

    def _once(self, url: str, archive: bool) -> Page | str:
        """What is there, or where it is instead."""
        parts = check_url(url)
        host = parts.hostname or ""
        headers = {"User-Agent": USER_AGENT, "Accept": "*/*", "Accept-Encoding": "identity"}
        if self.authorization and host in self.authorized_hosts:
            headers["Authorization"] = self.authorization
        try:
            with self._connection(parts) as connection:
                connection.request("GET", _target(parts, connection), headers=headers)
                response = connection.getresponse()
                if response.status in (301, 302, 303, 307, 308):
                    location = response.headers.get("Location")
                    if location:
                        return location
                _check_status(url, response.status)
                return self._page(url, response, archive)
        except TimeoutError:
            _too_slow(url, self.policy.timeout)
        except ssl.SSLError as error:
            raise ConvectError(
                f"{url} cannot be trusted: {error.reason or error}.", code="unreachable"
            ) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise ConvectError(f"{url} cannot be reached: {reason}.", code="unreachable") from None

    def _page(self, url: str, response: http.client.HTTPResponse, archive: bool) -> Page:
        kind = (response.headers.get("Content-Type") or "text/plain").lower()
        limit = self.policy.max_archive_bytes if archive else self.policy.max_bytes
        if kind.startswith("text/html"):
            raise ConvectError(
                f"{url} is a web page, not a component.", hint="Use the address of the raw file."
            )
        if not (_ARCHIVE if archive else _TEXT).match(kind):
            raise ConvectError(f"{url} is of type {kind[:60]}, which cannot be a component.")
        if (response.headers.get("Content-Encoding") or "identity").lower() != "identity":
            raise ConvectError(f"{url} comes compressed, although that was not asked for.")
        announced = int(response.headers.get("Content-Length") or 0)
        if announced > limit:
            _too_large(url, limit)
        data = response.read(limit + 1)
        if len(data) > limit:
            _too_large(url, limit)
        if len(data) < announced:
            raise http.client.IncompleteRead(data, announced - len(data))
        return Page(url, data, archive)

    @contextmanager
    def _connection(self, parts: SplitResult) -> Iterator[http.client.HTTPConnection]:
        """A connection that is cut when the time is over, however slowly the other side drips."""
        connection = self._open(parts)
        late = threading.Event()
        opened: list[socket.socket] = []

        def cut() -> None:
            late.set()
            for item in opened:
                _shut(item)

        timer = threading.Timer(self.policy.timeout, cut)
        timer.daemon = True
        timer.start()
        try:
            connection.connect()
            # The connection lets go of its socket before an answer without end is read.
            opened.append(connection.sock)
            yield connection
        except (OSError, ValueError, http.client.HTTPException):
            if late.is_set():
                raise TimeoutError from None
            raise
        finally:
            timer.cancel()
            connection.close()
        if late.is_set():
            raise TimeoutError

    def _open(self, parts: SplitResult) -> http.client.HTTPConnection:
        host = parts.hostname or ""
        port = parts.port or (443 if parts.scheme == "https" else 80)
        proxy = _proxy(parts)
        if proxy is None:
            kind = _PinnedHttps if parts.scheme == "https" else _Pinned
            return kind(host, port, self._resolve(host, port), self.policy.timeout)
        if not self.policy.opens(host):
            _refuse_internal(host, _known_addresses(host, port))
        if parts.scheme == "http":
            return http.client.HTTPConnection(
                proxy.hostname or "", proxy.port or 80, timeout=self.policy.timeout
            )
        tunnel = http.client.HTTPSConnection(
            proxy.hostname or "", proxy.port or 80, timeout=self.policy.timeout
        )
        tunnel.set_tunnel(host, port)
        return tunnel

    def _resolve(self, host: str, port: int) -> list[str]:
        addresses = _known_addresses(host, port)
        if not addresses:
            raise ConvectError(f"There is no host {host}.", code="unreachable")
        if not self.policy.opens(host):
            _refuse_internal(host, addresses)
        return [str(address) for address in addresses]


def check_url(url: str) -> SplitResult:
    """The parts of a web address; a ConvectError for anything else."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConvectError(f"{shorten(url)} is not a web address.") from None
    if parts.scheme not in ("http", "https"):
        raise Refused(
            f"{shorten(url)} is not a web address.", hint="It begins with https:// or http://."
        )
    if not parts.hostname or port == 0 or re.search(r"[\s\x00-\x1f]", url):
        raise ConvectError(f"{shorten(url)} is not a web address.")
    if parts.username or parts.password:
        raise Refused(
            f"The address of {parts.hostname} holds a user name or a password.",
            hint="Put them into a secret and name the secret.",
        )
    return parts


def shorten(text: str) -> str:
    return text if len(text) <= 200 else text[:200] + "…"


def is_internal(address: _IP) -> bool:
    """Whether an address is on this machine or in a private network, also by way of another."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_internal(inner)
        if address.teredo is not None or address.is_site_local:
            return True
    return not address.is_global or address.is_multicast


class _Pinned(http.client.HTTPConnection):
    """Speaks to `host` by way of addresses that were looked at before."""

    def __init__(self, host: str, port: int, addresses: Sequence[str], timeout: float) -> None:
        super().__init__(host, port, timeout=timeout)
        self.addresses = addresses

    def connect(self) -> None:
        for address in self.addresses:
            try:
                self.sock = socket.create_connection((address, self.port), self.timeout)
                return
            except OSError:
                if address == self.addresses[-1]:
                    raise


class _PinnedHttps(_Pinned):
    default_port = 443

    def connect(self) -> None:
        super().connect()
        context = ssl.create_default_context()
        self.sock = context.wrap_socket(self.sock, server_hostname=self.host)


def _known_addresses(host: str, port: int) -> list[_IP]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [ipaddress.ip_address(str(item[4][0]).partition("%")[0]) for item in found]


def _refuse_internal(host: str, addresses: Sequence[_IP]) -> None:
    if host.lower() == "localhost" or any(is_internal(address) for address in addresses):
        raise Refused(
            f"{host} is an internal address, which catalogs may not read.",
            code="internal-address",
            hint="An administrator can open it with c.Convect.catalog_hosts.",
        )


def _proxy(parts: SplitResult) -> SplitResult | None:
    found = getproxies().get(parts.scheme)
    if not found or proxy_bypass(parts.hostname or ""):
        return None
    return urlsplit(found if "://" in found else f"http://{found}")


def _target(parts: SplitResult, connection: http.client.HTTPConnection) -> str:
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~")
    target = f"{path}?{quote(parts.query, safe='%=&+/:?@!$,;~()*')}" if parts.query else path
    through_proxy = not isinstance(connection, _Pinned) and parts.scheme == "http"
    return f"http://{parts.netloc}{target}" if through_proxy else target


def _check_status(url: str, status: int) -> None:
    if status in (401, 403):
        raise Refused(
            f"{url} may not be read ({status}).", hint="Name a secret that holds a token."
        )
    if status in (404, 410):
        raise Missing(f"{url} is not there ({status}).")
    if status != 200:
        raise ConvectError(f"{url} answered with {status}.", code="unreachable")


def _too_large(url: str, limit: int) -> NoReturn:
    raise ConvectError(f"{url} is larger than {limit >> 20} MB.", code="too-large")


def _too_slow(url: str, timeout: float) -> NoReturn:
    raise ConvectError(f"{url} took longer than {timeout:g} s.", code="unreachable")


def _shut(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        sock.close()
