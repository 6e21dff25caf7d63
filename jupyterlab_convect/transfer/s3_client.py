"""A bucket of an S3 object store: the requests that a transfer needs, signed by hand.

The signature is eighty lines of hmac; the libraries for it are larger than all of this
package, and pods need no library at all for an address that is signed already. Bodies
come from files and go to files, a block at a time. Everything here blocks.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import json
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree

from .agent import TIMEOUT, StoreError, again, send

LONGEST = 7 * 86400
"""Seconds for which an address can be signed, by the rules of S3."""
LARGEST_ANSWER = 8 << 20
EMPTY = hashlib.sha256(b"").hexdigest()
UNSIGNED = "UNSIGNED-PAYLOAD"


@dataclass(frozen=True)
class S3Credentials:
    """Never printed: they are for the signature alone."""

    access_key: str
    secret_key: str = field(repr=False)
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Bucket:
    """`endpoint` is an address such as `https://s3.eu-west-1.amazonaws.com`."""

    endpoint: str
    name: str
    region: str
    credentials: Callable[[], S3Credentials] = field(repr=False)
    virtual_host: bool = False
    """Its name is a part of the host instead of the path."""
    ca_file: str = ""
    pauses: tuple[float, ...] | None = None
    timeout: float = TIMEOUT

    def address(self, key: str = "") -> str:
        parts = urlsplit(self.endpoint)
        host = f"{self.name}.{parts.netloc}" if self.virtual_host else parts.netloc
        path = parts.path.rstrip("/") + ("" if self.virtual_host else f"/{self.name}")
        return f"{parts.scheme}://{host}{path}/{quote(key)}"

    def presign(self, method: str, keys: Iterable[str], seconds: int) -> tuple[str, list[str]]:
        """The query that the addresses of all the keys have in common, and each one's signature."""
        now, credentials = datetime.now(timezone.utc), self.credentials()
        query = {
            "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
            "X-Amz-Credential": f"{credentials.access_key}/{_scope(now, self.region)}",
            "X-Amz-Date": _stamp(now),
            "X-Amz-Expires": str(min(seconds, LONGEST)),
            **({"X-Amz-Security-Token": credentials.token} if credentials.token else {}),
            "X-Amz-SignedHeaders": "host",
        }
        text = _query(query)
        signatures = []
        for key in keys:
            url = urlsplit(self.address(key))
            canonical = _canonical(method, url.path, text, {"host": url.netloc}, UNSIGNED)
            signatures.append(_signature(canonical, credentials, now, self.region))
        return text, signatures

    def form(self, prefix: str, seconds: int, largest: int) -> dict[str, str]:
        """The fields of a form that sends objects whose keys begin so, each up to a size."""
        now, credentials = datetime.now(timezone.utc), self.credentials()
        fields = {
            "x-amz-algorithm": "AWS4-HMAC-SHA256",
            "x-amz-credential": f"{credentials.access_key}/{_scope(now, self.region)}",
            "x-amz-date": _stamp(now),
            **({"x-amz-security-token": credentials.token} if credentials.token else {}),
        }
        allowed = {
            "expiration": f"{now + timedelta(seconds=min(seconds, LONGEST)):%Y-%m-%dT%H:%M:%S}Z",
            "conditions": [
                {"bucket": self.name},
                ["starts-with", "$key", prefix],
                ["content-length-range", 0, largest],
                *({name: value} for name, value in fields.items()),
            ],
        }
        policy = base64.b64encode(json.dumps(allowed).encode()).decode()
        signature = _sign(policy, credentials, now, self.region)
        return {**fields, "policy": policy, "x-amz-signature": signature}

    def head(self, key: str) -> Mapping[str, str] | None:
        """The headers of an object; None when it is not there."""
        try:
            return dict(self._send("HEAD", key).headers)
        except StoreError as error:
            if error.status == 404:
                return None
            raise

    def get(self, key: str) -> Any:
        """An answer that is still to be read, and to be closed."""
        return self._open("GET", key)

    def read(self, key: str, most: int) -> bytes | None:
        """A small object; None when it is not there. ValueError when it is larger."""

        def read() -> bytes:
            with self._open("GET", key) as response:
                data: bytes = response.read(most + 1)
            return data

        try:
            data = again(read, self.pauses)
        except StoreError as error:
            if error.status == 404:
                return None
            raise
        if len(data) > most:
            raise ValueError("it is too large.")
        return data

    def put(self, key: str, body: Callable[[], Iterable[bytes]], size: int, digest: str) -> None:
        """The store compares what arrives with the digest."""
        headers = {"Content-Length": str(size)}
        self._send("PUT", key, headers=headers, body=body, digest=digest)

    def copy(self, source: str, target: str, etag: str) -> None:
        """Within the store, provided that the source is still the one with this tag."""
        headers = {
            "x-amz-copy-source": quote(f"/{self.name}/{source}"),
            "x-amz-copy-source-if-match": etag,
        }
        self._send("PUT", target, headers={"Content-Length": "0", **headers})

    def delete(self, key: str) -> None:
        self._send("DELETE", key)

    def list(self, prefix: str) -> Iterator[tuple[str, float]]:
        """The keys that begin so, and when each was written, in seconds since 1970."""
        query = {"list-type": "2", "prefix": prefix, "max-keys": "1000"}
        while True:
            root = self._ask(query)
            for item in root.iter("Contents"):
                modified = datetime.fromisoformat(
                    (item.findtext("LastModified") or "").replace("Z", "+00:00")
                )
                yield item.findtext("Key") or "", modified.timestamp()
            following = root.findtext("NextContinuationToken")
            if not following:
                return
            query["continuation-token"] = following

    def clock(self) -> float:
        """What time it is at the store, by its own answer; it need not know us for that."""
        try:
            headers: Mapping[str, str] = self._open("HEAD", "").headers
        except StoreError as error:
            headers = error.headers
        stamp = headers.get("Date")
        return parsedate_to_datetime(stamp).timestamp() if stamp else time.time()

    def _ask(self, query: Mapping[str, str]) -> ElementTree.Element:
        with self._send("GET", "", query=query) as response:
            data = response.read(LARGEST_ANSWER)
        root = ElementTree.fromstring(data)  # noqa: S314
        for item in root.iter():
            item.tag = item.tag.rpartition("}")[2]
        return root

    def _send(
        self,
        method: str,
        key: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Callable[[], Iterable[bytes]] | None = None,
        digest: str = EMPTY,
    ) -> Any:
        return again(
            lambda: self._open(method, key, query or {}, headers or {}, body, digest), self.pauses
        )

    def _open(
        self,
        method: str,
        key: str,
        query: Mapping[str, str] = {},
        headers: Mapping[str, str] = {},
        body: Callable[[], Iterable[bytes]] | None = None,
        digest: str = EMPTY,
    ) -> Any:
        """Signed anew each time: a signature is good for some minutes."""
        now, credentials = datetime.now(timezone.utc), self.credentials()
        address, text = self.address(key), _query(query)
        url = urlsplit(address)
        ours = {name: value for name, value in headers.items() if name.startswith("x-amz-")}
        signed = {
            "host": url.netloc,
            "x-amz-content-sha256": digest,
            "x-amz-date": _stamp(now),
            **({"x-amz-security-token": credentials.token} if credentials.token else {}),
            **ours,
        }
        canonical = _canonical(method, url.path, text, signed, digest)
        names = ";".join(sorted(signed))
        authorization = (
            f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{_scope(now, self.region)}, "
            f"SignedHeaders={names}, "
            f"Signature={_signature(canonical, credentials, now, self.region)}"
        )
        given = {**headers, **signed, "Authorization": authorization}
        given.pop("host")
        content = body() if body else ([] if method == "PUT" else None)
        return send(
            method,
            f"{address}?{text}" if text else address,
            given,
            content,
            self._context,
            self.timeout,
        )

    @functools.cached_property
    def _context(self) -> ssl.SSLContext | None:
        return ssl.create_default_context(cafile=self.ca_file) if self.ca_file else None


