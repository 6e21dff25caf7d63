"""Takes what a carrier tells in its log and builds the attempt's folder from it.

Every piece says where it belongs, so that a log may be read twice, or from the start
again by another process.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from pathlib import Path

from ...json_text import dumps
from ...pipeline.plan import Json
from ...run_files import append_to, open_regular, read_regular
from ...runner import environment
from ...runner.saving import write_whole
from .carrier import GROWING, MARK
from .fingerprints import Fingerprints
from .received import (
    LARGEST_FILE,
    LONGEST_LINE,
    MOST_FILES,
    End,
    Piece,
    Unusable,
    frame_of,
    made_of,
    object_of,
    outcome_of,
)

WHOLE = ("executed.ipynb", "outputs.json", "made.json", environment.FILE)
RECOGNISED = 200
NOT_WHOLE = b"\n[The beginning of the log was thrown away; lines may come twice.]\n"
TOO_LONG = b"\n[The log is too long; the rest was not kept.]\n"
UNCERTAIN, LONGEST_NOISE = 20, 1000
"""Lines of others that are kept: what Python says when it cannot even start the carrier."""


class PlainLog:
    """One reading of what a component prints, from its beginning: only what is new is added."""

    def __init__(self, path: Path, marks: Fingerprints | None = None) -> None:
        self.ended = False
        self.noise: list[str] = []
        self._path = path
        self._marks = marks
        self._held = b""
        self._at = 0

    def take(self, data: bytes) -> None:
        if self._marks is not None:
            data, self._held = self._marks.hide(self._held + data, final=False)
        self._add(data)

    def finish(self) -> None:
        if self._marks is not None:
            self._add(self._marks.hide(self._held)[0])

    def _add(self, data: bytes) -> None:
        have = self._path.stat().st_size if self._path.exists() else 0
        if have and data and not self._at and not self._goes_on(data):
            # The node threw the beginning away: better some lines twice than some lost.
            data, self._at = NOT_WHOLE + data, have
        new, self._at = data[max(have - self._at, 0) :], self._at + len(data)
        room = LARGEST_FILE - have
        if new and room > 0:
            with os.fdopen(append_to(self._path), "ab") as file:
                file.write(new if len(new) <= room else new[:room] + TOO_LONG)

    def _goes_on(self, data: bytes) -> bool:
        """Whether this is the beginning that was read before."""
        with open_regular(self._path) as file:
            head = file.read(RECOGNISED)
        return data.startswith(head) or head.startswith(data[:RECOGNISED])


class Homecoming:
    """One reading of one attempt's log, from its beginning.

    `outputs_only`: what comes are the outputs of a component, for its working folder.
    """

    def __init__(self, folder: Path, *, outputs_only: bool = False) -> None:
        self.folder = folder
        self.ended = False
        """All has arrived."""
        self.missing: tuple[str, ...] = ()
        """Files that were too large."""
        self.noise: list[str] = []
        self._outputs_only = outputs_only
        self._draft: tuple[str, int] | None = None
        """The file and generation whose pieces are coming; one after another, never mixed."""
        self._content = bytearray()
        self._files: set[str] = set()
        self._rest = b""

    def take(self, data: bytes) -> None:
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[: LONGEST_LINE + 1]
        for line in filter(None, lines):
            self._take_line(line)

    def finish(self) -> None:
        """A line that was not finished is none."""

    def _take_line(self, line: bytes) -> None:
        if not line.startswith(MARK.encode()):
            text = line[:LONGEST_NOISE].decode(errors="replace")
            self.noise = [*self.noise[1 - UNCERTAIN :], text]
            return
        # The step itself may print our mark; it does not get far with it.
        with contextlib.suppress(Unusable):
            frame = frame_of(line)
            if isinstance(frame, End):
                self.missing, self.ended = frame.missing, True
            elif frame.file in GROWING and not self._outputs_only:
                self._grow(frame)
            elif self._is_wanted(frame.file):
                self._collect(frame)

    def _is_wanted(self, name: str) -> bool:
        if self._outputs_only:
            return name.startswith("outputs/")
        return name in WHOLE or name.startswith(("files/", "made/"))

    def _grow(self, piece: Piece) -> None:
        path = self.folder / piece.file
        have = path.stat().st_size if path.exists() else 0
        at, data = piece.at, piece.data
        if at > have:  # The beginning of the log was thrown away: keep the places right.
            data, at = b"\n" * (at - have) + data, have
        if have < at + len(data) <= LARGEST_FILE:
            with os.fdopen(append_to(path), "ab") as file:
                file.write(data[have - at :])

    def _collect(self, piece: Piece) -> None:
        key = (piece.file, piece.generation)
        if self._draft != key:
            self._draft, self._content = key, bytearray()
        if len(self._content) == piece.at:
            self._content += piece.data
        if piece.digest is None:
            return
        content, self._draft = bytes(self._content), None
        self._files.add(piece.file)
        if hashlib.sha256(content).hexdigest() == piece.digest and len(self._files) <= MOST_FILES:
            self._keep(piece.file, content)

    def _keep(self, name: str, content: bytes) -> None:
        path = self.folder / name
        if name == "outputs.json":
            content = self._with_files(content)
        elif name == "made.json":
            content = dumps({"files": made_of(content)}).encode()
        elif name == environment.FILE:
            object_of(content)
            try:
                content = environment.settle(self.folder, content)
            except (AttributeError, KeyError, TypeError, ValueError):
                raise Unusable("It is no record of an environment.") from None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, content)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            raise Unusable("One name is a file and a folder.") from None

    def _with_files(self, content: bytes) -> bytes:
        """What the outcome lists has to be there, and also goes where a step leaves it."""
        try:
            outcome = outcome_of(content)
        except Unusable as error:
            reason = f"What came back from the pod cannot be used: {error}"
            outcome = {"state": "failed", "reason": reason}
        facts = outcome.get("files") or []
        missing = [fact["path"] for fact in facts if not self._has(fact)]
        if missing:
            outcome["files"] = [fact for fact in facts if fact["path"] not in missing]
            if outcome["state"] == "succeeded":
                outcome["state"] = "failed"
                outcome["reason"] = f"{missing[0]} was not copied back: the log was cut."
        spec = json.loads(read_regular(self.folder / "step.json"))
        home = Path(spec["folder"])
        if home != self.folder / "work" and not spec.get("view"):
            for fact in outcome["files"] if facts else ():
                self._put_beside_the_source(fact["path"], home)
        return dumps(outcome).encode()

    def _put_beside_the_source(self, name: str, home: Path) -> None:
        target = home / name
        with contextlib.suppress(OSError):
            if target.resolve().is_relative_to(home.resolve()):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.folder / "files" / name, target)

    def _has(self, fact: Json) -> bool:
        path = self.folder / "files" / fact["path"]
        return path.is_file() and bool(path.stat().st_size == fact["size"])
