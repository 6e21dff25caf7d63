"""Files as objects of an S3 store, by their content; results come back as objects.

The pod has no credentials: it gets addresses that are signed for its own files and its
own results, good for a week at most. What is small goes together, what is large goes in
parts; a part that the store has already is not sent again. Objects are only a cache: the
run folder is the record, and what nobody has asked for within `keep` days is removed.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import http.client
import json
import os
import re
import shutil
import socket
import ssl
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.parse import urlsplit

from traitlets import Enum, Float, Int, Unicode
from traitlets.config import Configurable

from ..errors import ConvectError, Missing, Refused
from ..json_text import dumps
from ..pipeline.plan import Json, Secret
from ..pipeline.problems import Problem
from ..runtimes.base import Attempt
from ..safe_files import read_regular
from ..text import duration_text, size_text
from .agent import (
    BLOCK,
    NOTEBOOK,
    OBJECTS,
    OUTCOME,
    REPLICAS,
    SMALL,
    Broken,
    Span,
    StoreError,
    fetch_part,
    parts_of,
    read_spans,
)
from .base import SharedVolume
from .bundle import SendingTransfer
from .check_results import LARGEST_OUTCOME, End, ResultPart, Results, Unusable, results_of
from .pack import Package
from .receive import PARSED, LogReceiver
from .s3_client import EMPTY, LONGEST, Bucket, S3Credentials

MOST_PARTS, MOST_SLOTS = 2000, 1000
"""Addresses that fit into a Secret beside the runner."""
SKEW = 300.0
"""Seconds that clocks may differ: stores refuse requests from 900 on."""
FRESH = 60.0
"""Seconds for which a store that was found good counts as good."""
DAY = 86400.0
REJECTED = ("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken")
TROUBLE = (
    StoreError,
    Broken,
    ConnectionError,
    TimeoutError,
    socket.gaierror,
    ssl.SSLError,
    http.client.HTTPException,
)
"""What can go wrong between us and the store; whatever else is wrong is not the store's fault."""


class ObjectStore(Configurable):
    """The settings of `c.ObjectStore`: a bucket that both this server and pods can reach."""

    endpoint = Unicode(
        "", help="Its address, such as https://s3.eu-west-1.amazonaws.com or http://minio:9000."
    ).tag(config=True)
    pod_endpoint = Unicode("", help="Its address as pods see it, where that differs.").tag(
        config=True
    )
    bucket = Unicode("", help="The bucket, which has to exist.").tag(config=True)
    prefix = Unicode("", help="What all keys in the bucket begin with, such as team-a/ana.").tag(
        config=True
    )
    region = Unicode("us-east-1").tag(config=True)
    addressing = Enum(
        ["path", "virtual"],
        "path",
        help="Whether the bucket is a part of the path, or of the host name.",
    ).tag(config=True)
    credentials = Unicode(
        "",
        help="""The name of a secret with the keys `access-key`, `secret-key` and perhaps
        `session-token`: a service of the keyring, or the variables CONVECT_SECRET_<NAME>_ACCESS_KEY
        and so on. If empty, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN.""",
    ).tag(config=True)
    ca_file = Unicode("", help="Certificates to trust, in a PEM file.").tag(config=True)
    part_size = Int(
        64 << 20, min=1 << 20, max=4 << 30, help="Bytes of the parts in which large files go."
    ).tag(config=True)
    project_limit = Int(
        2_000_000_000,
        min=0,
        help="Bytes of undeclared files of a project that are sent; what is more is left out.",
    ).tag(config=True)
    keep = Float(
        14.0, min=9.0, help="Days after which an object that nobody has asked for is removed."
    ).tag(config=True)

    @property
    def is_configured(self) -> bool:
        return bool(self.endpoint and self.bucket)

    def open(self, endpoint: str = "") -> Bucket:
        return Bucket(
            endpoint or self.endpoint,
            self.bucket,
            self.region,
            self._credentials,
            virtual_host=self.addressing == "virtual",
            ca_file=self.ca_file,
        )

    def _credentials(self) -> S3Credentials:
        """Looked up for each request, because they are renewed."""
        from ..secret_values import look_up

        def value(key: str, variable: str) -> str | None:
            if not self.credentials:
                return os.environ.get(variable)
            return look_up(Secret(variable, self.credentials, key))

        access = value("access-key", "AWS_ACCESS_KEY_ID")
        secret = value("secret-key", "AWS_SECRET_ACCESS_KEY")
        if not access or not secret:
            raise Refused(
                "There are no credentials for the object store.",
                code="no-credentials",
                hint="Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for the server, or name a "
                "secret of the keyring in c.ObjectStore.credentials.",
            )
        return S3Credentials(access, secret, value("session-token", "AWS_SESSION_TOKEN"))


