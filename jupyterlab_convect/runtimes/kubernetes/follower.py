"""Follows the log of one container and keeps what it says."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any, Protocol

from ...background import Health, forever_in_thread
from .api import Api, ApiError, Unreachable, as_convect_error, read_pieces

SILENCE = 600.0
PAUSE = 1.0


class Reading(Protocol):
    """One reading of a log, from its beginning."""

    ended: bool
    """It has said all that there is."""
    noise: list[str]

    def take(self, data: bytes) -> None: ...
    def finish(self) -> None: ...


class Follower:
    """Reads until all is told, or until the container has ended.

    A connection may break and a disk may be full at any time: then it is read from the
    start again.
    """

    def __init__(
        self,
        api: Api,
        pod: str,
        container: str,
        begin: Callable[[], Reading],
        is_over: Callable[[], bool],
        changed: Callable[[], None],
        health: Health,
    ) -> None:
        self.reading = begin()
        self.done = False
        self.trouble: str | None = None
        self.forbidden: str | None = None
        """Why it is over although nothing was read: nobody lets us."""
        self._api = api
        self._path = f"{api.place('pods', pod)}/log"
        self._container = container
        self._begin = begin
        self._is_over = is_over
        self._changed = changed
        self._health = health
        self._name = f"Reading the log of container {container} in pod {pod}"
        self._closing = threading.Event()
        self._response: Any = None

    def start(self) -> None:
        forever_in_thread(self._name, self._read, self._health, self._closing)

    def close(self) -> None:
        self._closing.set()
        response = self._response
        if response is not None:
            with contextlib.suppress(Exception):
                response.shutdown()
        self._health.recovered(self._name)

    def _read(self) -> None:
        over = self._is_over()
        self.reading = self._begin()
        try:
            complete = self._read_once(follow=not over)
        except Exception as error:
            if self._closing.is_set():
                return
            self.trouble = str(error) or type(error).__name__
            if isinstance(error, ApiError) and error.status == 404:
                self._end()  # There is nothing to read any more.
                return
            if not isinstance(error, ApiError | Unreachable):
                raise
            told = as_convect_error(error, "read logs", self._api.namespace)
            if over and isinstance(error, ApiError) and error.status == 403:
                self.forbidden = told.sentence
                self._end()
                return
            raise told from error
        self.trouble = None
        if complete and (over or self.reading.ended):
            self.reading.finish()
            self._end()
        else:
            self._closing.wait(PAUSE)

    def _read_once(self, *, follow: bool) -> bool:
        """Whether it came to the end of what there is."""
        with self._api.stream(
            self._path, SILENCE, container=self._container, follow=follow
        ) as response:
            self._response = response
            try:
                for piece in read_pieces(response):
                    if self._closing.is_set():
                        return False
                    self.reading.take(piece)
            finally:
                self._response = None
        return True

    def _end(self) -> None:
        self.done = True
        self._closing.set()
        self._health.recovered(self._name)
        self._changed()
