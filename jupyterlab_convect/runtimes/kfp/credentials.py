"""Who we are to a Kubeflow Pipelines server: nobody, a token, a cookie, or a name and a password.

Secrets come from the keyring, a Secret or a file of the cluster, or a variable; they are sent to
the server's own origin and nowhere else, and are in no sentence and no log.
"""

from __future__ import annotations

import base64
import html
import importlib
import os
import re
from abc import ABC
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urljoin, urlsplit

import urllib3

from ...errors import ConvectError, Refused

TOKEN_FILE = "/var/run/secrets/kubeflow/pipelines/token"  # noqa: S105
KEYRING_SERVICE = "jupyterlab-convect-kfp"
SECRET = "CONVECT_KFP_SECRET"  # noqa: S105
HOPS = 12
"""Redirects and pages on the way through a sign-in."""
CONNECT, READ = 10.0, 60.0
_FORM = re.compile(r"<form[^>]*\baction=\"([^\"]*)\"[^>]*>", re.IGNORECASE)
_LINK = re.compile(r"href=\"([^\"]*(?:/auth/(?:local|ldap)|/oauth2/start)[^\"]*)\"", re.IGNORECASE)


class Session:
    """Requests to one origin, with the cookies that it gives."""

    def __init__(
        self, endpoint: str, ca_file: str = "", pool: urllib3.PoolManager | None = None
    ) -> None:
        self.endpoint = endpoint
        self.cookies: dict[str, str] = {}
        authority: dict[str, Any] = {"ca_certs": _existing(ca_file)} if ca_file else {}
        self._pool = pool or urllib3.PoolManager(**authority)

    def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> urllib3.BaseHTTPResponse:
        """Redirects are for whoever signs in; anybody else must see them."""
        if origin(url) != origin(self.endpoint):
            raise Refused(
                f"The sign-in page is on another server, {urlsplit(url).netloc}.",
                code="foreign-sign-in",
                hint="Use a token, or paste the cookie of a browser that is signed in.",
            )
        own = {"Cookie": cookie_header(self.cookies)} if self.cookies else {}
        answer = self._pool.request(
            method,
            url,
            body=body,
            headers={**own, **headers},
            redirect=False,
            retries=False,
            timeout=urllib3.Timeout(connect=CONNECT, read=READ),
        )
        for line in answer.headers.getlist("Set-Cookie"):
            self._keep(line)
        return answer

    def _keep(self, line: str) -> None:
        try:
            morsels = SimpleCookie(line)
        except CookieError:
            return
        for name, morsel in morsels.items():
            if morsel["max-age"] == "0" or not morsel.value:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = morsel.value


class Credentials(ABC):  # noqa: B024
    """By default nobody in particular."""

    def headers(self, session: Session) -> dict[str, str]:
        return {}

    def renew(self, session: Session) -> bool:
        """Sign in again; False when that would change nothing."""
        return False


class Nobody(Credentials):
    """For a server of one user, or behind a proxy that knows us."""


class TokenFile(Credentials):
    """A token that the cluster writes into a file, and replaces before it expires."""

    def __init__(self, path: str = "") -> None:
        self.path = path or os.environ.get("KF_PIPELINES_SA_TOKEN_PATH") or TOKEN_FILE

    def headers(self, session: Session) -> dict[str, str]:
        try:
            return bearer(Path(self.path).read_text("utf-8"))
        except OSError as error:
            raise ConvectError(
                f"The token of Kubeflow Pipelines cannot be read: {error.strerror}.",
                code="no-token",
                hint=f"It is expected at {self.path}.",
            ) from None


class Token(Credentials):
    def __init__(self, token: str) -> None:
        self._token = token

    def headers(self, session: Session) -> dict[str, str]:
        return bearer(self._token)


class Kubeconfig(Credentials):
    """Whoever may use the cluster, through its own server: `services/proxy` is the right for it."""

    def __init__(self, namespace: str = "", service: str = "ml-pipeline") -> None:
        from ..kubernetes.api import connect as connect_cluster

        found = connect_cluster()
        self._client: Any = found.client
        place = namespace or "kubeflow"
        host = self._client.configuration.host.rstrip("/")
        self.endpoint = f"{host}/api/v1/namespaces/{place}/services/{service}:8888/proxy"
        self.pool: urllib3.PoolManager = self._client.rest_client.pool_manager

    def headers(self, session: Session) -> dict[str, str]:
        key = self._client.configuration.get_api_key_with_prefix("authorization")
        return {"Authorization": key} if key else {}


