"""Reads addresses that users typed, without being led where users must not go.

A name is resolved once and the connection goes to an address that was looked
at, so a second answer of the name server changes nothing. A proxy resolves names
by itself: one that cannot be resolved here as well is refused. Every redirect is
looked at again. Sizes, times and types are bounded.
"""

from __future__ import annotations

import base64
import http.client
import io
import ipaddress
import math
import re
import socket
import ssl
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import NoReturn
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

from ..errors import ConvectError, Missing, Refused
from ..pools import Threads

PARALLEL = 8
MAX_REDIRECTS = 5
USER_AGENT = "jupyterlab-convect"
OPEN_HINT = "An administrator can open it with c.Convect.catalog_hosts."

_TEXT = re.compile(r"^(text/(?!html)|application/(.*yaml|.*json|octet-stream|text)\b)")
_ARCHIVE = re.compile(r"^application/(zip|x-zip.*|octet-stream)\b")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")

_IP = ipaddress.IPv4Address | ipaddress.IPv6Address
_FILES = (
    (
        re.compile(r"https://github\.com/([^/]+/[^/]+)/(?:blob|raw)/([^?#]+).*"),
        r"https://raw.githubusercontent.com/\1/\2",
    ),
    # GitLab, wherever it runs.
    (re.compile(r"(https?://[^?#]+)/-/blob/([^?#]+).*"), r"\1/-/raw/\2"),
    # Gitea and Forgejo.
    (
        re.compile(
            r"(https?://[^/?#]+/[^/]+/[^/]+)/src/((?:branch|tag|commit)/[^?#]+\.(?:ya?ml|json)).*"
        ),
        r"\1/raw/\2",
    ),
)
_GITHUB = re.compile(r"https://github\.com/([^/]+)/([^/?#]+)(?:/tree/([^/]+)(/[^?#]*)?)?/?")
_GITLAB = re.compile(r"(https?://[^?#]+/([^/]+))/-/tree/([^/?#]+)(/[^?#]*)?.*")
_GITEA = re.compile(
    r"(https?://[^/?#]+/[^/]+/[^/]+)/src/((?:branch|tag|commit)/([^/?#]+))(/[^?#]*)?.*"
)
MAX_UNPACKED = 256 << 20
"""Bytes of the files of an archive that are looked at."""


@dataclass(frozen=True, slots=True)
class Policy:
    hosts: tuple[str, ...] = ()
    """Host names and addresses (with `*`) that may be internal; an administrator lists them."""
    max_bytes: int = 8 << 20
    max_archive_bytes: int = 64 << 20
    timeout: float = 20.0
    """Seconds for one address, all that it redirects to included."""
    catalog_timeout: float = 600.0
    """Seconds for all addresses of one catalog."""

    def opens(self, host: str) -> bool:
        return any(fnmatch(host.lower(), pattern.lower()) for pattern in self.hosts)