class S3Transfer(SendingTransfer):
    way = "s3"

    def __init__(
        self, store: ObjectStore, volumes: tuple[SharedVolume, ...] = (), limit: int = 8_000_000
    ) -> None:
        super().__init__(volumes, limit)
        self.store = store
        self.bucket = store.open()
        self._good_until = 0.0

    def send(self, attempt: Attempt, package: Package) -> dict[str, bytes]:
        """Every part that the store does not have; then addresses for the pod."""
        contents = package.within(self.store.project_limit)
        with tempfile.TemporaryDirectory() as scratch, explained(self.store):
            sources = dict(contents.files)
            for number, (name, text) in enumerate(contents.texts.items()):
                sources[name] = Path(scratch, str(number))
                sources[name].write_bytes(text)
            sizes = [(name, sources[name].stat().st_size) for name in sorted(sources)]
            parts = parts_of(sizes, self.store.part_size)
            if len(parts) > MOST_PARTS:
                total = sum(count for _, count in sizes)
                raise too_large(attempt, total, MOST_PARTS * self.store.part_size)
            digests = [self._put(sources, spans) for spans in parts]
        told = self._addresses(attempt, list(zip(digests, parts, strict=True)))
        return {OBJECTS: json.dumps(told).encode()}

    def share(self, data: bytes) -> tuple[str, str]:
        """Keep data in the store: its address, which is good for a week, and its digest."""
        digest = hashlib.sha256(data).hexdigest()
        key = self._key("objects", digest)
        with explained(self.store):
            self.bucket.put(key, lambda: [data], len(data), digest)
            seen = replace(self.bucket, endpoint=self.store.pod_endpoint or self.store.endpoint)
            query, (signature,) = seen.presign("GET", [key], LONGEST)
        return f"{seen.address(key)}?{query}&X-Amz-Signature={signature}", digest

    def fetch(self, attempt: Attempt, folder: Path, *, outputs_only: bool = False) -> StoreReceiver:
        return StoreReceiver(self, results_key(attempt), folder, outputs_only=outputs_only)

    def forget(self, attempt: Attempt) -> None:
        with contextlib.suppress(*TROUBLE, ConvectError):
            self._remove(results_key(attempt))
            self.clean()

    def form(self, run: str) -> Json:
        """What tasks of a run need to leave results, each by a name that it takes.

        It holds a signature, which is good for a week, and for results of this run alone.
        """
        store, results = self.store, self._key("attempts", run)
        with explained(store):
            seen = replace(self.bucket, endpoint=store.pod_endpoint or store.endpoint)
            fields = seen.form(f"{results}/", LONGEST, store.part_size)
        return {
            "address": seen.address(),
            "fields": fields,
            "most": MOST_SLOTS,
            "part": store.part_size,
            "results": results,
        }

    def take_left(self, run: str, name: str, digest: str, folder: Path) -> None:
        """Bring home what a task left with the form. A ConvectError while that cannot be."""
        results = f"attempts/{run}/{name}"
        receiver = StoreReceiver(self, results, folder, digest=digest)
        receiver.finish()
        if not receiver.ended and receiver.trouble is None:
            raise Missing("The results of the step are no longer in the object store.")
        with contextlib.suppress(*TROUBLE, ConvectError):
            self._remove(results)

    def _remove(self, results: str) -> None:
        """If it fails, `clean` does it one day."""
        for key, _ in list(self.bucket.list(self._key(results, ""))):
            self.bucket.delete(key)

    def clean(self) -> int:
        """Once a day, remove what nobody has asked for; how many objects that were.

        One that is used is sent again long before, because servers may share a bucket.
        """
        now, mark = self.bucket.clock(), self._key("cleaned")
        if (known := self.bucket.head(mark)) and now - written_at(known) < DAY:
            return 0
        self.bucket.put(mark, list, 0, EMPTY)
        old = [
            key
            for kind in ("objects", "attempts")
            for key, written in self.bucket.list(self._key(kind, ""))
            if now - written > self.store.keep * DAY
        ]
        for key in old:
            self.bucket.delete(key)
        return len(old)

    def check(self) -> list[Problem]:
        if time.monotonic() < self._good_until:
            return []
        probe = replace(self.bucket, pauses=(), timeout=10.0)
        try:
            with explained(self.store):
                probe.credentials()
                difference = abs(probe.clock() - time.time())
                if difference > SKEW:
                    raise _clocks_differ(difference)
                next(probe.list(self._key("objects", "")), None)
                probe.put(self._key("check"), list, 0, EMPTY)
                probe.delete(self._key("check"))
        except ConvectError as error:
            return [Problem("error", error.code, error.sentence, hint=error.hint)]
        self._good_until = time.monotonic() + FRESH
        return []

    def _key(self, *parts: str) -> str:
        return "/".join((*filter(None, (self.store.prefix.strip("/"),)), *parts))

    def _put(self, sources: Mapping[str, Path], spans: list[Span]) -> str:
        """The digest of a part that the store has now."""
        ours = [(str(sources[name]), at, count) for name, at, count in spans]
        whole = hashlib.sha256()
        for block in read_spans(Path("/"), ours):
            whole.update(block)
        digest, total = whole.hexdigest(), sum(count for _, _, count in spans)
        key = self._key("objects", digest)
        known = self.bucket.head(key)
        # An old one is sent again, so that nobody removes it while the pod may ask for it.
        young = known and time.time() - written_at(known) < (self.store.keep - 8) * DAY
        if not young or (known or {}).get("Content-Length") != str(total):
            self.bucket.put(key, lambda: read_spans(Path("/"), ours), total, digest)
        return digest

    def _addresses(self, attempt: Attempt, parts: Sequence[tuple[str, list[Span]]]) -> Json:
        """What the agent has to know; it holds signatures, and goes nowhere but into the pod."""
        seen = replace(self.bucket, endpoint=self.store.pod_endpoint or self.store.endpoint)
        results = results_key(attempt)
        get, fetched = seen.presign(
            "GET", [self._key("objects", digest) for digest, _ in parts], LONGEST
        )
        put, slots = seen.presign(
            "PUT", [self._key(results, str(slot)) for slot in range(MOST_SLOTS)], LONGEST
        )
        return {
            "address": seen.address(self._key("")),
            "get": get,
            "put": put,
            "ca": Path(self.store.ca_file).read_text() if self.store.ca_file else None,
            "part": self.store.part_size,
            "results": results,
            "slots": slots,
            "parts": [
                {"digest": digest, "signature": signature, "spans": spans}
                for (digest, spans), signature in zip(parts, fetched, strict=True)
            ],
        }