class Cookie(Credentials):
    """What a browser that is signed in sends: `name=value`, or the whole header."""

    def __init__(self, text: str) -> None:
        text = text.strip().removeprefix("Cookie:").strip()
        if "=" not in text or any(ord(letter) < 32 for letter in text):
            raise ConvectError("A cookie is written as name=value.", code="bad-cookie")
        self._text = text

    def headers(self, session: Session) -> dict[str, str]:
        return {"Cookie": self._text}


class Password(Credentials):
    """A name and a password for the form that Dex shows, whatever cookie comes of it."""

    def __init__(self, user: str, password: str) -> None:
        self._user = user
        self._password = password

    def renew(self, session: Session) -> bool:
        session.cookies.clear()
        url = session.endpoint + "/"
        answer = session.send("GET", url, {"Accept": "text/html"})
        is_sent = False
        for _ in range(HOPS):
            if answer.status in (301, 302, 303, 307, 308):
                url = _next(url, answer.headers.get("Location", ""))
                answer = session.send("GET", url, {"Accept": "text/html"})
                continue
            page = answer.data.decode(errors="replace")
            form = next((each for each in _FORM.finditer(page) if _asks_for_password(page)), None)
            if form is not None and not is_sent:
                url = _next(url, html.unescape(form[1]))
                fields = {"login": self._user, "password": self._password}
                headers = {"Content-Type": "application/x-www-form-urlencoded"}
                answer = session.send("POST", url, headers, urlencode(fields).encode())
                is_sent = True
                continue
            if form is not None:
                raise Refused("The name or the password is wrong.", code="wrong-password")
            link = _LINK.search(page)
            if link is None or is_sent:
                break
            url = _next(url, html.unescape(link[1]))
            answer = session.send("GET", url, {"Accept": "text/html"})
        if not is_sent:
            raise Refused(
                "The server shows no form for a name and a password.",
                code="no-form",
                hint="Use a token, or paste the cookie of a browser that is signed in.",
            )
        return bool(session.cookies)


def bearer(token: str) -> dict[str, str]:
    token = token.strip()
    if not token or any(ord(letter) <= 32 or ord(letter) > 126 for letter in token):
        raise ConvectError("The token of Kubeflow Pipelines is damaged.", code="bad-token")
    return {"Authorization": f"Bearer {token}"}


def stored_secret(endpoint: str) -> str | None:
    """From the variable, or from the keyring, where it is kept by the address of the server."""
    told = os.environ.get(SECRET)
    if told:
        return told
    try:
        keyring = importlib.import_module("keyring")
    except ImportError:
        return None
    found: str | None = keyring.get_password(KEYRING_SERVICE, endpoint)
    return found


def cluster_secret(reference: str, namespace: str) -> str:
    """What a Secret of the cluster holds; `reference` is its name and the key: `kfp/token`."""
    from ..kubernetes.api import Api, ApiError, ClusterUnreachable
    from ..kubernetes.api import connect as connect_cluster

    name, _, key = reference.partition("/")
    try:
        api = Api(connect_cluster(namespace=namespace))
        data = api.get(api.path("secrets", name)).get("data") or {}
        return base64.b64decode(data[key]).decode()
    except (ApiError, ClusterUnreachable) as error:
        raise Refused(
            f"The Secret {name} cannot be read: {str(error).rstrip('.')}.", code="no-secret"
        ) from None
    except KeyError:
        raise Refused(
            f"The Secret {name} has no key {key}.",
            code="no-secret",
            hint="A secret is named as name/key.",
        ) from None
    except ValueError:
        raise Refused(
            f"The key {key} of the Secret {name} is not text.", code="no-secret"
        ) from None


def origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _next(url: str, address: str) -> str:
    """Where a page leads; what is no address is one of another server, and refused as such."""
    try:
        found = urljoin(url, address)
        origin(found)
    except ValueError:
        return f"//{quote(address, safe='')}"
    return found


def cookie_header(cookies: Mapping[str, str]) -> str:
    return "; ".join(f"{name}={value}" for name, value in cookies.items())


def _asks_for_password(page: str) -> bool:
    return re.search(r"<input[^>]*type=\"password\"", page, re.IGNORECASE) is not None


def _existing(path: str) -> str:
    if not Path(path).is_file():
        raise ConvectError(f"There is no file {path}.", code="missing-file")
    return path
