"""Takes what the agent tells in its log and builds the attempt's folder from it.

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

from ..json_text import dumps
from ..pipeline.plan import Json
from ..runner import environment
from ..runner.step import REPLICA_STATES
from ..safe_files import append_to, read_regular, write_whole
from .agent import GROWING, MARK
from .check_results import (
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

PARSED = ("outputs.json", "made.json", REPLICA_STATES, environment.FILE)
WHOLE = ("executed.ipynb", *PARSED)
MOST_OTHER_LINES, LONGEST_OTHER_LINE = 20, 1000
"""Lines of others that are kept: what Python says when it cannot even start the agent."""


class LogReceiver:
    """One reading of one attempt's log, from its beginning.

    `outputs_only`: what comes are the outputs of a component, for its working folder.
    """

    def __init__(self, folder: Path, *, outputs_only: bool = False) -> None:
        self.folder = folder
        self.told_all = False
        """The pod has said all that it had to say."""
        self.ended = False
        """All has arrived."""
        self.trouble: str | None = None
        """Why what came back cannot be used."""
        self.missing: tuple[str, ...] = ()
        """Files that were too large."""
        self.other_lines: list[str] = []
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
            text = line[:LONGEST_OTHER_LINE].decode(errors="replace")
            self.other_lines = [*self.other_lines[1 - MOST_OTHER_LINES :], text]
            return
        # The step itself may print our mark; it does not get far with it.
        with contextlib.suppress(Unusable):
            frame = frame_of(line)
            if isinstance(frame, End):
                self._take_end(frame)
            elif frame.file in GROWING and not self._outputs_only:
                self._grow(frame)
            elif self._is_told(frame.file):
                self._collect(frame)

    def _take_end(self, end: End) -> None:
        self.missing, self.told_all, self.ended = end.missing, True, True

    def _is_told(self, name: str) -> bool:
        """Whether the file comes through the log."""
        return self._is_wanted(name)

    def _is_wanted(self, name: str) -> bool:
        if self._outputs_only:
            return name.startswith("outputs/")
        return name in WHOLE or name in GROWING or name.startswith(("files/", "made/"))

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
        elif name == REPLICA_STATES:
            object_of(content)
        elif name == environment.FILE:
            object_of(content)
            try:
                content = environment.settle(self.folder, content)
            except (AttributeError, KeyError, TypeError, ValueError):
                raise Unusable("It is not a record of an environment.") from None
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
                outcome["reason"] = f"{missing[0]} was not copied back: the log was truncated."
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