def _canonical(method: str, path: str, query: str, headers: Mapping[str, str], digest: str) -> str:
    """`path` and `query` as they are sent; the names of headers in small letters."""
    names = sorted(headers)
    lines = [f"{name}:{headers[name].strip()}\n" for name in names]
    return "\n".join((method, path, query, "".join(lines), ";".join(names), digest))


def _signature(canonical: str, credentials: S3Credentials, now: datetime, region: str) -> str:
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    text = "\n".join(("AWS4-HMAC-SHA256", _stamp(now), _scope(now, region), digest))
    return _sign(text, credentials, now, region)


def _sign(text: str, credentials: S3Credentials, now: datetime, region: str) -> str:
    key = f"AWS4{credentials.secret_key}".encode()
    for word in _scope(now, region).split("/"):
        key = hmac.digest(key, word.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()


def _scope(now: datetime, region: str) -> str:
    return f"{now:%Y%m%d}/{region}/s3/aws4_request"


def _stamp(now: datetime) -> str:
    return f"{now:%Y%m%dT%H%M%SZ}"


def _query(query: Mapping[str, str]) -> str:
    pairs = sorted((quote(name, safe=""), quote(value, safe="")) for name, value in query.items())
    return "&".join(f"{name}={value}" for name, value in pairs)
