"""Runs in the pod when it shares no volume with us: unpacks, executes, and sends all back.

Whatever the runner writes is told on standard output, piece by piece and as it grows,
in lines that start with a mark. It is alone there: nothing of this package can be
imported. A component brings a command of its own; there it only comes before and after.

Usage: python3 carrier.py run INBOX LIMIT
       python3 carrier.py unpack INBOX
       python3 carrier.py home FOLDER LIMIT
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

MARK = "convect:1:"
ATTEMPT = Path("/convect/attempt")
PIECE = 32 * 1024
PAUSE = 0.2
NOTEBOOK_PAUSE = 2.0
GROWING = ("log.txt", "events.ndjson")
NOTEBOOK, OUTCOME = "executed.ipynb", "outputs.json"
ENVIRONMENT, MADE = "environment.json", "made.json"


class Sender:
    """Sends files, and never more than `limit` bytes in all: the node throws away what is more."""

    def __init__(self, folder: Path, limit: int, write: Callable[[str], None]) -> None:
        self.left = limit
        self._folder = folder
        self._write = write
        self._sent: dict[str, int] = {}
        self._generations: dict[str, int] = {}
        self._digests: dict[str, str] = {}

    def grow(self, name: str) -> None:
        """What is new at the end of a file that only grows."""
        try:
            with (self._folder / name).open("rb") as file:
                file.seek(self._sent.get(name, 0))
                while piece := file.read(PIECE):
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
            place = {"file": name, "at": number * PIECE, "generation": generation}
            self._say({**place, **last, "data": data})
        return True

    def end(self, code: int, missing: list[str] | None = None) -> None:
        self._say({"end": code, **({"missing": missing} if missing else {})})

    def _say(self, frame: dict[str, Any]) -> None:
        line = f"{MARK}{json.dumps(frame)}\n"
        self.left -= len(line)
        self._write(line)


def main(task: str, place: str, limit: str = "0") -> int:
    if task == "unpack":
        return unpack(Path(place))
    if task == "home":
        return send_outputs(Path(place), int(limit))
    return execute(Path(place), int(limit))


def unpack(inbox: Path) -> int:
    """The inputs of a component, and the places of its outputs, open to whatever user it has."""
    os.umask(0)
    root = Path("/convect")
    with tarfile.open(inbox / "bundle.tar.xz") as archive:
        archive.extractall(root)  # noqa: S202
    places = json.loads((root / "places.json").read_bytes())
    for name in ("/convect/inputs", "/convect/outputs", *places["folders"]):
        Path(name).mkdir(parents=True, exist_ok=True)
    for name in places["files"]:
        Path(name).touch()
    for folder, _, names in os.walk(root):
        with contextlib.suppress(PermissionError):  # the volume's own folder
            Path(folder).chmod(0o777)
        for name in names:
            Path(folder, name).chmod(0o666)
    return 0


def send_outputs(root: Path, limit: int) -> int:
    """What a component has left; what is too large is named."""
    sender = Sender(root, limit, _write_line)
    names = [
        os.path.relpath(Path(place, name), root)
        for place, _, found in os.walk(root / "outputs")
        for name in sorted(found)
    ]
    missing = [name for name in names if not sender.whole(name, most=sender.left - 2 * PIECE)]
    sender.end(0, missing)
    return 0


def execute(inbox: Path, limit: int) -> int:
    process: subprocess.Popen[bytes] | None = None
    asked: list[int] = []

    def pass_on(number: int, _: object) -> None:
        asked.append(number)
        if process is not None:
            process.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, pass_on)
    sender = Sender(ATTEMPT, limit, _write_line)
    with tarfile.open(inbox / "bundle.tar.xz") as archive:
        archive.extractall("/convect")  # noqa: S202
    Path("/convect/root").mkdir(exist_ok=True)
    # Whoever stops the pod without us leaves no reason: this is the one that is found then.
    (ATTEMPT / "stop.json").write_bytes((inbox / "stop.json").read_bytes())
    process = subprocess.Popen([sys.executable, str(inbox / "runner.pyz"), str(ATTEMPT)])
    if asked:
        process.send_signal(asked[0])
    _follow(process, sender, drafts=limit // 4)
    bring_home(ATTEMPT, sender)
    sender.end(process.returncode)
    return process.returncode


def _follow(process: subprocess.Popen[bytes], sender: Sender, drafts: int) -> None:
    """Tell what happens while it happens; unfinished notebooks may take `drafts` bytes."""
    seen, due = 0, 0.0
    while process.poll() is None:
        time.sleep(PAUSE)
        for name in GROWING:
            sender.grow(name)
        try:
            stamp = (ATTEMPT / NOTEBOOK).stat().st_mtime_ns
        except OSError:
            continue
        if stamp != seen and time.monotonic() >= due and drafts > 0:
            seen, before = stamp, sender.left
            sender.whole(NOTEBOOK, most=drafts)
            drafts -= before - sender.left
            due = time.monotonic() + NOTEBOOK_PAUSE


def bring_home(folder: Path, sender: Sender) -> None:
    """Send the rest; the outcome comes last, as it does in a folder."""
    for name in GROWING:
        sender.grow(name)
    files, made = (
        [
            os.path.relpath(Path(place, name), folder)
            for place, _, names in os.walk(folder / kind)
            for name in sorted(names)
        ]
        for kind in ("files", "made")
    )
    wanted = [name for name in (NOTEBOOK, *files) if (folder / name).exists()]
    missing = [name for name in wanted if not sender.whole(name, most=sender.left - 2 * PIECE)]
    if (folder / ENVIRONMENT).exists():
        sender.whole(ENVIRONMENT, most=sender.left - 2 * PIECE)
    # What nobody declared comes as far as there is room for it; the list says what there was.
    for name in ([MADE] if (folder / MADE).exists() else []) + made:
        sender.whole(name, most=sender.left - 2 * PIECE)
    if (folder / OUTCOME).exists():
        if missing:
            _note_missing(folder / OUTCOME, missing)
        sender.whole(OUTCOME)


def _note_missing(path: Path, missing: list[str]) -> None:
    """A step whose results stayed behind did not succeed."""
    outcome = json.loads(path.read_bytes())
    facts = outcome.get("files") or []
    outcome["files"] = [fact for fact in facts if f"files/{fact['path']}" not in missing]
    if outcome.get("state") == "succeeded":
        names = ", ".join(name.replace("files/", "", 1) for name in missing[:3])
        more = " and more" if len(missing) > 3 else ""
        outcome["state"], outcome["exit_code"] = "failed", 1
        outcome["reason"] = (
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
