"""Takes what a carrier tells in its log and builds the attempt's folder from it.

Every piece says where it belongs, so that a log may be read twice, or from the start
again by another process.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import shutil
import zlib
from pathlib import Path

from ...pipeline.plan import Json
from ...runner import environment
from ...runner.saving import write_whole
from .carrier import GROWING, MARK
from .fingerprints import Fingerprints

WHOLE = ("executed.ipynb", "outputs.json", environment.FILE)
RECOGNISED = 200
NOT_WHOLE = b"\n[The beginning of the log was thrown away; lines may come twice.]\n"
UNCERTAIN = 20
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
        if new:
            with self._path.open("ab") as file:
                file.write(new)

    def _goes_on(self, data: bytes) -> bool:
        """Whether this is the beginning that was read before."""
        with self._path.open("rb") as file:
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
        self.missing: list[str] = []
        """Files that were too large."""
        self.noise: list[str] = []
        self._outputs_only = outputs_only
        self._drafts: dict[tuple[str, int], bytearray] = {}
        self._rest = b""

    def take(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in filter(None, lines):
            self._take_line(line)

    def finish(self) -> None:
        """A line that was not finished is none."""

    def _take_line(self, line: bytes) -> None:
        text = line.decode(errors="replace")
        if not text.startswith(MARK):
            self.noise = [*self.noise[1 - UNCERTAIN :], text]
            return
        # The step itself may print our mark; it does not get far with it.
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, zlib.error):
            self._take(json.loads(text[len(MARK) :]))

    def _take(self, frame: Json) -> None:
        if "end" in frame:
            int(frame["end"])
            self.missing = [str(name) for name in frame.get("missing") or ()]
            self.ended = True
            return
        data, name = zlib.decompress(base64.b64decode(frame["data"])), frame.get("file")
        if self._outputs_only:
            if _is_below(name, "outputs"):
                self._draft(frame, data)
        elif name in GROWING:
            self._grow(name, int(frame["at"]), data)
        elif name in WHOLE or _is_below(name, "files"):
            self._draft(frame, data)

    def _grow(self, name: str, at: int, data: bytes) -> None:
        path = self.folder / name
        have = path.stat().st_size if path.exists() else 0
        if at > have:  # The beginning of the log was thrown away: keep the places right.
            data, at = b"\n" * (at - have) + data, have
        if at + len(data) > have:
            with path.open("ab") as file:
                file.write(data[have - at :])

    def _draft(self, frame: Json, data: bytes) -> None:
        key = (frame["file"], int(frame["generation"]))
        draft = self._drafts.setdefault(key, bytearray())
        if len(draft) == frame["at"]:
            draft += data
        if "digest" not in frame:
            return
        content = bytes(self._drafts.pop(key))
        if hashlib.sha256(content).hexdigest() != frame["digest"]:
            return
        path = self.folder / frame["file"]
        path.parent.mkdir(parents=True, exist_ok=True)
        if frame["file"] == "outputs.json":
            content = self._with_files(content)
        elif frame["file"] == environment.FILE:
            content = environment.settle(self.folder, content)
        write_whole(path, content)

    def _with_files(self, content: bytes) -> bytes:
        """What the outcome lists has to be there, and also goes where a step leaves it."""
        outcome = json.loads(content)
        facts = outcome.get("files") or []
        missing = [fact["path"] for fact in facts if not self._has(fact)]
        if missing:
            outcome["files"] = [fact for fact in facts if fact["path"] not in missing]
            if outcome["state"] == "succeeded":
                outcome["state"] = "failed"
                outcome["reason"] = f"{missing[0]} was lost on its way home: the log was cut."
        spec = json.loads((self.folder / "step.json").read_bytes())
        home = Path(spec["folder"])
        if home != self.folder / "work":
            for fact in outcome["files"] if facts else ():
                target = home / fact["path"]
                with contextlib.suppress(OSError):
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(self.folder / "files" / fact["path"], target)
        return json.dumps(outcome, ensure_ascii=False).encode()

    def _has(self, fact: Json) -> bool:
        path = self.folder / "files" / fact["path"]
        return path.is_file() and bool(path.stat().st_size == fact["size"])


def _is_below(name: Json, folder: str) -> bool:
    """Only what belongs there, and nothing outside of the folder."""
    if not isinstance(name, str) or not name.startswith(f"{folder}/") or "\0" in name:
        return False
    return ".." not in name.split("/") and not name.startswith(f"{folder}//")
