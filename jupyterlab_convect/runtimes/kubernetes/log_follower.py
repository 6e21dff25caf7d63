"""Follows the log of one container and keeps what it says."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from ...background import Health
from ...safe_files import append_to, open_regular
from ...transfer.check_results import LARGEST_FILE
from .api import Api, ApiError, ClusterUnreachable, StreamThread, as_convect_error
from .secret_digests import SecretDigests

SILENCE = 600.0
PAUSE = 1.0
RECOGNISED = 200
NOT_WHOLE = b"\n[The beginning of the log was thrown away; lines may come twice.]\n"
TOO_LONG = b"\n[The log is too long; the rest was not kept.]\n"


class LogReader(Protocol):
    """One reading of a log, from its beginning."""

    told_all: bool
    """It has said all that there is."""
    other_lines: list[str]

    def take(self, data: bytes) -> None: ...
    def finish(self) -> None: ...


class LogFollower(StreamThread):
    """Reads until all is told, or until the container has ended.

    A connection may break and a disk may be full at any time: then it is read from the
    start again.
    """

    def __init__(
        self,
        api: Api,
        pod: str,
        container: str,
        begin: Callable[[], LogReader],
        is_over: Callable[[], bool],
        changed: Callable[[], None],
        health: Health,
    ) -> None:
        name = f"Reading the log of container {container} in pod {pod}"
        super().__init__(api, name, health)
        self.reader = begin()
        self.done = False
        self.trouble: str | None = None
        self.forbidden: str | None = None
        """Why it is over although nothing was read: nobody lets us."""
        self._path = f"{api.path('pods', pod)}/log"
        self._container = container
        self._begin = begin
        self._is_over = is_over
        self._changed = changed

    def _read(self) -> None:
        over = self._is_over()
        self.reader = self._begin()
        try:
            complete = self._read_once(follow=not over)
        except (ApiError, ClusterUnreachable) as error:
            if self._closing.is_set():
                return
            self.trouble = str(error) or type(error).__name__
            told = as_convect_error(error, "read logs", self._api.namespace)
            if over and isinstance(error, ApiError) and error.status == 403:
                self.forbidden = told.sentence
            elif not (isinstance(error, ApiError) and error.status == 404):
                raise told from error
            complete = over = True  # There is nothing to read any more.
        except Exception as error:
            if self._closing.is_set():
                return
            self.trouble = str(error) or type(error).__name__
            raise
        else:
            self.trouble = None
        if complete and (over or self.reader.told_all):
            self._finish()
        else:
            self._closing.wait(PAUSE)

    def _finish(self) -> None:
        """What did not come through the log may take its time, and be tried again."""
        try:
            self.reader.finish()
        except Exception as error:
            self.trouble = str(error) or type(error).__name__
            raise
        if getattr(self.reader, "ended", False):
            self.forbidden = None
        self._end()

    def _read_once(self, *, follow: bool) -> bool:
        """Whether it came to the end of what there is."""
        query = {"container": self._container, "follow": follow}
        with self._pieces(self._path, SILENCE, **query) as pieces:
            for piece in pieces:
                if self._closing.is_set():
                    return False
                self.reader.take(piece)
                if self.reader.told_all:
                    break  # A node may keep the stream open for a while.
        return True

    def _end(self) -> None:
        self.done = True
        self._closing.set()
        self._health.recovered(self._name)
        self._changed()


class PlainLog:
    """One reading of what a component prints, from its beginning: only what is new is added."""

    def __init__(self, path: Path, digests: SecretDigests | None = None) -> None:
        self.told_all = False
        self.other_lines: list[str] = []
        self._path = path
        self._digests = digests
        self._held = b""
        self._at = 0

    def take(self, data: bytes) -> None:
        if self._digests is not None:
            data, self._held = self._digests.hide(self._held + data, final=False)
        self._add(data)

    def finish(self) -> None:
        if self._digests is not None:
            self._add(self._digests.hide(self._held)[0])

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
