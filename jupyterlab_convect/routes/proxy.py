"""The way to a service through JupyterLab: who is logged in reaches it, and nobody else does.

jupyter-server-proxy would bring aiohttp, 12 MB and half a second of every start of the server,
and opens every port of the machine. This opens the services alone, and knows when they are used.
"""

from __future__ import annotations

import contextlib
import re
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus, urlsplit

from jupyter_server.auth.decorator import authorized, ws_authenticated
from jupyter_server.base.handlers import JupyterHandler
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.httputil import HTTPHeaders, parse_response_start_line
from tornado.iostream import StreamClosedError
from tornado.simple_httpclient import SimpleAsyncHTTPClient
from tornado.web import HTTPError
from tornado.websocket import (
    WebSocketClientConnection,
    WebSocketClosedError,
    WebSocketHandler,
    websocket_connect,
)

from ..errors import ConvectError, words_of
from ..pools import pool
from ..runner.notebook_worker import KEY_HEADER
from ..services.store import ServiceStore
from .services import RESOURCE

if TYPE_CHECKING:
    from ..app import Convect

STARTING_PATIENCE = 30.0
"""Seconds that a request waits for a service that is starting."""
USE_PAUSE = 5.0
"""Seconds between two notes that a service is in use."""
LARGEST = 1 << 40
LARGEST_MESSAGE = 256 << 20
CONNECT_PATIENCE = 20.0
_used: dict[str, float] = {}
"""When it was last written down that a service is in use, by this process's clock."""
_NOT_PASSED_ON = {
    *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer"),
    *("transfer-encoding", "upgrade", "host", "content-length", "authorization", "cookie"),
    *("origin", "referer", "x-xsrftoken"),
}
"""Headers of a connection, and those that would tell a service who is logged in to Jupyter."""
_OF_JUPYTER = re.compile(r"(username-|jupyterhub-|_xsrf=)")