class StoreReceiver(LogReceiver):
    """The log tells what happens; the results are fetched once it is over."""

    def __init__(
        self,
        transfer: S3Transfer,
        results: str,
        folder: Path,
        *,
        outputs_only: bool = False,
        digest: str = "",
    ) -> None:
        super().__init__(folder, outputs_only=outputs_only)
        self._transfer = transfer
        self._results = results
        self._digest = digest
        """Of the list of results, where it is known."""
        self._staging = folder / ".incoming"

    def _is_told(self, name: str) -> bool:
        return name in (NOTEBOOK, REPLICAS) and not self._outputs_only

    def _take_end(self, end: End) -> None:
        self.told_all = True

    def finish(self) -> None:
        bucket = self._transfer.bucket
        with explained(self._transfer.store):
            self._discard_damaged()
            try:
                told = bucket.read(self._key(0), LARGEST_OUTCOME)
                if told is None:
                    return  # The pod did not get that far; the cluster says why.
                if self._digest and hashlib.sha256(told).hexdigest() != self._digest:
                    raise Unusable("It is not what the pod has sent.")
                largest = self._transfer.store.part_size
                results = results_of(told, MOST_SLOTS, largest, self._is_wanted)
            except ValueError as error:
                self.trouble = f"What came back from the pod cannot be used: {error}"
                if not self._outputs_only:
                    self._keep(OUTCOME, dumps({"state": "failed", "reason": self.trouble}).encode())
                return
            self._need_room(sum(results.files.values()))
            tags = {part.slot: self._fetch(part) for part in results.parts}
        self._adopt(results, tags)
        self.missing, self.ended = results.missing, True
        self._take_home(results)

    def _fetch(self, part: ResultPart) -> str | None:
        """Its tag in the store; None when it lies here from an earlier try."""
        if self._has_part(part):
            return None
        get = functools.partial(self._transfer.bucket.get, self._key(part.slot))
        return fetch_part(get, self._staging, list(part.spans), part.digest).get("ETag")

    def _has_part(self, part: ResultPart) -> bool:
        whole = hashlib.sha256()
        try:
            for block in read_spans(self._staging, part.spans):
                whole.update(block)
        except OSError:
            return False
        return whole.hexdigest() == part.digest

    def _take_home(self, results: Results) -> None:
        """The outcome last, as a step leaves it."""
        for name in sorted(results.files, key=lambda name: name == OUTCOME):
            with contextlib.suppress(Unusable):
                if name in PARSED and not self._outputs_only:
                    self._keep(name, read_regular(self._staging / name))
                else:
                    self._move(name)
        shutil.rmtree(self._staging, ignore_errors=True)

    def _move(self, name: str) -> None:
        path = self.folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            (self._staging / name).replace(path)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            raise Unusable("One name is a file and a folder.") from None

    def _need_room(self, count: int) -> None:
        if shutil.disk_usage(self.folder.parent).free < count:
            raise ConvectError(
                f"There is no room for the results here: they need {size_text(count)}.",
                code="disk-full",
            )

    def _adopt(self, results: Results, tags: Mapping[int, str | None]) -> None:
        """Parts of large files become objects, so that the next step need not send them again."""
        with contextlib.suppress(*TROUBLE, ConvectError):
            for part in results.parts:
                tag = tags[part.slot]
                if tag and len(part.spans) == 1 and results.files[part.spans[0][0]] >= SMALL:
                    target = self._transfer._key("objects", part.digest)
                    self._transfer.bucket.copy(self._key(part.slot), target, tag)

    def _discard_damaged(self) -> None:
        """What the pod calls damaged is looked at, and removed if it is: it is sent again then."""
        for digest in re.findall(r"object ([0-9a-f]{64}) is damaged", "\n".join(self.other_lines)):
            key, whole = self._transfer._key("objects", digest), hashlib.sha256()
            with contextlib.suppress(StoreError), self._transfer.bucket.get(key) as response:
                while block := response.read(BLOCK):
                    whole.update(block)
                if whole.hexdigest() != digest:
                    self._transfer.bucket.delete(key)

    def _key(self, slot: int) -> str:
        return self._transfer._key(self._results, str(slot))