@dataclass(frozen=True, slots=True)
class FetchedPage:
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
    until: float = math.inf
    """When (by `time.monotonic`) everything must have been read."""

    def many(self, urls: Sequence[str]) -> Mapping[str, bytes | ConvectError]:
        """Several addresses at once; what fails is answered with its error."""
        if time.monotonic() >= self.until:
            raise ConvectError(
                f"The catalog took longer than {self.policy.catalog_timeout:g} s.",
                code="unreachable",
            )

        def one(url: str) -> bytes | ConvectError:
            try:
                return self.get(url).data
            except ConvectError as error:
                return error

        with Threads(min(PARALLEL, len(urls) or 1), "convect-fetching") as threads:
            return dict(zip(urls, threads.map(one, urls), strict=True))

    def get(self, url: str, *, archive: bool = False) -> FetchedPage:
        """The text at `url`, or with `archive` the zip file there."""
        deadline = min(time.monotonic() + self.policy.timeout, self.until)
        address = url
        for _ in range(MAX_REDIRECTS + 1):
            answer = self._once(address, archive, deadline)
            if isinstance(answer, FetchedPage):
                return answer
            target = urljoin(address, answer)
            if check_url(address).scheme == "https" and check_url(target).scheme != "https":
                raise Refused(f"{url} redirects from https to {shorten(target)}.")
            address = target
        raise Refused(f"{url} redirects too often.")

    def head(self, url: str, accept: str) -> tuple[int, http.client.HTTPMessage]:
        """The status and the headers of what is there; nobody is followed elsewhere."""
        deadline = min(time.monotonic() + self.policy.timeout, self.until)
        with self._answer("HEAD", check_url(url), deadline, Accept=accept) as response:
            return response.status, response.headers

    def _once(self, url: str, archive: bool, deadline: float) -> FetchedPage | str:
        """What is there, or where it is instead."""
        with self._answer("GET", check_url(url), deadline) as response:
            if response.status in (301, 302, 303, 307, 308):
                location = response.headers.get("Location")
                if location:
                    return location
            _check_status(url, response.status)
            return self._page(url, response, archive)

    @contextmanager
    def _answer(
        self, method: str, parts: SplitResult, deadline: float, **more: str
    ) -> Iterator[http.client.HTTPResponse]:
        """An answer to read within the block; what goes wrong on the way is a sentence."""
        url = parts.geturl()
        try:
            with self._connection(parts, deadline) as connection:
                headers = {**self._headers(parts), **more}
                connection.request(method, connection.target(parts), headers=headers)
                yield connection.getresponse()
        except TimeoutError:
            _too_slow(url, self.policy.timeout)
        except ssl.SSLError as error:
            raise ConvectError(
                f"{url} cannot be trusted: {error.reason or error}.", code="unreachable"
            ) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise ConvectError(f"{url} cannot be reached: {reason}.", code="unreachable") from None

    def _headers(self, parts: SplitResult) -> dict[str, str]:
        headers = {"User-Agent": USER_AGENT, "Accept": "*/*", "Accept-Encoding": "identity"}
        host = parts.hostname or ""
        hidden = parts.scheme == "https" or self.policy.opens(host)
        if self.authorization and hidden and host in self.authorized_hosts:
            headers["Authorization"] = self.authorization
        proxy = _proxy(parts)
        if proxy is not None and parts.scheme == "http":
            headers |= _proxy_headers(proxy)
        return headers

    def _page(self, url: str, response: http.client.HTTPResponse, archive: bool) -> FetchedPage:
        kind = (response.headers.get("Content-Type") or "text/plain").lower()
        limit = self.policy.max_archive_bytes if archive else self.policy.max_bytes
        if kind.startswith("text/html"):
            raise ConvectError(
                f"{url} is a web page, not a component.", hint="Use the address of the raw file."
            )
        if not (_ARCHIVE if archive else _TEXT).match(kind):
            raise ConvectError(f"{url} is of type {kind[:60]}, which cannot be a component.")
        if (response.headers.get("Content-Encoding") or "identity").lower() != "identity":
            raise ConvectError(f"{url} is compressed, although that was not requested.")
        announced = int(response.headers.get("Content-Length") or 0)
        if announced > limit:
            _too_large(url, limit)
        data = response.read(limit + 1)
        if len(data) > limit:
            _too_large(url, limit)
        if len(data) < announced:
            raise http.client.IncompleteRead(data, announced - len(data))
        return FetchedPage(url, data, archive)

    @contextmanager
    def _connection(self, parts: SplitResult, deadline: float) -> Iterator[_CheckedConnection]:
        """A connection that is cut when the time is over, however slowly the other side drips."""
        connection = self._open(parts, deadline)
        late = threading.Event()

        def cut() -> None:
            late.set()
            connection.cut()

        timer = threading.Timer(max(deadline - time.monotonic(), 0), cut)
        timer.daemon = True
        timer.start()
        try:
            connection.connect()
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

    def _open(self, parts: SplitResult, deadline: float) -> _CheckedConnection:
        host = parts.hostname or ""
        port = parts.port or (443 if parts.scheme == "https" else 80)
        addresses = _known_addresses(host, port)
        proxy = _proxy(parts)
        if not self.policy.opens(host):
            if proxy is not None and not addresses:
                raise Refused(
                    f"{host} is known to the proxy only, so it may be an internal address.",
                    code="internal-address",
                    hint=OPEN_HINT,
                )
            _refuse_internal(host, addresses)
        secure = parts.scheme == "https"
        if proxy is None:
            if not addresses:
                raise ConvectError(f"There is no host {host}.", code="unreachable")
            return _CheckedConnection(host, port, addresses, deadline, secure=secure)
        near, gate = proxy.hostname or "", proxy.port or 80
        connection = _CheckedConnection(
            near, gate, _known_addresses(near, gate), deadline, secure=secure, proxied=True
        )
        if secure:
            connection.set_tunnel(host, port, _proxy_headers(proxy))
        return connection


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
            f"The address of {parts.hostname} contains a user name or a password.",
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