class ProxyHandler(JupyterHandler, WebSocketHandler):
    place = "services"
    """What comes before the id in the address."""
    _key = ""
    _upstream: WebSocketClientConnection

    def check_xsrf_cookie(self) -> None:
        """Pages of a service do not know Jupyter's cookie; where they come from is checked."""
        is_known = hasattr(self, "_jupyter_current_user")  # Tornado asks before anybody is.
        if is_known and not self.check_origin():
            raise HTTPError(403, "The request comes from another site.")

    @property
    def content_security_policy(self) -> str:
        """No other site shows it in a frame; what else it may do, the service says."""
        return "frame-ancestors 'self'"

    async def prepare(self, *arguments: Any, **keywords: Any) -> None:
        """No page of a service is worth a redirection to the login."""
        await super().prepare(*arguments, _redirect_to_login=False, **keywords)

    @ws_authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, service_id: str, _: str) -> None:  # type: ignore[override]
        if self.request.headers.get("Upgrade", "").lower() == "websocket":
            await self._connect(service_id)
        else:
            await self._forward(service_id)

    head: Any = get
    options: Any = get

    @ws_authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self, service_id: str, _: str) -> None:  # type: ignore[override]
        await self._forward(service_id)

    put: Any = post
    patch: Any = post
    delete: Any = post

    async def _forward(self, service_id: str) -> None:
        address = await self._address(service_id)
        answer = _Answer(self, address, self._parts(service_id)[0])
        client = SimpleAsyncHTTPClient(force_instance=True, max_body_size=LARGEST)
        try:
            await client.fetch(
                HTTPRequest(
                    self._url(address, service_id),
                    method=self.request.method or "GET",
                    headers=self._forwarded(service_id),
                    body=self.request.body or None,
                    follow_redirects=False,
                    decompress_response=False,
                    allow_nonstandard_methods=True,
                    connect_timeout=CONNECT_PATIENCE,
                    request_timeout=0,
                    header_callback=answer.head,
                    streaming_callback=answer.body,
                ),
                raise_error=False,
            )
        except StreamClosedError:
            return  # Nobody is there any more who wants to know.
        except OSError as error:
            raise HTTPError(502, f"The service does not answer: {words_of(error)}.") from None
        finally:
            client.close()
        answer.end_head()
        self.finish()

    @authorized("execute", resource=RESOURCE)
    async def _connect(self, service_id: str) -> None:
        address = await self._address(service_id)
        url = self._url(address, service_id).replace("http", "ws", 1)
        headers = self._forwarded(service_id)
        for name in [name for name in headers if name.lower().startswith("sec-websocket")]:
            del headers[name]
        given = self.request.headers.get("Sec-WebSocket-Protocol", "")
        try:
            self._upstream = await websocket_connect(
                HTTPRequest(url, headers=headers, connect_timeout=CONNECT_PATIENCE),
                on_message_callback=self._pass_on,
                subprotocols=[name.strip() for name in given.split(",") if name.strip()],
                max_message_size=LARGEST_MESSAGE,
            )
        except (OSError, HTTPClientError) as error:
            raise HTTPError(502, f"The service does not answer: {words_of(error)}.") from None
        self._service_id = service_id
        await super().get()

    def select_subprotocol(self, _: list[str]) -> str | None:
        return self._upstream.selected_subprotocol

    def _pass_on(self, message: str | bytes | None) -> None:
        if message is None:
            self.close(self._upstream.close_code, self._upstream.close_reason)
        elif self.ws_connection is not None and not self.ws_connection.is_closing():
            self.write_message(message, binary=isinstance(message, bytes))

    async def on_message(self, message: str | bytes) -> None:
        self._use(self._service_id)
        with contextlib.suppress(WebSocketClosedError):
            await self._upstream.write_message(message, binary=isinstance(message, bytes))

    def on_close(self) -> None:
        self._upstream.close()

    async def _address(self, service_id: str) -> str:
        """Where the service is, once it is ready."""
        app: Convect = self.settings["jupyterlab_convect"]
        try:
            if not app.workspace.is_open:
                await app.engine_thread.run(app.workspace.open())
            self._services = ServiceStore(app.workspace.store)
            record = await self._services.until(service_id, up=True, timeout=STARTING_PATIENCE)
            address = self._services.address(record)
            self._key = record.service.key
        except ConvectError as error:
            raise HTTPError(503 if error.status == 422 else error.status, error.sentence) from None
        self._use(service_id)
        return address

    def _use(self, service_id: str) -> None:
        now = time.monotonic()
        if now - _used.get(service_id, -USE_PAUSE) >= USE_PAUSE:
            _used[service_id] = now
            pool("reading").submit(self._services.use, service_id)

    def _parts(self, service_id: str) -> tuple[str, str]:
        """The address as far as the service, and the rest of it, as it was sent."""
        before, mark, rest = self.request.path.partition(f"/{self.place}/{service_id}/proxy/")
        return before + mark, rest

    def _url(self, address: str, service_id: str) -> str:
        # A `token` is how somebody logs in to Jupyter, and nothing for a service to know.
        parts = self.request.query.split("&")
        parts = [part for part in parts if unquote_plus(part.partition("=")[0]) != "token"]
        query = f"?{'&'.join(parts)}" if any(parts) else ""
        return f"{address}/{self._parts(service_id)[1]}{query}"

    def _forwarded(self, service_id: str) -> HTTPHeaders:
        headers = HTTPHeaders()
        for name, value in self.request.headers.get_all():
            if name.lower() not in _NOT_PASSED_ON:
                headers.add(name, value)
        cookies = map(str.strip, self.request.headers.get("Cookie", "").split(";"))
        if own := [each for each in cookies if each and not _OF_JUPYTER.match(each)]:
            headers["Cookie"] = "; ".join(own)
        headers["X-Forwarded-Prefix"] = self._parts(service_id)[0].rstrip("/")
        headers["X-Forwarded-Host"] = self.request.host
        headers["X-Forwarded-Proto"] = self.request.protocol
        if self._key:
            headers[KEY_HEADER] = self._key
        return headers


class _Answer:
    """What a service answers, on its way to whoever asked."""

    def __init__(self, handler: ProxyHandler, address: str, prefix: str) -> None:
        self._handler = handler
        self._address = address
        self._prefix = prefix
        self._lines: list[str] = []
        self._is_begun = False

    def head(self, line: str) -> None:
        if line.startswith("HTTP/"):
            self._lines = []  # What came before was an interim answer.
        self._lines.append(line)

    def body(self, chunk: bytes) -> None:
        self.end_head()
        self._handler.write(chunk)
        self._handler.flush()

    def end_head(self) -> None:
        if self._is_begun or not self._lines:
            return
        self._is_begun = True
        handler = self._handler
        start = parse_response_start_line(self._lines[0].strip())
        handler.set_status(start.code, start.reason)
        handler.clear_header("Content-Type")
        headers = HTTPHeaders.parse("".join(self._lines[1:]))
        for name, value in headers.get_all():
            lower = name.lower()
            if lower == "location":
                handler.set_header(name, self._here(value))
            elif lower == "set-cookie":
                handler.add_header(name, f"{_PATH.sub('', value)}; Path={self._prefix}")
            elif lower == "content-length" or lower not in (*_NOT_PASSED_ON, "x-frame-options"):
                handler.add_header(name, value)

    def _here(self, location: str) -> str:
        location = location.removeprefix(self._address)
        inside = urlsplit(self._address).path
        if inside and location.startswith(f"{inside}/"):
            location = location.removeprefix(inside)
        is_own = location.startswith("/") and not location.startswith("//")
        return self._prefix + location[1:] if is_own else location


_PATH = re.compile(r";\s*path=[^;]*", re.IGNORECASE)

routes = [(r"services/([^/]+)/proxy/(.*)", ProxyHandler)]