def results_key(attempt: Attempt) -> str:
    """Where the results of an attempt are, below the prefix."""
    step = hashlib.sha256(attempt.step.id.encode()).hexdigest()[:16]
    return f"attempts/{attempt.run}/{step}/{attempt.number}"


def written_at(headers: Mapping[str, str]) -> float:
    stamp = headers.get("Last-Modified")
    return parsedate_to_datetime(stamp).timestamp() if stamp else time.time()


def too_large(attempt: Attempt, count: int, most: int) -> Refused:
    return Refused(
        f"The files of “{attempt.step.name}” are too large for the object store: "
        f"{size_text(count)} of at most {size_text(most)}.",
        code="too-large",
        hint="Put them on a volume, and name it in `volumes` or in c.KubernetesRuntime.volumes.",
    )


@contextlib.contextmanager
def explained(store: ObjectStore) -> Iterator[None]:
    """What goes wrong with the store, as a sentence that names it."""
    try:
        yield
    except TROUBLE as error:
        raise explain(error, store) from error


def explain(error: Exception, store: ObjectStore) -> ConvectError:
    host = urlsplit(store.endpoint).netloc
    if isinstance(error, ssl.SSLError):
        return ConvectError(
            f"The certificate of the object store at {host} is not trusted: {_words(error)}.",
            code="object-store-tls",
            hint="Set c.ObjectStore.ca_file to the certificate of its authority.",
        )
    if not isinstance(error, StoreError):
        return ConvectError(
            f"The object store at {host} cannot be reached: {_words(error)}.",
            code="object-store-unreachable",
            hint="Check c.ObjectStore.endpoint.",
        )
    if error.code == "NoSuchBucket" or (error.status == 404 and not error.code):
        return Refused(
            f"The object store has no bucket {store.bucket}.",
            code="no-bucket",
            hint="Create it, or change c.ObjectStore.bucket.",
        )
    if error.code == "RequestTimeTooSkewed":
        return _clocks_differ(None)
    if error.code in REJECTED or "access key" in str(error).lower():
        return Refused(
            f"The object store does not accept the credentials: {_words(error)}.",
            code="object-store-credentials",
            hint="Check the access key and the secret key.",
        )
    if error.code in ("AuthorizationHeaderMalformed", "PermanentRedirect") or error.status == 301:
        return Refused(
            f"The bucket {store.bucket} is not in region {store.region}: {_words(error)}.",
            code="object-store-region",
            hint="Set c.ObjectStore.region.",
        )
    if error.status == 403:
        return Refused(
            f"The credentials do not allow the use of bucket {store.bucket}: {_words(error)}.",
            code="object-store-forbidden",
            hint="They need s3:ListBucket, s3:GetObject, s3:PutObject and s3:DeleteObject.",
        )
    return ConvectError(
        f"The object store rejected the request: {_words(error)}.", code="object-store"
    )


def _clocks_differ(seconds: float | None) -> Refused:
    sentence = "The clocks of this machine and of the object store differ."
    if seconds is not None:
        amount = duration_text(seconds)
        sentence = f"The clocks of this machine and of the object store differ by {amount}."
    return Refused(
        sentence,
        code="clock-skew",
        hint="It then refuses requests. Synchronize both clocks with a time server.",
    )


def _words(error: Exception) -> str:
    words = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(words).rstrip(".")
