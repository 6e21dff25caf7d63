"""Runs in the pod when it shares no volume with us: brings files there, executes, sends results.

The inbox says how. With `bundle.tar.xz` the files are in it, and results are told on
standard output, in lines that start with a mark. With `objects.json` the files are objects
of a store, and results become objects; what the step says meanwhile is told on standard
output all the same. It is alone there: nothing of this package can be imported. A
component brings a command of its own; there it only comes before and after.

Usage: python3 agent.py run INBOX LIMIT
       python3 agent.py unpack INBOX
       python3 agent.py send INBOX LIMIT
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import http.client
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import tarfile
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
Span = tuple[str, int, int]
"""Bytes of a file: its path below some folder, where they begin, how many they are."""

MARK = "convect:1:"
ROOT = Path("/convect")
ATTEMPT = ROOT / "attempt"
BUNDLE, OBJECTS = "bundle.tar.xz", "objects.json"
PIECE = 32 * 1024
PAUSE = 0.2
DRAFT_PAUSE = 2.0
GROWING = ("log.txt", "events.ndjson")
NOTEBOOK, OUTCOME = "executed.ipynb", "outputs.json"
ENVIRONMENT, MADE = "environment.json", "made.json"
REPLICAS = "replicas.json"

BLOCK = 1 << 20
"""Bytes of a file that are in memory at a time."""
SMALL, PACK = 1 << 20, 16 << 20
"""Files below the one share an object of up to the other; larger ones have their own."""
CONNECT, TIMEOUT = 5.0, 60.0
"""Seconds for a connection, which is cheap to try again, and for an answer."""
PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds before a request that failed on its way is sent again."""
MOST_ERROR = 100_000


class StoreError(Exception):
    """An object store refused; `code` is its word for it, such as `AccessDenied`."""

    def __init__(
        self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message or code or f"HTTP {status}")
        self.status = status
        self.code = code
        self.headers = headers or {}


class Broken(OSError):
    """What came over the network is not what was sent."""


class Sender:
    """Tells files, and never more than `limit` bytes in all: the node throws away what is more."""

    def __init__(self, folder: Path, limit: int, write: Callable[[str], None]) -> None:
        self.left = limit
        self._folder = folder
        self._write = write
        self._sent: dict[str, int] = {}
        self._generations: dict[str, int] = {}
        self._digests: dict[str, str] = {}

    def grow(self, name: str, least: int | None = None) -> None:
        """What is new at the end of a file that only grows, while `least` bytes are left."""
        try:
            with (self._folder / name).open("rb") as file:
                file.seek(self._sent.get(name, 0))
                while (least is None or self.left > least) and (piece := file.read(PIECE)):
                    offset = self._sent.get(name, 0)
                    self._say({"file": name, "at": offset, "data": _packed(piece)})
                    self._sent[name] = offset + len(piece)
        except FileNotFoundError:
            return

    def whole(self, name: str, most: int | None = None) -> bool:
        """A file that is replaced as a whole. False when there is no room for it."""
        content = (self._folder / name).read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        if self._digests.get(name) == digest:
            return True
        pieces = [content[at : at + PIECE] for at in range(0, len(content), PIECE)] or [b""]
        packed = [_packed(piece) for piece in pieces]
        room = self.left if most is None else most
        if sum(map(len, packed)) + 200 * len(packed) > room:
            return False
        self._digests[name] = digest
        generation = self._generations[name] = self._generations.get(name, 0) + 1
        for number, data in enumerate(packed):
            last = {"digest": digest} if number == len(packed) - 1 else {}
            where = {"file": name, "at": number * PIECE, "generation": generation}
            self._say({**where, **last, "data": data})
        return True

    def end(self, code: int, missing: list[str] | None = None) -> None:
        self._say({"end": code, **({"missing": missing} if missing else {})})

    def _say(self, frame: dict[str, Any]) -> None:
        line = f"{MARK}{json.dumps(frame)}\n"
        self.left -= len(line)
        self._write(line)