class _CheckedConnection(http.client.HTTPConnection):
    """Goes to addresses that were looked at before, by `deadline` and no later."""

    def __init__(
        self,
        host: str,
        port: int,
        addresses: Sequence[_IP],
        deadline: float,
        *,
        secure: bool,
        proxied: bool = False,
    ) -> None:
        super().__init__(host, port)
        # A port is left out of the header `Host` where it goes without saying.
        self.default_port = 443 if secure else 80
        self._addresses = addresses
        self._deadline = deadline
        self._secure = secure
        self._proxied = proxied
        self._opened: list[socket.socket] = []
        """Kept here: the connection lets go of its socket before an endless answer is read."""

    def connect(self) -> None:
        self._keep(self._reach())
        if self._proxied and self._secure:
            self._tunnel()  # type: ignore[attr-defined]
        if self._secure:
            name = self._tunnel_host if self._proxied else self.host  # type: ignore[attr-defined]
            context = ssl.create_default_context()
            wrapped = context.wrap_socket(
                self.sock, server_hostname=name, do_handshake_on_connect=False
            )
            self._keep(wrapped)
            wrapped.do_handshake()

    def target(self, parts: SplitResult) -> str:
        path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~")
        target = f"{path}?{quote(parts.query, safe='%=&+/:?@!$,;~()*')}" if parts.query else path
        return f"http://{parts.netloc}{target}" if self._proxied and not self._secure else target

    def cut(self) -> None:
        for item in self._opened:
            _shut(item)

    def _reach(self) -> socket.socket:
        """The first address that answers; each has its share of the time."""
        error: OSError = OSError(f"there is no host {self.host}")
        for number, address in enumerate(self._addresses):
            share = (self._deadline - time.monotonic()) / (len(self._addresses) - number)
            if share <= 0:
                raise TimeoutError
            try:
                return socket.create_connection((str(address), self.port), share)
            except OSError as failure:
                error = failure
        raise error

    def _keep(self, opened: socket.socket) -> None:
        opened.settimeout(max(self._deadline - time.monotonic(), 0.001))
        self.sock = opened
        self._opened = [opened]


def _known_addresses(host: str, port: int) -> list[_IP]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [ipaddress.ip_address(str(item[4][0]).partition("%")[0]) for item in found]


def _refuse_internal(host: str, addresses: Sequence[_IP]) -> None:
    if host.lower() == "localhost" or any(is_internal(address) for address in addresses):
        raise Refused(
            f"{host} is an internal address, which catalogs must not read.",
            code="internal-address",
            hint=OPEN_HINT,
        )


def _proxy(parts: SplitResult) -> SplitResult | None:
    found = getproxies().get(parts.scheme)
    if not found or proxy_bypass(parts.hostname or ""):
        return None
    return urlsplit(found if "://" in found else f"http://{found}")


def _proxy_headers(proxy: SplitResult) -> dict[str, str]:
    """What a proxy that knows its users wants to hear."""
    if not proxy.username:
        return {}
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


def _check_status(url: str, status: int) -> None:
    if status in (401, 403):
        raise Refused(
            f"{url} needs authorization ({status}).", hint="Name a secret that holds a token."
        )
    if status in (404, 410):
        raise Missing(f"{url} was not found ({status}).")
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


@dataclass(frozen=True, slots=True)
class Folder:
    archive: str
    """The address of the whole repository as a zip file."""
    files: str
    """What stands before a path in the address of a file."""
    path: str


def plain_address(url: str) -> str:
    """The address of the file itself where people copy the address of a page that shows it."""
    url = url.strip()
    for page, file in _FILES:
        match = page.fullmatch(url)
        if match:
            return match.expand(file)
    return url


def folder_of(url: str) -> Folder | None:
    """The folder of a repository that a page shows; None for any other address."""
    url = url.strip()
    if plain_address(url) != url:
        return None
    if match := _GITHUB.fullmatch(url):
        owner, name, ref, path = match.groups()
        ref = ref or "HEAD"
        archive = f"https://codeload.github.com/{owner}/{name}/zip/{quote(ref)}"
        files = f"https://raw.githubusercontent.com/{owner}/{name}/{ref}/"
    elif match := _GITLAB.fullmatch(url):
        root, name, ref, path = match.groups()
        archive, files = f"{root}/-/archive/{ref}/{name}-{ref}.zip", f"{root}/-/raw/{ref}/"
    elif match := _GITEA.fullmatch(url):
        root, branch, ref, path = match.groups()
        archive, files = f"{root}/archive/{ref}.zip", f"{root}/raw/{branch}/"
    else:
        return None
    return Folder(archive, files, (path or "").strip("/"))


def files_in_zip(
    data: bytes, folder: str, limit: int, suffixes: tuple[str, ...] = ("",)
) -> Iterator[tuple[str, bytes]]:
    """The files below a folder of an archive whose content lies in one top folder.

    Files of more than `limit` bytes are left out. An archive that unpacks to more than
    anybody wrote is refused.
    """
    left = MAX_UNPACKED
    prefix = f"{folder}/" if folder else ""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for item in archive.infolist():
                name = item.filename.partition("/")[2]
                if item.is_dir() or item.file_size > limit or not name.startswith(prefix):
                    continue
                if not name.endswith(suffixes):
                    continue
                with archive.open(item) as file:
                    content = file.read(limit + 1)
                left -= len(content)
                if left < 0:
                    raise ConvectError(
                        f"The archive unpacks to more than {MAX_UNPACKED >> 20} MB.",
                        code="too-large",
                    )
                if len(content) <= limit:
                    yield name, content
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise ConvectError(f"The archive is damaged: {error}.") from None