class Objects:
    """The store as the pod sees it: addresses that are good for this attempt alone."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.digest = ""
        """Of the list of all that was sent."""
        self._told = told
        self._context = ssl.create_default_context(cadata=told["ca"]) if told.get("ca") else None

    def fetch(self, folder: Path) -> None:
        """Every file, checked by its digest."""
        with self._or_say_why():
            for part in self._told["parts"]:
                url = self._address(f"objects/{part['digest']}", "get", part["signature"])
                get = functools.partial(send, "GET", url, context=self._context)
                fetch_part(get, folder, [tuple(span) for span in part["spans"]], part["digest"])

    def send(
        self, folder: Path, wanted: list[str], others: list[str], last: str | None = None
    ) -> list[str]:
        """Send files, with `last` among them once it is known which of `wanted` are too large.

        The list of all comes last: without it nothing counts as sent.
        """
        slots, largest = self._most() - 2, self._told["part"]
        sizes = [(name, (folder / name).stat().st_size) for name in (*wanted, *others)]
        kept = fitting(sizes, largest, slots)
        missing = [name for name in wanted if name not in kept]
        if last is not None:
            if missing:
                _note_missing(folder / last, missing)
            kept.append(last)
        files = [(name, (folder / name).stat().st_size) for name in kept]
        with self._or_say_why():
            sent = []
            for slot, spans in enumerate(parts_of(files, largest), 1):
                digest = self._send(slot, lambda spans=spans: read_spans(folder, spans))  # type: ignore[misc]
                sent.append({"slot": slot, "digest": digest, "spans": spans})
            content = json.dumps({"parts": sent, "missing": missing}).encode()
            self.digest = self._send(0, lambda: [content])
        return missing

    def _most(self) -> int:
        return len(self._told["slots"])

    def _send(self, slot: int, body: Callable[[], Iterable[bytes]]) -> str:
        whole, check, size = hashlib.sha256(), hashlib.md5(usedforsecurity=False), 0
        for block in body():
            whole.update(block)
            check.update(block)
            size += len(block)
        url = self._address(f"{self._told['results']}/{slot}", "put", self._told["slots"][slot])
        sum_ = base64.b64encode(check.digest()).decode()
        headers = {"Content-Length": str(size), "Content-MD5": sum_}
        again(lambda: send("PUT", url, headers, body(), self._context).close())
        return whole.hexdigest()

    def _address(self, key: str, method: str, signature: str) -> str:
        told = self._told
        return f"{told['address']}{key}?{told[method]}&X-Amz-Signature={signature}"

    @contextlib.contextmanager
    def _or_say_why(self) -> Iterator[None]:
        """The last line of a log is what people are shown of a pod that failed."""
        try:
            yield
        except (StoreError, OSError, http.client.HTTPException) as error:
            host = self._told["address"].split("/")[2]
            raise SystemExit(f"The pod cannot use the object store at {host}: {error}") from None


class FormObjects(Objects):
    """The store for results alone, where nobody knows before who will leave some.

    What is signed is a form, which sends objects below one prefix; whoever sends takes a name.
    """

    def __init__(self, told: Mapping[str, Any]) -> None:
        super().__init__(told)
        self.name = os.urandom(16).hex()

    def _most(self) -> int:
        return int(self._told["most"])

    def _send(self, slot: int, body: Callable[[], Iterable[bytes]]) -> str:
        whole, size = hashlib.sha256(), 0
        for block in body():
            whole.update(block)
            size += len(block)
        edge = os.urandom(16).hex()
        part = f'--{edge}\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s'
        key = f"{self._told['results']}/{self.name}/{slot}"
        fields = {**self._told["fields"], "key": key}
        words = [part % (name, "", f"{value}\r\n") for name, value in fields.items()]
        head = "".join([*words, part % ("file", '; filename="part"', "")]).encode()
        tail = f"\r\n--{edge}--\r\n".encode()
        headers = {
            "Content-Type": f"multipart/form-data; boundary={edge}",
            "Content-Length": str(len(head) + size + len(tail)),
        }

        def form() -> Iterator[bytes]:
            yield head
            yield from body()
            yield tail

        url = self._told["address"]
        again(lambda: send("POST", url, headers, form(), self._context).close())
        return whole.hexdigest()


def main(task: str, inbox: str, limit: str = "0") -> int:
    if task == "unpack":
        return unpack(Path(inbox))
    if task == "send":
        return send_outputs(Path(inbox), int(limit))
    return execute(Path(inbox), int(limit))


def bring_files(inbox: Path) -> Objects | None:
    """What was put for this attempt, below the root; the store, where there is one."""
    if (inbox / OBJECTS).exists():
        objects = Objects(json.loads((inbox / OBJECTS).read_bytes()))
        objects.fetch(ROOT)
        return objects
    with tarfile.open(inbox / BUNDLE) as archive:
        archive.extractall(ROOT)  # noqa: S202
    return None


def unpack(inbox: Path) -> int:
    """The inputs of a component, and the places of its outputs, open to whatever user it has."""
    os.umask(0)
    bring_files(inbox)
    places = json.loads((ROOT / "places.json").read_bytes())
    for name in ("/convect/inputs", "/convect/outputs", *places["folders"]):
        Path(name).mkdir(parents=True, exist_ok=True)
    for name in places["files"]:
        Path(name).touch()
    for folder, _, names in os.walk(ROOT):
        with contextlib.suppress(PermissionError):  # the volume's own folder
            Path(folder).chmod(0o777)
        for name in names:
            Path(folder, name).chmod(0o666)
    return 0


def send_outputs(inbox: Path, limit: int) -> int:
    """What a component has left; what is too large is named."""
    sender = Sender(ROOT, limit, _write_line)
    names = files_in(ROOT, "outputs")
    if (inbox / OBJECTS).exists():
        missing = Objects(json.loads((inbox / OBJECTS).read_bytes())).send(ROOT, names, [])
    else:
        missing = [name for name in names if not sender.whole(name, most=sender.left - 2 * PIECE)]
    sender.end(0, missing)
    return 0


def execute(inbox: Path, limit: int) -> int:
    process: subprocess.Popen[bytes] | None = None
    signals: list[int] = []

    def pass_on(number: int, _: object) -> None:
        signals.append(number)
        if process is not None:
            process.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, pass_on)
    sender = Sender(ATTEMPT, limit, _write_line)
    objects = bring_files(inbox)
    (ROOT / "root").mkdir(exist_ok=True)
    # Whoever stops the pod without us leaves no reason: this is the one that is found then.
    (ATTEMPT / "stop.json").write_bytes((inbox / "stop.json").read_bytes())
    process = subprocess.Popen([sys.executable, str(inbox / "runner.pyz"), str(ATTEMPT)])
    if signals:
        process.send_signal(signals[0])
    _follow(process, sender, drafts=limit // 4, least=None if objects is None else limit // 2)
    # Of several nodes one keeps files; what the others leave fits into the log.
    is_other = os.environ.get("CONVECT_NODE") != os.environ.get("CONVECT_OUTPUTS_NODE")
    if objects is None or is_other:
        send_results(ATTEMPT, sender)
    else:
        store_results(ATTEMPT, objects)
    sender.end(process.returncode)
    return process.returncode


def _follow(
    process: subprocess.Popen[bytes], sender: Sender, drafts: int, least: int | None
) -> None:
    """Tell what happens while it happens; what is replaced again and again may take `drafts` bytes.

    That is the unfinished notebook, or the states of the replicas of a distributed step.
    """
    seen, due = 0, 0.0
    while process.poll() is None:
        time.sleep(PAUSE)
        for name in GROWING:
            sender.grow(name, least)
        draft = next((name for name in (NOTEBOOK, REPLICAS) if (ATTEMPT / name).exists()), None)
        if draft is None:
            continue
        stamp = (ATTEMPT / draft).stat().st_mtime_ns
        if stamp != seen and time.monotonic() >= due and drafts > 0:
            seen, before = stamp, sender.left
            sender.whole(draft, most=drafts)
            drafts -= before - sender.left
            due = time.monotonic() + DRAFT_PAUSE


def results_in(folder: Path) -> tuple[list[str], list[str]]:
    """What has to come back, and what comes as far as there is room; the outcome apart."""
    wanted = [name for name in (NOTEBOOK, *files_in(folder, "files")) if (folder / name).exists()]
    others = [name for name in (ENVIRONMENT, MADE) if (folder / name).exists()]
    return wanted, [*others, *files_in(folder, "made")]


def send_results(folder: Path, sender: Sender, why: str = "") -> None:
    """Tell the rest; the outcome comes last, as it does in a folder.

    `why` there is no other way for what is too large.
    """
    for name in GROWING:
        sender.grow(name)
    wanted, others = results_in(folder)
    missing = [name for name in wanted if not sender.whole(name, most=sender.left - 2 * PIECE)]
    # What nobody declared comes as far as there is room for it; the list says what there was.
    for name in others:
        sender.whole(name, most=sender.left - 2 * PIECE)
    if (folder / OUTCOME).exists():
        if missing:
            _note_missing(folder / OUTCOME, missing, why)
        sender.whole(OUTCOME)


def store_results(folder: Path, objects: Objects) -> None:
    wanted, others = results_in(folder)
    grown = [name for name in GROWING if (folder / name).exists()]
    outcome = OUTCOME if (folder / OUTCOME).exists() else None
    objects.send(folder, [*grown, *wanted], others, outcome)


def files_in(folder: Path, inside: str) -> list[str]:
    """The regular files below, by their path from the folder."""
    return [
        os.path.relpath(Path(parent, name), folder)
        for parent, _, names in os.walk(folder / inside)
        for name in sorted(names)
        if not Path(parent, name).is_symlink() and Path(parent, name).is_file()
    ]


def parts_of(files: Iterable[tuple[str, int]], largest: int) -> list[list[Span]]:
    """How files of these sizes become objects: small ones together, large ones in parts."""
    parts: list[list[Span]] = []
    pack: list[Span] = []
    filled = 0
    for name, size in files:
        if size >= SMALL:
            cuts = range(0, size, largest)
            parts += [[(name, at, min(largest, size - at))] for at in cuts]
            continue
        if pack and filled + size > min(PACK, largest):
            parts.append(pack)
            pack, filled = [], 0
        pack.append((name, 0, size))
        filled += size
    return [*parts, pack] if pack else parts


def fitting(files: Iterable[tuple[str, int]], largest: int, slots: int) -> list[str]:
    """Of the files, in their order, those that so many objects can hold."""
    kept: list[tuple[str, int]] = []
    used = small = 0
    for name, size in files:
        more = -(-size // largest) if size >= SMALL else 0
        packed = small + (size if size < SMALL else 0)
        # Packs are rarely full to the last byte: half of each counts.
        if used + more + -(-2 * packed // PACK) <= slots:
            used, small = used + more, packed
            kept.append((name, size))
    return [name for name, _ in kept]


def read_spans(folder: Path, spans: Iterable[Span]) -> Iterator[bytes]:
    for name, at, size in spans:
        with (folder / name).open("rb") as file:
            file.seek(at)
            while size:
                block = file.read(min(BLOCK, size))
                if not block:
                    raise Broken(f"{name} became shorter while it was read")
                size -= len(block)
                yield block


def write_spans(folder: Path, spans: Iterable[Span], blocks: Iterable[bytes]) -> None:
    """Distribute what comes over the files that it belongs to. Broken when it is too short."""
    coming, block = iter(blocks), memoryview(b"")
    for name, at, size in spans:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("r+b" if path.exists() else "w+b") as file:
            file.seek(at)
            while size:
                if not block:
                    more: bytes = next(coming, b"")
                    block = memoryview(more)
                if not block:
                    raise Broken("an object is shorter than it should be")
                written = file.write(block[:size])
                size, block = size - written, block[written:]
    rest: bytes = next(coming, b"")
    if block or rest:
        raise Broken("an object is longer than it should be")


def fetch_part(
    get: Callable[[], Any],
    folder: Path,
    spans: list[Span],
    digest: str,
    pauses: Iterable[float] | None = None,
) -> Mapping[str, str]:
    """Write an object to where it belongs, checked by its digest; the headers it came with."""

    def attempt() -> Mapping[str, str]:
        whole = hashlib.sha256()

        def blocks() -> Iterator[bytes]:
            while block := response.read(BLOCK):
                whole.update(block)
                yield block

        with get() as response:
            write_spans(folder, spans, blocks())
            headers: Mapping[str, str] = dict(response.headers)
        if whole.hexdigest() != digest:
            raise Broken(f"the object {digest} is damaged")
        return headers

    return again(attempt, pauses)


def send(
    method: str,
    url: str,
    headers: Mapping[str, str] | None = None,
    body: Iterable[bytes] | None = None,
    context: ssl.SSLContext | None = None,
    timeout: float = TIMEOUT,
) -> Any:
    """The answer of an object store, still to be read. StoreError when it refuses."""
    if not url.startswith(("http://", "https://")):
        raise ValueError("An object store has an address with http or https.")
    given = {"Content-Type": "application/octet-stream", **(headers or {})}
    request = urllib.request.Request(url, body, given, method=method)  # noqa: S310
    opener = urllib.request.build_opener(_Http(), _Https(context=context), _NoRedirect())
    try:
        return opener.open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        with error:
            text = error.read(MOST_ERROR).decode(errors="replace")
        told = _inside("Code", text), _inside("Message", text)
        raise StoreError(error.code, *told, dict(error.headers)) from None
    except urllib.error.URLError as error:
        raise error.reason if isinstance(error.reason, OSError) else error from None


class _PatientConnection(http.client.HTTPConnection):
    """It waits less for the other end than for its answers."""

    timeout: float

    def connect(self) -> None:
        patience = self.timeout
        self.timeout = min(patience, CONNECT)
        super().connect()
        self.sock.settimeout(patience)


class _SecureConnection(_PatientConnection, http.client.HTTPSConnection):
    pass


class _Http(urllib.request.HTTPHandler):
    def http_open(self, request: Any) -> Any:
        return self.do_open(_PatientConnection, request)


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, request: Any) -> Any:
        return self.do_open(_SecureConnection, request, context=self._context)  # type: ignore[attr-defined]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def again(work: Callable[[], T], pauses: Iterable[float] | None = None) -> T:
    """Do it until it succeeds, as long as it may: what was refused for good is not tried again."""
    for pause in PAUSES if pauses is None else pauses:
        try:
            return work()
        except StoreError as error:
            if error.status < 500 and error.status not in (408, 429):
                raise
        except ssl.SSLCertVerificationError:
            raise
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(pause)
    return work()


def _inside(tag: str, text: str) -> str:
    found = re.search(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
    return found[1].strip() if found else ""


def _note_missing(path: Path, missing: list[str], why: str = "") -> None:
    """A step whose results stayed behind did not succeed."""
    outcome = json.loads(path.read_bytes())
    facts = outcome.get("files") or []
    outcome["files"] = [fact for fact in facts if f"files/{fact['path']}" not in missing]
    if outcome.get("state") == "succeeded":
        names = ", ".join(name.replace("files/", "", 1) for name in missing[:3])
        more = " and more" if len(missing) > 3 else ""
        outcome["state"], outcome["exit_code"] = "failed", 1
        outcome["reason"] = why or (
            f"The results are too large to be copied back without a shared volume: {names}{more}."
        )
    path.write_text(json.dumps(outcome), encoding="utf-8")


def _packed(piece: bytes) -> str:
    return base64.b64encode(zlib.compress(piece, 6)).decode()


def _write_line(line: str) -> None:
    sys.stdout.write(line)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
